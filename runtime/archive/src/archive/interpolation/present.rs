//! The instances that count at a time, however many others the archive has.
//!
//! Input: the lives of all lanes, and one time after the other. Output: the lanes that
//! count, and the time span in which they are the same. The cost of a step from time to time grows
//! with the lanes at both times, and with those that came and went in between.

use crate::archive::interpolation::candidates::Candidate;
use crate::archive::interpolation::positions::LaneId;

/// The lanes of a domain that count at a time.
#[derive(Debug, Default)]
pub(super) struct Present {
    time: f64,
    /// In ascending order.
    lanes: Vec<LaneId>,
    /// The same lanes count strictly between these.
    span: (f64, f64),
    /// All lanes by the beginning and by the end of their lives.
    births: Vec<(f64, LaneId)>,
    deaths: Vec<(f64, LaneId)>,
}

impl Present {
    /// Before all times.
    pub(super) fn new(lanes: &[Candidate]) -> Present {
        let by = |time: fn(&Candidate) -> f64| {
            let mut list: Vec<(f64, LaneId)> =
                lanes.iter().map(time).zip(LaneId::first(lanes.len())).collect();
            list.sort_by(|(one, _), (other, _)| one.total_cmp(other));
            list
        };
        let (births, deaths) = (by(|lane| lane.life.0), by(|lane| lane.life.1));
        let mut present = Present { births, deaths, ..Present::default() };
        present.restart();
        present
    }

    /// Starts again before all times, because other lanes may count.
    pub(super) fn restart(&mut self) {
        self.lanes.clear();
        (self.time, self.span) = (f64::NEG_INFINITY, (f64::INFINITY, f64::NEG_INFINITY));
    }

    /// The lanes, in ascending order.
    pub(super) fn lanes(&self) -> &[LaneId] {
        &self.lanes
    }

    /// The same lanes count strictly between these times.
    pub(super) fn span(&self) -> (f64, f64) {
        self.span
    }

    /// Moves to a time. `all` are the lanes of the domain.
    pub(super) fn move_to(&mut self, time: f64, all: &[Candidate]) {
        let (from, to) = self.span;
        if from < time && time < to || self.time == time {
            self.time = time;
            return;
        }
        let Present { lanes, births, deaths, .. } = self;
        let (first, last) = (self.time.min(time), self.time.max(time));
        for list in [&*births, &*deaths] {
            let begin = list.partition_point(|(event, _)| *event < first);
            let end = list.partition_point(|(event, _)| *event <= last);
            lanes.extend(list[begin..end].iter().map(|(_, lane)| *lane));
        }
        lanes.retain(|lane| all[lane.index()].counts_at(time));
        lanes.sort_unstable();
        lanes.dedup();
        let born = births.partition_point(|(birth, _)| *birth <= time);
        let dead = deaths.partition_point(|(death, _)| *death < time);
        let event = |list: &[(f64, LaneId)], at: Option<usize>| Some(list.get(at?)?.0);
        let before = [event(births, born.checked_sub(1)), event(deaths, dead.checked_sub(1))];
        let after = [event(births, Some(born)), event(deaths, Some(dead))];
        self.span = (
            before.into_iter().flatten().fold(f64::NEG_INFINITY, f64::max),
            after.into_iter().flatten().fold(f64::INFINITY, f64::min),
        );
        self.time = time;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After a step between any two times, the lanes are those that a look at each would find. They
    /// are the same within the span.
    #[test]
    fn the_lanes_that_count_are_found_from_any_time() {
        let lives = [(0.0, 2.0), (1.0, 3.0), (3.0, f64::INFINITY), (2.0, 2.5), (1.0, 1.5)];
        let mut all: Vec<Candidate> = (0..)
            .zip(lives)
            .map(|(instance, life)| Candidate {
                instance,
                life,
                is_alive: life.1.is_infinite(),
                is_admitted: instance != 3,
            })
            .collect();
        let always = (f64::NEG_INFINITY, f64::INFINITY);
        all.push(Candidate { instance: 5, life: always, is_alive: true, is_admitted: true });
        let found = |time: f64| -> Vec<LaneId> {
            let lanes = LaneId::first(all.len());
            lanes.filter(|lane| all[lane.index()].counts_at(time)).collect()
        };
        let times: Vec<f64> = (-2..16).map(|quarter| f64::from(quarter) / 4.0).collect();
        for from in &times {
            for to in &times {
                let mut present = Present::new(&all);
                present.move_to(*from, &all);
                present.move_to(*to, &all);
                assert_eq!(present.lanes(), found(*to), "{from} {to}");
                let (begin, end) = present.span();
                for time in times.iter().filter(|time| begin < **time && **time < end) {
                    assert_eq!(found(*time), found(*to), "{from} {to} {time}");
                }
            }
        }
    }
}

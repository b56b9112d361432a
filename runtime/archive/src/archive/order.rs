//! The order of an archive's records in time.
//!
//! Input: the times of records one after the other, in either direction, each with the
//! time of the record beyond it. Output: whether a record is where its time belongs.
//! Records that are not are left out; each series of them gives one message.
//!
//! If two neighbours contradict each other, one of them has a wrong time. If the record
//! beyond fits the one before, the record between them is wrong, because a single
//! time is damaged. Otherwise time went back, because a clock was set, and records are
//! left out until their times have caught up. libpcp always does the latter, without a
//! message. No record belongs before the start that the label gives.

use pmderive_core::model::{PmStatus, Timestamp, UtcTime};

use crate::archive::framing::Damage;

/// The direction in which time moves for the reader. The mark between two archives
/// stands next to the archive that the reader leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Travel {
    /// A mark follows directly after the end of the earlier archive.
    Forward,
    /// A mark stands directly before the start of the later archive.
    Backward,
}

/// The rule that chooses the records to leave out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum OrderRule {
    /// As few as possible.
    #[default]
    Fewest,
    /// The records that libpcp leaves out.
    AsInLibpcp,
    /// No records.
    Nothing,
}

/// Checks that times never go back.
#[derive(Clone, Debug)]
pub(super) struct Order {
    /// Start of the archive, from its label.
    start: Timestamp,
    /// Time of the last record in its right place.
    last: Option<Timestamp>,
    left_out: Option<Series>,
    rule: OrderRule,
}

/// A series of records with wrong times.
#[derive(Clone, Debug)]
struct Series {
    count: u64,
    /// Offset of the first of them that was read.
    offset: u64,
    /// The fault of its time.
    problem: String,
}

const PREVIOUS: &str = "the time of the previous record";
const NEXT: &str = "the time of the next record";

impl Order {
    /// For an archive that begins at `start`, before its first record.
    pub(super) fn from(start: Timestamp) -> Order {
        Order { start, last: Some(start), left_out: None, rule: OrderRule::Fewest }
    }

    /// Chooses which records are left out.
    pub(super) fn set_rule(&mut self, rule: OrderRule) {
        self.rule = rule;
    }

    /// True if [`Order::admits`] needs the time of the record beyond.
    pub(super) fn looks_beyond(&self) -> bool {
        self.rule == OrderRule::Fewest
    }

    /// Reading continues at the first record of the archive.
    pub(super) fn begin_at_start(&mut self) {
        (self.last, self.left_out) = (Some(self.start), None);
    }

    /// Reading continues at any other place.
    pub(super) fn begin_anywhere(&mut self) {
        (self.last, self.left_out) = (None, None);
    }

    /// True if a record belongs where it is. `stamp` is its time, and `beyond` the time
    /// of the next record in the direction of reading, if there is one.
    pub(super) fn admits(
        &mut self,
        travel: Travel,
        (offset, stamp): (u64, Timestamp),
        beyond: Option<Timestamp>,
    ) -> bool {
        let precedes = |one: Timestamp, other: Timestamp| match travel {
            Travel::Forward => one < other,
            Travel::Backward => one > other,
        };
        if self.rule == OrderRule::Nothing {
            return true;
        }
        let last = self.last.filter(|last| precedes(stamp, *last));
        let (other, which) = match (last, self.last.zip(beyond)) {
            _ if stamp < self.start => (self.start, "the start in the label"),
            // The record lies on the wrong side of the last one in its right place.
            (Some(last), _) if travel == Travel::Forward => (last, PREVIOUS),
            (Some(last), _) => (last, NEXT),
            // The record beyond fits the last one, but not this one between them.
            (None, Some((last, beyond)))
                if precedes(beyond, stamp) && !precedes(beyond, last) && beyond >= self.start =>
            {
                (beyond, if travel == Travel::Forward { NEXT } else { PREVIOUS })
            }
            (None, _) => {
                self.last = Some(stamp);
                return true;
            }
        };
        let left_out = self.left_out.get_or_insert_with(|| {
            let than = if stamp < other { "before" } else { "after" };
            let (stamp, other) = (UtcTime(stamp), UtcTime(other));
            let problem = format!("data record: its time, {stamp}, is {than} {other}, {which}");
            Series { count: 0, offset, problem }
        });
        left_out.count += 1;
        false
    }

    /// The series of records that was left out since the last call, and their number.
    pub(super) fn take_left_out(&mut self) -> Option<(Damage, u64)> {
        let Series { count, offset, problem } = self.left_out.take()?;
        let left_out = match count {
            1 => "it is left out".to_owned(),
            count => format!("{count} records are left out, until times continue from there"),
        };
        let message = format!("{problem}; {left_out}");
        Some((Damage::new(PmStatus::LOGREC, offset, message), count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Times in seconds, those that are left out, and the number of messages.
    const CASES: &[(&[i64], &[i64], usize)] = &[
        (&[1, 2, 2, 3], &[], 0),
        // A single time is wrong: too late, too early, or before the start.
        (&[1, 2, 90, 3, 4], &[90], 1),
        (&[1, 2, -90, 3, 4], &[-90], 1),
        (&[-90, 1, 2, 3], &[-90], 1),
        (&[90, 1, 2, 3], &[90], 1),
        (&[1, 90, 2, 3, 80, 4], &[90, 80], 2),
        // Nothing after the last record shows that its time is wrong.
        (&[1, 2, 90], &[], 0),
    ];

    fn left_out(times: &[i64], travel: Travel, rule: OrderRule) -> (Vec<i64>, Vec<String>) {
        let mut order = Order::from(Timestamp::new(0, 0));
        order.set_rule(rule);
        let mut times = times.to_vec();
        if travel == Travel::Backward {
            times.reverse();
            order.begin_anywhere();
        }
        let (mut left_out, mut told) = (Vec::new(), Vec::new());
        for (at, time) in times.iter().enumerate() {
            let stamp = |time: &i64| Timestamp::new(*time, 0);
            let beyond = times.get(at + 1).map(stamp).filter(|_| order.looks_beyond());
            match order.admits(travel, (at as u64, stamp(time)), beyond) {
                true => told.extend(order.take_left_out()),
                false => left_out.push(*time),
            }
        }
        told.extend(order.take_left_out());
        if travel == Travel::Backward {
            left_out.reverse();
        }
        (left_out, told.into_iter().map(|(damage, _)| damage.message).collect())
    }

    #[test]
    fn a_single_wrong_time_costs_one_record_in_either_direction() {
        for (times, expected, messages) in CASES {
            let (forward, told) = left_out(times, Travel::Forward, OrderRule::Fewest);
            assert_eq!((&forward[..], told.len()), (*expected, *messages), "{times:?}");
            // When read backward, the first record is the last one, and no record
            // follows it.
            if *times == [90, 1, 2, 3] || times.last() == Some(&90) {
                continue;
            }
            let (backward, told) = left_out(times, Travel::Backward, OrderRule::Fewest);
            assert_eq!((&backward[..], told.len()), (*expected, *messages), "{times:?}");
        }
    }

    #[test]
    fn where_times_go_back_records_are_left_out_until_they_have_caught_up() {
        let (times, back) = ([1, 5, 6, 3, 4, 5, 6, 7], [3, 4, 5]);
        let (forward, told) = left_out(&times, Travel::Forward, OrderRule::Fewest);
        assert_eq!(forward, back);
        assert_eq!(
            told,
            ["data record: its time, 1970-01-01T00:00:03.000000000Z, is before \
              1970-01-01T00:00:06.000000000Z, the time of the previous record; 3 records are \
              left out, until times continue from there"]
        );
        let (as_in_libpcp, _) = left_out(&[1, 90, 2, 3], Travel::Forward, OrderRule::AsInLibpcp);
        assert_eq!(as_in_libpcp, [2, 3]);
    }
}

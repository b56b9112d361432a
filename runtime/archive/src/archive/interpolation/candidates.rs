//! The instances that a metric may have values of, over the whole archive.
//!
//! Input: all instances of a domain with their lives, and the instances that
//! value sets have. Output: lanes, one per instance in the order in which libpcp
//! delivers them, and for every list of instances in a value set, where its
//! lanes are. No values here.

use std::collections::{HashMap, HashSet};

use pmderive_core::model::{InDom, InstId, InstanceProfile, Timestamp};

use crate::archive::domains::Lives;

/// From this many instances on, a domain's instances count only during their lives.
const LARGE: usize = 16;

/// Instances in shapes that are nothing to speak of.
const SHAPES_LIMIT: usize = 16 * 1024;

/// Number of the shape without lanes, which every domain has.
pub(super) const NO_LANES: u32 = 0;

/// The lanes of all metrics with one instance domain.
#[derive(Debug, Default)]
pub(super) struct Candidates {
    /// `None` for metrics without a domain, which have one lane.
    pub(super) indom: Option<InDom>,
    lanes: Vec<Candidate>,
    lane_of: HashMap<InstId, u32>,
    shapes: Vec<Shape>,
    shape_of: HashMap<Box<[InstId]>, u32>,
    /// Numbers of shapes that were forgotten.
    free: Vec<u32>,
    /// Number of instances in all shapes.
    size: usize,
    /// Size from which on it is worth looking which shapes are still used.
    limit: usize,
}

/// One lane.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub(super) instance: InstId,
    /// Seconds since the start of the archive between which there may be values.
    pub(super) life: (f64, f64),
    /// False when it has left the domain.
    pub(super) is_alive: bool,
    /// False where the profile excludes it.
    pub(super) is_admitted: bool,
}

impl Candidate {
    /// True if it is delivered at a time, if there is a value.
    pub(super) fn counts_at(&self, time: f64) -> bool {
        let (birth, death) = self.life;
        self.is_admitted && (birth..=death).contains(&time)
    }
}

/// The lanes of one list of instances.
#[derive(Debug)]
struct Shape {
    /// In the order of the list; of equal instances the first.
    instances: Box<[InstId]>,
    /// Lanes with their positions in the list, ascending.
    positions: Box<[(u32, u32)]>,
}

impl Shape {
    fn none() -> Shape {
        Shape { instances: Box::default(), positions: Box::default() }
    }
}

impl Candidates {
    /// The one lane of metrics without a domain.
    pub(super) fn singular() -> Candidates {
        let life = (f64::NEG_INFINITY, f64::INFINITY);
        let lane = Candidate { instance: -1, life, is_alive: true, is_admitted: true };
        let first = Shape { instances: Box::default(), positions: Box::new([(0, 0)]) };
        Candidates {
            lanes: vec![lane],
            shapes: vec![Shape::none(), first],
            ..Candidates::default()
        }
    }

    /// The lanes of a domain.
    pub(super) fn of_domain(indom: InDom, lives: &Lives, start: Timestamp) -> Candidates {
        let clip = lives.largest >= LARGE;
        let lanes = delivery_order(lives).into_iter().map(|at| {
            let life = lives.instances[at];
            let span = (
                life.birth.seconds_since(start),
                life.death.map_or(f64::INFINITY, |death| death.seconds_since(start)),
            );
            let always = (f64::NEG_INFINITY, f64::INFINITY);
            let life_span = if clip { span } else { always };
            let is_alive = life.death.is_none();
            Candidate { instance: life.instance, life: life_span, is_alive, is_admitted: true }
        });
        let lanes: Vec<Candidate> = lanes.collect();
        let lane_of = (0u32..).zip(&lanes).map(|(at, lane)| (lane.instance, at)).collect();
        Candidates {
            indom: Some(indom),
            lanes,
            lane_of,
            shapes: vec![Shape::none()],
            limit: SHAPES_LIMIT,
            ..Candidates::default()
        }
    }

    pub(super) fn lanes(&self) -> &[Candidate] {
        &self.lanes
    }

    /// Takes a profile over.
    pub(super) fn apply(&mut self, profile: &InstanceProfile) {
        if let Some(indom) = self.indom {
            for lane in &mut self.lanes {
                lane.is_admitted = profile.admits(indom, lane.instance);
            }
        }
    }

    /// Number of the shape of a list of instances. `hint` is the number of
    /// the shape that the same metric had last.
    pub(super) fn shape(
        &mut self,
        instances: impl Iterator<Item = InstId> + Clone,
        hint: u32,
        scratch: &mut Vec<InstId>,
    ) -> u32 {
        if self.indom.is_none() {
            return 1;
        }
        if hint != NO_LANES
            && self.shapes[hint as usize].instances.iter().copied().eq(instances.clone())
        {
            return hint;
        }
        scratch.clear();
        scratch.extend(instances);
        if let Some(known) = self.shape_of.get(scratch.as_slice()) {
            return *known;
        }
        let lanes = (0u32..).zip(scratch.iter());
        let mut positions: Vec<(u32, u32)> =
            lanes.filter_map(|(position, id)| Some((*self.lane_of.get(id)?, position))).collect();
        positions.sort_unstable();
        positions.dedup_by_key(|(lane, _)| *lane);
        let number = self.free.pop().unwrap_or_else(|| {
            self.shapes.push(Shape::none());
            u32::try_from(self.shapes.len() - 1).unwrap_or(NO_LANES)
        });
        let instances: Box<[InstId]> = scratch.as_slice().into();
        self.size += instances.len();
        self.shapes[number as usize] =
            Shape { instances: instances.clone(), positions: positions.into() };
        self.shape_of.insert(instances, number);
        number
    }

    /// Number of instances in all shapes, as a measure of the memory that they take.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// True when some shapes may well be forgotten.
    pub(super) fn is_crowded(&self) -> bool {
        self.size > self.limit
    }

    /// Forgets shapes that are not among those used, by their numbers.
    pub(super) fn keep_shapes(&mut self, used: &HashSet<u32>) {
        for (number, shape) in (0u32..).zip(&mut self.shapes) {
            if !shape.instances.is_empty() && !used.contains(&number) {
                let Shape { instances, .. } = std::mem::replace(shape, Shape::none());
                self.size -= instances.len();
                self.shape_of.remove(&instances);
                self.free.push(number);
            }
        }
        self.limit = SHAPES_LIMIT.max(2 * self.size);
    }

    /// The lanes that value sets of a shape have.
    pub(super) fn lanes_of(&self, shape: u32) -> impl Iterator<Item = usize> {
        self.shapes[shape as usize].positions.iter().map(|(lane, _)| *lane as usize)
    }

    /// Position of a lane in the value sets of a shape.
    pub(super) fn position(&self, shape: u32, lane: u32) -> Option<u32> {
        let positions = &self.shapes[shape as usize].positions;
        // Where all instances are there, a lane is found at its own place.
        if let Some((found, position)) = positions.get(lane as usize)
            && *found == lane
        {
            return Some(*position);
        }
        let at = positions.binary_search_by_key(&lane, |(lane, _)| *lane).ok()?;
        Some(positions[at].1)
    }
}

/// Positions of the instances in the order in which libpcp delivers them: that
/// of a hash table with as many buckets as there are instances, the one that
/// was put in last first.
fn delivery_order(lives: &Lives) -> Vec<usize> {
    let size = lives.instances.len();
    let mut order: Vec<usize> = (0..size).rev().collect();
    // As libpcp does: an instance is a number without a sign there.
    order.sort_by_key(|at| lives.instances[*at].instance as u32 as usize % size);
    order
}

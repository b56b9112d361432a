//! The instances that may have values of a metric anywhere in the archive.
//!
//! Input: all instances of a domain with the times during which they exist, and the
//! instances in value sets. Output: lanes, one per instance in libpcp's order of
//! delivery, and for every list of instances in a value set the positions of its lanes.
//! There are no values here.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use pmderive_core::model::{InDom, InstId, InstanceProfile, Timestamp};

use crate::archive::interpolation::positions::{LaneId, ShapeId};
use crate::archive::interpolation::present::Present;
use crate::archive::lives::Lives;

/// In domains with at least this many instances, an instance counts only while it
/// exists.
const LARGE: usize = 16;

/// Total number of instances in shapes up to which shapes are never forgotten.
const SHAPES_LIMIT: usize = 16 * 1024;

/// The lanes of all metrics with one instance domain.
#[derive(Debug, Default)]
pub(super) struct Candidates {
    /// `None` for metrics without a domain, which have one lane.
    pub(super) indom: Option<InDom>,
    lanes: Vec<Candidate>,
    /// Time span in which all lanes may hold values; `None` if a lane is not admitted.
    common_life: Option<(f64, f64)>,
    present: Present,
    lane_of: HashMap<InstId, LaneId>,
    shapes: Vec<Shape>,
    shape_of: HashMap<Box<[InstId]>, ShapeId>,
    /// Forgotten shapes, for reuse.
    free: Vec<ShapeId>,
    /// Number of instances in all shapes.
    size: usize,
    /// Size above which unused shapes are looked for.
    limit: usize,
}

/// One lane.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub(super) instance: InstId,
    /// Time span that may hold values, in seconds since the start of the archive.
    pub(super) life: (f64, f64),
    /// False if the instance has left the domain.
    pub(super) is_alive: bool,
    /// False if the profile excludes the instance.
    pub(super) is_admitted: bool,
}

impl Candidate {
    /// True if a value of this instance would be delivered at `time`.
    pub(super) fn counts_at(&self, time: f64) -> bool {
        let (birth, death) = self.life;
        self.is_admitted && (birth..=death).contains(&time)
    }
}

/// The lanes of one list of instances.
#[derive(Debug)]
struct Shape {
    /// In the order of the list. Of equal instances the last one counts, as in libpcp.
    instances: Box<[InstId]>,
    /// Lanes with their positions in the list, in ascending order of lanes.
    positions: Box<[(LaneId, u32)]>,
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
        let first =
            Shape { instances: Box::default(), positions: Box::new([(LaneId::default(), 0)]) };
        Candidates {
            present: Present::new(&[lane]),
            lanes: vec![lane],
            common_life: Some(life),
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
        let lane_of = (0..).map(LaneId).zip(&lanes).map(|(id, lane)| (lane.instance, id)).collect();
        Candidates {
            indom: Some(indom),
            common_life: common_life(&lanes),
            present: Present::new(&lanes),
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

    pub(super) fn lane(&self, id: LaneId) -> Candidate {
        self.lanes[id.index()]
    }

    /// Time span in which all lanes may hold values, in seconds since the start of the
    /// archive. `None` if there are values that are not delivered at any time.
    pub(super) fn common_life(&self) -> Option<(f64, f64)> {
        self.common_life
    }

    /// Applies a profile: decides which instances are delivered.
    pub(super) fn apply(&mut self, profile: &InstanceProfile) {
        if let Some(indom) = self.indom {
            for lane in &mut self.lanes {
                lane.is_admitted = profile.admits(indom, lane.instance);
            }
        }
        self.common_life = common_life(&self.lanes);
        self.present.restart();
    }

    /// Finds the lanes whose values would be delivered at `time`.
    pub(super) fn move_to(&mut self, time: f64) -> &Present {
        self.present.move_to(time, &self.lanes);
        &self.present
    }

    /// The lanes that [`Candidates::move_to`] has found.
    pub(super) fn present(&self) -> &[LaneId] {
        self.present.lanes()
    }

    /// The shape for a list of instances. `hint` is the last shape of the same metric.
    pub(super) fn shape(
        &mut self,
        instances: impl Iterator<Item = InstId> + Clone,
        hint: ShapeId,
        scratch: &mut Vec<InstId>,
    ) -> ShapeId {
        if self.indom.is_none() {
            return ShapeId::SINGULAR;
        }
        if hint != ShapeId::NO_LANES
            && self.shapes[hint.index()].instances.iter().copied().eq(instances.clone())
        {
            return hint;
        }
        scratch.clear();
        scratch.extend(instances);
        if let Some(known) = self.shape_of.get(scratch.as_slice()) {
            return *known;
        }
        let lanes = (0u32..).zip(scratch.iter());
        let mut positions: Vec<(LaneId, u32)> =
            lanes.filter_map(|(position, id)| Some((*self.lane_of.get(id)?, position))).collect();
        positions.sort_unstable_by_key(|(lane, position)| (*lane, Reverse(*position)));
        positions.dedup_by_key(|(lane, _)| *lane);
        let id = self.free.pop().unwrap_or_else(|| {
            self.shapes.push(Shape::none());
            ShapeId::at(self.shapes.len() - 1)
        });
        let instances: Box<[InstId]> = scratch.as_slice().into();
        self.size += instances.len();
        self.shapes[id.index()] =
            Shape { instances: instances.clone(), positions: positions.into() };
        self.shape_of.insert(instances, id);
        id
    }

    /// Number of instances in all shapes, as a measure of their memory.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// True if it is worth looking for unused shapes.
    pub(super) fn is_crowded(&self) -> bool {
        self.size > self.limit
    }

    /// Forgets all shapes except those in `used`.
    pub(super) fn keep_shapes(&mut self, used: &HashSet<ShapeId>) {
        for (id, shape) in (0..).map(ShapeId).zip(&mut self.shapes) {
            if !shape.instances.is_empty() && !used.contains(&id) {
                let Shape { instances, .. } = std::mem::replace(shape, Shape::none());
                self.size -= instances.len();
                self.shape_of.remove(&instances);
                self.free.push(id);
            }
        }
        self.limit = SHAPES_LIMIT.max(2 * self.size);
    }

    /// For each lane, its position in the value sets of a shape, if these have all
    /// lanes.
    pub(super) fn positions_of_all(
        &self,
        shape: ShapeId,
    ) -> Option<impl ExactSizeIterator<Item = u32> + Clone> {
        let positions = &self.shapes[shape.index()].positions;
        let are_all = positions.len() == self.lanes.len();
        are_all.then(|| positions.iter().map(|(_, position)| *position))
    }

    /// The lanes in value sets of a shape.
    pub(super) fn lanes_of(&self, shape: ShapeId) -> impl Iterator<Item = LaneId> {
        self.shapes[shape.index()].positions.iter().map(|(lane, _)| *lane)
    }

    /// Position of a lane in the value sets of a shape.
    pub(super) fn position(&self, shape: ShapeId, lane: LaneId) -> Option<u32> {
        let positions = &self.shapes[shape.index()].positions;
        // If all instances are present, a lane is at its own position.
        if let Some((found, position)) = positions.get(lane.index())
            && *found == lane
        {
            return Some(*position);
        }
        let at = positions.binary_search_by_key(&lane, |(lane, _)| *lane).ok()?;
        Some(positions[at].1)
    }
}

/// Time span in which all lanes may hold values, if all are admitted.
fn common_life(lanes: &[Candidate]) -> Option<(f64, f64)> {
    let always = (f64::NEG_INFINITY, f64::INFINITY);
    lanes.iter().try_fold(always, |(birth, death), lane| {
        lane.is_admitted.then(|| (birth.max(lane.life.0), death.min(lane.life.1)))
    })
}

/// Positions in `lives.instances` in libpcp's order of delivery: that of a hash table
/// with as many buckets as instances, in which the instance inserted last comes first.
fn delivery_order(lives: &Lives) -> Vec<usize> {
    let size = lives.instances.len();
    let mut order: Vec<usize> = (0..size).rev().collect();
    // In libpcp's hash, an instance is an unsigned number.
    order.sort_by_key(|at| lives.instances[*at].instance as u32 as usize % size);
    order
}

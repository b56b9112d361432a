//! The offsets of the sets' columns in a section, in the workspace and in the
//! block of previous samples, for given numbers of instances.
//!
//! Input: a plan and counts.

use super::plan::Place;
use super::shape::SetId;
use super::{SectionId, State, TooLarge};
use crate::kernel::LANE_GROUP;

/// Bytes after a column's end. Kernels may read whole groups of lanes, so these
/// bytes must exist.
pub const COLUMN_SLACK: usize = LANE_GROUP * 8;

/// The offsets of the sets' columns.
#[derive(Clone, Debug, Default)]
pub struct Geometry {
    /// For each set, the number of lanes that a column in the workspace has
    /// room for.
    pub caps: Vec<u32>,
    /// For each set, the number of lanes that a column of previous samples has
    /// room for.
    kept_caps: Vec<u32>,
    /// Offset of each set's columns in the section's part of the workspace.
    pub work: Vec<u32>,
    /// Offset of each set's columns in the block of previous samples.
    kept: Vec<u32>,
    /// Size of all columns in bytes.
    pub work_size: usize,
    /// Size of the block of previous samples in bytes.
    pub kept_size: usize,
}

impl Geometry {
    /// The geometry for a section of a host.
    ///
    /// # Errors
    /// [`TooLarge`].
    pub fn of(state: &State) -> Result<Geometry, TooLarge> {
        let mut geometry = Geometry::default();
        geometry.renew(state)?;
        Ok(geometry)
    }

    pub fn renew(&mut self, state: &State) -> Result<(), TooLarge> {
        let plan = &state.plan;
        self.caps.clear();
        for set in &state.sets {
            self.caps.push(offset(set.len().next_multiple_of(LANE_GROUP))?);
        }
        let count = |set: SetId| state.sets.get(set.index()).map_or(0, |ids| ids.len());
        // Computation in pieces writes beyond the end of a piece.
        for one in plan.aligned.iter().filter(|one| !one.in_one_piece) {
            if let Some(cap) = self.caps.get_mut(one.want.index()) {
                *cap = offset((count(one.want) + LANE_GROUP).next_multiple_of(LANE_GROUP))?;
            }
        }
        self.kept_caps.clear();
        self.kept_caps.extend(state.sets.iter().map(|ids| lasting_room(ids.len() as u32)));
        for (set, before) in &plan.displaced {
            let room = lasting_room(count(*before) as u32);
            if let Some(cap) = self.kept_caps.get_mut(set.index()) {
                *cap = room.max(*cap);
            }
        }
        self.work.clear();
        self.kept.clear();
        let (mut work, mut kept) = (0, 0);
        let caps = self.caps.iter().zip(&self.kept_caps);
        for ((own, previous), (cap, kept_cap)) in plan.work.iter().zip(&plan.kept).zip(caps) {
            self.work.push(offset(work)?);
            self.kept.push(offset(kept)?);
            work += (*cap as usize * *own as usize).next_multiple_of(8);
            kept += (*kept_cap as usize * *previous as usize).next_multiple_of(8);
        }
        // Offsets within the last column must fit too.
        offset(work)?;
        offset(kept)?;
        if plan.section == SectionId::SINGLES {
            kept = plan.histories.len() * 8;
        }
        self.work_size = work;
        self.kept_size = kept + COLUMN_SLACK;
        Ok(())
    }

    /// Offset of a column of previous samples in their block.
    pub fn kept(&self, place: Place) -> u32 {
        match place {
            Place::Kept { set: SetId::SINGLE, unit } => unit,
            Place::Kept { set, unit } => self.kept[set.index()] + unit * self.kept_cap(set),
            _ => 0,
        }
    }

    /// Number of lanes that a column of a set's previous samples has room for.
    pub fn kept_cap(&self, set: SetId) -> u32 {
        self.kept_caps[set.index()]
    }
}

/// Number of lanes to make room for if there are `lanes` now. Spare room lets
/// columns stay in place when instances come one by one.
fn lasting_room(lanes: u32) -> u32 {
    let step = (lanes / 32).next_power_of_two().max(LANE_GROUP as u32);
    lanes.next_multiple_of(step)
}

/// Converts an offset to 32 bits.
pub fn offset(bytes: usize) -> Result<u32, TooLarge> {
    u32::try_from(bytes).map_err(|_| TooLarge)
}

//! The workspace of evaluations, and the places of sections in it.
//!
//! A frame serves any number of hosts of one program, one after the other. It
//! remembers the plans and counts of its last layout. If the next host or the
//! next fetch has the same, there is nothing to do. Otherwise only the sections that differ get a
//! new layout, and the others stay where they are.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use super::geometry::{COLUMN_SLACK, offset};
use super::placed::Placed;
use super::sections::{SectionId, Sections};
use super::shape::SetId;
use super::{State, TooLarge};
use crate::model::InstId;
use crate::program::{Program, Status};

/// Columns of all sections of a program, and the form that the decoder expects.
#[derive(Debug)]
pub struct Frame {
    /// The program that the frame belongs to.
    program: Weak<Program>,
    /// The sections of the program.
    pub sections: Arc<Sections>,
    /// The columns of inputs, steps and outputs. They last no longer than an
    /// evaluation, so the memory passes [from frame to
    /// frame](Frame::take_arena).
    pub arena: Vec<u8>,
    /// The layouts of sections, parallel to the sections.
    pub placed: Vec<Placed>,
    /// The expected inputs, parallel to the program's inputs.
    pub inputs: Vec<Expected>,
    /// Changes with every new layout; 0 if nothing is laid out.
    pub stamp: u64,
    /// Offset for the next section, and number of bytes that are no longer
    /// used.
    end: usize,
    wasted: usize,
}

/// The form of a metric's values that the decoder expects, and the place of its
/// column.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    /// Its section.
    pub section: SectionId,
    /// Its instances.
    pub set: SetId,
    /// True if there are values.
    pub has_values: bool,
    /// The value set's own count or status.
    pub raw_count: i32,
    /// The instance of a single value.
    pub instance: InstId,
    /// Offset of its column.
    pub offset: u32,
}

impl Frame {
    /// An empty frame for a program.
    pub fn new(program: &Arc<Program>, sections: Arc<Sections>) -> Frame {
        let mut placed = Vec::new();
        placed.resize_with(sections.all.len(), Placed::default);
        let expect = |home: &super::sections::Home| Expected {
            section: home.section,
            set: SetId::SINGLE,
            has_values: false,
            raw_count: 0,
            instance: -1,
            offset: 0,
        };
        let inputs = sections.inputs.iter().map(expect).collect();
        let end = sections.fixed_size as usize;
        let program = Arc::downgrade(program);
        Frame { program, sections, arena: Vec::new(), placed, inputs, stamp: 0, end, wasted: 0 }
    }

    /// True for the frame of this program and these sections. Programs that
    /// differ little have the same sections.
    pub fn is_of(&self, program: &Arc<Program>, sections: &Arc<Sections>) -> bool {
        std::ptr::eq(self.program.as_ptr(), Arc::as_ptr(program))
            && Arc::ptr_eq(&self.sections, sections)
    }

    /// False if its program is gone.
    pub fn is_in_use(&self) -> bool {
        self.program.strong_count() > 0
    }

    /// Reuses the memory of another frame that is idle.
    pub fn take_arena(&mut self, other: Option<&mut Frame>) {
        if let Some(other) = other {
            self.arena = std::mem::take(&mut other.arena);
        }
        self.make_room();
    }

    fn make_room(&mut self) {
        self.arena.resize(self.arena.len().max(self.end + COLUMN_SLACK), 0);
    }

    /// Discards the layout if too much memory between sections is unused. Do
    /// not call it after decoding: decoded values would not move along.
    pub fn give_up_waste(&mut self) {
        if self.wasted > self.end / 2 {
            self.placed.iter_mut().for_each(Placed::give_up);
            (self.end, self.wasted) = (self.sections.fixed_size as usize, 0);
            self.stamp = 0;
        }
    }

    /// Lays out the sections of a host that are not laid out for their states
    /// yet. The others stay in place. Returns true if there were any.
    ///
    /// # Errors
    /// [`TooLarge`]. Then the frame is unusable until it is laid out again.
    pub fn adopt(&mut self, states: &[Option<Arc<State>>]) -> Result<bool, TooLarge> {
        let mut changed = false;
        for (section, state) in (0..).map(SectionId).zip(states) {
            let Some(state) = state else { continue };
            if !self.placed[section.index()].is_for(state) {
                self.lay_out(section, state)?;
                changed = true;
            }
        }
        if changed {
            static NEXT: AtomicU64 = AtomicU64::new(1);
            self.stamp = NEXT.fetch_add(1, Ordering::Relaxed);
            self.make_room();
        }
        Ok(changed)
    }

    fn lay_out(&mut self, section: SectionId, state: &Arc<State>) -> Result<(), TooLarge> {
        let sections = Arc::clone(&self.sections);
        let own = &sections[section];
        let plan = &state.plan;
        let placed = &mut self.placed[section.index()];
        let need = placed.begin(state)?;
        if need > placed.room() {
            // Some spare room: a new instance then seldom moves the section.
            let room = (need + need / 8).next_multiple_of(64);
            self.wasted += placed.room();
            placed.move_to(offset(self.end)?, room);
            self.end += room;
            offset(self.end)?;
        }
        placed.lay_out(&own.histories, state);
        for ((slot, input), place) in own.inputs.iter().zip(&plan.shape.inputs).zip(&plan.inputs) {
            let expected = &mut self.inputs[slot.index()];
            expected.has_values = input.status == Status::Values;
            expected.set = input.set;
            expected.raw_count = match input.set {
                SetId::SINGLE => input.raw_count,
                set => state.sets[set.index()].len() as i32,
            };
            expected.instance = input.instance;
            expected.offset = placed.offset(*place);
        }
        Ok(())
    }
}

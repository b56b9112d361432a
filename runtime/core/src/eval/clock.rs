//! Time stamps of fetched values. If a fetch was split, each slot has the stamp
//! of its part.

use crate::model::Timestamp;
use crate::program::{HistoryId, InputSlot, Program};
use crate::result::ResultBatch;

/// The time of one evaluation.
pub struct Clock<'c> {
    program: &'c Program,
    batch: &'c ResultBatch,
    /// Time stamp of the fetch.
    pub timestamp: Timestamp,
    is_split: bool,
}

impl<'c> Clock<'c> {
    /// The time of a fetch for a program.
    pub fn new(program: &'c Program, batch: &'c ResultBatch) -> Clock<'c> {
        let is_split = batch.parts().len() > 1;
        Clock { program, batch, timestamp: batch.timestamp(), is_split }
    }

    /// Time stamp of the operand of a history.
    pub fn now(&self, history: HistoryId) -> Timestamp {
        self.of(&self.program.histories[history.index()].inputs)
    }

    /// Time stamp of the first of some inputs. Without inputs, that of the
    /// fetch.
    pub fn of(&self, inputs: &[InputSlot]) -> Timestamp {
        match inputs {
            [slot, ..] if self.is_split => stamp_of(self.batch, slot.index()),
            _ => self.timestamp,
        }
    }
}

/// Time stamp of the part with a slot.
fn stamp_of(batch: &ResultBatch, slot: usize) -> Timestamp {
    let mut before = 0;
    for part in batch.parts() {
        before += part.set_count();
        if slot < before {
            return part.timestamp;
        }
    }
    batch.timestamp()
}

//! Segment rows: where the segments of one kernel call lie in the arenas.
//!
//! A segment is one use of a kernel: one metric's columns. Its row is
//!
//! | word    | meaning                                                   |
//! |---------|-----------------------------------------------------------|
//! | 0       | number of lanes of its columns                            |
//! | 1..=n   | offset of each operand, in bytes                          |
//! | n + 1   | offset of the output in the workspace arena               |
//! | n + 2   | offset of the constants in the program's constants        |
//!
//! Operands lie in the workspace arena, previous samples in the history arena.
//! An output lies apart from all operands, as it may be computed twice.
//! Rows hold offsets instead of addresses, so they stay valid when an arena moves.

use super::ir::{Access, KernelIr};

/// Map kernels may compute whole groups of this many lanes; columns are padded to it.
pub const LANE_GROUP: usize = 4;

/// The three memories that kernels work on.
#[derive(Debug)]
pub struct Arenas<'a> {
    /// Inputs, intermediate columns and outputs of this evaluation.
    pub work: &'a mut [u8],
    /// Previous samples of the host.
    pub history: &'a [u8],
    /// Constants of the program.
    pub constants: &'a [u8],
}

/// One use of a kernel: the columns of one metric.
#[derive(Clone, Copy, Debug)]
pub struct Segment<'s> {
    /// Number of lanes of its columns.
    pub lanes: u32,
    /// Offset of each operand in its arena, in bytes.
    pub operands: &'s [u32],
    /// Offset of the output in the workspace arena, in bytes.
    pub output: u32,
    /// Offset of the constants in the program's constants, in bytes.
    pub constants: u32,
}

/// Rows of one kernel, with the least arena sizes that hold everything they refer to.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    words: Vec<u32>,
    row_words: usize,
    /// Bytes of a lane of the output, and whether there is one lane only.
    output: (usize, bool),
    work: usize,
    history: usize,
    constants: usize,
}

impl Rows {
    /// No rows, for a kernel of this form.
    pub fn new(ir: &KernelIr) -> Rows {
        let mut rows = Rows::default();
        rows.clear(ir);
        rows
    }

    /// Forgets all segments; the rows are for a kernel of this form from now on.
    pub fn clear(&mut self, ir: &KernelIr) {
        self.words.clear();
        (self.row_words, self.work, self.history, self.constants) = (ir.row_words(), 0, 0, 0);
        self.output = (ir.output().bytes(), ir.is_single());
    }

    /// Makes room for exactly this number of segments.
    pub fn reserve(&mut self, segments: usize) {
        self.words.reserve_exact((segments * self.row_words).saturating_sub(self.words.len()));
    }

    /// Adds a segment of the kernel that these rows were made for.
    pub fn push(&mut self, ir: &KernelIr, segment: Segment<'_>) {
        let Segment { lanes, operands, output, constants } = segment;
        debug_assert_eq!(operands.len(), ir.operands.len());
        let padded = (lanes as usize).next_multiple_of(LANE_GROUP);
        let end = |offset: u32, lanes: usize, bytes: usize| offset as usize + lanes * bytes;
        for (operand, &offset) in ir.operands.iter().zip(operands) {
            let lanes = if operand.access == Access::Column { padded } else { 1 };
            let arena = if operand.previous { &mut self.history } else { &mut self.work };
            *arena = (*arena).max(end(offset, lanes, operand.scalar.bytes()));
        }
        let (output_bytes, is_single) = self.output;
        let output_lanes = if is_single { 1 } else { padded };
        self.work = self.work.max(end(output, output_lanes, output_bytes));
        self.constants = self.constants.max(end(constants, ir.constants.len(), 8));
        self.words.push(lanes);
        self.words.extend_from_slice(operands);
        self.words.extend_from_slice(&[output, constants]);
    }

    /// Number of segments.
    pub fn segments(&self) -> usize {
        self.words.len() / self.row_words.max(1)
    }

    /// The words of `count` segments from `first` on.
    pub fn words(&self, first: usize, count: usize) -> &[u32] {
        &self.words[first * self.row_words..(first + count) * self.row_words]
    }

    /// True when everything that the rows refer to lies within the arenas.
    pub fn fit(&self, arenas: &Arenas<'_>) -> bool {
        self.work <= arenas.work.len()
            && self.history <= arenas.history.len()
            && self.constants <= arenas.constants.len()
    }
}

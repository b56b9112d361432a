//! What is done to the bytes of a file.

use std::ops::Range;

use crate::choices::Choices;

/// How a file is damaged.
#[derive(Clone, Debug)]
pub enum Damage {
    Cut(usize),
    Flip {
        at: usize,
        bit: u8,
    },
    /// Bytes are overwritten by others of the file.
    Copy {
        from: usize,
        to: usize,
        length: usize,
    },
    Remove(Range<usize>),
    Insert {
        from: usize,
        to: usize,
        length: usize,
    },
}

impl Damage {
    pub fn random(choices: &mut Choices, size: usize) -> Damage {
        let length = 1 + choices.below(12);
        let (from, to) = (choices.below(size - length), choices.below(size - length));
        match choices.below(10) {
            0 => Damage::Copy { from, to, length },
            1 => Damage::Copy { from: from & !3, to: to & !3, length: 4 },
            2 => Damage::Remove(to..to + length),
            3 => Damage::Insert { from, to, length },
            _ => Damage::Flip { at: choices.below(size), bit: 1 << choices.below(8) },
        }
    }

    pub fn apply(&self, bytes: &[u8]) -> Vec<u8> {
        let mut damaged = bytes.to_vec();
        match self.clone() {
            Damage::Cut(at) => damaged.truncate(at),
            Damage::Flip { at, bit } => damaged[at] ^= bit,
            Damage::Copy { from, to, length } => damaged.copy_within(from..from + length, to),
            Damage::Remove(range) => drop(damaged.drain(range)),
            Damage::Insert { from, to, length } => {
                drop(damaged.splice(to..to, bytes[from..from + length].iter().copied()));
            }
        }
        damaged
    }

    /// The bytes that it changes; from where on they have moved.
    pub fn touches(&self) -> (Range<usize>, bool) {
        match self.clone() {
            Damage::Cut(at) => (at..at, true),
            Damage::Flip { at, .. } => (at..at + 1, false),
            Damage::Copy { to, length, .. } => (to..to + length, false),
            Damage::Remove(range) => (range, true),
            Damage::Insert { to, .. } => (to..to, true),
        }
    }
}

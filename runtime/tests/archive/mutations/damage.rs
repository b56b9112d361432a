//! Kinds of damage to the bytes of a file.

use std::ops::Range;

use crate::choices::Choices;

/// A kind of damage to a file.
#[derive(Clone, Debug)]
pub enum Damage {
    Cut(usize),
    Flip {
        at: usize,
        bit: u8,
    },
    /// A word is overwritten.
    Word {
        at: usize,
        word: u32,
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

/// Words that are too small, too large, negative, or mean something else.
const WORDS: [u32; 8] = [0, 1, 3, 24, 0x1_0000, 0x7fff_ffff, 0x8000_0000, u32::MAX];

impl Damage {
    pub fn random(choices: &mut Choices, size: usize) -> Damage {
        let length = 1 + choices.below(12);
        let (from, to) = (choices.below(size - length), choices.below(size - length));
        match choices.below(12) {
            0 => Damage::Copy { from, to, length },
            1 => Damage::Copy { from: from & !3, to: to & !3, length: 4 },
            2 => Damage::Remove(to..to + length),
            3 => Damage::Insert { from, to, length },
            4 | 5 => {
                let at = choices.below(size - 3) & !3;
                Damage::Word { at, word: WORDS[choices.below(WORDS.len())] }
            }
            _ => Damage::Flip { at: choices.below(size), bit: 1 << choices.below(8) },
        }
    }

    pub fn apply(&self, bytes: &[u8]) -> Vec<u8> {
        let mut damaged = bytes.to_vec();
        match self.clone() {
            Damage::Cut(at) => damaged.truncate(at),
            Damage::Flip { at, bit } => damaged[at] ^= bit,
            Damage::Word { at, word } => damaged[at..at + 4].copy_from_slice(&word.to_be_bytes()),
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
            Damage::Word { at, .. } => (at..at + 4, false),
            Damage::Copy { to, length, .. } => (to..to + length, false),
            Damage::Remove(range) => (range, true),
            Damage::Insert { to, .. } => (to..to, true),
        }
    }
}

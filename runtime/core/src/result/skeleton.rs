//! The skeleton of an encoded result: everything in it except its numbers. It
//! allows another result that differs only in numbers to be read without a
//! search.
//!
//! Input: an encoded result that was checked. Output: whether another one
//! differs only in numbers, and then its numbers as columns. If so, it is as
//! sound as the first one: all counts, instances, positions and block headers
//! are the same bytes. This module finds no faults and knows no descriptors.
//!
//! ```text
//!   value sets  [pmid numval valfmt instance position ...]  compared, but for
//!                                                           words in place
//!   blocks      [head data] [head data] [head data] ...     heads compared,
//!                                                           data copied
//! ```

use crate::model::{InstId, Pmid, ValueType};
use crate::result::{Columns, Form, LayoutId};

/// An encoded result as it came.
#[derive(Clone, Copy, Debug)]
pub struct Encoded<'a> {
    /// Identity of the list of metrics that it answers
    /// ([`FetchList::id`](crate::source::FetchList::id)).
    pub list: u64,
    /// Value sets, then their blocks, which end with these bytes.
    pub bytes: &'a [u8],
    /// Offset of the first value set.
    pub first_set: usize,
    /// Number of value sets.
    pub set_count: usize,
    /// Offset of block position zero, as in [`Wire`](crate::result::Wire).
    pub block_origin: i64,
}

/// A value set of an encoded result.
#[derive(Clone, Copy, Debug)]
struct Set {
    pmid: Pmid,
    /// Number of values, or a status when negative.
    numval: i32,
    in_blocks: bool,
    /// Offset of the set.
    start: usize,
    /// Offset of its first lane.
    lanes: usize,
    /// Number of values.
    count: usize,
    /// Its blocks, if they are all alike.
    blocks: Option<Run>,
}

/// Numbers, or blocks, at equal distances.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// Offset of the first one.
    start: usize,
    count: usize,
    /// The first word of each block, as it is in memory.
    head: [u8; 4],
    /// Bytes from one to the next.
    stride: usize,
}

/// Numbers that follow each other in the result and in the columns.
#[derive(Clone, Copy, Debug)]
struct Copies {
    from: Run,
    kind: Kind,
    /// Offset of the first lane.
    to: usize,
}

/// The place of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// In the value set.
    InPlace,
    /// In a block, with 4 bytes.
    Of4,
    /// In a block, with 8 bytes.
    Of8,
}

impl Kind {
    fn width(self) -> usize {
        if self == Kind::Of8 { 8 } else { 4 }
    }
}

/// The parts that all results of one form share.
#[derive(Debug)]
pub(super) struct Skeleton {
    layout: LayoutId,
    /// The value sets.
    sets: Box<[u8]>,
    /// Mask of the bits of `sets` that are not numbers; empty if none is a
    /// number.
    mask: Box<[u8]>,
    /// The columns without lanes.
    columns: Columns,
    lane_bytes: usize,
    copies: Box<[Copies]>,
    /// Blocks of metrics outside the list.
    others: Box<[Run]>,
    /// For each metric of the list, true if the result has a set of it.
    holds: Box<[bool]>,
}

fn word(bytes: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(offset..)?.first_chunk()?))
}

impl Encoded<'_> {
    /// The value sets, with the offset of each.
    pub fn sets(&self) -> impl Iterator<Item = (Pmid, usize)> {
        self.walk().map(|set| (set.pmid, set.start))
    }

    fn walk(&self) -> impl Iterator<Item = Set> {
        let (bytes, mut at) = (self.bytes, self.first_set);
        (0..self.set_count).map_while(move |_| {
            let numval = word(bytes, at + 4)?.cast_signed();
            let count = usize::try_from(numval).unwrap_or(0);
            let in_blocks = count > 0 && word(bytes, at + 8)? != 0;
            let (start, lanes) = (at, if count > 0 { at + 12 } else { at + 8 });
            at = lanes.checked_add(count.checked_mul(8)?)?;
            let pmid = Pmid(word(bytes, start)?);
            Some(Set { pmid, numval, in_blocks, start, lanes, count, blocks: None })
        })
    }
}

impl Set {
    fn end(&self) -> usize {
        self.lanes + 8 * self.count
    }

    /// The instances of the values.
    fn ids<'b>(&self, bytes: &'b [u8]) -> impl ExactSizeIterator<Item = InstId> + use<'b> {
        let lanes = bytes.get(self.lanes..self.end()).unwrap_or_default().as_chunks::<8>().0;
        lanes.iter().map(|[a, b, c, d, ..]| InstId::from_be_bytes([*a, *b, *c, *d]))
    }

    /// The form of the values as a column, and their places, if they are
    /// numbers of one type.
    fn numbers(&self) -> Option<(Form, Kind, Run)> {
        if !self.in_blocks {
            let start = self.lanes;
            let run = Run { start, count: self.count, head: [0; 4], stride: 8 };
            return Some((Form::Words, Kind::InPlace, run));
        }
        let run = self.blocks?;
        let [code, 0, 0, length] = run.head else { return None };
        let value_type = ValueType::from_code(code.into());
        let kind = match (value_type, length) {
            (ValueType::F32, 8) => Kind::Of4,
            (ValueType::I64 | ValueType::U64 | ValueType::F64, 12) => Kind::Of8,
            _ => return None,
        };
        Some((Form::Numbers(value_type), kind, run))
    }
}

impl Skeleton {
    /// The skeleton of a checked result. `wanted` has for each metric of the
    /// list the offset of its value set. `None` if the wanted values are not
    /// all numbers, or the blocks not in the order of the values.
    pub(super) fn of(
        encoded: &Encoded<'_>,
        wanted: impl Iterator<Item = (Pmid, Option<usize>)>,
    ) -> Option<Skeleton> {
        let bytes = encoded.bytes;
        let mut all: Vec<Set> = encoded.walk().collect();
        if all.len() != encoded.set_count {
            return None;
        }
        let sets_end = all.last().map_or(encoded.first_set, Set::end);
        let sets: Box<[u8]> = bytes.get(encoded.first_set..sets_end)?.into();
        let mut others = Vec::new();
        let mut at = sets_end;
        for set in all.iter_mut().filter(|set| set.in_blocks) {
            let begun = others.len();
            at = add_blocks(encoded, set, at, &mut others)?;
            if let [run] = others[begun..] {
                set.blocks = Some(run);
                others.truncate(begun);
            }
        }
        if at != bytes.len() {
            return None;
        }
        let (mut columns, mut lane_bytes) = (Columns::default(), 0);
        let (mut copies, mut holds) = (Vec::new(), Vec::new());
        for (pmid, start) in wanted {
            holds.push(start.is_some());
            let Some(start) = start else {
                columns.begin(pmid, 0);
                continue;
            };
            let found = all.binary_search_by_key(&start, |set| set.start).ok()?;
            let set = &mut all[found];
            columns.begin(set.pmid, set.numval);
            if set.count == 0 {
                continue;
            }
            let (form, kind, from) = set.numbers()?;
            columns.fill(form, set.ids(bytes));
            add_copies(&mut copies, Copies { from, kind, to: lane_bytes });
            lane_bytes += set.count * kind.width();
            set.blocks = None;
        }
        all.iter().filter_map(|set| set.blocks).for_each(|run| add_run(&mut others, run));
        columns.drop_lanes();
        let mask = mask_of(&all, encoded.first_set, sets.len());
        Some(Skeleton {
            layout: LayoutId::fresh(),
            sets,
            mask,
            columns,
            lane_bytes,
            copies: copies.into(),
            others: others.into(),
            holds: holds.into(),
        })
    }

    /// For each metric of the list, true if the result has a set of it.
    pub(super) fn holds(&self) -> &[bool] {
        &self.holds
    }

    /// Writes another result into columns, if only its numbers differ.
    /// Otherwise the columns are unspecified.
    pub(super) fn deliver(&self, encoded: &Encoded<'_>, columns: &mut Columns) -> bool {
        let bytes = encoded.bytes;
        let sets = bytes.get(encoded.first_set..).and_then(|rest| rest.get(..self.sets.len()));
        if !sets.is_some_and(|sets| self.has_sets(sets)) {
            return false;
        }
        if columns.layout() != Some(self.layout) {
            columns.become_like(&self.columns, self.lane_bytes);
            columns.set_layout(self.layout);
        }
        let lanes = columns.lanes_mut();
        self.copies.iter().all(|copies| copies.run(bytes, lanes))
            && self.others.iter().all(|run| run.has_heads(bytes))
    }

    fn has_sets(&self, sets: &[u8]) -> bool {
        if self.mask.is_empty() {
            return *sets == *self.sets;
        }
        let [(a, a_rest), (b, b_rest), (mask, mask_rest)] =
            [sets, &*self.sets, &*self.mask].map(<[u8]>::as_chunks::<8>);
        let differing = |((a, b), mask): ((&[u8; 8], &[u8; 8]), &[u8; 8])| {
            let [a, b, mask] = [a, b, mask].map(|eight| u64::from_ne_bytes(*eight));
            (a ^ b) & mask
        };
        let all = a.iter().zip(b).zip(mask).map(differing).fold(0, |all, one| all | one);
        let rest = a_rest.iter().zip(b_rest).zip(mask_rest);
        all == 0 && rest.map(|((a, b), mask)| (a ^ b) & mask).all(|differing| differing == 0)
    }
}

/// Adds the blocks of a set that begin at `at`, as few runs as possible, and
/// returns where they end. `None` if they are not in the order of the values.
fn add_blocks(
    encoded: &Encoded<'_>,
    set: &Set,
    mut at: usize,
    runs: &mut Vec<Run>,
) -> Option<usize> {
    let begun = runs.len();
    for lane in (set.lanes..set.end()).step_by(8) {
        let position = i64::from(word(encoded.bytes, lane + 4)?);
        let head: [u8; 4] = *encoded.bytes.get(at..)?.first_chunk()?;
        let length = usize::try_from(u32::from_be_bytes(head) & 0xff_ffff).ok()?;
        let end = at.checked_add(length.next_multiple_of(4))?;
        let is_here = usize::try_from(encoded.block_origin + 4 * position) == Ok(at);
        if !is_here || length < head.len() || end > encoded.bytes.len() {
            return None;
        }
        match runs[begun..].last_mut() {
            Some(last) if last.head == head => last.count += 1,
            _ => runs.push(Run { start: at, count: 1, head, stride: end - at }),
        }
        at = end;
    }
    Some(at)
}

/// Adds blocks. If they continue the last ones, both become one.
fn add_run(all: &mut Vec<Run>, new: Run) {
    match all.last_mut() {
        Some(last) if last.is_continued_by(&new) => last.count += new.count,
        _ => all.push(new),
    }
}

/// Adds numbers. If they continue the last ones, both become one.
fn add_copies(all: &mut Vec<Copies>, new: Copies) {
    match all.last_mut() {
        Some(last) if last.is_continued_by(&new) => last.from.count += new.from.count,
        _ => all.push(new),
    }
}

/// The bits of the value sets that are not numbers; empty if none is a number.
fn mask_of(all: &[Set], first_set: usize, length: usize) -> Box<[u8]> {
    if all.iter().all(|set| set.in_blocks || set.count == 0) {
        return Box::default();
    }
    let mut mask = vec![u8::MAX; length];
    for set in all.iter().filter(|set| !set.in_blocks) {
        let lanes = mask[set.lanes - first_set..set.end() - first_set].as_chunks_mut::<8>().0;
        lanes.iter_mut().for_each(|lane| lane[4..].fill(0));
    }
    mask.into()
}

impl Copies {
    fn is_continued_by(&self, next: &Copies) -> bool {
        self.kind == next.kind
            && self.from.is_continued_by(&next.from)
            && self.to + self.from.count * self.kind.width() == next.to
    }

    /// Copies the numbers into their lanes. False if a block has another head.
    fn run(&self, bytes: &[u8], lanes: &mut [u8]) -> bool {
        let Run { start, count, head, stride } = self.from;
        let from = bytes.get(start..start + count * stride);
        let to = lanes.get_mut(self.to..self.to + count * self.kind.width());
        let (Some(from), Some(to)) = (from, to) else { return false };
        let mut wrong = 0;
        let head = u32::from_ne_bytes(head);
        match self.kind {
            Kind::InPlace => {
                let to = to.as_chunks_mut::<4>().0;
                for ([_, _, _, _, data @ ..], to) in from.as_chunks::<8>().0.iter().zip(to) {
                    *to = u32::from_be_bytes(*data).to_ne_bytes();
                }
            }
            Kind::Of4 => {
                let to = to.as_chunks_mut::<4>().0;
                for ([a, b, c, d, data @ ..], to) in from.as_chunks::<8>().0.iter().zip(to) {
                    wrong |= u32::from_ne_bytes([*a, *b, *c, *d]) ^ head;
                    *to = u32::from_be_bytes(*data).to_ne_bytes();
                }
            }
            Kind::Of8 => {
                let to = to.as_chunks_mut::<8>().0;
                for ([a, b, c, d, data @ ..], to) in from.as_chunks::<12>().0.iter().zip(to) {
                    wrong |= u32::from_ne_bytes([*a, *b, *c, *d]) ^ head;
                    *to = u64::from_be_bytes(*data).to_ne_bytes();
                }
            }
        }
        wrong == 0
    }
}

impl Run {
    fn is_continued_by(&self, next: &Run) -> bool {
        let Run { start, count, head, stride } = *self;
        (head, stride) == (next.head, next.stride) && start + count * stride == next.start
    }

    /// True if all blocks have their heads.
    fn has_heads(&self, bytes: &[u8]) -> bool {
        let Run { start, count, head, stride } = *self;
        let Some(blocks) = bytes.get(start..start + count * stride) else { return false };
        let head = u32::from_ne_bytes(head);
        match stride {
            12 => {
                let wrong =
                    |[a, b, c, d, ..]: &[u8; 12]| u32::from_ne_bytes([*a, *b, *c, *d]) ^ head;
                blocks.as_chunks().0.iter().map(wrong).fold(0, |all, one| all | one) == 0
            }
            _ => blocks
                .chunks_exact(stride)
                .all(|block| block.first_chunk() == Some(&head.to_ne_bytes())),
        }
    }
}

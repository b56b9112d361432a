//! Comparisons of texts, one by one: 1 where they hold, else 0.

use super::{NodeValue, Surroundings};
use crate::eval::decode::unpack_range;
use crate::kernel::interp::Lanes;
use crate::model::PmStatus;
use crate::pattern::Pattern;
use crate::program::Status;

/// Writes for each instance of `out` whether two texts are equal.
pub(super) fn equal(
    around: &Surroundings<'_>,
    [left, right]: [Lanes<'_>; 2],
    negated: bool,
    out: &mut NodeValue,
) {
    let text = |lanes: Lanes<'_>, at: usize| match lanes {
        Lanes::Single(bits) => around.text(bits),
        Lanes::Column(bits) => around.text(bits[at]),
    };
    let equal = |at: usize| u64::from((text(left, at) == text(right, at)) != negated);
    out.lanes.extend((0..out.ids.len()).map(equal));
}

/// Writes for each text whether it is a given one.
pub(super) fn is(
    around: &Surroundings<'_>,
    from: &NodeValue,
    text: &str,
    negated: bool,
    out: &mut NodeValue,
) -> Status {
    verdicts(from, |bits| (around.text(bits) == text.as_bytes()) != negated, out)
}

/// Writes for each text whether a pattern occurs in it. Fails if a search would
/// be too long.
pub(super) fn matches(
    around: &Surroundings<'_>,
    from: &NodeValue,
    pattern: &Pattern,
    negated: bool,
    out: &mut NodeValue,
) -> Status {
    let mut takes_too_long = false;
    let matches = |bits: u64| {
        let is_match = pattern.is_match(around.text(bits));
        takes_too_long |= is_match.is_err();
        is_match.unwrap_or(false) != negated
    };
    match verdicts(from, matches, out) {
        Status::Values if takes_too_long => Status::Failed(PmStatus::BADDERIVE),
        status => status,
    }
}

/// Writes one verdict for each value.
fn verdicts(from: &NodeValue, mut verdict: impl FnMut(u64) -> bool, out: &mut NodeValue) -> Status {
    out.ids.extend_from_slice(&from.ids);
    out.lanes.extend(from.lanes.iter().map(|bits| u64::from(verdict(*bits))));
    from.status
}

impl Surroundings<'_> {
    /// The text that a lane refers to.
    fn text(&self, bits: u64) -> &[u8] {
        self.blobs.get(unpack_range(bits)).unwrap_or_default()
    }
}

//! Maps operands, aggregates and groupings of the old definitions to positions in the new
//! ones, when definitions over the fleet are reloaded.

use std::hash::Hash;

use pmderive_runtime::position::{Per, Position};
use rustc_hash::FxHashMap;

use super::aggregate::{AggregateId, GroupingId};
use super::definitions::FleetDefinitions;
use super::operand::OperandId;

/// Map from each part of the new definitions to its position in the old ones; `None` for a new
/// part.
#[derive(Debug)]
pub struct CarriedPositions {
    /// Operands.
    pub operands: Per<OperandId, Option<OperandId>>,
    /// Aggregates.
    pub aggregates: Per<AggregateId, Option<AggregateId>>,
    /// Labels of a `by`.
    pub groupings: Per<GroupingId, Option<GroupingId>>,
}

impl CarriedPositions {
    /// Compares old definitions with new ones.
    pub fn between(before: &FleetDefinitions, after: &FleetDefinitions) -> CarriedPositions {
        fn operands(all: &FleetDefinitions) -> impl Iterator<Item = (&str, bool)> {
            all.operands.iter().map(|one| (&*one.name, one.computed.is_some()))
        }
        fn aggregates(all: &FleetDefinitions) -> impl Iterator<Item = &str> {
            all.aggregates.iter().map(|one| &*one.text)
        }
        CarriedPositions {
            operands: positions(operands(before), operands(after)),
            aggregates: positions(aggregates(before), aggregates(after)),
            groupings: positions(before.groupings.iter(), after.groupings.iter()),
        }
    }
}

/// The position in `before` of each key of `after`.
fn positions<P: Position, K: Eq + Hash>(
    before: impl Iterator<Item = K>,
    after: impl Iterator<Item = K>,
) -> Per<P, Option<P>> {
    let known: FxHashMap<K, P> = before.zip((0..).map(P::at)).collect();
    after.map(|key| known.get(&key).copied()).collect()
}

/// Reorders the data of parts for the new definitions. A new part begins with the default.
pub fn carry<P: Position, T: Default>(before: Per<P, T>, from: &Per<P, Option<P>>) -> Per<P, T> {
    let mut before: Per<P, Option<T>> = before.into_iter().map(Some).collect();
    let take = |at: &Option<P>| before.get_mut((*at)?)?.take();
    from.iter().map(take).map(Option::unwrap_or_default).collect()
}

/// Numbers of things, by their position. A thing keeps its number for as long as it exists, and
/// no number is used again.
#[derive(Debug)]
pub struct StableNumbers<K> {
    things: Vec<(K, u32)>,
    next: u32,
}

impl<K> Default for StableNumbers<K> {
    fn default() -> StableNumbers<K> {
        StableNumbers { things: Vec::new(), next: 0 }
    }
}

impl<K: Eq + Hash> StableNumbers<K> {
    /// Replaces the things by these.
    pub fn follow(&mut self, things: impl Iterator<Item = K>) {
        let known: FxHashMap<K, u32> = self.things.drain(..).collect();
        for thing in things {
            let number = known.get(&thing).copied().unwrap_or_else(|| {
                // Numbers end only after four thousand million changes.
                self.next = self.next.saturating_add(1);
                self.next - 1
            });
            self.things.push((thing, number));
        }
    }

    /// The number of the thing at a position.
    pub fn number(&self, at: usize) -> Option<u32> {
        self.things.get(at).map(|(_, number)| *number)
    }

    /// The position of a number.
    pub fn position(&self, number: u32) -> Option<usize> {
        self.things.iter().position(|(_, known)| *known == number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stays_keeps_its_number_and_what_is_known_of_it() {
        let mut numbers = StableNumbers::default();
        let mut of = |things: &[&'static str]| -> Vec<Option<u32>> {
            numbers.follow(things.iter().copied());
            (0..things.len()).map(|at| numbers.number(at)).collect()
        };
        assert_eq!(of(&["a", "b", "c"]), [Some(0), Some(1), Some(2)]);
        assert_eq!(of(&["x", "c", "a"]), [Some(3), Some(2), Some(0)]);
        assert_eq!(of(&["b", "c"]), [Some(4), Some(2)]);
        let from = positions(["a", "b", "c"].iter(), ["x", "c", "a"].iter());
        assert_eq!(from, Per::from([None, Some(OperandId(2)), Some(OperandId(0))]));
        assert_eq!(carry(Per::from([1, 2, 3]), &from), Per::from([0, 3, 1]));
    }
}

//! The instances of each metric of a host's latest frame, in little memory: metrics of
//! one domain mostly have the same, and hosts that are alike have them alike.

use std::sync::{Arc, Weak};

use rustc_hash::FxHashMap;

use crate::fleet::frame::{Column, Instances};

/// The instances of the metrics of one frame.
#[derive(Debug)]
pub struct Sets {
    /// Each once.
    sets: Box<[Arc<Instances>]>,
    /// Positions in `sets`, parallel to the metrics. Hosts share it.
    of_metrics: Arc<[u32]>,
    /// Values of all metrics.
    values: usize,
}

/// Positions that hosts of a thread have in common.
#[derive(Debug, Default)]
pub struct Patterns(Vec<Weak<[u32]>>);

impl Sets {
    /// The instances of columns.
    pub fn of(columns: &[Column], patterns: &mut Patterns) -> Sets {
        let mut sets: Vec<Arc<Instances>> = Vec::new();
        let mut known: FxHashMap<usize, u32> = FxHashMap::default();
        let position = |column: &Column| {
            let address = Arc::as_ptr(&column.instances).addr();
            *known.entry(address).or_insert_with(|| {
                sets.push(Arc::clone(&column.instances));
                sets.len() as u32 - 1
            })
        };
        let of_metrics: Vec<u32> = columns.iter().map(position).collect();
        let values = columns.iter().map(|column| column.instances.ids.len()).sum();
        Sets { sets: sets.into(), of_metrics: patterns.share(of_metrics), values }
    }

    /// The instances of a metric.
    pub fn get(&self, metric: usize) -> Option<&Arc<Instances>> {
        self.sets.get(*self.of_metrics.get(metric)? as usize)
    }

    /// The instances of each metric.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Instances>> {
        self.of_metrics.iter().map(|at| &self.sets[*at as usize])
    }

    /// Values of all metrics.
    pub fn values(&self) -> usize {
        self.values
    }
}

impl Patterns {
    fn share(&mut self, positions: Vec<u32>) -> Arc<[u32]> {
        let mut alive = self.0.iter().filter_map(Weak::upgrade);
        if let Some(known) = alive.find(|known| **known == *positions) {
            return known;
        }
        let positions: Arc<[u32]> = positions.into();
        self.0.retain(|known| known.strong_count() > 0);
        self.0.push(Arc::downgrade(&positions));
        positions
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::sinks::samples::{column, named, single};

    #[test]
    fn hosts_that_are_alike_share_positions() {
        let mut patterns = Patterns::default();
        let mut sets = |names: &[&str]| {
            let disks = named(names);
            let bits = vec![1; names.len()];
            let columns = [column(&single(), &[1]), column(&disks, &bits), column(&disks, &bits)];
            let sets = Sets::of(&columns, &mut patterns);
            assert!(sets.iter().zip(&columns).all(|(one, of)| Arc::ptr_eq(one, &of.instances)));
            assert_eq!((sets.sets.len(), sets.values()), (2, 1 + 2 * names.len()));
            assert!(Arc::ptr_eq(sets.get(2).expect("a metric"), &disks));
            assert!(sets.get(3).is_none());
            sets
        };
        let (one, other) = (sets(&["a"]), sets(&["a", "b"]));
        assert!(Arc::ptr_eq(&one.of_metrics, &other.of_metrics));
        drop((one, other));
        Sets::of(&[column(&single(), &[1])], &mut patterns);
        assert_eq!(patterns.0.len(), 1, "positions of nobody are forgotten");
    }
}

//! Numbers for instances that come and go.
//!
//! A name keeps its first internal instance number for as long as the process
//! lives, even while the instance is away (`pmdaCache(3)` does the same for
//! PMDAs). The domain of the present instances is rebuilt only when the set
//! changes.

use std::collections::HashMap;
use std::sync::Arc;

use pmderive_core::model::{InstId, InstanceDomain};

/// The instances of one domain: a number for each name, and which are present.
#[derive(Debug, Default)]
pub struct Instances {
    numbers: HashMap<Box<str>, InstId>,
    names: Vec<Box<str>>,
    present: Arc<InstanceDomain>,
}

impl Instances {
    /// The number of a name: the one it had before, or the next free one.
    pub fn number(&mut self, name: &str) -> InstId {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        // More than 2^31 names do not fit into memory.
        let number = InstId::try_from(self.names.len()).unwrap_or(InstId::MAX);
        self.numbers.insert(name.into(), number);
        self.names.push(name.into());
        number
    }

    /// The name of a number that [`Instances::number`] gave.
    pub fn name(&self, number: InstId) -> Option<&str> {
        self.names.get(usize::try_from(number).ok()?).map(|name| &**name)
    }

    /// Sets the numbers that are present now, in the order of listing.
    pub fn set_present(&mut self, numbers: impl Iterator<Item = InstId> + Clone) {
        if self.present.instances().map(|(number, _)| number).eq(numbers.clone()) {
            return;
        }
        let instances =
            numbers.filter_map(|number| Some((number, self.name(number)?.into()))).collect();
        self.present = Arc::new(InstanceDomain::new(instances));
    }

    /// The instances that are present; the same `Arc` while they stay.
    pub fn domain(&self) -> &Arc<InstanceDomain> {
        &self.present
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_returning_name_gets_its_number_back() {
        let mut instances = Instances::default();
        let [a, b] = ["sda", "sdb"].map(|name| instances.number(name));
        instances.set_present([a, b].into_iter());
        let both = Arc::clone(instances.domain());
        instances.set_present([a, b].into_iter());
        assert!(Arc::ptr_eq(&both, instances.domain()));

        instances.set_present([b].into_iter());
        assert_eq!(instances.domain().instances().collect::<Vec<_>>(), [(1, "sdb")]);
        assert_eq!(instances.number("sdc"), 2);
        assert_eq!(instances.number("sda"), a);
    }
}

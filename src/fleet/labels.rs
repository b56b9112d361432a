//! Labels: names with values that tell series apart.

use std::sync::Arc;

/// Labels of one host, metric or instance, sorted by name, each name once. Clones share them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Labels(Arc<[(Box<str>, Box<str>)]>);

impl Labels {
    /// The value of a label.
    pub fn get(&self, name: &str) -> Option<&str> {
        let at = self.0.binary_search_by(|(known, _)| (**known).cmp(name)).ok()?;
        Some(&self.0[at].1)
    }

    /// Names and values, by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (&**name, &**value))
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A number for the memory of the labels: the same only for labels that share it.
    pub fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        self.0.iter().map(|(name, value)| name.len() + value.len() + 32).sum()
    }
}

/// If a name comes twice, the last value counts.
impl<N: Into<Box<str>>, V: Into<Box<str>>> FromIterator<(N, V)> for Labels {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(labels: I) -> Labels {
        let mut sorted: Vec<(Box<str>, Box<str>)> =
            labels.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        sorted.reverse();
        sorted.sort_by(|(a, _), (b, _)| a.cmp(b));
        sorted.dedup_by(|(later, _), (kept, _)| later == kept);
        Labels(sorted.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_values_the_last_counts() {
        let labels = Labels::from_iter([("rack", "a"), ("dc", "x"), ("rack", "b")]);
        assert_eq!(labels.iter().collect::<Vec<_>>(), [("dc", "x"), ("rack", "b")]);
        assert_eq!((labels.get("rack"), labels.get("host")), (Some("b"), None));
    }
}

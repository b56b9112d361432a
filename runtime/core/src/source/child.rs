//! Children of a node of a name space.

use std::collections::HashMap;

/// A direct child of a node of the name space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Child {
    /// The component that the child adds to the node's name.
    pub name: Box<str>,
    /// True for a metric, false for a node with children of its own.
    pub is_leaf: bool,
}

/// True if a name is that of a node of the name space, or of one below it. All names are
/// at or below the root, whose name is empty.
///
/// ```
/// use pmderive_core::source::is_at_or_below;
///
/// assert!(is_at_or_below("disk.dev.read", "disk.dev"));
/// assert!(!is_at_or_below("disk.device", "disk.dev"));
/// ```
pub fn is_at_or_below(name: &str, node: &str) -> bool {
    let Some(rest) = name.strip_prefix(node) else { return false };
    node.is_empty() || rest.is_empty() || rest.starts_with('.')
}

impl Child {
    /// The children of a node, from full names of metrics. Each child comes
    /// once, in the order of first appearance. A child that is both a metric
    /// and a node counts as a node. Names that begin with a point are left out.
    pub fn below<'n>(node: &str, names: impl IntoIterator<Item = &'n str>) -> Vec<Child> {
        let mut children: Vec<Child> = Vec::new();
        let mut positions: HashMap<&str, usize> = HashMap::new();
        for name in names {
            let below = match name.strip_prefix(node) {
                Some(rest) if node.is_empty() => rest,
                Some(rest) if rest.starts_with('.') => &rest[1..],
                _ => continue,
            };
            let (component, is_leaf) = match below.split_once('.') {
                Some((component, _)) => (component, false),
                None => (below, true),
            };
            // The empty name is that of the root.
            if below.len() == name.len() && component.is_empty() {
                continue;
            }
            let position = *positions.entry(component).or_insert(children.len());
            match children.get_mut(position) {
                Some(child) => child.is_leaf &= is_leaf,
                None => children.push(Child { name: component.into(), is_leaf }),
            }
        }
        children
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_are_the_next_components() {
        let names = ["a.b.c", "a.b.d", "ab.x", "a.e", "a.b", "f", ".x", "a..y", "a.", ""];
        let children = |node| {
            let children = Child::below(node, names);
            children.into_iter().map(|child| (child.name.into(), child.is_leaf)).collect()
        };
        let expect = |list: &[(&str, bool)]| -> Vec<(String, bool)> {
            list.iter().map(|(name, is_leaf)| (name.to_string(), *is_leaf)).collect()
        };
        let root: Vec<(String, bool)> = children("");
        assert_eq!(root, expect(&[("a", false), ("ab", false), ("f", true)]));
        assert_eq!(children("a"), expect(&[("b", false), ("e", true), ("", false)]));
        assert_eq!(children("a."), expect(&[("y", true)]));
        assert_eq!(children("a.b"), expect(&[("c", true), ("d", true)]));
        assert_eq!(children("f"), []);
    }
}

//! Sets of nodes that cost nothing to empty, for passes over many metrics.

use pmderive_runtime::program::NodeId;

/// A set of nodes. A node is in it if its mark is the number of the round.
#[derive(Debug, Default)]
pub struct Marks {
    marks: Vec<u32>,
    round: u32,
}

impl Marks {
    /// Empties the set, and makes room for nodes below `nodes`.
    pub fn clear(&mut self, nodes: usize) {
        if self.round == u32::MAX {
            self.marks.fill(0);
            self.round = 0;
        }
        self.round += 1;
        if self.marks.len() < nodes {
            self.marks.resize(nodes, 0);
        }
    }

    /// Adds a node; false if it was there.
    pub fn insert(&mut self, node: NodeId) -> bool {
        std::mem::replace(&mut self.marks[node.index()], self.round) != self.round
    }

    /// True if the node is there.
    pub fn contains(&self, node: NodeId) -> bool {
        self.marks[node.index()] == self.round
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_apart() {
        let mut marks = Marks::default();
        marks.clear(2);
        assert!(marks.insert(NodeId(1)) && !marks.insert(NodeId(1)));
        assert!(marks.contains(NodeId(1)) && !marks.contains(NodeId(0)));
        marks.clear(3);
        assert!((0..3).all(|node| !marks.contains(NodeId(node))));
        assert!(marks.insert(NodeId(2)));
    }

    #[test]
    fn the_number_of_rounds_begins_again() {
        let mut marks = Marks { marks: Vec::new(), round: u32::MAX - 1 };
        marks.clear(1);
        marks.insert(NodeId(0));
        marks.clear(1);
        assert!(!marks.contains(NodeId(0)));
    }
}

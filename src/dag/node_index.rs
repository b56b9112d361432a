//! An index from a node's content to the node, by hash. Only the graph stores
//! the nodes; nodes with the same hash form a chain.

use std::hash::BuildHasher;

use pmderive_runtime::program::{Node, NodeId};
use rustc_hash::{FxBuildHasher, FxHashMap};

/// An index of all nodes of a graph.
#[derive(Debug, Default)]
pub struct NodeIndex {
    /// The last node with each hash.
    last: FxHashMap<u64, NodeId>,
    /// For each node, the previous one with the same hash.
    before: Vec<Option<NodeId>>,
}

/// The position of a node.
pub enum Indexed {
    /// An equal node was there.
    Known(NodeId),
    /// The node must be added at this position.
    New(NodeId),
}

impl NodeIndex {
    /// Finds an equal node among `nodes`, which has all nodes so far, or adds a new one.
    pub fn find_or_add(&mut self, node: &Node, nodes: &[Node]) -> Indexed {
        let new = NodeId(nodes.len() as u32);
        let hash = FxBuildHasher.hash_one(node);
        let last = self.last.get(&hash).copied();
        let mut known = last;
        while let Some(id) = known {
            if nodes[id.index()] == *node {
                return Indexed::Known(id);
            }
            known = self.before[id.index()];
        }
        self.last.insert(hash, new);
        self.before.push(last);
        Indexed::New(new)
    }
}

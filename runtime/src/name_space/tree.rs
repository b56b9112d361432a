//! A name space in memory.

use std::collections::HashMap;

use pmderive_core::model::{PmStatus, Pmid};
use pmderive_core::source::Child;

use super::error::NameSpaceError;
use super::parse::Group;

/// The metrics of a file by their names, see PMNS(5).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LocalNameSpace {
    /// The root, with an empty name, comes first. Children come after their
    /// parents.
    nodes: Vec<Node>,
    by_name: HashMap<Box<str>, usize>,
    by_pmid: HashMap<Pmid, Vec<usize>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Node {
    /// Full name.
    name: Box<str>,
    /// `None` for a node that has children.
    pmid: Option<Pmid>,
    children: Vec<usize>,
    has_metrics: bool,
}

/// The kind of a name in a local name space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameKind {
    /// A metric.
    Metric(Pmid),
    /// A node with children.
    Node,
    /// A subtree that the agent of this domain fills, or a name below it.
    Dynamic {
        /// Number of the agent's domain.
        domain: u32,
        /// True for the top of the subtree.
        is_top: bool,
    },
}

impl LocalNameSpace {
    /// Builds the tree from groups.
    ///
    /// # Errors
    /// The groups do not form a single tree, or a metric has two names and
    /// duplicates are not allowed.
    pub(super) fn new(
        groups: Vec<Group>,
        with_duplicates: bool,
    ) -> Result<LocalNameSpace, NameSpaceError> {
        let mut roots = groups.iter().filter(|group| group.path == "root");
        let error = |problem: String| Err(NameSpaceError::whole(problem));
        if roots.next().is_none() {
            return error("No name space entry for \"root\"".to_owned());
        }
        if roots.next().is_some() {
            return error("Multiple name space entries for \"root\"".to_owned());
        }
        // The first of two groups with the same path joins the tree.
        let mut left: HashMap<&str, Vec<&Group>> = HashMap::new();
        for group in groups.iter().rev() {
            left.entry(&group.path).or_default().push(group);
        }
        let mut space = LocalNameSpace::default();
        space.add(None, "".into(), None);
        // Depth first, in the order of the file.
        let mut pending: Vec<(usize, &str, Option<Pmid>)> = Vec::new();
        let mut at = 0;
        let mut path = "root";
        loop {
            let Some(group) = left.get_mut(path).and_then(Vec::pop) else {
                return error(format!(
                    "Cannot find definition for non-terminal node \"{path}\" in name space"
                ));
            };
            pending.extend(group.children.iter().rev().map(|(name, pmid)| (at, &**name, *pmid)));
            let node = loop {
                let Some((parent, name, pmid)) = pending.pop() else { break None };
                let full = match &*space.nodes[parent].name {
                    "" => name.to_owned(),
                    above => format!("{above}.{name}"),
                };
                let node = space.add(Some(parent), full.into(), pmid);
                if pmid.is_none() {
                    break Some(node);
                }
            };
            let Some(node) = node else { break };
            at = node;
            path = left.get_key_value(&*space.nodes[node].name).map_or("", |(path, _)| *path);
            if path.is_empty() {
                let name = &space.nodes[node].name;
                return error(format!(
                    "Cannot find definition for non-terminal node \"{name}\" in name space"
                ));
            }
        }
        let is_left = |group: &&Group| left.get(&*group.path).is_some_and(|left| !left.is_empty());
        if let Some(group) = groups.iter().find(is_left) {
            return error(format!("Disconnected subtree (\"{}\") in name space", group.path));
        }
        for node in (0..space.nodes.len()).rev() {
            let children = std::mem::take(&mut space.nodes[node].children);
            let is_kept = |child: &usize| space.nodes[*child].has_metrics;
            let children: Vec<usize> = children.into_iter().filter(is_kept).collect();
            let has_metrics = space.nodes[node].pmid.is_some() || !children.is_empty();
            space.nodes[node].has_metrics = has_metrics;
            space.nodes[node].children = children;
        }
        if !with_duplicates {
            space.refuse_duplicates()?;
        }
        Ok(space)
    }

    fn add(&mut self, parent: Option<usize>, name: Box<str>, pmid: Option<Pmid>) -> usize {
        let node = self.nodes.len();
        self.by_name.insert(name.clone(), node);
        if let Some(pmid) = pmid {
            self.by_pmid.entry(pmid).or_default().push(node);
        }
        self.nodes.push(Node { name, pmid, children: Vec::new(), has_metrics: false });
        if let Some(parent) = parent {
            self.nodes[parent].children.push(node);
        }
        node
    }

    fn refuse_duplicates(&self) -> Result<(), NameSpaceError> {
        let mut nodes = self.nodes.iter().filter_map(|node| Some((node, node.pmid?)));
        let repeated = nodes.find_map(|(node, pmid)| {
            // Several subtrees may belong to one agent.
            if is_dynamic(pmid) {
                return None;
            }
            let first = *self.by_pmid.get(&pmid)?.first()?;
            let first = &self.nodes[first].name;
            (*first != node.name).then_some((pmid, &node.name, first))
        });
        let Some((pmid, second, first)) = repeated else { return Ok(()) };
        Err(NameSpaceError::whole(format!(
            "Duplicate metric id ({pmid}) in name space for metrics \"{second}\" and \"{first}\"\n"
        )))
    }

    /// The kind of a name. `None` if the name space does not have it.
    pub fn find(&self, name: &str) -> Option<NameKind> {
        let place = |node: &Node, is_top| match node.pmid {
            Some(pmid) if is_dynamic(pmid) => {
                Some(NameKind::Dynamic { domain: pmid.cluster(), is_top })
            }
            Some(pmid) => is_top.then_some(NameKind::Metric(pmid)),
            None => is_top.then_some(NameKind::Node),
        };
        if let Some(node) = self.by_name.get(name) {
            let node = &self.nodes[*node];
            return if node.has_metrics || name.is_empty() { place(node, true) } else { None };
        }
        // The top of a dynamic subtree may be several components above.
        let mut above = name;
        while let Some((rest, _)) = above.rsplit_once('.') {
            if let Some(node) = self.by_name.get(rest) {
                return place(&self.nodes[*node], false);
            }
            above = rest;
        }
        None
    }

    /// Identifier of a metric (`pmLookupName(3)`). The top of a dynamic subtree
    /// has an identifier too. Names below it must be looked up at the agent.
    ///
    /// # Errors
    /// `PM_ERR_NONLEAF` for a node, `PM_ERR_NAME` for an unknown name.
    pub fn lookup(&self, name: &str) -> Result<Pmid, PmStatus> {
        match self.find(name) {
            Some(NameKind::Metric(pmid)) => Ok(pmid),
            Some(NameKind::Dynamic { domain, is_top: true }) => Ok(subtree_of(domain)),
            Some(NameKind::Node) if !name.is_empty() => Err(PmStatus::NONLEAF),
            _ => Err(PmStatus::NAME),
        }
    }

    /// The direct children of a node, in the order of the file
    /// (`pmGetChildrenStatus(3)`). The empty name is the root. A metric has no
    /// children.
    ///
    /// # Errors
    /// `PM_ERR_NAME` for an unknown name.
    pub fn children(&self, node: &str) -> Result<Vec<Child>, PmStatus> {
        let node = self.node(node)?;
        let child = |child: &usize| {
            let child = &self.nodes[*child];
            let name = child.name.rsplit('.').next().unwrap_or_default();
            Child { name: name.into(), is_leaf: child.pmid.is_some() }
        };
        Ok(node.children.iter().map(child).collect())
    }

    /// Names of all metrics at or below a node, in the order of the file
    /// (`pmTraversePMNS(3)`). The empty name is the root.
    ///
    /// # Errors
    /// `PM_ERR_NAME` for an unknown name.
    pub fn traverse(&self, prefix: &str) -> Result<Vec<&str>, PmStatus> {
        let mut names = Vec::new();
        let mut pending = vec![self.node(prefix)?];
        while let Some(node) = pending.pop() {
            if node.pmid.is_some() {
                names.push(&*node.name);
            }
            pending.extend(node.children.iter().rev().map(|child| &self.nodes[*child]));
        }
        Ok(names)
    }

    /// All names of a metric, at least one (`pmNameAll(3)`).
    ///
    /// # Errors
    /// `PM_ERR_PMID` for a metric without a name.
    pub fn names_of(&self, pmid: Pmid) -> Result<Vec<Box<str>>, PmStatus> {
        let nodes = self.by_pmid.get(&pmid).ok_or(PmStatus::PMID)?;
        Ok(nodes.iter().map(|node| self.nodes[*node].name.clone()).collect())
    }

    fn node(&self, name: &str) -> Result<&Node, PmStatus> {
        let node = self.by_name.get(name).map(|node| &self.nodes[*node]);
        node.filter(|node| node.has_metrics || name.is_empty()).ok_or(PmStatus::NAME)
    }
}

/// True for the identifier of a subtree that an agent fills.
pub(super) const fn is_dynamic(pmid: Pmid) -> bool {
    pmid.domain() == 511 && pmid.item() == 0
}

/// The identifier of the top of a subtree that the agent of a domain fills.
pub(super) fn subtree_of(domain: u32) -> Pmid {
    Pmid::new(511, domain, 0)
}

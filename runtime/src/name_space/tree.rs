//! A name space in memory.

use std::collections::HashMap;

use pmderive_core::memory::MemoryMetadata;
use pmderive_core::model::{PmStatus, Pmid};
use pmderive_core::source::Child;

use super::error::NameSpaceError;
use super::parse::Group;

/// The metrics of a file by their names, see PMNS(5).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LocalNameSpace {
    /// The names of the metrics in the order of the file, and nothing else.
    names: MemoryMetadata,
    by_pmid: HashMap<Pmid, Vec<Box<str>>>,
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
    /// Reads the tree that groups form.
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
        // Depth first, in the order of the file.
        let mut pending: Vec<(String, Option<Pmid>)> = vec![(String::new(), None)];
        while let Some((name, pmid)) = pending.pop() {
            if let Some(pmid) = pmid {
                space.by_pmid.entry(pmid).or_default().push(name.as_str().into());
                space.names.add_name(name, pmid);
                continue;
            }
            let (path, above) = match &*name {
                "" => ("root", String::new()),
                path => (path, format!("{path}.")),
            };
            let Some(group) = left.get_mut(path).and_then(Vec::pop) else {
                return error(format!(
                    "Cannot find definition for non-terminal node \"{path}\" in name space"
                ));
            };
            let children = group.children.iter().rev();
            pending.extend(children.map(|(child, pmid)| (format!("{above}{child}"), *pmid)));
        }
        let is_left = |group: &&Group| left.get(&*group.path).is_some_and(|left| !left.is_empty());
        if let Some(group) = groups.iter().find(is_left) {
            return error(format!("Disconnected subtree (\"{}\") in name space", group.path));
        }
        if !with_duplicates {
            space.refuse_duplicates()?;
        }
        Ok(space)
    }

    fn refuse_duplicates(&self) -> Result<(), NameSpaceError> {
        for second in self.traverse("").unwrap_or_default() {
            // Several subtrees may belong to one agent.
            let Some(NameKind::Metric(pmid)) = self.find(second) else { continue };
            if let Some([first, _, ..]) = self.by_pmid.get(&pmid).map(Vec::as_slice)
                && **first != *second
            {
                return Err(NameSpaceError::whole(format!(
                    "Duplicate metric id ({pmid}) in name space for metrics \"{second}\" and \
                     \"{first}\"\n"
                )));
            }
        }
        Ok(())
    }

    /// The kind of a name. `None` if the name space does not have it.
    pub fn find(&self, name: &str) -> Option<NameKind> {
        let dynamic = |top: Pmid, is_top| {
            is_dynamic(top).then_some(NameKind::Dynamic { domain: top.cluster(), is_top })
        };
        match self.names.pmid_of(name) {
            Ok(pmid) => dynamic(pmid, true).or(Some(NameKind::Metric(pmid))),
            Err(status) if status == PmStatus::NONLEAF || name.is_empty() => Some(NameKind::Node),
            Err(_) => {
                // The top of a dynamic subtree may be several components above.
                let mut above = name.match_indices('.').map(|(end, _)| &name[..end]);
                dynamic(above.find_map(|node| self.names.pmid_of(node).ok())?, false)
            }
        }
    }

    /// Identifier of a metric (`pmLookupName(3)`). The top of a dynamic subtree
    /// has an identifier too. Names below it must be looked up at the agent.
    ///
    /// # Errors
    /// `PM_ERR_NONLEAF` for a node, `PM_ERR_NAME` for an unknown name.
    pub fn lookup(&self, name: &str) -> Result<Pmid, PmStatus> {
        if name.is_empty() { Err(PmStatus::NAME) } else { self.names.pmid_of(name) }
    }

    /// The direct children of a node, in the order of the file
    /// (`pmGetChildrenStatus(3)`). The empty name is the root. A metric has no
    /// children.
    ///
    /// # Errors
    /// `PM_ERR_NAME` for an unknown name.
    pub fn children(&self, node: &str) -> Result<Vec<Child>, PmStatus> {
        Ok(Child::below(node, self.traverse(node)?))
    }

    /// Names of all metrics at or below a node, in the order of the file
    /// (`pmTraversePMNS(3)`). The empty name is the root.
    ///
    /// # Errors
    /// `PM_ERR_NAME` for an unknown name.
    pub fn traverse(&self, prefix: &str) -> Result<Vec<&str>, PmStatus> {
        self.names.traverse(prefix)
    }

    /// All names of a metric, at least one (`pmNameAll(3)`).
    ///
    /// # Errors
    /// `PM_ERR_PMID` for a metric without a name.
    pub fn names_of(&self, pmid: Pmid) -> Result<Vec<Box<str>>, PmStatus> {
        self.by_pmid.get(&pmid).cloned().ok_or(PmStatus::PMID)
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

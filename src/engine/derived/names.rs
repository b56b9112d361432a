//! The name space, descriptors, texts and labels of a source together with
//! those of derived metrics.
//!
//! The source's own come first and count where both have a name. Instance
//! domains of derived metrics are those of their operands, so questions about
//! domains are the source's alone.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use pmderive_runtime::model::{
    InDom, InstId, InstanceDomain, LabelLevel, LabelSet, MetricDesc, PmStatus, Pmid, TextKind,
    TextSubject,
};
use pmderive_runtime::source::{
    Answers, Child, FetchSource, Freshness, MetadataSource, SourceError,
};

use super::{DerivedContext, Outcome, identifiers};
use crate::dialect::Dialect;

/// Answers questions in their order: what is not in `own` the source answers,
/// all together.
fn answer<Q: Copy, T>(
    questions: &[Q],
    mut own: Vec<Option<Result<T, PmStatus>>>,
    source: impl FnOnce(&[Q]) -> Answers<T>,
) -> Answers<T> {
    let open = questions.iter().zip(&own).filter(|(_, answer)| answer.is_none());
    let open: Vec<Q> = open.map(|(question, _)| *question).collect();
    if !open.is_empty() {
        let places = own.iter_mut().filter(|answer| answer.is_none());
        for (place, answer) in places.zip(source(&open)?) {
            *place = Some(answer);
        }
    }
    // A source that leaves a question open has nothing on it.
    Ok(own.into_iter().map(|answer| answer.unwrap_or(Err(PmStatus::PMID))).collect())
}

impl<S: FetchSource> DerivedContext<S> {
    /// The derived metric of a name, whether it can be used or not.
    fn derived(&self, name: &str) -> Option<Pmid> {
        let registry = &self.scope.registry;
        match registry.get(name) {
            Some(definition) => definition.pmid,
            None => {
                let mut anonymous = registry.anonymous();
                anonymous.find(|(_, one)| one.name == name).map(|(pmid, _)| pmid)
            }
        }
    }

    /// Derived metrics at or below a node, in the order of registration.
    fn derived_below(&self, node: &str) -> Vec<(Pmid, Box<str>)> {
        let is_below = |name: &str| match name.strip_prefix(node) {
            Some(rest) => node.is_empty() || rest.is_empty() || rest.starts_with('.'),
            None => false,
        };
        let registry = &self.scope.registry;
        let named = registry.beginning_with(node).iter();
        let named = named.filter_map(|one| Some((one.pmid?, one.name.clone())));
        let anonymous = registry.anonymous().map(|(pmid, one)| (pmid, Box::from(one.name)));
        let mut below: Vec<(Pmid, Box<str>)> =
            named.chain(anonymous).filter(|(_, name)| is_below(name)).collect();
        below.sort_unstable_by_key(|(pmid, _)| identifiers::order(*pmid));
        below
    }

    /// True if names of derived metrics begin with that of a node and a point.
    pub(crate) fn has_derived_below(&self, node: &str) -> bool {
        self.derived_below(node).iter().any(|(_, name)| name.len() > node.len())
    }

    /// True if a node that has children is to be listed as a metric, too. Of a
    /// metric of the source libpcp lists only what derived metrics add below
    /// it; on a derived one that was registered behind those below it, it aborts.
    pub(crate) fn is_metric_besides(&mut self, node: &str) -> Result<bool, SourceError> {
        if node.is_empty() {
            return Ok(false);
        }
        let mut here: Vec<(Pmid, Box<str>)> =
            self.derived(node).map(|pmid| (pmid, node.into())).into_iter().collect();
        self.drop_unusable(&mut here);
        match self.dialect() {
            _ if !here.is_empty() => Ok(true),
            Dialect::Pcp6_0 | Dialect::Pcp7_2 => Ok(false),
            Dialect::Fixed => {
                Ok(self.context.source.lookup_names(&[node])?.iter().any(Result::is_ok))
            }
        }
    }

    /// Takes those out that cannot be used.
    fn keep_usable(&mut self, below: &mut Vec<(Pmid, Box<str>)>) -> Result<(), SourceError> {
        self.bind(below.iter().map(|(pmid, _)| *pmid))?;
        self.drop_unusable(below);
        Ok(())
    }

    /// Takes those out of which it is known that they cannot be used.
    fn drop_unusable(&self, below: &mut Vec<(Pmid, Box<str>)>) {
        below
            .retain(|(pmid, _)| matches!(self.outcome(*pmid), None | Some(Outcome::Usable { .. })));
    }

    /// Name of a derived metric by which it can be found.
    fn name_of_derived(&self, pmid: Pmid) -> Option<Box<str>> {
        let registry = &self.scope.registry;
        let Some(definition) = registry.by_pmid(pmid) else {
            let mut anonymous = registry.anonymous();
            return anonymous.find(|(known, _)| *known == pmid).map(|(_, one)| one.name.into());
        };
        let is_found = registry.get(&definition.name).is_some_and(|one| one.pmid == Some(pmid));
        let is_hidden = matches!(self.outcome(pmid), Some(Outcome::Hidden(_)));
        (is_found && !is_hidden).then(|| definition.name.clone())
    }

    fn text_of_derived(&self, pmid: Pmid, kind: TextKind) -> Result<Box<str>, PmStatus> {
        let registry = &self.scope.registry;
        if let Some((_, one)) = registry.anonymous().find(|(known, _)| *known == pmid) {
            return Ok(match kind {
                TextKind::OneLine => one.one_line.into(),
                TextKind::Help => one.help.into(),
            });
        }
        if registry.by_pmid(pmid).is_none() {
            return Err(PmStatus::PMID);
        }
        let text = registry.text(pmid, kind).or_else(|| registry.text(pmid, TextKind::OneLine));
        text.map(Box::from).ok_or(PmStatus::TEXT)
    }

    /// Labels of a level that derived metrics have to themselves: there are none.
    fn labels_of_derived(&self, level: LabelLevel) -> Option<Result<Vec<LabelSet>, PmStatus>> {
        let is_derived = match level {
            LabelLevel::Cluster(pmid) | LabelLevel::Item(pmid) => pmid.is_derived(),
            LabelLevel::Context
            | LabelLevel::Domain(_)
            | LabelLevel::InDom(_)
            | LabelLevel::Instances(_) => false,
        };
        let none = match self.dialect() {
            Dialect::Fixed => Ok(Vec::new()),
            Dialect::Pcp6_0 | Dialect::Pcp7_2 => Err(PmStatus::PMID),
        };
        is_derived.then_some(none)
    }
}

impl<S: FetchSource> MetadataSource for DerivedContext<S> {
    /// A derived metric is found by its name even if it cannot be used.
    fn lookup_names(&mut self, names: &[&str]) -> Result<Vec<Result<Pmid, PmStatus>>, SourceError> {
        self.refresh();
        let derived: Vec<Option<Pmid>> = names.iter().map(|name| self.derived(name)).collect();
        // Of those that were bound it is known that the source has no such name.
        let is_known = |pmid: &Pmid| {
            matches!(self.outcome(*pmid), Some(Outcome::Usable { .. } | Outcome::Unusable(_)))
        };
        let known = derived.iter().map(|pmid| pmid.filter(is_known).map(Ok)).collect();
        let found = answer(names, known, |open| self.context.source.lookup_names(open))?;
        let found = found.into_iter().zip(derived);
        Ok(found.map(|(found, derived)| found.or_else(|status| derived.ok_or(status))).collect())
    }

    /// A derived metric that cannot be used gives `PM_ERR_BADDERIVE`.
    fn lookup_descs(
        &mut self,
        pmids: &[Pmid],
    ) -> Result<Vec<Result<MetricDesc, PmStatus>>, SourceError> {
        self.refresh();
        self.bind(pmids.iter().copied().filter(|pmid| pmid.is_derived()))?;
        let derived = |pmid: &Pmid| pmid.is_derived().then(|| self.desc(*pmid));
        let own = pmids.iter().map(derived).collect();
        answer(pmids, own, |open| self.context.source.lookup_descs(open))
    }

    fn instance_domain(
        &mut self,
        indom: InDom,
        freshness: Freshness,
    ) -> Result<Result<Arc<InstanceDomain>, PmStatus>, SourceError> {
        self.context.source.instance_domain(indom, freshness)
    }

    fn instance_domain_of_each(
        &mut self,
        indoms: &[InDom],
        freshness: Freshness,
    ) -> Answers<Arc<InstanceDomain>> {
        self.context.source.instance_domain_of_each(indoms, freshness)
    }

    fn known_instances(
        &mut self,
        indom: InDom,
    ) -> Result<Result<Arc<InstanceDomain>, PmStatus>, SourceError> {
        self.context.source.known_instances(indom)
    }

    fn names_at_other_times(
        &mut self,
        indom: InDom,
        instances: &[InstId],
    ) -> Result<Vec<(InstId, Box<str>)>, SourceError> {
        self.context.source.names_at_other_times(indom, instances)
    }

    fn lookup_instance(
        &mut self,
        indom: InDom,
        name: &str,
    ) -> Result<Result<InstId, PmStatus>, SourceError> {
        self.source().lookup_instance(indom, name)
    }

    fn instance_name(
        &mut self,
        indom: InDom,
        instance: InstId,
    ) -> Result<Result<Box<str>, PmStatus>, SourceError> {
        self.source().instance_name(indom, instance)
    }

    /// Derived metrics come after those of the source, in the order of
    /// registration; those that cannot be used are left out.
    fn traverse(&mut self, prefix: &str) -> Result<Vec<String>, SourceError> {
        self.refresh();
        let mut below = self.derived_below(prefix);
        self.keep_usable(&mut below)?;
        let mut names = match self.context.source.traverse(prefix) {
            Err(SourceError::Status { .. }) if !below.is_empty() => Vec::new(),
            names => names?,
        };
        names.extend(below.into_iter().map(|(_, name)| String::from(name)));
        Ok(names)
    }

    /// Derived nodes come after those of the source. What the source calls a
    /// leaf stays one, although derived metrics may have names below it. To
    /// libpcp nothing is below a derived metric that was there first.
    fn children(&mut self, node: &str) -> Result<Result<Vec<Child>, PmStatus>, SourceError> {
        self.refresh();
        let mut below = self.derived_below(node);
        match self.dialect() {
            // Here version 6 looks no closer than it did before.
            Dialect::Pcp6_0 => self.drop_unusable(&mut below),
            Dialect::Pcp7_2 | Dialect::Fixed => self.keep_usable(&mut below)?,
        }
        let is_leaf = below.first().is_some_and(|(_, first)| **first == *node);
        if is_leaf && self.dialect() != Dialect::Fixed {
            below.truncate(1);
        }
        let own = self.context.source.children(node)?;
        if below.is_empty() {
            return Ok(own);
        }
        let mut children = own.unwrap_or_default();
        let known: HashSet<Box<str>> = children.iter().map(|child| child.name.clone()).collect();
        let derived = Child::below(node, below.iter().map(|(_, name)| &**name)).into_iter();
        children.extend(derived.filter(|child| !known.contains(&child.name)));
        Ok(Ok(children))
    }

    fn names_of(&mut self, pmid: Pmid) -> Result<Result<Vec<Box<str>>, PmStatus>, SourceError> {
        Ok(self.names_of_each(&[pmid])?.pop().unwrap_or(Err(PmStatus::PMID)))
    }

    fn names_of_each(&mut self, pmids: &[Pmid]) -> Answers<Vec<Box<str>>> {
        self.refresh();
        let name = |pmid: &Pmid| self.name_of_derived(*pmid).map(|name| Ok(vec![name]));
        let own = pmids.iter().map(name).collect();
        answer(pmids, own, |open| self.context.source.names_of_each(open))
    }

    fn text(
        &mut self,
        of: TextSubject,
        kind: TextKind,
    ) -> Result<Result<Box<str>, PmStatus>, SourceError> {
        Ok(self.text_of_each(&[of], kind)?.pop().unwrap_or(Err(PmStatus::TEXT)))
    }

    fn text_of_each(&mut self, subjects: &[TextSubject], kind: TextKind) -> Answers<Box<str>> {
        self.refresh();
        let text = |of: &TextSubject| match of {
            TextSubject::Metric(pmid) if pmid.is_derived() => {
                Some(self.text_of_derived(*pmid, kind))
            }
            TextSubject::Metric(_) | TextSubject::Domain(_) => None,
        };
        let own = subjects.iter().map(text).collect();
        answer(subjects, own, |open| self.context.source.text_of_each(open, kind))
    }

    /// A derived metric has the labels of its context and its instances, and
    /// none to itself.
    fn labels(
        &mut self,
        level: LabelLevel,
    ) -> Result<Result<Vec<LabelSet>, PmStatus>, SourceError> {
        Ok(self.labels_of_each(&[level])?.pop().unwrap_or(Err(PmStatus::NOLABELS)))
    }

    fn labels_of_each(&mut self, levels: &[LabelLevel]) -> Answers<Vec<LabelSet>> {
        let own = levels.iter().map(|level| self.labels_of_derived(*level)).collect();
        let mut all = answer(levels, own, |open| self.context.source.labels_of_each(open))?;
        if self.dialect() == Dialect::Fixed {
            // The domain of derived metrics is no agent's, and has no labels either.
            let is_own = |level: &LabelLevel| *level == LabelLevel::Domain(identifiers::DOMAIN);
            let failed = levels.iter().zip(&mut all).filter(|(level, _)| is_own(level));
            failed
                .filter(|(_, answer)| answer.is_err())
                .for_each(|(_, answer)| *answer = Ok(vec![]));
        }
        Ok(all)
    }

    fn name(&self) -> String {
        self.context.source.name()
    }

    fn host_name(&mut self) -> Result<String, SourceError> {
        self.source().host_name()
    }

    fn time_zone(&mut self) -> Result<Option<String>, SourceError> {
        self.source().time_zone()
    }

    /// Changes with the source's metadata and with the definitions.
    fn metadata_epoch(&self) -> u64 {
        let definitions = self.shared.version() + self.member.version.load(Ordering::Acquire);
        self.context.source.metadata_epoch() + definitions
    }
}

//! The name space, descriptors, texts and labels of a source together with
//! those of derived metrics.
//!
//! The source's own names come first and take precedence. Instance domains of
//! derived metrics are those of their operands, so the source alone answers
//! questions about domains.

use std::collections::HashSet;
use std::sync::atomic::Ordering;

use pmderive_runtime::model::{LabelLevel, PmStatus, Pmid, TextKind, TextSubject};
use pmderive_runtime::source::{
    Answer, Child, Fact, FetchSource, MetadataSource, Question, SourceError, is_at_or_below,
};

use super::Session;
use super::binding::Outcome;
use crate::dialect::Dialect;
use crate::engine::identifiers;

impl<S: FetchSource> Session<S> {
    /// The derived metric with a name, even if it cannot be used.
    fn derived(&self, name: &str) -> Option<Pmid> {
        let registry = &self.scope.registry;
        let anonymous = || registry.anonymous().find(|(_, one)| one.name == name);
        registry.get(name).map_or_else(|| Some(anonymous()?.0), |definition| definition.pmid)
    }

    /// Derived metrics at or below a node, in the order of registration.
    fn derived_below(&self, node: &str) -> Vec<(Pmid, Box<str>)> {
        let registry = &self.scope.registry;
        let named = registry.beginning_with(node).iter();
        let named = named.filter_map(|one| Some((one.pmid?, &*one.name)));
        let anonymous = registry.anonymous().map(|(pmid, one)| (pmid, one.name));
        let below = named.chain(anonymous).filter(|(_, name)| is_at_or_below(name, node));
        let mut below: Vec<(Pmid, Box<str>)> =
            below.map(|(pmid, name)| (pmid, name.into())).collect();
        below.sort_unstable_by_key(|(pmid, _)| identifiers::order(*pmid));
        below
    }

    /// True if derived metrics have names that begin with the node's name and a
    /// dot.
    pub fn has_derived_below(&self, node: &str) -> bool {
        self.derived_below(node).iter().any(|(_, name)| name.len() > node.len())
    }

    /// True if a node with children must also be listed as a metric. For a
    /// metric of the source, libpcp lists only the derived metrics below it.
    /// For a derived metric that was registered after those below it, libpcp
    /// aborts.
    ///
    /// # Errors
    /// The source failed.
    pub fn is_metric_besides(&mut self, node: &str) -> Result<bool, SourceError> {
        if node.is_empty() {
            return Ok(false);
        }
        let mut here: Vec<(Pmid, Box<str>)> =
            self.derived(node).map(|pmid| (pmid, node.into())).into_iter().collect();
        self.drop_unusable(&mut here);
        match self.dialect() {
            _ if !here.is_empty() => Ok(true),
            Dialect::Pcp6_0 | Dialect::Pcp7_2 => Ok(false),
            Dialect::Fixed => Ok(self.source.lookup_names(&[node])?.iter().any(Result::is_ok)),
        }
    }

    /// Removes metrics that are known to be unusable.
    fn drop_unusable(&self, below: &mut Vec<(Pmid, Box<str>)>) {
        below
            .retain(|(pmid, _)| matches!(self.outcome(*pmid), None | Some(Outcome::Usable { .. })));
    }

    /// The name by which a derived metric can be found.
    fn name_of_derived(&self, pmid: Pmid) -> Option<Box<str>> {
        let registry = &self.scope.registry;
        let Some(definition) = registry.by_pmid(pmid) else {
            return registry.anonymous_of(pmid).map(|one| one.name.into());
        };
        let is_found = registry.get(&definition.name).is_some_and(|one| one.pmid == Some(pmid));
        let is_hidden = matches!(self.outcome(pmid), Some(Outcome::Hidden(_)));
        (is_found && !is_hidden).then(|| Box::from(&*definition.name))
    }

    fn text_of_derived(&self, pmid: Pmid, kind: TextKind) -> Result<Box<str>, PmStatus> {
        let registry = &self.scope.registry;
        if let Some(one) = registry.anonymous_of(pmid) {
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
}

/// True if derived metrics can change the answer.
fn is_about_metrics(question: &Question<'_>) -> bool {
    let has_own = matches!(question, Question::Desc(_) | Question::Text(..) | Question::Labels(_));
    has_own || question.is_about_names()
}

/// The answer of the derived metrics to a question.
enum DerivedAnswer {
    /// The complete answer.
    Whole(Answer),
    /// The answer if the source has no metric with that name.
    Otherwise(Pmid),
    /// Names of derived metrics, to add after those of the source. There may be none.
    Besides(Vec<(Pmid, Box<str>)>),
}

impl<S: FetchSource> Session<S> {
    /// Binds the derived metrics of the questions, if the answers depend on
    /// whether they can be used.
    fn bind_for(&mut self, questions: &[Question<'_>]) -> Result<(), SourceError> {
        // Version 6 does not check the children of a node for unusable ones.
        let looks_closer = self.dialect() != Dialect::Pcp6_0;
        let mut touched = Vec::new();
        for question in questions {
            match question {
                Question::Desc(pmid) if pmid.is_derived() => touched.push(*pmid),
                Question::MetricsBelow(node) => touched.extend(self.pmids_below(node)),
                Question::Children(node) if looks_closer => touched.extend(self.pmids_below(node)),
                _ => {}
            }
        }
        self.bind(touched)
    }

    fn pmids_below(&self, node: &str) -> Vec<Pmid> {
        self.derived_below(node).into_iter().map(|(pmid, _)| pmid).collect()
    }

    fn own(&self, question: Question<'_>) -> DerivedAnswer {
        match question {
            Question::Pmid(name) | Question::PmidIfAny(name) => match self.derived(name) {
                // If the metric is bound, it is known that the source lacks the
                // name.
                Some(pmid) => match self.outcome(pmid) {
                    Some(Outcome::Usable { .. } | Outcome::Unusable(_)) => {
                        DerivedAnswer::Whole(Ok(Fact::Pmid(pmid)))
                    }
                    Some(Outcome::Hidden(_)) | None => DerivedAnswer::Otherwise(pmid),
                },
                None => DerivedAnswer::Besides(Vec::new()),
            },
            Question::Desc(pmid) if pmid.is_derived() => {
                DerivedAnswer::Whole(self.desc(pmid).map(Fact::Desc))
            }
            Question::MetricsBelow(node) | Question::Children(node) => {
                let mut below = self.derived_below(node);
                self.drop_unusable(&mut below);
                // In libpcp, nothing is below a derived metric that was
                // registered first.
                let is_leaf = below.first().is_some_and(|(_, first)| **first == *node);
                let lists_children = matches!(question, Question::Children(_));
                if is_leaf && lists_children && self.dialect() != Dialect::Fixed {
                    below.truncate(1);
                }
                DerivedAnswer::Besides(below)
            }
            Question::NamesOf(pmid) if let Some(name) = self.name_of_derived(pmid) => {
                DerivedAnswer::Whole(Ok(Fact::Names(vec![name])))
            }
            Question::Text(TextSubject::Metric(pmid), kind) if pmid.is_derived() => {
                DerivedAnswer::Whole(self.text_of_derived(pmid, kind).map(Fact::Text))
            }
            // There are no labels of derived metrics alone.
            Question::Labels(LabelLevel::Cluster(pmid) | LabelLevel::Item(pmid))
                if pmid.is_derived() =>
            {
                DerivedAnswer::Whole(match self.dialect() {
                    Dialect::Fixed => Ok(Fact::Labels(Vec::new())),
                    Dialect::Pcp6_0 | Dialect::Pcp7_2 => Err(PmStatus::PMID),
                })
            }
            _ => DerivedAnswer::Besides(Vec::new()),
        }
    }

    /// Combines both answers. `found` is the source's, unless `own` is
    /// complete.
    fn answer(&self, question: Question<'_>, own: DerivedAnswer, found: Answer) -> Answer {
        // If the source is a session too, its derived metrics are left out:
        // their identifiers would be mistaken for those of this session.
        let found = found.and_then(|fact| match fact {
            Fact::Pmid(pmid) if pmid.is_derived() => Err(question.status()),
            fact => Ok(fact),
        });
        match (question, own) {
            (_, DerivedAnswer::Whole(answer)) => answer,
            (_, DerivedAnswer::Otherwise(pmid)) => found.or(Ok(Fact::Pmid(pmid))),
            (Question::MetricsBelow(_), DerivedAnswer::Besides(below)) if !below.is_empty() => {
                let mut names = match found {
                    Ok(Fact::Names(names)) => names,
                    _ => Vec::new(),
                };
                names.extend(below.into_iter().map(|(_, name)| name));
                Ok(Fact::Names(names))
            }
            // A leaf of the source stays a leaf, even if derived metrics have
            // names below it.
            (Question::Children(node), DerivedAnswer::Besides(below)) if !below.is_empty() => {
                let mut children = match found {
                    Ok(Fact::Children(children)) => children,
                    _ => Vec::new(),
                };
                let known: HashSet<Box<str>> =
                    children.iter().map(|child| child.name.clone()).collect();
                let derived = Child::below(node, below.iter().map(|(_, name)| &**name));
                let new = |child: &Child| !known.contains(&child.name);
                children.extend(derived.into_iter().filter(new));
                Ok(Fact::Children(children))
            }
            // The domain of derived metrics belongs to no agent and has no
            // labels.
            (Question::Labels(LabelLevel::Domain(identifiers::DOMAIN)), _)
                if self.dialect() == Dialect::Fixed =>
            {
                found.or_else(|_| Ok(Fact::Labels(Vec::new())))
            }
            _ => found,
        }
    }
}

/// A derived metric is found by its name even if it cannot be used. Then its
/// descriptor is `PM_ERR_BADDERIVE`, and lists of names leave it out. Derived
/// metrics come after those of the source, in the order of registration. They
/// have the labels of their context and their instances, but none of their own.
impl<S: FetchSource> MetadataSource for Session<S> {
    fn ask(
        &mut self,
        questions: &[Question<'_>],
        answers: &mut Vec<Answer>,
    ) -> Result<(), SourceError> {
        if !questions.iter().any(is_about_metrics) {
            return self.source.ask(questions, answers);
        }
        self.refresh();
        self.bind_for(questions)?;
        let own: Vec<DerivedAnswer> =
            questions.iter().map(|question| self.own(*question)).collect();
        let is_open = |own: &DerivedAnswer| !matches!(own, DerivedAnswer::Whole(_));
        let open = questions.iter().zip(&own).filter(|(_, own)| is_open(own));
        let open: Vec<Question<'_>> = open.map(|(question, _)| *question).collect();
        let mut found = Vec::with_capacity(open.len());
        if !open.is_empty() {
            self.source.ask(&open, &mut found)?;
        }
        let mut found = found.into_iter();
        for (question, own) in questions.iter().zip(own) {
            // A source that gives no answer to a question does not know one.
            let nothing = Err(question.status());
            let found = if is_open(&own) { found.next().unwrap_or(nothing) } else { nothing };
            answers.push(self.answer(*question, own, found));
        }
        Ok(())
    }

    fn name(&self) -> String {
        self.source.name()
    }

    /// Changes with the source's metadata and with the definitions.
    fn metadata_epoch(&self) -> u64 {
        let definitions = self.shared.version() + self.member.version.load(Ordering::Acquire);
        self.source.metadata_epoch() + definitions
    }
}

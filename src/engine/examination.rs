//! Checks definitions against the answers of a source: which names are
//! definitions, in which order to check them, and the results.
//!
//! The caller gives the answers, and the names to suggest for unknown ones. No source is
//! asked.

use std::collections::BTreeMap;
use std::sync::Arc;

use pmderive_runtime::model::PmStatus;
use pmderive_runtime::program::{DefinitionKey, OutputId};

use super::anonymous::is_anonymous;
use super::metric::Metric;
use super::nesting::{self, Arranged, Order};
use super::registry::{Registered, Registry};
use super::vocabulary::{Vocabulary, Words};
use crate::bind::equivalent_domains::EquivalentDomains;
use crate::bind::{DefinitionId, Desc, Mentions, Name, NameAnswer, Names};
use crate::check::typed::TypedExpr;
use crate::check::{Examined, TypedCache, examine};
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::dialect::Language;
use crate::syntax::ControlOption;

/// Definitions checked against one source: the input of [`lint`](crate::lint).
#[derive(Debug)]
pub struct Examination {
    /// Number of chosen expressions; they come first.
    chosen: usize,
    /// The meaning of the names in them.
    pub(crate) names: Names,
    /// The result for each expression: first the chosen ones in their order,
    /// then the definitions that they mention. If a metric of the source hides
    /// a definition, the definition has the values of that metric. The nodes of
    /// its expression then have no results.
    #[doc(hidden)]
    pub expressions: Vec<Examined>,
    /// Identities under which previous samples are kept, parallel to the
    /// expressions.
    keys: Vec<DefinitionKey>,
    /// Positions of the expressions, with operands first.
    order: Vec<DefinitionId>,
    /// Parallel to the expressions: true if its values are needed.
    wanted: Vec<bool>,
}

/// A checked selection of definitions.
pub(crate) struct CheckedSelection {
    /// The selected metrics, in the order of the request.
    pub(crate) metrics: Vec<Metric>,
    /// The definitions that can be used, each with the key of its previous
    /// samples. [`Metric::output`] is the output of the one at that position.
    pub(crate) typed: Vec<(DefinitionKey, TypedExpr)>,
}

/// The input of a check.
pub(super) struct Checking<'c> {
    pub registry: &'c Registry,
    pub language: Language,
    pub equivalent_domains: &'c Arc<EquivalentDomains>,
    /// The chosen definitions, and after them those that they mention.
    pub definitions: &'c [&'c Registered],
    /// Number of chosen definitions.
    pub chosen: usize,
    /// False if none of them mentions another.
    pub are_nested: bool,
    /// Names to suggest in place of unknown ones.
    pub vocabulary: &'c Vocabulary<'c>,
}

impl Checking<'_> {
    /// Checks against a source's answers about the names that the definitions mention.
    pub fn run(
        &self,
        mentions: &Mentions,
        found: &[NameAnswer],
        diagnostics: &mut Diagnostics,
    ) -> Examination {
        let mut names = self.meanings(mentions, found);
        let order = self.order(&names, diagnostics);
        let mut expressions: Vec<Examined> = Vec::new();
        expressions.resize_with(self.definitions.len(), Examined::default);
        let mistakes = self.check_each(&order, &mut names, None, |id, examined| {
            expressions[id.index()] = examined;
        });
        let wanted = match self.language.extensions {
            true => nesting::with_values(self.definitions, self.chosen, &order, &expressions),
            false => (0..self.definitions.len()).map(|at| at < self.chosen).collect(),
        };
        for (_, found) in mistakes.into_iter().filter(|(position, _)| wanted[*position]) {
            diagnostics.extend(found);
        }
        let keys = self.definitions.iter().map(|one| one.key).collect();
        let (chosen, order) = (self.chosen, order.positions);
        Examination { chosen, names, expressions, keys, order, wanted }
    }

    /// Checks definitions one by one, when none is an operand of another, as without
    /// extensions. Gives each typed expression to `take` at once, because there may be very
    /// many.
    pub fn run_each(
        &self,
        mentions: &Mentions,
        found: &[NameAnswer],
        diagnostics: &mut Diagnostics,
        mut take: impl FnMut(DefinitionKey, TypedExpr),
    ) -> Vec<Metric> {
        let mut names = self.meanings(mentions, found);
        let order = self.order(&names, diagnostics);
        let mut outputs: Vec<Option<(Desc, OutputId)>> = vec![None; self.chosen];
        let mut taken = 0..;
        let mistakes = self.check_each(
            &order,
            &mut names,
            Some(TypedCache::default()),
            |id, Examined { typed, is_whole, .. }| {
                if let Some(output) = outputs.get_mut(id.index())
                    && is_whole
                {
                    *output = taken.next().map(|output| (typed.desc(), OutputId(output)));
                    take(self.definitions[id.index()].key, typed);
                }
            },
        );
        for (_, found) in mistakes.into_iter().filter(|(position, _)| *position < self.chosen) {
            diagnostics.extend(found);
        }
        metrics(self.definitions.iter().copied(), outputs, &names)
    }

    /// The meaning of the names before anything is checked.
    fn meanings(&self, mentions: &Mentions, found: &[NameAnswer]) -> Names {
        let registry = self.registry;
        let is_derived = |name: &str| registry.get(name).is_some() || is_anonymous(name);
        let equivalent = Arc::clone(self.equivalent_domains);
        // A definition's own name that nobody mentions means something only if the source knows
        // it. A name that is left out here counts as unknown.
        let means = |(at, (_, found)): &(usize, (_, &NameAnswer))| {
            let is_unknown = **found == NameAnswer::Unknown(PmStatus::NAME);
            self.are_nested || *at >= mentions.own || !is_unknown
        };
        let names = mentions.names.iter().zip(found).enumerate().filter(means);
        let mut names =
            Names::new(names.map(|(_, one)| one), self.language.dialect, is_derived, equivalent);
        names.treat_missing_as_novalue(registry.control(ControlOption::NoValue) == 1);
        for (name, desc) in registry.anonymous_descs() {
            names.describe(name, desc);
        }
        names.refuse(self.language.extensions, |name| registry.is_refused(name));
        names
    }

    /// The order of checking; reports cycles. Without extensions no metric
    /// needs another, so a cycle is not a mistake.
    fn order(&self, names: &Names, diagnostics: &mut Diagnostics) -> Order {
        if !self.are_nested {
            return Order::of_any(self.definitions.len());
        }
        let is_definition = |name: &str| matches!(names.get(name), Name::Derived(_));
        let mut cycles = Diagnostics::default();
        let mut order = nesting::order(self.definitions, is_definition, &mut cycles);
        match self.language.extensions {
            true => diagnostics.extend(cycles),
            false => order.is_refused.fill(false),
        }
        order
    }

    /// Checks the definitions in their order; later ones know the earlier ones.
    /// Gives the results to `take`, and returns the mistakes by position. With `typed_trees`, the
    /// results are only the typed trees.
    fn check_each(
        &self,
        order: &Order,
        names: &mut Names,
        mut typed_trees: Option<TypedCache>,
        mut take: impl FnMut(DefinitionId, Examined),
    ) -> BTreeMap<usize, Diagnostics> {
        let mut mistakes = BTreeMap::new();
        for id in order.positions.iter().copied() {
            let position = id.index();
            let (one, mut found) = (self.definitions[position], Diagnostics::default());
            let examined = match names.get(&one.name) {
                Name::Metric(_) if position >= self.chosen => continue,
                Name::Metric(desc) if one.is_named => {
                    found.push(hidden(one));
                    let typed = TypedExpr::of_metric(desc);
                    Examined { typed, is_whole: true, ..Examined::default() }
                }
                _ if order.is_refused[position] => Examined::default(),
                _ => {
                    let own = one.is_named.then_some(&*one.name);
                    let words = Words { vocabulary: self.vocabulary, own };
                    let known = typed_trees
                        .as_mut()
                        .and_then(|typed_trees| typed_trees.find(&one.expr, names));
                    if let Some(typed) = known {
                        Examined { typed, is_whole: true, ..Examined::default() }
                    } else {
                        let mut examined =
                            examine(&one.expr, names, self.language, &words, &mut found);
                        if let Some(typed_trees) = &mut typed_trees
                            && examined.is_whole
                            && found.is_empty()
                        {
                            typed_trees.keep(&mut examined.typed);
                        }
                        examined
                    }
                }
            };
            if !found.is_empty() {
                if one.is_named {
                    found.name_metric(0, &one.name);
                }
                mistakes.insert(position, found);
            }
            let desc = examined.is_whole.then(|| examined.typed.desc());
            if self.language.extensions && one.is_named {
                names.define(&one.name, desc.map(|desc| (desc, id)));
            } else if let (Some(desc), Some(pmid)) = (desc, one.pmid) {
                names.describe(&one.name, desc.of_metric(pmid));
            }
            take(id, examined);
        }
        mistakes
    }
}

impl Examination {
    /// The wanted expressions without mistakes, in an order for planning.
    pub(crate) fn arranged(&self) -> Arranged {
        nesting::arrange(
            self.chosen,
            &self.keys,
            &self.order,
            &self.wanted,
            self.expressions.clone(),
        )
    }

    /// True if values of the expression at a position are needed.
    pub(crate) fn is_wanted(&self, position: usize) -> bool {
        self.wanted.get(position).copied().unwrap_or(false)
    }

    /// The chosen metrics, and the expressions to plan for them.
    pub(super) fn into_checked<'r>(
        self,
        chosen: impl Iterator<Item = &'r Registered>,
    ) -> CheckedSelection {
        let Examination { chosen: count, names, expressions, keys, order, wanted } = self;
        let Arranged { typed, outputs } =
            nesting::arrange(count, &keys, &order, &wanted, expressions);
        let described = |id: DefinitionId| (typed[id.index()].1.desc(), id.output());
        let outputs = outputs.into_iter().map(|output| output.map(described));
        let metrics = metrics(chosen, outputs, &names);
        CheckedSelection { metrics, typed }
    }
}

/// The chosen metrics. Those that can be used have their metadata and their output.
fn metrics<'r>(
    chosen: impl Iterator<Item = &'r Registered>,
    outputs: impl IntoIterator<Item = Option<(Desc, OutputId)>>,
    names: &Names,
) -> Vec<Metric> {
    let metric = |(one, output): (&Registered, Option<(Desc, OutputId)>)| {
        let (desc, output) = output.unzip();
        let desc = desc.ok_or(PmStatus::BADDERIVE);
        let is_hidden = one.is_named && matches!(names.get(&one.name), Name::Metric(_));
        Metric { name: one.name.clone(), desc, output, is_hidden }
    };
    chosen.zip(outputs).map(metric).collect()
}

/// The warning for a definition that a metric of the source hides.
fn hidden(one: &Registered) -> Diagnostic {
    let message = format!("`{}` is a metric of this source, which hides the definition", one.name);
    Diagnostic::warning(Code::HiddenByMetric, one.name_span, message)
        .label(one.name_span, "this definition is not used")
        .help("give the derived metric another name")
}

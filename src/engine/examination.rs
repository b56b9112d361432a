//! Checks definitions against the answers of a source: which names are
//! definitions, in which order they are checked, and what was found out.
//!
//! It asks no source: its caller gives the answers, and a function that
//! suggests names in place of unknown ones.

use std::sync::Arc;

use pmderive_runtime::model::PmStatus;

use super::nesting::{self, Arranged, Order};
use super::registry::{Registered, Registry};
use super::{Metric, anonymous_descs, is_anonymous};
use crate::bind::equivalent_domains::EquivalentDomains;
use crate::bind::{Found, Name, Names};
use crate::check::typed::TypedExpr;
use crate::check::{Examined, examine};
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::dialect::Language;
use crate::syntax::ControlOption;

/// Definitions checked against one source.
#[derive(Debug)]
pub struct Examination {
    /// How many of the expressions, from the first on, were asked for.
    chosen: usize,
    /// What the names in them stand for.
    pub names: Names,
    /// What was found out about each, in the order asked for, and after those
    /// about the definitions that they mention. A definition that a metric of
    /// the source hides is the values of that metric, and nothing is said of
    /// the nodes of its expression.
    pub expressions: Vec<Examined>,
    /// Parallel to the expressions: under what previous samples are kept.
    identities: Vec<u64>,
    /// Positions of the expressions, operands first.
    order: Vec<usize>,
    /// Parallel to the expressions: whether values are needed.
    wanted: Vec<bool>,
}

/// A selection of definitions that are checked.
pub(crate) struct Checked {
    /// The selection, in the order asked for.
    pub(crate) metrics: Vec<Metric>,
    /// Those that can be used, with the identity of their previous samples;
    /// [`Metric::output`] is the position here.
    pub(crate) typed: Vec<(u64, TypedExpr)>,
}

/// What definitions are checked with.
pub(super) struct Checking<'c> {
    pub registry: &'c Registry,
    pub language: Language,
    pub equivalent_domains: &'c Arc<EquivalentDomains>,
    /// Those that were chosen, and after them those that they mention.
    pub definitions: &'c [&'c Registered],
    /// How many were chosen.
    pub chosen: usize,
    /// Gives a name that was perhaps meant by an unknown one.
    pub suggest: &'c dyn Fn(&str) -> Option<String>,
}

impl Checking<'_> {
    /// Checks against a source's answers, which are parallel to `names`.
    pub fn run(
        &self,
        names: &[&str],
        found: &[Found],
        diagnostics: &mut Diagnostics,
    ) -> Examination {
        let mut names = self.meanings(names, found);
        let order = self.order(&names, diagnostics);
        let (expressions, mistakes) = self.check_each(&order, &mut names);
        let wanted = match self.language.extensions {
            true => nesting::with_values(self.definitions, self.chosen, &order, &expressions),
            false => (0..self.definitions.len()).map(|at| at < self.chosen).collect(),
        };
        for (found, _) in mistakes.into_iter().zip(&wanted).filter(|(_, wanted)| **wanted) {
            diagnostics.extend(found);
        }
        let identities = self.definitions.iter().map(|one| one.identity).collect();
        let (chosen, order) = (self.chosen, order.positions);
        Examination { chosen, names, expressions, identities, order, wanted }
    }

    /// What the names stand for before anything is checked.
    fn meanings(&self, names: &[&str], found: &[Found]) -> Names {
        let registry = self.registry;
        let is_derived = |name: &str| registry.get(name).is_some() || is_anonymous(name);
        let equivalent = Arc::clone(self.equivalent_domains);
        let mut names = Names::new(names, found, is_derived, equivalent);
        names.treat_missing_as_novalue(registry.control(ControlOption::NoValue) == 1);
        for (name, desc) in anonymous_descs(registry) {
            names.describe(name, desc);
        }
        if self.language.extensions {
            names.refuse(|name| registry.is_refused(name));
        }
        names
    }

    /// The order of checking, with cycles reported. Without extensions no
    /// metric needs another, so a cycle is no mistake of its own.
    fn order(&self, names: &Names, diagnostics: &mut Diagnostics) -> Order {
        let is_definition = |name: &str| matches!(names.get(name), Name::Derived);
        let mut cycles = Diagnostics::default();
        let mut order = nesting::order(self.definitions, is_definition, &mut cycles);
        match self.language.extensions {
            true => diagnostics.extend(cycles),
            false => order.is_refused.fill(false),
        }
        order
    }

    /// Checks the definitions in their order, each of which is then known to
    /// those after it. Gives what was found out and the mistakes, both parallel
    /// to the definitions.
    fn check_each(&self, order: &Order, names: &mut Names) -> (Vec<Examined>, Vec<Diagnostics>) {
        let count = self.definitions.len();
        let mut expressions: Vec<Examined> = vec![Examined::default(); count];
        let mut mistakes: Vec<Diagnostics> = vec![Diagnostics::default(); count];
        for position in order.positions.iter().copied() {
            let (one, found) = (self.definitions[position], &mut mistakes[position]);
            let examined = match names.get(&one.name) {
                Name::Metric(_) if position >= self.chosen => continue,
                Name::Metric(desc) if one.is_named => {
                    found.push(hidden(one));
                    let typed = TypedExpr::of_metric(desc, one.name_span);
                    Examined { typed, is_whole: true, ..Examined::default() }
                }
                _ if order.is_refused[position] => Examined::default(),
                _ => examine(&one.expr, names, self.language, self.suggest, found),
            };
            if one.is_named {
                found.name_metric(0, &one.name);
            }
            let desc = examined.is_whole.then(|| examined.typed.desc());
            if self.language.extensions && one.is_named {
                names.define(&one.name, desc.map(|desc| (desc, position)));
            } else if let (Some(desc), Some(pmid)) = (desc, one.pmid) {
                names.describe(&one.name, desc.of_metric(pmid));
            }
            expressions[position] = examined;
        }
        (expressions, mistakes)
    }
}

impl Examination {
    /// The expressions that are whole and wanted, in an order for planning.
    pub(crate) fn arranged(&self) -> Arranged {
        nesting::arrange(
            self.chosen,
            &self.identities,
            &self.order,
            &self.wanted,
            self.expressions.clone(),
        )
    }

    /// Whether values of the expression at a position are needed.
    pub(crate) fn is_wanted(&self, position: usize) -> bool {
        self.wanted.get(position).copied().unwrap_or(false)
    }

    /// The metrics that were chosen, and what is to be planned for them.
    pub(super) fn into_checked<'r>(self, chosen: impl Iterator<Item = &'r Registered>) -> Checked {
        let Examination { chosen: count, names, expressions, identities, order, wanted } = self;
        let Arranged { typed, outputs } =
            nesting::arrange(count, &identities, &order, &wanted, expressions);
        let metric = |(one, output): (&Registered, &Option<usize>)| {
            let desc = output.map(|output| typed[output].1.desc());
            let desc = desc.ok_or(PmStatus::BADDERIVE);
            let is_hidden = one.is_named && matches!(names.get(&one.name), Name::Metric(_));
            Metric { name: one.name.clone(), desc, output: *output, is_hidden }
        };
        let metrics = chosen.zip(&outputs).map(metric).collect();
        Checked { metrics, typed }
    }
}

/// The source has a metric of this name, which counts instead.
fn hidden(one: &Registered) -> Diagnostic {
    let message = format!("`{}` is a metric of this source, which hides the definition", one.name);
    Diagnostic::warning(Code::HiddenByMetric, one.name_span, message)
        .label(one.name_span, "this definition is not used")
        .help("give the derived metric another name")
}

//! Explains definitions over a fleet. The tree of each shows the operand and the grouping of
//! every aggregate, and the rule for the metadata of its values. This module also examines
//! definitions for lints.

use super::aggregate::{Aggregate, Function};
use super::definitions::FleetDefinitions;
use super::operand::{Kind, Reference};
use super::partial::MAX_QUANTILE_VALUES;
use super::source::DomainOf;
use super::{Aggregates, Evaluation};
use crate::bind::Desc;
use crate::diag::Diagnostics;
use crate::engine::{Examination, Registered, Registry};
use crate::explain::{Explained, NodeOutcome, explain};

impl Aggregates {
    /// Examines a selection of a registry over aggregates, with the known metadata.
    pub fn examine(
        &mut self,
        registry: &Registry,
        selection: &[&Registered],
    ) -> Option<Examination> {
        let Evaluation { engine, source, .. } = &mut self.evaluation;
        // Mistakes are reported in the words of fleets elsewhere. A source in memory does not
        // fail.
        engine.examine(registry, selection, source, &mut Diagnostics::default()).ok()
    }

    /// Explains some of the definitions and those that they need, with the known metadata.
    /// [`Evaluation::diagnostics`] has their mistakes.
    pub fn explain(&mut self, chosen: &[&Registered]) -> Vec<Explained> {
        let Evaluation { engine, definitions, source, references, identifiers, .. } =
            &mut self.evaluation;
        // Mistakes are reported in the words of fleets elsewhere.
        let mut found = Diagnostics::default();
        let registry = &definitions.registry;
        // A source in memory does not fail.
        let explained = explain(engine, registry, chosen, source, &mut found);
        let mut explained = explained.map(|all| all.definitions).unwrap_or_default();
        for one in &mut explained {
            if let Some(written) = definitions.written.get(&*one.name) {
                one.text.clone_from(written);
            }
        }
        for node in explained.iter_mut().flat_map(|one| &mut one.nodes) {
            let aggregates = definitions.aggregates.iter();
            if let Some(one) = aggregates.into_iter().find(|one| *one.text == *node.title) {
                node.notes.extend(notes(definitions, one, references[one.operand].as_ref()));
            }
            if definitions.unchanged.iter().any(|one| *one.name == *node.title) {
                node.notes.push(
                    "1 where the members of a group are those of the previous sample; without it \
                     there is no difference and no rate"
                        .to_owned(),
                );
            }
            if let NodeOutcome::Typed(Desc { indom: Some(indom), .. }) = node.outcome {
                let domain = identifiers.domain(indom);
                node.instances = domain.map(|domain| instances(definitions, domain));
            }
        }
        explained
    }
}

/// The instances of a domain of the fleet, in words.
fn instances(definitions: &FleetDefinitions, domain: DomainOf) -> String {
    let (of_hosts, grouping) = match domain {
        DomainOf::Groups(grouping) => (None, grouping),
        DomainOf::Hosts(grouping) => (Some("of hosts"), grouping),
    };
    let labels = definitions.groupings.get(grouping).map_or(&[][..], |labels| labels);
    let by = format!("by ({})", labels.join(", "));
    match of_hosts {
        None => by,
        Some(of_hosts) if labels.is_empty() => of_hosts.to_owned(),
        Some(of_hosts) => format!("{of_hosts}, {by}"),
    }
}

/// The notes on an aggregate: sentences without full stops.
fn notes(
    definitions: &FleetDefinitions,
    aggregate: &Aggregate,
    reference: Option<&Reference>,
) -> Vec<String> {
    let operand = &definitions.operands[aggregate.operand];
    let name = &operand.name;
    let mut notes = vec![match (&operand.computed, reference) {
        (None, Some(reference)) => format!("takes {name} of each host: {reference}"),
        (Some(_), Some(reference)) => {
            format!("takes {name}, computed on each host for it: {reference}")
        }
        (_, None) => format!("reads {name} on each host; its metadata are unknown"),
    }];
    let labels = &definitions.groupings[aggregate.grouping];
    notes.push(match (labels.is_empty(), aggregate.function.is_ranked()) {
        (true, false) => "all hosts are one group, and there is a single value".to_owned(),
        (true, true) => "all hosts are one group".to_owned(),
        (false, _) => format!(
            "a group is the hosts with the same {}: a label of the target, else of the host \
             itself (pmcd's), else empty",
            labels.join(" and ")
        ),
    });
    notes.push(rule(aggregate.function, reference));
    if aggregate.function != Function::Count {
        notes.push(
            "the first kind of hosts decides about type and units; values of others are \
             converted to whole units, or left out where that is impossible"
                .to_owned(),
        );
    }
    notes.push(
        "hosts that failed, were missed, have no value or are left out are not in it; \
         fleet.hosts.expected, present, failed, missed, no_value and left_out count them"
            .to_owned(),
    );
    notes
}

/// The rule that decides about the metadata of an aggregate's values.
fn rule(function: Function, operand: Option<&Reference>) -> String {
    let is_whole = operand.is_some_and(|one| matches!(one.kind(), Kind::Unsigned | Kind::Signed));
    match function {
        Function::Count => "the number of values: U64, instant and a count".to_owned(),
        Function::Sum if is_whole => "in 64 bits, so that no sum is cut off, and without a value \
                                      beyond; semantics and units of the operand"
            .to_owned(),
        Function::Sum => "in 64 bits; semantics and units of the operand".to_owned(),
        Function::Avg => "always DOUBLE and instant; units of the operand".to_owned(),
        Function::Extreme { .. } => "in 64 bits, always instant; units of the operand".to_owned(),
        Function::Quantile(_) => format!(
            "always DOUBLE and instant; units of the operand; exact, and without a value of more \
             than {MAX_QUANTILE_VALUES} values"
        ),
        Function::Ranked { k, top } => format!(
            "the {k} instances of hosts with the {} values of each group, as they are there, in \
             64 bits",
            if top { "greatest" } else { "least" }
        ),
    }
}

//! What is planned: a checked expression, and the identity of its definition.

use std::borrow::Borrow;

use pmderive_runtime::program::DefinitionKey;

use crate::check::typed::TypedExpr;

/// A definition to plan.
#[derive(Clone, Copy, Debug)]
pub struct Planned<'p> {
    /// Identity under which previous samples are kept.
    pub definition: DefinitionKey,
    /// The expression that it computes.
    pub expr: &'p TypedExpr,
}

impl<'p> Planned<'p> {
    /// Definitions to plan, in order.
    pub fn all<E: Borrow<TypedExpr>>(definitions: &'p [(DefinitionKey, E)]) -> Vec<Planned<'p>> {
        let one = |(definition, expr): &'p (DefinitionKey, E)| Planned {
            definition: *definition,
            expr: expr.borrow(),
        };
        definitions.iter().map(one).collect()
    }
}

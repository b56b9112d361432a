//! Sessions for tests, with a registry and a choice from the start.

use std::sync::Arc;

use pmderive::diag::Diagnostics;
use pmderive::engine::{Definitions, Engine, Registered, Registry, Session};
use pmderive_runtime::source::{FetchSource, SourceError};

/// A session in which definitions of a registry are chosen.
pub fn choosing<S: FetchSource>(
    engine: Arc<Engine>,
    source: S,
    registry: &Registry,
    selection: &[&Registered],
    diagnostics: &mut Diagnostics,
) -> Result<Session<S>, SourceError> {
    let shared = Definitions::from(registry.clone());
    let mut session = Session::new(engine, shared, source).expect("one language");
    session.choose(selection, diagnostics)?;
    Ok(session)
}

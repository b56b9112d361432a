//! The definitions that one session sees: the shared ones and its own, and the
//! options of `pmSetDerivedControl(3)`.
//!
//! `binding` keeps the outcomes of bound definitions.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use pmderive_runtime::model::{PmStatus, Pmid, TextKind};
use pmderive_runtime::program::DefinitionKey;
use pmderive_runtime::source::{FetchSource, SourceError};

use super::binding::Outcome;
use super::{FIRST_LOCAL_SOURCE, Session};
use crate::diag::{Code, Diagnostic, Diagnostics, EXPRESSION};
use crate::dialect::Dialect;
use crate::engine::definitions::Local;
use crate::engine::registry::{duplicate, no_room};
use crate::engine::{ChangeError, Refused, Registered, Registry, Snapshot, identifiers};
use crate::syntax::{ControlOption, counted};
use crate::text::{SourceId, SourceText};

impl<S: FetchSource> Session<S> {
    /// Adds a metric that no other session has (`pmAddDerived(3)`). It is bound
    /// at once. In this session it hides a global metric with its name.
    ///
    /// # Errors
    /// The source failed. The inner error: the name or the expression is wrong,
    /// in itself or for this source, or a limit is reached. In both cases
    /// nothing was added.
    pub fn add_derived(
        &mut self,
        name: &str,
        text: &str,
    ) -> Result<Result<Pmid, Refused>, SourceError> {
        self.add(Some(name), text)
    }

    /// Adds an expression as a metric that no other session has. It is found by
    /// its text without blanks around it.
    ///
    /// # Errors
    /// As [`Session::add_derived`].
    pub fn add_expression(&mut self, text: &str) -> Result<Result<Pmid, Refused>, SourceError> {
        self.add(None, text)
    }

    /// Adds a named definition, or an expression.
    fn add(
        &mut self,
        given_name: Option<&str>,
        text: &str,
    ) -> Result<Result<Pmid, Refused>, SourceError> {
        self.refresh();
        let mut diagnostics = Diagnostics::default();
        let id = SourceId(FIRST_LOCAL_SOURCE + self.given);
        let name = given_name.unwrap_or(text.trim());
        let source = (id, SourceText::new(given_name.unwrap_or(EXPRESSION), text));
        let mut sources = self.scope.sources.clone();
        sources.insert(id, source.1.clone());
        let registry = &self.scope.registry;
        let room = |diagnostics: &mut Diagnostics| {
            let locals = self.member.locals();
            if locals.iter().any(|local| *local.definition.name == *name) {
                let place = sources.whole(id);
                return Err(duplicate(name, place, "per-context", diagnostics));
            }
            let registered = match given_name {
                Some(name) => registry.parse_named(name, id, &sources, diagnostics)?,
                // Its text is its name from now on.
                None => {
                    let first = diagnostics.len();
                    let parsed = registry.parse(id, &sources, diagnostics);
                    diagnostics.name_metric(first, name);
                    Registered { is_named: true, ..parsed? }
                }
            };
            if usize::try_from(self.limit).is_ok_and(|limit| locals.len() >= limit) {
                let allowed = counted(self.limit, "definition");
                let message = format!("CONTEXT_LIMIT allows no more than {allowed}");
                let help = "raise the limit of the context (pmSetDerivedControl(3))";
                let words = "Too many per-context derived metrics";
                return Err(no_room(&registered, message, help, words, diagnostics));
            }
            match identifiers::of_context(self.given) {
                Some(pmid) => Ok((registered, pmid)),
                None => {
                    let message = "there are no more identifiers for derived metrics".to_owned();
                    let help = "identifiers are not used again; open another context";
                    let words = "per-context PMID space exhausted";
                    Err(no_room(&registered, message, help, words, diagnostics))
                }
            }
        };
        let (registered, pmid) = match room(&mut diagnostics) {
            Ok(room) => room,
            Err(error) => return Ok(Err(Refused { error: Some(error), diagnostics, sources })),
        };
        // Differs from the key of a global definition with the same text.
        let key = DefinitionKey(registered.key.0.rotate_left(1) ^ 1);
        let definition = Arc::new(Registered { pmid: Some(pmid), key, ..registered });
        let mut scope = Snapshot { registry: registry.clone(), sources };
        scope.registry.enter(Arc::clone(&definition));
        let before = std::mem::replace(&mut self.scope, scope);
        let bound = self.bind([pmid]);
        let refusal = match &bound {
            Err(_) => Some(Vec::new()),
            Ok(()) => match self.bound.get(&pmid).map(|bound| &bound.outcome) {
                Some(Outcome::Unusable(found)) if !self.is_passed_over(found) => {
                    Some(found.clone())
                }
                _ => None,
            },
        };
        if let Some(found) = refusal {
            Arc::make_mut(&mut self.bound).remove(&pmid);
            self.untold.retain(|untold| *untold != pmid);
            let mut own = Diagnostics::default();
            own.extend(found);
            let own = bound.and_then(|()| self.with_suggestions(own));
            let Snapshot { sources, .. } = std::mem::replace(&mut self.scope, before);
            diagnostics.extend(own?);
            return Ok(Err(Refused { error: None, diagnostics, sources }));
        }
        self.given += 1;
        self.member.locals().push(Local { definition, source, texts: Vec::new() });
        Ok(Ok(pmid))
    }

    /// True for mistakes that version 6 does not report. It accepts a metric
    /// with missing operands, which then never has values.
    fn is_passed_over(&self, found: &[Diagnostic]) -> bool {
        self.dialect() == Dialect::Pcp6_0
            && found.iter().all(|diagnostic| diagnostic.code == Code::UnknownMetric)
    }

    /// Sets a help text of a metric (`pmAddDerivedText(3)`): of the global one
    /// with that name, or else of this session's own.
    ///
    /// # Errors
    /// There is no such metric, or it already has the text.
    pub fn add_text(&mut self, name: &str, kind: TextKind, text: &str) -> Result<(), ChangeError> {
        match self.shared.set_text(name, kind, text) {
            Err(ChangeError::NoSuchMetric { .. }) => {}
            outcome => return outcome,
        }
        let mut locals = self.member.locals();
        let local = locals.iter_mut().find(|local| *local.definition.name == *name);
        let local = local.ok_or_else(|| ChangeError::no_such(name))?;
        if local.texts.iter().any(|(known, _)| *known == kind) {
            return Err(ChangeError::has_text(name));
        }
        local.texts.push((kind, text.into()));
        self.member.changed();
        Ok(())
    }

    /// Value of an option (`pmGetDerivedControl(3)`).
    pub fn control(&self, option: ControlOption) -> i32 {
        match option {
            ControlOption::ContextLimit => self.limit,
            _ => self.shared.control(option),
        }
    }

    /// Sets an option (`pmSetDerivedControl(3)`). The limit of a session
    /// applies only to this one, other options to all.
    ///
    /// # Errors
    /// `PM_ERR_ARG` for a value that the option cannot have, `PM_ERR_AGAIN` if
    /// the environment has set another value.
    pub fn set_control(&mut self, option: ControlOption, value: i32) -> Result<(), PmStatus> {
        match option {
            ControlOption::ContextLimit if !option.takes(value) => Err(PmStatus::ARG),
            ControlOption::ContextLimit => {
                self.limit = value;
                Ok(())
            }
            _ => self.shared.set_control(option, value),
        }
    }

    /// Starts again with the global definitions, as `pmReconnectContext(3)`
    /// does in any dialect. This session's own definitions are removed, and all
    /// others are bound again. The caller must have connected the source.
    pub fn rebind(&mut self) {
        self.member.locals().clear();
        self.member.changed();
        self.forget_bindings();
    }

    /// Reads the current definitions. Unchanged ones stay bound.
    pub(super) fn take_scope(&mut self) {
        let mut scope = self.shared.snapshot();
        self.member.known.store(scope.registry.given(), Ordering::Release);
        for local in self.member.locals().iter() {
            let (id, text) = &local.source;
            scope.sources.insert(*id, text.clone());
            scope.registry.enter(Arc::clone(&local.definition));
            for (kind, text) in &local.texts {
                if let Some(pmid) = local.definition.pmid {
                    // The new registry has no text for it, so this cannot fail.
                    let _ = scope.registry.set_text_of(pmid, *kind, text);
                }
            }
        }
        let before = std::mem::replace(&mut self.scope, scope);
        let registry = &self.scope.registry;
        let option = |registry: &Registry| registry.control(ControlOption::NoValue);
        // With extensions, a definition can change its meaning through its operands.
        let is_anew =
            registry.language().extensions || option(registry) != option(&before.registry);
        let gone = &mut self.gone;
        // Operands and chosen definitions have samples without being bound.
        let is_gone = |one: &&Arc<Registered>| {
            registry.definition(&one.name).is_none_or(|now| now.key != one.key)
        };
        let former = before.registry.definitions().iter();
        gone.extend(former.filter(is_gone).map(|one| one.key));
        // A missing metric may be among the new definitions.
        let tries_again = registry.language().dialect == Dialect::Fixed;
        Arc::make_mut(&mut self.bound).retain(|pmid, bound| {
            let stays = registry.holds(*pmid, &bound.definition);
            if !stays {
                gone.insert(bound.definition.key);
            }
            stays && !is_anew && !(tries_again && matches!(bound.outcome, Outcome::Unusable(_)))
        });
        let bound = &self.bound;
        self.untold.retain(|pmid| bound.contains_key(pmid));
        self.plans.retain(|plan| {
            plan.derived().all(|(pmid, was_bound)| match was_bound {
                true => bound.contains_key(&pmid),
                false => registry.by_pmid(pmid).is_none(),
            })
        });
    }
}

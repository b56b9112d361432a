//! The outputs of a program that go into frames, and their exported names. Hosts with the
//! same program share a view.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use pmderive_runtime::model::InDom;
use pmderive_runtime::program::OutputId;
use pmderive_runtime::weak_table::Interner;

use crate::engine::Compiled;
use crate::escape;
use crate::fleet::frame::{ExportedMetric, Schema};
use crate::fleet::plan::{Export, PlannedGroup};
use crate::fleet::sinks::sink_set::SinkSet;
use crate::fleet::targets::target::Target;

/// The outputs that sinks want of hosts with the same program.
#[derive(Debug)]
pub struct View {
    /// The metrics of frames.
    pub schema: Arc<Schema>,
    /// The outputs with their values, parallel to [`Schema::metrics`].
    pub outputs: Box<[Output]>,
    /// Sinks that want any of the metrics.
    pub sinks: SinkSet,
    /// A number of the kind of hosts.
    pub kind: u64,
    exports: Arc<[Export]>,
}

/// The output that an exported metric has its values from.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    /// The program's output.
    pub at: OutputId,
    /// Identifier of its instance domain on the host.
    pub indom: Option<InDom>,
}

/// The views of a thread.
#[derive(Debug, Default)]
pub struct Views {
    /// Views by the address of the compiled program, which the hosts of a view hold.
    known: HashMap<usize, (Weak<Compiled>, Vec<Arc<View>>)>,
    /// Schemas in use, for sharing between hosts whose metrics differ only in identifiers.
    schemas: Interner<Schema>,
}

impl Views {
    /// The view for a compiled program and a group, and whether it is new.
    pub fn of(
        &mut self,
        compiled: &Arc<Compiled>,
        group: &PlannedGroup,
        first: &Target,
    ) -> (Arc<View>, bool) {
        let key = Arc::as_ptr(compiled).addr();
        if let Some((known, views)) = self.known.get(&key)
            && known.upgrade().is_some_and(|known| Arc::ptr_eq(&known, compiled))
            && let Some(view) = views.iter().find(|view| view.exports == group.exports)
        {
            return (Arc::clone(view), false);
        }
        let view = Arc::new(self.make(compiled, group));
        tell(compiled, group, first);
        if self.known.len().is_power_of_two() {
            self.known.retain(|_, (compiled, _)| compiled.strong_count() > 0);
        }
        let (known, views) = self.known.entry(key).or_default();
        if known.upgrade().is_none_or(|known| !Arc::ptr_eq(&known, compiled)) {
            *known = Arc::downgrade(compiled);
            views.clear();
        }
        views.retain(|view| Arc::strong_count(view) > 1);
        views.push(Arc::clone(&view));
        (view, true)
    }

    fn make(&mut self, compiled: &Compiled, group: &PlannedGroup) -> View {
        let found = group.exports.iter().zip(&compiled.metrics).filter_map(|(export, metric)| {
            let exported = ExportedMetric::of(metric, export.sinks, export.help.clone())?;
            let (desc, at) = (metric.desc.ok()?, metric.output?);
            Some((exported, Output { at, indom: desc.indom }))
        });
        let (schema, outputs) = Schema::sorted(found);
        let schema = self.schemas.intern(schema);
        let sinks = schema.sinks();
        let kind = compiled.kind();
        View { schema, outputs: outputs.into(), sinks, kind, exports: Arc::clone(&group.exports) }
    }
}

/// Reports the mistakes of definitions, once for all hosts of a group.
fn tell(compiled: &Compiled, group: &PlannedGroup, first: &Target) {
    let found: Vec<_> =
        compiled.diagnostics().iter().filter(|one| group.told.is_news(one)).collect();
    let (texts, group, host) = (&group.texts, &*group.name, &*first.name);
    for diagnostic in found.iter().take(10) {
        // Operands of aggregates have no name; the field is left out then.
        let metric = diagnostic.metric.as_deref();
        let (place, code) = (texts.place(diagnostic.span), diagnostic.code);
        let message = escape::line_of(&diagnostic.message);
        tracing::warn!(place, group, host, metric, %code, "{message}");
    }
    if let Some(more) = found.len().checked_sub(10).filter(|more| *more > 0) {
        tracing::warn!(group, host, "and {more} more; `pmderive check` shows all of them");
    }
}

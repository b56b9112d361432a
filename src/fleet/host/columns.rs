//! Copies the values that sinks want out of an evaluation.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use pmderive_runtime::eval::{Evaluation, Values};
use pmderive_runtime::model::{InDom, InstId, PmStatus};
use pmderive_runtime::position::Per;
use pmderive_runtime::program::Status;
use pmderive_runtime::source::Freshness;
use rustc_hash::{FxHashMap, FxHashSet};

use super::view::{Output, View};
use crate::fleet::frame::columns::{Heads, Lanes};
use crate::fleet::frame::{ExportedId, Instances};

/// The instances of a metric without values.
static NONE: LazyLock<Arc<Instances>> = LazyLock::new(Arc::default);

/// The one instance of a metric without a domain.
static SINGLE: LazyLock<Arc<Instances>> =
    LazyLock::new(|| Arc::new(Instances { ids: [-1].into(), ..Instances::default() }));

/// The status of a metric with too many instances.
pub const TOO_MANY: Status = Status::Failed(PmStatus::TOOBIG);

/// The limit of instances of a metric.
#[derive(Clone, Copy)]
pub struct InstanceLimit {
    /// Most instances.
    pub most: usize,
    /// True if the fetch has refused a metric with more, so that metrics which read it failed.
    pub has_refused: bool,
}

impl InstanceLimit {
    fn is_exceeded(self, values: &Values<'_>) -> bool {
        values.len() > self.most || self.has_refused && values.status == TOO_MANY
    }

    fn status(self, values: &Values<'_>) -> Status {
        if values.len() > self.most { TOO_MANY } else { values.status }
    }
}

/// Columns of an evaluation, before instances have names.
pub struct FoundColumns {
    /// The values, parallel to the schema's metrics.
    pub lanes: Lanes,
    /// Statuses and instances.
    pub heads: FoundHeads,
    /// Number of metrics with too many instances, which have no values here.
    pub too_many: u64,
}

/// Statuses and instances of an evaluation.
pub enum FoundHeads {
    /// The heads of the frame before.
    Same(Arc<Heads>),
    /// Other heads, parallel to the schema's metrics.
    Other {
        /// Heads; the metrics of `unnamed` have no instances yet.
        heads: Per<ExportedId, (Status, Arc<Instances>)>,
        /// Metrics whose instances differ from those of the frame before.
        unnamed: Vec<UnnamedMetric>,
        /// The domains of these metrics.
        domains: BTreeMap<InDom, Freshness>,
    },
}

/// A metric whose instances have no names yet.
pub struct UnnamedMetric {
    /// The metric.
    pub metric: ExportedId,
    /// Identifier of the domain on the host.
    pub indom: InDom,
    /// The instances.
    pub ids: Box<[InstId]>,
}

/// The columns of a view. `before` are the heads of the frame before with the same schema;
/// known instances take their names from there.
pub fn find(
    evaluation: &Evaluation<'_>,
    view: &View,
    before: Option<&Arc<Heads>>,
    limit: InstanceLimit,
) -> FoundColumns {
    let count = view.outputs.len();
    let mut lanes = Lanes::with_room(count, before.map_or(0, |before| before.series_count()));
    let (mut is_same, mut too_many) = (before.is_some(), 0);
    for (output, (metric, exported)) in view.outputs.iter().zip(view.schema.metrics.enumerate()) {
        let values = evaluation.get(output.at);
        let status = limit.status(&values);
        too_many += u64::from(limit.is_exceeded(&values));
        let known = before.and_then(|before| before.get(metric));
        is_same = is_same && known.is_some_and(|known| is_known(known, status, *output, &values));
        if status != Status::Values {
            lanes.push(std::iter::empty());
            continue;
        }
        // A single value may come with another identifier, and is still the same instance.
        lanes.push_values(&values, if exported.has_instances { usize::MAX } else { 1 });
    }
    let heads = match before.filter(|_| is_same) {
        Some(before) => FoundHeads::Same(Arc::clone(before)),
        None => other_heads(evaluation, view, before, limit),
    };
    FoundColumns { lanes, heads, too_many }
}

/// True if a metric has the known status and instances.
fn is_known(
    (known, instances): (Status, &Arc<Instances>),
    status: Status,
    output: Output,
    values: &Values<'_>,
) -> bool {
    let has_no_ids = status != Status::Values || output.indom.is_none();
    known == status && (has_no_ids || *instances.ids == *values.instances)
}

fn other_heads(
    evaluation: &Evaluation<'_>,
    view: &View,
    before: Option<&Arc<Heads>>,
    limit: InstanceLimit,
) -> FoundHeads {
    let mut unnamed = Vec::new();
    let head = |(metric, output): (ExportedId, &Output)| {
        let values = evaluation.get(output.at);
        let status = limit.status(&values);
        let known = before.and_then(|before| before.get(metric));
        let instances = match (output.indom, known) {
            _ if status != Status::Values => &NONE,
            (None, _) => &SINGLE,
            (Some(_), Some(known)) if is_known(known, status, *output, &values) => known.1,
            (Some(indom), _) => {
                unnamed.push(UnnamedMetric { metric, indom, ids: values.instances.into() });
                &NONE
            }
        };
        (status, Arc::clone(instances))
    };
    let heads = view.schema.metrics.positions().zip(&view.outputs).map(head).collect();
    let domains = domains(&unnamed, view, before);
    FoundHeads::Other { heads, unnamed, domains }
}

/// The domains of metrics, with the freshness that their names need. An instance that the frame
/// before lacks may have the identifier of one that is gone, and then has another name.
fn domains(
    unnamed: &[UnnamedMetric],
    view: &View,
    before: Option<&Arc<Heads>>,
) -> BTreeMap<InDom, Freshness> {
    let mut new: FxHashMap<InDom, FxHashSet<InstId>> = FxHashMap::default();
    for one in unnamed {
        new.entry(one.indom).or_default().extend(&one.ids);
    }
    for (metric, output) in view.schema.metrics.positions().zip(&view.outputs) {
        let Some(new) = output.indom.and_then(|indom| new.get_mut(&indom)) else { continue };
        let known = before.and_then(|before| before.get(metric));
        known.into_iter().flat_map(|(_, instances)| &instances.ids).for_each(|id| {
            new.remove(id);
        });
    }
    let freshness = |new: &FxHashSet<InstId>| match new.is_empty() {
        true => Freshness::Cached,
        false => Freshness::Current,
    };
    new.iter().map(|(indom, new)| (*indom, freshness(new))).collect()
}

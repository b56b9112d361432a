//! Copies what sinks want out of an evaluation.

use std::sync::{Arc, LazyLock};

use pmderive_runtime::eval::{Evaluation, Value, Values};
use pmderive_runtime::model::{InDom, InstId};
use pmderive_runtime::program::Status;

use super::series::Series;
use super::view::View;
use crate::fleet::bits::{Bits, Place, Together};
use crate::fleet::frame::{Column, Instances, Lanes};

/// The instances of a metric without values.
pub static NONE: LazyLock<Arc<Instances>> = LazyLock::new(Arc::default);

/// The one instance of a metric without a domain.
static SINGLE: LazyLock<Arc<Instances>> =
    LazyLock::new(|| Arc::new(Instances { ids: [-1].into(), ..Instances::default() }));

/// What was found in an evaluation.
pub struct Found {
    /// The columns, parallel to the schema's metrics. Those in `unnamed` have no
    /// instances yet.
    pub columns: Vec<Column>,
    /// Columns whose instances are not those of the frame before.
    pub unnamed: Vec<Unnamed>,
    /// Metrics with too many instances, of which none is there.
    pub too_many: u64,
}

/// A column whose instances have no names yet.
pub struct Unnamed {
    /// Position of the column.
    pub column: usize,
    /// The domain, as the host calls it.
    pub indom: InDom,
    /// The instances.
    pub ids: Box<[InstId]>,
}

/// The columns of a view. Instances that are those of the frame before have their
/// names from there.
pub fn find(evaluation: &Evaluation<'_>, view: &View, before: &Series, limit: usize) -> Found {
    let mut found =
        Found { columns: Vec::with_capacity(view.outputs.len()), unnamed: Vec::new(), too_many: 0 };
    let mut together = Together::with_room(before.values());
    let mut places = Vec::with_capacity(view.outputs.len());
    let metrics = view.schema.metrics.iter();
    for (column, (output, exported)) in view.outputs.iter().zip(metrics).enumerate() {
        let values = evaluation.get(output.at);
        let mut status = values.status;
        if values.len() > limit {
            found.too_many += 1;
            status = Status::Failed(pmderive_runtime::model::PmStatus::TOOBIG);
        }
        if status != Status::Values {
            let (instances, lanes) = (Arc::clone(&NONE), Lanes::Numbers(Bits::default()));
            found.columns.push(Column { status, instances, lanes });
            places.push(Place::default());
            continue;
        }
        let known = before.instances(&view.schema, column);
        let instances = match (output.indom, known) {
            (None, _) => Arc::clone(&SINGLE),
            (Some(_), Some(known)) if *known.ids == *values.instances => Arc::clone(known),
            (Some(indom), _) => {
                let ids = values.instances.into();
                found.unnamed.push(Unnamed { column, indom, ids });
                Arc::clone(&NONE)
            }
        };
        // A single value may come with another identifier, and is one all the same.
        let count = if exported.has_instances { values.len() } else { values.len().min(1) };
        let (place, lanes) = match values.numbers() {
            // They come once all are known.
            Some(numbers) => {
                let bits = numbers.take(count).map(|(_, bits)| bits);
                (together.column(bits), Lanes::Numbers(Bits::default()))
            }
            None => (Place::default(), texts(&values, count)),
        };
        places.push(place);
        found.columns.push(Column { status, instances, lanes });
    }
    let shared = together.share();
    for (column, place) in found.columns.iter_mut().zip(places) {
        if let Lanes::Numbers(bits) = &mut column.lanes {
            *bits = place.of(&shared);
        }
    }
    found
}

fn texts(values: &Values<'_>, count: usize) -> Lanes {
    let bytes = |lane| match values.get(lane) {
        Value::Text(bytes) | Value::Bytes(bytes) => bytes.into(),
        _ => Box::default(),
    };
    Lanes::Texts((0..count).map(bytes).collect())
}

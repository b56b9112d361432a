//! A definition as an operand of others: its position in a list, and its metadata.

use pmderive_runtime::model::{InDom, MetricDesc, Pmid, Semantics, Units, ValueType};
use pmderive_runtime::positions;
use pmderive_runtime::program::OutputId;

positions! {
    /// Position of a definition in a list with operands before their users. Before
    /// planning the list is that of the definitions checked together, afterwards
    /// that of those planned together.
    pub DefinitionId;
}

impl DefinitionId {
    /// The output of the program that is planned for the list.
    pub const fn output(self) -> OutputId {
        OutputId(self.0)
    }
}

/// Type, semantics, units and instance domain of a node's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Desc {
    /// Type.
    pub value_type: ValueType,
    /// Instance domain; `None` for a single value.
    pub indom: Option<InDom>,
    /// Semantics.
    pub semantics: Semantics,
    /// Dimension and scale.
    pub units: Units,
}

impl Desc {
    /// The descriptor of a metric with this metadata.
    pub fn of_metric(self, pmid: Pmid) -> MetricDesc {
        let Desc { value_type, indom, semantics, units } = self;
        MetricDesc { pmid, value_type, indom, semantics, units }
    }
}

impl From<MetricDesc> for Desc {
    fn from(desc: MetricDesc) -> Desc {
        let MetricDesc { value_type, indom, semantics, units, .. } = desc;
        Desc { value_type, indom, semantics, units }
    }
}

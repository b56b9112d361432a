//! The form of a node: a key for what the node computes. Nodes of one form
//! share a kernel, which is built and looked up once.

use pmderive_runtime::kernel::{Access, KernelIr, Reg, Scalar};
use pmderive_runtime::model::Conversion;
use rustc_hash::FxHashMap;

use crate::check::typed::{Decrease, Precision, Scale};
use crate::dag::{Graph, KernelSource, OwnKernel};
use crate::lanes::LaneBuilder;
use crate::syntax::ast;

/// An operation, its types, and the constants in it. Numbers of double
/// precision are stored as bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// The same number in another type.
    Convert { from: Scalar, to: Scalar },
    /// `-a`.
    Negate { from: Scalar, to: Scalar },
    /// `!a`.
    Not { from: Scalar, to: Scalar },
    /// `a op b`, each operand divided and then multiplied.
    Operator { op: ast::BinaryOp, common: Scalar, from: [Scalar; 2], scales: [[u64; 2]; 2] },
    /// `rescale(a)`.
    Rescale { from: Scalar, mult: i64, div: i64, extra: Option<[u64; 4]>, precision: Precision },
    /// `delta(a)`.
    Delta { from: Scalar, precision: Precision },
    /// `rate(a)`.
    Rate { from: Scalar, decrease: Decrease, time_factor: Option<u64> },
}

impl Form {
    /// The form of an operator whose operands have these types and scales.
    pub fn operator(
        op: ast::BinaryOp,
        common: Scalar,
        from: [Scalar; 2],
        scales: [Scale; 2],
    ) -> Form {
        let scales = scales.map(|scale| [scale.div, scale.mul].map(f64::to_bits));
        Form::Operator { op, common, from, scales }
    }

    /// The form of a conversion of units.
    pub fn rescale(from: Scalar, conversion: &Conversion, precision: Precision) -> Form {
        let Conversion { mult, div, extra } = *conversion;
        let extra = extra.map(|(a, b, c, d)| [a, b, c, d].map(f64::to_bits));
        Form::Rescale { from, mult, div, extra, precision }
    }

    /// The kernel, with the values of its constants.
    fn write(self) -> (KernelIr, Vec<u8>) {
        let mut lanes = LaneBuilder::default();
        let operand = |lanes: &mut LaneBuilder, from| lanes.operand(from, Access::Column, false);
        let change = |lanes: &mut LaneBuilder, from| -> [Reg; 2] {
            [false, true].map(|previous| lanes.operand(from, Access::Column, previous))
        };
        let result = match self {
            Form::Convert { from, to } => {
                let value = operand(&mut lanes, from);
                lanes.convert(value, to)
            }
            Form::Negate { from, to } => {
                let value = operand(&mut lanes, from);
                lanes.negate(value, to)
            }
            Form::Not { from, to } => {
                let value = operand(&mut lanes, from);
                lanes.not(value, to)
            }
            Form::Operator { op, common, from, scales } => {
                let [left, right] = from.map(|from| operand(&mut lanes, from));
                let [left_scale, right_scale] = scales.map(|scale| {
                    let [div, mul] = scale.map(f64::from_bits);
                    Scale { div, mul }
                });
                lanes.operator(op, common, (left, left_scale), (right, right_scale))
            }
            Form::Rescale { from, mult, div, extra, precision } => {
                let value = operand(&mut lanes, from);
                let extra = extra.map(|extra| extra.map(f64::from_bits).into());
                lanes.rescale(value, &Conversion { mult, div, extra }, precision)
            }
            Form::Delta { from, precision } => {
                let [now, before] = change(&mut lanes, from);
                lanes.delta(now, before, precision)
            }
            Form::Rate { from, decrease, time_factor } => {
                let [now, before] = change(&mut lanes, from);
                let elapsed = lanes.operand(Scalar::F64, Access::Single, false);
                lanes.rate([now, before, elapsed], decrease, time_factor.map(f64::from_bits))
            }
        };
        lanes.finish(result)
    }
}

/// The kernels of the forms so far.
#[derive(Default)]
pub struct Forms(FxHashMap<Form, OwnKernel>);

impl Forms {
    /// The kernel of a form.
    pub fn kernel(
        &mut self,
        form: Form,
        graph: &mut Graph,
        kernels: KernelSource<'_>,
    ) -> &mut OwnKernel {
        self.0.entry(form).or_insert_with(|| graph.own_kernel(form.write(), kernels))
    }
}

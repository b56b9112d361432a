//! Comparisons of texts, which libpcp does not have.

use pmderive_runtime::model::ValueType;

use super::call::truth_desc;
use super::typed::{TypedId, TypedKind};
use super::{Checked, Checker, Operand, describe};
use crate::diag::{Code, Diagnostic};
use crate::syntax::ast::BinaryOp;
use crate::text::Span;

impl Checker<'_> {
    /// `left == right` or `left != right` if one of them is a text, else `None`.
    pub(super) fn text_equality(
        &mut self,
        (op, op_span): (BinaryOp, Span),
        operands: [Operand; 2],
    ) -> Option<Checked<TypedId>> {
        let is_text = |operand: &Operand| operand.desc.value_type == ValueType::String;
        let equality = matches!(op, BinaryOp::Eq | BinaryOp::Ne);
        if !self.extensions || !equality || !operands.iter().any(is_text) {
            return None;
        }
        Some(self.compare_texts(op, op_span, operands))
    }

    fn compare_texts(
        &mut self,
        op: BinaryOp,
        op_span: Span,
        operands: [Operand; 2],
    ) -> Checked<TypedId> {
        let symbol = op.symbol();
        let [left, right] = operands;
        if left.desc.value_type != right.desc.value_type {
            let message = format!(
                "`{symbol}` compares {} with {}",
                left.desc.value_type, right.desc.value_type
            );
            let (l, r) = (self.span(left.expr), self.span(right.expr));
            return self.report(
                Diagnostic::error(Code::NotNumeric, op_span, message)
                    .label(l, describe(&left.desc))
                    .label(r, describe(&right.desc))
                    .help("a text equals texts only, which stand in double quotes"),
            );
        }
        let indom = self.one_indom(&operands, &format!("`{symbol}`"))?;
        let kind = TypedKind::TextEqual {
            left: left.typed,
            right: right.typed,
            negated: op == BinaryOp::Ne,
        };
        let desc = truth_desc(indom, &[left.desc, right.desc]);
        Ok(self.push(kind, desc))
    }
}

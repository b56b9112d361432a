//! The right values, to compare with: those of the interpreter, node by node,
//! with plans made only for this and from the same fetched bytes.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use pmderive::engine::Compiled;
use pmderive_runtime::eval::{Buffers, Evaluation, Value};
use pmderive_runtime::program::{Reason, Status};
use pmderive_runtime::result::{ResultBatch, ResultWriter};
use pmderive_runtime::source::FetchEvents;
use rustc_hash::FxHasher;

use super::client::evaluate;

/// Another batch of the same content.
pub fn copy(batch: &ResultBatch) -> ResultBatch {
    let mut copy = ResultBatch::default();
    for part in batch.parts() {
        let twin = copy.add_part();
        let mut writer = ResultWriter::new(twin, part.timestamp);
        part.sets().for_each(|set| writer.copy(&set));
    }
    copy.domains.clone_from(&batch.domains);
    copy
}

/// A digest of an evaluation: statuses, instances and bits. The reason for a
/// missing difference does not count. To an oracle without earlier samples, a
/// gap and a beginning are the same.
pub fn print(evaluation: &Evaluation<'_>) -> u64 {
    let mut hasher = FxHasher::default();
    for (_, values) in evaluation.outputs() {
        match values.status {
            Status::Values => 0.hash(&mut hasher),
            Status::Empty(Reason::Gap | Reason::FirstSample) => 1.hash(&mut hasher),
            other => format!("{other:?}").hash(&mut hasher),
        }
        for (instance, value) in values.iter() {
            instance.hash(&mut hasher);
            bits(value).hash(&mut hasher);
        }
    }
    hasher.finish()
}

/// The bits of a value. All NaN have the same.
fn bits(value: Value<'_>) -> u64 {
    match value {
        Value::F64(number) if number.is_nan() => f64::NAN.to_bits(),
        Value::F32(number) if number.is_nan() => f32::NAN.to_bits().into(),
        Value::F64(number) => number.to_bits(),
        Value::F32(number) => number.to_bits().into(),
        Value::I32(number) => i64::from(number).cast_unsigned(),
        Value::U32(number) => number.into(),
        Value::I64(number) => number.cast_unsigned(),
        Value::U64(number) => number,
        Value::Text(bytes) | Value::Bytes(bytes) => {
            let mut hasher = FxHasher::default();
            bytes.hash(&mut hasher);
            hasher.finish()
        }
    }
}

/// Reads all values; returns their number, and a digest that depends on each.
pub fn read(evaluation: &Evaluation<'_>) -> (usize, u64) {
    let (mut count, mut sum) = (0, 0u64);
    for (_, values) in evaluation.outputs() {
        count += values.len();
        if let Some(numbers) = values.numbers() {
            sum = numbers.fold(sum, |sum, (_, bits)| sum.wrapping_add(bits));
        }
    }
    (count, sum)
}

/// The right digest of the last of several fetches, see [`print`].
pub fn expected(compiled: &Arc<Compiled>, batches: Vec<ResultBatch>) -> u64 {
    let mut evaluator = compiled.evaluator();
    evaluator.use_general_path();
    let mut buffers = Buffers::default();
    let mut last = 0;
    for batch in batches {
        let events = FetchEvents::default();
        last = print(&evaluate(&mut evaluator, &batch, events, &mut buffers));
    }
    last
}

//! Writes the values of derived metrics into a result.

use pmderive_runtime::eval::{Value, Values};
use pmderive_runtime::model::{PmStatus, Pmid};
use pmderive_runtime::program::Status;
use pmderive_runtime::result::ResultWriter;

/// Writes the value set of a derived metric.
pub fn write_derived(writer: &mut ResultWriter<'_>, pmid: Pmid, values: &Values<'_>) {
    match values.status {
        Status::Failed(status) => return writer.status(pmid, status),
        Status::Empty(_) => return writer.set(pmid),
        Status::Values => writer.set(pmid),
    }
    let value_type = values.value_type();
    if values.numbers().is_some() {
        let instances = values.instances.iter().copied();
        values.copy_numbers(writer.numbers(value_type, false, instances));
        return;
    }
    // Every type that values have fits.
    let code = u8::try_from(value_type.code()).unwrap_or(u8::MAX);
    for (instance, value) in values.iter() {
        match value {
            Value::Text(text) => writer.pieces(instance, code, &[text, &[0]]),
            Value::Bytes(bytes) => writer.pieces(instance, code, &[bytes]),
            _ => return writer.fail(PmStatus::BOTCH),
        }
    }
}

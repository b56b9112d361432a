//! Collects rows into record batches, the columns of Arrow and Parquet.
//!
//! A batch has a limited number of rows and bytes of text, so memory does not
//! grow with the table.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::{
    BinaryBuilder, Float64Builder, Int32Builder, Int64Builder, StringBuilder,
    TimestampNanosecondBuilder, UInt64Builder,
};
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, Int32Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, SchemaRef, TimeUnit};
use pmderive_runtime::eval::Value;
use pmderive_runtime::model::Timestamp;
use rustc_hash::FxHashMap;

use super::exporter::ExportError;
use super::{LastNames, Row, Sampling, Schema};
use crate::bind::Desc;
use crate::engine::ReportSample;
use crate::report::plain::text;
use crate::report::rows::for_each_row;

/// Number of rows in a batch.
const ROWS: usize = 64 * 1024;

/// Number of bytes of texts and blocks after which a batch ends, even with few
/// rows.
const BYTES: usize = 8 * 1024 * 1024;

const ZONE: &str = "UTC";

/// Takes rows and gives batches.
pub struct Columns {
    schema: SchemaRef,
    sampling: Sampling,
    host: Dictionary,
    metric: Dictionary,
    types: Dictionary,
    semantics: Dictionary,
    units: Dictionary,
    /// Dictionary keys of each metric, in the order of the metrics.
    keys: Vec<Option<Keys>>,
    names: LastNames,
    time: TimestampNanosecondBuilder,
    instance: Int32Builder,
    instance_name: StringBuilder,
    value: Float64Builder,
    value_int64: Int64Builder,
    value_uint64: UInt64Builder,
    value_text: StringBuilder,
    value_bytes: BinaryBuilder,
    status: StringBuilder,
    /// Buffer for the text of statuses.
    scratch: String,
}

/// Positions of a metric's texts in dictionaries.
#[derive(Clone, Copy)]
struct Keys {
    desc: Desc,
    metric: i32,
    value_type: i32,
    semantics: i32,
    units: i32,
}

/// A column with few different texts. Changed metadata of a live source can add
/// texts; none is ever removed.
#[derive(Default)]
struct Dictionary {
    places: FxHashMap<Box<str>, i32>,
    values: Vec<Box<str>>,
    /// The texts as an array; `None` after a text was added.
    array: Option<ArrayRef>,
    keys: Vec<i32>,
}

impl Dictionary {
    /// Position of a text. Adds the text if it is new.
    fn place(&mut self, text: &str) -> i32 {
        if let Some(place) = self.places.get(text) {
            return *place;
        }
        // There are at most as many texts as metrics.
        let place = i32::try_from(self.values.len()).unwrap_or(i32::MAX);
        self.places.insert(text.into(), place);
        self.values.push(text.into());
        self.array = None;
        place
    }

    /// Returns the column so far and empties it.
    fn take(&mut self) -> Result<ArrayRef, ExportError> {
        let values = self.array.get_or_insert_with(|| {
            Arc::new(StringArray::from_iter_values(self.values.iter().map(|text| &**text)))
        });
        let keys = Int32Array::from(std::mem::take(&mut self.keys));
        let array = DictionaryArray::<Int32Type>::try_new(keys, Arc::clone(values));
        Ok(Arc::new(array.map_err(refused)?))
    }
}

/// The columns of the table, with metadata about it.
fn arrow_schema(schema: &Schema) -> SchemaRef {
    let dictionary = || DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    let time = DataType::Timestamp(TimeUnit::Nanosecond, Some(ZONE.into()));
    let fields = vec![
        Field::new("time", time, false),
        Field::new("host", dictionary(), false),
        Field::new("metric", dictionary(), false),
        Field::new("instance", DataType::Int32, true),
        Field::new("instance_name", DataType::Utf8, true),
        Field::new("type", dictionary(), false),
        Field::new("semantics", dictionary(), false),
        Field::new("units", dictionary(), false),
        Field::new("value", DataType::Float64, true),
        Field::new("value_int64", DataType::Int64, true),
        Field::new("value_uint64", DataType::UInt64, true),
        Field::new("value_text", DataType::Utf8, true),
        Field::new("value_bytes", DataType::Binary, true),
        Field::new("status", DataType::Utf8, true),
    ];
    let metadata: HashMap<String, String> = metadata(schema).collect();
    Arc::new(arrow_schema::Schema::new_with_metadata(fields, metadata))
}

/// The keys and values in a file that describe the source and metrics.
pub fn metadata(schema: &Schema) -> impl Iterator<Item = (String, String)> {
    let source = ("pcp.source".to_owned(), schema.source_json());
    let metrics = schema.metrics.iter();
    std::iter::once(source)
        .chain(metrics.map(|one| (format!("pcp.metric.{}", one.name), one.json())))
}

impl Columns {
    /// Columns without rows.
    pub fn new(schema: &Schema) -> Columns {
        let mut host = Dictionary::default();
        host.place(&schema.host);
        let mut columns = Columns {
            sampling: schema.sampling,
            host,
            metric: Dictionary::default(),
            types: Dictionary::default(),
            semantics: Dictionary::default(),
            units: Dictionary::default(),
            keys: Vec::new(),
            names: LastNames::default(),
            time: TimestampNanosecondBuilder::new().with_timezone(ZONE),
            instance: Int32Builder::new(),
            instance_name: StringBuilder::new(),
            value: Float64Builder::new(),
            value_int64: Int64Builder::new(),
            value_uint64: UInt64Builder::new(),
            value_text: StringBuilder::new(),
            value_bytes: BinaryBuilder::new(),
            status: StringBuilder::new(),
            scratch: String::new(),
            schema: arrow_schema(schema),
        };
        // Dictionaries of Arrow files should be written only once.
        for metric in &schema.metrics {
            let keys = metric.desc.ok().map(|desc| columns.keys_of(&metric.name, &desc));
            columns.keys.push(keys);
        }
        columns
    }

    /// The names and types of the columns.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Adds the rows of a sample. Each full batch goes to `write`.
    ///
    /// # Errors
    /// The error of `write`, or a time is out of range.
    pub fn sample(
        &mut self,
        shown: &ReportSample<'_>,
        mut write: impl FnMut(RecordBatch) -> Result<(), ExportError>,
    ) -> Result<(), ExportError> {
        let time = nanoseconds(shown.values.timestamp())?;
        self.keys.resize(shown.metrics.len(), None);
        self.names.follow(shown, |at| self.keys[at] = None);
        for_each_row(shown, self.sampling, |row| {
            let keys = match self.keys[row.metric] {
                Some(keys) if keys.desc == *row.desc => keys,
                _ => self.keys_of(&shown.metrics[row.metric].name, row.desc),
            };
            self.keys[row.metric] = Some(keys);
            self.push(time, keys, &row);
            let texts = [&self.instance_name, &self.value_text, &self.status];
            let bytes: usize = texts.iter().map(|text| text.values_slice().len()).sum();
            let is_full = self.metric.keys.len() >= ROWS
                || bytes + self.value_bytes.values_slice().len() >= BYTES;
            if is_full { write(self.take()?) } else { Ok(()) }
        })
    }

    /// The rows that are not in a batch yet, if there are any.
    ///
    /// # Errors
    /// The batch cannot be made.
    pub fn rest(&mut self) -> Result<Option<RecordBatch>, ExportError> {
        if self.metric.keys.is_empty() { Ok(None) } else { self.take().map(Some) }
    }

    fn keys_of(&mut self, metric: &str, desc: &Desc) -> Keys {
        Keys {
            desc: *desc,
            metric: self.metric.place(metric),
            value_type: self.types.place(&desc.value_type.to_string()),
            semantics: self.semantics.place(&desc.semantics.to_string()),
            units: self.units.place(&desc.units.to_string()),
        }
    }

    fn push(&mut self, time: i64, keys: Keys, row: &Row<'_>) {
        self.time.append_value(time);
        self.host.keys.push(0);
        self.metric.keys.push(keys.metric);
        self.types.keys.push(keys.value_type);
        self.semantics.keys.push(keys.semantics);
        self.units.keys.push(keys.units);
        self.instance.append_option(row.instance);
        self.instance_name.append_option(row.instance_name);
        let (mut number, mut int64, mut uint64) = (None, None, None);
        let (mut string, mut bytes, mut status) = (None, None, None);
        match row.content {
            Ok(Value::I32(value)) => number = Some(value.into()),
            Ok(Value::U32(value)) => number = Some(value.into()),
            // The nearest double.
            Ok(Value::I64(value)) => {
                (number, int64) = (Some(value as f64), Some(value));
            }
            Ok(Value::U64(value)) => {
                (number, uint64) = (Some(value as f64), Some(value));
            }
            Ok(Value::F32(value)) => number = Some(value.into()),
            Ok(Value::F64(value)) => number = Some(value),
            Ok(Value::Text(value)) => string = Some(text(value)),
            Ok(Value::Bytes(value)) => bytes = Some(value),
            Err(without) => {
                self.scratch.clear();
                let _ = std::fmt::Write::write_fmt(&mut self.scratch, format_args!("{without}"));
                status = Some(&*self.scratch);
            }
        }
        self.value.append_option(number);
        self.value_int64.append_option(int64);
        self.value_uint64.append_option(uint64);
        self.value_text.append_option(string);
        self.value_bytes.append_option(bytes);
        self.status.append_option(status);
    }

    fn take(&mut self) -> Result<RecordBatch, ExportError> {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(self.time.finish()),
            self.host.take()?,
            self.metric.take()?,
            Arc::new(self.instance.finish()),
            Arc::new(self.instance_name.finish()),
            self.types.take()?,
            self.semantics.take()?,
            self.units.take()?,
            Arc::new(self.value.finish()),
            Arc::new(self.value_int64.finish()),
            Arc::new(self.value_uint64.finish()),
            Arc::new(self.value_text.finish()),
            Arc::new(self.value_bytes.finish()),
            Arc::new(self.status.finish()),
        ];
        RecordBatch::try_new(Arc::clone(&self.schema), columns).map_err(refused)
    }
}

/// A time as Arrow represents it.
fn nanoseconds(time: Timestamp) -> Result<i64, ExportError> {
    let seconds = time.sec.checked_mul(1_000_000_000);
    let time_of = seconds.and_then(|seconds| seconds.checked_add(time.nsec.into()));
    time_of.ok_or(ExportError::Time(time))
}

/// Converts an error of the libraries. If the system caused it, the result is
/// the system's error.
pub fn refused(error: impl std::error::Error + 'static) -> ExportError {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&error);
    while let Some(one) = cause {
        if let Some(error) = one.downcast_ref::<std::io::Error>() {
            return std::io::Error::new(error.kind(), error.to_string()).into();
        }
        cause = one.source();
    }
    ExportError::Form(error.to_string())
}

//! The table as Parquet with Snappy compression, which every reader knows.

use std::sync::Arc;

use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;

use super::Schema;
use super::columns::{Columns, metadata, refused};
use super::destination::Destination;
use super::exporter::{ExportError, Exporter};
use crate::engine::ReportSample;

/// Number of rows in a row group. Readers skip row groups or share them among
/// processors.
const ROWS: usize = 1024 * 1024;

/// Number of bytes after which a row group ends, even with few rows. It is in
/// memory until then.
const BYTES: usize = 64 * 1024 * 1024;

/// Writes Parquet, with a row group for each batch of rows.
pub struct Parquet {
    columns: Columns,
    writer: ArrowWriter<Destination>,
}

impl Parquet {
    pub fn begin(schema: &Schema, destination: Destination) -> Result<Parquet, ExportError> {
        let columns = Columns::new(schema);
        // Not all readers find the metadata where Arrow puts its own.
        let metadata = metadata(schema).map(|(key, value)| KeyValue::new(key, value)).collect();
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_max_row_group_row_count(Some(ROWS))
            .set_max_row_group_bytes(Some(BYTES))
            .set_key_value_metadata(Some(metadata))
            .set_created_by(concat!("pmderive ", env!("CARGO_PKG_VERSION")).to_owned())
            .build();
        let bare = arrow_schema::Schema::clone(columns.schema())
            .with_metadata(arrow_schema::Metadata::default());
        let writer = ArrowWriter::try_new(destination, Arc::new(bare), Some(properties));
        Ok(Parquet { columns, writer: writer.map_err(refused)? })
    }
}

impl Exporter for Parquet {
    fn sample(&mut self, shown: &ReportSample<'_>) -> Result<(), ExportError> {
        let Parquet { columns, writer } = self;
        columns.sample(shown, |batch| writer.write(&batch).map_err(refused))
    }

    fn finish(mut self: Box<Self>) -> Result<Destination, ExportError> {
        if let Some(batch) = self.columns.rest()? {
            self.writer.write(&batch).map_err(refused)?;
        }
        self.writer.into_inner().map_err(refused)
    }
}

//! The table as Arrow IPC. A file gets the file form, which can be mapped and
//! read from anywhere. A stream gets the stream form.

use std::io::Write;

use arrow_array::RecordBatch;
use arrow_ipc::writer::{DictionaryHandling, FileWriter, IpcWriteOptions, StreamWriter};

use super::Schema;
use super::columns::{Columns, refused};
use super::destination::Destination;
use super::exporter::{ExportError, Exporter};
use crate::engine::ReportSample;

/// Writes Arrow IPC, with a record batch for each batch of rows.
pub struct Arrow {
    columns: Columns,
    writer: Writer,
}

enum Writer {
    File(FileWriter<Destination>),
    Stream(StreamWriter<Destination>),
}

impl Arrow {
    pub fn begin(schema: &Schema, destination: Destination) -> Result<Arrow, ExportError> {
        let columns = Columns::new(schema);
        // In files, this is the only way for a dictionary to grow.
        let options =
            IpcWriteOptions::default().with_dictionary_handling(DictionaryHandling::Delta);
        let schema = columns.schema();
        let writer = match destination.is_stream() {
            false => Writer::File(
                FileWriter::try_new_with_options(destination, schema, options).map_err(refused)?,
            ),
            true => Writer::Stream(
                StreamWriter::try_new_with_options(destination, schema, options)
                    .map_err(refused)?,
            ),
        };
        Ok(Arrow { columns, writer })
    }
}

impl Writer {
    fn write(&mut self, batch: &RecordBatch) -> Result<(), ExportError> {
        match self {
            Writer::File(writer) => writer.write(batch),
            Writer::Stream(writer) => writer.write(batch),
        }
        .map_err(refused)
    }
}

impl Exporter for Arrow {
    fn sample(&mut self, shown: &ReportSample<'_>) -> Result<(), ExportError> {
        let Arrow { columns, writer } = self;
        columns.sample(shown, |batch| writer.write(&batch))
    }

    fn flush(&mut self) -> Result<(), ExportError> {
        if let Some(batch) = self.columns.rest()? {
            self.writer.write(&batch)?;
        }
        match &mut self.writer {
            Writer::File(writer) => writer.get_mut().flush()?,
            Writer::Stream(writer) => writer.get_mut().flush()?,
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<Destination, ExportError> {
        if let Some(batch) = self.columns.rest()? {
            self.writer.write(&batch)?;
        }
        match self.writer {
            // Both have written their ends.
            Writer::File(writer) => writer.into_inner(),
            Writer::Stream(writer) => writer.into_inner(),
        }
        .map_err(refused)
    }
}

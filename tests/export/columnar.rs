//! Arrow and Parquet, read back with the crates that write them.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use crate::choosing::choosing;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, Int64Type, TimestampNanosecondType, UInt64Type};
use arrow_array::{Array, RecordBatch, StringArray};
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_schema::{Schema, SchemaRef};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use pmderive::SourceMap;
use pmderive::diag::Diagnostics;
use pmderive::dialect::Dialect;
use pmderive::engine::{Backend, Definitions, Engine, Registry, ReportSample, Space};
use pmderive::report::table::{Destination, Format, Sampling, export};
use pmderive_runtime::context::Context as Source;

use crate::command::{pmderive, run};
use crate::counting::most;
use crate::rows::{Content, Row};
use crate::{FLEET, SHOP, compare, for_each_table};

/// All rows of batches; checks that exactly the columns have values that
/// should.
fn rows(batches: &[RecordBatch]) -> Vec<Row> {
    batches.iter().flat_map(|batch| (0..batch.num_rows()).map(|at| row(batch, at))).collect()
}

fn row(batch: &RecordBatch, at: usize) -> Row {
    let column = |name: &str| batch.column_by_name(name).expect("a column");
    let is_there = |name: &str| column(name).is_valid(at);
    let word = |name: &str| {
        let dictionary = column(name).as_dictionary::<Int32Type>();
        let values: &StringArray = dictionary.values().as_string();
        values.value(dictionary.key(at).expect("not null")).to_owned()
    };
    let text =
        |name: &str| is_there(name).then(|| column(name).as_string::<i32>().value(at).to_owned());
    let value_type = word("type");
    let value = || column("value").as_primitive::<Float64Type>().value(at);
    let names = ["value", "value_int64", "value_uint64", "value_text", "value_bytes", "status"];
    let there: Vec<&str> = names.into_iter().filter(|name| is_there(name)).collect();
    let content = match &there[..] {
        ["value", "value_int64"] => {
            assert_eq!(value_type, "64");
            let exact = column("value_int64").as_primitive::<Int64Type>().value(at);
            assert_eq!(value(), exact as f64);
            Content::I64(exact)
        }
        ["value", "value_uint64"] => {
            assert_eq!(value_type, "U64");
            let exact = column("value_uint64").as_primitive::<UInt64Type>().value(at);
            assert_eq!(value(), exact as f64);
            Content::U64(exact)
        }
        ["value"] => Content::double(value()),
        ["value_text"] => Content::Text(text("value_text").expect("it is there")),
        ["value_bytes"] => {
            Content::Bytes(column("value_bytes").as_binary::<i32>().value(at).into())
        }
        ["status"] => Content::Status(text("status").expect("it is there")),
        other => panic!("{other:?}"),
    };
    let instance = column("instance").as_primitive::<Int32Type>();
    Row {
        time: column("time").as_primitive::<TimestampNanosecondType>().value(at),
        metric: word("metric"),
        instance: is_there("instance").then(|| instance.value(at)),
        instance_name: text("instance_name"),
        value_type,
        semantics: word("semantics"),
        units: word("units"),
        content,
    }
}

fn read_arrow(path: &Path) -> (SchemaRef, Vec<RecordBatch>) {
    let reader = FileReader::try_new(File::open(path).expect("a file"), None).expect("Arrow");
    (reader.schema(), reader.map(|batch| batch.expect("a batch")).collect())
}

fn read_parquet(path: &Path) -> (SchemaRef, Vec<RecordBatch>) {
    let file = File::open(path).expect("a file");
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).expect("Parquet");
    let keys = builder.metadata().file_metadata().key_value_metadata().expect("metadata").iter();
    let keys = keys.filter(|one| one.key.starts_with("pcp."));
    let keys = keys.map(|one| (one.key.clone(), one.value.clone().expect("a value")));
    let keys: arrow_schema::Metadata = keys.collect();
    let schema = Schema::clone(builder.schema()).with_metadata(keys);
    let reader = builder.build().expect("a reader");
    (Arc::new(schema), reader.map(|batch| batch.expect("a batch")).collect())
}

#[test]
fn arrow_and_parquet_hold_what_eval_prints() {
    let folder = tempfile::tempdir().expect("a folder");
    for_each_table(|arguments, expected| {
        let written = |name: &str| {
            let path = folder.path().join(name);
            let run = run(&[&["export", "-o", path.to_str().expect("UTF-8")], arguments].concat());
            assert!(run.status.is_some_and(|status| status < 2), "{}", run.err);
            path
        };
        let (arrow_schema, arrow) = read_arrow(&written("table.arrow"));
        compare(arguments, &rows(&arrow), expected);
        let (parquet_schema, parquet) = read_parquet(&written("table.parquet"));
        compare(arguments, &rows(&parquet), expected);
        assert_eq!(arrow_schema, parquet_schema);
        assert!(arrow_schema.metadata().contains_key("pcp.source"));
    });
}

#[test]
fn a_pipe_gets_the_form_for_streams() {
    let arguments = ["export", "-a", FLEET, "-c", SHOP, "--format", "arrow"];
    let stream = pmderive(&arguments).output().expect("the command runs").stdout;
    let reader = StreamReader::try_new(&stream[..], None).expect("a stream");
    let streamed: Vec<RecordBatch> = reader.map(|batch| batch.expect("a batch")).collect();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("table.arrow");
    assert_eq!(
        run(&[&arguments[..], &["-o", path.to_str().expect("UTF-8")]].concat()).status,
        Some(0)
    );
    assert_eq!(rows(&streamed), rows(&read_arrow(&path).1));
}

/// Another choice has other metrics at the same positions, with metadata that may be equal.
#[test]
fn rows_have_the_names_of_the_metrics_of_their_sample() {
    let definitions = Definitions::default();
    for name in ["z.one", "z.two"] {
        definitions.register(name, "mem.physmem * 1").expect("a good definition");
    }
    let registry = &definitions.snapshot().registry;
    let [one, two] = ["z.one", "z.two"].map(|name| registry.get(name).expect("registered"));
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("table");
    for format in [Format::Csv, Format::Arrow, Format::Parquet] {
        let mut diagnostics = Diagnostics::default();
        let engine = Arc::new(Engine::new(Dialect::Fixed, Backend::Interp));
        let source = Source::archive(FLEET).expect("an archive");
        let mut session =
            choosing(engine, source, registry, &[one, two], &mut diagnostics).expect("it binds");
        let (metrics, source) = session.metrics_and_source();
        let facts =
            pmderive::report::table::Schema::look_up(metrics, registry, source, Sampling::Records);
        let destination = Destination::file(&path).expect("a file");
        let mut exporter =
            export(format, &facts.expect("metadata"), destination).expect("it begins");
        let mut space = Space::default();
        for choice in [vec![one, two], vec![two], vec![two, one]] {
            session.choose(&choice, &mut diagnostics).expect("it binds");
            let sample = session.sample(&mut space).expect("a sample");
            let domains = vec![None; sample.metrics.len()];
            let shown = ReportSample::new("fleet", sample.metrics, &sample.values, &domains);
            exporter.sample(&shown).expect("it is written");
        }
        exporter.finish().expect("its end").complete().expect("a file");
        let found: Vec<String> = match format {
            Format::Arrow => rows(&read_arrow(&path).1).into_iter().map(|row| row.metric).collect(),
            Format::Parquet => {
                rows(&read_parquet(&path).1).into_iter().map(|row| row.metric).collect()
            }
            _ => {
                let text = std::fs::read_to_string(&path).expect("a file");
                let name = |line: &str| line.split(',').nth(2).expect("a column").to_owned();
                text.lines().skip(1).map(name).collect()
            }
        };
        assert_eq!(found, ["z.one", "z.two", "z.two", "z.two", "z.one"], "{format:?}");
    }
}

/// Twice as many rows take no more memory, in any form.
#[test]
fn memory_does_not_grow_with_the_table() {
    let mut sources = SourceMap::default();
    let mut diagnostics = Diagnostics::default();
    let mut registry = Registry::new(Dialect::Fixed);
    registry.load(SHOP, &mut sources, &mut diagnostics);
    let selection: Vec<_> = registry.definitions().iter().map(|one| &**one).collect();
    let engine = Arc::new(Engine::new(Dialect::Fixed, Backend::Interp));
    let source = Source::archive(FLEET).expect("an archive");
    let mut session =
        choosing(engine, source, &registry, &selection, &mut diagnostics).expect("it binds");
    let (metrics, source) = session.metrics_and_source();
    let facts =
        pmderive::report::table::Schema::look_up(metrics, &registry, source, Sampling::Records)
            .expect("metadata");
    let mut space = Space::default();
    session.sample(&mut space).map(|_| ()).expect("a sample");
    let sample = session.sample(&mut space).expect("a sample");
    let domains = vec![None; sample.metrics.len()];
    let shown = ReportSample::new("fleet", sample.metrics, &sample.values, &domains);
    let folder = tempfile::tempdir().expect("a folder");
    for format in [Format::Csv, Format::Json, Format::Arrow, Format::Parquet] {
        let destination = Destination::file(&folder.path().join("table")).expect("a file");
        let mut exporter = export(format, &facts, destination).expect("it begins");
        let mut samples = |count| {
            most(|| (0..count).for_each(|_| exporter.sample(&shown).expect("it is written")))
        };
        // More rows than a batch has; of Parquet than a row group has.
        let count = if format == Format::Parquet { 150_000 } else { 15_000 };
        let before = samples(count);
        let after = samples(2 * count);
        assert!(after < before + before / 10 + (1 << 16), "{format:?}: {before}, then {after}");
        exporter.finish().expect("its end").complete().expect("a file");
    }
}

//! The rule of all errors: `source()` does not repeat the text of `Display`.

use std::collections::BTreeSet;
use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

use pmderive::internal::replay::ReplayError;
use pmderive::metadata::RecordedMetadata;
use pmderive::record::RecorderError;
use pmderive::report::table::ExportError;
use pmderive::runtime::archive_writer::WriteError;
use pmderive::runtime::fetch_group::ExtendError;
use pmderive::runtime::name_space::NameSpaceError;
use pmderive::runtime::pdu::{DecodeError, Problem};
use pmderive::runtime::proto::ProtocolError;
use pmderive::runtime::record_mode::RecordError;
use pmderive::runtime::source::SourceError;
use pmderive::runtime::time::{ReportingError, WindowError, WindowOption};

/// What the code of an error with another one inside has.
const MARKS: [&str; 4] = ["#[source]", "#[from]", "r#source:", "fn source(&self) -> Option<"];

fn io() -> io::Error {
    io::Error::other("the disk is on fire")
}

/// Errors with others inside, by the file of their type.
fn errors() -> Vec<(&'static str, Box<dyn Error>)> {
    let (target, path) = (|| "web17".to_owned(), || PathBuf::from("a.0"));
    let lost = || SourceError::Io { target: target(), source: io() };
    let problem = Problem::Trailing { bytes: 3 };
    let undecodable = DecodeError { structure: "Result", field: "len", offset: 4, problem };
    let undecodable = Box::new(ProtocolError::from(undecodable));
    let no_case = serde_json::from_str::<u32>("x").expect_err("no number");
    let no_metadata = RecordedMetadata::from_json(b"x").expect_err("no metadata");
    let (option, text, offset) = (WindowOption::Start, "x".to_owned(), 0);
    let no_time = WindowError { option, text, offset, problem: "no time" };
    vec![
        ("runtime/core/src/source/error.rs", lost().into()),
        (
            "runtime/core/src/source/error.rs",
            SourceError::Connect { target: target(), help: "is it up?", source: io() }.into(),
        ),
        (
            "runtime/core/src/source/error.rs",
            SourceError::Malformed { target: target(), source: undecodable }.into(),
        ),
        (
            "runtime/archive/src/archive_writer/error.rs",
            WriteError::Io { path: path(), source: io() }.into(),
        ),
        (
            "runtime/archive/src/record_mode/error.rs",
            RecordError::Io { path: path(), source: io() }.into(),
        ),
        ("runtime/src/fetch_group/spec.rs", ExtendError::from(lost()).into()),
        (
            "runtime/src/name_space/error.rs",
            NameSpaceError::Open { file: "root".to_owned(), source: io() }.into(),
        ),
        ("runtime/system/src/time/options.rs", ReportingError::Zone(lost()).into()),
        ("runtime/system/src/time/options.rs", ReportingError::Window(no_time).into()),
        ("src/metadata/read.rs", no_metadata.into()),
        ("src/record/error.rs", RecorderError::from(lost()).into()),
        ("src/replay.rs", ReplayError::Case { line: 1, source: no_case }.into()),
        ("src/report/table/exporter.rs", ExportError::from(io()).into()),
    ]
}

#[test]
fn no_cause_is_said_twice() {
    for (file, error) in errors() {
        let (mut said, mut cause) = (error.to_string(), error.source());
        while let Some(error) = cause {
            let text = error.to_string();
            assert!(!said.contains(&text), "{file}: {text:?} is in {said:?} already");
            (said, cause) = (text, error.source());
        }
    }
}

/// The files of the library that have a mark.
fn marked(folder: &Path, found: &mut BTreeSet<String>) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for entry in std::fs::read_dir(root.join(folder)).expect("a folder") {
        let path = folder.join(entry.expect("a folder").file_name());
        let is_source = path.extension().is_some_and(|extension| extension == "rs");
        // Errors of the command are not the library's.
        if root.join(&path).is_dir() && path != Path::new("src/cli") {
            marked(&path, found);
        } else if is_source {
            let text = std::fs::read_to_string(root.join(&path)).expect("a file");
            let is_marked = MARKS.iter().any(|mark| text.contains(mark));
            found.extend(is_marked.then(|| path.display().to_string()));
        }
    }
}

#[test]
fn the_table_has_every_error_with_another_one_inside() {
    let mut found = BTreeSet::new();
    marked(Path::new("src"), &mut found);
    marked(Path::new("runtime"), &mut found);
    let known: BTreeSet<String> = errors().iter().map(|(file, _)| (*file).to_owned()).collect();
    assert_eq!(found, known);
}

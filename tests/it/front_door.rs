//! The crates' front doors: few modules are public and documented.

use std::path::Path;
use std::sync::Arc;

use pmderive::engine::{Compiled, Examination, Refused, Snapshot};
use pmderive::metadata::RecordedMetadata;
use pmderive::record::{Recorder, RecorderError};
use pmderive::report::samples::Renderer;
use pmderive::report::table::{Destination, ExportError, Exporter};
use pmderive::runtime::archive::ArchiveContext;
use pmderive::runtime::archive_writer::WriteError;
use pmderive::runtime::context::{AsyncHostContext, ConnectOptions, Context, HostSpec};
use pmderive::runtime::eval::{Evaluator, Workspace};
use pmderive::runtime::fetch_group::FetchGroup;
use pmderive::runtime::model::LabelSet;
use pmderive::runtime::result::FetchResult;
use pmderive::runtime::source::{FetchList, SourceError};
use pmderive::runtime::time::TimeZone;
use pmderive::{Definitions, Diagnostics, Engine, Registry, Session, SourceMap, Space};

/// The largest number of shown modules.
const MOST: usize = 15;

/// The names of modules in the text of a `lib.rs` that its documentation shows:
/// its own public ones, and those that it re-exports from other crates.
fn shown_modules(text: &str) -> Vec<&str> {
    let mut shown = Vec::new();
    let mut is_hidden = false;
    let mut text = text.lines();
    while let Some(line) = text.next() {
        if line == "#[doc(hidden)]" {
            is_hidden = true;
        } else if let Some(module) = line.strip_prefix("pub mod ") {
            let name = module.trim_end_matches([';', '{', '}', ' ']);
            shown.extend((!is_hidden).then_some(name));
            is_hidden = false;
        } else if let Some(first) = line.strip_prefix("pub use pmderive_") {
            let mut list = vec![first];
            while !list[list.len() - 1].ends_with(';') {
                list.push(text.next().expect("the end of the list"));
            }
            let names = list.iter().flat_map(|line| line.split([' ', ',', '{', '}', ';', ':']));
            let names = names.filter(|name| !name.is_empty()).skip(1);
            let renamed = |name: &&str| *name != "as";
            shown.extend(names.filter(renamed).filter(|_| !is_hidden));
            is_hidden = false;
        }
    }
    shown
}

#[test]
fn few_modules_are_shown() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (file, known) in [("src/lib.rs", "engine"), ("runtime/src/lib.rs", "archive_writer")] {
        let text = std::fs::read_to_string(root.join(file)).expect("the crate's root");
        let shown = shown_modules(&text);
        assert!(shown.contains(&known), "{file}: {shown:?}");
        assert!(shown.len() <= MOST, "{file} shows {}: {shown:?}", shown.len());
    }
}

#[test]
fn modules_are_counted() {
    let text = "pub mod a;\n#[doc(hidden)]\npub mod b;\nmod c;\npub mod d {}\n\
                pub use pmderive_x::{e, f};\n#[doc(hidden)]\npub use pmderive_x::{\n    g,\n};\n\
                pub use pmderive_y as h;\n";
    assert_eq!(shown_modules(text), ["a", "d", "e", "f", "h"]);
}

/// What a program keeps may go to any thread, and what it shares to several.
#[test]
fn what_is_kept_moves_between_threads() {
    fn moves<T: Send + std::fmt::Debug>() {}
    fn is_shared<T: Send + Sync + std::fmt::Debug>() {}
    moves::<Destination>();
    moves::<Box<dyn Exporter>>();
    moves::<Box<dyn Renderer>>();
    moves::<(Session<Context>, Session<ArchiveContext>)>();
    moves::<(Evaluator, Workspace, Space)>();
    moves::<(AsyncHostContext, FetchGroup<Context>, Recorder<ArchiveContext>)>();
    is_shared::<(Engine, Definitions, Registry, Snapshot, Arc<Compiled>)>();
    is_shared::<(Diagnostics, SourceMap, Examination, RecordedMetadata)>();
    is_shared::<(FetchList, FetchResult, HostSpec, ConnectOptions, TimeZone, LabelSet)>();
    is_shared::<(SourceError, WriteError, RecorderError, ExportError, Refused)>();
}

//! Files in the form of the protocol, and the texts that are open in the editor.

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lsp_types::Uri;
use pmderive_runtime::percent;

use crate::syntax::read_definition_file;

/// The usual endings of definition files.
pub const ENDINGS: [&str; 2] = ["conf", "derived"];

/// An open text in its present state.
#[derive(Clone, Debug)]
pub struct Open {
    /// The number of this state, which no other state of any text has.
    pub revision: u64,
    /// The text.
    pub text: Arc<str>,
}

/// The open texts, by their [`key`].
#[derive(Clone, Debug, Default)]
pub struct OpenTexts(HashMap<String, Open>);

/// One spelling of a URI: clients differ in the characters that they encode.
pub fn key(uri: &Uri) -> String {
    let usual = path_of(uri).as_deref().and_then(uri_of);
    usual.as_ref().unwrap_or(uri).as_str().to_owned()
}

impl OpenTexts {
    /// Opens a text, or replaces it.
    pub fn set(&mut self, uri: &Uri, revision: u64, text: impl Into<Arc<str>>) {
        self.0.insert(key(uri), Open { revision, text: text.into() });
    }

    /// An open text.
    pub fn get(&self, uri: &Uri) -> Option<&Open> {
        self.0.get(&key(uri))
    }

    /// The text of an open file.
    pub fn of_path(&self, path: &Path) -> Option<&Open> {
        self.0.get(uri_of(path)?.as_str())
    }

    /// The open files.
    pub fn paths(&self) -> impl Iterator<Item = PathBuf> {
        self.0.keys().filter_map(|uri| path_of(&uri.parse().ok()?))
    }

    /// Closes a text.
    pub fn close(&mut self, uri: &Uri) {
        self.0.remove(&key(uri));
    }

    /// The text of a file, from the editor or else from disk. `None` if it cannot be read or is
    /// not UTF-8.
    pub fn read(&self, path: &Path) -> Option<Arc<str>> {
        match self.of_path(path).map(|open| Arc::clone(&open.text)) {
            Some(text) => Some(text),
            None => {
                // In a text that is not UTF-8, places would be wrong.
                let text = String::from_utf8(read_definition_file(path).ok()?).ok()?;
                Some(text.into())
            }
        }
    }
}

/// The path of a `file:` URI.
pub fn path_of(uri: &Uri) -> Option<PathBuf> {
    let rest = uri.as_str().strip_prefix("file://")?;
    // A host may stand before the path; only local files can be read.
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    let path = path.split(['?', '#']).next().filter(|path| path.starts_with('/'))?;
    let bytes = percent::decoded(path, b'+').ok()?;
    Some(PathBuf::from(OsString::from_vec(bytes)))
}

/// The `file:` URI of an absolute path.
pub fn uri_of(path: &Path) -> Option<Uri> {
    let mut text = "file://".to_owned();
    percent::push_path(&mut text, path.as_os_str().as_bytes());
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_uris_lead_to_each_other() {
        for path in ["/a/b.conf", "/with space/ä%20.conf", "/q?#.conf"] {
            let uri = uri_of(Path::new(path)).expect("it is absolute");
            assert_eq!(path_of(&uri).as_deref(), Some(Path::new(path)), "{}", uri.as_str());
        }
        let uri = |text: &str| text.parse::<Uri>().expect("it is one");
        assert_eq!(path_of(&uri("untitled:Untitled-1")), None);
        assert_eq!(path_of(&uri("file://other/host")), None);
        assert_eq!(path_of(&uri("file://localhost/x")).as_deref(), Some(Path::new("/x")));
    }
}

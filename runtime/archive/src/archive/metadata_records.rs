//! Everything that the metadata of archives say, in the order in which it was written.
//! It serves to copy an archive, not to answer questions about it.
//!
//! Input: metadata files, record by record, one archive after the other. Output:
//! descriptors, texts, labels and whole instance domains, with differences applied.
//! Only the domains are remembered.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use pmderive_core::model::{
    InDom, InstanceDomain, LabelLevel, LabelSet, MetricDesc, TextKind, TextSubject, Timestamp,
    text_of_bytes, until_nul,
};
use pmderive_core::source::SourceError;

use crate::archive::bytes::Window;
use crate::archive::files::Member;
use crate::archive::framing::{Damage, ReadError};
use crate::archive::label::{ArchiveLabel, Role};
use crate::archive::meta_contents::{Decoded, NextRecord, decode, next_record};
use crate::archive::opening::open_all;
use crate::archive::options::OpenOptions;
use crate::archive::resolve::resolve;

/// The contents of one metadata record.
#[derive(Clone, Debug, PartialEq)]
pub enum MetadataRecord {
    /// A metric with its names, or further names of a known metric.
    Metric {
        /// The descriptor.
        desc: MetricDesc,
        /// The names.
        names: Vec<Box<str>>,
    },
    /// The instances of a domain from a time on.
    Instances {
        /// The time from which they hold.
        time: Timestamp,
        /// The domain.
        indom: InDom,
        /// All instances, in order of their identifiers.
        domain: Arc<InstanceDomain>,
    },
    /// The labels of a level from a time on.
    Labels {
        /// The time from which they hold.
        time: Timestamp,
        /// The level.
        level: LabelLevel,
        /// The label sets. Only the level of instances has several.
        sets: Vec<LabelSet>,
    },
    /// A help text. It has no time.
    Text {
        /// The subject of the text.
        of: TextSubject,
        /// One line, or the long text.
        kind: TextKind,
        /// The text.
        text: Box<str>,
    },
}

/// The metadata records of one or several archives. The earliest archive comes first;
/// the records of each come in the order of its file. The iterator ends after the first
/// error.
///
/// Records that no reader uses are left out: lists without instances, labels of an
/// unknown level, texts of an unknown kind, and an incomplete last record (see
/// [`crate::archive::ArchiveContext::take_warnings`]).
pub struct MetadataRecords {
    /// The files that were not read yet, in reverse order.
    files: Vec<Member>,
    /// The current file, its name, and the offset of its next record.
    current: Option<(Window, String, u64)>,
    domains: HashMap<InDom, Arc<InstanceDomain>>,
    is_done: bool,
}

impl fmt::Debug for MetadataRecords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MetadataRecords").field("is_done", &self.is_done).finish_non_exhaustive()
    }
}

impl MetadataRecords {
    /// Opens the metadata of archives. `path` names them as for
    /// [`crate::archive::ArchiveContext::open`]. Archives that this leaves out are left
    /// out here as well.
    ///
    /// # Errors
    /// The errors of [`crate::archive::ArchiveContext::open`].
    pub fn open(path: &Path) -> Result<MetadataRecords, SourceError> {
        let archives = open_all(resolve(path, None)?, OpenOptions::default())?.archives;
        let files = archives.iter().rev().map(|archive| archive.files.metadata.clone()).collect();
        Ok(MetadataRecords { files, current: None, domains: HashMap::new(), is_done: false })
    }

    /// The next record with contents. `None` at the end.
    fn read(&mut self) -> Result<Option<MetadataRecord>, SourceError> {
        loop {
            if let Some((window, name, next)) = &mut self.current {
                let read = read(window, next, &mut self.domains);
                if let Some(record) = read.map_err(|error| error.in_file(name))? {
                    return Ok(Some(record));
                }
            }
            let Some(file) = self.files.pop() else { return Ok(None) };
            let name = file.name();
            let opened = file.open().map_err(ReadError::Io).and_then(|file| {
                let mut window = Window::new(file);
                let label = ArchiveLabel::read(&mut window, Role::Metadata)?;
                Ok((window, label.version.label_size() as u64))
            });
            let (window, next) = opened.map_err(|error| error.in_file(&name))?;
            self.current = Some((window, name, next));
        }
    }
}

/// The next record of a file that has contents. `None` at its end.
fn read(
    window: &mut Window,
    next: &mut u64,
    domains: &mut HashMap<InDom, Arc<InstanceDomain>>,
) -> Result<Option<MetadataRecord>, ReadError> {
    loop {
        let offset = *next;
        let length = match next_record(window, offset)? {
            NextRecord::Record(length) => length,
            // An incomplete record is a warning of the context that the caller opens as
            // well.
            NextRecord::End(_) => return Ok(None),
        };
        *next += length as u64;
        let record = &window.at(offset, length)?[..length];
        if let Some(said) = decode(record, offset)? {
            return Ok(Some(complete(said, domains)?));
        }
    }
}

impl Iterator for MetadataRecords {
    type Item = Result<MetadataRecord, SourceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_done {
            return None;
        }
        let next = self.read().transpose();
        self.is_done = !matches!(next, Some(Ok(_)));
        next
    }
}

/// What a record says, with the whole domain in place of a difference.
fn complete(
    said: Decoded<'_>,
    domains: &mut HashMap<InDom, Arc<InstanceDomain>>,
) -> Result<MetadataRecord, Damage> {
    Ok(match said {
        Decoded::Metric(desc, names) => MetadataRecord::Metric { desc, names },
        Decoded::Instances(list) => {
            let (time, indom) = (list.stamp, list.indom);
            let domain = Arc::new(list.apply(domains.get(&indom).map(|domain| &**domain)));
            domains.insert(indom, Arc::clone(&domain));
            MetadataRecord::Instances { time, indom, domain }
        }
        Decoded::Labels(level, labels) => {
            MetadataRecord::Labels { time: labels.stamp, level, sets: labels.sets()? }
        }
        Decoded::Text((of, kind), bytes) => {
            MetadataRecord::Text { of, kind, text: text_of_bytes(until_nul(bytes)).into() }
        }
    })
}

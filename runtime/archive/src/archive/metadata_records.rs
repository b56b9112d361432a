//! Everything that the metadata of an archive says, in the order in which it
//! was written: for those who copy an archive, not for those who ask about it.
//!
//! Input: metadata files, record by record, one archive after the other. Output:
//! descriptors, texts, labels, and whole instance domains, with differences
//! applied. Only the domains are remembered.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use pmderive_core::model::{
    InDom, InstanceDomain, LabelLevel, LabelSet, MetricDesc, TextKind, TextSubject, Timestamp,
};
use pmderive_core::source::SourceError;

use crate::archive::bytes::Window;
use crate::archive::context::OpenOptions;
use crate::archive::domain_record::{Change, DomainRecord};
use crate::archive::files::Member;
use crate::archive::label::{ArchiveLabel, Role};
use crate::archive::labels::LabelRecord;
use crate::archive::layout;
use crate::archive::meta_contents::{Next, decode_desc, next_record, unknown_type};
use crate::archive::opening::open_all;
use crate::archive::record::{Damage, Fields, LENGTH_WORD, ReadError, Version, text, until_nul};
use crate::archive::resolve::resolve;
use crate::archive::texts::decode_text;

/// What one record of the metadata says.
#[derive(Clone, Debug, PartialEq)]
pub enum MetadataRecord {
    /// There is a metric, and these are its names, or further ones.
    Metric {
        /// Its descriptor.
        desc: MetricDesc,
        /// Names.
        names: Vec<Box<str>>,
    },
    /// From a time on a domain has these instances.
    Instances {
        /// Since when.
        time: Timestamp,
        /// The domain.
        indom: InDom,
        /// All its instances, in order of their identifiers.
        domain: Arc<InstanceDomain>,
    },
    /// From a time on a level has these labels.
    Labels {
        /// Since when.
        time: Timestamp,
        /// The level.
        level: LabelLevel,
        /// Its sets, several on the level of instances only.
        sets: Vec<LabelSet>,
    },
    /// A help text, which has no time.
    Text {
        /// What it is about.
        of: TextSubject,
        /// Which text.
        kind: TextKind,
        /// The text.
        text: Box<str>,
    },
}

/// The records of the metadata of an archive, or of several, the earliest
/// first, in the order of the files. Ends after the first error. Lists without
/// instances, labels of an unknown level and texts of an unknown kind are left
/// out, as no reader takes note of them, and so is a last record that is cut
/// short, see [`crate::archive::ArchiveContext::take_warnings`].
pub struct MetadataRecords {
    /// Files that were not read yet, the next one last.
    files: Vec<Member>,
    /// The file being read, its name, and the offset of its next record.
    current: Option<(Window, String, u64)>,
    domains: HashMap<InDom, Arc<InstanceDomain>>,
    is_done: bool,
}

impl MetadataRecords {
    /// Opens the metadata of archives, named as for
    /// [`crate::archive::ArchiveContext::open`]; those that this leaves out are
    /// left out here as well.
    ///
    /// # Errors
    /// As for that.
    pub fn open(path: &Path) -> Result<MetadataRecords, SourceError> {
        let archives = open_all(resolve(path, None)?, OpenOptions::default())?.archives;
        let files = archives.iter().rev().map(|archive| archive.files.metadata.clone()).collect();
        Ok(MetadataRecords { files, current: None, domains: HashMap::new(), is_done: false })
    }

    /// The next record that says something. `None` at the end.
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

/// The next record of a file that says something. `None` at its end.
fn read(
    window: &mut Window,
    next: &mut u64,
    domains: &mut HashMap<InDom, Arc<InstanceDomain>>,
) -> Result<Option<MetadataRecord>, ReadError> {
    loop {
        let offset = *next;
        let length = match next_record(window, offset)? {
            Next::Record(length) => length,
            // What is missing is a warning of the context that is opened beside.
            Next::End(_) => return Ok(None),
        };
        *next += length as u64;
        let record = &window.at(offset, length)?[..length];
        if let Some(record) = decode(record, offset, domains)? {
            return Ok(Some(record));
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

fn decode(
    record: &[u8],
    offset: u64,
    domains: &mut HashMap<InDom, Arc<InstanceDomain>>,
) -> Result<Option<MetadataRecord>, Damage> {
    let mut header = Fields::new("record", record, offset);
    header.u32("length")?;
    let at_type = header;
    let mut instances = |version, change| {
        let list = DomainRecord::decode(record, offset, version, change)?;
        // An empty list leaves the older one in force.
        if list.len() == 0 {
            return Ok(None);
        }
        let (time, indom) = (list.stamp, list.indom);
        let domain = Arc::new(list.apply(domains.get(&indom).map(|domain| &**domain)));
        domains.insert(indom, Arc::clone(&domain));
        Ok(Some(MetadataRecord::Instances { time, indom, domain }))
    };
    let labels = |version| {
        let labels = LabelRecord::decode(record, offset, version)?;
        let (time, level) = (labels.stamp, labels.level);
        let Some(level) = level else { return Ok(None) };
        Ok(Some(MetadataRecord::Labels { time, level, sets: labels.sets()? }))
    };
    match header.u32("type")? {
        layout::DESC => {
            let (desc, names) = decode_desc(&record[..record.len() - LENGTH_WORD], offset)?;
            Ok(Some(MetadataRecord::Metric { desc, names }))
        }
        layout::INSTANCES_V2 => instances(Version::V2, Change::Whole),
        layout::INSTANCES => instances(Version::V3, Change::Whole),
        layout::INSTANCES_DELTA => instances(Version::V3, Change::Difference),
        layout::LABELS_V2 => labels(Version::V2),
        layout::LABELS => labels(Version::V3),
        layout::TEXT => Ok(decode_text(record, offset)?.map(|((of, kind), bytes)| {
            MetadataRecord::Text { of, kind, text: text(until_nul(bytes)) }
        })),
        kind => Err(unknown_type(&at_type, kind)),
    }
}

//! Small archives to damage, and their contents while they are whole.

use std::fs;
use std::ops::Range;
use std::path::PathBuf;

use pmderive_runtime::archive::ArchiveContext;
use pmderive_runtime::model::{InstId, PmStatus, Pmid, RawValueRef, Timestamp};
use pmderive_runtime::result::ResultBatch;
use pmderive_runtime::source::{FetchList, FetchSource, Mode, SourceError};

use crate::counting::most;
use crate::suite::{everything, own};

/// The values of one metric in a record.
type Set = (Pmid, Result<Vec<(InstId, Vec<u8>)>, PmStatus>);

/// The result of one fetch.
pub type Fetched = (Timestamp, Vec<Set>);

/// The range of a record in its volume, and its number in the archive.
type Place = (Range<usize>, Option<usize>);

/// A small archive: its files by their suffixes, and its contents.
pub struct Subject {
    pub name: &'static str,
    folder: tempfile::TempDir,
    pub files: Vec<(String, Vec<u8>)>,
    /// Size of a label.
    pub label: usize,
    pub list: FetchList,
    /// All records except marks, in order.
    pub records: Vec<Fetched>,
    /// Places by the volume's suffix.
    pub places: Vec<(String, Vec<Place>)>,
    /// Times between records,
    pub times: Vec<Timestamp>,
    /// and the interpolated values there.
    pub between: Vec<Fetched>,
    pub end: Timestamp,
}

/// Largest memory for damage beyond a few times the size of the files: buffers.
const BUFFERS: usize = 3 << 20;

pub fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

pub fn records_of(bytes: &[u8], label: usize) -> Vec<Range<usize>> {
    let mut at = label;
    let mut places = Vec::new();
    while at < bytes.len() {
        let end = at + word(bytes, at) as usize;
        places.push(at..end);
        at = end;
    }
    places
}

fn fetched(batch: &ResultBatch) -> Fetched {
    let [part] = batch.parts() else { panic!("one part") };
    let sets = part.sets().map(|set| {
        let bytes = |value: RawValueRef<'_>| match value.encoded(&mut [0; 8]) {
            Ok((_, bytes)) => bytes.to_vec(),
            Err(word) => word.to_be_bytes().to_vec(),
        };
        let values = set.values().map(|(id, value)| (id, bytes(value.expect("checked")))).collect();
        (set.pmid, set.count.map(|_| values))
    });
    (part.timestamp, sets.collect())
}

/// Fetches up to the end, or until nothing but errors come.
pub fn read(context: &mut ArchiveContext, list: &FetchList) -> Vec<Result<Fetched, SourceError>> {
    let mut batch = ResultBatch::default();
    let (mut outcomes, mut in_a_row) = (Vec::new(), 0);
    while in_a_row < 5 && outcomes.len() < 2000 {
        match context.fetch(list, &mut batch) {
            Ok(_) => {
                in_a_row = 0;
                outcomes.push(Ok(fetched(&batch)));
            }
            Err(error) if error.is_end_of_archive() => break,
            Err(error) => {
                in_a_row += 1;
                outcomes.push(Err(error));
            }
        }
    }
    outcomes
}

pub fn backward(
    context: &mut ArchiveContext,
    list: &FetchList,
) -> Vec<Result<Fetched, SourceError>> {
    context.set_mode(Mode::Backward, Some(Timestamp::new(1 << 40, 0))).expect("a mode of archives");
    read(context, list)
}

pub fn at_times(
    context: &mut ArchiveContext,
    list: &FetchList,
    times: &[Timestamp],
) -> Vec<Result<Fetched, SourceError>> {
    let mut batch = ResultBatch::default();
    let mut fetch = |time: &Timestamp| {
        context.set_mode(Mode::Interpolated { step: 1 }, Some(*time)).expect("a mode of archives");
        context.fetch(list, &mut batch)?;
        Ok(fetched(&batch))
    };
    times.iter().map(&mut fetch).collect()
}

impl Subject {
    /// The first records of an archive, `limit` of them, in one volume or in two.
    pub fn new(name: &'static str, archive: &str, limit: usize, volumes: usize) -> Subject {
        let file =
            |suffix: &str| fs::read(own(&format!("{archive}.{suffix}"))).expect("it is there");
        let (metadata, index, mut volume) = (file("meta"), file("index"), file("0"));
        let label = word(&volume, 0) as usize;
        let places = records_of(&volume, label);
        let places: Vec<_> = places.into_iter().take(limit).collect();
        volume.truncate(places.last().expect("one fits").end);
        let mut files = vec![("meta".to_string(), metadata), ("index".to_string(), index)];
        if volumes == 2 {
            let middle = places[places.len() / 2].start;
            let mut second = volume[..label].to_vec();
            let number = if label == 808 { 24 } else { 20 };
            second[number..number + 4].copy_from_slice(&1u32.to_be_bytes());
            second.extend_from_slice(&volume[middle..]);
            files.push(("1".to_string(), second));
            volume.truncate(middle);
        }
        files.push(("0".to_string(), volume));
        let folder = tempfile::tempdir().expect("a folder");
        for (suffix, bytes) in &files {
            fs::write(folder.path().join(format!("a.{suffix}")), bytes).expect("space");
        }
        let mut context = ArchiveContext::open(folder.path().join("a")).expect("a good archive");
        let list = everything(&mut context);
        let good = |outcomes: Vec<Result<Fetched, SourceError>>| -> Vec<Fetched> {
            outcomes.into_iter().map(|outcome| outcome.expect("it is good")).collect()
        };
        let records = good(read(&mut context, &list));
        let end = context.end_time().expect("it is good");
        let start = context.label().start;
        let span = end.seconds_since(start);
        let times: Vec<Timestamp> = (0..7)
            .map(|i| Timestamp::new(start.sec, (span * 1e9 / 7.0 * f64::from(i)) as i64 + 1000))
            .collect();
        let between = good(at_times(&mut context, &list, &times));
        let mut number = 0;
        let mut places = Vec::new();
        for suffix in ["0", "1"] {
            let Some((_, bytes)) = files.iter().find(|(name, _)| name == suffix) else { continue };
            let count_at = if label == 808 { 16 } else { 12 };
            let of_volume = records_of(bytes, label).into_iter().map(|place| {
                let is_mark = word(bytes, place.start + count_at) == 0;
                number += usize::from(!is_mark);
                (place, (!is_mark).then(|| number - 1))
            });
            places.push((suffix.to_string(), of_volume.collect()));
        }
        assert_eq!(number, records.len(), "{name}");
        assert!(records.len() > 3, "{name}: too few records");
        Subject { name, folder, files, label, list, records, places, times, between, end }
    }

    /// A file as it is while the archive is whole.
    pub fn bytes(&self, suffix: &str) -> &[u8] {
        &self.files.iter().find(|(name, _)| name == suffix).expect("it has it").1
    }

    /// The base name of the archive.
    pub fn base(&self) -> PathBuf {
        self.folder.path().join("a")
    }

    pub fn path(&self, suffix: &str) -> PathBuf {
        self.folder.path().join(format!("a.{suffix}"))
    }

    /// Works with a context while one file has other bytes. Returns the result of
    /// opening.
    pub fn with<T>(
        &self,
        suffix: &str,
        bytes: &[u8],
        work: impl FnOnce(&mut ArchiveContext) -> T,
    ) -> Result<T, SourceError> {
        let good = self.bytes(suffix);
        fs::write(self.path(suffix), bytes).expect("space");
        let mut result = None;
        let taken = most(|| {
            let opened = ArchiveContext::open(self.base());
            result = Some(opened.map(|mut context| work(&mut context)));
        });
        fs::write(self.path(suffix), good).expect("space");
        assert!(taken < BUFFERS + 64 * bytes.len(), "{} {suffix}: {taken} bytes", self.name);
        result.expect("the work was done")
    }
}

//! A writer that stops at any moment leaves a readable archive on disk: the
//! beginning of the whole one.

use pmderive_runtime::archive::{ArchiveContext, Version};
use pmderive_runtime::archive_writer::{ArchiveWriter, MemoryFiles};
use pmderive_runtime::result::FetchResult;

use crate::synthetic::{options, write_everything};
use crate::tools::{print, scratch};

fn written(version: Version) -> MemoryFiles {
    let mut options = options(version);
    options.volume_bytes = Some(2000);
    let (writer, written) = ArchiveWriter::in_memory(options).expect("the label is good");
    write_everything(writer);
    written
}

/// All readable records, and true if an error instead of the end followed them.
fn records(mut context: ArchiveContext) -> (Vec<FetchResult>, bool) {
    let mut records = Vec::new();
    loop {
        match context.next_record() {
            Ok(record) => records.push(record),
            Err(error) => return (records, !error.is_end_of_archive()),
        }
    }
}

/// Number of files after `writes` writes. Two, metadata and a volume, are an
/// archive; the index comes next.
fn files(sizes: &[(usize, bool)], writes: usize) -> usize {
    sizes[..writes].iter().filter(|(_, is_first)| *is_first).count()
}

#[test]
fn every_beginning_of_the_writes_is_a_beginning_of_the_archive() {
    for version in [Version::V2, Version::V3] {
        let written = written(version);
        let sizes = written.sizes();
        let (whole, _) = records(written.open(sizes.len(), 0).expect("it is complete"));
        assert_eq!(whole.len(), 21);
        let (mut before, mut torn_metadata, mut refused) = (0, 0, 0);
        for writes in 0..sizes.len() {
            if files(&sizes, writes) < 2 {
                continue;
            }
            let (read, damaged) =
                records(written.open(writes, 0).expect("a whole number of writes"));
            assert!(!damaged && read[..] == whole[..read.len()], "{version:?} {writes}");
            assert!((before..=before + 1).contains(&read.len()), "{version:?} {writes}");
            before = read.len();
            // Files come into being as a whole.
            let (size, is_first) = sizes[writes];
            for bytes in (1..size).filter(|_| !is_first) {
                let open = || written.open(writes, bytes).expect("it is begun");
                let mut context = open();
                // Half a record of the metadata.
                if let [missing] = &context.take_warnings()[..] {
                    let missing = missing.to_string();
                    assert!(missing.contains(", but the file ends before its end"), "{missing}");
                    torn_metadata += 1;
                    refused += usize::from(open().pass_over_nothing().is_err());
                }
                let (part, _) = records(context);
                assert_eq!(part, read, "{version:?} {writes} and {bytes} bytes");
            }
        }
        // libpcp does not miss a record with fewer than 8 written bytes.
        assert!(refused > 0 && (torn_metadata - refused).is_multiple_of(7), "{refused}");
        assert!(torn_metadata > refused, "{torn_metadata}");
    }
}

#[test]
fn pcp_reads_every_beginning_of_the_writes() {
    for version in [Version::V2, Version::V3] {
        let written = written(version);
        let sizes = written.sizes();
        let folder = scratch();
        let save = |name: String, writes, bytes| {
            let base = folder.path().join(name);
            written.save(&base, writes, bytes).expect("there is room");
            base
        };
        let whole = save("whole".to_owned(), sizes.len(), 0);
        let Some(whole) = print("pmdumplog", &["-m"], &whole) else { return };
        for writes in 0..sizes.len() {
            if files(&sizes, writes) < 2 {
                continue;
            }
            let base = save(format!("cut{writes}"), writes, 0);
            let dump = print("pmdumplog", &["-m"], &base).expect("it is installed");
            assert!(whole.starts_with(dump.trim_end()), "{version:?} {writes}:\n{dump}");
            let checked = print("pmlogcheck", &[], &base).expect("it is installed");
            let expected = match files(&sizes, writes) {
                2 => format!("{}: warning temporal index is missing\n", base.display()),
                _ => String::new(),
            };
            assert_eq!(checked, expected, "{version:?} {writes}");
        }
    }
}

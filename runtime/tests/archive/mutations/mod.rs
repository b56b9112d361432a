//! Thousands of damaged copies of small archives. Whatever the damage, errors
//! name file and offset, values that it did not hit are those of the undamaged
//! archive, and memory stays small.
//!
//! `PMDERIVE_MUTATIONS=N` makes it N times as many copies.

mod allowed;
mod checks;
mod damage;
mod subject;

use std::fs;
use std::process::Command;

use allowed::Allowed;
use checks::Described;
use damage::Damage;
use subject::{Subject, backward, read};

use crate::choices::Choices;
use crate::suite::available;

fn subjects() -> Vec<Subject> {
    vec![
        Subject::new("version 3", "own-dyn", 6, 1),
        Subject::new("version 2", "own-dyn2", 6, 1),
        Subject::new("two volumes", "own-dyn", 9, 2),
        Subject::new("all types", "own-types", 5, 1),
    ]
}

/// Factor for the usual number of copies.
fn times() -> usize {
    std::env::var("PMDERIVE_MUTATIONS").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

#[test]
fn volumes_cut_anywhere_give_what_is_left() {
    for subject in subjects() {
        for (suffix, bytes) in &subject.files {
            if suffix == "0" || suffix == "1" {
                for cut in 0..=bytes.len() {
                    // Within a record, every byte is like its neighbours.
                    let is_near = subject.places.iter().any(|(name, places)| {
                        name == suffix
                            && places.iter().any(|(place, _)| place.end.abs_diff(cut) < 6)
                    });
                    if is_near || cut.is_multiple_of((47 / times()).max(1)) {
                        subject.try_volume(suffix, &Damage::Cut(cut));
                    }
                }
            }
        }
    }
}

#[test]
fn damaged_volumes_give_no_wrong_number() {
    let mut choices = Choices(0x5eed);
    for subject in subjects() {
        for (suffix, bytes) in &subject.files {
            if suffix == "0" || suffix == "1" {
                for _ in 0..500 * times() {
                    subject.try_volume(suffix, &Damage::random(&mut choices, bytes.len()));
                }
            }
        }
    }
}

#[test]
fn damaged_metadata_is_told_or_harmless() {
    let mut choices = Choices(0x3e7a);
    for subject in subjects() {
        let bytes = subject.bytes("meta");
        let good = subject.with("meta", bytes, |context| Described::of(context, &subject.list));
        let good = good.expect("it is good");
        for cut in (0..bytes.len()).step_by((7 / times()).max(1)) {
            subject.try_metadata(&Damage::Cut(cut), &good);
        }
        for _ in 0..400 * times() {
            subject.try_metadata(&Damage::random(&mut choices, bytes.len()), &good);
        }
    }
}

#[test]
fn a_damaged_index_changes_nothing() {
    let mut choices = Choices(0x1dec);
    for subject in subjects() {
        let bytes = subject.bytes("index");
        subject.try_index(None);
        for cut in (0..bytes.len()).step_by((41 / times()).max(1)) {
            subject.try_index(Some(&Damage::Cut(cut)));
        }
        for _ in 0..120 * times() {
            subject.try_index(Some(&Damage::random(&mut choices, bytes.len())));
        }
    }
}

/// Programs that compress, with the suffix of their output.
const PROGRAMS: &[(&str, &[&str], &str)] = &[
    ("xz", &["-0", "--block-size=1000"], ".xz"),
    ("xz", &["-0"], ".xz"),
    ("gzip", &[], ".gz"),
    ("bzip2", &["-1"], ".bz2"),
    ("zstd", &["-q", "--check"], ".zst"),
];

#[test]
fn damaged_compressed_files_give_a_prefix_and_an_error() {
    let mut choices = Choices(0xc0de);
    for (program, options, extension) in PROGRAMS {
        for changed in ["0", "meta", "index"] {
            let mut subject = Subject::new("compressed", "own-dyn", 7, 1);
            let made =
                Command::new(program).args(*options).arg("-c").arg(subject.path(changed)).output();
            let is_there = made.as_ref().is_ok_and(|output| output.status.success());
            if !available(is_there, program) {
                continue;
            }
            let made = made.expect("it was made").stdout;
            fs::remove_file(subject.path(changed)).expect("it is there");
            let suffix = format!("{changed}{extension}");
            fs::write(subject.path(&suffix), &made).expect("space");
            subject.files.push((suffix.clone(), made.clone()));
            let order: Vec<usize> = (0..subject.records.len()).collect();
            let reverse: Vec<usize> = order.iter().copied().rev().collect();
            let all = Allowed { missing: order.iter().copied().collect(), ..Allowed::default() };
            let cuts = (0..made.len()).step_by((43 / times()).max(1)).map(Damage::Cut);
            let others: Vec<Damage> =
                (0..60 * times()).map(|_| Damage::random(&mut choices, made.len())).collect();
            for damage in cuts.chain(others) {
                let what = format!("{program} {options:?} {suffix} {damage:?}");
                let damaged = damage.apply(&made);
                // Decoders have tables and windows of their own.
                let read = subject.with(&suffix, &damaged, |context| {
                    let end = context.end_time();
                    (end, read(context, &subject.list), backward(context, &subject.list))
                });
                let (_, forward, back) = match read {
                    Ok(read) => read,
                    Err(error) => {
                        assert_ne!(changed, "index", "{what}: {error}");
                        subject.check_error(&error, &suffix, 1 << 20, &what);
                        continue;
                    }
                };
                let none = Allowed::default();
                let allowed = if changed == "0" { &all } else { &none };
                subject.compare(&forward, &order, allowed, &format!("{what}, forward"));
                subject.compare(&back, &reverse, allowed, &format!("{what}, backward"));
                let found = forward.iter().flatten().count();
                assert!(found == order.len() || forward.iter().any(Result::is_err), "{what}");
                for error in forward.iter().chain(&back).filter_map(|o| o.as_ref().err()) {
                    subject.check_error(error, &suffix, 1 << 20, &what);
                }
            }
        }
    }
}

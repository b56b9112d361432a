//! Files that give a name to each number: /proc/meminfo, /proc/vmstat, and the
//! protocol statistics of /proc/net.
//!
//! Each file is read into a map from key to number. The tables of
//! [`super::memory`], [`super::vmstat`] and [`super::protocols`] say which key
//! a metric reads, or which sum or difference of keys.

use std::collections::HashMap;

use pmderive_core::model::PmStatus;

use super::area::Area;
use super::table::{Row, SINGLE, put_number};
use super::{memory, protocols, vmstat};
use crate::agent::Values;
use crate::files::{Files, ReadMark};
use crate::text;

/// The file and the number in it that a metric delivers.
#[derive(Clone, Copy)]
pub(super) struct Content {
    pub file: File,
    pub value: Number,
}

/// The files, in the order of [`FORMATS`].
#[derive(Clone, Copy)]
pub(super) enum File {
    Meminfo,
    Vmstat,
    Snmp,
    Netstat,
    Sockstat,
    Sockstat6,
}

/// The formula of a number over a file's keys.
#[derive(Clone, Copy)]
pub(super) enum Number {
    /// The number of one key.
    Key(&'static str),
    /// A number computed from several keys.
    Of(fn(&Keys) -> Option<u64>),
    /// A number that the kernel does not count.
    Unsupported,
}

/// Reads the contents of a file into keys.
type Parse = fn(&[u8], &mut Keys);

/// The name and parser of each file.
const FORMATS: [(&str, Parse); 6] = [
    ("proc/meminfo", colon_lines),
    ("proc/vmstat", word_lines),
    ("proc/net/snmp", line_pairs),
    ("proc/net/netstat", line_pairs),
    ("proc/net/sockstat", word_pairs),
    ("proc/net/sockstat6", word_pairs),
];

/// The numbers of a file by key. The key of a protocol's number is
/// `Protocol.Key`.
#[derive(Default)]
pub(super) struct Keys {
    numbers: HashMap<Box<str>, Entry>,
    reading: u64,
    added: usize,
    key: String,
}

struct Entry {
    reading: u64,
    number: Option<u64>,
}

impl Keys {
    /// The number of a key. `None` if the file lacks the key or its value is
    /// not a number.
    pub fn get(&self, key: &str) -> Option<u64> {
        let entry = self.numbers.get(key)?;
        if entry.reading == self.reading { entry.number } else { None }
    }

    fn begin(&mut self) {
        self.reading += 1;
        self.added = 0;
    }

    /// Adds a key. The first of several equal keys counts.
    fn add(&mut self, section: &[u8], key: &[u8], number: Option<u64>) {
        let (Ok(section), Ok(key)) = (std::str::from_utf8(section), std::str::from_utf8(key))
        else {
            return;
        };
        self.key.clear();
        if !section.is_empty() {
            self.key.push_str(section);
            self.key.push('.');
        }
        self.key.push_str(key);
        match self.numbers.get_mut(self.key.as_str()) {
            Some(entry) if entry.reading == self.reading => return,
            Some(entry) => *entry = Entry { reading: self.reading, number },
            None => {
                let entry = Entry { reading: self.reading, number };
                self.numbers.insert(self.key.as_str().into(), entry);
            }
        }
        self.added += 1;
    }

    /// Forgets keys that the file no longer has, once they outnumber the keys
    /// that it has.
    fn end(&mut self) {
        if self.numbers.len() > 2 * self.added {
            self.numbers.retain(|_, entry| entry.reading == self.reading);
        }
    }
}

/// Lines of `Key: number`, perhaps with a unit.
fn colon_lines(contents: &[u8], keys: &mut Keys) {
    for line in text::lines(contents) {
        if let Some((key, number)) = text::split_once(line, b':') {
            keys.add(b"", key, text::words(number).next().and_then(text::number));
        }
    }
}

/// Lines of `key number`.
fn word_lines(contents: &[u8], keys: &mut Keys) {
    for line in text::lines(contents) {
        let mut words = text::words(line);
        if let Some(key) = words.next() {
            keys.add(b"", key, words.next().and_then(text::number));
        }
    }
}

/// Pairs of lines, `Protocol: key key` and `Protocol: number number`. The
/// number -1 means "no limit" and becomes the largest unsigned number.
fn line_pairs(contents: &[u8], keys: &mut Keys) {
    let mut lines = text::lines(contents).peekable();
    while let Some(header) = lines.next() {
        let Some((protocol, names)) = text::split_once(header, b':') else { continue };
        let numbers = lines
            .next_if(|line| text::split_once(line, b':').is_some_and(|(of, _)| of == protocol));
        let Some((_, numbers)) = numbers.and_then(|line| text::split_once(line, b':')) else {
            continue;
        };
        for (key, number) in text::words(names).zip(text::words(numbers)) {
            let signed = || text::number(number).map(i64::cast_unsigned);
            keys.add(protocol, key, text::number(number).or_else(signed));
        }
    }
}

/// Lines of `Protocol: key number key number`.
fn word_pairs(contents: &[u8], keys: &mut Keys) {
    for line in text::lines(contents) {
        let Some((protocol, rest)) = text::split_once(line, b':') else { continue };
        let mut words = text::words(rest);
        while let (Some(key), Some(number)) = (words.next(), words.next()) {
            keys.add(protocol, key, text::number(number));
        }
    }
}

/// Reader of all files with keys.
#[derive(Default)]
pub(super) struct KeyedFiles {
    files: [(ReadMark, Keys); FORMATS.len()],
}

impl KeyedFiles {
    fn keys(&mut self, file: File, files: &mut Files) -> &Keys {
        let (name, parse) = FORMATS[file as usize];
        let (read, keys) = &mut self.files[file as usize];
        if read.is_due(files) {
            keys.begin();
            parse(files.read(name).unwrap_or_default(), keys);
            keys.end();
        }
        keys
    }
}

impl Area for KeyedFiles {
    type Content = Content;
    const TABLES: &'static [&'static [Row<Content>]] =
        &[memory::TABLE, vmstat::TABLE, protocols::TABLE];

    fn put(&mut self, content: Content, files: &mut Files, values: &mut Values<'_, '_>) {
        let keys = self.keys(content.file, files);
        let number = match content.value {
            Number::Key(key) => keys.get(key),
            Number::Of(compute) => compute(keys),
            Number::Unsupported => return values.fail(PmStatus::APPVERSION),
        };
        put_number(values, SINGLE, number);
    }
}

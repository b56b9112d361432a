//! Turns the contents of processes' files into values.
//!
//! Input: the contents of one file of one process. Output: at most one value. A
//! file in a form that the kernel does not write gives no value.

use std::collections::HashMap;

use pmderive_core::model::{InstId, text_of_bytes};

use super::table::{Content, Form};
use crate::agent::{AgentValue, Values};
use crate::files::{Files, ReadMark};
use crate::table::put_number;
use crate::text;

/// Longest text that is delivered from a file, in bytes.
const MAX_TEXT_BYTES: usize = 64 << 10;

/// Names of users and groups by number.
#[derive(Default)]
pub(super) struct Accounts {
    read: ReadMark,
    users: HashMap<u32, Box<str>>,
    groups: HashMap<u32, Box<str>>,
}

impl Accounts {
    /// Reads passwd(5) and group(5), once per fetch.
    pub fn read(&mut self, files: &mut Files) {
        if self.read.is_due(files) {
            self.users = names(files.read("etc/passwd").unwrap_or_default());
            self.groups = names(files.read("etc/group").unwrap_or_default());
        }
    }
}

/// Names by the number in the third field of each line. The first name of a
/// number counts.
fn names(contents: &[u8]) -> HashMap<u32, Box<str>> {
    let mut names = HashMap::new();
    for line in text::lines(contents) {
        let mut fields = line.split(|byte| *byte == b':');
        let (name, number) = (fields.next(), fields.nth(1).and_then(text::number));
        if let (Some(name), Some(number)) = (name, number) {
            names.entry(number).or_insert_with(|| text_of_bytes(name).into());
        }
    }
    names
}

/// The state of a process, in the terms of `proc.runq`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Runs or waits for a processor.
    Runnable,
    /// Waits for a device.
    Blocked,
    /// Waits for something other than a device, with pages in memory.
    Sleeping,
    /// Was stopped.
    Stopped,
    /// Waits without any page in memory.
    Swapped,
    /// Has ended, and its parent has not waited for it yet.
    Defunct,
    /// Is part of the kernel.
    Kernel,
    /// Another state.
    Unknown,
}

/// The program's name between the parentheses of `stat`. The name may contain
/// any byte, even parentheses.
pub(super) fn name_of(stat: &[u8]) -> Option<&[u8]> {
    let start = stat.iter().position(|byte| *byte == b'(')?;
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    stat.get(start + 1..end)
}

/// A word of `stat`, numbered from 1 as in proc_pid_stat(5). The state is word
/// 3.
fn stat_word(stat: &[u8], number: usize) -> Option<&[u8]> {
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    text::words(&stat[end + 1..]).nth(number.checked_sub(3)?)
}

/// The state of a process, from `stat`.
pub(super) fn state_of(stat: &[u8]) -> Option<State> {
    let memory = |word| stat_word(stat, word).and_then(text::number::<u64>);
    let (size, resident) = (memory(23)?, memory(24)?);
    Some(match stat_word(stat, 3)? {
        b"Z" | b"X" => State::Defunct,
        _ if size == 0 => State::Kernel,
        b"R" => State::Runnable,
        b"D" => State::Blocked,
        b"S" if resident == 0 => State::Swapped,
        b"S" => State::Sleeping,
        b"T" | b"t" => State::Stopped,
        _ => State::Unknown,
    })
}

/// The rest of the line that begins with a key.
fn keyed<'c>(contents: &'c [u8], key: &str) -> Option<&'c [u8]> {
    let line = text::lines(contents).find_map(|line| line.strip_prefix(key.as_bytes()))?;
    Some(line.strip_prefix(b":")?.trim_ascii())
}

/// The number after a key.
fn keyed_number(contents: &[u8], key: &str) -> Option<u64> {
    text::words(keyed(contents, key)?).next().and_then(text::number)
}

/// Adds the value of one process, if its file contains the value.
pub(super) fn put(
    source: &Content,
    contents: &[u8],
    accounts: &Accounts,
    pid: InstId,
    out: &mut Values<'_, '_>,
) {
    match *source {
        Content::Stat(number, form) => {
            let Some(word) = stat_word(contents, number) else { return };
            put_word(word, form, pid, out);
        }
        Content::Name => put_text(name_of(contents), pid, out),
        Content::Terminal => {
            let number = stat_word(contents, 7).and_then(text::number);
            out.put(pid, AgentValue::Text(&terminal(number.unwrap_or(0))));
        }
        Content::Policy => {
            let number = stat_word(contents, 41).and_then(text::number::<usize>);
            const POLICIES: [&str; 7] =
                ["NORMAL", "FIFO", "RR", "BATCH", "ISO", "IDLE", "DEADLINE"];
            let name = number.and_then(|number| POLICIES.get(number));
            put_text(name.map(|name| name.as_bytes()), pid, out);
        }
        Content::Keyed(_, key, word, form) => {
            let words = keyed(contents, key).map(text::words);
            let Some(word) = words.and_then(|mut words| words.nth(word)) else { return };
            put_word(word, form, pid, out);
        }
        Content::Difference(of, less) => {
            let both = keyed_number(contents, of).zip(keyed_number(contents, less));
            put_number(out, pid, both.map(|(a, b)| a.saturating_sub(b)));
        }
        Content::Sum(one, other) => {
            let both = keyed_number(contents, one).zip(keyed_number(contents, other));
            put_number(out, pid, both.and_then(|(a, b)| a.checked_add(b)));
        }
        Content::User(word) => put_account(contents, "Uid", word, &accounts.users, pid, out),
        Content::Group(word) => put_account(contents, "Gid", word, &accounts.groups, pid, out),
        Content::Word(_, number, form) => {
            let Some(word) = text::words(contents).nth(number) else { return };
            put_word(word, form, pid, out);
        }
        Content::Whole(_) => put_text(Some(contents.trim_ascii_end()), pid, out),
        Content::CommandLine => {
            let joined = blanks_for_nul(contents);
            put_text(Some(joined.trim_ascii_end()).filter(|text| !text.is_empty()), pid, out);
        }
        Content::Environment => put_text(Some(blanks_for_nul(contents).trim_ascii_end()), pid, out),
        Content::ControlGroups => {
            let mut groups = String::new();
            for line in text::lines(contents) {
                if let Some((_, group)) = text::split_once(line, b':') {
                    if !groups.is_empty() {
                        groups.push(';');
                    }
                    groups.push_str(&text_of_bytes(group));
                }
            }
            put_text(Some(groups.as_bytes()), pid, out);
        }
        Content::AutoGroup => {
            let group = contents.strip_prefix(b"/autogroup-");
            let number = group.and_then(|group| text::words(group).next());
            put_number(out, pid, number.map_or(in_no_group(contents), text::number));
        }
        Content::AutoGroupNice => {
            let nice = text::words(contents).nth(2).map_or(in_no_group(contents), text::number);
            if let Some(nice) = nice {
                out.put(pid, AgentValue::I32(nice));
            }
        }
        // These values do not come from a file of one process.
        Content::Processes | Content::Count(_) | Content::Setting(_) | Content::Pid => {}
    }
}

/// The group number or nice value of a process that started before any session:
/// 0. Its file is empty.
fn in_no_group<T: Default>(file: &[u8]) -> Option<T> {
    file.is_empty().then(T::default)
}

fn put_account(
    status: &[u8],
    key: &str,
    word: usize,
    names: &HashMap<u32, Box<str>>,
    pid: InstId,
    out: &mut Values<'_, '_>,
) {
    let number = keyed(status, key).and_then(|line| text::words(line).nth(word));
    let Some(number) = number else { return };
    let name = text::number(number).and_then(|number| names.get(&number));
    put_text(Some(name.map_or(number, |name| name.as_bytes())), pid, out);
}

fn put_word(word: &[u8], form: Form, pid: InstId, out: &mut Values<'_, '_>) {
    let number = || text::number::<u64>(word);
    match form {
        Form::Number => put_number(out, pid, number()),
        Form::Signed => {
            if let Some(number) = text::number(word) {
                out.put(pid, AgentValue::I32(number));
            }
        }
        Form::Text => put_text(Some(word), pid, out),
        Form::Bytes => put_number(out, pid, number().map(|bytes| bytes / 1024)),
        Form::Pages => {
            let page = u64::try_from(rustix::param::page_size() / 1024).ok();
            put_number(out, pid, number().zip(page).and_then(|(pages, kb)| pages.checked_mul(kb)));
        }
        Form::Ticks => {
            let milliseconds = |ticks: u64| {
                let scaled = u128::from(ticks) * 1000;
                u64::try_from(scaled / u128::from(rustix::param::clock_ticks_per_second())).ok()
            };
            put_number(out, pid, number().and_then(milliseconds));
        }
    }
}

fn put_text(value: Option<&[u8]>, pid: InstId, out: &mut Values<'_, '_>) {
    let Some(value) = value else { return };
    let value = &value[..value.len().min(MAX_TEXT_BYTES)];
    out.put(pid, AgentValue::Text(&text_of_bytes(value)));
}

fn blanks_for_nul(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().map(|byte| if *byte == 0 { b' ' } else { *byte }).collect()
}

/// Name of a terminal, below /dev, from its device number.
fn terminal(device: u32) -> String {
    let major = device >> 8 & 0xfff;
    let minor = (device & 0xff) | (device >> 12 & 0xfff00);
    match (major, minor) {
        (4, 0..64) => format!("tty{minor}"),
        (4, 64..256) => format!("ttyS{}", minor - 64),
        (136..=143, _) => format!("pts/{}", u64::from(major - 136) * 256 + u64::from(minor)),
        _ => "?".to_owned(),
    }
}

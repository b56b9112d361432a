//! All models together, in a thread beside a run. They get the emitted lines and the events of
//! the run, part after part. A line may depend on events some seconds later, so it is checked
//! once two further parts have come.

use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use pmderive_testkit::sim::{Answers, Entry};

use super::clock::Clock;
use super::definitions::Definitions;
use super::history::{History, Told};
use super::lines::Text;
use super::{METRICS, Run, across, hosts, name, samples, scrapes};

/// How much time of the run a part is about.
pub const PART: Duration = Duration::from_secs(60);

/// What a run has emitted since the part before, and what happened.
pub struct Part {
    /// Lines of JSON; the last one may come in pieces.
    pub lines: Vec<u8>,
    pub told: Vec<Told>,
    pub log: Vec<Entry>,
    /// Time since the beginning.
    pub until: Duration,
}

/// What checking a run came to.
#[derive(Debug)]
pub struct Checked {
    pub frames: u64,
    pub marks: u64,
    pub values: u64,
    pub slots: u64,
    pub of_fleet: u64,
    pub samples: samples::Found,
    /// Of the second receiver.
    pub other: samples::Found,
    /// Series that were scraped.
    pub scraped: u64,
    /// Hosts whose values were converted to other units, and that were left out.
    pub converted: [u64; 2],
}

/// Checks all that a run emits.
pub struct Checking {
    history: History,
    hosts: hosts::Checker,
    across: across::Checker,
    expected: samples::Expected,
    other: samples::Expected,
    shown: scrapes::Expected,
    /// Lines that are not checked, by part.
    waiting: VecDeque<Vec<u8>>,
    /// The beginning of a line.
    begun: Vec<u8>,
    /// Lines so far.
    count: u64,
}

impl Checking {
    /// Nothing was emitted yet.
    pub fn new(fleet: Answers, clock: Clock) -> Checking {
        let definitions = Definitions::new(fleet.plan(), METRICS);
        Checking {
            history: History::new(fleet.plan().hosts, clock),
            hosts: hosts::Checker::new(fleet, definitions),
            across: across::Checker::new(),
            expected: samples::Expected::new(samples::Of::First),
            other: samples::Expected::new(samples::Of::Other),
            shown: scrapes::Expected::default(),
            waiting: VecDeque::new(),
            begun: Vec::new(),
            count: 0,
        }
    }

    /// Takes the next part, and checks what is due.
    pub fn part(&mut self, part: Part) {
        let Part { lines, told, log, until } = part;
        self.history.go_on(told, &log, until);
        self.waiting.push_back(lines);
        if self.waiting.len() > 2 {
            self.next();
        }
    }

    /// Checks the lines that have waited longest.
    fn next(&mut self) {
        let Some(part) = self.waiting.pop_front() else { return };
        let mut lines = match self.begun.is_empty() {
            true => part,
            false => [std::mem::take(&mut self.begun), part].concat(),
        };
        let end = lines.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        self.begun = lines.split_off(end);
        let lines = Rc::new(String::from_utf8(lines).expect("UTF-8"));
        let mut begin = 0;
        for line in lines.split_inclusive('\n') {
            self.line(&Text { lines: Rc::clone(&lines), place: begin..begin + line.len() });
            begin += line.len();
        }
    }

    fn line(&mut self, text: &Text) {
        let (history, number) = (&self.history, self.count);
        self.count += 1;
        let line = text.read();
        match line.number() {
            Some(host) => {
                if let Some(class) = self.hosts.line(history, host, &line) {
                    self.across.note(history, number, host, class, &line);
                }
            }
            None => self.across.line(history, number, &line),
        }
        self.expected.note(history, number, &line);
        self.other.note(history, number, &line);
        self.shown.note(history, text, &line);
    }

    /// Checks what is left, and what the run came to.
    pub fn finish(mut self, run: &Run) -> Checked {
        while !self.waiting.is_empty() {
            self.next();
        }
        assert!(self.begun.is_empty(), "the last line has no end");
        let Checking { history, hosts, across, .. } = &self;
        hosts.finish(history, |host| format!("{}:44321", name(host)));
        let numbers = &run.numbers;
        assert_eq!(hosts.frames, numbers.answered);
        // The last slots are under way when all ends.
        let under_way = numbers.started - numbers.answered - numbers.failed;
        let most = history.told.iter().map(|told| told.hosts.len() as u64).max();
        assert!(under_way <= most.unwrap_or(0));
        assert!(numbers.missed == 0 || history.clock.has_jumped(Duration::ZERO, history.end));
        let samples = self.expected.compare(&run.receiver);
        let other = self.other.compare(&run.other);
        assert_eq!((other.refused, other.missing), (0, 0), "the second receiver");
        Checked {
            frames: hosts.frames,
            marks: hosts.marks,
            values: hosts.values,
            slots: across.slots,
            of_fleet: across.values,
            samples,
            other,
            scraped: self.shown.compare(&run.scrapes),
            converted: across.converted,
        }
    }
}

//! Reads a file of unit tests.
//!
//! It turns TOML into a [`TestFile`]. It checks everything that the text and
//! the metadata of its metrics allow, and reports each mistake at its place. It
//! does not read the definitions under test.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pmderive_runtime::memory::MemoryMetadata;
use pmderive_runtime::model::{InDom, InstId, MetricDesc, PmStatus, Pmid, ValueType};
use toml::de::{DeString, DeValue};

use crate::diag::{Code, Diagnostics};
use crate::dialect::Language;
use crate::project::Folders;
use crate::syntax::ast::Spanned;
use crate::syntax::{counted, nearest};
use crate::text::document::{Document, Table, Times, Value};
use crate::text::{SourceId, SourceMap, Span};

use super::cursor::TextError;
use super::file::{Case, ExpectedRefusal, ExpectedTimelines, FileText, Samples, Subject, TestFile};
use super::groups::{GroupLabels, labels_of};
use super::timeline::{Item, MAX_STEPS, Number, Timeline, Tolerance};

/// Intervals, up to thirty years.
const INTERVALS: Times = Times {
    shortest: Duration::from_nanos(1),
    longest: Duration::from_secs(1_000_000_000),
    words: "1 nsec to 1000000000 sec",
};

/// Advice for a name that TOML reads as nested tables.
pub(super) const QUOTES: &str = "put names with dots in quotes: \"disk.dev.read\"";

/// Reads the text of a file, which is in the source map. Paths in it are relative to
/// `directory`; `usual` is the language of files that do not name one.
///
/// All mistakes are reported. With mistakes, the result has the correct parts, and must not be
/// run.
pub fn read(
    source: SourceId,
    directory: &Path,
    usual: Language,
    sources: &SourceMap,
    diagnostics: &mut Diagnostics,
) -> Option<TestFile> {
    let text = sources.get(source).text.clone();
    let (document, table) = Document::parse(Code::BadTestFile, source, &text, diagnostics);
    let table = table?;
    let mut reader = Reader {
        document,
        directory,
        usual,
        metadata: MemoryMetadata::default(),
        mistaken: BTreeSet::new(),
        labels: BTreeMap::new(),
        instances: BTreeMap::new(),
        given: 0,
        interval: Duration::from_secs(1),
        tolerance: None,
    };
    Some(reader.file(source, &table))
}

/// Names of a domain's instances, each with its position.
#[derive(Default)]
struct Names(HashMap<Box<str>, usize>);

impl Names {
    /// The position of a name. Adds the name if it is new.
    fn position(&mut self, name: &str) -> usize {
        if let Some(position) = self.0.get(name) {
            return *position;
        }
        let position = self.0.len();
        self.0.insert(name.into(), position);
        position
    }

    /// The names in their order.
    fn in_order(self) -> Vec<Box<str>> {
        let mut names: Vec<(usize, Box<str>)> =
            self.0.into_iter().map(|(name, position)| (position, name)).collect();
        names.sort_unstable();
        names.into_iter().map(|(_, name)| name).collect()
    }
}

/// A reader, with the settings for all cases of the file.
pub(super) struct Reader<'r> {
    pub(super) document: Document<'r>,
    directory: &'r Path,
    usual: Language,
    pub(super) metadata: MemoryMetadata,
    /// Metrics whose descriptions have reported mistakes.
    pub(super) mistaken: BTreeSet<Box<str>>,
    /// Instance domains, by the words that name them.
    pub(super) labels: BTreeMap<Box<str>, InDom>,
    instances: BTreeMap<InDom, Names>,
    /// Number of identifiers given to metrics so far.
    pub(super) given: u32,
    interval: Duration,
    tolerance: Option<Tolerance>,
}

impl Reader<'_> {
    fn file(&mut self, source: SourceId, table: &Table<'_>) -> TestFile {
        let are_keys_known = self.document.only(
            table,
            &[
                "files",
                "definitions",
                "fleet",
                "fleet-definitions",
                "compat",
                "extensions",
                "interval",
                "tolerance",
                "metadata",
                "metrics",
                "case",
                "rejected",
            ],
        );
        let mut language = self.document.language(table, self.usual);
        let files = self.files(table, "files");
        let definitions = table.get("definitions").and_then(|text| self.text(text));
        let fleet_files = self.files(table, "fleet");
        let fleet_definitions = table.get("fleet-definitions").and_then(|text| self.text(text));
        let interval = table.get("interval").and_then(|v| self.document.time(v, &INTERVALS));
        self.interval = interval.unwrap_or(self.interval);
        self.tolerance = table.get("tolerance").and_then(|v| self.tolerance(v));
        // As in `serve`.
        let has_fleet = !fleet_files.is_empty() || fleet_definitions.is_some();
        language.extensions |= has_fleet;
        if let Some(path) =
            table.get("metadata").and_then(|path| self.document.path(path, self.directory))
        {
            self.recorded(&path);
        }
        if let Some(metrics) = self.document.section(table, "metrics") {
            self.metrics(metrics);
        }
        let cases = self.document.tables(table, "case");
        let cases: Vec<Case> =
            cases.into_iter().filter_map(|(case, span)| self.case(case, span)).collect();
        let rejected = self.document.tables(table, "rejected");
        let rejected: Vec<ExpectedRefusal> =
            rejected.into_iter().filter_map(|(one, span)| self.rejected(one, span)).collect();
        // A misspelt word is the only mistake to report.
        if are_keys_known && !["case", "rejected"].iter().any(|key| table.contains_key(*key)) {
            let start = self.document.span(0..0);
            let help = "a case begins with `[[case]]`";
            self.document.error_with_help(start, "there are no tests in this file", help);
        }
        let instances = std::mem::take(&mut self.instances).into_iter();
        let instances: BTreeMap<InDom, Vec<Box<str>>> =
            instances.map(|(indom, names)| (indom, names.in_order())).collect();
        for (indom, names) in &instances {
            let instances = (0..).zip(names.iter().cloned()).collect();
            self.metadata.set_instances(*indom, instances);
        }
        TestFile {
            source,
            language,
            has_dialect: table.contains_key("compat"),
            extensions: language.extensions,
            has_extensions: has_fleet || table.contains_key("extensions"),
            folders: Folders::default(),
            files,
            definitions,
            fleet_files,
            fleet_definitions,
            metadata: std::mem::take(&mut self.metadata),
            instances,
            cases,
            rejected,
        }
    }

    fn files(&mut self, table: &Table<'_>, key: &str) -> Vec<Spanned<PathBuf>> {
        let files = table.get(key).map(|files| self.document.paths(files, self.directory));
        files.unwrap_or_default()
    }

    fn text(&mut self, value: &Value<'_>) -> Option<FileText> {
        let (text, span) = self.document.string(value)?;
        Some(self.written(text, span))
    }

    fn written(&self, text: &str, span: Span) -> FileText {
        FileText { text: text.into(), span, content: self.document.content(span, text) }
    }

    /// Reads a tolerance, as in a timeline but without the `~`.
    fn tolerance(&mut self, value: &Value<'_>) -> Option<Tolerance> {
        let text = match number(value) {
            Some(number) => number.to_string(),
            None => self.document.string(value)?.0.to_owned(),
        };
        let timeline = Timeline::parse(&format!("0~{}", text.trim()));
        match timeline.as_ref().map(|timeline| timeline.runs()) {
            Ok([run]) if let Item::Number { tolerance: Some(tolerance), .. } = run.item => {
                return Some(tolerance);
            }
            _ => {
                let message = "a tolerance is a number, or a text such as \"0.1%\"";
                self.document.error(value, message);
            }
        }
        None
    }

    fn case(&mut self, table: &Table<'_>, span: Span) -> Option<Case> {
        let known = [
            "name",
            "interval",
            "steps",
            "gaps",
            "failures",
            "hosts",
            "samples",
            "expect",
            "tolerance",
        ];
        self.document.only(table, &known);
        // A misspelt key is reported already.
        let has_lengths = ["expect", "samples", "steps"];
        let is_misspelt = table.keys().any(|key| {
            let key = &**key.get_ref();
            !known.contains(&key) && nearest(key, has_lengths).is_some()
        });
        let name = self.name(table, span)?;
        let interval = table.get("interval").and_then(|v| self.document.time(v, &INTERVALS));
        let tolerance = table.get("tolerance").and_then(|value| self.tolerance(value));
        let mut lengths = Lengths::default();
        if let Some(value) = table.get("steps")
            && let Some(steps) = self.document.count(value, 0)
        {
            let span = self.document.span(value.span());
            match (1..=MAX_STEPS).contains(&steps) {
                true => lengths.note(steps, span),
                false => self.document.error(span, format!("a case has 1 to {MAX_STEPS} steps")),
            }
        }
        let samples = self.document.section(table, "samples");
        let samples = samples.map(|table| self.samples(table, &mut lengths));
        let hosts = self.document.section(table, "hosts");
        let hosts = hosts.map_or_else(Vec::new, |table| self.hosts(table, &mut lengths));
        let expected = self.document.section(table, "expect");
        let tolerance = tolerance.or(self.tolerance);
        let expected =
            expected.map_or_else(Vec::new, |table| self.expected(table, tolerance, &mut lengths));
        if !hosts.is_empty() {
            self.check_groups(&expected);
        }
        if expected.is_empty() && !is_misspelt {
            let message = "nothing is expected in this case";
            self.document.error_with_help(span, message, "add `[case.expect]`");
        }
        let Some(steps) = lengths.steps() else {
            // A wrong number is reported already.
            if !is_misspelt && table.get("steps").is_none() {
                let message = "the number of steps is unknown";
                self.document.error_with_help(name.span, message, "add `steps = 5`, for example");
            }
            return None;
        };
        for (found, span) in lengths.all.into_iter().filter(|(found, _)| *found != steps) {
            let (steps, found) = (counted(steps, "step"), counted(found, "step"));
            let message = format!("this has {found}, and others in the case have {steps}");
            let help = "`_` is a step without a value, and `x*` repeats to the end";
            self.document.error_with_help(span, message, help);
        }
        let mut own = self.events(table, steps);
        own.of_metrics = samples.unwrap_or_default();
        let hosts = hosts.into_iter().map(|host| self.host(host, &own, steps)).collect();
        let interval = interval.unwrap_or(self.interval);
        Some(Case { name, interval, steps, samples: own, hosts, expected })
    }

    /// Gaps and failures of a host, without samples.
    pub(super) fn events(&mut self, table: &Table<'_>, steps: usize) -> Samples {
        let gaps = table.get("gaps").map_or(&[][..], |value| self.document.array(value));
        let gaps = gaps.iter().filter_map(|gap| self.step(gap, steps)).collect();
        let failures = self.document.tables(table, "failures");
        let failures = failures
            .into_iter()
            .filter_map(|(failure, span)| self.failure(failure, span, steps))
            .collect();
        Samples { gaps, failures, ..Samples::default() }
    }

    fn name(&mut self, table: &Table<'_>, span: Span) -> Option<FileText> {
        let Some(name) = table.get("name") else {
            self.document.error(span, "this test has no name");
            return None;
        };
        self.text(name)
    }

    /// Reads the number of a step of a case.
    pub(super) fn step(&mut self, value: &Value<'_>, steps: usize) -> Option<usize> {
        let step = self.document.count(value, 0)?;
        if step >= steps {
            let message = format!("there is no step {step}: they are 0 to {}", steps - 1);
            self.document.error(value, message);
            return None;
        }
        Some(step)
    }

    fn failure(
        &mut self,
        table: &Table<'_>,
        span: Span,
        steps: usize,
    ) -> Option<(usize, PmStatus)> {
        self.document.only(table, &["step", "error"]);
        let (Some(step), Some(error)) = (table.get("step"), table.get("error")) else {
            let message = "a fetch that fails has a `step` and an `error`";
            self.document.error(span, message);
            return None;
        };
        let step = self.step(step, steps);
        let (name, span) = self.document.string(error)?;
        let status = PmStatus::from_name(name);
        if status.is_none() {
            self.document.error(span, format!("`{name}` is not an error of PMAPI(3)"));
        }
        Some((step?, status?))
    }

    pub(super) fn samples(
        &mut self,
        table: &Table<'_>,
        lengths: &mut Lengths,
    ) -> BTreeMap<Pmid, Vec<(InstId, Timeline)>> {
        let mut samples = BTreeMap::new();
        for (key, value) in in_order(table) {
            let (name, span) = (key.get_ref(), self.document.span(key.span()));
            let Some(desc) = self.metadata.lookup(name).copied() else {
                self.unknown_metric(name, span);
                continue;
            };
            let mut timelines = Vec::new();
            match (value.get_ref().as_table(), desc.indom) {
                (None, _) => {
                    if let Some(timeline) = self.sampled(value, &desc, None, lengths) {
                        timelines.push((-1, timeline));
                    }
                }
                (Some(table), Some(indom)) => {
                    for (instance, value) in in_order(table) {
                        let id = self.instance(indom, instance.get_ref());
                        if let Some(timeline) = self.sampled(value, &desc, Some(indom), lengths) {
                            timelines.push((id, timeline));
                        }
                    }
                }
                (Some(_), None) => {
                    let message = format!("`{name}` has a single value, without instances");
                    let help = "give it an instance domain: { type = ..., indom = \"disks\" }";
                    self.document.error_with_help(value, message, help);
                }
            }
            if samples.insert(desc.pmid, timelines).is_some() {
                self.document.error(span, format!("`{name}` has samples twice"));
            }
        }
        samples
    }

    pub(super) fn unknown_metric(&mut self, name: &str, span: Span) {
        if self.mistaken.contains(name) {
            return;
        }
        let message = format!("`[metrics]` has no metric `{name}`");
        let help = match nearest(name, self.metadata.names_at("")) {
            _ if self.metadata.names_at(name).next().is_some() => QUOTES.to_owned(),
            Some(meant) => format!("did you mean `{meant}`?"),
            None => "every metric with samples is described there".to_owned(),
        };
        self.document.error_with_help(span, message, help);
    }

    /// Identifier of an instance. Adds the instance if it is new.
    fn instance(&mut self, indom: InDom, name: &str) -> InstId {
        let position = self.instances.entry(indom).or_default().position(name);
        InstId::try_from(position).unwrap_or(InstId::MAX)
    }

    /// Reads the samples of an instance (of a domain), or of a whole metric.
    fn sampled(
        &mut self,
        value: &Value<'_>,
        desc: &MetricDesc,
        indom: Option<InDom>,
        lengths: &mut Lengths,
    ) -> Option<Timeline> {
        let timeline = self.timeline(value, lengths)?;
        let has_values = indom == desc.indom;
        let is_text = desc.value_type == ValueType::String;
        let wrong = timeline.runs().iter().find_map(|run| {
            let message = match &run.item {
                Item::Absent | Item::Failed(_) => return None,
                Item::Number { tolerance: Some(_), .. } => "a sample has no tolerance",
                Item::NoValues(_) => "`_` is a step without a value",
                Item::Any => "a sample is a value, `_` or an error",
                _ if !has_values => "each instance has samples of its own: { sda = \"1 2 3\" }",
                Item::Number { .. } if is_text => "this metric's values are texts: 'up'",
                Item::Text(_) if !is_text => "this metric's values are numbers",
                Item::Number { .. } | Item::Text(_) => return None,
            };
            Some((run.place.clone(), message.to_owned()))
        });
        let wrong = wrong.or_else(|| {
            let mut numbers = timeline.numbers();
            let (number, place) = numbers.find(|(number, _)| !fits(*number, desc.value_type))?;
            let value_type = desc.value_type;
            Some((place.clone(), format!("{number} is not a value of type {value_type}")))
        });
        let Some((place, message)) = wrong else { return Some(timeline) };
        let span = self.inside(value, place);
        self.document.error(span, message);
        None
    }

    /// Reads a timeline and notes its length.
    fn timeline(&mut self, value: &Value<'_>, lengths: &mut Lengths) -> Option<Timeline> {
        if let Some(number) = number(value) {
            return Some(Timeline::constant(number));
        }
        let (text, span) = self.document.string(value)?;
        match Timeline::parse(text) {
            Ok(timeline) => {
                if let Some(steps) = timeline.steps() {
                    lengths.note(steps, span);
                }
                Some(timeline)
            }
            Err(error) => {
                let span = self.document.within(span, text, error.place);
                self.document.error(span, error.message);
                None
            }
        }
    }

    /// The place of a range in a text's content.
    fn inside(&self, value: &Value<'_>, place: Range<usize>) -> Span {
        let span = self.document.span(value.span());
        match value.get_ref().as_str() {
            Some(text) => self.document.within(span, text, place),
            None => span,
        }
    }

    fn expected(
        &mut self,
        table: &Table<'_>,
        tolerance: Option<Tolerance>,
        lengths: &mut Lengths,
    ) -> Vec<ExpectedTimelines> {
        let mut expected = Vec::new();
        for (key, value) in in_order(table) {
            let (name, span) = (key.get_ref(), self.document.span(key.span()));
            let subject = self.written(name, span);
            let mut timelines = Vec::new();
            match value.get_ref().as_table() {
                None => {
                    timelines.extend(self.timeline(value, lengths).map(|line| (None, line)));
                }
                Some(table) => {
                    for (instance, value) in in_order(table) {
                        let timeline = self.timeline(value, lengths);
                        let span = self.document.span(instance.span());
                        let name = self.written(instance.get_ref(), span);
                        timelines.extend(timeline.map(|line| (Some(name), line)));
                    }
                }
            }
            expected.push(ExpectedTimelines { subject, timelines, tolerance });
        }
        expected
    }

    /// Reports instances that are no groups of hosts, and groups that occur twice.
    fn check_groups(&mut self, expected: &[ExpectedTimelines]) {
        for one in expected {
            let mut known: HashSet<GroupLabels> = HashSet::new();
            for name in one.timelines.iter().filter_map(|(name, _)| name.as_ref()) {
                match labels_of(&name.text) {
                    Err(TextError { place, message }) => {
                        let span = self.document.within(name.span, &name.text, place);
                        let help = "a group is named by its labels: '{rack=\"a\"}'";
                        self.document.error_with_help(span, message, help);
                    }
                    Ok(labels) => {
                        if !known.insert(labels) {
                            self.document.error(name.span, "this group is here twice");
                        }
                    }
                }
            }
        }
    }

    fn rejected(&mut self, table: &Table<'_>, span: Span) -> Option<ExpectedRefusal> {
        self.document.only(table, &["name", "definition", "expression", "code"]);
        let subject = match (table.get("definition"), table.get("expression")) {
            (Some(name), None) => Subject::Definition(self.text(name)?),
            (None, Some(expression)) => Subject::Expression(self.text(expression)?),
            _ => {
                let message = "name the `definition` or the `expression` that must be refused";
                self.document.error(span, message);
                return None;
            }
        };
        let name = match table.get("name") {
            Some(name) => self.text(name)?,
            None => match &subject {
                Subject::Definition(text) | Subject::Expression(text) => text.clone(),
            },
        };
        let Some(code) = table.get("code") else {
            let help = "add it: code = \"PMD0203\"";
            self.document.error_with_help(span, "the code of the expected error is missing", help);
            return None;
        };
        let (text, span) = self.document.string(code)?;
        match text.parse::<Code>() {
            Ok(code) => Some(ExpectedRefusal { name, subject, code }),
            Err(error) => {
                self.document.error(span, format!("{error}"));
                None
            }
        }
    }
}

/// The lengths of a case's timelines.
#[derive(Default)]
pub(super) struct Lengths {
    /// Each length and its place, in the order of the file.
    all: Vec<(usize, Span)>,
}

impl Lengths {
    fn note(&mut self, steps: usize, span: Span) {
        self.all.push((steps, span));
    }

    /// The length that most have; of several such lengths the first one.
    fn steps(&self) -> Option<usize> {
        let mut counts: HashMap<usize, usize> = HashMap::new();
        self.all.iter().for_each(|(steps, _)| *counts.entry(*steps).or_default() += 1);
        let most = counts.values().max()?;
        self.all.iter().map(|(steps, _)| *steps).find(|steps| counts[steps] == *most)
    }
}

/// The entries of a table, in the order of the file.
pub(super) fn in_order<'v, 't>(
    table: &'v Table<'t>,
) -> Vec<(&'v toml::Spanned<DeString<'t>>, &'v Value<'t>)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}

/// A number without quotes.
fn number(value: &Value<'_>) -> Option<Number> {
    match value.get_ref() {
        DeValue::Integer(integer) => {
            i128::from_str_radix(integer.as_str(), integer.radix()).ok().map(Number::Integer)
        }
        DeValue::Float(float) => float.as_str().parse().ok().map(Number::Real),
        _ => None,
    }
}

/// True if a number is a valid value of a numeric type.
fn fits(number: Number, value_type: ValueType) -> bool {
    let Number::Integer(value) = number else {
        return matches!(value_type, ValueType::F32 | ValueType::F64);
    };
    match value_type {
        ValueType::I32 => i32::try_from(value).is_ok(),
        ValueType::U32 => u32::try_from(value).is_ok(),
        ValueType::I64 => i64::try_from(value).is_ok(),
        ValueType::U64 => u64::try_from(value).is_ok(),
        _ => true,
    }
}

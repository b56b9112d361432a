//! Reads a file of unit tests.
//!
//! From TOML to [`TestFile`]: everything is checked that the text alone and
//! the metadata of its metrics tell, and every mistake has its place. The
//! definitions under test are not looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use pmderive_runtime::memory::MemoryMetadata;
use pmderive_runtime::model::{
    InDom, InstId, MetricDesc, PmStatus, Pmid, Semantics, Units, ValueType, parse_interval,
};
use pmderive_runtime::source::MetadataSource;

use crate::diag::{Code, Diagnostics};
use crate::dialect::{Dialect, Language};
use crate::metadata::RecordedMetadata;
use crate::source::{SourceId, SourceMap, Span};
use crate::syntax::ast::Spanned;
use crate::syntax::{choices, name_mistake, nearest, semantics_word, value_type_word};

use toml::de::DeValue;

use super::document::{Document, Table, Value};
use super::timeline::{Item, MAX_STEPS, Number, Timeline, Tolerance};

/// Domain of the metrics and instance domains that have no number of their own.
const OWN_DOMAIN: u32 = 509;

/// Versions of libpcp by their names, as on the command line.
const COMPAT: [(&str, Dialect); 3] =
    [("6.0", Dialect::Pcp6_0), ("7.2", Dialect::Pcp7_2), ("off", Dialect::Fixed)];

/// The word for a type that `mkconst()` does not have.
const STRING: &str = "string";

/// What to do about a name that TOML takes for tables within tables.
const QUOTES: &str = "names with points stand in quotes: \"disk.dev.read\"";

/// A file of unit tests.
#[derive(Debug)]
pub struct TestFile {
    /// The file's text among the sources.
    pub source: SourceId,
    /// Language of the definitions.
    pub language: Language,
    /// Definition files and directories.
    pub files: Vec<Spanned<PathBuf>>,
    /// Definitions in the file itself.
    pub definitions: Option<Written>,
    /// Names, descriptors and all instances of the metrics.
    pub metadata: MemoryMetadata,
    /// Names of instances by domain; the position is the identifier.
    pub instances: BTreeMap<InDom, Vec<Box<str>>>,
    /// The cases, in their order.
    pub cases: Vec<Case>,
    /// Definitions that have to be refused.
    pub rejected: Vec<Rejected>,
}

/// One test: samples, and what is to come of them.
#[derive(Debug)]
pub struct Case {
    /// What it is called.
    pub name: Written,
    /// Time from one step to the next.
    pub interval: Duration,
    /// Number of steps.
    pub steps: usize,
    /// Steps before which continuity ended.
    pub gaps: BTreeSet<usize>,
    /// Steps at which the fetch as a whole fails.
    pub failures: BTreeMap<usize, PmStatus>,
    /// Samples by metric.
    pub samples: BTreeMap<Pmid, Vec<(InstId, Timeline)>>,
    /// What is expected, by metric or expression.
    pub expected: Vec<Expected>,
}

/// What is expected of one metric or expression.
#[derive(Debug)]
pub struct Expected {
    /// The name or expression.
    pub subject: Written,
    /// Timelines by the names of instances; without a name for the metric as
    /// a whole.
    pub timelines: Vec<(Option<Box<str>>, Timeline)>,
    /// How near numbers have to be that say nothing of it themselves.
    pub tolerance: Option<Tolerance>,
}

/// A definition or expression that has to be refused.
#[derive(Debug)]
pub struct Rejected {
    /// What the test is called.
    pub name: Written,
    /// Name of a definition, or an expression.
    pub subject: Subject,
    /// Code of an error that it has to have.
    pub code: Code,
}

/// What has to be refused.
#[derive(Debug)]
pub enum Subject {
    /// The definition of this name.
    Definition(Written),
    /// An expression.
    Expression(Written),
}

/// A text of the file.
#[derive(Clone, Debug)]
pub struct Written {
    /// The text.
    pub text: Box<str>,
    /// Where it stands, quotes included.
    pub span: Span,
    /// Offset in the file of its first byte, if it stands there as it is.
    pub content: Option<u32>,
}

/// Reads the text of a file, which is among the sources. `directory` is where
/// the paths in it begin.
///
/// Everything that is wrong is reported; what could be understood of the rest
/// is the result, of which nothing should be run then.
pub fn read(
    source: SourceId,
    directory: &Path,
    sources: &SourceMap,
    diagnostics: &mut Diagnostics,
) -> Option<TestFile> {
    let text = sources.get(source).text.clone();
    let (document, table) = Document::parse(source, &text, diagnostics);
    let table = table?;
    let mut reader = Reader {
        document,
        directory,
        metadata: MemoryMetadata::default(),
        labels: BTreeMap::new(),
        instances: BTreeMap::new(),
        interval: Duration::from_secs(1),
        tolerance: None,
    };
    Some(reader.file(source, &table))
}

/// Reading, with what the file says of all cases.
struct Reader<'r> {
    document: Document<'r>,
    directory: &'r Path,
    metadata: MemoryMetadata,
    /// Instance domains by the words that stand for them.
    labels: BTreeMap<Box<str>, InDom>,
    instances: BTreeMap<InDom, Vec<Box<str>>>,
    interval: Duration,
    tolerance: Option<Tolerance>,
}

impl Reader<'_> {
    fn file(&mut self, source: SourceId, table: &Table<'_>) -> TestFile {
        self.document.only(
            table,
            &[
                "files",
                "definitions",
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
        let language = self.language(table);
        let files = table.get("files").map_or(&[][..], |files| self.document.array(files));
        let files = files.iter().filter_map(|file| self.path(file)).collect();
        let definitions = table.get("definitions").and_then(|text| self.text(text));
        self.interval =
            table.get("interval").and_then(|v| self.interval(v)).unwrap_or(self.interval);
        self.tolerance = table.get("tolerance").and_then(|v| self.tolerance(v));
        if let Some(path) = table.get("metadata").and_then(|path| self.path(path)) {
            self.recorded(&path);
        }
        if let Some(metrics) = table.get("metrics").and_then(|value| self.document.table(value)) {
            self.metrics(metrics);
        }
        let cases = table.get("case").map_or_else(Vec::new, |list| self.document.tables(list));
        let cases: Vec<Case> =
            cases.into_iter().filter_map(|(case, span)| self.case(case, span)).collect();
        let rejected = table.get("rejected").map_or_else(Vec::new, |v| self.document.tables(v));
        let rejected: Vec<Rejected> =
            rejected.into_iter().filter_map(|(one, span)| self.rejected(one, span)).collect();
        if cases.is_empty() && rejected.is_empty() {
            let start = self.document.span(0..0);
            let help = "a case begins with `[[case]]`";
            self.document.error_with_help(start, "there are no tests in this file", help);
        }
        for (indom, names) in &self.instances {
            let instances = (0..).zip(names.iter().cloned()).collect();
            self.metadata.set_instances(*indom, instances);
        }
        TestFile {
            source,
            language,
            files,
            definitions,
            metadata: std::mem::take(&mut self.metadata),
            instances: std::mem::take(&mut self.instances),
            cases,
            rejected,
        }
    }

    fn language(&mut self, table: &Table<'_>) -> Language {
        let extensions = table.get("extensions").and_then(|value| self.document.boolean(value));
        let mut language =
            Language { extensions: extensions.unwrap_or(false), ..Language::default() };
        if let Some((text, span)) = table.get("compat").and_then(|v| self.document.string(v)) {
            match COMPAT.iter().find(|(word, _)| *word == text) {
                Some((_, dialect)) => language.dialect = *dialect,
                None => {
                    let words = choices(COMPAT.map(|(word, _)| word));
                    self.document.error(span, format!("`compat` is {words}"));
                }
            }
        }
        language
    }

    fn text(&mut self, value: &Value<'_>) -> Option<Written> {
        let (text, span) = self.document.string(value)?;
        Some(self.written(text, span))
    }

    fn written(&self, text: &str, span: Span) -> Written {
        Written { text: text.into(), span, content: self.document.content(span, text) }
    }

    fn path(&mut self, value: &Value<'_>) -> Option<Spanned<PathBuf>> {
        let (text, span) = self.document.string(value)?;
        Some(Spanned { value: self.directory.join(text), span })
    }

    fn interval(&mut self, value: &Value<'_>) -> Option<Duration> {
        let span = self.document.span(value.span());
        let text = match number(value) {
            Some(number) => number.to_string(),
            None => self.document.string(value)?.0.to_owned(),
        };
        match parse_interval(&text) {
            Ok(interval) if !interval.is_zero() && interval.as_secs() < 1_000_000_000 => {
                return Some(interval);
            }
            Ok(_) => self.document.error(span, "an interval is from 1 nsec to 30 years"),
            Err(error) => {
                let message = format!("this is no interval: {}", error.problem);
                self.document.error_with_help(span, message, "such as \"10 sec\" or \"1min\"");
            }
        }
        None
    }

    /// A tolerance as in a timeline, but without the `~`.
    fn tolerance(&mut self, value: &Value<'_>) -> Option<Tolerance> {
        let span = self.document.span(value.span());
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
                self.document.error(span, message);
            }
        }
        None
    }

    /// Takes metrics from a file that `pmderive deps --metadata` wrote.
    fn recorded(&mut self, path: &Spanned<PathBuf>) {
        let recorded = RecordedMetadata::open(&path.value).and_then(|mut recorded| {
            let names = recorded.traverse("")?;
            let borrowed: Vec<&str> = names.iter().map(String::as_str).collect();
            let pmids = recorded.lookup_names(&borrowed)?;
            for (name, pmid) in names.iter().zip(pmids) {
                let Ok(pmid) = pmid else { continue };
                if let Ok(desc) = recorded.lookup_descs(&[pmid])?.remove(0) {
                    self.metadata.add_metric(&**name, desc);
                }
            }
            Ok(())
        });
        if let Err(error) = recorded {
            self.document.error(path.span, error.to_string());
        }
    }

    fn metrics(&mut self, table: &Table<'_>) {
        for (key, value) in in_order(table) {
            let (name, span) = (key.get_ref(), self.document.span(key.span()));
            let Some(metric) = self.document.table(value) else { continue };
            match name_mistake(name) {
                None => self.metric(name, span, metric),
                Some(mistake) => {
                    let message = format!("`{name}` cannot be the name of a metric");
                    self.document.error_with_help(span, message, mistake.rule);
                }
            }
        }
    }

    fn metric(&mut self, name: &str, span: Span, table: &Table<'_>) {
        let Some(value_type) = table.get("type") else {
            let message = format!("`{name}` has no type");
            let help = match table.values().all(|value| value.get_ref().is_table()) {
                true => QUOTES,
                false => "write { type = \"u64\" }, for example",
            };
            self.document.error_with_help(span, message, help);
            return;
        };
        self.document.only(table, &["type", "semantics", "units", "indom"]);
        let Some(value_type) = self.value_type(value_type) else { return };
        let semantics = table.get("semantics").map(|value| self.semantics(value));
        let units = table.get("units").map(|value| self.units(value));
        let indom = table.get("indom").map(|value| self.indom(value));
        let known = self.metadata.lookup(name).copied();
        let Some(pmid) = known.map(|desc| desc.pmid).or_else(|| self.free_pmid()) else {
            self.document.error(span, "there are too many metrics");
            return;
        };
        let (Some(semantics), Some(units), Some(indom)) = (
            semantics.unwrap_or(Some(Semantics::Instant)),
            units.unwrap_or(Some(Units::NONE)),
            indom.unwrap_or(Some(None)),
        ) else {
            return;
        };
        self.metadata.add_metric(name, MetricDesc { pmid, value_type, indom, semantics, units });
    }

    fn free_pmid(&self) -> Option<Pmid> {
        let all = (0..1 << 12).flat_map(|cluster| (0..1 << 10).map(move |item| (cluster, item)));
        // All before the number of metrics may be in use, but not one more.
        let mut all = all.skip(self.metadata.len().saturating_sub(1));
        all.find_map(|(cluster, item)| {
            let pmid = Pmid::new(OWN_DOMAIN, cluster, item);
            self.metadata.desc(pmid).is_none().then_some(pmid)
        })
    }

    fn value_type(&mut self, value: &Value<'_>) -> Option<ValueType> {
        let (text, span) = self.document.string(value)?;
        if text.eq_ignore_ascii_case(STRING) {
            return Some(ValueType::String);
        }
        let found = value_type_word(text);
        if found.is_none() {
            let words = "`32`, `u32`, `64`, `u64`, `float`, `double` or `string`";
            self.document.error(span, format!("a type is {words}"));
        }
        found
    }

    fn semantics(&mut self, value: &Value<'_>) -> Option<Semantics> {
        let (text, span) = self.document.string(value)?;
        let found = semantics_word(text);
        if found.is_none() {
            self.document.error(span, "semantics are `counter`, `instant` or `discrete`");
        }
        found
    }

    fn units(&mut self, value: &Value<'_>) -> Option<Units> {
        let (text, span) = self.document.string(value)?;
        if text.trim().is_empty() || text == "none" {
            return Some(Units::NONE);
        }
        match Units::parse(text) {
            Ok(parsed) if parsed.multiplier == 1.0 => return Some(parsed.units),
            Ok(_) => self.document.error(span, "units of a metric have no multiplier"),
            Err(error) => self.document.error(span, format!("these are no units: {error}")),
        }
        None
    }

    /// An instance domain: its number, or a word that stands for one.
    fn indom(&mut self, value: &Value<'_>) -> Option<Option<InDom>> {
        let (text, span) = self.document.string(value)?;
        if text.is_empty() {
            self.document.error(span, "an instance domain has a number or a name");
            return None;
        }
        let number = text.split_once('.').and_then(|(domain, serial)| {
            let (domain, serial) = (domain.parse::<u32>().ok()?, serial.parse::<u32>().ok()?);
            (domain < 1 << 9 && serial < 1 << 22).then(|| InDom::new(domain, serial))
        });
        let next = u32::try_from(self.labels.len()).unwrap_or(u32::MAX);
        let named = || InDom::new(OWN_DOMAIN, next);
        let indom = number.unwrap_or_else(|| *self.labels.entry(text.into()).or_insert_with(named));
        Some(Some(indom))
    }

    fn case(&mut self, table: &Table<'_>, span: Span) -> Option<Case> {
        let known =
            ["name", "interval", "steps", "gaps", "failures", "samples", "expect", "tolerance"];
        self.document.only(table, &known);
        let name = self.name(table, span)?;
        let interval = table.get("interval").and_then(|value| self.interval(value));
        let tolerance = table.get("tolerance").and_then(|value| self.tolerance(value));
        let mut lengths = Lengths::default();
        if let Some(value) = table.get("steps")
            && let Some(steps) = self.document.count(value)
        {
            let span = self.document.span(value.span());
            match (1..=MAX_STEPS).contains(&steps) {
                true => lengths.note(steps, span),
                false => self.document.error(span, format!("there are 1 to {MAX_STEPS} steps")),
            }
        }
        let samples = table.get("samples").and_then(|value| self.document.table(value));
        let samples = samples.map(|table| self.samples(table, &mut lengths));
        let expected = table.get("expect").and_then(|value| self.document.table(value));
        let tolerance = tolerance.or(self.tolerance);
        let expected =
            expected.map_or_else(Vec::new, |table| self.expected(table, tolerance, &mut lengths));
        if expected.is_empty() {
            let message = "nothing is expected in this case";
            self.document.error_with_help(span, message, "add `[case.expect]`");
        }
        let Some((steps, _)) = lengths.steps else {
            let message = "the number of steps is not known";
            self.document.error_with_help(name.span, message, "add `steps = 5`, for example");
            return None;
        };
        for (found, span) in lengths.others {
            let (steps, found) = (counted(steps), counted(found));
            let message = format!("this has {found}, and others in the case have {steps}");
            let help = "`_` is a step without a value, and `x*` repeats to the end";
            self.document.error_with_help(span, message, help);
        }
        let gaps = table.get("gaps").map_or(&[][..], |value| self.document.array(value));
        let gaps = gaps.iter().filter_map(|gap| self.step(gap, steps)).collect();
        let failures = table.get("failures").map_or_else(Vec::new, |v| self.document.tables(v));
        let failures = failures
            .into_iter()
            .filter_map(|(failure, span)| self.failure(failure, span, steps))
            .collect();
        Some(Case {
            name,
            interval: interval.unwrap_or(self.interval),
            steps,
            gaps,
            failures,
            samples: samples.unwrap_or_default(),
            expected,
        })
    }

    fn name(&mut self, table: &Table<'_>, span: Span) -> Option<Written> {
        let Some(name) = table.get("name") else {
            self.document.error(span, "this test has no name");
            return None;
        };
        self.text(name)
    }

    /// The number of a step of a case.
    fn step(&mut self, value: &Value<'_>, steps: usize) -> Option<usize> {
        let step = self.document.count(value)?;
        if step >= steps {
            let span = self.document.span(value.span());
            let message = format!("there is no step {step}: they are 0 to {}", steps - 1);
            self.document.error(span, message);
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
            self.document.error(span, format!("`{name}` is no error of PMAPI(3)"));
        }
        Some((step?, status?))
    }

    fn samples(
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
                    let span = self.document.span(value.span());
                    let message = format!("`{name}` has a single value, without instances");
                    let help = "give it an instance domain: { type = ..., indom = \"disks\" }";
                    self.document.error_with_help(span, message, help);
                }
            }
            if samples.insert(desc.pmid, timelines).is_some() {
                self.document.error(span, format!("`{name}` has other samples as well"));
            }
        }
        samples
    }

    fn unknown_metric(&mut self, name: &str, span: Span) {
        let message = format!("there is no metric `{name}` among `[metrics]`");
        let help = match nearest(name, self.metadata.names_at("")) {
            _ if self.metadata.names_at(name).next().is_some() => QUOTES.to_owned(),
            Some(meant) => format!("did you mean `{meant}`?"),
            None => "every metric with samples is described there".to_owned(),
        };
        self.document.error_with_help(span, message, help);
    }

    /// Identifier of an instance, which may be a new one.
    fn instance(&mut self, indom: InDom, name: &str) -> InstId {
        let names = self.instances.entry(indom).or_default();
        let position = names.iter().position(|known| **known == *name).unwrap_or_else(|| {
            names.push(name.into());
            names.len() - 1
        });
        InstId::try_from(position).unwrap_or(InstId::MAX)
    }

    /// The samples of an instance (of a domain), or of all the metric.
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
            Some((place.clone(), format!("{number} is no value of type {value_type}")))
        });
        let Some((place, message)) = wrong else { return Some(timeline) };
        let span = self.inside(value, place);
        self.document.error(span, message);
        None
    }

    /// A timeline, whose length is taken note of.
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

    /// Bytes of a text's content.
    fn inside(&self, value: &Value<'_>, place: std::ops::Range<usize>) -> Span {
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
    ) -> Vec<Expected> {
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
                        let name = Some(instance.get_ref().as_ref().into());
                        timelines.extend(timeline.map(|line| (name, line)));
                    }
                }
            }
            expected.push(Expected { subject, timelines, tolerance });
        }
        expected
    }

    fn rejected(&mut self, table: &Table<'_>, span: Span) -> Option<Rejected> {
        self.document.only(table, &["name", "definition", "expression", "code"]);
        let subject = match (table.get("definition"), table.get("expression")) {
            (Some(name), None) => Subject::Definition(self.text(name)?),
            (None, Some(expression)) => Subject::Expression(self.text(expression)?),
            _ => {
                let message = "what is to be refused is a `definition` or an `expression`";
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
            let help = "add the code of its error: code = \"PMD0203\"";
            self.document.error_with_help(span, "why it is to be refused is not said", help);
            return None;
        };
        let (text, span) = self.document.string(code)?;
        match text.parse::<Code>() {
            Ok(code) => Some(Rejected { name, subject, code }),
            Err(error) => {
                self.document.error(span, format!("{error}"));
                None
            }
        }
    }
}

/// The lengths of the timelines of a case.
#[derive(Default)]
struct Lengths {
    /// That of the first one, which all others are to have.
    steps: Option<(usize, Span)>,
    /// Those that differ.
    others: Vec<(usize, Span)>,
}

impl Lengths {
    fn note(&mut self, steps: usize, span: Span) {
        match self.steps {
            None => self.steps = Some((steps, span)),
            Some((known, _)) if known == steps => {}
            Some(_) => self.others.push((steps, span)),
        }
    }
}

fn counted(steps: usize) -> String {
    let plural = if steps == 1 { "" } else { "s" };
    format!("{steps} step{plural}")
}

/// The entries of a table, in the order of the file.
fn in_order<'v, 't>(
    table: &'v Table<'t>,
) -> Vec<(&'v toml::Spanned<toml::de::DeString<'t>>, &'v Value<'t>)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}

/// A number that is written without quotes.
fn number(value: &Value<'_>) -> Option<Number> {
    match value.get_ref() {
        DeValue::Integer(integer) => {
            i128::from_str_radix(integer.as_str(), integer.radix()).ok().map(Number::Integer)
        }
        DeValue::Float(float) => float.as_str().parse().ok().map(Number::Real),
        _ => None,
    }
}

/// True if a number is a value of a numeric type.
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

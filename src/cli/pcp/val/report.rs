//! The loop of `val`: fetches sample after sample, and prints a row for each.
//!
//! It keeps the values of the sample before, for rates. [`Table`] and [`Events`] format a row.

use std::io::Write;

use pmderive_runtime::context::Context;
use pmderive_runtime::model::{MetricDesc, PmStatus, Pmid, Timestamp, ValueType};
use pmderive_runtime::result::ResultBatch;
use pmderive_runtime::source::{FetchList, FetchSource, MetadataSource, SourceError};

use super::events::{Events, Parameters};
use super::instances::Instances;
use super::moment::{Clock, Detail};
use super::sample::Sample;
use super::table::Table;
use crate::cli::exit_status::ExitStatus;
use crate::cli::messages::Messages;
use crate::cli::pcp::source::{AnyNamed, Attempt, ToolSource};
use crate::cli::samples::SampledSource;
use crate::cli::source::check_rest;
use crate::cli::stop::Stop;
use crate::cli::terminal::Output;
use crate::dialect::Dialect;
use crate::engine::Session;
use crate::escape::Foreign;

/// A report that goes on from sample to sample.
pub struct Report<'r> {
    /// Source of the values.
    pub source: ToolSource,
    /// The metric's name, escaped.
    pub name: &'r str,
    /// Its descriptor.
    pub desc: MetricDesc,
    /// Its instances, if it has an instance domain.
    pub instances: Option<Instances>,
    /// The form of values.
    pub form: Form,
    /// The request to the source.
    pub request: SampleRequest,
    /// Precision of times before values; only archives have them.
    pub detail: Option<Detail>,
    /// True if rows without event records are reported.
    pub is_verbose: bool,
    /// True if rows go to a terminal.
    pub is_terminal: bool,
    /// Destination of errors about the metric.
    pub messages: &'r Messages,
    /// Destination of rows.
    pub out: Output,
    /// State between samples.
    pub state: State,
    /// How the metric and its instances are found again.
    pub look_up: LookUp<'r>,
}

/// The instances of a metric that has a domain.
type FoundInstances = Result<Option<Instances>, Stop>;

/// Looks up a metric and its instances again, after a live source has announced changes or is
/// another one.
pub struct LookUp<'r> {
    /// Finds the descriptor.
    pub desc: &'r dyn Fn(&mut ToolSource) -> Result<MetricDesc, Stop>,
    /// Finds the instances.
    pub instances: &'r dyn Fn(&mut ToolSource, MetricDesc) -> FoundInstances,
    /// Epoch of the metadata at the last look.
    pub epoch: u64,
}

/// The form of values.
pub enum Form {
    /// As they are.
    Values(Table),
    /// Growth per time.
    Rates(Table),
    /// Event records.
    Events(Parameters),
}

/// The request to the source, and the end of the report.
pub struct SampleRequest {
    /// The metric.
    pub list: FetchList,
    /// True for the records of an archive as they are, marks included.
    pub by_record: bool,
    /// Nanoseconds between samples that an archive interpolates.
    pub step: i64,
    /// Rows to print; `None` if there is no limit.
    pub rows: Option<u64>,
    /// Time of the last sample at most.
    pub end: Option<Timestamp>,
    /// False if the time of the first sample has the nanoseconds of a full second.
    pub is_carried: bool,
    /// True if only the end of an archive ends the report.
    pub is_all: bool,
}

/// The state of a report between samples.
pub struct State {
    /// The sample before, if it had values.
    before: Option<Box<Sample>>,
    /// True if a fetch since the last row had no values.
    has_missed: bool,
    /// True if a row was printed since the start, or since logging was suspended.
    has_reported: bool,
    /// True if a sample was taken.
    has_sampled: bool,
    /// True if a live source restarted since the sample before.
    has_gap: bool,
    batch: ResultBatch,
    clock: Clock,
    /// Buffers for the next sample.
    spare: Option<Box<Sample>>,
    value_type: ValueType,
}

impl State {
    /// The state before the first sample of a metric of type `value_type`.
    pub fn new(value_type: ValueType) -> State {
        State {
            before: None,
            has_missed: false,
            has_reported: false,
            has_sampled: false,
            has_gap: false,
            batch: ResultBatch::default(),
            clock: Clock::default(),
            spare: None,
            value_type,
        }
    }

    /// Takes the next sample at an interval.
    fn next_sample(
        &mut self,
        context: &mut Session<AnyNamed>,
        list: &FetchList,
    ) -> Result<Next, SourceError> {
        self.has_gap = context.fetch(list, &mut self.batch)?.gap;
        let mut sample = take_spare(&mut self.spare, self.value_type);
        let outcome = sample.read(self.batch.sets().next()).map(|()| Some(sample));
        Ok(Next { time: self.batch.timestamp(), outcome })
    }

    /// Reads the next record of an archive that has the metric or is a mark.
    fn next_record(&mut self, context: &mut Context, pmid: Pmid) -> Result<Next, SourceError> {
        let Context::Archive(archive) = context else {
            return Err(SourceError::Status { target: context.name(), status: PmStatus::MODE });
        };
        self.has_gap = false;
        loop {
            archive.read_record(&mut self.batch)?;
            self.has_gap |= archive.follows_damage();
            let time = self.batch.timestamp();
            let mut sets = self.batch.sets().peekable();
            if sets.peek().is_none() {
                return Ok(Next { time, outcome: Ok(None) });
            }
            let set = sets.find(|set| set.pmid == pmid);
            if set.is_some() {
                let mut sample = take_spare(&mut self.spare, self.value_type);
                let outcome = sample.read(set).map(|()| Some(sample));
                return Ok(Next { time, outcome });
            }
        }
    }
}

/// An empty sample, in buffers of an earlier one.
fn take_spare(spare: &mut Option<Box<Sample>>, value_type: ValueType) -> Box<Sample> {
    spare.take().unwrap_or_else(|| Box::new(Sample::new(value_type)))
}

/// The next delivery of the source.
struct Next {
    time: Timestamp,
    /// Values, or the reason for having none; `None` for a mark.
    outcome: Result<Option<Box<Sample>>, PmStatus>,
}

/// Result of a fetch.
enum FetchOutcome {
    Sample(Box<Sample>),
    /// No values; the reason was printed.
    Nothing,
    /// The end of the report.
    End,
}

impl Report<'_> {
    /// Prints rows until there are no more.
    ///
    /// # Errors
    /// The source failed, or a value makes no sense.
    pub fn run(&mut self) -> Result<ExitStatus, Stop> {
        let mut outcome = ExitStatus::Good;
        let mut rows = 0..self.request.rows.unwrap_or(u64::MAX);
        while rows.next().is_some() {
            let goes_on = self.turn();
            if self.is_awaited() || self.out.len() >= FULL || goes_on.is_err() {
                self.out.flush()?;
            }
            outcome = outcome.max(self.tell_warnings()?);
            if !goes_on? {
                break;
            }
        }
        self.out.flush()?;
        // pmval does not look beyond the last row.
        if self.request.is_all && self.source.dialect == Dialect::Fixed {
            let rest = check_rest(self.source.kind());
            outcome = outcome.max(self.tell_warnings()?);
            rest.map_err(|error| self.failed(&error))?;
        }
        Ok(outcome)
    }

    /// Prints one row. The first rate needs two samples. Returns false at the end.
    fn turn(&mut self) -> Result<bool, Stop> {
        if self.state.before.is_none() {
            match self.fetch()? {
                FetchOutcome::End => return Ok(false),
                FetchOutcome::Nothing => self.state.has_missed = true,
                FetchOutcome::Sample(sample) => {
                    self.write_labels();
                    if !matches!(self.form, Form::Rates(_)) {
                        self.write_row(None, &sample)?;
                        self.state.before = Some(sample);
                        return Ok(true);
                    }
                    // Rows have begun, but this one lacks an earlier sample.
                    if self.state.has_missed || self.state.has_reported {
                        self.write_nothing(sample.time);
                    }
                    self.state.has_missed = false;
                    self.state.before = Some(sample);
                }
            }
        }
        if self.source.sampler.pace.is_some() {
            self.out.flush()?;
            self.source.sampler.wait();
        }
        let Some(before) = self.state.before.take() else { return Ok(true) };
        match self.fetch()? {
            FetchOutcome::End => return Ok(false),
            FetchOutcome::Nothing => {}
            FetchOutcome::Sample(sample) => {
                self.follow_instances(&sample)?;
                match self.state.has_gap && matches!(self.form, Form::Rates(_)) {
                    true => self.write_nothing(sample.time),
                    false => self.write_row(Some(&before), &sample)?,
                }
                self.state.before = Some(sample);
            }
        }
        self.state.spare = Some(before);
        Ok(true)
    }

    /// Gives new instances columns.
    fn follow_instances(&mut self, sample: &Sample) -> Result<(), Stop> {
        let Some(instances) = &mut self.instances else { return Ok(()) };
        // pmval leaves out the records of instances that come later.
        if matches!(self.form, Form::Events(_)) && self.source.dialect != Dialect::Fixed {
            return Ok(());
        }
        if instances.follow(&mut self.source.context, sample.instances())? {
            self.write_labels();
        }
        Ok(())
    }

    fn write_labels(&mut self) {
        if let (Some(instances), Form::Values(table) | Form::Rates(table)) =
            (&self.instances, &mut self.form)
        {
            table.write_labels(&mut self.out, instances);
        }
    }

    fn write_row(&mut self, before: Option<&Sample>, sample: &Sample) -> Result<(), Stop> {
        self.write_time(sample.time);
        let instances = self.instances.as_ref();
        let written = match (&mut self.form, before) {
            (Form::Events(parameters), _) => {
                if self.detail.is_some() {
                    self.out.extend_from_slice(b"  ");
                }
                let ToolSource { context, zone, .. } = &mut self.source;
                let (metric, value_type) = (self.name, self.desc.value_type);
                let events = Events { metric, value_type, instances, zone };
                events.write(&mut self.out, sample, parameters, context)?;
                Ok(())
            }
            (Form::Rates(table), Some(before)) => {
                let elapsed = elapsed(before.time, sample.time, self.source.dialect);
                // A clock that stands still or goes back gives no rate; pmval divides nevertheless.
                let is_told = elapsed > 0.0 || self.source.dialect != Dialect::Fixed;
                let nothing = (!is_told).then(|| Sample::new(self.desc.value_type));
                let before = nothing.as_ref().unwrap_or(before);
                table.write_rates(&mut self.out, instances, before, sample, elapsed)
            }
            (Form::Values(table) | Form::Rates(table), before) => {
                table.write_values(&mut self.out, instances, before, sample)
            }
        };
        self.state.has_reported = true;
        let dialect = self.source.dialect;
        written.map_err(|status| Stop::tool(&[&"pmExtractValue: ", &dialect.text(status)]))
    }

    fn write_time(&mut self, time: Timestamp) {
        if let Some(detail) = self.detail {
            self.state.clock.write(&mut self.out, detail, time, &self.source.zone);
        }
    }

    fn write_nothing(&mut self, time: Timestamp) {
        let is_events = matches!(self.form, Form::Events(_));
        if is_events && !self.is_verbose && self.source.dialect == Dialect::Fixed {
            return;
        }
        self.write_time(time);
        self.out.extend_from_slice(if self.detail.is_some() { b"  " } else { b"" });
        let _ = match (is_events, self.is_verbose) {
            (false, _) => writeln!(self.out, "No values available"),
            (true, true) => writeln!(self.out, "{}: No values available", self.name),
            // pmval does not even end the line.
            (true, false) => Ok(()),
        };
    }

    /// Takes the next sample.
    fn fetch(&mut self) -> Result<FetchOutcome, Stop> {
        let mut next = self.next()?;
        if self.has_changed()? {
            next = self.next()?;
            self.state.has_gap = true;
        }
        let Some(Next { time, outcome }) = next else { return Ok(FetchOutcome::End) };
        let outcome = match outcome {
            Ok(None) => {
                self.write_time(time);
                self.out.extend_from_slice(b"  Archive logging suspended\n");
                self.state.has_reported = false;
                return Ok(FetchOutcome::Nothing);
            }
            Ok(Some(sample)) => Ok(sample),
            Err(status) => Err(status),
        };
        let is_behind = |end: Timestamp| match self.source.dialect {
            Dialect::Fixed => time > end,
            // pmval compares binary numbers of seconds.
            _ => time.to_seconds() > end.to_seconds(),
        };
        if self.request.end.is_some_and(is_behind) {
            return Ok(FetchOutcome::End);
        }
        match outcome {
            Ok(sample) if sample.is_empty() => {
                self.write_nothing(time);
                Ok(FetchOutcome::Nothing)
            }
            Ok(mut sample) => {
                sample.time = time;
                Ok(FetchOutcome::Sample(sample))
            }
            Err(status) => {
                self.out.flush()?;
                let text = self.source.dialect.text(status);
                self.messages.failed_fetch(&[&self.request.call(), &": ", &text]);
                match status {
                    // An unreadable record is a failure of the source, not of this metric.
                    PmStatus::LOGREC => Err(Stop::Reported),
                    _ => Ok(FetchOutcome::Nothing),
                }
            }
        }
    }

    /// Follows changed metadata of a live source. True if the metric has another identifier now,
    /// or its instances have other names: then the values just fetched belong to others. pmval does
    /// not look.
    ///
    /// # Errors
    /// The metric is another one.
    fn has_changed(&mut self) -> Result<bool, Stop> {
        let epoch = self.source.context.metadata_epoch();
        let is_live = self.detail.is_none() && self.source.dialect == Dialect::Fixed;
        if !is_live || std::mem::replace(&mut self.look_up.epoch, epoch) == epoch {
            return Ok(false);
        }
        // While the metric is absent, each fetch reports it.
        let Ok(desc) = (self.look_up.desc)(&mut self.source) else { return Ok(false) };
        if (MetricDesc { pmid: self.desc.pmid, ..desc }) != self.desc {
            let change = "has another type, units, semantics or instance domain now: begin again";
            self.out.flush()?;
            return Err(Stop::tool(&[&self.name, &" ", &change]));
        }
        let mut has_changed = desc.pmid != self.desc.pmid;
        if has_changed {
            self.desc = desc;
            self.request.list = FetchList::new(vec![desc.pmid], Vec::new());
        }
        if let Some(before) = &self.instances
            && let Some(now) = (self.look_up.instances)(&mut self.source, desc)?
            && !before.agrees_with(&now)
        {
            self.instances = Some(now);
            self.write_labels();
            has_changed = true;
        }
        Ok(has_changed)
    }

    /// True if a user may be waiting for each row.
    fn is_awaited(&self) -> bool {
        self.source.sampler.waits() || self.is_terminal
    }

    /// Prints warnings, after the rows before them.
    fn tell_warnings(&mut self) -> Result<ExitStatus, Stop> {
        let has_warnings = match self.source.kind() {
            Context::Archive(archive) => archive.has_warnings(),
            _ => false,
        };
        if !has_warnings {
            return Ok(ExitStatus::Good);
        }
        self.out.flush()?;
        Ok(self.source.tell_damage(self.messages))
    }

    /// The next values of the metric; `None` at the end of an archive.
    fn next(&mut self) -> Result<Option<Next>, Stop> {
        let ToolSource { context, sampler, .. } = &mut self.source;
        let (request, state, out) = (&self.request, &mut self.state, &mut self.out);
        let next = sampler.take(&mut Attempt { context, messages: self.messages }, |attempt| {
            let next = match request.by_record {
                true => state.next_record(attempt.context(), self.desc.pmid),
                false => state.next_sample(attempt.context, &request.list),
            };
            if next.as_ref().is_err_and(SourceError::is_end_of_archive) {
                // More values may come only much later.
                out.flush()?;
            }
            Ok(next?)
        });
        match next {
            Ok(Some(mut next)) if !request.by_record => {
                next.time = self.as_shown(next.time);
                // pmval ignores gaps, and archives have marks.
                self.state.has_gap &=
                    self.detail.is_none() && self.source.dialect == Dialect::Fixed;
                self.state.has_sampled = true;
                Ok(Some(next))
            }
            Err(Stop::Source(error)) => Err(self.failed(&error)),
            next => next,
        }
    }

    /// Reports the failure of the source, and ends the run.
    fn failed(&mut self, error: &SourceError) -> Stop {
        if let Err(error) = self.out.flush() {
            return error.into();
        }
        let (call, text) = (self.request.call(), self.source.dialect.text(error.status()));
        let is_all = matches!(error, SourceError::Status { .. }) || self.messages.are_of_tool();
        let error = error.to_string();
        match is_all {
            true => self.messages.failed_fetch(&[&call, &": ", &text]),
            false => self.messages.failed_fetch(&[&call, &": ", &text, &"\n", &Foreign(&error)]),
        }
        Stop::Reported
    }

    /// The time as pmval prints it: libpcp rounds up to a full second without carrying it over.
    fn as_shown(&self, time: Timestamp) -> Timestamp {
        let is_fractional = self.request.step % NSEC_PER_SEC != 0;
        let is_exact = self.source.dialect == Dialect::Fixed;
        let is_sum = is_fractional && self.state.has_sampled || !self.request.is_carried;
        if is_sum && !is_exact && time.nsec == 0 {
            return Timestamp { sec: time.sec - 1, nsec: 1_000_000_000 };
        }
        time
    }
}

impl SampleRequest {
    /// The function of libpcp that takes such a sample, for messages.
    fn call(&self) -> &'static str {
        if self.by_record { "pmFetchArchive" } else { "pmFetch" }
    }
}

/// Nanoseconds in a second.
pub const NSEC_PER_SEC: i64 = 1_000_000_000;

/// Bytes that are printed at once if no user waits for rows.
const FULL: usize = 1 << 15;

/// Seconds from one time to another. libpcp's versions have only the precision of seconds since
/// the epoch in floating point.
pub fn elapsed(from: Timestamp, to: Timestamp, dialect: Dialect) -> f64 {
    match dialect {
        Dialect::Fixed => to.seconds_since(from),
        Dialect::Pcp6_0 | Dialect::Pcp7_2 => to.to_seconds() - from.to_seconds(),
    }
}

//! `pmderive val` prints what pmval(1) prints of one metric, sample after sample.
//!
//! ```text
//! arguments ──► source, window, metric ──► header ──┐
//!                                                   ├──► standard output
//!           samples ──► report ──► table, events ───┘
//! ```

mod arguments;
mod events;
mod header;
mod instances;
mod moment;
mod number;
mod report;
mod row;
mod sample;
mod table;

use std::io::Write;
use std::time::Duration;

use pmderive_runtime::archive::InterpolationRules;
use pmderive_runtime::context::HostSpec;
use pmderive_runtime::model::{
    MetricDesc, MetricSpec, PmStatus, RawValue, Semantics, SpecSource, Timestamp, Value, ValueType,
};
use pmderive_runtime::result::{InstanceValue, MetricValues};
use pmderive_runtime::source::{FetchList, FetchSource, MetadataSource, Mode, SourceError};
use pmderive_runtime::time::TimeWindow;

pub use self::arguments::ValArguments;
use self::header::Header;
use self::instances::{Instances, names_in};
pub use self::moment::Detail;
use self::number::NumberFormat;
use self::report::{Form, LookUp, Report, SampleRequest, State, elapsed};
use self::table::Table;
use crate::cli::args::{LONGEST_INTERVAL, SourceArguments};
use crate::cli::exit_status::ExitStatus;
use crate::cli::lines::Lines;
use crate::cli::messages::Messages;
use crate::cli::pcp::arguments::refused_host;
use crate::cli::pcp::mistakes::UnreadableFiles;
use crate::cli::pcp::options::{NO_ZONE, PcpOptions, archives_of_this_host};
use crate::cli::pcp::source::{ARCHIVES_ONLY, Attempt, ToolSource};
use crate::cli::positional::is_expression;
use crate::cli::samples::pace::Pace;
use crate::cli::samples::time::DEFAULT_INTERVAL;
use crate::cli::stop::Stop;
use crate::cli::terminal::{Purpose, is_output_closed, shows_output};
use crate::dialect::Dialect;
use crate::engine::Backend;
use crate::escape::{self, Foreign};
use crate::text::Escaping;

/// An open source with its metric.
struct OpenMetric {
    source: ToolSource,
    /// Name of the archive, as the user gave it.
    archive: Option<String>,
    host: String,
    window: TimeWindow,
    /// True if the zone and an empty line were printed.
    is_zone_told: bool,
}

/// Runs the command.
pub fn run(arguments: &ValArguments, messages: &mut Messages) -> Result<ExitStatus, Stop> {
    let (options, spec) = with_source(arguments, messages)?;
    let mut opened = open(arguments, options, &spec, messages)?;
    let mut out = messages.output(Purpose::Exact);
    let escaping = out.escaping();
    let source = &mut opened.source;
    let names = source.take_expressions(&[spec.metric.to_string()], messages)?;
    let Some(metric) = names.first() else { return Ok(source.outcome()) };
    let name = metric;
    let desc = describe(source, name);
    source.tell_mistakes(&names, messages);
    let desc = desc?;
    let instances = choose_instances(arguments, &spec, source, desc, escaping)?;
    let is_archive = opened.archive.is_some();
    if let Some(filter) = arguments.filter.as_ref().filter(|_| !is_archive) {
        store(source, filter, desc, instances.as_ref())?;
    }
    let request = request(arguments, &opened, desc);
    let source = &mut opened.source;
    if is_archive {
        let interpolated = Mode::Interpolated { step: request.step };
        let mode = if request.by_record { Mode::Forward } else { interpolated };
        begin_at(source, mode, opened.window.origin)?;
    }
    source.sampler.follower = arguments.follow.begin(source.kind(), messages)?;
    let is_event = desc.value_type.is_event();
    if !opened.is_zone_told && !is_event {
        writeln!(out)?;
    }
    // The header is printed even if the columns make no sense.
    out.flush()?;
    let format = number_format(arguments, desc)?;
    let name = &*escaping.text(name);
    write!(out, "{}", header(arguments, &opened, (name, desc), &request, escaping))?;
    let shows_rates = desc.semantics == Semantics::Counter && !arguments.raw;
    let OpenMetric { mut source, .. } = opened;
    let detail = arguments.detail();
    let margin = if is_archive { detail.width() } else { 0 };
    let table = Table::new(desc, format, shows_rates, margin, source.dialect, escaping);
    let is_paced = !is_archive || arguments.delay;
    let interval = interval(arguments).min(LONGEST_INTERVAL);
    let now = source.sampler.clock.now();
    source.sampler.pace = is_paced.then(|| Pace::new(interval, now));
    if is_archive && !request.by_record && messages.are_of_tool() {
        warn_of_variable(messages);
    }
    let look_up = LookUp {
        desc: &|source| describe(source, metric),
        instances: &|source, desc| choose_instances(arguments, &spec, source, desc, escaping),
        epoch: source.context.metadata_epoch(),
    };
    let mut report = Report {
        source,
        look_up,
        name,
        desc,
        instances,
        form: match (is_event, shows_rates) {
            (true, _) => Form::Events(events::Parameters::default()),
            (false, true) => Form::Rates(table),
            (false, false) => Form::Values(table),
        },
        request,
        detail: is_archive.then_some(detail),
        is_verbose: arguments.verbose,
        is_terminal: shows_output(),
        messages,
        out,
        state: State::new(desc.value_type),
    };
    let outcome = report.run()?;
    Ok(outcome.max(report.source.outcome()))
}

/// Opens the source, once the options are checked, and prints the zone.
fn open(
    arguments: &ValArguments,
    mut options: PcpOptions,
    spec: &MetricSpec,
    messages: &mut Messages,
) -> Result<OpenMetric, Stop> {
    options.is_followed = arguments.follow.is_given();
    let archive = options.source.archives().map(|path| escape::path(&path).into_owned());
    check(arguments, &options, messages)?;
    let backend = Backend::Auto.for_evaluations(arguments.samples);
    let names = [spec.metric.to_string()];
    let open =
        |messages: &mut Messages| options.open(&names, backend, UnreadableFiles::Fatal, messages);
    let mut source = arguments.follow.open(&is_output_closed, || open(messages))?;
    let host = host_name(&mut source, messages)?;
    let is_zone_told = source.zone_note.is_some();
    source.tell_zone(messages)?;
    let window = window(arguments, &mut source, messages)?;
    Ok(OpenMetric { source, archive, host, window, is_zone_told })
}

/// The request to the source.
fn request(arguments: &ValArguments, opened: &OpenMetric, desc: MetricDesc) -> SampleRequest {
    let OpenMetric { source, archive, window, .. } = opened;
    let is_event = desc.value_type.is_event();
    let by_record = archive.is_some() && (arguments.nointerp.is_some() || is_event);
    let interval = interval(arguments);
    let rows = match (arguments.samples, window.end) {
        (None, Some(end)) if !by_record && !is_event => {
            Some(samples_until(end, window.origin, interval, source.dialect))
        }
        (samples, _) => samples,
    };
    SampleRequest {
        list: FetchList::new(vec![desc.pmid], Vec::new()),
        by_record,
        step: step(interval, source.dialect),
        rows,
        end: window.end,
        is_carried: i64::from(window.origin.nsec) < report::NSEC_PER_SEC,
        is_all: arguments.samples.is_none() && arguments.window.finish.is_none(),
    }
}

/// The lines above the values.
fn header<'h>(
    arguments: &ValArguments,
    opened: &'h OpenMetric,
    metric: (&'h str, MetricDesc),
    request: &SampleRequest,
    escaping: Escaping,
) -> Header<'h> {
    let OpenMetric { source, archive, host, window, .. } = opened;
    let bound = |time| header_time(time, arguments.detail(), source);
    let archive = archive.as_deref();
    Header {
        metric: (!metric.1.value_type.is_event()).then_some(metric),
        is_raw: arguments.raw,
        archive: archive
            .map(|archive| (escaping.text(archive), bound(window.origin), window.end.map(bound))),
        host: escaping.text(host),
        samples: request.rows,
        interval: (!request.by_record).then(|| interval(arguments)),
    }
}

/// Time between samples.
fn interval(arguments: &ValArguments) -> Duration {
    arguments.interval.unwrap_or(DEFAULT_INTERVAL)
}

/// The name of the host that the metrics are from.
fn host_name(source: &mut ToolSource, messages: &Messages) -> Result<String, Stop> {
    let ToolSource { context, sampler, .. } = source;
    let mut attempt = Attempt { context, messages };
    let name = sampler.take(&mut attempt, |attempt| Ok(attempt.context.host_name()?))?;
    Ok(name.unwrap_or_default())
}

/// The time window.
fn window(
    arguments: &ValArguments,
    source: &mut ToolSource,
    messages: &Messages,
) -> Result<TimeWindow, Stop> {
    let mut window = source.window(&arguments.window.window(), messages)?;
    if arguments.follow.is_given() && arguments.window.finish.is_none() {
        // The present end is no limit.
        window.end = None;
    }
    if source.dialect != Dialect::Fixed {
        // pmval ignores an end in the first second of 1970.
        window.end = window.end.filter(|end| end.sec != 0);
    }
    Ok(window)
}

/// Positions an archive at the time of the first sample.
fn begin_at(source: &mut ToolSource, mode: Mode, origin: Timestamp) -> Result<(), SourceError> {
    let origin = match source.dialect {
        Dialect::Fixed => origin,
        // pmval drops everything below microseconds.
        _ => Timestamp::new(origin.sec, i64::from(origin.nsec / 1000 * 1000)),
    };
    source.context.set_mode(mode, Some(origin))
}

/// Formats a time for the header.
fn header_time(time: Timestamp, detail: Detail, source: &ToolSource) -> String {
    match detail {
        Detail::Clock => source.zone.ctime(time),
        _ if source.dialect == Dialect::Pcp6_0 => source.zone.ctime(time),
        _ => detail.of(time, &source.zone),
    }
}

/// Warns in libpcp's words if the variable about interpolation makes no sense.
fn warn_of_variable(messages: &Messages) {
    if let Some(error) = InterpolationRules::mistake_in_environment() {
        let variable = "Warning: bad $PCP_IGNORE_MARK_RECORDS";
        let format = "not in pmParseInterval(3) format";
        messages.error_lines(&[&variable, &": ", &format, &":\n", &error, &"\n"]);
    }
}

/// The layout of numbers in columns for the metric's type.
fn number_format(arguments: &ValArguments, desc: MetricDesc) -> Result<NumberFormat, Stop> {
    let ValArguments { width, precision, .. } = *arguments;
    let width = width.or_else(|| table::width(desc.value_type)).ok_or_else(|| {
        Stop::tool(&[&"unknown performance metric value type ", &desc.value_type])
    })?;
    match precision.filter(|digits| *digits > 0 && *digits + 2 > width) {
        Some(digits) => {
            Err(Stop::tool(&[&format_args!("-f {digits} too large for column width {width}")]))
        }
        None => Ok(NumberFormat { width, precision }),
    }
}

/// Checks that the options fit the source, before it is opened.
fn check(arguments: &ValArguments, options: &PcpOptions, messages: &Messages) -> Result<(), Stop> {
    let is_archive = !options.source.archive.is_empty();
    if !is_archive && !arguments.window.window().is_live() {
        messages.error(&ARCHIVES_ONLY);
        if options.zone.hostzone && options.source.local {
            messages.error(&NO_ZONE);
        }
        return Err(messages.usage());
    }
    if arguments.nointerp.is_some() && options.source.local {
        let wrong = "uninterpolated mode can only be used with archives";
        if messages.are_of_tool() {
            // pmval does not end the line.
            messages.text(&Lines::of(&[&"pmval: ", &wrong]));
            return Err(messages.usage());
        }
        return Err(Stop::tool(&[&wrong]));
    }
    if arguments.delay && !is_archive {
        return Err(messages.misuse(&"delay can only be used with archives"));
    }
    if arguments.delay && arguments.guimode {
        return Err(messages.misuse(&"guiflag cannot be used with delay"));
    }
    if arguments.guimode || arguments.guiport.is_some() {
        return Err(Stop::tool(&[
            &"-g and -p let pmtime control the report, which pmderive does not support; \
             -d replays an archive at the pace of its recording",
        ]));
    }
    Ok(())
}

/// The number of samples at an interval until the end of a window.
fn samples_until(end: Timestamp, origin: Timestamp, interval: Duration, dialect: Dialect) -> u64 {
    let intervals = elapsed(origin, end, dialect) / header::seconds(interval);
    // The first sample is at the origin itself.
    if intervals <= -1.0 { 0 } else { (intervals as u64).saturating_add(1) }
}

/// Nanoseconds between samples that an archive interpolates.
fn step(interval: Duration, dialect: Dialect) -> i64 {
    const MOST_MILLISECONDS: u64 = i32::MAX as u64 / 1000;
    // No archive is longer.
    let interval = interval.min(LONGEST_INTERVAL);
    let interval = match dialect {
        // Milliseconds or, for long intervals, seconds.
        Dialect::Pcp6_0 if interval.as_secs() < MOST_MILLISECONDS => {
            Duration::new(interval.as_secs(), interval.subsec_millis() * 1_000_000)
        }
        Dialect::Pcp6_0 => Duration::from_secs(interval.as_secs()),
        Dialect::Pcp7_2 => Duration::new(interval.as_secs(), interval.subsec_micros() * 1000),
        Dialect::Fixed => interval,
    };
    i64::try_from(interval.as_nanos()).unwrap_or(i64::MAX)
}

/// The descriptor of a metric.
fn describe(source: &mut ToolSource, name: &str) -> Result<MetricDesc, Stop> {
    let dialect = source.dialect;
    let pmid = source.context.lookup_names(&[name])?.pop().unwrap_or(Err(PmStatus::NAME));
    let pmid = pmid.map_err(|status| {
        Stop::tool(&[&"pmLookupName(", &Foreign(name), &"): ", &dialect.text(status)])
    })?;
    let desc = source.context.lookup_desc(pmid)?;
    desc.map(|desc| dialect.understood(desc))
        .map_err(|status| Stop::tool(&[&"pmLookupDesc: ", &dialect.text(status)]))
}

/// The instances to print, if the metric has any.
fn choose_instances(
    arguments: &ValArguments,
    spec: &MetricSpec,
    source: &mut ToolSource,
    desc: MetricDesc,
    escaping: Escaping,
) -> Result<Option<Instances>, Stop> {
    let Some(indom) = desc.indom else {
        return match spec.instances.is_empty() {
            true => Ok(None),
            false => {
                let name = Foreign(&spec.metric);
                Err(Stop::tool(&[&name, &": singular metrics do not have instances"]))
            }
        };
    };
    let names = match spec.instances.is_empty() {
        true => arguments.instances.iter().flat_map(|list| names_in(list)).collect(),
        false => spec.instances.clone(),
    };
    let instances = match spec.instances.is_empty() && arguments.instances.is_empty() {
        true => Instances::all(&mut source.context, indom, escaping),
        false => Instances::named(&mut source.context, indom, &names, escaping),
    };
    instances.map(Some)
}

/// Stores a value for the metric (pmStore(3)). With an instance domain it goes to each instance
/// shown.
fn store(
    source: &mut ToolSource,
    text: &str,
    desc: MetricDesc,
    instances: Option<&Instances>,
) -> Result<(), Stop> {
    let value = match desc.value_type {
        ValueType::Event | ValueType::HighResEvent => Ok(Value::Text(text.into())),
        value_type => Value::parse(text, value_type),
    };
    let value_type = desc.value_type;
    let text = Foreign(text);
    let value = value.map_err(|status| {
        let (what, problem) = match status {
            PmStatus::TYPE => ("filter", "incompatible with metric type"),
            _ => ("filter value", "is out of range for metric data type"),
        };
        let ending = format!("\" {problem} (PM_TYPE_{value_type})");
        Stop::tool(&[&what, &" \"", &text, &ending])
    })?;
    let value = RawValue::encode(&value);
    let of = |instance| InstanceValue { instance, value: value.clone() };
    let values = match instances.filter(|instances| instances.columns().next().is_some()) {
        Some(instances) => instances.columns().map(|(id, _)| of(id)).collect(),
        None => vec![of(-1)],
    };
    let sets = [MetricValues { pmid: desc.pmid, outcome: Ok(values) }];
    source
        .context
        .store(&sets)?
        .map_err(|status| Stop::tool(&[&"store value \"", &text, &"\" failed: ", &status]))
}

/// The options, with the source that the metric's argument names, if it does.
fn with_source(
    arguments: &ValArguments,
    messages: &Messages,
) -> Result<(PcpOptions, MetricSpec), Stop> {
    let language = arguments.options.definitions.language();
    let spec = match is_expression(&arguments.metric, language) && !messages.are_of_tool() {
        true => MetricSpec {
            source: SpecSource::Host(None),
            metric: arguments.metric.clone(),
            instances: Vec::new(),
        },
        false => MetricSpec::parse(&arguments.metric, SpecSource::Host(None))
            .map_err(|error| Stop::tool(&[&error]))?,
    };
    let mut options = arguments.options.clone();
    let given = &mut options.source;
    given.archive.extend(arguments.nointerp.iter().filter(|_| !given.local).cloned());
    let (has_host, has_archive) = (given.host.is_some(), !given.archive.is_empty());
    let is_second = match &spec.source {
        SpecSource::Host(None) | SpecSource::Archive(None) => false,
        SpecSource::Host(Some(_)) => has_archive || given.local,
        SpecSource::Archive(Some(_)) => has_host || given.local,
        // pmval prefers this machine to other sources.
        SpecSource::Local => (has_host || has_archive) && !messages.are_of_tool(),
    };
    if is_second {
        return Err(messages.misuse(&"only one host or archive allowed"));
    }
    match &spec.source {
        SpecSource::Host(Some(host)) => {
            let refused = refused_host(host).filter(|_| messages.are_of_tool());
            if let Some((reason, failure)) = refused {
                messages.text(&reason);
                return Err(Stop::tool(&[&Foreign(&failure)]));
            }
            given.host = Some(host.parse().map_err(|error| Stop::tool(&[&error]))?);
        }
        SpecSource::Archive(Some(archive)) => given.archive = vec![archive.into()],
        SpecSource::Local => {
            *given = SourceArguments { local: true, ..SourceArguments::default() };
        }
        _ if given.is_given() => {}
        _ if arguments.window.origin.is_some() => given.archive = vec![archives_of_this_host()?],
        _ => given.host = Some(HostSpec::local()),
    }
    Ok((options, spec))
}

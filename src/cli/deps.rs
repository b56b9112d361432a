//! `pmderive deps`: lists the metrics that definitions read. The list is text, JSON, a
//! configuration of pmlogger, or metadata.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use pmderive_runtime::source::MetadataSource;

use crate::bind::{Desc, Name};
use crate::deps::{Dependencies, Dependency, Need, dependencies};
use crate::diag::printable;
use crate::engine::{Backend, Engine};
use crate::metadata::RecordedMetadata;
use crate::report::json::{write_desc, write_status};
use crate::text::SourceMap;
use crate::text::json::write_object;

use super::args::{DefinitionArguments, SourceArguments, interval};
use super::definitions::CommandDefinitions;
use super::exit_status::ExitStatus;
use super::messages::Messages;
use super::positional::PositionalArguments;
use super::source::open_metadata;
use super::stop::Stop;
use super::terminal::Purpose;

/// Arguments of `deps`.
#[derive(Debug, Args)]
pub struct DepsArguments {
    /// Where metrics come from; without it, the list is what the texts alone tell.
    #[command(flatten)]
    pub source: SourceArguments,
    /// Definitions.
    #[command(flatten)]
    pub definitions: DefinitionArguments,
    /// Take metadata from FILE instead of a source; `--format metadata` writes it.
    #[arg(
        long, value_name = "FILE", num_args = 0..=1, require_equals = true,
        hide_possible_values = true
    )]
    #[allow(clippy::option_option, reason = "an option whose value may be left out")]
    pub metadata: Option<Option<PathBuf>>,
    /// Let pmlogger log every INTERVAL, such as 10sec [default: pmlogger's own].
    #[arg(short = 't', long, value_name = "INTERVAL", value_parser = interval)]
    pub interval: Option<Duration>,
    /// Choose the form of the list.
    #[arg(long, value_enum, default_value_t)]
    pub format: DepsFormat,
    /// Say which definitions read each metric.
    #[arg(short, long, display_order = 993)]
    pub verbose: bool,
    /// What to look at.
    #[command(flatten)]
    pub positional: PositionalArguments,
}

impl DepsArguments {
    /// True if metadata are asked for, also in the old form: `--metadata` without a file.
    fn writes_metadata(&self) -> bool {
        self.format == DepsFormat::Metadata || self.metadata == Some(None)
    }
}

/// Forms of the list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum DepsFormat {
    /// A metric on each line.
    #[default]
    Text,
    /// One object.
    Json,
    /// A configuration of pmlogger(1) that logs these metrics.
    Pmlogger,
    /// Metadata, which `--metadata` reads in place of a source.
    Metadata,
}

/// The longest interval of pmlogger(1): a little below 74 hours.
const LONGEST_INTERVAL: Duration = Duration::from_secs(73 * 3600);

/// Runs the command.
pub fn run(arguments: &DepsArguments, messages: &mut Messages) -> Result<ExitStatus, Stop> {
    check_usage(arguments)?;
    let (mut definitions, names) = CommandDefinitions::read_positional(
        &arguments.definitions,
        &arguments.positional,
        SourceMap::default(),
    );
    match arguments.positional.is_empty() {
        true => definitions.select_all(),
        false => definitions.select(names),
    }
    let mistakes = std::mem::take(&mut definitions.diagnostics);
    let mut outcome = if mistakes.errors() > 0 { ExitStatus::Mistake } else { ExitStatus::Good };
    messages.diagnostics(mistakes, &definitions.sources);
    definitions.warn_of_system_mistakes(messages);

    let writes_metadata = arguments.writes_metadata();
    let dialect = arguments.definitions.language().dialect;
    let mut source: Option<Box<dyn MetadataSource>> = match &arguments.metadata {
        Some(None) | None if writes_metadata => {
            Some(Box::new(arguments.source.open(dialect, messages)?))
        }
        file => {
            let file = file.iter().flatten().next().map(|file| &**file);
            open_metadata(&arguments.source, file, dialect, messages)?
        }
    };
    let selection = definitions.selection();
    let engine = Engine::of_this_machine(arguments.definitions.language(), Backend::Interp);
    let registry = &definitions.registry;
    let needs = match &mut source {
        Some(source) => dependencies(&engine, registry, &selection, Some(&mut **source))?,
        None => dependencies(&engine, registry, &selection, None)?,
    };
    messages.warnings_of(&engine);
    for (name, by) in &needs.refused {
        messages.warning(&format_args!(
            "`{by}` reads the derived metric `{name}`, which needs --extensions"
        ));
    }
    let out = match (&mut source, arguments.format) {
        (Some(source), _) if writes_metadata => {
            let names = needs.metrics.iter().map(|metric| &*metric.name);
            RecordedMetadata::record(names, needs.domains.iter().copied(), &mut **source)?.to_json()
        }
        (_, DepsFormat::Text | DepsFormat::Metadata) => text(&needs, arguments.verbose),
        (source, DepsFormat::Json) => {
            json(&needs, source.as_ref().map(|source| source.name()).as_deref())
        }
        (_, DepsFormat::Pmlogger) => pmlogger(&needs, arguments),
    };
    messages.output(Purpose::Exact).print(out)?;
    let lacking = |metric: &Dependency| metric.is_missing() && metric.need() <= Need::Metadata;
    if needs.metrics.iter().any(lacking) {
        outcome = outcome.max(ExitStatus::Failed);
    }
    Ok(outcome)
}

fn check_usage(arguments: &DepsArguments) -> Result<(), Stop> {
    let usage = |text: &str| Err(Stop::Usage(text.to_owned()));
    let DepsArguments { definitions, positional, metadata, format, .. } = arguments;
    if definitions.configs.is_empty() && positional.is_empty() {
        return usage("nothing to list: give a definition file or an expression");
    }
    if matches!(metadata, Some(Some(_))) && arguments.source.is_given() {
        return usage("give metadata (--metadata=FILE) or a source, not both");
    }
    if arguments.writes_metadata() {
        if let Some(file) = positional.arguments.iter().find(|text| text.ends_with(".json")) {
            return Err(Stop::Usage(format!(
                "`{file}` is no definition file; to read metadata from it, write --metadata={file}"
            )));
        }
        if matches!(metadata, Some(Some(_))) {
            return usage("metadata come from a source: give one with -h, -a or -L");
        }
        if !matches!(format, DepsFormat::Text | DepsFormat::Metadata) || arguments.verbose {
            return usage("metadata are JSON of one form: leave out --format and --verbose");
        }
    }
    match arguments.interval {
        Some(_) if *format != DepsFormat::Pmlogger || arguments.writes_metadata() => {
            usage("an interval (-t) is for --format pmlogger only")
        }
        Some(interval) if interval > LONGEST_INTERVAL => {
            usage("pmlogger takes intervals up to 73 hours")
        }
        Some(interval) if interval.subsec_nanos() % 1_000_000 != 0 => {
            usage("pmlogger takes intervals in whole milliseconds")
        }
        _ => Ok(()),
    }
}

/// Remark about a metric in the text form.
fn remark(metric: &Dependency) -> String {
    let mut remarks = Vec::new();
    match metric.need() {
        Need::Values => {}
        Need::Metadata => remarks.push("not fetched, only its metadata: meta=".to_owned()),
        Need::Existence => {
            remarks.push("not fetched, only whether it exists: defined()".to_owned())
        }
        Need::Nothing => remarks.push("only in branches that are never chosen".to_owned()),
    }
    match metric.meaning {
        Some(Name::Unknown(status)) => {
            remarks.push(format!("not in this source: {status}"));
        }
        Some(Name::NoDescriptor(status)) => {
            remarks.push(format!("without metadata: {status}"));
        }
        _ => {}
    }
    match remarks.is_empty() {
        true => String::new(),
        false => format!("  ({})", remarks.join("; ")),
    }
}

fn text(needs: &Dependencies, verbose: bool) -> String {
    let mut out = String::new();
    for metric in &needs.metrics {
        let _ = writeln!(out, "{}{}", metric.name, remark(metric));
        if verbose {
            for definition in metric.needed_by.keys() {
                let _ = writeln!(out, "    {}", printable(definition));
            }
        }
    }
    out
}

/// The word of a need in JSON.
fn word(need: Need) -> &'static str {
    match need {
        Need::Values => "values",
        Need::Metadata => "metadata",
        Need::Existence => "existence",
        Need::Nothing => "nothing",
    }
}

fn json(needs: &Dependencies, source: Option<&str>) -> String {
    let mut out = String::new();
    write_object(&mut out, |object| {
        object.text_or_null("source", source);
        object.list("metrics", &needs.metrics, |out, metric| {
            // Each on a line.
            out.push('\n');
            write_dependency(out, metric);
        });
    });
    out.truncate(out.len() - "]}".len());
    out.push_str("\n]}\n");
    out
}

fn write_dependency(out: &mut String, metric: &Dependency) {
    write_object(out, |object| {
        object.text("name", &metric.name);
        object.text("need", word(metric.need()));
        object.objects("needed_by", &metric.needed_by, |object, (definition, need)| {
            object.text("definition", definition);
            object.text("need", word(*need));
        });
        match metric.meaning {
            Some(Name::Metric(desc)) => {
                object.text("pmid", &desc.pmid.to_string());
                object.member("desc", |out| write_desc(out, &Desc::from(desc)));
            }
            Some(Name::Unknown(status) | Name::NoDescriptor(status)) => {
                object.members(|out| write_status(out, status));
            }
            Some(Name::Derived(_) | Name::Nested { .. } | Name::Unusable) | None => {}
        }
    });
}

fn pmlogger(needs: &Dependencies, arguments: &DepsArguments) -> String {
    let mut out =
        "# What pmlogger(1) has to log for derived metrics, by pmderive deps.\n".to_owned();
    let interval = match arguments.interval {
        None => "default".to_owned(),
        Some(interval) if interval.subsec_nanos() == 0 => format!("{} sec", interval.as_secs()),
        Some(interval) => format!("{} msec", interval.as_millis()),
    };
    let all = || needs.metrics.iter();
    let wanted = |fetched: bool| {
        all().filter(move |metric| match metric.need() {
            Need::Values => fetched && !metric.is_missing(),
            Need::Metadata | Need::Existence => !fetched && !metric.is_missing(),
            Need::Nothing => false,
        })
    };
    let left_out: Vec<_> =
        all().filter(|metric| metric.need() == Need::Nothing || metric.is_missing()).collect();
    for metric in left_out {
        let _ = writeln!(out, "# left out: {}{}", metric.name, remark(metric));
    }
    let mut block = |comment: &str, interval: &str, metrics: Vec<&Dependency>| {
        if metrics.is_empty() {
            return;
        }
        let _ = write!(out, "\n{comment}log mandatory on {interval} {{\n");
        for metric in metrics {
            let _ = writeln!(out, "    {}", metric.name);
            if arguments.verbose {
                for definition in metric.needed_by.keys() {
                    // A comment ends with its line, and pmlogger expands words after `%`.
                    let comment = printable(definition).replace('%', "percent ");
                    let _ = writeln!(out, "        # {comment}");
                }
            }
        }
        out.push_str("}\n");
    };
    block("", &interval, wanted(true).collect());
    let comment = "# Once, so that the archive knows that they exist, and their metadata.\n";
    block(comment, "once", wanted(false).collect());
    out
}

//! `pmderive probe` prints which metrics have values, as pmprobe(1) does.

use std::collections::HashMap;
use std::io::Write;

use clap::Args;
use pmderive_runtime::model::{InDom, MetricDesc, PmStatus, Pmid};
use pmderive_runtime::source::{MetadataSource, SourceError};

use crate::cli::exit_status::ExitStatus;
use crate::cli::messages::Messages;
use crate::cli::pcp::batches::{BatchArgument, Batches};
use crate::cli::pcp::fetch::{
    Domain, Domains, MetricFetch, TOGETHER, Values, fetch, fetch_each, print_value,
};
use crate::cli::pcp::mistakes::UnreadableFiles;
use crate::cli::pcp::options::PcpOptions;
use crate::cli::pcp::source::ToolSource;
use crate::cli::pcp::walk;
use crate::cli::samples::window::WindowOptions;
use crate::cli::stop::Stop;
use crate::cli::terminal::{Output, Purpose};
use crate::dialect::Dialect;
use crate::engine::Backend;

/// Arguments of `probe`.
#[derive(Debug, Args)]
pub struct ProbeArguments {
    /// Where metrics come from.
    #[command(flatten)]
    pub options: PcpOptions,
    /// From when in an archive values are.
    #[command(flatten)]
    pub window: WindowOptions,
    /// How many metrics are fetched together.
    #[command(flatten)]
    pub batch: BatchArgument,
    /// What is printed.
    #[command(flatten)]
    pub shown: ProbeShown,
    /// Metrics, groups of metrics and expressions. Without any it is all metrics.
    #[arg(value_name = "METRIC|EXPRESSION")]
    pub names: Vec<String>,
}

/// What is printed besides the number of values.
#[derive(Debug, Args)]
pub struct ProbeShown {
    /// Print all instances, those without values included.
    #[arg(short, long)]
    pub force: bool,
    /// Assume that each name is a metric, and not a group.
    #[arg(short = 'F', long)]
    pub faster: bool,
    /// Print identifiers of instances.
    #[arg(short, long)]
    pub internal: bool,
    /// Print names of instances.
    #[arg(short = 'I', long)]
    pub external: bool,
    /// Print values.
    #[arg(short, long)]
    pub values: bool,
    /// Accepted only to explain why it does not help here.
    #[arg(short = 'V', long, hide = true)]
    pub libpcp_messages: bool,
}

impl ProbeShown {
    fn instances(&self) -> bool {
        self.internal || self.external
    }

    fn needs_desc(&self) -> bool {
        self.instances() || self.values
    }
}

/// A metric by name and identifier: `PM_ID_NULL` if the name has no metric.
type Metric = (String, Pmid);

/// Runs the command. Failures of single metrics leave the exit status at 0. It is 1 if an
/// archive is damaged.
pub fn run(arguments: &ProbeArguments, messages: &mut Messages) -> Result<ExitStatus, Stop> {
    let shown = &arguments.shown;
    if shown.values && shown.instances() {
        return Err(messages.misuse(&"at most one of -v and (-i or -I) allowed"));
    }
    if shown.libpcp_messages {
        let wrong = "-V counts messages of libpcp, which pmderive does not exchange";
        return Err(Stop::tool(&[&wrong]));
    }
    let options = arguments.options.with_source_of(&arguments.window)?;
    let mut source =
        options.open(&arguments.names, Backend::Interp, UnreadableFiles::Fatal, messages)?;
    source.start_at(&arguments.window, messages)?;
    let asked = source.take_expressions(&arguments.names, messages)?;
    if asked.is_empty() && !arguments.names.is_empty() {
        return Ok(source.outcome());
    }
    let batches = arguments.batch.of(source.is_archive())?;
    let mut out = messages.output(Purpose::Exact);
    let metrics = match shown.faster && !asked.is_empty() {
        true => look_up(&mut source, asked.clone(), batches, &mut out)?,
        false => {
            let names = below(&mut source, &asked, &mut out);
            source.tell_mistakes(&asked, messages);
            let names = names?;
            look_up(&mut source, names, batches, &mut out)?
        }
    };
    let (domains, ahead) = (Domains::of_all_times(), HashMap::new());
    let mut probe = Probe { shown, domains, ahead, source, messages, out };
    for group in batches.groups(&metrics) {
        let probed = probe.group(group, batches);
        probe.source.tell_mistakes(&asked, probe.messages);
        if let Err(stop) = probed {
            return Err(stop.after(probe.source.outcome()));
        }
    }
    probe.out.flush()?;
    Ok(probe.source.outcome().max(probe.source.tell_damage(probe.messages)))
}

/// All metrics at or below the nodes. A line is printed for each name that is no node.
fn below(source: &mut ToolSource, nodes: &[String], out: &mut Output) -> Result<Vec<String>, Stop> {
    let root = [String::new()];
    let nodes = if nodes.is_empty() { &root } else { nodes };
    let mut names = Vec::new();
    for node in nodes {
        match walk::metrics_below(source, node)? {
            Ok(below) => names.extend(below),
            Err(status) => print_status(out, source.dialect, node, status, ""),
        }
    }
    Ok(names)
}

/// Looks up identifiers of metrics. An unknown name is printed only if it is the only name:
/// libpcp reports no more.
fn look_up(
    source: &mut ToolSource,
    names: Vec<String>,
    batches: Batches,
    out: &mut Output,
) -> Result<Vec<Metric>, SourceError> {
    let texts: Vec<&str> = names.iter().map(String::as_str).collect();
    let pmids = source.context.lookup_names(&texts)?;
    if let [Err(status)] = pmids[..] {
        print_status(out, source.dialect, &names[0], status, "");
        return Ok(Vec::new());
    }
    let mut metrics = Vec::with_capacity(names.len());
    for (names, pmids) in names.chunks(batches.size).zip(pmids.chunks(batches.size)) {
        let both = names.iter().zip(pmids);
        match walk::lookup_failure(source.dialect, pmids) {
            Some(status) => {
                names.iter().for_each(|name| print_status(out, source.dialect, name, status, ""))
            }
            None => {
                metrics.extend(both.map(|(name, pmid)| (name.clone(), pmid.unwrap_or(Pmid::NULL))))
            }
        }
    }
    Ok(metrics)
}

fn print_status(out: &mut Output, dialect: Dialect, name: &str, status: PmStatus, function: &str) {
    // Writing to a vector does not fail.
    let (name, text) = (out.escaping().text(name), dialect.text(status));
    let _ = writeln!(out, "{name} {} {text}{function}", status.0);
}

/// Prints the results.
struct Probe<'a> {
    shown: &'a ProbeShown,
    source: ToolSource,
    messages: &'a mut Messages,
    domains: Domains,
    /// Results of metrics that were fetched ahead of their turn.
    ahead: HashMap<Pmid, MetricFetch>,
    out: Output,
}

impl Probe<'_> {
    fn group(&mut self, metrics: &[Metric], batches: Batches) -> Result<(), Stop> {
        let pmids: Vec<Pmid> = metrics.iter().map(|(_, pmid)| *pmid).collect();
        let descs = match self.shown.needs_desc() {
            true => self.source.context.lookup_descs(&pmids)?,
            false => vec![Err(PmStatus::PMID); metrics.len()],
        };
        let shown = self.shown;
        let size = if self.source.is_archive() { TOGETHER } else { batches.size };
        for (metrics, descs) in metrics.chunks(size).zip(descs.chunks(size)) {
            let done = if shown.force && shown.instances() {
                let mut both = metrics.iter().zip(descs);
                both.try_for_each(|((name, _), desc)| {
                    self.known_instances(name, *desc).map_err(Stop::from)
                })
            } else {
                self.fetch_ahead(metrics, descs)?;
                let mut both = metrics.chunks(batches.size).zip(descs.chunks(batches.size));
                both.try_for_each(|(metrics, descs)| self.batch(metrics, descs))
            };
            self.out.flush()?;
            done?;
        }
        Ok(())
    }

    /// Fetches metrics of an archive together. The records after the first one may matter to
    /// derived metrics whose instances are printed.
    fn fetch_ahead(
        &mut self,
        metrics: &[Metric],
        descs: &[Result<MetricDesc, PmStatus>],
    ) -> Result<(), Stop> {
        if !self.source.is_archive() {
            return Ok(());
        }
        let (fetches_all, instances) = (self.fetches_all(), self.shown.instances());
        let both = metrics.iter().zip(descs).filter(|(_, desc)| fetches_all || desc.is_ok());
        let pmids = both.map(|((_, pmid), _)| *pmid);
        let pmids: Vec<Pmid> = pmids.filter(|pmid| !(instances && pmid.is_derived())).collect();
        let found = fetch_each(&mut self.source, &pmids, &mut self.domains, self.messages)?;
        self.ahead = pmids.into_iter().zip(found).collect();
        Ok(())
    }

    /// True if metrics without a descriptor are fetched, too: pmprobe reads descriptors after
    /// it has fetched.
    fn fetches_all(&self) -> bool {
        !self.shown.needs_desc() || self.source.dialect != Dialect::Fixed
    }

    /// Prints all instances for which a metric may have values.
    fn known_instances(
        &mut self,
        name: &str,
        desc: Result<MetricDesc, PmStatus>,
    ) -> Result<(), SourceError> {
        let indom = match desc {
            Err(status) => {
                self.print_status(name, status, " (pmLookupDesc)");
                return Ok(());
            }
            Ok(desc) => desc.indom,
        };
        let Some(indom) = indom else {
            // pmprobe prints it for each of the two forms.
            let twice =
                self.source.dialect != Dialect::Fixed && self.shown.internal && self.shown.external;
            self.out.text(name.as_bytes());
            self.out.extend_from_slice(b" 1 PM_IN_NULL");
            self.out.extend_from_slice(if twice { b" PM_IN_NULL\n" } else { b"\n" });
            return Ok(());
        };
        match self.domains.get(&mut self.source, indom)? {
            Err(status) => self.print_status(name, status, " (pmGetInDom)"),
            Ok(domain) => {
                self.out.text(name.as_bytes());
                let _ = write!(self.out, " {}", domain.len());
                for (instance, _) in domain.instances() {
                    self.print_instance(instance, domain.name_in_bytes(instance).as_deref());
                }
                self.out.push(b'\n');
            }
        }
        Ok(())
    }

    fn print_status(&mut self, name: &str, status: PmStatus, function: &str) {
        print_status(&mut self.out, self.source.dialect, name, status, function);
    }

    fn print_instance(&mut self, instance: i32, name: Option<&[u8]>) {
        if self.shown.internal {
            let _ = write!(self.out, " ?{instance}");
        }
        match name.filter(|_| self.shown.external) {
            Some(name) => {
                self.out.extend_from_slice(b" \"");
                self.out.text(name);
                self.out.push(b'"');
            }
            None if self.shown.external => {
                let _ = write!(self.out, " ?{instance}");
            }
            None => {}
        }
    }

    fn batch(
        &mut self,
        metrics: &[Metric],
        descs: &[Result<MetricDesc, PmStatus>],
    ) -> Result<(), Stop> {
        if let ([(name, Pmid::NULL)], true) = (metrics, self.source.dialect != Dialect::Fixed)
            && let Err(status) = self.fetch(&[Pmid::NULL], std::iter::empty())?
        {
            // pmprobe fetches first. In an archive that fails for a name without a metric.
            self.print_status(name, status, " (pmFetch)");
            return Ok(());
        }
        let needs_desc = self.shown.needs_desc();
        let fetches_all = self.fetches_all();
        let is_fetched = |desc: &Result<MetricDesc, PmStatus>| fetches_all || desc.is_ok();
        let both = || metrics.iter().zip(descs);
        let pmids = both().filter(|(_, desc)| is_fetched(desc)).map(|((_, pmid), _)| *pmid);
        let pmids: Vec<Pmid> = pmids.collect();
        let indoms = descs.iter().filter_map(|desc| desc.ok()?.indom);
        let needs_domains = self.needs_domains();
        let indoms = indoms.filter(|_| needs_domains);
        let mut fetched = match pmids.is_empty() {
            true => Ok(Vec::new()),
            false => self.fetch(&pmids, indoms)?,
        };
        if let (true, Ok(values)) = (self.shown.instances(), &mut fetched) {
            self.look_ahead(&pmids, values)?;
        }
        if let (true, Ok(fetched)) = (self.is_answered_by_the_archive(), &mut fetched) {
            for (pmid, values) in pmids.iter().zip(fetched) {
                let is_unusable = matches!(values, Err(PmStatus::NOAGENT | PmStatus::PMID));
                if pmid.is_derived() && is_unusable {
                    *values = Ok(Vec::new());
                }
            }
        }
        let mut values = fetched.as_ref().map(|fetched| fetched.iter()).map_err(|status| *status);
        for ((name, _), desc) in both() {
            let found = match &mut values {
                Ok(values) if is_fetched(desc) => Ok(values.next()),
                Ok(_) => Ok(None),
                Err(status) => Err(*status),
            };
            match (desc, found) {
                (_, Err(status)) if is_fetched(desc) => {
                    self.print_status(name, status, " (pmFetch)");
                }
                (Err(status), _) if needs_desc => {
                    self.print_status(name, *status, " (pmLookupDesc)");
                }
                (desc, Ok(Some(values))) => self.metric(name, desc.ok(), values)?,
                _ => self.print_status(name, PmStatus::IPC, " (pmFetch)"),
            }
        }
        Ok(())
    }

    /// True if instances are printed only where their domain is known. pmprobe reads it for
    /// identifiers as well.
    fn needs_domains(&self) -> bool {
        self.shown.external || self.shown.internal && self.source.dialect != Dialect::Fixed
    }

    /// Fetches metrics from the chosen origin.
    fn fetch(
        &mut self,
        pmids: &[Pmid],
        indoms: impl Iterator<Item = InDom>,
    ) -> Result<Result<Vec<Values>, PmStatus>, Stop> {
        if let [pmid] = pmids
            && let Some(MetricFetch { outcome, .. }) = self.ahead.remove(pmid)
        {
            return Ok(outcome.map(|values| vec![values]));
        }
        self.source.rewind()?;
        fetch(&mut self.source, pmids, indoms, &mut self.domains, self.messages)
    }

    /// True if unusable derived metrics have no values, rather than a status. libpcp asks the
    /// archive for such a metric if it is alone in a fetch, and no record has it.
    fn is_answered_by_the_archive(&mut self) -> bool {
        self.source.is_archive() && self.source.dialect != Dialect::Fixed
    }

    /// Replaces the first values of derived metrics that need an earlier sample. They get the
    /// instances of the next sample; libpcp reports none.
    fn look_ahead(&mut self, pmids: &[Pmid], first: &mut [Values]) -> Result<(), Stop> {
        let is_open = |pmid: &Pmid, values: &Values| {
            pmid.is_derived() && values.as_ref().is_ok_and(Vec::is_empty)
        };
        let any_is_open = pmids.iter().zip(&*first).any(|(pmid, values)| is_open(pmid, values));
        if self.source.dialect != Dialect::Fixed || !any_is_open {
            return Ok(());
        }
        let none = std::iter::empty();
        let Ok(next) = fetch(&mut self.source, pmids, none, &mut self.domains, self.messages)?
        else {
            return Ok(());
        };
        for ((pmid, first), next) in pmids.iter().zip(first).zip(next) {
            if is_open(pmid, first) && next.is_ok() {
                *first = next;
            }
        }
        Ok(())
    }

    fn metric(
        &mut self,
        name: &str,
        desc: Option<MetricDesc>,
        values: &Values,
    ) -> Result<(), SourceError> {
        let values = match values {
            Err(status) => {
                self.print_status(name, *status, "");
                return Ok(());
            }
            Ok(values) => values,
        };
        self.out.text(name.as_bytes());
        let _ = write!(self.out, " {}", values.len());
        let indom = desc.and_then(|desc| desc.indom);
        let domain: Option<Domain> = match indom {
            Some(indom) if self.needs_domains() && !values.is_empty() => {
                Some(self.domains.get(&mut self.source, indom)?)
            }
            _ => None,
        };
        if let (Some(Err(status)), true) = (&domain, self.source.dialect != Dialect::Fixed) {
            // pmprobe puts no blank behind the number of values.
            let text = self.source.dialect.text(*status);
            let _ = writeln!(self.out, "{} {text} (pmGetInDom)", status.0);
            return Ok(());
        }
        let domain = domain.and_then(Result::ok);
        if let (Some(_), None) = (desc, indom)
            && !values.is_empty()
        {
            let kinds = usize::from(self.shown.internal) + usize::from(self.shown.external);
            self.out.extend_from_slice(" PM_IN_NULL".repeat(kinds).as_bytes());
        }
        for one in values {
            match (desc, indom) {
                (Some(desc), _) if self.shown.values => {
                    self.out.push(b' ');
                    let ToolSource { dialect, zone, .. } = &self.source;
                    print_value(&mut self.out, *dialect, zone, desc.value_type, &one.value);
                }
                (_, Some(_)) => {
                    let name = domain.as_ref();
                    let name = name.and_then(|domain| domain.name_in_bytes(one.instance));
                    self.print_instance(one.instance, name.as_deref());
                }
                (_, None) => {}
            }
        }
        self.out.push(b'\n');
        Ok(())
    }
}

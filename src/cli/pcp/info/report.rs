//! The report on each metric and each instance domain.

use std::borrow::Cow;
use std::fmt;
use std::io::Write;

use pmderive_runtime::model::{
    InDom, InstanceProfile, MetricDesc, PmStatus, Pmid, Semantics, TextKind, TextSubject, ValueType,
};
use pmderive_runtime::source::{FetchSource, Freshness, MetadataSource, SourceError};

use super::arguments::InfoShown;
use super::labels::Labels;
use super::lookup::{MetricInfo, describe};
use super::values;
use crate::check::units_name;
use crate::cli::messages::Messages;
use crate::cli::pcp::batches::Batches;
use crate::cli::pcp::fetch::{Domains, MetricFetch, TOGETHER, Values, fetch, fetch_each};
use crate::cli::pcp::source::ToolSource;
use crate::cli::pcp::walk;
use crate::cli::stop::Stop;
use crate::cli::terminal::{Output, Purpose};
use crate::dialect::Dialect;

/// Bytes that are buffered before they are written.
const ENOUGH: usize = 1 << 16;

/// Reports on metrics, batch by batch.
pub struct Report<'s> {
    shown: InfoShown,
    batches: Batches,
    source: &'s mut ToolSource,
    messages: &'s mut Messages,
    is_archive: bool,
    labels: Option<Labels>,
    domains: Domains,
    out: Output,
}

impl<'s> Report<'s> {
    /// An empty report.
    pub fn new(
        shown: InfoShown,
        batches: Batches,
        source: &'s mut ToolSource,
        messages: &'s mut Messages,
    ) -> Report<'s> {
        let (out, is_archive) = (messages.output(Purpose::Exact), source.is_archive());
        let domains = Domains::new(is_archive, source.dialect);
        Report { shown, batches, source, messages, is_archive, labels: None, domains, out }
    }

    /// The source of the report.
    pub fn source(&mut self) -> &mut ToolSource {
        self.source
    }

    /// Prints the mistakes of derived metrics; `asked` are the names that the user gave.
    pub fn tell_mistakes(&mut self, asked: &[String]) {
        self.source.tell_mistakes(asked, self.messages);
    }

    /// Prints an error about an argument.
    pub fn complain(&self, error: &dyn fmt::Display) {
        self.messages.line(error);
    }

    /// Writes the buffer.
    pub fn write(&mut self) -> Result<(), Stop> {
        Ok(self.out.flush()?)
    }

    /// Reports on metrics by their names.
    pub fn metrics(&mut self, names: &[&str]) -> Result<(), Stop> {
        let described = describe(&mut self.source.context, names, &self.shown)?;
        let InfoShown { labels, series, fetchall, .. } = self.shown;
        // Labels of an archive are those at the time of the values. Values by profile are those
        // of the next record.
        let is_placed = labels || series || fetchall;
        let size = match self.is_archive && !is_placed {
            true => TOGETHER,
            false => self.batches.size,
        };
        for batch in described.chunks(size) {
            let pmids: Vec<_> = batch.iter().map(|one| one.pmid).collect();
            if let Some(status) = walk::lookup_failure(self.source.dialect, &pmids) {
                for metric in batch {
                    let (name, status) = (self.shown_name(metric.name), self.text(status));
                    let _ = writeln!(self.out, "{name}: pmLookupName: {status}");
                }
                continue;
            }
            let fetched = match self.shown.needs_values() || self.is_archive && labels {
                true => self.fetch(batch)?,
                false => Vec::new(),
            };
            if (labels || series) && !self.shown.verifies() {
                self.look_up_labels(batch)?;
            }
            let mut fetched = fetched.into_iter();
            for metric in batch {
                match fetched.next() {
                    None => self.metric(metric, None)?,
                    Some(MetricFetch { outcome: Ok(values), at }) => {
                        at.map_or(Ok(()), |at| self.source.stand_at(at))?;
                        self.metric(metric, Some(values))?;
                    }
                    Some(MetricFetch { outcome: Err(status), .. }) => {
                        let (name, status) = (self.shown_name(metric.name), self.text(status));
                        let _ = writeln!(self.out, "{name}: pmFetch: {status}");
                    }
                }
            }
            if self.out.len() >= ENOUGH {
                self.write()?;
            }
        }
        Ok(())
    }

    /// A name, escaped for a line.
    fn shown_name<'n>(&self, name: &'n str) -> Cow<'n, str> {
        self.out.escaping().text(name)
    }

    fn look_up_labels(&mut self, metrics: &[MetricInfo<'_>]) -> Result<(), SourceError> {
        let Report { labels, source, is_archive, .. } = self;
        let labels = match labels {
            Some(labels) => labels,
            None => {
                let host = source.context.host_name()?;
                labels.insert(Labels::new(&host, *is_archive, source.dialect))
            }
        };
        let descs: Vec<MetricDesc> = metrics.iter().filter_map(|one| one.desc.ok()).collect();
        let levels: Vec<_> = descs.iter().flat_map(|desc| labels.levels(desc)).collect();
        labels.look_up(&mut source.context, levels.into_iter())
    }

    /// Fetches a batch.
    fn fetch(&mut self, metrics: &[MetricInfo<'_>]) -> Result<Vec<MetricFetch>, Stop> {
        let pmids: Vec<Pmid> = metrics.iter().map(|one| one.pmid.unwrap_or(Pmid::NULL)).collect();
        let Report { source, domains, messages, .. } = self;
        if self.is_archive {
            return fetch_each(source, &pmids, domains, messages);
        }
        let indoms = metrics.iter().filter_map(|one| one.desc.ok()?.indom);
        let indoms = indoms.filter(|_| self.shown.prints_values());
        let of_each = match fetch(source, &pmids, indoms, domains, messages)? {
            Ok(values) => values.into_iter().map(Ok).collect(),
            Err(status) => vec![Err(status); pmids.len()],
        };
        Ok(of_each.into_iter().map(|outcome| MetricFetch { outcome, at: None }).collect())
    }

    fn metric(&mut self, metric: &MetricInfo<'_>, values: Option<Values>) -> Result<(), Stop> {
        let MetricInfo { name, pmid, desc, one_line, help } = metric;
        let shown = self.shown.clone();
        if shown.needs_desc()
            && let Err(status) = desc
        {
            self.without_desc(name, *status);
            return Ok(());
        }
        if shown.verify {
            self.verify(name, *desc, values);
            return Ok(());
        }
        if shown.metadata_errors {
            self.verify_metadata(name, *desc, values);
            return Ok(());
        }
        if shown.prints_desc() || shown.helptext || shown.prints_values() || shown.labels {
            self.out.push(b'\n');
        }
        let values = match (values, desc) {
            (Some(Err(PmStatus::PROFILE)), Ok(desc)) if shown.fetchall => {
                match self.fetch_by_profile(desc)? {
                    Ok(values) => Some(values),
                    Err(status) => {
                        let (name, status) = (self.shown_name(name), self.text(status));
                        let _ = writeln!(self.out, "{name}: pmGetIndom: {status}");
                        return Ok(());
                    }
                }
            }
            (values, _) => values,
        };
        self.out.text(name.as_bytes());
        if shown.pmid || shown.fullpmid {
            let pmid = pmid.unwrap_or(Pmid::NULL);
            let _ = write!(self.out, " PMID: {pmid}");
            if shown.fullpmid {
                let _ = write!(self.out, " = {} = {:#x}", pmid.0, pmid.0);
            }
        }
        if let (true, Ok(desc)) = (shown.desc_oneline, desc) {
            self.print_desc_in_line(desc);
        }
        self.print_one_line(shown.oneline.then_some(one_line), shown.fullpmid);
        if let (true, Ok(desc)) = (shown.prints_desc(), desc) {
            self.print_desc(desc);
        }
        if let (Some(labels), Ok(desc)) = (&self.labels, desc) {
            if shown.series {
                labels.print_series(&mut self.out, name, desc);
            }
            if shown.labels {
                labels.print_metric(&mut self.out, desc);
            }
        }
        self.print_help(shown.helptext.then_some(help));
        let Ok(desc) = desc else { return Ok(()) };
        if let (true, Some(values)) = (shown.prints_values(), values) {
            let Report { out, source, domains, .. } = self;
            values::print(out, source, domains, desc, &values, &shown)?;
        }
        if let (Some(labels), Some(indom)) = (&self.labels, desc.indom) {
            let domain = self.domains.get(self.source, indom)?.unwrap_or_default();
            if shown.series {
                labels.print_instance_series(&mut self.out, indom, &domain);
            }
            if shown.labels {
                labels.print_instances(&mut self.out, desc, indom, &domain);
            }
        }
        Ok(())
    }

    /// Prints why a metric has no values.
    fn verify(&mut self, name: &str, desc: Result<MetricDesc, PmStatus>, values: Option<Values>) {
        let is_supported = desc.is_ok_and(|desc| desc.value_type != ValueType::NoSupport);
        let name = self.shown_name(name);
        let _ = match values {
            _ if !is_supported => writeln!(self.out, "{name}: Not Supported"),
            Some(Err(status)) => {
                let status = self.text(status);
                writeln!(self.out, "{name}: {status}")
            }
            Some(Ok(values)) if values.is_empty() => {
                writeln!(self.out, "{name}: No value(s) available")
            }
            _ => Ok(()),
        };
    }

    /// Prints why there can be no values, or what is wrong with a descriptor.
    fn verify_metadata(
        &mut self,
        name: &str,
        desc: Result<MetricDesc, PmStatus>,
        values: Option<Values>,
    ) {
        let problem = match (desc, values) {
            (Ok(desc), _) if desc.value_type == ValueType::NoSupport => "Not Supported".to_owned(),
            (Ok(desc), values) if values.as_ref().is_none_or(|values| !lasts(values)) => {
                match contradiction(&desc) {
                    Some(problem) => problem.to_owned(),
                    None => return,
                }
            }
            (_, Some(Err(status))) | (Err(status), _) => self.text(status),
            _ => return,
        };
        let name = self.shown_name(name);
        let _ = writeln!(self.out, "{name}: {problem}");
    }

    /// Prints that there is no descriptor, and why.
    fn without_desc(&mut self, name: &str, status: PmStatus) {
        let (name, text) = (self.shown_name(name), self.text(status));
        let shown = &self.shown;
        // Version 7 learns it from a fetch, if there is one.
        let is_fetched = self.source.dialect == Dialect::Pcp7_2 && shown.needs_values();
        let _ = if shown.desc_oneline {
            writeln!(self.out, "{name}\tMetadata unavailable")
        } else if is_fetched || shown.metadata_errors {
            writeln!(self.out, "{name}: {text}")
        } else {
            writeln!(self.out, "{name}: pmLookupDesc: {text}")
        };
    }

    /// The text of a status in the version of the tool.
    pub fn text(&self, status: PmStatus) -> String {
        self.source.dialect.text(status)
    }

    /// Appends the one-line help and ends the line. If the line `is_full`, the help has a line
    /// of its own.
    fn print_one_line(&mut self, text: Option<&Result<Box<str>, PmStatus>>, is_full: bool) {
        let dialect = self.source.dialect;
        let _ = match text {
            None => Ok(()),
            Some(Ok(text)) => {
                let before = if is_full { "\n    " } else { " " };
                let text = self.out.escaping().text(text);
                write!(self.out, "{before}[{text}]")
            }
            Some(Err(status)) => {
                write!(self.out, " One-line Help: Error: {}", dialect.text(*status))
            }
        };
        self.out.push(b'\n');
    }

    fn print_help(&mut self, text: Option<&Result<Box<str>, PmStatus>>) {
        let dialect = self.source.dialect;
        let _ = match text {
            None => Ok(()),
            Some(Ok(text)) if text.is_empty() => writeln!(self.out, "Help: <empty entry>"),
            Some(Ok(text)) => {
                writeln!(self.out, "Help:\n{}", text.trim_end_matches('\n'))
            }
            Some(Err(status)) => {
                writeln!(self.out, "Full Help: Error: {}", dialect.text(*status))
            }
        };
    }

    /// Type, instance domain, semantics and units, behind tabs.
    fn print_desc_in_line(&mut self, desc: &MetricDesc) {
        let _ = write!(self.out, "\t{}\t", type_of(desc));
        self.print_indom(desc.indom);
        let _ = write!(self.out, "\t{}\t{}", desc.semantics, units_name(&desc.units));
    }

    fn print_desc(&mut self, desc: &MetricDesc) {
        let _ = write!(self.out, "    Data Type: {}", type_of(desc));
        if let ValueType::Unknown | ValueType::Other(_) = desc.value_type {
            let _ = write!(self.out, " ({})", desc.value_type.code());
        }
        self.out.extend_from_slice(b"  InDom: ");
        self.print_indom(desc.indom);
        let _ = write!(self.out, "\n    Semantics: {}", desc.semantics);
        if let Semantics::Other(code) = desc.semantics {
            let _ = write!(self.out, " ({code})");
        }
        let _ = writeln!(self.out, "  Units: {}", units_name(&desc.units));
    }

    fn print_indom(&mut self, indom: Option<InDom>) {
        let _ = match indom {
            Some(indom) => write!(self.out, "{indom}"),
            None => write!(self.out, "PM_INDOM_NULL"),
        };
        let word = InDom::to_wire(indom);
        if self.shown.fullindom {
            let _ = write!(self.out, " = {word} =");
        }
        let _ = write!(self.out, " {word:#x}");
    }

    /// Fetches a metric by itself, naming all instances of its domain. The outer status means
    /// that the domain is unknown.
    fn fetch_by_profile(&mut self, desc: &MetricDesc) -> Result<Result<Values, PmStatus>, Stop> {
        let Some(indom) = desc.indom else {
            return Ok(match self.source.dialect {
                Dialect::Fixed => Ok(Err(PmStatus::PROFILE)),
                Dialect::Pcp6_0 | Dialect::Pcp7_2 => Err(PmStatus::INDOM),
            });
        };
        let context = &mut self.source.context;
        let domain = match context.instance_domain(indom, Freshness::Current)? {
            Ok(domain) => domain,
            Err(status) => return Ok(Err(status)),
        };
        let instances: Vec<_> = domain.instances().map(|(id, _)| id).collect();
        let mut profile = InstanceProfile::default();
        profile.exclude_everything();
        profile.include(indom, &instances);
        context.set_profile(&profile)?;
        let fetched = context.fetch_values(&[desc.pmid]);
        context.set_profile(&InstanceProfile::default())?;
        let set = fetched?.sets.pop();
        Ok(Ok(set.map_or(Err(PmStatus::IPC), |set| set.outcome)))
    }

    /// Reports on an instance domain. Domains have no checks.
    pub fn domain(&mut self, indom: InDom) -> Result<(), Stop> {
        let shown = self.shown.clone();
        if shown.verifies() {
            return Ok(());
        }
        self.out.extend_from_slice(b"\nInDom: ");
        self.print_indom(Some(indom));
        let subject = TextSubject::Domain(indom);
        let context = &mut self.source.context;
        let one_line = match shown.oneline {
            true => Some(context.text(subject, TextKind::OneLine)?),
            false => None,
        };
        let help = match shown.helptext {
            true => Some(context.text(subject, TextKind::Help)?),
            false => None,
        };
        self.print_one_line(one_line.as_ref(), shown.fullindom);
        if shown.labels {
            self.look_up_labels(&[])?;
            if let Some(labels) = &mut self.labels {
                labels.look_up_domain(&mut self.source.context, indom)?;
                labels.print_domain(&mut self.out, indom);
            }
        }
        self.print_help(help.as_ref());
        Ok(())
    }
}

fn type_of(desc: &MetricDesc) -> &'static str {
    desc.value_type.description().unwrap_or("Not Supported")
}

/// True for a failure that every fetch repeats.
fn lasts(values: &Values) -> bool {
    let passing = [
        PmStatus::AGAIN,
        PmStatus::VALUE,
        PmStatus::INST,
        PmStatus::PROFILE,
        PmStatus::NODATA,
        PmStatus::EOL,
        PmStatus::PMID_LOG,
        PmStatus::INST_LOG,
        PmStatus::NOAGENT,
    ];
    values.as_ref().is_err_and(|status| !passing.contains(status))
}

/// The contradiction in a descriptor, if there is one.
fn contradiction(desc: &MetricDesc) -> Option<&'static str> {
    let is_text = matches!(desc.value_type, ValueType::String);
    match desc.semantics {
        Semantics::Counter if is_text => Some("a text is no counter"),
        Semantics::Other(_) => Some("unknown semantics"),
        _ if is_text && !desc.units.to_string().is_empty() => Some("a text has no units"),
        _ if matches!(desc.value_type, ValueType::Unknown | ValueType::Other(_)) => {
            Some("unknown type")
        }
        _ => None,
    }
}

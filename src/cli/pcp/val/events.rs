//! Event records as text, with the values of their parameters.

use std::collections::HashMap;
use std::io::Write;

use pmderive_runtime::model::{
    EventFlags, EventParameter, EventRecord, MetricDesc, Pmid, RawValue, ValueType,
};
use pmderive_runtime::source::{MetadataSource, SourceError};
use pmderive_runtime::time::TimeZone;

use super::instances::Instances;
use super::sample::{Sample, SampleValue};
use crate::cli::pcp::fetch::{event_clock, print_value};
use crate::cli::pcp::source::AnyNamed;
use crate::cli::terminal::Output;
use crate::dialect::Dialect;
use crate::engine::Session;

/// Cache of the metrics that parameters belong to.
#[derive(Default)]
pub struct Parameters {
    known: HashMap<Pmid, Known>,
}

/// Name and descriptor of a metric, or the failed call and its reason.
type Known = Result<(Box<str>, MetricDesc), String>;

/// The event records of one metric's values.
pub struct Events<'a> {
    /// Name of the metric, escaped.
    pub metric: &'a str,
    /// EVENT or HIGHRES_EVENT.
    pub value_type: ValueType,
    /// Names of instances.
    pub instances: Option<&'a Instances>,
    /// Zone of the times of records.
    pub zone: &'a TimeZone,
}

impl Events<'_> {
    /// Appends the records of each instance with a name.
    pub fn write(
        &self,
        out: &mut Output,
        sample: &Sample,
        parameters: &mut Parameters,
        source: &mut Session<AnyNamed>,
    ) -> Result<(), SourceError> {
        for (instance, value) in sample.values() {
            // Event records are not numbers.
            let SampleValue::Raw(raw) = value else { continue };
            let name = self.instances.map(|instances| instances.name(instance));
            if let Some(None) = name {
                continue;
            }
            out.extend_from_slice(self.metric.as_bytes());
            if let Some(name) = name.flatten() {
                out.push(b'[');
                out.extend_from_slice(name);
                out.push(b']');
            }
            out.push(b':');
            let records = match raw.events() {
                Ok(records) => records,
                Err(status) => {
                    let _ = writeln!(out, " pmUnpackEventRecords: {status}");
                    continue;
                }
            };
            let _ = writeln!(out, " {} event records", records.len());
            for (position, record) in records.iter().enumerate() {
                parameters.learn(source, record)?;
                self.write_record(out, position, record, parameters);
            }
        }
        Ok(())
    }

    fn write_record(
        &self,
        out: &mut Output,
        position: usize,
        record: &EventRecord,
        parameters: &Parameters,
    ) {
        let time = event_clock(self.zone, self.value_type, record.timestamp);
        let _ = write!(out, "  {time} --- event record [{position}]");
        let flags = record.flags;
        if flags != EventFlags::default() {
            let _ = writeln!(out, " flags {:#x} ({flags}) ---", flags.0);
        } else if record.parameters.is_empty() {
            let _ = writeln!(out, " ---\n    ==> No parameters");
        }
        if let Some(missed) = record.missed {
            let _ = writeln!(out, "    ==> {missed} missed event records");
        }
        // Without flags the first parameter ends the line that its record begins.
        let mut is_open = flags == EventFlags::default();
        for parameter in &record.parameters {
            match parameters.known.get(&parameter.pmid) {
                Some(Ok((name, desc))) => {
                    out.extend_from_slice(if is_open { b" ---\n" } else { b"" });
                    self.write_parameter(out, name, desc, parameter);
                }
                Some(Err(failure)) => {
                    let failure = out.escaping().text(failure);
                    let _ = writeln!(out, "\t{failure}");
                }
                None => {}
            }
            is_open = false;
        }
    }

    fn write_parameter(
        &self,
        out: &mut Output,
        name: &str,
        desc: &MetricDesc,
        parameter: &EventParameter,
    ) {
        // Parameters have no instances, whatever their metrics have.
        let instance = if desc.indom.is_some() { "[-1]" } else { "" };
        out.extend_from_slice(b"    ");
        out.text(name.as_bytes());
        let _ = write!(out, "{instance} ");
        match (&parameter.value, desc.value_type) {
            (RawValue::Block { bytes, .. }, ValueType::Aggregate | ValueType::AggregateStatic) => {
                out.push(b'[');
                for byte in bytes {
                    let _ = write!(out, "{byte:02x}");
                }
                out.push(b']');
            }
            // No parameter is an event, so versions do not differ.
            (value, value_type) => print_value(out, Dialect::Fixed, self.zone, value_type, value),
        }
        out.push(b'\n');
    }
}

impl Parameters {
    /// Looks up those metrics of a record's parameters that the cache lacks.
    fn learn(
        &mut self,
        source: &mut Session<AnyNamed>,
        record: &EventRecord,
    ) -> Result<(), SourceError> {
        for EventParameter { pmid, .. } in &record.parameters {
            // A look-up that failed may succeed now.
            if !matches!(self.known.get(pmid), Some(Ok(_))) {
                let known = look_up(source, *pmid)?;
                self.known.insert(*pmid, known);
            }
        }
        Ok(())
    }
}

fn look_up(source: &mut Session<AnyNamed>, pmid: Pmid) -> Result<Known, SourceError> {
    let failure = |subject: &str, call, status| format!("{subject}: {call}: {status}");
    let name = match source.names_of(pmid)? {
        Ok(names) => names.into_iter().next().unwrap_or_default(),
        Err(status) => return Ok(Err(failure(&pmid.to_string(), "pmNameID", status))),
    };
    Ok(match source.lookup_desc(pmid)? {
        Ok(desc) => Ok((name, desc)),
        Err(status) => Err(failure(&name, "pmLookupDesc", status)),
    })
}

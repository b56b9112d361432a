//! Lines with values, and with the parameters of event records.

use std::io::Write;

use pmderive_runtime::model::{
    EVENT_FLAGS, EVENT_MISSED, EventRecord, MetricDesc, PmStatus, Pmid, RawValue, ValueType,
};
use pmderive_runtime::result::InstanceValue;
use pmderive_runtime::source::{MetadataSource, SourceError};

use super::arguments::InfoShown;
use crate::cli::pcp::fetch::{Domains, Values, event_clock, print_value};
use crate::cli::pcp::source::ToolSource;
use crate::cli::terminal::Output;
use crate::dialect::Dialect;

/// Writes the lines with the values of a metric.
pub fn print(
    out: &mut Output,
    source: &mut ToolSource,
    domains: &mut Domains,
    desc: &MetricDesc,
    outcome: &Values,
    shown: &InfoShown,
) -> Result<(), SourceError> {
    let values = match outcome {
        Err(status) => {
            writeln!(out, "Error: {}", source.dialect.text(*status)).ok();
            return Ok(());
        }
        Ok(values) if values.is_empty() => {
            out.extend_from_slice(b"No value(s) available!\n");
            return Ok(());
        }
        Ok(values) => values,
    };
    for InstanceValue { instance, value } in values {
        match desc.indom {
            None => out.extend_from_slice(b"    "),
            Some(indom) => {
                let domain = domains.get(source, indom)?;
                let name = domain.as_ref().ok();
                match name.and_then(|domain| domain.name_in_bytes(*instance)) {
                    Some(name) => {
                        write!(out, "    inst [{instance} or \"").ok();
                        out.text(&name);
                        out.extend_from_slice(b"\"] ");
                    }
                    None if shown.fetchall => {
                        writeln!(out, "    inst [{instance} \"DISAPPEARED\"]").ok();
                        continue;
                    }
                    // The domain is unknown, or it lacks the instance.
                    None => {
                        let status = source.dialect.text(PmStatus::INST);
                        writeln!(out, "pmNameIndom: indom={indom} inst={instance}: {status}").ok();
                        write!(out, "    inst [{instance}] ").ok();
                    }
                }
            }
        }
        out.extend_from_slice(b"value ");
        print_value(out, source.dialect, &source.zone, desc.value_type, value);
        out.push(b'\n');
        if shown.events && desc.value_type.is_event() {
            print_events(out, source, domains, desc, value, shown)?;
        }
    }
    Ok(())
}

/// Writes the event records of a value.
fn print_events(
    out: &mut Output,
    source: &mut ToolSource,
    domains: &mut Domains,
    desc: &MetricDesc,
    value: &RawValue,
    shown: &InfoShown,
) -> Result<(), SourceError> {
    let records = match value.events() {
        Ok(records) => records,
        Err(status) => {
            let function = match desc.value_type {
                ValueType::HighResEvent => "pmUnpackHighResEventRecords",
                _ => "pmUnpackEventRecords",
            };
            let tool = if source.dialect == Dialect::Fixed { "pmderive" } else { "pminfo" };
            writeln!(out, "{tool}: {function}: {}", source.dialect.text(status)).ok();
            return Ok(());
        }
    };
    for (number, record) in records.iter().enumerate() {
        let EventRecord { timestamp, flags, missed, parameters } = record;
        let time = event_clock(&source.zone, desc.value_type, *timestamp);
        write!(out, "    --- event record [{number}] timestamp {time}").ok();
        if flags.0 != 0 {
            write!(out, " flags {:#x} ({flags})", flags.0).ok();
        }
        out.extend_from_slice(b" ---\n");
        if let Some(missed) = missed {
            writeln!(out, "        ==> {missed} missed event records").ok();
            continue;
        }
        if parameters.is_empty() && flags.0 == 0 {
            out.extend_from_slice(b"\tNo parameters\n");
        }
        for parameter in parameters {
            if matches!(parameter.pmid, EVENT_FLAGS | EVENT_MISSED) {
                continue;
            }
            print_parameter(out, source, domains, (parameter.pmid, &parameter.value), shown)?;
        }
    }
    Ok(())
}

fn print_parameter(
    out: &mut Output,
    source: &mut ToolSource,
    domains: &mut Domains,
    (pmid, value): (Pmid, &RawValue),
    shown: &InfoShown,
) -> Result<(), SourceError> {
    match source.context.names_of(pmid)? {
        Ok(names) => {
            let names = names.join(" or ");
            writeln!(out, "    {} ({pmid})", out.escaping().text(&names)).ok()
        }
        Err(_) => writeln!(out, "\tPMID: {pmid}").ok(),
    };
    match source.context.lookup_desc(pmid)? {
        Err(status) => {
            writeln!(out, "\tpmLookupDesc: {}", source.dialect.text(status)).ok();
            Ok(())
        }
        Ok(desc) => {
            let value = InstanceValue { instance: -1, value: value.clone() };
            out.extend_from_slice(b"    ");
            print(out, source, domains, &desc, &Ok(vec![value]), shown)
        }
    }
}

//! Writes recorded metadata as text, in the form that the [module](super)
//! describes.

use std::fmt::Write as _;

use pmderive_runtime::model::{InDom, InstanceDomain, MetricDesc, Pmid, ValueType};

use super::{FORMAT, Recorded, RecordedMetadata, VERSION};
use crate::text::json::write_string;

impl RecordedMetadata {
    /// The text of a file, with a line end.
    pub fn to_json(&self) -> String {
        let (mut metrics, mut missing) = (Vec::new(), Vec::new());
        for (name, recorded) in &self.names {
            let (pmid, status) = match recorded {
                Recorded::Metric(pmid) => match self.descs.get(pmid) {
                    Some(Ok(desc)) => {
                        metrics.push(metric(name, desc));
                        continue;
                    }
                    Some(Err(status)) => (Some(pmid), *status),
                    None => continue,
                },
                Recorded::Missing(status) => (None, *status),
            };
            let mut entry = name_of(name);
            if let Some(pmid) = pmid {
                let _ = write!(entry, "\"pmid\": \"{}\", ", pmid_text(*pmid));
            }
            let _ = write!(entry, "\"err\": {}, \"errname\": ", status.0);
            match status.name() {
                Some(name) => write_string(&mut entry, &name),
                None => entry.push_str("null"),
            }
            entry.push('}');
            missing.push(entry);
        }
        let domains = self.domains.iter().map(|(indom, instances)| domain(*indom, instances));
        let mut out = format!("{{\n  \"format\": \"{FORMAT}\",\n  \"version\": {VERSION},\n");
        out.push_str("  \"source\": ");
        write_string(&mut out, &self.source);
        list(&mut out, "metrics", metrics);
        list(&mut out, "missing", missing);
        list(&mut out, "domains", domains.collect());
        out.push_str("\n}\n");
        out
    }
}

/// Adds a member that is a list with one entry on each line.
fn list(out: &mut String, name: &str, entries: Vec<String>) {
    let _ = write!(out, ",\n  \"{name}\": [");
    for (at, entry) in entries.iter().enumerate() {
        let comma = if at == 0 { "" } else { "," };
        let _ = write!(out, "{comma}\n    {entry}");
    }
    out.push_str(if entries.is_empty() { "]" } else { "\n  ]" });
}

/// Begins an entry with its name.
fn name_of(name: &str) -> String {
    let mut out = "{\"name\": ".to_owned();
    write_string(&mut out, name);
    out.push_str(", ");
    out
}

fn metric(name: &str, desc: &MetricDesc) -> String {
    let MetricDesc { pmid, value_type, indom, semantics, units } = desc;
    let semantics = semantics.or_instant();
    // A code without a meaning has no name.
    let value_type = match value_type {
        ValueType::Other(_) => &ValueType::Unknown,
        known => known,
    };
    let mut out = name_of(name);
    let indom = indom.map_or("null".to_owned(), |indom| format!("\"{indom}\""));
    let _ = write!(
        out,
        "\"pmid\": \"{}\", \"type\": \"{value_type}\", \"indom\": {indom}, \
         \"sem\": \"{semantics}\", \"units\": \"{units}\", \
         \"dim\": [{},{},{}], \"scale\": [{},{},{}]",
        pmid_text(*pmid),
        units.dim_space,
        units.dim_time,
        units.dim_count,
        units.scale_space,
        units.scale_time,
        units.scale_count,
    );
    if units.extra.quantity != 0 || units.extra.unit != 0 {
        let _ = write!(out, ", \"extra\": [{},{}]", units.extra.quantity, units.extra.unit);
    }
    out.push('}');
    out
}

/// Domain, cluster and item, even of a special identifier.
fn pmid_text(pmid: Pmid) -> String {
    format!("{}.{}.{}", pmid.domain(), pmid.cluster(), pmid.item())
}

fn domain(indom: InDom, domain: &InstanceDomain) -> String {
    let mut out = format!("{{\"indom\": \"{indom}\", \"instances\": [");
    for (at, (id, name)) in domain.instances().enumerate() {
        let comma = if at == 0 { "" } else { ", " };
        let _ = write!(out, "{comma}[{id},");
        write_string(&mut out, name);
        out.push(']');
    }
    out.push_str("]}");
    out
}

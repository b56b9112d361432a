//! The table as CSV: a header, then a line for each row.

use std::convert::Infallible;
use std::fmt::Write as _;

use pmderive_runtime::eval::Value;
use pmderive_runtime::model::UtcTime;

use super::{LastNames, Row, Sampling, Schema};
use crate::bind::Desc;
use crate::engine::ReportSample;
use crate::report::csv::{write_field, write_value};
use crate::report::rows::for_each_row;
use crate::report::samples::Renderer;

const HEADER: &str = "time,host,metric,instance,instance_name,type,semantics,units,value,status\n";

/// Writes a line of CSV for each row, after the header.
pub struct Csv {
    sampling: Sampling,
    host: String,
    /// Fields that are the same in every row of a metric, in the order of the
    /// metrics.
    fields: Vec<Option<Fields>>,
    names: LastNames,
    time: String,
}

/// Fields of one metric.
struct Fields {
    desc: Desc,
    /// `host,metric,`
    name: String,
    /// `type,semantics,units,`
    desc_fields: String,
}

impl Csv {
    /// The form for the samples of a source.
    pub fn new(schema: &Schema) -> Csv {
        let (sampling, host) = (schema.sampling, schema.host.clone());
        Csv { sampling, host, fields: Vec::new(), names: LastNames::default(), time: String::new() }
    }
}

impl Renderer for Csv {
    fn begin(&mut self, out: &mut String) {
        out.push_str(HEADER);
    }

    fn sample(&mut self, shown: &ReportSample<'_>, out: &mut String) {
        let Csv { sampling, host, fields, names, time } = self;
        time.clear();
        let _ = write!(time, "{},", UtcTime(shown.values.timestamp()));
        fields.resize_with(shown.metrics.len(), || None);
        names.follow(shown, |at| fields[at] = None);
        let Ok(()) = for_each_row::<Infallible>(shown, *sampling, |row| {
            // Metadata of a live source may change.
            let known = fields[row.metric].take().filter(|known| known.desc == *row.desc);
            let known =
                fields[row.metric].insert(known.unwrap_or_else(|| {
                    Fields::new(host, &shown.metrics[row.metric].name, row.desc)
                }));
            out.push_str(time);
            write_row(out, known, &row);
            Ok(())
        });
    }
}

impl Fields {
    fn new(host: &str, metric: &str, desc: &Desc) -> Fields {
        let mut name = String::new();
        for text in [host, metric] {
            write_field(&mut name, |out| out.push_str(text));
            name.push(',');
        }
        let mut desc_fields = format!("{},{},", desc.value_type, desc.semantics);
        write_field(&mut desc_fields, |out| {
            let _ = write!(out, "{}", desc.units);
        });
        desc_fields.push(',');
        Fields { desc: *desc, name, desc_fields }
    }
}

/// Writes the part of a line from the host on.
fn write_row(out: &mut String, fields: &Fields, row: &Row<'_>) {
    out.push_str(&fields.name);
    if let Some(instance) = row.instance {
        let _ = write!(out, "{instance}");
    }
    out.push(',');
    if let Some(name) = row.instance_name {
        write_field(out, |out| out.push_str(name));
    }
    out.push(',');
    out.push_str(&fields.desc_fields);
    match row.content {
        // An empty field would mean "no text".
        Ok(Value::Text([])) => out.push_str("\"\","),
        Ok(value) => {
            write_value(out, value);
            out.push(',');
        }
        Err(without) => {
            let _ = write!(out, ",{without}");
        }
    }
    out.push('\n');
}

//! Reads the metrics in a file of unit tests.

use std::path::PathBuf;

use pmderive_runtime::model::{InDom, MetricDesc, Pmid, Semantics, Units, ValueType};
use pmderive_runtime::source::MetadataSource;

use crate::metadata::RecordedMetadata;
use crate::syntax::ast::Spanned;
use crate::syntax::{name_mistake, semantics_word, value_type_word};
use crate::text::Span;

use super::read::{QUOTES, Reader, in_order};
use crate::text::document::{Table, Value};

/// Domain for metrics and instance domains without a number of their own.
const OWN_DOMAIN: u32 = 509;

/// The word for a type that `mkconst()` lacks.
const STRING: &str = "string";

impl Reader<'_> {
    /// Reads metrics from a file that `pmderive deps --format metadata` wrote.
    pub fn recorded(&mut self, path: &Spanned<PathBuf>) {
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

    pub fn metrics(&mut self, table: &Table<'_>) {
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

    /// Adds a metric, or notes its name if it has mistakes.
    fn metric(&mut self, name: &str, span: Span, table: &Table<'_>) {
        if self.described(name, span, table).is_none() {
            self.mistaken.insert(name.into());
        }
    }

    fn described(&mut self, name: &str, span: Span, table: &Table<'_>) -> Option<()> {
        let are_nested =
            !table.is_empty() && table.values().all(|value| value.get_ref().is_table());
        let are_known =
            are_nested || self.document.only(table, &["type", "semantics", "units", "indom"]);
        let Some(value_type) = table.get("type") else {
            // An unknown key may be a misspelt `type`.
            if are_known {
                let message = format!("`{name}` has no type");
                let help = match are_nested {
                    true => QUOTES,
                    false => "write { type = \"u64\" }, for example",
                };
                self.document.error_with_help(span, message, help);
            }
            return None;
        };
        let value_type = self.value_type(value_type);
        let semantics = table.get("semantics").map(|value| self.semantics(value));
        let units = table.get("units").map(|value| self.units(value));
        let indom = table.get("indom").map(|value| self.indom(value));
        let known = self.metadata.lookup(name).copied();
        let Some(pmid) = known.map(|desc| desc.pmid).or_else(|| self.free_pmid()) else {
            self.document.error(span, "there are too many metrics");
            return None;
        };
        let semantics = semantics.unwrap_or(Some(Semantics::Instant))?;
        let (units, indom) = (units.unwrap_or(Some(Units::NONE))?, indom.unwrap_or(Some(None))?);
        let value_type = value_type?;
        self.metadata.add_metric(name, MetricDesc { pmid, value_type, indom, semantics, units });
        Some(())
    }

    /// Finds an identifier that no metric has.
    fn free_pmid(&mut self) -> Option<Pmid> {
        while self.given < 1 << 22 {
            let pmid = Pmid::new(OWN_DOMAIN, self.given >> 10, self.given & 0x3ff);
            self.given += 1;
            if self.metadata.desc(pmid).is_none() {
                return Some(pmid);
            }
        }
        None
    }

    pub(super) fn value_type(&mut self, value: &Value<'_>) -> Option<ValueType> {
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

    pub(super) fn semantics(&mut self, value: &Value<'_>) -> Option<Semantics> {
        let (text, span) = self.document.string(value)?;
        let found = semantics_word(text);
        if found.is_none() {
            self.document.error(span, "semantics are `counter`, `instant` or `discrete`");
        }
        found
    }

    pub(super) fn units(&mut self, value: &Value<'_>) -> Option<Units> {
        let (text, span) = self.document.string(value)?;
        if text.trim().is_empty() || text == "none" {
            return Some(Units::NONE);
        }
        match Units::parse(text) {
            Ok(parsed) if parsed.multiplier == 1.0 => return Some(parsed.units),
            Ok(_) => self.document.error(span, "units of a metric have no multiplier"),
            Err(error) => self.document.error(span, format!("these are not units: {error}")),
        }
        None
    }

    /// Reads an instance domain: its number, or a word for one.
    fn indom(&mut self, value: &Value<'_>) -> Option<Option<InDom>> {
        let (text, span) = self.document.string(value)?;
        if text.is_empty() {
            self.document.error(span, "an instance domain has a number or a name");
            return None;
        }
        let number: Option<InDom> = text.parse().ok();
        let next = u32::try_from(self.labels.len()).unwrap_or(u32::MAX);
        let named = || InDom::new(OWN_DOMAIN, next);
        let indom = number.unwrap_or_else(|| *self.labels.entry(text.into()).or_insert_with(named));
        Some(Some(indom))
    }
}

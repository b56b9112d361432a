//! The figures: one line each, as text or as JSON.

use serde_json::{Value, json};

/// A figure.
#[derive(Clone, Debug)]
pub struct Row {
    /// A word for programs.
    pub key: String,
    /// The subject in words.
    pub what: String,
    /// The figure.
    pub value: f64,
    /// Its unit; empty for plain numbers.
    pub unit: String,
}

impl Row {
    /// A figure.
    pub fn new(key: &str, what: &str, value: f64, unit: &str) -> Row {
        Row { key: key.into(), what: what.into(), value, unit: unit.into() }
    }

    /// The row as JSON in one line.
    pub fn json(&self) -> String {
        json!({"key": self.key, "what": self.what, "value": self.value, "unit": self.unit})
            .to_string()
    }

    /// Reads a line from [`Row::json`].
    pub fn parse(line: &str) -> Option<Row> {
        let value: Value = serde_json::from_str(line).ok()?;
        let text = |key: &str| value[key].as_str();
        Some(Row::new(text("key")?, text("what")?, value["value"].as_f64()?, text("unit")?))
    }

    /// The row as text.
    pub fn text(&self) -> String {
        let Row { key, what, value, unit } = self;
        let number = match value.abs() {
            0.0 => "0".to_owned(),
            ..10.0 => format!("{value:.3}"),
            ..1000.0 => format!("{value:.1}"),
            _ => format!("{value:.0}"),
        };
        format!("{key:<28} {:>14}  {what}", format!("{number} {unit}"))
    }
}

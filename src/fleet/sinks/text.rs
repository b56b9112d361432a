//! Series as text for scraping: Prometheus' text format 0.0.4 and OpenMetrics 1.0.

use super::number;

/// The format of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Text format 0.0.4.
    Text,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

impl Format {
    /// Its content type in HTTP.
    pub fn content_type(self) -> &'static str {
        match self {
            Format::Text => "text/plain; version=0.0.4; charset=utf-8",
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// Type of a family of series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It only grows, until it starts again.
    Counter,
    /// It goes up and down.
    Gauge,
    /// Counts in buckets ([`Writer::histogram`]).
    Histogram,
    /// Its type is not stated.
    Unknown,
}

/// Writes series in one of the formats.
#[derive(Debug)]
pub struct Writer<'o> {
    out: &'o mut String,
    format: Format,
}

impl<'o> Writer<'o> {
    /// A writer that appends to `out`.
    pub fn new(out: &'o mut String, format: Format) -> Writer<'o> {
        Writer { out, format }
    }

    /// Begins a family of series; its samples follow. `name` has `_total` if the samples have.
    pub fn family(&mut self, mut name: &str, mut kind: Kind, help: Option<&str>) {
        if self.format == Format::OpenMetrics && kind == Kind::Counter {
            match name.strip_suffix("_total") {
                Some(family) => name = family,
                None => kind = Kind::Unknown,
            }
        }
        if let Some(help) = help {
            self.out.extend(["# HELP ", name, " "]);
            escape(self.out, help, self.format == Format::OpenMetrics);
            self.out.push('\n');
        }
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
            Kind::Unknown if self.format == Format::Text => "untyped",
            Kind::Unknown => "unknown",
        };
        self.out.extend(["# TYPE ", name, " ", kind, "\n"]);
    }

    /// Writes a sample of the current family.
    pub fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        self.series(name, labels);
        number::write_double(self.out, value);
        self.out.push('\n');
    }

    /// Writes a sample that is a whole number.
    pub fn integer(&mut self, name: &str, labels: &[(&str, &str)], value: u64) {
        self.series(name, labels);
        self.out.push_str(itoa::Buffer::new().format(value));
        self.out.push('\n');
    }

    /// Writes a histogram of the current family: the count of each bucket, the last one without
    /// bound, and the sum of all values.
    pub fn histogram(
        &mut self,
        name: &str,
        labels: &[(&str, &str)],
        bounds: &[f64],
        counts: &[u64],
        sum: f64,
    ) {
        let bucket = format!("{name}_bucket");
        let mut total = 0;
        for (at, count) in counts.iter().enumerate() {
            total += count;
            let mut bound = String::new();
            // OpenMetrics requires a point in it.
            match bounds.get(at) {
                Some(bound_of) => bound = format!("{bound_of:?}"),
                None => number::write_double(&mut bound, f64::INFINITY),
            }
            let labels: Vec<_> = labels.iter().copied().chain([("le", &*bound)]).collect();
            self.integer(&bucket, &labels, total);
        }
        self.sample(&format!("{name}_sum"), labels, sum);
        self.integer(&format!("{name}_count"), labels, total);
    }

    /// Ends the text.
    pub fn finish(self) {
        if self.format == Format::OpenMetrics {
            self.out.push_str("# EOF\n");
        }
    }

    /// The format.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Writes a line that parsers skip. OpenMetrics has no such line, so nothing is written
    /// there.
    pub fn comment(&mut self, text: &str) {
        if self.format == Format::Text {
            self.out.push_str("# ");
            escape(self.out, text, false);
            self.out.push('\n');
        }
    }

    /// Writes a sample of the current family, with labels from [`labels`]; `value` writes the
    /// value.
    pub(super) fn line(
        &mut self,
        name: &str,
        labels: &str,
        milliseconds: Option<i64>,
        value: impl FnOnce(&mut String),
    ) {
        self.out.extend([name, labels, " "]);
        value(self.out);
        if let Some(milliseconds) = milliseconds {
            self.time(milliseconds);
        }
        self.out.push('\n');
    }

    fn time(&mut self, milliseconds: i64) {
        let mut digits = itoa::Buffer::new();
        match self.format {
            Format::Text => self.out.extend([" ", digits.format(milliseconds)]),
            Format::OpenMetrics => {
                let (seconds, rest) = (milliseconds / 1000, milliseconds % 1000);
                self.out.extend([" ", digits.format(seconds), &format!(".{rest:03}")]);
            }
        }
    }

    fn series(&mut self, name: &str, given: &[(&str, &str)]) {
        self.out.extend([name, &*labels(given.iter().copied()), " "]);
    }
}

/// Labels as they stand behind the name of a series; empty without any.
pub fn labels<'l>(labels: impl IntoIterator<Item = (&'l str, &'l str)>) -> String {
    let mut out = String::new();
    for (name, value) in labels {
        out.extend([if out.is_empty() { "{" } else { "," }, name, "=\""]);
        escape(&mut out, value, true);
        out.push('"');
    }
    if !out.is_empty() {
        out.push('}');
    }
    out
}

fn escape(out: &mut String, text: &str, quotes: bool) {
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '"' if quotes => out.push_str("\\\""),
            _ => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(format: Format) -> String {
        let mut out = String::new();
        let mut writer = Writer::new(&mut out, format);
        let help = Some("back\\slash, \"quotes\"\nand a line");
        writer.family("a_total", Kind::Counter, help);
        writer.integer("a_total", &[("sink", "x\"\\\n")], u64::MAX);
        writer.family("b", Kind::Counter, None);
        writer.sample("b", &[], 0.1);
        writer.comment("two\nlines");
        writer.family("h", Kind::Histogram, None);
        writer.histogram("h", &[("a", "b")], &[0.5, 1.0], &[2, 0, 1], 7.5);
        writer.finish();
        out
    }

    #[test]
    fn both_formats() {
        let text = r#"# HELP a_total back\\slash, "quotes"\nand a line
# TYPE a_total counter
a_total{sink="x\"\\\n"} 18446744073709551615
# TYPE b counter
b 0.1
# two\nlines
# TYPE h histogram
h_bucket{a="b",le="0.5"} 2
h_bucket{a="b",le="1.0"} 2
h_bucket{a="b",le="+Inf"} 3
h_sum{a="b"} 7.5
h_count{a="b"} 3
"#;
        assert_eq!(written(Format::Text), text);
        let open = text
            .replace("# HELP a_total", "# HELP a")
            .replace(r#""quotes""#, r#"\"quotes\""#)
            .replace("# TYPE a_total", "# TYPE a")
            .replace("# TYPE b counter", "# TYPE b unknown")
            .replace("# two\\nlines\n", "");
        assert_eq!(written(Format::OpenMetrics), open + "# EOF\n");
    }
}

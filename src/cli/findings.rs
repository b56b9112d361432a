//! Findings of `check`, `fmt` and `test` in the chosen form. Diagnostics are printed at once as
//! text or lines of JSON; the other forms are one document at the end.

use std::io::Write as _;

use super::args::FindingsFormat;
use super::messages::Messages;
use super::stop::Stop;
use super::terminal::Purpose;
use crate::diag::json::to_json;
use crate::diag::{Diagnostic, Diagnostics};
use crate::escape;
use crate::report::findings::{Finding, Report};
use crate::syntax::Unreadable;
use crate::text::SourceMap;

/// The output of findings.
pub struct FindingsOutput {
    /// The chosen form.
    pub format: FindingsFormat,
    /// What the document at the end will have.
    pub report: Report,
}

impl FindingsOutput {
    /// An output without findings.
    pub fn new(format: FindingsFormat) -> FindingsOutput {
        FindingsOutput { format, report: Report::default() }
    }

    /// Prints diagnostics, or keeps them for the document.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn diagnostics(
        &mut self,
        mut diagnostics: Diagnostics,
        sources: &SourceMap,
        messages: &mut Messages,
    ) -> Result<(), Stop> {
        if self.format == FindingsFormat::Text {
            messages.diagnostics(diagnostics, sources);
            return Ok(());
        }
        diagnostics.change_each(Diagnostic::name_option);
        match self.format {
            FindingsFormat::Json => {
                diagnostics.sort();
                let mut out = messages.output(Purpose::Exact);
                let mut lines = diagnostics.iter().map(|one| to_json(one, sources));
                let written = lines.try_for_each(|line| writeln!(out, "{line}"));
                out.end(written)?;
            }
            _ => self.report.add(diagnostics, sources),
        }
        Ok(())
    }

    /// Reports a file that cannot be read: text as an error, any other form as a finding that is
    /// kept.
    pub fn unreadable(&mut self, file: &Unreadable, messages: &Messages) {
        let name = escape::path(&file.path);
        let message = format!("cannot read {name}: {}", file.reason);
        match self.format {
            FindingsFormat::Text => messages.error(&message),
            _ => self.report.findings.push(Finding::of_file("unreadable", &name, message)),
        }
    }

    /// Prints the document, if the form is one.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn end(&self, messages: &Messages) -> Result<(), Stop> {
        match self.format.document(&self.report) {
            Some(document) => messages.output(Purpose::Exact).print(document),
            None => Ok(()),
        }
    }
}

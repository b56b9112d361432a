//! The meaning of the time options for an open source: `-z`, `-Z`, `-S`, `-T`,
//! `-A` and `-O`. The caller takes the texts from its command line.

use pmderive_core::model::Timestamp;
use pmderive_core::source::{MetadataSource, SourceError};

use super::window::{TimeWindow, WindowError, WindowSpec};
use super::zone::TimeZone;

/// The zone in which times are shown and read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ZoneOption<'t> {
    /// The zone of this process.
    #[default]
    System,
    /// `-z`: the zone of the source's host.
    OfSource,
    /// `-Z`: the zone with this text.
    Named(&'t str),
}

/// The span of time in which a source has values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeBounds {
    /// The start of an archive, or now.
    pub first: Timestamp,
    /// The end of an archive; a live source has none.
    pub last: Option<Timestamp>,
}

impl TimeBounds {
    /// The bounds of a source without an end: they start now.
    pub fn live() -> TimeBounds {
        TimeBounds { first: Timestamp::now(), last: None }
    }
}

/// Options about time (`pmGetContextOptions(3)`, without the reading of the
/// command line).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReportingOptions<'t> {
    /// `-z` and `-Z`.
    pub zone: ZoneOption<'t>,
    /// `-S`, `-T`, `-A` and `-O`.
    pub window: WindowSpec<'t>,
}

/// The zone and the window that the options choose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportingChoices {
    /// The reporting zone.
    pub zone: TimeZone,
    /// The line that tools print first, with an empty line after it, if an
    /// option chose the zone.
    pub note: Option<String>,
    /// The window; without options, the whole of the bounds.
    pub window: TimeWindow,
}

/// An option that cannot be applied.
#[derive(Debug, thiserror::Error)]
// Exhaustive on purpose: a caller must handle each error, and the compiler
// reports a missing one.
pub enum ReportingError {
    /// The source did not give its zone.
    #[error("Cannot set context timezone: {}", .0.status())]
    Zone(#[source] SourceError),
    /// A text is not a time.
    #[error("invalid time window.\n{0}")]
    Window(WindowError),
}

impl ReportingOptions<'_> {
    /// Applies the options to a source that has values within `bounds`: first
    /// the zone, then the window, whose dates are in that zone.
    ///
    /// # Errors
    /// The source fails or has no zone, or an option is invalid.
    pub fn choose<S: MetadataSource + ?Sized>(
        &self,
        source: &mut S,
        bounds: TimeBounds,
    ) -> Result<ReportingChoices, ReportingError> {
        let (zone, note) = match self.zone {
            ZoneOption::System => (TimeZone::system(), None),
            ZoneOption::OfSource => {
                let zone = TimeZone::of_source(source).map_err(ReportingError::Zone)?;
                let host = source.host_name().map_err(ReportingError::Zone)?;
                let from = if bounds.last.is_some() { " from archive" } else { "" };
                let note = format!("timezone set to local timezone of host \"{host}\"{from}");
                (zone, Some(note))
            }
            ZoneOption::Named(text) => {
                (TimeZone::parse(text), Some(format!("timezone set to \"TZ={text}\"")))
            }
        };
        let window = TimeWindow::parse(&self.window, (bounds.first, bounds.last), &zone);
        let window = window.map_err(ReportingError::Window)?;
        Ok(ReportingChoices { zone, note: note.map(|note| format!("Note: {note}")), window })
    }
}

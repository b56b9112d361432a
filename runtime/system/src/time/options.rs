//! What the options about time mean for an open source: `-z`, `-Z`, `-S`, `-T`,
//! `-A` and `-O`. The caller takes them from its command line.

use pmderive_core::model::Timestamp;
use pmderive_core::source::{MetadataSource, SourceError};

use super::window::{TimeWindow, WindowError, WindowSpec};
use super::zone::TimeZone;

/// In which zone times are shown and read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ZoneOption<'t> {
    /// That of this process.
    #[default]
    System,
    /// `-z`: that of the source's host.
    OfSource,
    /// `-Z`: this one.
    Named(&'t str),
}

/// From when to when a source has values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeBounds {
    /// The start of an archive, or now.
    pub first: Timestamp,
    /// The end of an archive; a live source has none.
    pub last: Option<Timestamp>,
}

impl TimeBounds {
    /// Those of a source without an end.
    pub fn live() -> TimeBounds {
        TimeBounds { first: Timestamp::now(), last: None }
    }
}

/// Options about time (the part of `pmGetContextOptions(3)` that is not about
/// getting them).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReportingOptions<'t> {
    /// `-z` and `-Z`.
    pub zone: ZoneOption<'t>,
    /// `-S`, `-T`, `-A` and `-O`.
    pub window: WindowSpec<'t>,
}

/// What the options mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportingChoices {
    /// The reporting zone.
    pub zone: TimeZone,
    /// What tools print before anything else, with an empty line after it, when
    /// the zone was chosen.
    pub note: Option<String>,
    /// The window; the whole of the bounds where nothing was said.
    pub window: TimeWindow,
}

/// Options that cannot be followed.
#[derive(Debug, thiserror::Error)]
pub enum ReportingError {
    /// The source did not tell its zone.
    #[error("Cannot set context timezone: {}", .0.status())]
    Zone(#[source] SourceError),
    /// Text that is no time.
    #[error("invalid time window.\n{0}")]
    Window(#[source] WindowError),
}

impl ReportingOptions<'_> {
    /// Follows the options for a source that has values within `bounds`: first
    /// the zone, then the window, whose dates are in that zone.
    ///
    /// # Errors
    /// The source fails or has no zone, or an option makes no sense.
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

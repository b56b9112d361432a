//! The origin of the values, for an archive's label.

use pmderive_runtime::archive::ArchiveLabel;
use pmderive_runtime::model::{Timestamp, Value, ValueType};
use pmderive_runtime::source::{FetchSource, SourceError};

/// Host, zone and writer of an archive (`pmGetArchiveLabel(3)`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Name of the host that the values describe.
    pub host: Box<str>,
    /// The host's time zone, in the form of the `TZ` environment variable.
    pub timezone: Box<str>,
    /// The host's time zone by name, as in `:Europe/Vienna`; may be empty.
    pub zoneinfo: Box<str>,
    /// The process that first wrote the values.
    pub pid: i32,
    /// Start of the archive that the values come from, if any.
    pub start: Option<Timestamp>,
}

impl Origin {
    /// The origin in the label of an archive that values are taken from.
    pub fn of_archive(label: &ArchiveLabel) -> Origin {
        Origin {
            host: (&*label.host).into(),
            timezone: (&*label.timezone).into(),
            zoneinfo: (&*label.zoneinfo).into(),
            pid: label.pid.cast_signed(),
            start: Some(label.start),
        }
    }

    /// The origin that a live source gives.
    ///
    /// # Errors
    /// The source failed.
    pub fn of_live<S: FetchSource>(source: &mut S) -> Result<Origin, SourceError> {
        let timezone = match text_of(source, "pmcd.timezone")? {
            Some(timezone) => timezone,
            None => source.time_zone()?.unwrap_or_default(),
        };
        Ok(Origin {
            host: source.host_name()?.into(),
            timezone: timezone.into(),
            zoneinfo: text_of(source, "pmcd.zoneinfo")?.unwrap_or_default().into(),
            pid: i32::try_from(std::process::id()).unwrap_or_default(),
            start: None,
        })
    }
}

/// The value of a metric that pmcd provides for recording.
fn text_of<S: FetchSource>(source: &mut S, name: &str) -> Result<Option<String>, SourceError> {
    let Some(Ok(pmid)) = source.lookup_names(&[name])?.pop() else { return Ok(None) };
    let sets = source.fetch_values(&[pmid])?.sets;
    let values = sets.first().and_then(|set| set.outcome.as_ref().ok());
    let value = values.and_then(|values| values.first()?.value.decode(ValueType::String).ok());
    Ok(match value {
        Some(Value::Text(text)) if !text.is_empty() => Some(text.into()),
        _ => None,
    })
}

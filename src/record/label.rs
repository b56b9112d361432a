//! What an archive's label says about the origin of its values.

use pmderive_runtime::archive::ArchiveLabel;
use pmderive_runtime::model::{Timestamp, Value, ValueType};
use pmderive_runtime::source::{FetchSource, SourceError};

/// Host, zone and writer of an archive (`pmGetArchiveLabel(3)`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Name of the host that the values are of.
    pub host: Box<str>,
    /// Its time zone, in the form of the `TZ` environment variable.
    pub timezone: Box<str>,
    /// Its time zone by name, as in `:Europe/Vienna`; may be empty.
    pub zoneinfo: Box<str>,
    /// Process that wrote the values first.
    pub pid: i32,
    /// Start of the archive that the values are from, if they are from one.
    pub start: Option<Timestamp>,
}

impl Origin {
    /// What the label of an archive says that values are taken from.
    pub fn of_archive(label: &ArchiveLabel) -> Origin {
        Origin {
            host: (&*label.host).into(),
            timezone: (&*label.timezone).into(),
            zoneinfo: (&*label.zoneinfo).into(),
            pid: label.pid.cast_signed(),
            start: Some(label.start),
        }
    }

    /// What a live source says of itself.
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

/// The value of a metric that pmcd has for those who record from it.
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

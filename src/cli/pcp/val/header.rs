//! The lines above the values: the source, the metric, and the number of samples.

use std::borrow::Cow;
use std::fmt::{self, Display, Formatter};
use std::time::Duration;

use pmderive_runtime::model::{MetricDesc, Semantics, Units};

use crate::check::units_name;

/// Time scale of seconds, see `PM_TIME_SEC` of PMAPI(3).
const SECONDS: u8 = 3;

/// The header of a report; its names are escaped.
pub struct Header<'a> {
    /// Name and descriptor of the metric; `None` if its name stands above each value.
    pub metric: Option<(&'a str, MetricDesc)>,
    /// True if counters are printed as they are.
    pub is_raw: bool,
    /// Name of the archive, and the first and the last time of the report.
    pub archive: Option<(Cow<'a, str>, String, Option<String>)>,
    /// Name of the metric's host.
    pub host: Cow<'a, str>,
    /// Number of samples; `None` if there is no limit.
    pub samples: Option<u64>,
    /// Time between samples; `None` if the source decides.
    pub interval: Option<Duration>,
}

impl Display for Header<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some((name, _)) = self.metric {
            writeln!(f, "metric:    {name}")?;
        }
        if let Some((archive, _, _)) = &self.archive {
            writeln!(f, "archive:   {archive}")?;
        }
        writeln!(f, "host:      {}", self.host)?;
        if let Some((_, start, end)) = &self.archive {
            writeln!(f, "start:     {start}")?;
            if let Some(end) = end {
                writeln!(f, "end:       {end}")?;
            }
        }
        if let Some((_, desc)) = self.metric {
            writeln!(f, "semantics: {}", self.semantics(desc.semantics))?;
            writeln!(f, "units:     {}", self.units(desc))?;
        }
        match self.samples {
            None => writeln!(f, "samples:   all"),
            Some(samples) => writeln!(f, "samples:   {samples}"),
        }?;
        match self.interval.filter(|_| self.samples > Some(1)) {
            Some(interval) => writeln!(f, "interval:  {:.2} sec", seconds(interval)),
            None => Ok(()),
        }
    }
}

impl Header<'_> {
    fn semantics(&self, semantics: Semantics) -> &'static str {
        match semantics {
            Semantics::Counter if self.is_raw => "cumulative counter",
            Semantics::Counter => "cumulative counter (converting to rate)",
            Semantics::Instant => "instantaneous value",
            Semantics::Discrete => "discrete instantaneous value",
            Semantics::Other(_) => "unknown",
        }
    }

    fn units(&self, desc: MetricDesc) -> String {
        let units = units_name(&desc.units);
        if desc.semantics != Semantics::Counter || self.is_raw {
            return units;
        }
        let converted = per_time(desc.units);
        let dimensions = (converted.dim_space, converted.dim_time, converted.dim_count);
        match dimensions {
            (0, 0, 0) if converted.extra.quantity == 0 => {
                format!("{units} (converting to time utilization)")
            }
            _ => format!("{units} (converting to {})", units_name(&converted)),
        }
    }
}

/// Seconds of an interval, rounded once.
pub fn seconds(interval: Duration) -> f64 {
    interval.as_nanos() as f64 / 1e9
}

/// Units of the growth per time of a metric with `units`.
fn per_time(units: Units) -> Units {
    let scale_time = if units.dim_time == 0 { SECONDS } else { units.scale_time };
    Units { dim_time: units.dim_time.wrapping_sub(1), scale_time, ..units }
}

//! Options that choose a part of a source's time, see pmParseTimeWindow(3), and
//! the zone that times are in.

use clap::Args;
use pmderive_runtime::time::WindowSpec;

/// Options of tools that report on a stretch of time. Tools that report on one
/// time have but an origin; the others come from the environment.
#[derive(Debug, Default, Args)]
pub struct WindowOptions {
    /// Start of the time that is reported on.
    #[arg(short = 'S', long, value_name = "TIME", allow_hyphen_values = true)]
    pub start: Option<String>,
    /// End of the time that is reported on.
    #[arg(short = 'T', long, value_name = "TIME", allow_hyphen_values = true)]
    pub finish: Option<String>,
    /// Start at a multiple of this, as in `1hour`.
    #[arg(short = 'A', long, value_name = "ALIGN", allow_hyphen_values = true)]
    pub align: Option<String>,
    /// Values of an archive from this time on.
    #[arg(short = 'O', long, value_name = "TIME", allow_hyphen_values = true)]
    pub origin: Option<String>,
}

impl WindowOptions {
    /// What they say.
    pub fn window(&self) -> WindowSpec<'_> {
        WindowSpec {
            start: self.start.as_deref(),
            finish: self.finish.as_deref(),
            align: self.align.as_deref(),
            origin: self.origin.as_deref(),
        }
    }
}

/// The zone that times are shown and read in.
#[derive(Clone, Debug, Default, Args)]
pub struct ZoneOptions {
    /// Times in the zone of the host that the metrics are of.
    #[arg(short = 'z', long, conflicts_with = "timezone")]
    pub hostzone: bool,
    /// Times in this zone, in the form of the TZ environment variable.
    #[arg(short = 'Z', long, value_name = "TZ")]
    pub timezone: Option<String>,
}

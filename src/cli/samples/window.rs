//! Options that choose a part of a source's time, see pmParseTimeWindow(3), and
//! the zone that times are in.

use clap::Args;
use pmderive_runtime::time::{TimeZone, WindowSpec};

use crate::cli::messages::Messages;

/// Options of tools that report on a stretch of time. Tools that report on one
/// time have only an origin; the others come from the environment.
#[derive(Debug, Default, Args)]
pub struct WindowOptions {
    /// Begin at this time, such as `@10:00` or `2024-02-29T10:00Z`, or `5min` after the start.
    #[arg(short = 'S', long, value_name = "TIME", allow_hyphen_values = true)]
    pub start: Option<String>,
    /// End at this time.
    #[arg(short = 'T', long, value_name = "TIME", allow_hyphen_values = true)]
    pub finish: Option<String>,
    /// Begin at a multiple of ALIGN, such as 1hour.
    #[arg(short = 'A', long, value_name = "ALIGN", allow_hyphen_values = true)]
    pub align: Option<String>,
    /// Take the first sample at this time; -0 is the end of an archive.
    #[arg(short = 'O', long, value_name = "TIME", allow_hyphen_values = true)]
    pub origin: Option<String>,
}

impl WindowOptions {
    /// True if they choose nothing.
    #[cfg(feature = "fleet")]
    pub fn is_empty(&self) -> bool {
        let WindowOptions { start, finish, align, origin } = self;
        [start, finish, align, origin].iter().all(|option| option.is_none())
    }

    /// The window that the options choose, without defaults.
    pub fn window(&self) -> WindowSpec<'_> {
        WindowSpec {
            start: self.start.as_deref(),
            finish: self.finish.as_deref(),
            align: self.align.as_deref(),
            origin: self.origin.as_deref(),
            as_libpcp: false,
        }
    }
}

/// The zone that times are shown and read in.
#[derive(Clone, Debug, Default, Args)]
pub struct ZoneOptions {
    /// Read and show times in the zone of the host that the metrics are from; tables have UTC.
    #[arg(short = 'z', long, conflicts_with = "timezone")]
    pub hostzone: bool,
    /// Read and show times in this zone, in the form of the TZ environment variable; tables have
    /// UTC.
    #[arg(short = 'Z', long, value_name = "TZ")]
    pub timezone: Option<String>,
}

/// The abbreviations of UTC.
const NAMES_OF_UTC: [&str; 3] = ["GMT", "UCT", "UTC"];

impl ZoneOptions {
    /// Warns of a zone without a meaning, which is UTC. PCP's tools say nothing.
    pub fn warn_of_unknown(&self, messages: &Messages) {
        let Some(zone) = &self.timezone else { return };
        // To libpcp any three letters alone are a name of UTC.
        let is_three_letters = zone.len() == 3;
        if messages.are_of_tool() || is_three_letters && NAMES_OF_UTC.contains(&&**zone) {
            return;
        }
        let meant = if is_three_letters { format!(":{zone}") } else { zone.clone() };
        if !TimeZone::parse(&meant).is_known() {
            messages.warning(&format_args!(
                "this machine knows no time zone `{zone}`, so times are in UTC; a zone is a name \
                 such as Europe/Paris, or rules such as CET-1CEST,M3.5.0,M10.5.0/3"
            ));
        } else if is_three_letters {
            messages.warning(&format_args!(
                "three letters alone are a name of UTC, as in PCP; for the time zone {zone} write \
                 `{meant}`"
            ));
        }
    }
}

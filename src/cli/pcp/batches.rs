//! Sizes of requests: how many metrics are looked up or fetched together.
//!
//! A round trip answers for as many metrics as possible. A group of metrics is looked up
//! together, and then fetched batch by batch. PCP's tools fetch the metrics of an archive one
//! by one, as each has its own first record. This program fetches metrics together that share a
//! first record.

use clap::Args;

use crate::cli::stop::Stop;

/// The error for a batch that is empty or no number.
pub const NO_BATCH: &str = "-b requires numeric argument";

/// Metrics fetched at a time.
const BATCH: usize = 128;

/// Metrics that are looked up together.
const GROUP: usize = 4096;

/// The option that chooses the size of a batch.
#[derive(Debug, Args)]
pub struct BatchArgument {
    /// Fetch this many metrics at a time [default: 128; not for archives].
    #[arg(short, long, value_name = "N", value_parser = batch, allow_negative_numbers = true)]
    pub batch: Option<i32>,
}

/// Parses the argument of `-b`.
fn batch(text: &str) -> Result<i32, String> {
    text.parse().map_err(|_| NO_BATCH.to_owned())
}

impl BatchArgument {
    /// The batches that a source is asked for.
    ///
    /// # Errors
    /// A batch of a live source has no metrics.
    pub fn of(&self, is_archive: bool) -> Result<Batches, Stop> {
        let given = || self.batch.map_or(BATCH, |batch| usize::try_from(batch).unwrap_or(0));
        match if is_archive { 1 } else { given() } {
            0 => Err(Stop::Usage(NO_BATCH.to_owned())),
            size => Ok(Batches { size }),
        }
    }
}

/// The division of a list of metrics into requests.
#[derive(Clone, Copy)]
pub struct Batches {
    /// Number of metrics in a batch.
    pub size: usize,
}

impl Batches {
    /// Splits metrics into groups of whole batches; the last group may end with a part of one.
    pub fn groups<M>(self, metrics: &[M]) -> std::slice::Chunks<'_, M> {
        metrics.chunks(GROUP.div_ceil(self.size) * self.size)
    }

    /// The number of metrics, rounded down to whole batches.
    pub fn whole(self, metrics: usize) -> usize {
        metrics / self.size * self.size
    }
}

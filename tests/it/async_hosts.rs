//! Derived metrics over hosts whose calls are futures. The answers are the same to the bit as
//! over blocking hosts, whatever comes, goes or fails. A dropped future does no harm.

#[allow(dead_code, reason = "shared with tests that need more of it")]
mod clients;
mod dropped;
mod events;
mod malformed;

use pmderive::dialect::{Dialect, Language};
use pmderive_runtime::eval::Buffers;
use pmderive_runtime::program::Status;
use pmderive_testkit::choices;

use choices::Choices;
use clients::{Blocking, ClientDefinitions, Futures, Outcome, Stepwise};
use events::{Servers, happen};

/// Each seed is another sequence of events.
const SEEDS: u64 = 60;
const SAMPLES: usize = 30;

const LANGUAGES: [Language; 4] = [
    Language { dialect: Dialect::Fixed, extensions: true },
    Language { dialect: Dialect::Fixed, extensions: false },
    Language { dialect: Dialect::Pcp7_2, extensions: true },
    Language { dialect: Dialect::Pcp6_0, extensions: false },
];

/// What the outcomes of all seeds were, so that the test is about something.
#[derive(Debug, Default)]
struct Seen {
    values: usize,
    without: usize,
    gaps: usize,
    changes: usize,
    failures: usize,
}

impl Seen {
    fn count(&mut self, outcome: &Outcome) {
        let Ok(sample) = outcome else {
            self.failures += 1;
            return;
        };
        self.gaps += usize::from(sample.events.gap);
        self.changes += usize::from(sample.events.metadata_changed);
        let valued = sample.metrics.iter().filter(|metric| metric.status == Status::Values).count();
        self.values += valued;
        self.without += sample.metrics.len() - valued;
    }
}

#[tokio::test]
async fn futures_give_the_answers_of_calls_that_block() {
    let mut seen = Seen::default();
    // One for all hosts, whose fetches have batches of their own.
    let mut buffers = Buffers::default();
    let mut asked_anew = 0;
    for seed in 0..SEEDS {
        let definitions = ClientDefinitions::new(LANGUAGES[seed as usize % LANGUAGES.len()]);
        let servers = Servers::start(seed);
        let mut blocking = Blocking::open(&definitions, &servers.specs[0]);
        let mut futures = Futures::open(&definitions, &servers.specs[1]).await;
        let mut stepwise = Stepwise::open(&definitions, &servers.specs[2]).await;
        // Where no question has a fault, some are asked again, as an
        // evaluation is given up and done once more.
        let is_faulty = seed % 3 > 0;
        let mut choices = Choices(seed);
        for sample in 0..SAMPLES {
            let event = happen(&servers, is_faulty, &mut choices);
            let expected = blocking.sample(&definitions);
            let at = format!("sample {sample} of seed {seed}, {event}");
            assert_eq!(futures.sample(&definitions).await, expected, "{at}");
            let gives_up = if is_faulty { 0 } else { choices.below(4) };
            let stepped = stepwise.sample(&definitions, &mut buffers, gives_up).await;
            assert_eq!(stepped, expected, "in steps, {at}");
            seen.count(&expected);
        }
        asked_anew += stepwise.asked_anew;
    }
    let Seen { values, without, gaps, changes, failures } = seen;
    let least = [values / 1000, without / 1000, gaps / 100, changes / 100, failures / 50];
    assert!(least.iter().all(|count| *count > 0), "{seen:?}");
    assert!(asked_anew > 100, "{asked_anew}");
}

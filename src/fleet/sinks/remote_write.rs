//! The sink that sends to a receiver of Prometheus' remote write 1.0. It encodes,
//! compresses, sends and waits in a thread of its own; messages go one after the
//! other, so that the samples of a series come in their order.

use std::marker::PhantomData;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Bytes;
use pmderive_runtime::escape;
use tokio::time::Instant;

use super::client::{Client, Credentials, HttpClient, Url};
use super::delivery::{Backoff, NoResponse, Response, Verdict, judge};
use super::encode::{Encoder, Message};
use super::numbers::SinkNumbers;
use super::ring::{Popped, Ring};
use crate::fleet::log::Trouble;
use crate::fleet::sink_set::SinkPlace;
use crate::fleet::world::{Job, World};
use crate::syntax::counted;

/// Most characters of what a receiver says that are logged.
const MAX_SAID: usize = 200;

/// Where a sink sends to, and how.
#[derive(Clone, Debug)]
pub struct SenderOptions {
    /// What it is called in logs and numbers.
    pub name: String,
    /// Place of the sink, whose metrics are sent.
    pub sink: SinkPlace,
    /// The receiver.
    pub url: Url,
    /// Who we are.
    pub credentials: Credentials,
    /// File of the authorities that are believed, in PEM form; those of the
    /// system are without.
    pub authorities: Option<PathBuf>,
    /// Time for a request, connecting included.
    pub timeout: Duration,
    /// Most samples in a message.
    pub most_samples: usize,
    /// Longest time that samples wait for a message to become full.
    pub longest_wait: Duration,
    /// Age at which samples are not sent any more.
    pub most_age: Duration,
    /// Times between tries.
    pub backoff: Backoff,
}

impl SenderOptions {
    /// A sink with what is usual everywhere else.
    pub fn to(name: &str, sink: SinkPlace, url: Url) -> SenderOptions {
        SenderOptions {
            name: name.into(),
            sink,
            url,
            credentials: Credentials::None,
            authorities: None,
            timeout: Duration::from_secs(30),
            most_samples: 5000,
            longest_wait: Duration::from_secs(1),
            most_age: Duration::from_secs(30 * 60),
            backoff: Backoff::default(),
        }
    }

    /// Checks that its secret and its authorities can be used.
    ///
    /// # Errors
    /// The file, and what is wrong with it.
    pub fn check_files(&self) -> Result<(), String> {
        let (url, credentials) = (self.url.clone(), self.credentials.clone());
        HttpClient::new(url, credentials, self.authorities.as_deref()).map(drop)
    }

    /// Starts its thread, which sends what comes into the ring until that is
    /// closed, and then what is in it until the ring's deadline.
    ///
    /// # Errors
    /// A file of it cannot be used, or there is no thread.
    pub fn start<W: World>(
        self,
        ring: Arc<Ring>,
        numbers: Arc<SinkNumbers>,
    ) -> Result<Job, String> {
        let authorities = self.authorities.as_deref();
        let client = W::Client::new(self.url.clone(), self.credentials.clone(), authorities)?;
        let encoder = Encoder::new(self.sink, self.most_samples, Arc::clone(&numbers));
        let name = self.name.clone();
        let work = move || {
            let sender = Sender {
                options: self,
                ring,
                numbers,
                client,
                failed: 0,
                trouble: Trouble::default(),
                world: PhantomData::<fn() -> W>,
            };
            sender.run(encoder)
        };
        W::spawn(&name, work).map_err(|error| error.to_string())
    }
}

/// Kinds of trouble, which the log tells of one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// The receiver has answered so.
    Status(u16),
    TimedOut,
    Broken,
}

impl Kind {
    fn of(answer: &Result<Response, NoResponse>) -> Kind {
        match answer {
            Ok(response) => Kind::Status(response.status),
            Err(NoResponse::TimedOut) => Kind::TimedOut,
            Err(NoResponse::Broken(_)) => Kind::Broken,
        }
    }

    /// True for a refusal, which is about one message and not about the next one.
    fn is_refusal(&self) -> bool {
        matches!(self, Kind::Status(300..=428 | 430..=499))
    }
}

struct Sender<W: World> {
    options: SenderOptions,
    ring: Arc<Ring>,
    numbers: Arc<SinkNumbers>,
    client: W::Client,
    /// Tries that failed one after the other.
    failed: u32,
    /// What the log was told.
    trouble: Trouble<Kind>,
    world: PhantomData<fn() -> W>,
}

impl<W: World> Sender<W> {
    async fn run(mut self, mut encoder: Encoder) {
        let mut begun = None;
        loop {
            let wait = self.options.longest_wait;
            let patience =
                begun.map_or(Duration::MAX, |begun: Instant| wait.saturating_sub(begun.elapsed()));
            let popped = self.ring.pop(patience).await;
            match &popped {
                Popped::Event(event) => encoder.push(event),
                Popped::Nothing | Popped::Closed => encoder.flush(),
            }
            if begun.is_some_and(|begun| begun.elapsed() >= wait) {
                encoder.flush();
            }
            while let Some(message) = encoder.take() {
                self.deliver(message).await;
            }
            begun = encoder.is_begun().then(|| begun.unwrap_or_else(Instant::now));
            if matches!(popped, Popped::Closed) {
                break;
            }
        }
        self.ring.abandon();
    }

    /// Sends a message until it is through or given up.
    async fn deliver(&mut self, message: Message) {
        let samples = message.samples as u64;
        let body = Bytes::from(message.body);
        let mut is_first = true;
        loop {
            if W::now().since(message.oldest) > self.options.most_age {
                self.numbers.dropped_old.add(samples);
                return;
            }
            if !is_first {
                self.numbers.retries.add(1);
            }
            is_first = false;
            let begun = Instant::now();
            let Some(answer) = self.send(body.clone()).await else {
                self.numbers.dropped_unsent.add(samples);
                return;
            };
            let (verdict, outcome) = judge(&answer);
            self.numbers.latency.observe(begun.elapsed());
            self.numbers.request(outcome);
            self.log(&answer, samples);
            match verdict {
                Verdict::Done => {
                    self.failed = 0;
                    self.numbers.samples.add(samples);
                    self.numbers.bytes.add(body.len() as u64);
                    return;
                }
                Verdict::Drop => {
                    self.failed = 0;
                    self.numbers.dropped_refused.add(samples);
                    return;
                }
                Verdict::Again(after) => {
                    self.failed = self.failed.saturating_add(1);
                    // A receiver that says at once is not believed.
                    let usual = self.options.backoff.after(self.failed, W::chance());
                    self.rest(after.map_or(usual, |after| after.max(usual))).await;
                }
            }
        }
    }

    /// Sends once. `None` if the deadline of the ring came first.
    async fn send(&mut self, body: Bytes) -> Option<Result<Response, NoResponse>> {
        let (client, ring, timeout) = (&mut self.client, &self.ring, self.options.timeout);
        let answer = tokio::select! {
            biased;
            () = ring.past_deadline() => None,
            answer = tokio::time::timeout(timeout, client.send(body)) => {
                Some(answer.unwrap_or(Err(NoResponse::TimedOut)))
            }
        };
        if !matches!(answer, Some(Ok(_))) {
            self.client.disconnect();
        }
        answer
    }

    /// Waits before the next try; while the sink is to end, no longer than until
    /// its deadline.
    async fn rest(&self, time: Duration) {
        let begun = Instant::now();
        self.ring.sleep(time).await;
        let Some(deadline) = self.ring.deadline() else { return };
        let until = deadline.saturating_duration_since(Instant::now());
        // A receiver that is away is not asked without pause.
        let left = time.saturating_sub(begun.elapsed()).min(self.options.backoff.longest);
        tokio::time::sleep(left.min(until)).await;
    }

    /// Tells of trouble, but not all the time, and of its end.
    fn log(&mut self, answer: &Result<Response, NoResponse>, samples: u64) {
        let (sink, url) = (&*self.options.name, self.options.url.text());
        let trouble = match answer {
            Ok(Response { status: 200..300, .. }) => {
                if let Some(failed) = self.trouble.is_over() {
                    let failed = counted(failed, "failed request");
                    tracing::info!("sink {sink}: {url} takes samples again after {failed}");
                }
                return;
            }
            Ok(Response { status: status @ (429 | 500..), said, .. }) => {
                format!("{url} answers {status}{}", after_colon(said))
            }
            Ok(Response { status, said, .. }) => {
                let samples = counted(samples, "sample");
                format!("{url} refuses {samples} with {status}{}", after_colon(said))
            }
            Err(NoResponse::TimedOut) => format!("{url} does not answer in time"),
            Err(NoResponse::Broken(why)) => format!("{url}{}", after_colon(why)),
        };
        let kind = Kind::of(answer);
        match self.trouble.happens(kind, !kind.is_refusal()) {
            None => {}
            Some(0) => tracing::warn!("sink {sink}: {trouble}"),
            Some(more) => tracing::warn!("sink {sink}: {trouble} ({more} more like this)"),
        }
    }
}

/// What others say behind a colon, if they say anything.
fn after_colon(said: &str) -> String {
    let said = shown(said);
    if said.is_empty() { said } else { format!(": {said}") }
}

/// What others say, short and on one line.
fn shown(said: &str) -> String {
    let short: String = said.chars().take(MAX_SAID).collect();
    escape::line(short.as_bytes()).into_owned()
}

//! The sink that sends to a receiver of Prometheus' remote write 1.0. It encodes, compresses,
//! sends and waits in a thread of its own. It sends one message after the other, so the samples
//! of a series arrive in order. Other options take effect under way.

use std::marker::PhantomData;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hyper::body::Bytes;
use pmderive_runtime::escape;
use pmderive_runtime::locks::lock;
use tokio::time::Instant;

use super::client::{Client, HttpClient};
use super::delivery::{NoResponse, Response, RetryDelays, Verdict, judge};
use super::encode::{Encoder, Message};
use super::numbers::SinkNumbers;
use super::ring::{Popped, Ring};
use crate::fleet::config::RemoteWrite;
use crate::fleet::log::Trouble;
use crate::fleet::sinks::sink_set::SinkPlace;
use crate::fleet::world::{Job, World};
use crate::syntax::counted;

/// Characters of a receiver's answer that are logged, at most.
const MAX_SAID: usize = 200;

/// Options of a sender.
#[derive(Clone, Debug)]
pub struct SenderOptions {
    /// Its name in logs and metrics.
    pub name: String,
    /// Place of the sink whose metrics it sends.
    pub sink: SinkPlace,
    /// The receiver.
    pub remote: RemoteWrite,
    /// Limits that have no settings.
    pub limits: SenderLimits,
}

/// Limits of a sender.
#[derive(Clone, Copy, Debug)]
pub struct SenderLimits {
    /// Most samples in a message.
    pub most_samples: usize,
    /// Longest time that samples wait for a message to become full.
    pub longest_wait: Duration,
    /// Pauses between attempts.
    pub backoff: RetryDelays,
}

impl Default for SenderLimits {
    fn default() -> SenderLimits {
        SenderLimits {
            most_samples: 5000,
            longest_wait: Duration::from_secs(1),
            backoff: RetryDelays::default(),
        }
    }
}

impl SenderOptions {
    /// Options of a sender to a receiver.
    pub fn to(name: &str, sink: SinkPlace, remote: &RemoteWrite) -> SenderOptions {
        let (name, remote, limits) = (name.into(), remote.clone(), SenderLimits::default());
        SenderOptions { name, sink, remote, limits }
    }

    /// Checks that its secret and its authorities can be used.
    ///
    /// # Errors
    /// A file cannot be used; the text names it and says why.
    pub fn check_files(&self) -> Result<(), String> {
        self.client::<HttpClient>().map(drop)
    }

    fn client<C: Client>(&self) -> Result<C, String> {
        let RemoteWrite { url, credentials, authorities, .. } = &self.remote;
        C::new(url.clone(), credentials.clone(), authorities.as_deref())
    }

    /// Starts its thread. It sends the events of the ring until that is closed, and then the
    /// rest until the ring's deadline.
    ///
    /// # Errors
    /// One of its files cannot be used, or there is no thread.
    pub fn start<W: World>(
        self,
        ring: Arc<Ring>,
        numbers: Arc<SinkNumbers>,
    ) -> Result<(Change, Job), String> {
        let client = self.client()?;
        let changed = NextOptions::<W::Client>::default();
        let own = Arc::clone(&changed);
        let change = move |options: SenderOptions| {
            let client = options.client()?;
            *lock(&own) = Some((options, client));
            Ok(())
        };
        let encoder = Encoder::new(self.sink, self.limits.most_samples, Arc::clone(&numbers));
        let name = self.name.clone();
        let work = move || {
            let sender = Sender {
                options: self,
                changed,
                ring,
                numbers,
                client,
                failed: 0,
                trouble: Trouble::default(),
                world: PhantomData::<fn() -> W>,
            };
            sender.run(encoder)
        };
        let job = W::spawn(&name, work).map_err(|error| error.to_string())?;
        Ok((Box::new(change), job))
    }
}

/// Gives a running sender other options, which hold from its next request on. The place of the
/// sink and the limits of messages stay. The error: a file cannot be used, and nothing changes.
pub type Change = Box<dyn Fn(SenderOptions) -> Result<(), String> + Send>;

/// Options for the next request, with their client, if they differ from the present ones.
type NextOptions<C> = Arc<Mutex<Option<(SenderOptions, C)>>>;

/// Kinds of trouble, which the log reports separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// The receiver answered with this status.
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

    /// True for a refusal, which concerns one message and not the next one.
    fn is_refusal(&self) -> bool {
        matches!(self, Kind::Status(300..=428 | 430..=499))
    }
}

struct Sender<W: World> {
    options: SenderOptions,
    changed: NextOptions<W::Client>,
    ring: Arc<Ring>,
    numbers: Arc<SinkNumbers>,
    client: W::Client,
    /// Number of failed attempts in a row.
    failed: u32,
    /// The trouble that was logged.
    trouble: Trouble<Kind>,
    world: PhantomData<fn() -> W>,
}

impl<W: World> Sender<W> {
    async fn run(mut self, mut encoder: Encoder) {
        let mut begun = None;
        loop {
            let wait = self.options.limits.longest_wait;
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

    /// Sends a message until it is delivered or given up.
    async fn deliver(&mut self, message: Message) {
        let samples = message.samples as u64;
        let body = Bytes::from(message.body);
        let mut is_first = true;
        loop {
            if let Some(next) = lock(&self.changed).take() {
                (self.options, self.client) = next;
            }
            if W::now().since(message.oldest) > self.options.remote.max_age {
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
                    // A receiver that asks for a retry at once still gets a pause.
                    let usual = self.options.limits.backoff.after(self.failed, W::chance());
                    self.rest(after.map_or(usual, |after| after.max(usual))).await;
                }
            }
        }
    }

    /// Sends once. `None` if the deadline of the ring came first.
    async fn send(&mut self, body: Bytes) -> Option<Result<Response, NoResponse>> {
        let (client, ring, timeout) = (&mut self.client, &self.ring, self.options.remote.timeout);
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

    /// Pauses before the next attempt, but not beyond the deadline of an ending sink.
    async fn rest(&self, time: Duration) {
        let begun = Instant::now();
        self.ring.sleep(time).await;
        let Some(deadline) = self.ring.deadline() else { return };
        let until = deadline.saturating_duration_since(Instant::now());
        // Even then there is a pause between attempts.
        let left = time.saturating_sub(begun.elapsed()).min(self.options.limits.backoff.longest);
        tokio::time::sleep(left.min(until)).await;
    }

    /// Logs trouble, though not every time, and its end.
    fn log(&mut self, answer: &Result<Response, NoResponse>, samples: u64) {
        let (sink, url) = (&*self.options.name, self.options.remote.url.text());
        let trouble = match answer {
            Ok(Response { status: 200..300, .. }) => {
                if let Some(failed) = self.trouble.end() {
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

/// Foreign text behind a colon; empty if there is none.
fn after_colon(said: &str) -> String {
    let said = shown(said);
    if said.is_empty() { said } else { format!(": {said}") }
}

/// Foreign text, shortened and on one line.
fn shown(said: &str) -> String {
    let short: String = said.chars().take(MAX_SAID).collect();
    escape::line(short.as_bytes()).into_owned()
}

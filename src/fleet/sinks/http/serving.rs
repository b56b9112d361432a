//! Connections of the listener: their number, their duration, and their encryption.

use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use pmderive_runtime::locks::read;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use super::answer::{Answer, Answers};
use super::listen::RequestLimits;
use super::places::{Place, Places, Unsent};
use crate::fleet::sinks::numbers::RequestOutcome;

/// Threads that compute answers. Some of them may wait for files that hang.
pub(super) const MAKERS: usize = 4;
/// Pause after a connection could not be accepted, as without free files.
const REST: Duration = Duration::from_millis(100);

/// Bytes of unsent answers at which no other answer is begun.
const MAX_UNSENT: usize = 64 << 20;
/// Size in bytes of an answer that is always sent, as all connections together have few of them.
const SMALL: usize = 4 << 10;

/// Headers of all answers: no embedding in frames of other sites, and no caching.
const EVERYWHERE: &[(&str, &str)] = &[
    ("x-content-type-options", "nosniff"),
    ("content-security-policy", "frame-ancestors 'none'"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cache-control", "no-store"),
];

/// State of a listener's thread.
pub(super) struct Serving {
    answers: Arc<Answers>,
    ending: watch::Receiver<Option<Instant>>,
    places: Places,
    /// Bytes of all unsent answers.
    unsent: Arc<AtomicUsize>,
}

impl Serving {
    /// State that gives these answers.
    pub(super) fn new(answers: Answers, ending: watch::Receiver<Option<Instant>>) -> Serving {
        let places = Places::new(answers.settings.listen.limits.connections);
        Serving { answers: Arc::new(answers), ending, places, unsent: Arc::default() }
    }

    fn limits(&self) -> &RequestLimits {
        &self.answers.settings.listen.limits
    }

    /// Serves until the listener must end.
    pub(super) async fn accept(self: Arc<Serving>, socket: TcpListener) {
        let socket = match tokio::net::TcpListener::from_std(socket) {
            Ok(socket) => socket,
            Err(error) => return tracing::error!("the listener cannot run: {error}"),
        };
        let mut ending = self.ending.clone();
        let ended = async |ending: &mut watch::Receiver<Option<Instant>>| {
            // A dropped sender ends it as well.
            ending.wait_for(Option::is_some).await.map_or(None, |end| *end)
        };
        let mut connections = tokio::task::JoinSet::new();
        // The connection is here, but has no place yet.
        let mut waiting: Option<(TcpStream, SocketAddr)> = None;
        let deadline = loop {
            tokio::select! {
                end = ended(&mut ending) => break end,
                place = self.places.take(), if waiting.is_some() => {
                    if let Some((stream, peer)) = waiting.take() {
                        let serving = Arc::clone(&self);
                        connections.spawn(async move {
                            tokio::select! {
                                () = serving.connection(stream, peer, &place) => {}
                                () = place.is_wanted() => {
                                    tracing::debug!("{peer} gives way to another connection");
                                }
                            }
                        });
                    }
                }
                accepted = socket.accept(), if waiting.is_none() => match accepted {
                    Ok(connection) => waiting = Some(connection),
                    Err(error) => {
                        tracing::debug!("a connection cannot be accepted: {error}");
                        tokio::time::sleep(REST).await;
                    }
                },
                Some(_) = connections.join_next() => {}
            }
        };
        drop(socket);
        let rest = async { while connections.join_next().await.is_some() {} };
        let deadline = deadline.unwrap_or_else(Instant::now);
        let _ = tokio::time::timeout_at(deadline.into(), rest).await;
    }

    async fn connection(&self, stream: TcpStream, peer: SocketAddr, place: &Place) {
        let _ = stream.set_nodelay(true);
        let stream = place.watched(stream);
        let tls = read(&self.answers.settings.files).tls.clone();
        let Some(tls) = tls else { return self.requests(stream, place).await };
        let handshake = TlsAcceptor::from(tls).accept(stream);
        match tokio::time::timeout(self.limits().head_time, handshake).await {
            Ok(Ok(stream)) => {
                place.has_shaken_hands();
                self.requests(stream, place).await;
            }
            Ok(Err(error)) => tracing::debug!("no TLS with {peer}: {error}"),
            Err(_) => tracing::debug!("no TLS with {peer} in time"),
        }
    }

    async fn requests(&self, stream: impl AsyncRead + AsyncWrite + Unpin, place: &Place) {
        let service = service_fn(async |request: Request<Incoming>| {
            let (mut answer, is_for_anybody) = self.request(request, place).await;
            let mut held = Held::new(&self.unsent, answer.body.capacity());
            if held.is_too_much {
                self.places.ask_slowest();
                answer = Answer::busy();
                held = Held::new(&self.unsent, answer.body.capacity());
            }
            self.count(&answer);
            let unsent = place.has_answer(!is_for_anybody);
            Ok::<_, Infallible>(response(answer, (unsent, held)))
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.limits().head_time)
            .max_buf_size(self.limits().head_bytes.max(8 << 10))
            .serve_connection(TokioIo::new(stream), service);
        let mut connection = std::pin::pin!(connection);
        let mut ending = self.ending.clone();
        tokio::select! {
            _ = connection.as_mut() => return,
            _ = ending.wait_for(Option::is_some) => {}
            () = tokio::time::sleep(self.limits().connection_time) => {}
        }
        connection.as_mut().graceful_shutdown();
        let _ = tokio::time::timeout(self.limits().head_time, connection).await;
    }

    /// Answers a request. True if anybody may get the answer.
    async fn request(&self, request: Request<Incoming>, place: &Place) -> (Answer, bool) {
        let begun = Instant::now();
        let (parts, _) = request.into_parts();
        let token = read(&self.answers.settings.files).token.clone();
        // Clients without the token and those that ask for the health do not wait for others'
        // values. So they hold no place as one whose request is being answered.
        let for_anybody = self.answers.for_anybody(&parts, token.as_ref());
        let is_for_anybody = for_anybody.is_some();
        let answer = match for_anybody {
            Some(answer) => answer,
            None => {
                place.begins_answer();
                let answers = Arc::clone(&self.answers);
                tokio::task::spawn_blocking(move || answers.answer(&parts))
                    .await
                    .unwrap_or_else(|_| Answer::text(500, "this failed; see the log\n"))
            }
        };
        self.answers.newest.numbers().latency.observe(begun.elapsed());
        (answer, is_for_anybody)
    }

    fn count(&self, answer: &Answer) {
        let numbers = self.answers.newest.numbers();
        numbers.bytes.add(answer.body.len() as u64);
        numbers.request(match answer.status {
            200..300 => RequestOutcome::Accepted,
            500.. => RequestOutcome::Failed,
            _ => RequestOutcome::Refused,
        });
    }
}

/// Bytes of an unsent answer, until they are dropped. Clients that do not read could fill the
/// memory with them.
struct Held {
    bytes: usize,
    all: Arc<AtomicUsize>,
    is_too_much: bool,
}

impl Held {
    fn new(all: &Arc<AtomicUsize>, bytes: usize) -> Held {
        // The first answer may be of any size.
        let is_full = all.fetch_add(bytes, Ordering::Relaxed) >= MAX_UNSENT;
        Held { bytes, all: Arc::clone(all), is_too_much: is_full && bytes > SMALL }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.all.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// A body that is dropped when it is sent.
struct Body {
    bytes: Vec<u8>,
    _unsent: (Unsent, Held),
}

impl AsRef<[u8]> for Body {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

fn response(answer: Answer, unsent: (Unsent, Held)) -> Response<Full<Bytes>> {
    let body = Body { bytes: answer.body, _unsent: unsent };
    let mut response = Response::new(Full::new(Bytes::from_owner(body)));
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or_default();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(answer.content_type));
    for (name, value) in EVERYWHERE.iter().chain(&answer.headers).copied() {
        headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    response
}

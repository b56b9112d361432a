//! Fuzz targets that feed arbitrary bytes to a connection during all of its life.

use std::sync::{Arc, OnceLock};

use super::config::{
    ConnectionConfig, Credentials, Forward, Method, Peer, Secret, Security, TlsClient,
};
use super::connection::{Connection, Event};
use super::error::ProtocolError;
use super::request::{Reply, Request};

/// Feeds a stream of bytes to a connection with a request of every kind under way. The
/// first bytes choose the sizes of the pieces. The events must be the same as for the
/// whole stream in one piece. The first byte also chooses whether pmcd is on this host,
/// where it may demand credentials.
#[doc(hidden)]
pub fn fuzz_stream(data: &[u8]) {
    let (sizes, stream) = data.split_at(data.len().min(8));
    let peer = match sizes.first() {
        Some(first) if first & 0x80 != 0 => Peer::SameHost,
        _ => Peer::Remote,
    };
    let whole = events_of(stream, peer, &[usize::MAX]);
    let sizes: Vec<usize> = sizes.iter().map(|size| usize::from(*size) % 40 + 1).collect();
    assert_eq!(events_of(stream, peer, &sizes), whole);
}

/// The events of a stream that arrives in pieces of `sizes`, in turn.
pub(super) fn events_of(stream: &[u8], peer: Peer, sizes: &[usize]) -> Vec<String> {
    use super::request::FetchRequest;
    use super::store::StoreRequest;
    use crate::pdu::{Resolution, TextRequest};
    use pmderive_core::model::{InDom, LabelLevel, Pmid, RawValue, TextKind, TextSubject};
    use pmderive_core::result::{InstanceValue, MetricValues};
    let fetches = [
        FetchRequest::new(&[Pmid(0x0740_000a)], Resolution::Nano).into(),
        FetchRequest::new(&[Pmid(0x0740_000a), Pmid(0x0080_0007)], Resolution::Micro).into(),
    ];
    let subject = TextSubject::Metric(Pmid(1));
    let one = InstanceValue { instance: -1, value: RawValue::InPlace(1) };
    let store = MetricValues { pmid: Pmid(0x0740_0024), outcome: Ok(vec![one]) };
    let store = StoreRequest::new(&[store]).expect("one value");
    let requests = [
        Request::Fetch(&fetches[0]),
        Request::Fetch(&fetches[1]),
        Request::LookupNames(&["a.b"]),
        Request::LookupDesc(Pmid(0x0740_000a)),
        Request::LookupDescs(&[Pmid(0x0740_0006), Pmid(0x0740_001c)]),
        Request::InstanceDomain(InDom(0x0740_0002)),
        Request::Traverse("a"),
        Request::Children(""),
        Request::HelpText(TextRequest { subject, kind: TextKind::Help }),
        Request::NamesOf(Pmid(0x0740_0006)),
        Request::Labels(LabelLevel::Item(Pmid(0x0740_0040))),
        Request::LookupInstance(InDom(0x0740_0002), "a"),
        Request::InstanceName(InDom(0x0740_0002), 400),
        Request::Store(&store),
    ];
    let config = ConnectionConfig { peer, max_reply_bytes: 1 << 20, ..ConnectionConfig::default() };
    let mut connection = Connection::new(config);
    let mut batch = pmderive_core::result::ResultBatch::default();
    let mut events = Vec::new();
    let mut rest = stream;
    let mut sizes = sizes.iter().cycle();
    loop {
        // Bytes that come before the requests cannot be replies to them.
        let size = if connection.is_ready() { sizes.next().map_or(1, |size| *size) } else { 1 };
        let (piece, after) = rest.split_at(rest.len().min(size));
        rest = after;
        connection.inbox().extend_from_slice(piece);
        loop {
            let event = match connection.poll() {
                Ok(Some(event)) => event,
                Ok(None) => break,
                // The number of surplus bytes depends on the pieces.
                Err(ProtocolError::Unsolicited { .. }) => return events,
                // The shown part of a wrong greeting depends on the pieces.
                Err(ProtocolError::NotPmcd { .. }) => return events,
                Err(error) => {
                    events.push(error.to_string());
                    return events;
                }
            };
            events.push(format!("{event:?}"));
            if event == Event::Ready {
                for request in requests {
                    if let Err(error) = connection.request(request) {
                        events.push(error.to_string());
                    }
                }
            }
            if event != Event::Reply {
                continue;
            }
            let frame = match connection.reply() {
                Ok(Reply::Result(frame)) => frame,
                Ok(Reply::Instances(instances)) => {
                    events.push(format!("{:?}", instances.iter().collect::<Vec<_>>()));
                    continue;
                }
                Ok(Reply::Names(names)) => {
                    events.push(format!("{:?}", names.iter().collect::<Vec<_>>()));
                    continue;
                }
                other => {
                    events.push(format!("{other:?}"));
                    continue;
                }
            };
            batch.clear();
            let part = batch.add_part();
            connection.take_result(frame, part);
            events.extend(part.sets().map(|set| format!("{set:?}")));
        }
        if rest.is_empty() {
            return events;
        }
    }
}

/// Feeds a stream of bytes to a connection before it is ready. The first byte chooses
/// the client's wishes, the next three the sizes of the pieces.
///
/// Whatever the peer sends, a client that demands TLS or a proof of the password does
/// not become ready, the password is not shown, and the bytes sent are bounded. The
/// pieces make no difference.
#[doc(hidden)]
pub fn fuzz_handshake(data: &[u8]) {
    let Some((head, stream)) = data.split_at_checked(4) else { return };
    let sizes: Vec<usize> = head[1..].iter().map(|size| usize::from(*size) % 40 + 1).collect();
    let whole = outcome_of(stream, head[0], &[usize::MAX]);
    let pieces = outcome_of(stream, head[0], &sizes);
    // The pieces decide which of several problems is found first. Bytes that arrive before
    // the client turns to TLS are refused. Later ones are not a record of TLS.
    let is_early = whole.as_ref().is_err_and(|error| error.ends_with("that answer no request"));
    let is_same = pieces.is_ok() == whole.is_ok() || is_early && pieces == Ok(false);
    assert!(is_same, "{pieces:?} {whole:?}");
    let unforgeable = wishes(head[0]);
    if matches!(unforgeable.security, Security::Required(_))
        || unforgeable.credentials.is_some_and(|user| user.method == Some(Method::ScramSha256))
    {
        assert_ne!(whole, Ok(true));
    }
}

const FUZZ_PASSWORD: &str = "correct horse";

/// The wishes of a client, from the bits of a number.
fn wishes(bits: u8) -> ConnectionConfig {
    let method = match bits >> 3 & 3 {
        0 => None,
        1 => Some(Some(Method::ScramSha256)),
        2 => Some(Some(Method::Plain)),
        _ => Some(None),
    };
    ConnectionConfig {
        peer: if bits & 0x40 != 0 { Peer::SameHost } else { Peer::Remote },
        forward: (bits & 1 != 0).then_some(Forward { address: [127, 0, 0, 1].into(), port: 44321 }),
        security: match bits >> 1 & 3 {
            0 => Security::Off,
            1 => Security::Relaxed(fuzz_tls()),
            _ => Security::Required(fuzz_tls()),
        },
        credentials: method.map(|method| Credentials {
            user: "fred".to_owned(),
            password: Secret::new(FUZZ_PASSWORD),
            method,
        }),
        container: (bits & 0x20 != 0).then(|| "web".to_owned()),
        max_reply_bytes: 1 << 20,
    }
}

/// TLS settings that trust no authority.
fn fuzz_tls() -> TlsClient {
    static CONFIG: OnceLock<Arc<rustls::ClientConfig>> = OnceLock::new();
    let config = CONFIG.get_or_init(|| {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = rustls::ClientConfig::builder_with_provider(provider);
        let builder = builder.with_safe_default_protocol_versions().expect("versions");
        Arc::new(
            builder.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth(),
        )
    });
    TlsClient {
        config: Arc::clone(config),
        server: rustls::pki_types::ServerName::try_from("localhost").expect("a name"),
        has_certificate: false,
        is_verified: true,
    }
}

/// True if a connection becomes ready, or its error in words.
fn outcome_of(stream: &[u8], bits: u8, sizes: &[usize]) -> Result<bool, String> {
    let config = wishes(bits);
    let shows_password =
        config.credentials.as_ref().is_some_and(|user| user.method != Some(Method::ScramSha256));
    let mut connection = Connection::new(config);
    let mut rest = stream;
    let mut sent = 0;
    let mut sizes = sizes.iter().cycle();
    loop {
        let event = connection.poll();
        let outgoing = connection.outgoing();
        sent += outgoing.len();
        let told = |text: &[u8]| {
            text.windows(FUZZ_PASSWORD.len()).any(|part| part == FUZZ_PASSWORD.as_bytes())
        };
        // Text that the peer has sent itself may be shown.
        let hidden = |text: &[u8]| told(stream) || !told(text);
        assert!(shows_password || hidden(outgoing), "the password is sent");
        connection.sent(outgoing.len());
        assert!(sent <= 16 << 10, "{sent} bytes before the first request");
        assert!(hidden(format!("{connection:?}").as_bytes()));
        match event {
            Ok(None) => {}
            Ok(Some(event)) => return Ok(event == Event::Ready),
            Err(error) => {
                let text = error.to_string();
                assert!(hidden(text.as_bytes()), "{text}");
                return Err(text);
            }
        }
        if rest.is_empty() {
            return Ok(false);
        }
        let size = sizes.next().copied().unwrap_or(1);
        let (piece, after) = rest.split_at(rest.len().min(size));
        rest = after;
        connection.inbox().extend_from_slice(piece);
    }
}

//! A pmcd for tests of handshakes: bytes in, bytes out. It makes the mistakes that a
//! test asks for.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ring::{digest, hmac, pbkdf2};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig, ServerConnection};

use super::config::TlsClient;
use super::connection::{Connection, Event};
use super::error::ProtocolError;
use crate::pdu::{
    Attr, CONTAINER_KEY, Creds, ErrorPdu, Features, Header, Hello, Pdu, PduType, PmnsNames,
    SASL_KEY,
};

/// A certificate for `localhost` and its key.
pub(super) struct Identity {
    pub(super) certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

impl Identity {
    pub(super) fn new() -> Identity {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a key");
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key");
        Identity { certificate: made.cert.der().clone(), key }
    }

    fn server(&self) -> ServerConnection {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate.clone()], self.key.clone_key())
            .expect("a certificate");
        ServerConnection::new(Arc::new(config)).expect("a server")
    }

    /// A client that trusts this certificate, or none.
    pub(super) fn client(&self, trusted: bool) -> TlsClient {
        let mut roots = RootCertStore::empty();
        if trusted {
            roots.add(self.certificate.clone()).expect("a root");
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        TlsClient {
            config: Arc::new(config),
            server: ServerName::try_from("localhost").expect("a name"),
            has_certificate: false,
            is_verified: true,
        }
    }
}

/// The peer's deviations from a good pmcd.
#[derive(Default)]
pub(super) struct Faults {
    /// Replaces the status that allows TLS.
    pub(super) tls_status: i32,
    /// Follows that status directly, unencrypted.
    pub(super) injected: Vec<u8>,
    /// Replace SASL messages, beginning with the list of mechanisms.
    pub(super) sasl: Vec<Option<Vec<u8>>>,
    /// Replaces the status after the last SASL message.
    pub(super) verdict: i32,
    /// Number of hashing rounds; 0 for the usual number.
    pub(super) iterations: u32,
}

/// The password of every user.
pub(super) const PASSWORD: &str = "pencil";

pub(super) struct TestPeer {
    features: Features,
    identity: Option<Arc<Identity>>,
    mechanisms: &'static str,
    faults: Faults,
    proxy: bool,
    tls: Option<ServerConnection>,
    input: Vec<u8>,
    /// Bytes that the client has yet to receive.
    pub(super) output: Vec<u8>,
    flags: Option<Features>,
    /// Number of SASL messages sent so far.
    said: usize,
    first: Vec<u8>,
    /// The client's lines and PDUs, in words.
    pub(super) heard: Vec<String>,
}

impl TestPeer {
    pub(super) fn new(features: Features, faults: Faults) -> TestPeer {
        let mut output = Vec::new();
        Hello { refusal: None, version: 2, features }.encode(&mut output);
        TestPeer {
            features,
            identity: None,
            mechanisms: "PLAIN LOGIN SCRAM-SHA-256",
            faults,
            proxy: false,
            tls: None,
            input: Vec::new(),
            output,
            flags: None,
            said: 0,
            first: Vec::new(),
            heard: Vec::new(),
        }
    }

    pub(super) fn with_identity(mut self, identity: &Arc<Identity>) -> TestPeer {
        self.identity = Some(Arc::clone(identity));
        self
    }

    pub(super) fn with_mechanisms(mut self, mechanisms: &'static str) -> TestPeer {
        self.mechanisms = mechanisms;
        self
    }

    pub(super) fn behind_proxy(mut self) -> TestPeer {
        self.proxy = true;
        self.output.clear();
        self
    }

    /// Receives bytes of the client and answers them.
    pub(super) fn receive(&mut self, bytes: &[u8]) {
        match &mut self.tls {
            None => self.input.extend_from_slice(bytes),
            Some(tls) => {
                use std::io::Read;
                let mut rest = bytes;
                while !rest.is_empty() {
                    tls.read_tls(&mut rest).expect("room");
                    if tls.process_new_packets().is_err() {
                        break;
                    }
                    let _ = tls.reader().read_to_end(&mut self.input);
                }
            }
        }
        while self.answer() {}
        if let Some(tls) = &mut self.tls {
            while tls.wants_write() {
                tls.write_tls(&mut self.output).expect("memory");
            }
        }
    }

    fn send(&mut self, encode: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = Vec::new();
        encode(&mut bytes);
        match &mut self.tls {
            None => self.output.extend(bytes),
            Some(tls) => {
                use std::io::Write;
                tls.writer().write_all(&bytes).expect("room");
            }
        }
    }

    fn send_status(&mut self, status: i32) {
        self.send(|out| ErrorPdu { status }.encode(out));
    }

    fn answer(&mut self) -> bool {
        if self.proxy {
            return self.answer_as_proxy();
        }
        let Ok(Some(header)) = Header::peek(&self.input, 1 << 16) else { return false };
        if self.input.len() < header.len {
            return false;
        }
        let pdu: Vec<u8> = self.input.drain(..header.len).collect();
        match PduType::from_code(header.code) {
            Some(PduType::Creds) => self.hear_creds(&pdu),
            Some(PduType::Attr) => self.hear_attr(&pdu),
            Some(PduType::PmnsChild) => {
                self.heard.push("children".to_owned());
                self.send(|out| PmnsNames::encode_names(&["kernel"], out));
            }
            other => panic!("an unexpected {other:?}"),
        }
        true
    }

    fn answer_as_proxy(&mut self) -> bool {
        let Some(end) = self.input.iter().position(|byte| *byte == b'\n') else { return false };
        let line: Vec<u8> = self.input.drain(..=end).collect();
        let line = String::from_utf8(line).expect("a line");
        if self.heard.is_empty() {
            self.output.extend_from_slice(b"pmproxy-server 1\n");
        } else {
            self.proxy = false;
            let features = self.features;
            self.send(|out| Hello { refusal: None, version: 2, features }.encode(out));
        }
        self.heard.push(line.trim_end().to_owned());
        true
    }

    fn hear_creds(&mut self, pdu: &[u8]) {
        let flags = Creds::decode(pdu).expect("credentials").credentials[0].flags;
        self.heard.push(format!("creds {:#06x}", flags.0));
        self.flags = Some(flags);
        if flags.has(Features::SECURE_ACK) {
            let status = self.faults.tls_status;
            self.send_status(status);
            let injected = std::mem::take(&mut self.faults.injected);
            self.send(|out| out.extend(injected));
        }
        if flags.has(Features::SECURE) {
            self.tls = self.identity.as_ref().map(|identity| identity.server());
            let rest = std::mem::take(&mut self.input);
            self.receive(&rest);
        }
        if flags.has(Features::AUTH) && !self.mechanisms.is_empty() {
            self.say(self.mechanisms.as_bytes().to_vec());
        }
    }

    /// Sends a SASL message, or its replacement.
    fn say(&mut self, message: Vec<u8>) {
        let other = self.faults.sasl.get_mut(self.said).and_then(Option::take);
        self.said += 1;
        let message = other.unwrap_or(message);
        self.send(|out| Attr { key: SASL_KEY, value: &message }.encode(out));
    }

    fn hear_attr(&mut self, pdu: &[u8]) {
        let Attr { key, value } = Attr::decode(pdu).expect("an attribute");
        let shown = value.escape_ascii().to_string();
        if key == CONTAINER_KEY {
            self.heard.push(format!("container {shown}"));
            return;
        }
        if let Some(first) = value.strip_prefix(b"SCRAM-SHA-256\0n,,") {
            self.heard.push("scram".to_owned());
            self.first = first.to_vec();
            let first = self.server_first();
            return self.say(first);
        }
        self.heard.push(match (self.first.is_empty(), value.is_empty()) {
            (true, _) => shown,
            (false, false) => "proof".to_owned(),
            (false, true) => "done".to_owned(),
        });
        if self.first.is_empty() || value.is_empty() {
            if self.faults.verdict != 0 {
                self.send_status(self.faults.verdict);
            } else if self.faults.sasl.len() > self.said {
                self.say(Vec::new());
            }
            return;
        }
        match self.server_final(value) {
            Some(message) => self.say(message),
            None => self.send_status(-21_357),
        }
    }

    fn server_first(&self) -> Vec<u8> {
        let text = std::str::from_utf8(&self.first).expect("text");
        let (_, nonce) = text.split_once(",r=").expect("a nonce");
        let salt = BASE64.encode(b"salt");
        format!("r={nonce}more,s={salt},i={}", self.iterations()).into_bytes()
    }

    fn iterations(&self) -> u32 {
        if self.faults.iterations == 0 { 4096 } else { self.faults.iterations }
    }

    /// The last message of SCRAM, if the client's proof is right.
    fn server_final(&self, client_final: &[u8]) -> Option<Vec<u8>> {
        let mut salted = [0; 32];
        let rounds = std::num::NonZeroU32::new(self.iterations())?;
        let password = PASSWORD.as_bytes();
        pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, rounds, b"salt", password, &mut salted);
        let sign = |key: &[u8], message: &[u8]| {
            hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), message)
        };
        let client_final = std::str::from_utf8(client_final).ok()?;
        let (without_proof, proof) = client_final.rsplit_once(",p=")?;
        let parts = [self.first.as_slice(), &self.server_first(), without_proof.as_bytes()];
        let message = parts.join(&b","[..]);
        let client_key = sign(&salted, b"Client Key");
        let stored = digest::digest(&digest::SHA256, client_key.as_ref());
        let signature = sign(stored.as_ref(), &message);
        let xor =
            client_key.as_ref().iter().zip(signature.as_ref()).map(|(one, other)| one ^ other);
        if BASE64.decode(proof).ok()? != xor.collect::<Vec<u8>>() {
            return None;
        }
        let server_key = sign(&salted, b"Server Key");
        Some(format!("v={}", BASE64.encode(sign(server_key.as_ref(), &message))).into_bytes())
    }
}

/// Lets a connection and a peer exchange bytes, in pieces of `piece` bytes, until the
/// client is ready or gives up. The peer's bytes end at `cut`. The byte at `garbled`
/// arrives changed.
pub(super) fn converse(
    connection: &mut Connection,
    peer: &mut TestPeer,
    piece: usize,
    cut: usize,
    garbled: Option<usize>,
) -> Result<usize, ProtocolError> {
    let mut delivered = 0;
    for _ in 0..100_000 {
        match connection.poll()? {
            Some(Event::Ready) => return Ok(delivered),
            Some(other) => panic!("{other:?} before anything was asked"),
            None => {}
        }
        let sent = connection.outgoing().to_vec();
        connection.sent(sent.len());
        peer.receive(&sent);
        let len = piece.min(peer.output.len()).min(cut - delivered);
        if len == 0 {
            if sent.is_empty() {
                return Err(connection.closed());
            }
            continue;
        }
        let mut bytes: Vec<u8> = peer.output.drain(..len).collect();
        if let Some(at) = garbled
            && let Some(byte) = at.checked_sub(delivered).and_then(|at| bytes.get_mut(at))
        {
            *byte ^= 0x15;
        }
        delivered += len;
        connection.inbox().extend_from_slice(&bytes);
    }
    panic!("no end in sight");
}

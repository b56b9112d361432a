//! The handshake: everything before a [`Connection`] is ready for requests.
//!
//! ```text
//! Proxy ─► Greeting ─► TlsAllowed ─► Securing ─► Mechanisms ─► Authenticating ─► Verifying ─► Ready
//! ```
//!
//! Only the greeting is mandatory; all other steps are skipped if they are not wanted.
//! pmcd acknowledges neither credentials, nor the end of an authentication, nor the
//! name of a container. If the client sent any of these, a cheap request proves that
//! all is well.

use pmderive_core::model::PmStatus;

use super::config::{Peer, Security, TlsClient};
use super::connection::{Connection, Event};
use super::error::{Lack, ProtocolError};
use super::proxy;
use super::request::Request;
use super::sasl::{AuthenticationError, Sasl, is_sasl_status};
use super::tls::TlsChannel;
use crate::pdu::{
    Attr, CONTAINER_KEY, Credential, Creds, ErrorPdu, Features, HEADER_BYTES, Hello,
    MAX_SASL_BYTES, Pdu, PduType, SASL_KEY,
};

/// The state of the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The proxy's answer is due.
    Proxy,
    /// The greeting is due.
    Greeting,
    /// pmcd's permission to begin TLS is due.
    TlsAllowed,
    /// TLS has begun.
    Securing,
    /// The list of SASL mechanisms is due.
    Mechanisms,
    /// The next SASL message is due.
    Authenticating,
    /// The reply to a cheap request is due. It shows whether pmcd granted the
    /// earlier requests.
    Verifying,
    Ready,
    Broken,
}

/// Maximum size of a PDU before the first reply.
const MAX_PDU_BYTES: usize = HEADER_BYTES + 4 + MAX_SASL_BYTES;

impl Connection {
    /// Advances as far as the received bytes allow: to [`Event::Ready`], or without
    /// an event to [`Phase::Verifying`].
    pub(super) fn shake_hands(&mut self) -> Result<Option<Event>, ProtocolError> {
        loop {
            let went_on = match self.phase {
                Phase::Proxy => self.hear_proxy()?,
                Phase::Greeting => self.greet()?,
                Phase::TlsAllowed => self.begin_tls_if_allowed()?,
                Phase::Securing => self.finish_tls()?,
                Phase::Mechanisms => self.begin_authentication()?,
                Phase::Authenticating => self.authenticate()?,
                Phase::Verifying => return Ok(None),
                Phase::Ready => return Ok(Some(Event::Ready)),
                Phase::Broken => return Err(ProtocolError::NotReady),
            };
            if !went_on {
                return Ok(None);
            }
        }
    }

    fn hear_proxy(&mut self) -> Result<bool, ProtocolError> {
        let Some(len) = proxy::answer(self.unread())? else { return Ok(false) };
        self.latest.end += len;
        if let Some(forward) = &self.config.forward {
            self.outbox.extend_from_slice(proxy::destination(forward).as_bytes());
        }
        self.phase = Phase::Greeting;
        Ok(true)
    }

    fn greet(&mut self) -> Result<bool, ProtocolError> {
        check_greeting(self.unread())?;
        if self.next_pdu(MAX_PDU_BYTES)?.is_none() {
            return Ok(false);
        }
        let hello = Hello::decode(self.latest_pdu())?;
        if let Some(status) = hello.refusal {
            return Err(ProtocolError::Refused(status));
        }
        if hello.version < 2 {
            return Err(ProtocolError::Version { version: hello.version });
        }
        let flags = self.wishes(hello.features)?;
        self.features = hello.features;
        Creds { credentials: vec![Credential::version_2(flags)] }.encode(&mut self.outbox);
        if flags == Features::default() {
            self.phase = Phase::Ready;
        } else if flags.has(Features::SECURE_ACK) {
            self.phase = Phase::TlsAllowed;
        } else if flags.has(Features::SECURE) {
            self.begin_tls()?;
        } else {
            self.introduce()?;
        }
        Ok(true)
    }

    /// The features to ask for, given the offered ones.
    fn wishes(&self, offered: Features) -> Result<Features, ProtocolError> {
        let config = &self.config;
        let mut flags = Features::default();
        let tls = match &config.security {
            Security::Required(tls) => Some(tls),
            Security::Relaxed(tls) => Some(tls).filter(|_| offered.has(Features::SECURE)),
            Security::Off => None,
        };
        if tls.is_some() {
            if !offered.has(Features::SECURE) {
                return Err(ProtocolError::Unsupported(Lack::Tls));
            }
            flags = flags.with(Features::SECURE);
            if offered.has(Features::SECURE_ACK) {
                flags = flags.with(Features::SECURE_ACK);
            }
        }
        if offered.has(Features::CERT_REQUIRED) && config.peer == Peer::Remote {
            if !tls.is_some_and(|tls| tls.has_certificate) {
                return Err(ProtocolError::CertificateRequired);
            }
            flags = flags.with(Features::CERT_REQUIRED);
        }
        if offered.has(Features::CREDS_REQUIRED) {
            if config.peer != Peer::SameHost && config.credentials.is_none() {
                return Err(AuthenticationError::CredentialsRequired.into());
            }
            flags = flags.with(Features::CREDS_REQUIRED);
        }
        if config.credentials.is_some() {
            if !offered.has(Features::AUTH) {
                return Err(ProtocolError::Unsupported(Lack::Users));
            }
            flags = flags.with(Features::AUTH);
        }
        if config.container.is_some() {
            if !offered.has(Features::CONTAINER) {
                return Err(ProtocolError::Unsupported(Lack::Containers));
            }
            flags = flags.with(Features::CONTAINER);
        }
        Ok(flags)
    }

    /// The TLS of the configuration, if it allows TLS.
    fn tls_client(&self) -> Option<&TlsClient> {
        match &self.config.security {
            Security::Required(tls) | Security::Relaxed(tls) => Some(tls),
            Security::Off => None,
        }
    }

    fn begin_tls_if_allowed(&mut self) -> Result<bool, ProtocolError> {
        let Some(code) = self.next_pdu(MAX_PDU_BYTES)? else { return Ok(false) };
        if code != PduType::Error.code() {
            return Err(ProtocolError::UnexpectedReply { found: code, due: PduType::Error });
        }
        match ErrorPdu::decode(self.latest_pdu())?.status {
            0 => self.begin_tls()?,
            status if status < 0 => return Err(ProtocolError::TlsRefused(PmStatus(status))),
            status => return Err(ProtocolError::UnexpectedStatus { status }),
        }
        Ok(true)
    }

    fn begin_tls(&mut self) -> Result<(), ProtocolError> {
        // Bytes that came before encryption began can be from anybody.
        if !self.unread().is_empty() {
            return Err(ProtocolError::Unsolicited { bytes: self.unread().len() });
        }
        let Some(client) = self.tls_client().cloned() else { return Err(ProtocolError::NotReady) };
        self.tls = Some(TlsChannel::begin(&client, &mut self.outbox)?);
        self.phase = Phase::Securing;
        Ok(())
    }

    fn finish_tls(&mut self) -> Result<bool, ProtocolError> {
        if self.tls.as_ref().is_some_and(TlsChannel::is_handshaking) {
            return Ok(false);
        }
        self.introduce()?;
        Ok(true)
    }

    /// Waits for the SASL mechanisms if there is a user, otherwise advances to the
    /// next step. A pmcd that demands a user sends none over a unix socket, where it knows
    /// the user already.
    fn introduce(&mut self) -> Result<(), ProtocolError> {
        let is_known =
            self.config.peer == Peer::SameHost && self.features.has(Features::CREDS_REQUIRED);
        if self.config.credentials.is_some() && !is_known {
            self.phase = Phase::Mechanisms;
            return Ok(());
        }
        self.verify()
    }

    /// The next SASL message, if it has arrived completely.
    fn next_message(&mut self) -> Result<Option<Vec<u8>>, ProtocolError> {
        let Some(code) = self.next_pdu(MAX_PDU_BYTES)? else { return Ok(None) };
        if code == PduType::Error.code() {
            let ErrorPdu { status } = ErrorPdu::decode(self.latest_pdu())?;
            if status >= 0 {
                return Err(ProtocolError::UnexpectedStatus { status });
            }
            return Err(AuthenticationError::Refused { status }.into());
        }
        if code != PduType::Attr.code() {
            return Err(ProtocolError::UnexpectedReply { found: code, due: PduType::Attr });
        }
        let Attr { key, value } = Attr::decode(self.latest_pdu())?;
        if key != SASL_KEY {
            let problem = format!("an attribute with the key {key}");
            return Err(AuthenticationError::Malformed(problem).into());
        }
        Ok(Some(value.to_vec()))
    }

    fn begin_authentication(&mut self) -> Result<bool, ProtocolError> {
        let Some(offered) = self.next_message()? else { return Ok(false) };
        // The credentials are not needed any more, so they are not kept.
        let Some(credentials) = self.config.credentials.take() else {
            return Err(ProtocolError::NotReady);
        };
        let is_verified =
            self.tls.is_some() && self.tls_client().is_some_and(|tls| tls.is_verified);
        let hides_passwords = is_verified || self.config.peer == Peer::SameHost;
        let mut message = Vec::new();
        let sasl = Sasl::begin(&offered, &credentials, hides_passwords, &mut message)?;
        self.say(sasl, &message)
    }

    fn authenticate(&mut self) -> Result<bool, ProtocolError> {
        let Some(challenge) = self.next_message()? else { return Ok(false) };
        let Some(mut sasl) = self.sasl.take() else { return Err(ProtocolError::NotReady) };
        let mut message = Vec::new();
        sasl.answer(&challenge, &mut message)?;
        self.say(*sasl, &message)
    }

    fn say(&mut self, sasl: Sasl, message: &[u8]) -> Result<bool, ProtocolError> {
        self.queue(|out| Attr { key: SASL_KEY, value: message }.encode(out))?;
        if sasl.is_finished() {
            self.verify()?;
        } else {
            self.sasl = Some(Box::new(sasl));
            self.phase = Phase::Authenticating;
        }
        Ok(true)
    }

    /// Names the container, if there is one, and sends a cheap request. If pmcd has
    /// rejected anything, an error comes before the reply.
    fn verify(&mut self) -> Result<(), ProtocolError> {
        let container = self.config.container.clone();
        let expected = self.queue(|out| {
            if let Some(container) = &container {
                Attr { key: CONTAINER_KEY, value: container.as_bytes() }.encode(out);
            }
            Request::Children("").encode(out)
        })?;
        self.expected.push_back(expected);
        self.phase = Phase::Verifying;
        Ok(())
    }

    /// The error for a status that comes before the first reply.
    pub(super) fn rejected(&self, status: i32) -> ProtocolError {
        if is_sasl_status(status) {
            return AuthenticationError::Refused { status }.into();
        }
        ProtocolError::Rejected(PmStatus(status))
    }

    /// The error that the end of the stream means in a phase.
    pub(super) fn closed_during(&self, phase: Phase) -> ProtocolError {
        let stage = match (phase, self.config.forward) {
            (Phase::Ready | Phase::Broken, _) => {
                return ProtocolError::Closed { received: Some(self.unread().len()) };
            }
            (Phase::Greeting, Some(forward)) => {
                return ProtocolError::ProxyClosed { pmcd: forward.to_string() };
            }
            (Phase::Greeting, None) => return ProtocolError::Closed { received: None },
            (Phase::Proxy, _) => "without a word: is it a pmproxy?",
            (Phase::TlsAllowed | Phase::Securing, _) => "when TLS was to begin",
            (Phase::Mechanisms | Phase::Authenticating, _) => "during the authentication",
            (Phase::Verifying, _) => "when it knew what this client wants",
        };
        ProtocolError::ClosedInHandshake { stage }
    }
}

/// Fails if the first bytes show that the peer is not a pmcd.
fn check_greeting(received: &[u8]) -> Result<(), ProtocolError> {
    const GREETING: [u8; 8] = [0, 0, 0, 20, 0, 0, 0x70, 0];
    if GREETING.iter().zip(received).all(|(due, found)| due == found) {
        return Ok(());
    }
    let shown = &received[..received.len().min(32)];
    Err(ProtocolError::NotPmcd { received: format!("\"{}\"", shown.escape_ascii()) })
}

#[cfg(test)]
#[path = "handshake_tests.rs"]
mod tests;

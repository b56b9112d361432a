//! TLS around the conversation, still without sockets and clock.
//!
//! [`TlsChannel::received`] holds received bytes until [`TlsChannel::open`] decrypts
//! them. [`TlsChannel::seal`] encrypts the bytes to send. The [`TlsClient`] decides
//! whether a certificate is good; `context` makes it.

use std::fmt;
use std::io::{ErrorKind, Read, Write};
use std::sync::Arc;

use rustls::{AlertDescription, ClientConnection, Error};

use super::certificate::CertificateProblem;
use super::config::TlsClient;
use super::error::ProtocolError;
use crate::pdu::Header;

/// One end of an encrypted stream.
pub(super) struct TlsChannel {
    connection: Box<ClientConnection>,
    /// Received bytes that are still encrypted.
    pub(super) received: Vec<u8>,
    /// Plain bytes that [`TlsChannel::seal`] will encrypt.
    scratch: Vec<u8>,
}

impl fmt::Debug for TlsChannel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.connection.is_handshaking() { "handshaking" } else { "established" };
        f.debug_struct("TlsChannel").field("state", &state).finish_non_exhaustive()
    }
}

impl TlsChannel {
    /// Begins the handshake. Its first bytes go to `out`.
    pub(super) fn begin(
        client: &TlsClient,
        out: &mut Vec<u8>,
    ) -> Result<TlsChannel, ProtocolError> {
        let mut connection =
            ClientConnection::new(Arc::clone(&client.config), client.server.clone())
                .map_err(tls_error)?;
        // Written bytes are removed at once, so the buffer needs no limit.
        connection.set_buffer_limit(None);
        let mut channel = TlsChannel {
            connection: Box::new(connection),
            received: Vec::new(),
            scratch: Vec::new(),
        };
        channel.flush(out)?;
        Ok(channel)
    }

    /// True until both ends can send plain bytes.
    pub(super) fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    /// Decrypts the received bytes and appends them to `plain`. TLS's own messages,
    /// alerts included, go to `out`.
    pub(super) fn open(
        &mut self,
        plain: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<(), ProtocolError> {
        let mut rest = self.received.as_slice();
        let mut outcome = Ok(());
        while !rest.is_empty() && outcome.is_ok() {
            // This reads a few kilobytes at a time, and fails only if that is too much.
            if self.connection.read_tls(&mut rest).map_err(tls_failure)? == 0 {
                break;
            }
            outcome = self.connection.process_new_packets().map(drop);
            match self.connection.reader().read_to_end(plain) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(tls_failure(error)),
            }
        }
        self.received.clear();
        self.flush(out)?;
        outcome.map_err(tls_error)
    }

    /// Encrypts the PDUs that `encode` writes, and appends them to `out`.
    ///
    /// Each PDU gets a record of its own. pmcd waits until its socket has something to
    /// read; it does not notice a second PDU of the same record, which is in its TLS
    /// library already.
    pub(super) fn seal<T>(
        &mut self,
        out: &mut Vec<u8>,
        encode: impl FnOnce(&mut Vec<u8>) -> T,
    ) -> Result<T, ProtocolError> {
        self.scratch.clear();
        let encoded = encode(&mut self.scratch);
        let mut rest = self.scratch.as_slice();
        while !rest.is_empty() {
            let header = Header::peek(rest, rest.len())?;
            let (pdu, after) = rest.split_at(header.map_or(rest.len(), |header| header.len));
            self.connection.writer().write_all(pdu).map_err(tls_failure)?;
            rest = after;
        }
        self.flush(out)?;
        Ok(encoded)
    }

    /// Frees empty buffers.
    pub(super) fn release_buffers(&mut self) {
        self.scratch = Vec::new();
        if self.received.is_empty() {
            self.received = Vec::new();
        }
    }

    fn flush(&mut self, out: &mut Vec<u8>) -> Result<(), ProtocolError> {
        while self.connection.wants_write() {
            self.connection.write_tls(out).map_err(tls_failure)?;
        }
        Ok(())
    }
}

fn tls_failure(error: std::io::Error) -> ProtocolError {
    ProtocolError::Tls(error.to_string())
}

/// The reason why pmcd does not accept the client's certificate.
fn refusal(alert: AlertDescription) -> &'static str {
    match alert {
        AlertDescription::CertificateRequired => "there is none",
        AlertDescription::UnknownCA => "the authority that signed it is not known there",
        AlertDescription::CertificateExpired => "it has expired",
        AlertDescription::CertificateRevoked => "it is revoked",
        AlertDescription::UnsupportedCertificate => "its kind is not supported there",
        _ => "it is not in order",
    }
}

fn tls_error(error: Error) -> ProtocolError {
    let certificate = match &error {
        Error::InvalidCertificate(certificate) => certificate,
        Error::AlertReceived(
            alert @ (AlertDescription::CertificateRequired
            | AlertDescription::BadCertificate
            | AlertDescription::UnknownCA
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnsupportedCertificate),
        ) => return ProtocolError::ClientCertificate(refusal(*alert).to_owned()),
        _ => return ProtocolError::Tls(error.to_string()),
    };
    ProtocolError::Certificate(CertificateProblem::of(certificate))
}

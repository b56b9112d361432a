//! TLS around the conversation, still without sockets and clock.
//!
//! [`TlsChannel::received`] holds received bytes until [`TlsChannel::open`] decrypts
//! them. [`TlsChannel::seal`] encrypts the bytes to send. The [`TlsClient`] decides
//! whether a certificate is good; it is made elsewhere.

use std::fmt;
use std::io::{ErrorKind, Read, Write};
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{AlertDescription, CertificateError, ClientConfig, ClientConnection, Error};

use super::error::ProtocolError;
use crate::pdu::Header;

/// What the client needs for TLS with one host.
#[derive(Clone)]
pub struct TlsClient {
    /// The accepted certificates and ciphers.
    pub config: Arc<ClientConfig>,
    /// Name or address of the host. The certificate must contain it.
    pub server: ServerName<'static>,
    /// True if `config` has a certificate of the client.
    pub has_certificate: bool,
    /// True if `config` accepts only certificates of this host.
    pub is_verified: bool,
}

impl fmt::Debug for TlsClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsClient")
            .field("server", &self.server)
            .field("has_certificate", &self.has_certificate)
            .field("is_verified", &self.is_verified)
            .finish_non_exhaustive()
    }
}

/// The problem with pmcd's certificate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CertificateProblem {
    /// No authority that the client trusts has signed it.
    #[error("no authority that this client trusts vouches for it")]
    UnknownIssuer,
    /// It is for other hosts.
    #[error("{}", wrong_name(.expected, .presented))]
    WrongName {
        /// Name or address of the host that was asked for.
        expected: String,
        /// The names in the certificate.
        presented: Vec<String>,
    },
    /// It has expired.
    #[error("it has expired")]
    Expired,
    /// It is not valid yet.
    #[error("it is not valid yet: is the clock of this machine right?")]
    NotYetValid,
    /// A certificate in its chain has signed another one, although it does not belong
    /// to an authority.
    #[error(
        "it, or a certificate in its chain, was signed with a certificate that is not an authority's"
    )]
    NotAnAuthority,
    /// Any other problem, in words.
    #[error("{0}")]
    Other(String),
}

impl CertificateProblem {
    /// Translates the TLS library's error into words for users.
    pub(crate) fn of(error: &CertificateError) -> CertificateProblem {
        use CertificateError as Error;
        let other = |text: &str| CertificateProblem::Other(text.to_owned());
        match error {
            Error::UnknownIssuer => CertificateProblem::UnknownIssuer,
            Error::NotValidForNameContext { expected, presented } => {
                CertificateProblem::WrongName {
                    expected: expected.to_str().into_owned(),
                    presented: presented.clone(),
                }
            }
            Error::Expired | Error::ExpiredContext { .. } => CertificateProblem::Expired,
            Error::NotValidYet | Error::NotValidYetContext { .. } => {
                CertificateProblem::NotYetValid
            }
            Error::BadEncoding => other("it is damaged"),
            Error::BadSignature => {
                other("its signature is wrong: it was changed, or its authority has another key")
            }
            Error::Revoked => other("its authority has revoked it"),
            Error::InvalidPurpose | Error::InvalidPurposeContext { .. } => {
                other("it is not meant for servers (extended key usage)")
            }
            Error::UnhandledCriticalExtension => {
                other("it has a critical extension that this client does not know")
            }
            Error::UnsupportedSignatureAlgorithmContext { .. }
            | Error::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
                other("its signature is of a kind that this client does not take")
            }
            Error::Other(cause) => match cause.0.downcast_ref::<webpki::Error>() {
                Some(webpki::Error::EndEntityUsedAsCa) => CertificateProblem::NotAnAuthority,
                Some(webpki::Error::NameConstraintViolation) => {
                    other("its authority may not vouch for the names in it")
                }
                Some(webpki::Error::PathLenConstraintViolated) => {
                    other("an authority in its chain may not have another one below it")
                }
                _ => other(&cause.to_string()),
            },
            error => other(&error.to_string()),
        }
    }
}

fn wrong_name(expected: &str, presented: &[String]) -> String {
    if presented.is_empty() {
        return format!("it names no host, {expected} was expected");
    }
    // The library gives them as `DnsName("web1")`.
    let bare = |name: &String| {
        let inner = name.split_once('(').map_or(name.as_str(), |(_, inner)| inner);
        inner.trim_end_matches(')').trim_matches('"').to_owned()
    };
    let names: Vec<String> = presented.iter().map(bare).collect();
    format!("it is for {}, not for {expected}", names.join(", "))
}

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
        // Written bytes are taken out at once, so the buffer needs no limit.
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

//! One connection to a receiver. Requests use it one after the other, and a lost connection is
//! made again. This module handles messages as bytes.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{self, HeaderValue};
use hyper::http::response::Parts;
use hyper::{Request, Uri};
use hyper_util::rt::TokioIo;
use pmderive_runtime::proto::CertificateProblem;
use rustls::AlertDescription;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::delivery::{NoResponse, Response, retry_after};
use super::secret::Secret;
use super::tls;
use crate::fleet::world::socket::{PATIENCE, first_of};

/// Most bytes of an answer that are read.
const MAX_ANSWER_BYTES: usize = 64 << 10;

/// The address of a receiver.
#[derive(Clone, PartialEq, Eq)]
pub struct Url {
    uri: Uri,
    host: Box<str>,
    port: u16,
    /// True for `https://`.
    pub is_encrypted: bool,
}

impl Url {
    /// Parses `http://HOST[:PORT]/PATH` or `https://...`.
    ///
    /// # Errors
    /// The text is wrong. The message omits possible passwords.
    pub fn parse(text: &str) -> Result<Url, String> {
        let after_scheme = |scheme: &str| text.strip_prefix(scheme)?.strip_prefix("://");
        let (is_encrypted, rest) = match (after_scheme("http"), after_scheme("https")) {
            (Some(rest), _) => (false, rest),
            (None, Some(rest)) => (true, rest),
            (None, None) => return Err("a URL begins with `http://` or `https://`".into()),
        };
        if rest.is_empty() || rest.starts_with(['/', ':', '?']) {
            return Err("the URL names no host".into());
        }
        let uri: Uri = text.parse().map_err(|_| "this is no URL".to_owned())?;
        let authority = uri.authority().ok_or("the URL names no host")?;
        if authority.as_str().contains('@') {
            return Err("a user or password in a URL is not taken: name them beside it, \
                        and the password in a file"
                .into());
        }
        let host = authority.host();
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        if host.is_empty() {
            return Err("the URL names no host".into());
        }
        let given = authority.port_u16();
        // The text behind the host is no port.
        if given.is_none() && authority.as_str().len() > authority.host().len() {
            return Err("the port of the URL is no number from 0 to 65535".into());
        }
        let port = given.unwrap_or(if is_encrypted { 443 } else { 80 });
        Ok(Url { host: host.into(), port, is_encrypted, uri })
    }

    /// The URL as it is shown: without the query, which may have a token.
    pub fn text(&self) -> String {
        let text = self.uri.to_string();
        text.split('?').next().unwrap_or_default().to_owned()
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

/// Credentials of a sender. Their files are read for each request, so that they can be changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Credentials {
    /// No credentials.
    #[default]
    None,
    /// A name and a password.
    Basic {
        /// The name.
        user: String,
        /// The file of the password.
        password_file: PathBuf,
    },
    /// A token.
    Bearer {
        /// The file of the token.
        token_file: PathBuf,
    },
}

impl Credentials {
    /// The value of the header `Authorization`.
    ///
    /// # Errors
    /// The file cannot be used.
    pub fn header(&self) -> Result<Option<HeaderValue>, String> {
        let text = match self {
            Credentials::None => return Ok(None),
            Credentials::Basic { user, password_file } => {
                let password = Secret::read(password_file)?;
                let both = BASE64.encode(format!("{user}:{}", password.reveal()));
                format!("Basic {both}")
            }
            Credentials::Bearer { token_file } => {
                format!("Bearer {}", Secret::read(token_file)?.reveal())
            }
        };
        let mut header = HeaderValue::try_from(text)
            .map_err(|_| "the token holds what no header can".to_owned())?;
        header.set_sensitive(true);
        Ok(Some(header))
    }
}

/// A client that sends messages of remote write, one after the other.
pub trait Client: Sized + Send + 'static {
    /// A client without a connection. Over TLS it trusts the authorities of the file, or else
    /// those of the system.
    ///
    /// # Errors
    /// A file cannot be used.
    fn new(url: Url, credentials: Credentials, authorities: Option<&Path>) -> Result<Self, String>;

    /// Sends a message. Dropping this future before it is ready breaks the connection.
    ///
    /// # Errors
    /// There is no answer: [`NoResponse::Broken`].
    fn send(&mut self, body: Bytes) -> impl Future<Output = Result<Response, NoResponse>>;

    /// Drops the connection, and with it any message on its way.
    fn disconnect(&mut self);
}

/// How long to wait for the text of an answer, which is only shown.
const TEXT_PATIENCE: Duration = Duration::from_millis(500);

/// A connection over HTTP.
pub struct HttpClient {
    url: Url,
    credentials: Credentials,
    tls: Option<TlsConnector>,
    connection: Option<SendRequest<Full<Bytes>>>,
}

impl Client for HttpClient {
    fn new(
        url: Url,
        credentials: Credentials,
        authorities: Option<&Path>,
    ) -> Result<HttpClient, String> {
        credentials.header()?;
        let config = url.is_encrypted.then(|| tls::client(authorities)).transpose()?;
        Ok(HttpClient { url, credentials, tls: config.map(TlsConnector::from), connection: None })
    }

    async fn send(&mut self, body: Bytes) -> Result<Response, NoResponse> {
        if let Some(connection) = self.connection.take().filter(|kept| !kept.is_closed()) {
            // The receiver may have closed an idle connection.
            if let Ok(response) = self.send_over(connection, body.clone()).await {
                return Ok(response);
            }
        }
        let connection = self.connect().await.map_err(NoResponse::Broken)?;
        self.send_over(connection, body).await.map_err(NoResponse::Broken)
    }

    fn disconnect(&mut self) {
        self.connection = None;
    }
}

impl HttpClient {
    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, String> {
        let Url { host, port, .. } = &self.url;
        let found = tokio::net::lookup_host((&**host, *port)).await;
        let addresses: Vec<SocketAddr> = found.map_err(|error| error.to_string())?.collect();
        let stream = first_of(&addresses, PATIENCE, TcpStream::connect);
        let stream = stream.await.map_err(|error| error.to_string())?;
        let _ = stream.set_nodelay(true);
        let Some(tls) = &self.tls else { return handshake(stream).await };
        let name = ServerName::try_from(host.to_string()).map_err(|error| error.to_string())?;
        let stream = tls.connect(name, stream).await.map_err(|error| no_tls(&error))?;
        handshake(stream).await
    }

    async fn send_over(
        &mut self,
        mut connection: SendRequest<Full<Bytes>>,
        body: Bytes,
    ) -> Result<Response, String> {
        let request = self.request(body)?;
        connection.ready().await.map_err(told)?;
        let (parts, body) = connection.send_request(request).await.map_err(told)?.into_parts();
        let given = parts.headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok());
        let retry_after = given.and_then(|text| retry_after(text, SystemTime::now()));
        // The status is the answer, also if its text does not end.
        let said = tokio::time::timeout(TEXT_PATIENCE, said(body)).await;
        let (said, is_whole) = said.unwrap_or_default();
        if is_whole {
            self.connection = Some(connection);
        }
        let said = redirection(&parts).unwrap_or(said);
        Ok(Response { status: parts.status.as_u16(), retry_after, said })
    }

    fn request(&self, body: Bytes) -> Result<Request<Full<Bytes>>, String> {
        let path = self.url.uri.path_and_query().map_or("/", |path| path.as_str());
        let host = self.url.uri.authority().map_or("", |authority| authority.as_str());
        let mut request = Request::post(path)
            .header(header::HOST, host)
            .header(header::CONTENT_TYPE, "application/x-protobuf")
            .header(header::CONTENT_ENCODING, "snappy")
            .header(header::USER_AGENT, concat!("pmderive/", env!("CARGO_PKG_VERSION")))
            .header("X-Prometheus-Remote-Write-Version", "0.1.0");
        if let Some(credentials) = self.credentials.header()? {
            request = request.header(header::AUTHORIZATION, credentials);
        }
        request.body(Full::new(body)).map_err(|error| error.to_string())
    }
}

/// The message for a failed encrypted connection, with advice.
fn no_tls(error: &io::Error) -> String {
    use rustls::Error::{AlertReceived, InvalidCertificate, InvalidMessage};
    match error.get_ref().and_then(|cause| cause.downcast_ref()) {
        Some(InvalidCertificate(problem)) => {
            let problem = match CertificateProblem::of(problem) {
                CertificateProblem::UnknownIssuer => {
                    "no authority that is trusted here vouches for it; `authorities` of the sink \
                     may name one"
                        .to_owned()
                }
                problem => problem.to_string(),
            };
            format!("its certificate is refused: {problem}")
        }
        Some(InvalidMessage(_)) => {
            format!("TLS: {error}; does it speak TLS, or is its URL one of `http://`?")
        }
        // Servers differ in the alert for a client without a certificate.
        Some(AlertReceived(
            AlertDescription::CertificateRequired | AlertDescription::BadCertificate,
        )) => format!("TLS: {error}; it wants a certificate of its clients, and a sink has none"),
        _ => format!("TLS: {error}"),
    }
}

/// Where an answer redirects to, with advice. The query is omitted, as it may have a token.
fn redirection(answer: &Parts) -> Option<String> {
    let place = answer.headers.get(header::LOCATION).filter(|_| answer.status.is_redirection())?;
    let place = String::from_utf8_lossy(place.as_bytes());
    let place = place.split('?').next().unwrap_or_default();
    Some(format!("it redirects to {place}; `url` of the sink must be the final place"))
}

async fn handshake(
    stream: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
) -> Result<SendRequest<Full<Bytes>>, String> {
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(told)?;
    // The task ends when the sender is dropped, or the receiver closes the connection.
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!("connection to a receiver: {error}");
        }
    });
    Ok(sender)
}

/// The first line of an answer, and whether all of the answer was read.
async fn said(body: Incoming) -> (String, bool) {
    let Ok(body) = Limited::new(body, MAX_ANSWER_BYTES).collect().await else {
        return (String::new(), false);
    };
    let bytes = body.to_bytes();
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    (String::from_utf8_lossy(line).into_owned(), true)
}

/// An error with its causes.
fn told(error: hyper::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(error) = cause {
        // A server may refuse a client only after the client's side of TLS is complete.
        let of_tls = error.downcast_ref().filter(|error: &&io::Error| {
            error.get_ref().is_some_and(|cause| cause.is::<rustls::Error>())
        });
        if let Some(error) = of_tls {
            return no_tls(error);
        }
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient").field("url", &self.url).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        let cases = [
            ("http://prometheus:9090/api/v1/write", Ok(("prometheus", 9090, false))),
            ("https://x/", Ok(("x", 443, true))),
            ("http://[::1]/w?a=b", Ok(("::1", 80, false))),
            ("ftp://x/", Err("a URL begins with `http://` or `https://`")),
            ("prometheus:9090", Err("a URL begins with `http://` or `https://`")),
            ("/api/v1/write", Err("a URL begins with `http://` or `https://`")),
            ("", Err("a URL begins with `http://` or `https://`")),
            ("http://", Err("the URL names no host")),
            ("https:///w", Err("the URL names no host")),
            ("http://:9090/w", Err("the URL names no host")),
            ("http://x y/", Err("this is no URL")),
            ("http://x:99999/", Err("the port of the URL is no number from 0 to 65535")),
            (
                "http://user:secret@x/",
                Err(
                    "a user or password in a URL is not taken: name them beside it, and the password in a file",
                ),
            ),
        ];
        for (text, expected) in cases {
            let found = Url::parse(text);
            let found = found.as_ref().map(|url| (&*url.host, url.port, url.is_encrypted));
            assert_eq!(found.map_err(|error| &**error), expected, "{text}");
        }
        let url = Url::parse("https://x:1/write?token=s3cret").expect("a URL");
        assert_eq!(format!("{url:?} {}", url.text()), "https://x:1/write https://x:1/write");
    }

    #[test]
    fn why_there_is_no_tls_is_told() {
        use rustls::{CertificateError, Error, InvalidMessage};
        let of = |error| no_tls(&io::Error::new(io::ErrorKind::InvalidData, error));
        let certificate = |problem| of(Error::InvalidCertificate(problem));
        assert!(certificate(CertificateError::UnknownIssuer).contains("`authorities` of the sink"));
        let expired = "its certificate is refused: it has expired";
        assert_eq!(certificate(CertificateError::Expired), expired);
        let plain = of(Error::InvalidMessage(InvalidMessage::InvalidContentType));
        assert!(plain.contains("`http://`"), "{plain}");
        assert_eq!(of(Error::DecryptError), "TLS: cannot decrypt peer's message");
        let refused = of(Error::AlertReceived(AlertDescription::CertificateRequired));
        assert!(
            refused.ends_with("a certificate of its clients, and a sink has none"),
            "{refused}"
        );
    }

    #[test]
    fn where_an_answer_redirects_to_is_told() {
        let of = |status: u16, place: &str| {
            let answer = hyper::Response::builder().status(status).header("location", place);
            redirection(&answer.body(()).expect("an answer").into_parts().0)
        };
        let moved = of(308, "https://x/write?token=s3cret").expect("a redirection");
        assert!(moved.starts_with("it redirects to https://x/write; `url`"), "{moved}");
        assert_eq!(of(201, "https://x/"), None);
    }

    #[test]
    fn credentials_are_read_when_they_are_used() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("secret");
        let basic = Credentials::Basic { user: "Aladdin".into(), password_file: file.clone() };
        assert!(basic.header().is_err());
        std::fs::write(&file, "open sesame\n").expect("a file");
        let text = |credentials: &Credentials| {
            let header = credentials.header().expect("a file").expect("a header");
            assert!(!format!("{header:?}").contains("QWxh"), "{header:?}");
            header.to_str().expect("text").to_owned()
        };
        assert_eq!(text(&basic), "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
        std::fs::write(&file, "abc\n").expect("a file");
        assert_eq!(text(&Credentials::Bearer { token_file: file }), "Bearer abc");
    }
}

//! This machine's configuration of TLS: PCP's `tls.conf`.
//!
//! The keys are PCP's own. Lines have the form `key = value`; `#` begins a comment:
//!
//! | key                    | here                                                        |
//! |------------------------|-------------------------------------------------------------|
//! | `tls-ca-cert-file`     | authorities that may sign pmcd's certificate, instead of    |
//! |                        | the system's                                                |
//! | `tls-ca-cert-dir`      | the same, as all certificates of a folder                   |
//! | `tls-client-cert-file` | certificate of this client, with its chain                  |
//! | `tls-client-key-file`  | its private key                                             |
//! | `tls-verify-clients`   | `no` or `false`: accepts any pmcd                           |
//! | `tls-ciphers`          | allowed ciphers of TLS 1.2, if it names any of ours         |
//! | `tls-ciphersuites`     | allowed ciphers of TLS 1.3                                  |
//! | `tls-cert-file`        | pmcd's own certificate, which this client uses too if it    |
//! | `tls-key-file`         | has no other and may read the key                           |
//!
//! libpcp checks pmcd's certificate only if `tls-verify-clients` says so. This client
//! always checks it unless told otherwise, because encryption is useless if the peer is
//! unknown. `PCP_ALLOW_SERVER_SELF_CERT` and `PCP_ALLOW_BAD_CERT_DOMAIN` of PCPIntro(1)
//! relax the check. The files are read when the first connection needs them, once for
//! all connections that share the settings.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use pmderive_core::escape;
use pmderive_system::bounded;
use rustls::client::Resumption;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{CipherSuite, ClientConfig};

use super::certificates::{Leniency, PeerVerifier};
use crate::proto::TlsClient;

/// Maximum number of bytes that are read of a file of certificates.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// Maximum number of files that are read in a folder of certificates.
const MAX_FOLDER_FILES: usize = 10_000;

/// Settings of TLS. They are cheap to clone.
///
/// ```
/// use pmderive_client::context::{ConnectOptions, TlsSettings};
///
/// # let [authority, chain, key] = ["", "", ""];
/// // In PEM form, as they may come from a store of secrets.
/// let tls = TlsSettings::default().with_authorities(authority).with_certificate(chain, key);
/// let options = ConnectOptions { tls, ..ConnectOptions::default() };
/// # drop(options);
/// ```
#[derive(Clone, Default)]
pub struct TlsSettings {
    /// The file. Without one, all settings have their defaults.
    conf: Option<PathBuf>,
    /// Authorities in PEM form, instead of those of the file.
    authorities: Option<Arc<[u8]>>,
    /// Certificate of this client and its key in PEM form, instead of those of the file.
    own: Option<[Arc<[u8]>; 2]>,
    leniency: Leniency,
    prepared: Arc<[OnceLock<Result<PreparedTls, String>>; 2]>,
}

#[derive(Clone)]
struct PreparedTls {
    config: Arc<ClientConfig>,
    has_certificate: bool,
    is_verified: bool,
}

impl fmt::Debug for TlsSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsSettings")
            .field("conf", &self.conf)
            .field("leniency", &self.leniency)
            .finish_non_exhaustive()
    }
}

impl PartialEq for TlsSettings {
    fn eq(&self, other: &TlsSettings) -> bool {
        (&self.conf, &self.authorities, &self.own, self.leniency)
            == (&other.conf, &other.authorities, &other.own, other.leniency)
    }
}

impl Eq for TlsSettings {}

impl TlsSettings {
    /// The settings of a `tls.conf`. If the file does not exist, all settings have
    /// their defaults.
    pub fn from_file(path: impl Into<PathBuf>) -> TlsSettings {
        TlsSettings { conf: Some(path.into()), ..TlsSettings::default() }
    }

    /// Trusts the authorities of a text in PEM form, and no others.
    #[must_use]
    pub fn with_authorities(mut self, pem: impl AsRef<[u8]>) -> TlsSettings {
        self.authorities = Some(pem.as_ref().into());
        self.prepared = Arc::default();
        self
    }

    /// Shows pmcd a certificate of this client, followed by its chain. It and its private key
    /// are texts in PEM form.
    #[must_use]
    pub fn with_certificate(
        mut self,
        chain: impl AsRef<[u8]>,
        key: impl AsRef<[u8]>,
    ) -> TlsSettings {
        self.own = Some([chain.as_ref().into(), key.as_ref().into()]);
        self.prepared = Arc::default();
        self
    }

    /// Accepts certificates that no known authority has signed
    /// (`PCP_ALLOW_SERVER_SELF_CERT`).
    #[must_use]
    pub fn allow_unknown_issuers(mut self) -> TlsSettings {
        self.leniency.unknown_issuer = true;
        self.prepared = Arc::default();
        self
    }

    /// Accepts certificates for other hosts (`PCP_ALLOW_BAD_CERT_DOMAIN`).
    #[must_use]
    pub fn allow_other_names(mut self) -> TlsSettings {
        self.leniency.wrong_name = true;
        self.prepared = Arc::default();
        self
    }

    /// The files and folders that they may be made of: `tls.conf` and the files that it names now.
    /// They are read once; when one of them changes, other settings have to be made.
    pub fn files(&self) -> Vec<PathBuf> {
        const NAMES: [&str; 6] = [
            "tls-ca-cert-file",
            "tls-ca-cert-dir",
            "tls-client-cert-file",
            "tls-client-key-file",
            "tls-cert-file",
            "tls-key-file",
        ];
        let Some(path) = &self.conf else { return Vec::new() };
        let text = read(path).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let keys = Keys::parse(&text);
        let named = NAMES.iter().filter_map(|name| keys.get(name).map(PathBuf::from));
        std::iter::once(path.clone()).chain(named).collect()
    }

    /// Path of the file, for messages.
    pub(super) fn file(&self) -> &Path {
        self.conf.as_deref().unwrap_or(Path::new("tls.conf"))
    }

    /// The TLS configuration for a connection to `host`. With `verify`, it checks
    /// pmcd's certificate.
    ///
    /// # Errors
    /// A file cannot be used, or no certificate can contain the name of the host.
    pub(super) fn client(&self, host: &str, verify: bool) -> Result<TlsClient, String> {
        // The scope of a link-local address is only known to this machine.
        let host = host.split('%').next().unwrap_or_default();
        let server = ServerName::try_from(host)
            .map_err(|_| format!("`{host}` is not the name of a host that a certificate can have"))?
            .to_owned();
        let prepared = self.prepared[usize::from(verify)].get_or_init(|| self.prepare(verify));
        let PreparedTls { config, has_certificate, is_verified } = prepared.clone()?;
        Ok(TlsClient { config, server, has_certificate, is_verified })
    }

    fn prepare(&self, verify: bool) -> Result<PreparedTls, String> {
        let file = self.conf.as_deref().filter(|path| path.exists());
        let text = file.map(read).transpose()?.unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let keys = Keys::parse(&text);
        let is_verified = verify && !matches!(keys.get("tls-verify-clients"), Some("no" | "false"));
        let provider = Arc::new(provider(&keys)?);
        let verifier = if is_verified {
            let authorities = match &self.authorities {
                Some(pem) => certificates(pem, &"the text of authorities")?,
                None => authorities(&keys)?,
            };
            PeerVerifier::new(authorities, self.leniency, Arc::clone(&provider))?
        } else {
            PeerVerifier::of_anyone(Arc::clone(&provider))
        };
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
            .map_err(|error| error.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let (mut config, has_certificate) = match self.own_certificate(&keys)? {
            None => (builder.with_no_client_auth(), false),
            Some((chain, key)) => {
                let config = builder.with_client_auth_cert(chain, key);
                let file = escape::path(self.file());
                let place = if self.own.is_some() { "memory" } else { &*file };
                (config.map_err(|error| format!("the certificate in {place}: {error}"))?, true)
            }
        };
        // pmcd ends the connection if a client wants to resume a session.
        config.resumption = Resumption::disabled();
        // Somebody else's certificate is no reason to send a password.
        let is_verified = is_verified && self.leniency == Leniency::default();
        Ok(PreparedTls { config: Arc::new(config), has_certificate, is_verified })
    }

    /// The client's certificate and key, if it has any.
    fn own_certificate(&self, keys: &Keys<'_>) -> Result<Option<OwnCertificate>, String> {
        if let Some([chain, key]) = &self.own {
            let chain = certificates(chain, &"the text of this client's certificate")?;
            return Ok(Some((chain, private_key(key, &"the text of its key")?)));
        }
        match (keys.get("tls-client-cert-file"), keys.get("tls-client-key-file")) {
            (Some(certificate), Some(key)) => own_certificate(certificate, key).map(Some),
            (None, None) => {
                let shared = keys.get("tls-cert-file").zip(keys.get("tls-key-file"));
                // Usually, only pmcd may read its key.
                Ok(shared.and_then(|(certificate, key)| own_certificate(certificate, key).ok()))
            }
            _ => Err(format!(
                "{} names only one of tls-client-cert-file and tls-client-key-file",
                escape::path(self.file())
            )),
        }
    }
}

type OwnCertificate = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn own_certificate(certificate: &str, key: &str) -> Result<OwnCertificate, String> {
    let chain = certificates_of(Path::new(certificate))?;
    Ok((chain, private_key(&read(Path::new(key))?, &key)?))
}

/// The private key in PEM form in `place`.
fn private_key(pem: &[u8], place: &dyn fmt::Display) -> Result<PrivateKeyDer<'static>, String> {
    PrivateKeyDer::from_pem_slice(pem)
        .map_err(|error| format!("{place} holds no private key: {error}"))
}

/// The keys and values of a file.
struct Keys<'t>(Vec<(&'t str, &'t str)>);

impl<'t> Keys<'t> {
    /// Parses lines of `key = value` or `key: value`. A value ends at a blank or `#`.
    fn parse(text: &'t str) -> Keys<'t> {
        let line = |line: &'t str| {
            let (key, value) = line.split_once(['=', ':'])?;
            let value = value.split('#').next()?.split_whitespace().next()?;
            let key = key.trim();
            (!key.starts_with('#')).then_some((key, value))
        };
        Keys(text.lines().filter_map(line).collect())
    }

    /// The last value of a key.
    fn get(&self, name: &str) -> Option<&'t str> {
        self.0.iter().rfind(|(key, _)| *key == name).map(|(_, value)| *value)
    }
}

/// The authorities that the file names, or else the system's.
fn authorities(keys: &Keys<'_>) -> Result<Vec<CertificateDer<'static>>, String> {
    let (file, folder) = (keys.get("tls-ca-cert-file"), keys.get("tls-ca-cert-dir"));
    let mut found = match file {
        Some(file) => certificates_of(Path::new(file))?,
        None => Vec::new(),
    };
    if let Some(folder) = folder {
        let entries = std::fs::read_dir(folder).map_err(|error| format!("{folder}: {error}"))?;
        for entry in entries.take(MAX_FOLDER_FILES) {
            let path = entry.map_err(|error| format!("{folder}: {error}"))?.path();
            // Such folders have the same certificates under several names, and other
            // files.
            if path.is_file() {
                found.extend(certificates_of(&path).unwrap_or_default());
            }
        }
    }
    if file.is_none() && folder.is_none() {
        found = rustls_native_certs::load_native_certs().certs;
    }
    found.sort_unstable_by(|one, other| one.as_ref().cmp(other.as_ref()));
    found.dedup();
    Ok(found)
}

/// The certificates of a file; at least one.
fn certificates_of(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    certificates(&read(path)?, &escape::path(&path))
}

/// The certificates in PEM form in `place`; at least one.
fn certificates(
    pem: &[u8],
    place: &dyn fmt::Display,
) -> Result<Vec<CertificateDer<'static>>, String> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(format!("{place} holds no certificate in PEM form")),
        Err(error) => Err(format!("{place}: {error}")),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    bounded::read_file(path, MAX_FILE_BYTES)
        .map_err(|error| format!("{}: {error}", escape::path(&path)))
}

/// OpenSSL's names of the supported ciphers. Those of TLS 1.3 are the standard names.
const CIPHERS: &[(&str, CipherSuite)] = &[
    ("ECDHE-ECDSA-AES256-GCM-SHA384", CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384),
    ("ECDHE-ECDSA-AES128-GCM-SHA256", CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256),
    ("ECDHE-ECDSA-CHACHA20-POLY1305", CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256),
    ("ECDHE-RSA-AES256-GCM-SHA384", CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384),
    ("ECDHE-RSA-AES128-GCM-SHA256", CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256),
    ("ECDHE-RSA-CHACHA20-POLY1305", CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256),
    ("TLS_AES_256_GCM_SHA384", CipherSuite::TLS13_AES_256_GCM_SHA384),
    ("TLS_AES_128_GCM_SHA256", CipherSuite::TLS13_AES_128_GCM_SHA256),
    ("TLS_CHACHA20_POLY1305_SHA256", CipherSuite::TLS13_CHACHA20_POLY1305_SHA256),
];

/// The cryptography, without the ciphers that the file excludes. All supported ciphers
/// are strong. A list in OpenSSL's language that contains none of their full names,
/// such as `DEFAULT:!MEDIUM`, keeps all.
fn provider(keys: &Keys<'_>) -> Result<CryptoProvider, String> {
    let mut provider = rustls::crypto::ring::default_provider();
    for (key, is_tls13) in [("tls-ciphers", false), ("tls-ciphersuites", true)] {
        let Some(list) = keys.get(key) else { continue };
        let named = |name: &str| CIPHERS.iter().find(|(known, _)| *known == name);
        let named: Vec<CipherSuite> =
            list.split([':', ',']).filter_map(named).map(|(_, suite)| *suite).collect();
        let of_version = |suite: &rustls::SupportedCipherSuite| suite.tls13().is_some() == is_tls13;
        if named.is_empty() && is_tls13 {
            return Err(format!("{key} = {list} names no cipher suite that this client has"));
        }
        if !named.is_empty() {
            provider
                .cipher_suites
                .retain(|suite| !of_version(suite) || named.contains(&suite.suite()));
        }
    }
    Ok(provider)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_values_are_read_as_libpcp_does() {
        let keys = Keys::parse(
            "# tls-key-file = /no\n\n tls-ca-cert-file = /a b # c\ntls-ciphers:X#y\nempty =\n\
             tls-ca-cert-file=/later\nnothing\n",
        );
        assert_eq!(keys.get("tls-ca-cert-file"), Some("/later"));
        assert_eq!(keys.get("tls-ciphers"), Some("X"));
        assert_eq!(keys.get("tls-key-file"), None);
        assert_eq!(keys.get("empty"), None);
    }

    #[test]
    fn files_are_those_that_the_file_names() {
        assert_eq!(TlsSettings::default().files(), [] as [PathBuf; 0]);
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("tls.conf");
        let settings = TlsSettings::from_file(path.clone());
        assert_eq!(settings.files(), std::slice::from_ref(&path), "it is not there yet");
        std::fs::write(&path, "tls-client-key-file = /k\ntls-ca-cert-file = /ca # x\n")
            .expect("a file");
        assert_eq!(settings.files(), [path, "/ca".into(), "/k".into()]);
    }

    #[test]
    fn lists_of_ciphers_leave_out_what_they_do_not_name() {
        let suites = |text: &str| {
            let provider = provider(&Keys::parse(text));
            provider.map(|provider| provider.cipher_suites.len())
        };
        let all = suites("").expect("all");
        assert_eq!(all, CIPHERS.len());
        assert_eq!(suites("tls-ciphers = DEFAULT:!MEDIUM"), Ok(all));
        assert_eq!(suites("tls-ciphers = ECDHE-RSA-AES256-GCM-SHA384:RC4"), Ok(4));
        assert_eq!(suites("tls-ciphersuites = TLS_CHACHA20_POLY1305_SHA256"), Ok(7));
        assert!(suites("tls-ciphersuites = NONE").is_err());
    }

    #[test]
    fn texts_in_memory_take_the_place_of_files() {
        let key = rcgen::KeyPair::generate().expect("a key");
        let params = rcgen::CertificateParams::new(vec!["web1".to_owned()]).expect("parameters");
        let certificate = params.self_signed(&key).expect("a certificate").pem();
        let from_file = || TlsSettings::from_file("/nowhere/tls.conf");
        let settings = from_file().with_authorities(&certificate);
        assert!(settings != from_file());
        let client = settings.client("web1", true).expect("settings");
        assert!(client.is_verified && !client.has_certificate);
        let settings = settings.with_certificate(&certificate, key.serialize_pem());
        assert!(settings.client("web1", true).expect("settings").has_certificate);
        let outcome = |settings: TlsSettings| settings.client("web1", true).map(drop);
        assert_eq!(
            outcome(from_file().with_authorities("")),
            Err("the text of authorities holds no certificate in PEM form".to_owned())
        );
        let keyless = outcome(settings.with_certificate(&certificate, ""));
        let error = keyless.expect_err("no key");
        assert!(error.starts_with("the text of its key holds no private key: "), "{error}");
    }

    #[test]
    fn files_that_cannot_be_used_are_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let outcome = |text: &str| {
            let path = folder.path().join("tls.conf");
            std::fs::write(&path, text).expect("written");
            let outcome = TlsSettings::from_file(&path).client("localhost", true);
            outcome
                .map(drop)
                .map_err(|error| error.replace(&folder.path().display().to_string(), ""))
        };
        assert_eq!(
            outcome("tls-ca-cert-file = /nowhere/ca.pem"),
            Err("/nowhere/ca.pem: No such file or directory (os error 2)".to_owned())
        );
        assert_eq!(
            outcome("tls-client-key-file = /x"),
            Err("/tls.conf names only one of tls-client-cert-file and tls-client-key-file"
                .to_owned())
        );
        assert_eq!(
            outcome("tls-ca-cert-file = /dev/null"),
            Err("/dev/null holds no certificate in PEM form".to_owned())
        );
        let absent = TlsSettings::from_file("/nowhere/tls.conf");
        assert!(absent.client("[", true).expect_err("no name").contains("`[`"));
        assert!(absent.client("fe80::1%eth0", false).is_ok());
    }
}

//! Configurations of TLS: the certificate and key of a listener, and the authorities that a
//! client trusts.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pmderive_runtime::escape;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};

use super::secret::read;

/// The files of an encrypted listener, in PEM form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Its certificate, followed by those that vouch for it.
    pub certificate: PathBuf,
    /// The key of the certificate.
    pub key: PathBuf,
}

/// The configuration of a listener.
///
/// # Errors
/// A file cannot be used; the text names it and says why.
pub(super) fn server(identity: &Identity) -> Result<Arc<ServerConfig>, String> {
    let chain = certificates(&identity.certificate)?;
    let key = PrivateKeyDer::from_pem_slice(&read(&identity.key)?)
        .map_err(|error| format!("{} holds no key: {error}", escape::path(&identity.key)))?;
    let builder = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let mut config =
        builder.with_no_client_auth().with_single_cert(chain, key).map_err(|error| {
            let [certificate, key] = [&identity.certificate, &identity.key].map(escape::path);
            format!("{certificate} and {key} do not serve: {error}")
        })?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// The configuration of a client. It trusts the authorities of the file, or else those of the
/// system.
///
/// # Errors
/// A file cannot be used; the text names it and says why.
pub(super) fn client(authorities: Option<&Path>) -> Result<Arc<ClientConfig>, String> {
    let mut roots = RootCertStore::empty();
    let found = match authorities {
        Some(path) => certificates(path)?,
        None => rustls_native_certs::load_native_certs().certs,
    };
    let (added, _) = roots.add_parsable_certificates(found);
    if added == 0 {
        return Err(match authorities {
            Some(path) => format!("{} holds no authority that can be used", escape::path(path)),
            None => {
                "the system knows no authorities: install ca-certificates, or name a file".into()
            }
        });
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// The certificates of a file, at least one.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let shown = escape::path(path);
    let bytes = read(path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(format!("{shown} holds no certificate in PEM form")),
        Err(error) => Err(format!("{shown}: {error}")),
    }
}

//! Decides whether a certificate proves that a peer is the right pmcd.
//!
//! A certificate is good if a trusted authority has signed it and it contains the name
//! of the host. A certificate that is trusted itself is good as well; self-signed
//! certificates are used that way. If it names hosts, the host must be one of them. If
//! it names none (older tools put the name elsewhere), it is good for any host, because
//! the person who trusts it has looked at it.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

/// Faults that are ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Leniency {
    /// No known authority has signed the certificate.
    pub(super) unknown_issuer: bool,
    /// The certificate is for another host.
    pub(super) wrong_name: bool,
}

/// Checks the certificate of a pmcd.
#[derive(Debug)]
pub(super) struct PeerVerifier {
    /// `None` accepts any certificate.
    trust: Option<Trust>,
    provider: Arc<CryptoProvider>,
}

#[derive(Debug)]
struct Trust {
    /// `None` if there is no authority.
    authorities: Option<Arc<WebPkiServerVerifier>>,
    /// The trusted certificates themselves.
    certificates: Vec<CertificateDer<'static>>,
    leniency: Leniency,
}

impl PeerVerifier {
    /// Trusts `certificates`, and all certificates that they have signed.
    ///
    /// # Errors
    /// `certificates` is empty, and unknown issuers are not allowed.
    pub(super) fn new(
        certificates: Vec<CertificateDer<'static>>,
        leniency: Leniency,
        provider: Arc<CryptoProvider>,
    ) -> Result<PeerVerifier, String> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(certificates.iter().cloned());
        if certificates.is_empty() && !leniency.unknown_issuer {
            return Err("this machine trusts no certificate at all: \
                install ca-certificates, or name a tls-ca-cert-file"
                .to_owned());
        }
        let authorities = if roots.is_empty() {
            None
        } else {
            let builder =
                WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
            Some(builder.build().map_err(|error| error.to_string())?)
        };
        let trust = Some(Trust { authorities, certificates, leniency });
        Ok(PeerVerifier { trust, provider })
    }

    /// Accepts every peer that has the key to its certificate.
    pub(super) fn of_anyone(provider: Arc<CryptoProvider>) -> PeerVerifier {
        PeerVerifier { trust: None, provider }
    }
}

impl Trust {
    fn judge(
        &self,
        certificate: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        server: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<(), Error> {
        let unknown = || Error::InvalidCertificate(CertificateError::UnknownIssuer);
        let vouched = match &self.authorities {
            Some(authorities) => {
                authorities.verify_server_cert(certificate, chain, server, &[], now)
            }
            None => Err(unknown()),
        };
        let Err(error) = vouched else { return Ok(()) };
        if is_wrong_name(&error) {
            return if self.leniency.wrong_name { Ok(()) } else { Err(error) };
        }
        // A trusted certificate need not be signed, but still has a time and a purpose.
        let is_trusted = !is_of_time_or_purpose(&error)
            && self.certificates.iter().any(|trusted| trusted == certificate);
        // The libraries have several errors for a certificate that no authority has
        // signed.
        let is_unknown = is_unknown_issuer(&error);
        let is_overlooked = is_unknown && self.leniency.unknown_issuer;
        if !is_trusted && !is_overlooked {
            return Err(if is_unknown { unknown() } else { error });
        }
        match verify_server_name(&ParsedCertificate::try_from(certificate)?, server) {
            Err(error) if is_wrong_name(&error) => {
                let nameless = names_nobody(&error) && is_trusted;
                if nameless || self.leniency.wrong_name { Ok(()) } else { Err(error) }
            }
            outcome => outcome,
        }
    }
}

fn is_of_time_or_purpose(error: &Error) -> bool {
    use CertificateError::{
        Expired, ExpiredContext, InvalidPurpose, InvalidPurposeContext, NotValidYet,
        NotValidYetContext,
    };
    matches!(
        error,
        Error::InvalidCertificate(
            Expired
                | ExpiredContext { .. }
                | NotValidYet
                | NotValidYetContext { .. }
                | InvalidPurpose
                | InvalidPurposeContext { .. }
        )
    )
}

fn is_wrong_name(error: &Error) -> bool {
    use CertificateError::{NotValidForName, NotValidForNameContext};
    matches!(error, Error::InvalidCertificate(NotValidForName | NotValidForNameContext { .. }))
}

fn names_nobody(error: &Error) -> bool {
    matches!(error, Error::InvalidCertificate(CertificateError::NotValidForNameContext {
        presented, ..
    }) if presented.is_empty())
}

fn is_unknown_issuer(error: &Error) -> bool {
    match error {
        Error::InvalidCertificate(CertificateError::UnknownIssuer) => true,
        // A self-signed certificate that also claims to be an authority, or one of an
        // ancient form.
        Error::InvalidCertificate(CertificateError::Other(other)) => {
            matches!(
                other.0.downcast_ref::<webpki::Error>(),
                Some(webpki::Error::CaUsedAsEndEntity | webpki::Error::UnsupportedCertVersion)
            )
        }
        _ => false,
    }
}

impl ServerCertVerifier for PeerVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        server: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if let Some(trust) = &self.trust {
            trust.judge(certificate, chain, server, now)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{
        BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose,
        IsCa, KeyPair,
    };
    use rustls::crypto::ring::default_provider;

    use super::*;
    use crate::proto::CertificateProblem;

    type Issuer = CertifiedIssuer<'static, KeyPair>;

    fn params(name: &str, is_ca: IsCa) -> CertificateParams {
        let mut params = CertificateParams::new(vec!["web1".to_owned()]).expect("parameters");
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = is_ca;
        params
    }

    fn key() -> KeyPair {
        KeyPair::generate().expect("a key")
    }

    /// The problem of a chain, which begins with pmcd's certificate, for a client that
    /// trusts one certificate.
    fn judged(trusted: &Issuer, chain: &[&Issuer]) -> Result<(), CertificateProblem> {
        let der = |issuer: &Issuer| issuer.der().clone();
        let provider = Arc::new(default_provider());
        let verifier = PeerVerifier::new(vec![der(trusted)], Leniency::default(), provider);
        let chain: Vec<_> = chain.iter().map(|issuer| der(issuer)).collect();
        let server = ServerName::try_from("web1").expect("a name");
        let verifier = verifier.expect("a certificate");
        match verifier.verify_server_cert(&chain[0], &chain[1..], &server, &[], UnixTime::now()) {
            Ok(_) => Ok(()),
            Err(Error::InvalidCertificate(error)) => Err(CertificateProblem::of(&error)),
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn what_is_wrong_with_a_chain_is_said_in_plain_words() {
        let authority = || IsCa::Ca(BasicConstraints::Unconstrained);
        let signed =
            |params, by: &Issuer| CertifiedIssuer::signed_by(params, key(), by).expect("signed");
        let root = params("root", authority());
        let root = CertifiedIssuer::self_signed(root, key()).expect("a certificate");
        let between = signed(params("between", authority()), &root);
        let plain = signed(params("plain", IsCa::NoCa), &root);
        let good = signed(params("good", IsCa::NoCa), &between);
        assert_eq!(judged(&root, &[&good, &between]), Ok(()));

        let by_plain = signed(params("by plain", IsCa::NoCa), &plain);
        let problem = judged(&root, &[&by_plain, &plain]).expect_err("no authority");
        assert_eq!(problem, CertificateProblem::NotAnAuthority);
        // A person who trusts pmcd's own certificate has looked at it.
        assert_eq!(judged(&by_plain, &[&by_plain, &plain]), Ok(()));

        let mut old = params("old", IsCa::NoCa);
        old.not_after = rcgen::date_time_ymd(2020, 1, 1);
        let old = CertifiedIssuer::self_signed(old, key()).expect("a certificate");
        let problem = judged(&old, &[&old]).expect_err("it has expired").to_string();
        assert!(problem.contains("expired"), "{problem}");

        let mut client = params("client", IsCa::NoCa);
        client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let client = signed(client, &root);
        let problem = judged(&root, &[&client]).expect_err("not for servers").to_string();
        assert_eq!(problem, "it is not meant for servers (extended key usage)");

        // The authority's name with another key.
        let other = CertifiedIssuer::self_signed(params("root", authority()), key());
        let forged = signed(params("forged", IsCa::NoCa), &other.expect("a certificate"));
        let problem = judged(&root, &[&forged]).expect_err("another key").to_string();
        assert!(problem.starts_with("its signature is wrong"), "{problem}");
    }
}

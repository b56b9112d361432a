//! The faults of pmcd's certificate, in words for users.

use rustls::CertificateError;

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
        /// Name or address of the requested host.
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
    pub fn of(error: &CertificateError) -> CertificateProblem {
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
                Some(webpki::Error::CaUsedAsEndEntity) => {
                    other("it is an authority's own (`CA:TRUE`), which no server may have")
                }
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
    // The library writes them as `DnsName("web1")`.
    let bare = |name: &String| {
        let inner = name.split_once('(').map_or(name.as_str(), |(_, inner)| inner);
        inner.trim_end_matches(')').trim_matches('"').to_owned()
    };
    let names: Vec<String> = presented.iter().map(bare).collect();
    format!("it is for {}, not for {expected}", names.join(", "))
}

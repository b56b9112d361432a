//! Texts of statuses that are not PMAPI errors with one text of their own:
//! those that differ between releases, and those of other libraries.

use super::{PcpVersion, PmStatus};

/// What the texts of PCP 7 say where those of PCP 6.0 say something else.
const SINCE_7: &[(PmStatus, &str)] = &[
    (PmStatus::NODATA, "Empty archive file"),
    (PmStatus::EOL, "End of PCP archive"),
    (PmStatus::LABEL, "Illegal label record at start of a PCP archive file"),
    (PmStatus::LOGREC, "Corrupted record in a PCP archive"),
    (PmStatus::LOGFILE, "Missing PCP archive file"),
    (PmStatus::PMID_LOG, "Metric not defined in the PCP archive"),
    (PmStatus::INDOM_LOG, "Instance domain identifier not defined in the PCP archive"),
    (PmStatus::INST_LOG, "Instance identifier not defined in the PCP archive"),
];

/// Texts of the SASL library for its errors from -1 on.
const SASL: [&str; 32] = [
    "generic failure",
    "no memory available",
    "overflowed buffer",
    "no mechanism available",
    "bad protocol / cancel",
    "can't request information until later in exchange",
    "invalid parameter supplied",
    "transient failure (e.g., weak key)",
    "integrity check failed",
    "server failed mutual authentication step",
    "mechanism doesn't support requested feature",
    "SASL library is not initialized",
    "authentication failure",
    "authorization failure",
    "mechanism too weak for this user",
    "encryption needed to use mechanism",
    "One time use of a plaintext password will enable requested mechanism for user",
    "passphrase expired, has to be reset",
    "account disabled",
    "user not found",
    "passphrase locked",
    "requested change was not needed",
    "version mismatch with plug-in",
    "remote authentication server unavailable",
    UNDEFINED,
    "user exists, but no verifier for user",
    "passphrase is too weak for security policy",
    "user supplied passwords are not permitted",
    "sasl_setpass needs old password in order to perform password change",
    "sasl_setpass can't store a property because of a constraint violation",
    UNDEFINED,
    "channel binding failure",
];

/// Of the SASL library, for an error that it does not know.
const UNDEFINED: &str = "undefined error!";

impl PmStatus {
    /// The text that `pmErrStr(3)` of a release has for the status. That of a
    /// system error comes from the system this runs on.
    ///
    /// ```
    /// use pmderive_core::model::{PcpVersion, PmStatus};
    ///
    /// assert_eq!(PmStatus::EOL.text(PcpVersion::V6_0), "End of PCP archive log");
    /// assert_eq!(PmStatus::EOL.text(PcpVersion::V7_2), "End of PCP archive");
    /// ```
    pub fn text(self, version: PcpVersion) -> String {
        let since_7 = SINCE_7.iter().find(|(status, _)| *status == self);
        match (version, since_7) {
            (PcpVersion::V7_2, Some((_, text))) => (*text).to_owned(),
            // PM_ERR_ARG is newer.
            (PcpVersion::V6_0, _) if self == PmStatus::ARG => self.unknown(),
            _ => self.to_string(),
        }
    }

    fn unknown(self) -> String {
        format!("No such PMAPI error code ({})", self.0)
    }

    /// The text of a status that is not in the table of the PMAPI.
    pub(super) fn foreign_text(self) -> String {
        match self.0 {
            0 => "No error".to_owned(),
            -12344..0 => {
                let text = std::io::Error::from_raw_os_error(-self.0).to_string();
                text.split(" (os error").next().unwrap_or(&text).to_owned()
            }
            // Errors of the library that authenticates follow those of the PMAPI.
            code if code < PmStatus::NYI.0 => {
                let code = code - PmStatus::NYI.0;
                if code < -1000 {
                    return format!("Unknown secure sockets error {} ({code})", self.0);
                }
                let position = usize::try_from(-1 - code).unwrap_or(usize::MAX);
                format!("Authentication - {}", SASL.get(position).unwrap_or(&UNDEFINED))
            }
            _ => self.unknown(),
        }
    }
}

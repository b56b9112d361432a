//! Texts of statuses outside the PMAPI's table: texts that differ between
//! releases, and texts of other libraries.

use super::{PcpVersion, PmStatus};

/// Texts of PCP 7 that differ from PCP 6.0's.
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

/// Texts of the SASL library for its errors -1 and below.
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

/// The SASL library's text for an error that it does not know.
const UNDEFINED: &str = "undefined error!";

impl PmStatus {
    /// The text of the status in `pmErrStr(3)` of a release. The text of a
    /// system error comes from the system of this process.
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
            // PCP 6.0 does not know PM_ERR_ARG yet.
            (PcpVersion::V6_0, _) if self == PmStatus::ARG => self.unknown(),
            _ => self.to_string(),
        }
    }

    fn unknown(self) -> String {
        format!("No such PMAPI error code ({})", self.0)
    }

    /// The text of a status that is not in the PMAPI's table.
    pub(super) fn foreign_text(self) -> String {
        match self.0 {
            0 => "No error".to_owned(),
            -12344..0 => {
                let text = std::io::Error::from_raw_os_error(-self.0).to_string();
                text.split(" (os error").next().unwrap_or(&text).to_owned()
            }
            // Errors of the SASL library have numbers below those of the PMAPI.
            code if code < PmStatus::NYI.0 => {
                let code = code - PmStatus::NYI.0;
                if code < -1000 {
                    return format!("Unknown secure sockets error {} ({code})", self.0);
                }
                let position = usize::try_from(-1 - code).unwrap_or(usize::MAX);
                let text = match code {
                    -100 => "error when parsing configuration file",
                    _ => SASL.get(position).unwrap_or(&UNDEFINED),
                };
                format!("Authentication - {text}")
            }
            _ => self.unknown(),
        }
    }
}

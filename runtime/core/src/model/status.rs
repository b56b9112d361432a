//! PMAPI status codes.

use std::fmt;

/// A negative PMAPI result. It is a PMAPI error code (-12345 and below), or the
/// negated system error number of the host that reported it.
///
/// Names and texts are those of `pmErrStr(3)` and `pmerr(1)` of PCP 6.0.
/// [`PmStatus::text`] has the texts of other releases.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PmStatus(pub i32);

macro_rules! statuses {
    ($($name:ident = $code:literal, $text:literal;)*) => {
        impl PmStatus {
            $(#[doc = concat!("`PM_ERR_", stringify!($name), "`: ", $text, ".")]
            pub const $name: PmStatus = PmStatus($code);)*
        }

        /// Code, name without `PM_ERR_`, text.
        const TABLE: &[(i32, &str, &str)] = &[$(($code, stringify!($name), $text),)*];
    };
}

statuses! {
    GENERIC = -12345, "Generic error, already reported above";
    PMNS = -12346, "Problems parsing PMNS definitions";
    NOPMNS = -12347, "PMNS not accessible";
    DUPPMNS = -12348, "Attempt to reload the PMNS";
    TEXT = -12349, "One-line or help text is not available";
    APPVERSION = -12350, "Metric not supported by this version of monitored application";
    VALUE = -12351, "Missing metric value(s)";
    TIMEOUT = -12353, "Timeout waiting for a response from PMCD";
    NODATA = -12354, "Empty archive log file";
    RESET = -12355, "PMCD reset or configuration change";
    NAME = -12357, "Unknown metric name";
    PMID = -12358, "Unknown or illegal metric identifier";
    INDOM = -12359, "Unknown or illegal instance domain identifier";
    INST = -12360, "Unknown or illegal instance identifier";
    TYPE = -12397, "Unknown or illegal metric type";
    UNIT = -12361, "Illegal pmUnits specification";
    CONV = -12362, "Impossible value or scale conversion";
    TRUNC = -12363, "Truncation in value conversion";
    SIGN = -12364, "Negative value in conversion to unsigned";
    PROFILE = -12365, "Explicit instance identifier(s) required";
    IPC = -12366, "IPC protocol failure";
    TLS = -12414, "TLS protocol failure";
    EOF = -12368, "IPC channel closed";
    NOTHOST = -12369, "Operation requires context with host source of metrics";
    EOL = -12370, "End of PCP archive log";
    MODE = -12371, "Illegal mode specification";
    LABEL = -12372, "Illegal label record at start of a PCP archive log file";
    LOGREC = -12373, "Corrupted record in a PCP archive log";
    LOGFILE = -12375, "Missing PCP archive log file";
    NOTARCHIVE = -12374, "Operation requires context with archive source of metrics";
    NOCONTEXT = -12376, "Attempt to use an illegal context";
    PROFILESPEC = -12377, "NULL pmInDom with non-NULL instlist";
    PMID_LOG = -12378, "Metric not defined in the PCP archive log";
    INDOM_LOG = -12379, "Instance domain identifier not defined in the PCP archive log";
    INST_LOG = -12380, "Instance identifier not defined in the PCP archive log";
    NOPROFILE = -12381, "Missing profile - protocol botch";
    NOAGENT = -12386, "No PMCD agent for domain of request";
    PERMISSION = -12387, "No permission to perform requested operation";
    CONNLIMIT = -12388, "PMCD connection limit for this host exceeded";
    AGAIN = -12389, "Try again. Information not currently available";
    ISCONN = -12390, "Already Connected";
    NOTCONN = -12391, "Not Connected";
    NEEDPORT = -12392, "A non-null port name is required";
    NONLEAF = -12394, "Metric name is not a leaf in PMNS";
    PMDANOTREADY = -13394, "PMDA is not yet ready to respond to requests";
    PMDAREADY = -13393, "PMDA is now responsive to requests";
    BOTCH = -12442, "Internal inconsistency detected or assertion failed";
    TOOSMALL = -12443, "Insufficient elements in list";
    TOOBIG = -12444, "Result size exceeded";
    FAULT = -12445, "QA fault injected";
    THREAD = -12398, "Operation not supported for multi-threaded applications";
    NOCONTAINER = -12399, "Container not found";
    BADSTORE = -12400, "Bad input to pmstore";
    LOGOVERLAP = -12401, "Archives overlap in time";
    LOGHOST = -12402, "Archives differ by host";
    LOGCHANGETYPE = -12404, "The type of a metric has changed in an archive";
    LOGCHANGESEM = -12405, "The semantics of a metric has changed in an archive";
    LOGCHANGEINDOM = -12406, "The instance domain of a metric has changed in an archive";
    LOGCHANGEUNITS = -12407, "The units of a metric have changed in an archive";
    NEEDCLIENTCERT = -12408, "PMCD requires a client certificate";
    BADDERIVE = -12409, "Derived metric definition failed";
    NOLABELS = -12410, "No support for metric label metadata";
    PMDAFENCED = -12411, "PMDA is currently fenced and unable to respond to requests";
    RECTYPE = -12412, "Incorrect record type in an archive";
    FEATURE = -12413, "Archive feature not supported";
    ARG = -12415, "Bad value for function argument";
    NYI = -21344, "Functionality not yet implemented";
}

impl PmStatus {
    /// Symbolic name such as `PM_ERR_EOL`; `None` for system errors and unknown codes.
    pub fn name(self) -> Option<String> {
        let (_, name, _) = TABLE.iter().find(|(code, ..)| *code == self.0)?;
        Some(format!("PM_ERR_{name}"))
    }

    /// The status of a symbolic name such as `PM_ERR_EOL`.
    pub fn from_name(name: &str) -> Option<PmStatus> {
        let name = name.strip_prefix("PM_ERR_")?;
        let (code, ..) = TABLE.iter().find(|(_, known, _)| *known == name)?;
        Some(PmStatus(*code))
    }
}

impl fmt::Display for PmStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((_, _, text)) = TABLE.iter().find(|(code, ..)| *code == self.0) {
            return f.write_str(text);
        }
        f.write_str(&self.foreign_text())
    }
}

/// The symbolic name, or the code of a system error. A program whose `main` returns the status
/// prints this.
impl fmt::Debug for PmStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(&name),
            None => write!(f, "PmStatus({})", self.0),
        }
    }
}

impl std::error::Error for PmStatus {}

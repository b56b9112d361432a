//! The log of a simulated fleet: one line for each event, with its time.

use std::fmt;
use std::time::Duration;

use pmderive_core::model::Timestamp;

use super::schedule::HostEvent;

/// One line of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Time since the fleet began.
    pub at: Duration,
    /// The host.
    pub host: u32,
    /// The event.
    pub what: What,
}

/// The events of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum What {
    /// Something of the script.
    Happened(HostEvent),
    /// A client was connected.
    Connected,
    /// A client was refused.
    Refused,
    /// A client gave up to connect.
    GivenUp,
    /// A client asked for the address, which was unknown.
    Unknown,
    /// A fetch was answered, which does not mean that the reply arrived.
    Answered {
        /// The stamp of the reply.
        stamp: Timestamp,
    },
    /// The latest reply broke off, dripped or was late, as the script had it.
    Struck,
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:12.6} {:5} ", self.at.as_secs_f64(), self.host)?;
        match &self.what {
            What::Happened(happening) => happening.fmt(f),
            What::Connected => f.write_str("takes a connection"),
            What::Refused => f.write_str("refuses a connection"),
            What::Unknown => f.write_str("is looked for in vain"),
            What::GivenUp => f.write_str("is given up by a client"),
            What::Answered { stamp } => write!(f, "answers at {}.{:09}", stamp.sec, stamp.nsec),
            What::Struck => f.write_str("the reply is spoilt"),
        }
    }
}

/// The whole log. Its text is the same for the same seed and the same client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log(pub Vec<Entry>);

impl fmt::Display for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|entry| writeln!(f, "{entry}"))
    }
}

//! The party at fault when something fails.

/// The one whose action or repair ends a failure. Errors report it by a method `fault`.
///
/// ```
/// use pmderive_core::source::{Fault, SourceError};
///
/// let error = SourceError::Timeout { target: "web17".to_owned(), seconds: 5.0 };
/// assert_eq!(error.fault(), Fault::Environment);
/// assert!(error.is_transient());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fault {
    /// The other side, or the writer of the file: it violates a format or refuses its task.
    Peer,
    /// The caller or the caller's user: a name, an option, a value or the
    /// order of calls is wrong.
    User,
    /// The parts in between: network, disk, permissions, limits.
    Environment,
    /// This software.
    Ours,
}

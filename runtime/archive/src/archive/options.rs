//! The caller's choices when archives are opened.

/// Options for opening archives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct OpenOptions {
    /// Maximum size in bytes to which each compressed file may expand, in the folder
    /// for temporary files. Without it, 16 GiB or nine tenths of the free space,
    /// whichever is less.
    pub max_expanded: Option<u64>,
    /// Behave like libpcp 6. Nothing is skipped (see [`pass_over_nothing`]). If several
    /// archives have mistakes, the one that was named first is reported. Names of metrics
    /// in later archives count only directly below nodes of the first archive.
    ///
    /// [`pass_over_nothing`]: super::ArchiveContext::pass_over_nothing
    pub as_version_6: bool,
}

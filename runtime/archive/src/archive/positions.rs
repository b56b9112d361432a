//! Positions of the archives and files of a context.

use pmderive_core::positions;

positions! {
    /// Position of an archive in those of a context, which are in the order of their
    /// starts.
    pub(in crate::archive) ArchiveId;
    /// Position of a data volume in [`ArchiveFiles::volumes`]. It is not the number in
    /// the name of its file: numbers may be missing.
    ///
    /// [`ArchiveFiles::volumes`]: crate::archive::files::ArchiveFiles::volumes
    pub(in crate::archive) VolumeId;
    /// Position of a metadata file in those of a context.
    pub(in crate::archive) MetadataFileId;
}

macro_rules! neighbours {
    ($($name:ident)*) => {
        $(impl $name {
            /// The first one.
            pub(in crate::archive) const FIRST: $name = $name(0);

            /// The next one, whether it exists or not.
            pub(in crate::archive) const fn next(self) -> $name {
                $name(self.0 + 1)
            }
        })*
    };
}

neighbours! { ArchiveId VolumeId }

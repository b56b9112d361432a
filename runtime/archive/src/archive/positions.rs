//! Positions in lists, each list with a type of its own, so that a position in one list
//! is not taken for one in another.

macro_rules! position {
    ($($(#[doc = $doc:literal])* $name:ident;)*) => {
        $($(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(in crate::archive) struct $name(pub(in crate::archive) u32);

        impl $name {
            /// The position as an index into its list.
            pub(in crate::archive) const fn index(self) -> usize {
                self.0 as usize
            }

            /// The position with an index. No list is long enough to exceed it.
            pub(in crate::archive) fn at(index: usize) -> $name {
                $name(u32::try_from(index).unwrap_or(u32::MAX))
            }
        })*
    };
}

position! {
    /// Position of an archive in those of a context, which are in the order of their
    /// starts.
    ArchiveId;
    /// Position of a data volume in [`ArchiveFiles::volumes`]. It is not the number in
    /// the name of its file: numbers may be missing.
    ///
    /// [`ArchiveFiles::volumes`]: crate::archive::files::ArchiveFiles::volumes
    VolumeId;
    /// Position of a metadata file in those of a context.
    MetadataFileId;
}

pub(in crate::archive) use position;

macro_rules! neighbours {
    ($($name:ident)*) => {
        $(impl $name {
            /// The first one.
            pub(in crate::archive) const FIRST: $name = $name(0);

            /// The next one, whether it exists or not.
            pub(in crate::archive) const fn next(self) -> $name {
                $name(self.0 + 1)
            }

            /// The one before. `None` for the first one.
            pub(in crate::archive) fn previous(self) -> Option<$name> {
                self.0.checked_sub(1).map($name)
            }
        })*
    };
}

neighbours! { ArchiveId VolumeId }

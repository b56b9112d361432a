//! The releases of PCP that answer differently.

/// The release of libpcp whose words or answers the caller needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PcpVersion {
    /// 6.0.
    #[default]
    V6_0,
    /// 7.2.
    V7_2,
}

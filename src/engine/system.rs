//! What the environment of a process says about derived metrics, see
//! PCPIntro(1) and pmRegisterDerived(3).
//!
//! It looks at variables and at the presence of a directory only; the registry
//! knows what a list of files means.

use std::path::PathBuf;

use pmderive_runtime::pcp_conf::PcpConf;

/// The `:`-separated list of files and directories whose definitions every
/// client loads; `None` for none.
pub fn definitions() -> Option<String> {
    match std::env::var_os("PCP_DERIVED_CONFIG") {
        Some(list) => Some(list.to_string_lossy().into_owned()).filter(|list| !list.is_empty()),
        None => {
            let mut directory = PathBuf::from(PcpConf::load().get("PCP_VAR_DIR")?);
            directory.extend(["config", "derived"]);
            let found = directory.is_dir();
            found.then(|| directory.to_string_lossy().into_owned())
        }
    }
}

/// Options that the environment sets.
pub fn controls() -> Option<String> {
    std::env::var_os("PCP_DERIVED_CONTROL").map(|text| text.to_string_lossy().into_owned())
}

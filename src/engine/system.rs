//! The settings for derived metrics in the environment of a process, see
//! PCPIntro(1) and pmRegisterDerived(3).
//!
//! It reads variables and pcp.conf, and tests whether a directory exists. The registry reads the
//! definition files.

use std::path::PathBuf;

use pmderive_runtime::pcp_conf::PcpConf;

/// The `:`-separated list of files and directories with definitions that every
/// client loads. `None` if there is no list.
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

/// The options that the environment sets.
pub fn controls() -> Option<String> {
    std::env::var_os("PCP_DERIVED_CONTROL").map(|text| text.to_string_lossy().into_owned())
}

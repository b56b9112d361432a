//! Entry points for fuzzers. Each reads arbitrary bytes and panics if a promise is broken.

use std::path::Path;

use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::project::{FILE_NAME, apply_levels, read};
use crate::text::{SourceMap, Span};

pub use crate::bind::equivalent_domains::fuzz::fuzz_equivalent_domains;
pub use crate::engine::{fuzz_cached, fuzz_compile, fuzz_eval};
#[cfg(feature = "fleet")]
pub use crate::fleet::sinks::fuzz::fuzz_sinks;
#[cfg(feature = "fleet")]
pub use crate::fleet::{config::fuzz::fuzz_serve_config, targets::fuzz::fuzz_targets};
pub use crate::format::fuzz_format;
#[cfg(feature = "jit")]
pub use crate::jit::fuzz_kernel_diff;
#[cfg(feature = "lsp")]
pub use crate::lsp::fuzz_lsp;
pub use crate::metadata::fuzz::fuzz_metadata;
pub use crate::syntax::{fuzz_definitions, fuzz_parse};
pub use crate::unit_test::fuzz::{fuzz_test_file, fuzz_timeline};

/// Parts of the target `hosts`, which is in `fuzz/hosts.rs`. Its peers are
/// those of tests, which no published crate has.
pub mod parts {
    pub use crate::engine::fuzz::{
        Choices, DEFINITIONS, DIALECTS, NAMES, TYPES, compare, expression,
    };
}

/// For fuzzing: reads any bytes as settings. Mistakes have places in them.
pub fn fuzz_project(data: &[u8]) {
    let mut sources = SourceMap::default();
    let source = sources.add(FILE_NAME, String::from_utf8_lossy(data));
    let mut diagnostics = Diagnostics::default();
    let project = read(source, Path::new(""), &sources, &mut diagnostics);
    for diagnostic in &diagnostics {
        assert!(sources.holds(diagnostic.span), "{diagnostic:?}");
    }
    let span = Span::new(source, 0, 0);
    diagnostics.push(Diagnostic::warning(Code::GaugeDelta, span, ""));
    let levels = project.lints.unwrap_or_default();
    apply_levels(|_, code| levels.of(code), &mut diagnostics);
}

//! Instance domains that operators treat as the same: the file `indom.conf` of
//! PCP 7.
//!
//! Two domains are equivalent if elements of one line match both. The first
//! question reads the file.

#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;

use crate::escape;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};

use pmderive_runtime::bounded;
use pmderive_runtime::locks::lock;
use pmderive_runtime::model::InDom;
use pmderive_runtime::pcp_conf::PcpConf;

/// Largest file that is read, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The instance domains that operators treat as the same (indom.conf). Without
/// a file no two domains are equivalent.
#[derive(Debug, Default)]
pub struct EquivalentDomains {
    file: Option<PathBuf>,
    lines: OnceLock<Vec<Vec<Element>>>,
    warning: Mutex<Option<String>>,
    /// True if an expression has combined two different domains.
    is_consulted: AtomicBool,
}

/// A domain, or all domains of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Element {
    domain: u32,
    /// `None` stands for `*`.
    serial: Option<u32>,
}

impl Element {
    fn matches(self, indom: InDom) -> bool {
        self.domain == indom.domain() && self.serial.is_none_or(|serial| serial == indom.serial())
    }
}

/// A line that is not a list of instance domains.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct SyntaxError {
    /// Number of the line, from 1.
    pub line: usize,
    /// The mistake.
    pub message: String,
}

impl EquivalentDomains {
    /// The domains of a file, which is read on demand.
    pub fn from_file(file: impl Into<PathBuf>) -> EquivalentDomains {
        EquivalentDomains { file: Some(file.into()), ..EquivalentDomains::default() }
    }

    /// The domains of this machine's configuration. The file is the one that
    /// `PCP_INDOM_CONFIG` names (none if it is empty), or else `pcp/indom.conf`
    /// below `PCP_ETC_DIR`.
    pub fn of_this_machine() -> EquivalentDomains {
        match std::env::var_os("PCP_INDOM_CONFIG") {
            Some(file) if file.is_empty() => EquivalentDomains::default(),
            Some(file) => EquivalentDomains::from_file(file),
            None => {
                let folder = PcpConf::load().get("PCP_ETC_DIR").unwrap_or_default();
                EquivalentDomains::from_file(PathBuf::from(folder).join("pcp/indom.conf"))
            }
        }
    }

    /// True if instances of the two domains can be paired.
    pub fn are_equivalent(&self, a: InDom, b: InDom) -> bool {
        if a == b {
            return true;
        }
        self.is_consulted.store(true, Ordering::Relaxed);
        self.share_a_line(a, b)
    }

    /// The equivalent pairs of different domains, as positions in `domains`. It
    /// serves to compare sources, not expressions.
    pub(crate) fn pairs(&self, domains: &[InDom]) -> Vec<(u32, u32)> {
        if self.lines().is_empty() {
            return Vec::new();
        }
        let numbered = || (0u32..).zip(domains);
        let pairs = numbered().flat_map(|(a, left)| {
            let later = numbered().skip(a as usize + 1);
            later.filter(|(_, right)| self.share_a_line(*left, **right)).map(move |(b, _)| (a, b))
        });
        pairs.collect()
    }

    fn share_a_line(&self, a: InDom, b: InDom) -> bool {
        let matches = |line: &[Element], indom| line.iter().any(|element| element.matches(indom));
        self.lines().iter().any(|line| matches(line, a) && matches(line, b))
    }

    /// The reason why the file is ignored, once an expression depends on it.
    /// Given once.
    pub fn take_warning(&self) -> Option<String> {
        if !self.is_consulted.load(Ordering::Relaxed) {
            return None;
        }
        lock(&self.warning).take()
    }

    fn lines(&self) -> &[Vec<Element>] {
        self.lines.get_or_init(|| {
            let Some(file) = &self.file else { return Vec::new() };
            let problem = match fs::metadata(file) {
                // The file is optional.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Vec::new(),
                Err(error) => error.to_string(),
                Ok(found) if !found.is_file() => "not a regular file".to_string(),
                Ok(_) => match bounded::read_file(file, MAX_FILE_BYTES) {
                    Err(error) => error.to_string(),
                    Ok(bytes) => match parse(&String::from_utf8_lossy(&bytes)) {
                        Ok(lines) => return lines,
                        Err(error) => error.to_string(),
                    },
                },
            };
            let text = format!(
                "{}: {problem}; no two instance domains count as equivalent",
                escape::path(&file)
            );
            *lock(&self.warning) = Some(text);
            Vec::new()
        })
    }
}

/// The lists in a file. A single mistake discards all of them.
fn parse(text: &str) -> Result<Vec<Vec<Element>>, SyntaxError> {
    let mut lines = Vec::new();
    for (number, line) in (1..).zip(text.split_inclusive('\n')) {
        let error = |message: String| SyntaxError { line: number, message };
        let line = line
            .strip_suffix('\n')
            .ok_or_else(|| error("the last line does not end".to_string()))?;
        let list = line.split('#').next().unwrap_or_default();
        let words = list.split([' ', '\t']).filter(|word| !word.is_empty());
        let elements: Option<Vec<Element>> = words.clone().map(element).collect();
        let Some(elements) = elements else {
            let wrong = words.clone().find(|word| element(word).is_none()).unwrap_or_default();
            return Err(error(format!("`{wrong}` is not an instance domain such as 60.1 or 60.*")));
        };
        if !elements.is_empty() {
            lines.push(elements);
        }
    }
    Ok(lines)
}

fn element(word: &str) -> Option<Element> {
    let number = |text: &str, limit: u32| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|number| digits && *number <= limit)
    };
    let (domain, serial) = word.split_once('.')?;
    let serial = match serial {
        "*" => None,
        serial => Some(number(serial, 0x3f_ffff)?),
    };
    Some(Element { domain: number(domain, 510)?, serial })
}

#[cfg(test)]
mod tests {
    use super::fuzz::fuzz_equivalent_domains;
    use super::*;

    fn table(text: &str) -> EquivalentDomains {
        let table = EquivalentDomains::default();
        table.lines.set(parse(text).expect(text)).expect("a new table");
        table
    }

    #[test]
    fn elements_of_a_line_belong_together() {
        let table = table("# disks\n60.1 60.2\t70.* # and more\n\n 3.9 4.*\n");
        let row = |a, b| table.are_equivalent(InDom::new(a, b), InDom::new(60, 1));
        assert!(row(60, 1) && row(60, 2) && row(70, 0) && row(70, 4711));
        assert!(!row(60, 3) && !row(3, 9) && !row(4, 1));
        assert!(table.are_equivalent(InDom::new(70, 1), InDom::new(70, 2)));
        assert!(table.are_equivalent(InDom::new(5, 5), InDom::new(5, 5)));
        // Only domains of one line are equivalent.
        assert!(!table.are_equivalent(InDom::new(4, 1), InDom::new(70, 1)));
    }

    #[test]
    fn one_mistake_discards_everything() {
        for (text, line) in [
            ("60.1 60.2\nsixty.1 60.3\n", 2),
            ("60.1 60.2", 1),
            ("60.1,60.2\n", 1),
            ("511.1 60.2\n", 1),
            ("60.4194304\n", 1),
            ("60\n", 1),
            ("*.1\n", 1),
            ("60.1.2\n", 1),
            ("+6.1\n", 1),
        ] {
            assert_eq!(parse(text).map_err(|error| error.line), Err(line), "{text}");
        }
    }

    #[test]
    fn the_file_is_read_once_and_may_be_missing() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("indom.conf");
        let (a, b) = (InDom::new(1, 1), InDom::new(1, 2));
        let missing = EquivalentDomains::from_file(&file);
        assert!(!missing.are_equivalent(a, b) && missing.take_warning().is_none());
        fs::write(&file, "1.1 1.2\n").expect("a file");
        assert!(!missing.are_equivalent(a, b), "it is read once");
        assert!(EquivalentDomains::from_file(&file).are_equivalent(a, b));
        fs::write(&file, "1.1 1.2\n1.1 1,2\n").expect("a file");
        let wrong = EquivalentDomains::from_file(&file);
        assert!(!wrong.are_equivalent(a, b));
        let warning = wrong.take_warning().expect("a word on it");
        assert!(
            warning.contains("indom.conf: line 2: `1,2` is not an instance domain"),
            "{warning}"
        );
        assert!(wrong.take_warning().is_none());
    }

    #[test]
    fn whatever_the_bytes_are() {
        let seed = b"60.1 60.2\t70.* # x\n\n 3.9 4.*\n";
        for end in 0..seed.len() {
            fuzz_equivalent_domains(&seed[..end]);
            for bit in 0..8 {
                let mut bytes = seed.to_vec();
                bytes[end] ^= 1 << bit;
                fuzz_equivalent_domains(&bytes);
            }
        }
    }
}

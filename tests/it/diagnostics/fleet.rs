//! Definitions of a text, compiled against `tests/archives/own-fleet`, with all their
//! diagnostics.

use std::path::Path;

use pmderive::SourceMap;
use pmderive::diag::Diagnostics;
use pmderive::dialect::{Dialect, Language};
use pmderive::engine::{Backend, Engine, Registered, Registry};
use pmderive::lint::{self, Linted, apply_allowances, missing_instances, seen_whole};
use pmderive_runtime::archive::ArchiveContext;
use pmderive_runtime::model::{PmStatus, Pmid};
use pmderive_runtime::source::{Answer, Fact, MetadataSource, Question, SourceError};

/// The archive, with one more metric: `agent.status` has a name but no
/// descriptor, as with a pmcd whose agent is gone.
pub struct Fleet(ArchiveContext);

const STATUS: Pmid = Pmid(0x1234_5678);

impl Fleet {
    pub fn open() -> Fleet {
        let archive = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/archives/own-fleet");
        Fleet(ArchiveContext::open(&archive).expect("an archive of the repository"))
    }
}

impl MetadataSource for Fleet {
    fn ask(
        &mut self,
        questions: &[Question<'_>],
        answers: &mut Vec<Answer>,
    ) -> Result<(), SourceError> {
        let start = answers.len();
        self.0.ask(questions, answers)?;
        for (question, answer) in questions.iter().zip(&mut answers[start..]) {
            match question {
                Question::Pmid("agent.status") => *answer = Ok(Fact::Pmid(STATUS)),
                Question::Desc(STATUS) => *answer = Err(PmStatus::NOAGENT),
                _ => {}
            }
        }
        Ok(())
    }

    fn name(&self) -> String {
        self.0.name()
    }

    fn metadata_epoch(&self) -> u64 {
        self.0.metadata_epoch()
    }
}

/// What to compile, and how.
#[derive(Clone, Copy, Default)]
pub struct Asked<'a> {
    pub dialect: Dialect,
    pub extensions: bool,
    /// True for the lints, too.
    pub lint: bool,
    /// The one definition that is wanted, if not all are.
    pub wanted: Option<&'a str>,
}

/// What is found, and the names of the definitions that can be used.
pub struct Found {
    pub sources: SourceMap,
    pub diagnostics: Diagnostics,
    pub usable: Vec<String>,
}

/// Compiles a text that is called `name`.
pub fn compile(name: &str, text: &str, asked: Asked<'_>) -> Found {
    let mut fleet = Fleet::open();
    let (mut sources, mut diagnostics) = (SourceMap::default(), Diagnostics::default());
    let source = sources.add(name, text);
    let language = Language { dialect: asked.dialect, extensions: asked.extensions };
    let mut registry = Registry::new(language);
    registry.add_text(source, &sources, &mut diagnostics);
    let selection: Vec<&Registered> = registry.all();
    let examination = Engine::new(language, Backend::Interp)
        .examine(&registry, &selection, &mut fleet, &mut diagnostics)
        .expect("a readable archive");
    missing_instances(&selection, &examination, &sources, &mut fleet, &mut diagnostics)
        .expect("a readable archive");
    if asked.lint {
        let wanted: Vec<&Registered> =
            asked.wanted.into_iter().filter_map(|name| registry.get(name)).collect();
        let linted = Linted {
            registry: &registry,
            selection: &selection,
            wanted: &wanted,
            examination: Some(&examination),
            texts: &[source],
            sources: &sources,
        };
        lint::all(&linted, &mut diagnostics);
    }
    let mut linted = seen_whole(&selection, &examination);
    linted.retain(|_| asked.lint);
    apply_allowances([source], language, &linted, &sources, &mut diagnostics);
    let usable = selection
        .iter()
        .zip(&examination.expressions)
        .filter(|(_, examined)| examined.is_whole)
        .map(|(one, _)| one.name.to_string())
        .collect();
    Found { sources, diagnostics, usable }
}

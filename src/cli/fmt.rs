//! `pmderive fmt`: brings definition files into their canonical form.
//!
//! It reads files and replaces, prints or compares them; [`crate::format`] formats. A file is
//! replaced as a whole or not at all.

use std::io;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::dialect::{Dialect, Language};
use crate::escape;
use crate::format::{format_definitions, joined};
use crate::project::Folders;
use crate::report::findings::{Finding, Position, Report};
use crate::syntax::{
    MAX_FILE_BYTES, STANDARD_INPUT, Unreadable, is_passed_over, mark_of, may_be_rewritten,
    own_files_below, read_bounded, read_definition_file, text_of,
};
use crate::text::json::write_object;
use crate::text::patch;
use crate::text::stray;

use super::args::{FindingsFormat, LanguageArguments};
use super::exit_status::ExitStatus;
use super::findings::FindingsOutput;
use super::folders::NO_DEFINITION_FILE;
use super::messages::Messages;
use super::rewrite::{changed_meanwhile, replace};
use super::stop::Stop;
use super::terminal::Purpose;

/// Help text after the options.
const NOTES: &str = "\
A definition longer than 100 columns is broken into lines, which PCP before version 7 does not
understand. For such a PCP give `--compat 6.0`: every definition stays on one line.
Lines with mistakes stay as they are, and the exit status is 2; `pmderive check` shows more.";

/// Arguments of `fmt`.
#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub struct FmtArguments {
    /// Print what would change, and change nothing. The exit status is 1 if a file is
    /// not formatted, 2 if lines have mistakes.
    #[arg(long, alias = "diff", conflicts_with = "stdout")]
    check: bool,
    /// Choose the format of the findings of `--check`; `text` prints patches.
    #[arg(long, value_enum, default_value_t, requires = "check")]
    format: FindingsFormat,
    /// Print the formatted text instead of changing files.
    #[arg(long)]
    stdout: bool,
    /// Language of the files.
    #[command(flatten)]
    language: LanguageArguments,
    /// Files to format. A directory stands for all files below it that end in `.conf`, `.cfg`,
    /// `.cnf` or `.derived`, `-` for standard input, which is printed.
    #[arg(required = true, value_name = "FILE|DIRECTORY|-")]
    files: Vec<PathBuf>,
}

/// Source of a text.
enum Input {
    StandardInput,
    File(PathBuf),
}

/// Runs the command.
pub fn run(arguments: &FmtArguments, messages: &mut Messages) -> Result<ExitStatus, Stop> {
    let mut outcome = ExitStatus::Good;
    let mut findings = FindingsOutput::new(arguments.format);
    let mut folders = Folders::default();
    for path in &arguments.files {
        for input in inputs(path) {
            let done = input.and_then(|input| {
                let text = input.read(arguments.language.chosen().dialect)?;
                Ok((input, text))
            });
            outcome = outcome.max(match done {
                Ok((input, text)) => {
                    let language = &arguments.language;
                    let language = language.of_file(input.path(), &mut folders, messages)?;
                    format(&input, text, language, arguments, &mut findings.report, messages)?
                }
                Err(file) => {
                    findings.unreadable(&file, messages);
                    ExitStatus::Mistake
                }
            });
        }
    }
    if arguments.format == FindingsFormat::Json {
        let mut out = String::new();
        findings.report.findings.iter().for_each(|finding| write_json(&mut out, finding));
        print(&out, messages)?;
    }
    findings.end(messages)?;
    Ok(outcome)
}

fn write_json(out: &mut String, finding: &Finding) {
    write_object(out, |object| {
        object.text("kind", &finding.kind);
        object.text("file", &finding.file);
        object.value("line", finding.start.line);
        object.text("message", &finding.message);
    });
    out.push('\n');
}

/// The number of the first line in which two texts differ.
fn first_difference(one: &str, other: &str) -> usize {
    let same = one.lines().zip(other.lines()).take_while(|(one, other)| one == other).count();
    (same + 1).min(one.lines().count().max(1))
}

/// The inputs that an argument stands for.
fn inputs(path: &Path) -> Vec<Result<Input, Unreadable>> {
    if path == Path::new("-") {
        return vec![Ok(Input::StandardInput)];
    }
    let mut files = own_files_below(path, |entry| {
        !is_passed_over(entry) && (entry.is_dir() && !entry.is_symlink() || may_be_rewritten(entry))
    });
    if files.is_empty() {
        let reason = NO_DEFINITION_FILE.to_owned();
        files.push(Err(Unreadable { path: path.to_owned(), reason }));
    }
    files.into_iter().map(|file| file.map(Input::File)).collect()
}

impl Input {
    /// The path whose folder has the settings.
    fn path(&self) -> &Path {
        match self {
            Input::StandardInput => Path::new("."),
            Input::File(path) => path,
        }
    }

    fn name(&self) -> String {
        match self {
            Input::StandardInput => STANDARD_INPUT.to_owned(),
            Input::File(path) => escape::path(&path).into_owned(),
        }
    }

    /// Reads the text, and the byte order mark before it.
    fn read(&self, dialect: Dialect) -> Result<(String, &'static str), Unreadable> {
        let bytes = match self {
            Input::File(path) => read_definition_file(path),
            Input::StandardInput => read_bounded(io::stdin().lock(), MAX_FILE_BYTES),
        };
        let text = bytes.and_then(|bytes| match dialect {
            Dialect::Fixed => Ok((text_of(&bytes)?.into_owned(), mark_of(&bytes))),
            // To libpcp the mark is text as well.
            Dialect::Pcp6_0 | Dialect::Pcp7_2 => Ok((stray::decoded(&bytes).into_owned(), "")),
        });
        text.map_err(|reason| Unreadable { path: self.name().into(), reason })
    }
}

fn format(
    input: &Input,
    (text, mark): (String, &str),
    language: Language,
    arguments: &FmtArguments,
    report: &mut Report,
    messages: &Messages,
) -> Result<ExitStatus, Stop> {
    let lines = match language.dialect {
        Dialect::Pcp6_0 => joined(&text, language),
        Dialect::Pcp7_2 | Dialect::Fixed => (&*text).into(),
    };
    let mut formatted = format_definitions(&lines, language);
    // The mark before the text stays.
    let text = mark.to_owned() + &text;
    formatted.text.insert_str(0, mark);
    let name = input.name();
    let mut outcome = ExitStatus::Good;
    if formatted.mistakes > 0 {
        let lines =
            if formatted.mistakes == 1 { "line has a mistake" } else { "lines have mistakes" };
        let count = formatted.mistakes;
        let message = format!("{count} {lines} and stayed as before; `pmderive check` shows more");
        match arguments.format {
            FindingsFormat::Text => messages.error(&format_args!("{name}: {message}")),
            _ => report.findings.push(Finding::of_file("mistakes", &name, message)),
        }
        outcome = ExitStatus::Mistake;
    }
    let is_same = formatted.text == text;
    if arguments.check {
        report.files.push(name.clone());
        if is_same {
            return Ok(outcome);
        }
        if arguments.format != FindingsFormat::Text {
            let line = first_difference(&text, &formatted.text);
            let message = "not in its usual form; `pmderive fmt` brings it there".to_owned();
            let start = Position { line, column: 1 };
            let finding = Finding::of_file("format", &name, message);
            report.findings.push(Finding { start, end: start, ..finding });
            return Ok(outcome.max(ExitStatus::Failed));
        }
        let name = escape::line(name.as_bytes());
        print(&patch::unified(&name, &text, &formatted.text), messages)?;
        return Ok(outcome.max(ExitStatus::Failed));
    }
    match input {
        Input::File(path) if !arguments.stdout => {
            if messages.are_verbose() {
                let done = if is_same { "unchanged" } else { "formatted" };
                messages.note(&format_args!("{name}: {done}"));
            }
            if is_same {
                return Ok(outcome);
            }
            let [before, after] = [&text, &formatted.text].map(|text| stray::encoded(text));
            match replace(path, &before, &after) {
                Ok(true) => {}
                Ok(false) => {
                    messages.error(&changed_meanwhile(&name));
                    return Ok(ExitStatus::SourceFailed);
                }
                Err(error) => {
                    messages.error(&format_args!("cannot write {name}: {error}"));
                    return Ok(ExitStatus::SourceFailed);
                }
            }
        }
        _ => print(&formatted.text, messages)?,
    }
    Ok(outcome)
}

/// Prints text for programs: a definition file, or a patch of one.
fn print(text: &str, messages: &Messages) -> Result<(), Stop> {
    messages.output(Purpose::Exact).print(stray::encoded(text))
}

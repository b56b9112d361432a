//! `pmderive explain` shows what expressions and definitions are compiled to, and why. It also
//! explains the codes of diagnostics. Definitions over a fleet come first, then the definitions
//! that hosts compute for them.

use std::collections::HashSet;
use std::fmt::Write as _;

use clap::{Args, ValueEnum};
use pmderive_runtime::program::DefinitionKey;
use pmderive_runtime::source::MetadataSource;

use crate::diag::json::to_json;
use crate::diag::{Code, Diagnostic, Diagnostics, EXPRESSION, page};
use crate::dialect::Language;
use crate::engine::{Backend, Engine, Registered};
use crate::explain::json::write_definition;
use crate::explain::text::{definitions_to_text, kernel_to_text, to_text};
use crate::explain::{Explained, ExplainedKernel, ExplainedProgram, Explanation, Fate, explain};
use crate::syntax::parse_expr;
use crate::text::SourceId;
use crate::text::json::{Object, write_object};

use super::args::{DefinitionArguments, MetadataArguments, SourceArguments};
use super::definitions::CommandDefinitions;
use super::exit_status::ExitStatus;
use super::fleet::{ExplainedFleet, FleetArguments};
use super::help::render::render;
use super::messages::Messages;
use super::positional::refuse_files;
use super::source::open_metadata;
use super::stop::Stop;
use super::terminal::{self, Purpose};

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub struct ExplainArguments {
    /// Where metrics come from.
    #[command(flatten)]
    pub source: SourceArguments,
    /// Metadata in place of a source.
    #[command(flatten)]
    pub metadata: MetadataArguments,
    /// Definitions.
    #[command(flatten)]
    pub definitions: DefinitionArguments,
    /// Definitions over a fleet.
    #[command(flatten)]
    pub fleet: FleetArguments,
    /// Choose the form of the output.
    #[arg(long, value_enum, default_value_t)]
    pub format: ExplainFormat,
    /// Show kernels as Cranelift IR.
    #[arg(long)]
    pub clif: bool,
    /// Show kernels as machine code.
    #[arg(long)]
    pub asm: bool,
    /// Explain the code of a diagnostic, such as PMD0203 or 203; without a code, list
    /// all codes.
    #[arg(
        long, value_name = "CODE", num_args = 0..=1, value_parser = code,
        conflicts_with_all = ["metrics", "configs", "clif", "asm"]
    )]
    #[allow(clippy::option_option, reason = "an option whose value may be left out")]
    pub code: Option<Option<Code>>,
    /// What to explain: derived metrics, expressions, or codes of diagnostics (PMD0202).
    /// Without any it is all that the files of -c define.
    #[arg(value_name = "METRIC|EXPRESSION|CODE")]
    pub metrics: Vec<String>,
}

/// Forms of an explanation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ExplainFormat {
    /// For people.
    #[default]
    Text,
    /// One object.
    Json,
}

impl ExplainArguments {
    /// Reads the settings in the folders of the definitions, unless codes are explained.
    pub fn settle(&mut self, messages: &mut Messages) -> Result<(), Stop> {
        if self.code.is_some() || matches!(named_codes(&self.metrics), Ok(Some(_)) | Err(_)) {
            return Ok(());
        }
        self.fleet.add(self.definitions.settle(&[], messages)?);
        Ok(())
    }

    /// True if there is nothing to explain.
    fn is_empty(&self) -> bool {
        self.definitions.configs.is_empty()
            && self.metrics.is_empty()
            && !self.fleet.has_definitions()
    }
}

fn code(text: &str) -> Result<Code, String> {
    text.parse().map_err(|error: <Code as std::str::FromStr>::Err| error.to_string())
}

/// The codes among the arguments, if the first argument is a code such as `PMD0202`, or its
/// number alone: the constant 202 needs no explanation.
///
/// # Errors
/// An argument has the form of a code but is none, or is no code beside others.
fn named_codes(arguments: &[String]) -> Result<Option<Vec<Code>>, Stop> {
    let is_code = |text: &String| {
        let digits = text.strip_prefix("PMD").or_else(|| text.strip_prefix("pmd"));
        let has_form = digits.is_some_and(|digits| {
            digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_digit())
        });
        has_form || text.parse::<Code>().is_ok()
    };
    if !arguments.first().is_some_and(is_code) {
        return Ok(None);
    }
    if let Some(other) = arguments.iter().find(|text| !is_code(text)) {
        return Err(Stop::Usage(format!(
            "`{other}` is no code of a diagnostic, and codes are explained by themselves"
        )));
    }
    let codes: Result<Vec<Code>, String> = arguments.iter().map(|text| code(text)).collect();
    codes.map(Some).map_err(Stop::Usage)
}

/// Prints the pages of codes, as text like `help` or as JSON.
fn show_pages(
    codes: &[Code],
    format: ExplainFormat,
    messages: &Messages,
) -> Result<ExitStatus, Stop> {
    if format == ExplainFormat::Json {
        let mut out = String::new();
        write_object(&mut out, |object| object.list("pages", codes, write_page));
        messages.output(Purpose::Exact).print(out + "\n")?;
        return Ok(ExitStatus::Good);
    }
    let is_coloured = messages.is_output_coloured();
    let shown = |code: &Code| render(page(*code), terminal::width(), is_coloured);
    let pages: Vec<String> = codes.iter().map(shown).collect();
    messages.own_output().print(pages.join("\n"))?;
    Ok(ExitStatus::Good)
}

fn write_page(out: &mut String, code: &Code) {
    write_object(out, |object| {
        object.text("code", &code.to_string());
        object.text("page", page(*code));
    });
}

/// Explains codes, if the arguments name any.
fn explain_codes(
    arguments: &ExplainArguments,
    messages: &Messages,
) -> Result<Option<ExitStatus>, Stop> {
    let codes = match arguments.code {
        Some(Some(code)) => Some(vec![code]),
        Some(None) if arguments.format == ExplainFormat::Json => Some(Code::ALL.to_vec()),
        Some(None) => {
            messages.output(Purpose::Text).print(codes())?;
            return Ok(Some(ExitStatus::Good));
        }
        None => named_codes(&arguments.metrics)?,
    };
    codes.map(|codes| show_pages(&codes, arguments.format, messages)).transpose()
}

/// Runs the command.
pub fn run(arguments: &ExplainArguments, messages: &mut Messages) -> Result<ExitStatus, Stop> {
    if let Some(status) = explain_codes(arguments, messages)? {
        return Ok(status);
    }
    if arguments.is_empty() {
        return Err(Stop::Usage(
            "nothing to explain: give an expression, a definition file (-c FILE) or a code \
             such as PMD0202"
                .to_owned(),
        ));
    }
    let definition_arguments = arguments.fleet.definitions(&arguments.definitions);
    let language = definition_arguments.language();
    let mut definitions = CommandDefinitions::read(&definition_arguments);
    refuse_files(&arguments.metrics, &definitions.registry)?;
    match arguments.metrics.is_empty() {
        true => definitions.select_all(),
        false => definitions.select(&arguments.metrics),
    }
    definitions.warn_of_system_mistakes(messages);
    let mut diagnostics = std::mem::take(&mut definitions.diagnostics);
    let broken = not_understood(&definitions, language);
    let fleet = ExplainedFleet::read(
        &arguments.fleet,
        arguments.metrics.is_empty(),
        &mut definitions,
        &mut diagnostics,
    )?;
    let metadata = definition_arguments.metadata(&arguments.metadata, &arguments.source)?;
    let dialect = language.dialect;
    let mut source: Box<dyn MetadataSource> =
        match open_metadata(&arguments.source, metadata.as_deref(), dialect, messages)? {
            Some(source) => source,
            None => Box::new(arguments.source.open(dialect, messages)?),
        };
    let engine = Engine::of_this_machine(language, Backend::Interp);
    let mut selection = [definitions.selection(), broken.iter().collect()].concat();
    let (whole, chosen) = (selection.len() - broken.len(), selection.len());
    let registry = &definitions.registry;
    let over_fleet = fleet.explain(&mut selection, registry, &mut *source, &mut diagnostics)?;
    let mut explanation = explain(&engine, registry, &selection, &mut *source, &mut diagnostics)?;
    for (at, one) in explanation.definitions.iter_mut().enumerate() {
        one.is_operand = at >= chosen;
        // It is explained as it might be meant; nothing evaluates it.
        if (whole..chosen).contains(&at) && matches!(one.fate, Fate::Output(_)) {
            one.fate = Fate::Refused;
        }
    }
    messages.warnings_of(&engine);
    let has_errors = diagnostics.errors() > 0;
    print(&explanation, &over_fleet, arguments, diagnostics, &definitions, messages)?;
    Ok(if has_errors { ExitStatus::Mistake } else { ExitStatus::Good })
}

/// Prints the explanations of definitions of hosts and over the fleet, with their diagnostics.
fn print(
    explanation: &Explanation,
    over_fleet: &[Explained],
    arguments: &ExplainArguments,
    mut diagnostics: Diagnostics,
    definitions: &CommandDefinitions,
    messages: &mut Messages,
) -> Result<(), Stop> {
    let (out, purpose) = match arguments.format {
        ExplainFormat::Text => {
            let out = match over_fleet {
                [] => String::new(),
                _ => definitions_to_text(over_fleet) + "\n",
            };
            (out + &text(explanation, arguments), Purpose::Text)
        }
        ExplainFormat::Json => {
            let out = json(explanation, over_fleet, arguments, &mut diagnostics, definitions);
            (out, Purpose::Exact)
        }
    };
    messages.output(purpose).print(&out)?;
    if arguments.format == ExplainFormat::Text {
        let mut codes: Vec<Code> = diagnostics.iter().map(|one| one.code).collect();
        codes.sort_unstable();
        codes.dedup();
        messages.diagnostics(diagnostics, &definitions.sources);
        for code in codes {
            messages.note(&format_args!("more about this: pmderive explain {code}"));
        }
    }
    Ok(())
}

/// The parts that were parsed of expressions with syntax errors.
fn not_understood(definitions: &CommandDefinitions, language: Language) -> Vec<Registered> {
    let selected: HashSet<SourceId> =
        definitions.selection().iter().map(|one| one.name_span.source).collect();
    let texts = (0..definitions.sources.next_id().0).map(SourceId);
    let broken = texts.filter(|source| {
        &*definitions.sources.get(*source).name == EXPRESSION && !selected.contains(source)
    });
    let parsed = broken.map(|source| {
        let text = &definitions.sources.get(source).text;
        // The diagnostics exist already.
        let parsed = parse_expr(source, text, 0, language, &mut Diagnostics::default());
        Registered {
            name: text.trim().into(),
            name_span: definitions.sources.whole(source),
            is_named: false,
            expr: parsed.expr,
            key: DefinitionKey(0),
            pmid: None,
        }
    });
    parsed.collect()
}

/// All codes with the headlines of their pages.
fn codes() -> String {
    let line = |code: &Code| {
        let headline = page(*code).lines().next().unwrap_or_default();
        format!("{}\n", headline.trim_start_matches(['#', ' ']))
    };
    Code::ALL.iter().map(line).collect()
}

/// The wanted listings of a kernel's native code, with their names.
fn native(kernel: &ExplainedKernel, arguments: &ExplainArguments) -> Vec<(&'static str, String)> {
    let (clif, assembly) = listings(kernel);
    let mut forms = Vec::new();
    if arguments.clif {
        forms.push(("clif", clif));
    }
    if arguments.asm {
        forms.push(("asm", assembly));
    }
    forms
}

/// A kernel as Cranelift IR and as machine code, or the reason for having none.
#[cfg(feature = "jit")]
fn listings(kernel: &ExplainedKernel) -> (String, String) {
    match crate::jit::listing(&kernel.ir) {
        Ok(Some(listing)) => {
            let assembly = format!("; {} bytes\n{}", listing.code.len(), listing.assembly);
            (listing.clif, assembly)
        }
        Ok(None) => {
            let why = "; this kernel is never native code".to_owned();
            (why.clone(), why)
        }
        Err(error) => {
            let why = format!("; {error}");
            (why.clone(), why)
        }
    }
}

/// A kernel as Cranelift IR and as machine code, or the reason for having none.
#[cfg(not(feature = "jit"))]
fn listings(_: &ExplainedKernel) -> (String, String) {
    let why = "; this program was built without native code".to_owned();
    (why.clone(), why)
}

fn text(explanation: &Explanation, arguments: &ExplainArguments) -> String {
    let mut out = to_text(explanation);
    let Some(program) = &explanation.program else { return out };
    if !program.kernels.is_empty() {
        out.push_str("\nKernels\n");
    }
    for kernel in &program.kernels {
        out.push_str(&kernel_to_text(kernel));
        for (_, form) in native(kernel, arguments) {
            out.push('\n');
            for line in form.lines() {
                let _ = writeln!(out, "{}", format!("      {line}").trim_end());
            }
        }
    }
    out
}

fn json(
    explanation: &Explanation,
    fleet: &[Explained],
    arguments: &ExplainArguments,
    diagnostics: &mut Diagnostics,
    definitions: &CommandDefinitions,
) -> String {
    diagnostics.change_each(Diagnostic::name_option);
    diagnostics.sort();
    let mut out = String::new();
    write_object(&mut out, |object| {
        if !fleet.is_empty() {
            object.list("fleet", fleet, write_definition);
        }
        object.list("definitions", &explanation.definitions, write_definition);
        if let Some(program) = &explanation.program {
            object.object("program", |object| {
                add_program(object, program);
                object.objects("kernels", &program.kernels, |object, kernel| {
                    object.value("id", kernel.id);
                    object.text("ir", &kernel.ir.to_string());
                    for (name, form) in native(kernel, arguments) {
                        object.text(name, &form);
                    }
                });
            });
        }
        object.list("diagnostics", &*diagnostics, |out, one| {
            out.push_str(&to_json(one, &definitions.sources));
        });
    });
    out.push('\n');
    out
}

/// Adds the members of a program, except its kernels.
pub(crate) fn add_program(object: &mut Object<'_>, program: &ExplainedProgram) {
    object.objects("metrics", &program.inputs, |object, input| {
        object.text("name", &input.name);
        object.text("pmid", &input.pmid.to_string());
        object.text("type", &input.value_type.to_string());
        object.value("set", input.is_set);
        object.value("mentioned_only", input.is_mentioned_only);
    });
    object.objects("operations", &program.nodes, |object, node| {
        object.value("id", node.id.0);
        object.text("text", &node.text);
        object.text("type", &node.value_type.to_string());
        object.value("set", node.is_set);
        object.texts("users", &node.users);
        object.text("place", &node.place);
    });
    object.object("kept", |kept| {
        program.kept.iter().for_each(|(name, words)| kept.text(name, words));
    });
    object.objects("steps", &program.steps, |object, step| {
        object.value("level", step.level);
        object.value("operation", step.output.0);
        object.value("kernel", step.kernel);
        object.texts("operands", &step.operands);
        object.texts("constants", &step.constants);
    });
    object.texts("outputs", &program.outputs);
}

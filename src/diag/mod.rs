//! Diagnostics: the mistakes in a definition, as data.
//!
//! A stage that finds a mistake makes a [`Diagnostic`] and goes on. `render`,
//! `json` and `pcp` show it.

mod code;
pub mod fixes;
pub mod json;
pub mod pcp;
#[cfg(feature = "render")]
pub mod render;

pub use code::{Code, UnknownCode, page};

use std::borrow::Cow;
use std::fmt;

use crate::escape;
use crate::text::{SourceMap, Span, stray};

/// A text of a diagnostic or of a [`SourceMap`] on one line, without characters that a
/// terminal would obey. Bytes that are not UTF-8 become `\xNN`, and tabs blanks.
///
/// ```
/// assert_eq!(pmderive::diag::printable("a\x1b[31mRED"), "a\\x1b[31mRED");
/// ```
pub fn printable(text: &str) -> String {
    escape::line(&bytes_of(&text.replace('\t', " "))).into_owned()
}

/// The bytes of a definition, for a text of a diagnostic or of a [`SourceMap`]. Definitions need
/// not be UTF-8. In texts, a private character of Unicode's last plane, U+10FF80 to
/// U+10FFFF, stands for each byte that is not.
///
/// ```
/// use pmderive::diag::bytes_of;
///
/// assert_eq!(*bytes_of("caf\u{10ffe9}"), *b"caf\xe9");
/// assert_eq!(*bytes_of("caf\u{e9}"), *"caf\u{e9}".as_bytes());
/// ```
pub fn bytes_of(text: &str) -> Cow<'_, [u8]> {
    stray::encoded(text)
}

/// The name of an expression without a name, and of its text.
pub const EXPRESSION: &str = "<expression>";

/// The words before `extensions` where advice says that they have to be allowed.
const BEFORE_EXTENSIONS: [&str; 4] = ["with", "needs", "need", "use"];

/// The severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Severity {
    /// A fact worth knowing; the metric works.
    Warning,
    /// The metric cannot be used.
    Error,
}

impl Severity {
    /// The severity in a word: `error` or `warning`.
    pub const fn word(self) -> &'static str {
        match self {
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// The severity in a word.
impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// One mistake: a headline, the place, facts about its surroundings, and advice.
///
/// ```
/// use pmderive::diag::Severity;
/// use pmderive::Definitions;
///
/// let definitions = Definitions::default();
/// let refused = definitions.register("my.load", "sum(kernel.all.load").unwrap_err();
/// let mistake = refused.diagnostics.iter().next().expect("a mistake");
/// assert_eq!(mistake.severity, Severity::Error);
/// println!("{}", mistake.in_line(&refused.sources));
/// ```
///
/// Its texts may have parts of the definition, unchanged: control characters, and a private
/// character for each byte that is not UTF-8. [`Diagnostic::in_line`] escapes them, and
/// [`printable`] does so for a single text. [`bytes_of`] gives the definition's bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Diagnostic {
    /// Stable code.
    pub code: Code,
    /// Severity.
    pub severity: Severity,
    /// The mistake, in terms of the language, without the text around it. Not escaped; see
    /// [`printable`].
    pub message: String,
    /// The wrong token or expression.
    pub span: Span,
    /// Name of the derived metric, where there is one. Not escaped.
    pub metric: Option<Box<str>>,
    /// Facts about places in the text. The first may repeat `span` and name the
    /// mistake there. Labels of operands give type, semantics, units and instance
    /// domain.
    pub labels: Vec<Label>,
    /// Advice, if there is any. What needs extensions is allowed by
    /// [`Language::extensions`](crate::Language::extensions).
    pub help: Option<String>,
    /// An edit that would fix it.
    pub fix: Option<Fix>,
    /// Explanations of the wrong properties of operands.
    pub derivations: Vec<Derivation>,
    /// True for a mistake that only follows from the one before it. Only
    /// libpcp's words for it are shown.
    pub is_consequence: bool,
    /// libpcp's words: the whole message for a mistake in a text, `NODE: TEXT`
    /// for a semantic error. [`pcp::render`] gives libpcp's output.
    pub pcp: Option<Box<str>>,
}

/// A fact about a place.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Label {
    /// The place.
    pub span: Span,
    /// The fact. Not escaped; see [`printable`].
    pub text: String,
}

/// An edit that replaces the text in `span`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Fix {
    /// The place to replace.
    pub span: Span,
    /// The new text.
    pub text: String,
    /// True if nothing else can be meant, and the edit may be applied unseen.
    pub is_certain: bool,
}

/// The origin of a property of a value, from the metrics up.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Derivation {
    /// The value.
    pub span: Span,
    /// The value's role in the mistake: `left operand` and the like.
    pub subject: String,
    /// The derived property.
    pub property: Property,
    /// The nodes that change something, each after its operands.
    pub steps: Vec<Step>,
}

/// Properties that can be derived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Property {
    /// Type of the values.
    Type,
    /// Semantics.
    Semantics,
    /// Dimension and scale.
    Units,
    /// Instance domain.
    Instances,
}

impl Property {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Property::Type => "type",
            Property::Semantics => "semantics",
            Property::Units => "units",
            Property::Instances => "instances",
        }
    }
}

/// The word for it.
impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// One node of a derivation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Step {
    /// The node.
    pub span: Span,
    /// The property there.
    pub value: String,
    /// The reason: the rule that gave it.
    pub reason: String,
}

impl Diagnostic {
    /// An error without labels yet.
    pub fn error(code: Code, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            code,
            severity: Severity::Error,
            message: message.into(),
            span,
            metric: None,
            labels: Vec::new(),
            help: None,
            fix: None,
            derivations: Vec::new(),
            is_consequence: false,
            pcp: None,
        }
    }

    /// A warning, with nothing but its place and message.
    pub fn warning(code: Code, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(code, span, message) }
    }

    /// The diagnostic in one line, with its place in `sources`:
    /// `my.conf:3:12: error[PMD0100]: unknown metric name (did you mean ...)`.
    pub fn in_line(&self, sources: &SourceMap) -> impl fmt::Display {
        let place = sources.place(self.span).map(|place| format!("{place}: ")).unwrap_or_default();
        let help = self.help.as_deref().map(|help| format!(" ({help})")).unwrap_or_default();
        let Diagnostic { severity, code, message, .. } = self;
        printable(&format!("{place}{severity}[{code}]: {message}{help}"))
    }

    /// Adds a fact about a place.
    #[must_use]
    pub fn label(mut self, span: Span, text: impl Into<String>) -> Diagnostic {
        // A diagnostic has few labels, but there may be very many diagnostics.
        self.labels.reserve_exact(1);
        self.labels.push(Label { span, text: text.into() });
        self
    }

    /// Adds advice.
    #[must_use]
    pub fn help(mut self, text: impl Into<String>) -> Diagnostic {
        self.help = Some(text.into());
        self
    }

    /// Asks whether `word` was meant in the place of a span, with an edit that
    /// puts it there. Without a word, the help is `otherwise`.
    #[must_use]
    pub fn meant(self, span: Span, word: Option<&str>, otherwise: impl Into<String>) -> Diagnostic {
        match word {
            Some(word) => self.help(format!("did you mean `{word}`?")).guess(span, word),
            None => self.help(otherwise),
        }
    }

    /// Names the definition that it is about.
    #[must_use]
    pub fn of_metric(mut self, name: &str) -> Diagnostic {
        self.metric = Some(name.into());
        self
    }

    /// Adds the origin of an operand's wrong property, if there is one.
    #[must_use]
    pub fn derived(mut self, derivation: Option<Derivation>) -> Diagnostic {
        self.derivations.extend(derivation);
        self
    }

    /// Adds libpcp's own words.
    #[must_use]
    pub fn pcp(mut self, text: impl Into<Box<str>>) -> Diagnostic {
        self.pcp = Some(text.into());
        self
    }

    /// Removes from advice that extensions are needed, where they are already allowed.
    pub(crate) fn without_extensions(&mut self) {
        let Some(help) = self.help.as_mut().filter(|help| help.contains("extensions")) else {
            return;
        };
        for words in [", which needs extensions", ", with extensions", "with extensions "] {
            *help = help.replace(words, "");
        }
    }

    /// Puts the name of the switch that allows extensions into advice. A program has
    /// [`Language::extensions`](crate::Language::extensions), so advice has no name at first.
    fn name_switch(&mut self, switch: &str) {
        let texts = self.help.iter_mut().chain(self.labels.iter_mut().map(|label| &mut label.text));
        for text in texts.filter(|text| text.contains(" extensions")) {
            for before in BEFORE_EXTENSIONS {
                let named = format!("{before} {switch}");
                *text = text.replace(&format!("{before} extensions"), &named);
            }
        }
    }

    /// Names the option of the command line that allows extensions.
    #[cfg(feature = "cli")]
    pub(crate) fn name_option(&mut self) {
        self.name_switch("--extensions");
    }

    /// Names the key that allows extensions in a file with keys.
    pub(crate) fn name_key(&mut self) {
        self.name_switch("`extensions = true`");
    }

    /// Lets `visit` change each of its places.
    pub(crate) fn each_span(&mut self, visit: &mut impl FnMut(&mut Span)) {
        visit(&mut self.span);
        self.labels.iter_mut().for_each(|label| visit(&mut label.span));
        self.fix.iter_mut().for_each(|fix| visit(&mut fix.span));
        for derivation in &mut self.derivations {
            visit(&mut derivation.span);
            derivation.steps.iter_mut().for_each(|step| visit(&mut step.span));
        }
    }

    /// Adds an edit that certainly fixes it.
    #[must_use]
    pub fn fix(self, span: Span, text: impl Into<String>) -> Diagnostic {
        self.edit(Fix { span, text: text.into(), is_certain: true })
    }

    /// Adds an edit that fixes it if the guess is right.
    #[must_use]
    pub fn guess(self, span: Span, text: impl Into<String>) -> Diagnostic {
        self.edit(Fix { span, text: text.into(), is_certain: false })
    }

    /// Adds an edit.
    pub(crate) fn edit(self, fix: Fix) -> Diagnostic {
        Diagnostic { fix: Some(fix), ..self }
    }
}

/// All diagnostics of a task, in the order of finding. Functions that may find
/// several mistakes add to one.
///
/// ```
/// use pmderive::{Diagnostics, Dialect, Registry, SourceMap};
///
/// let mut registry = Registry::new(Dialect::Fixed);
/// let (mut sources, mut diagnostics) = (SourceMap::default(), Diagnostics::default());
/// let source = sources.add("my.conf", "my.sum = a.b +\nmy.count = count(\n");
/// registry.add_text(source, &sources, &mut diagnostics);
/// assert!(diagnostics.errors() > 0);
/// for diagnostic in diagnostics.iter() {
///     println!("{}", diagnostic.message);
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
    /// Largest number to keep.
    most: Option<usize>,
}

impl Diagnostics {
    /// An empty list.
    pub const fn none() -> Diagnostics {
        Diagnostics { list: Vec::new(), most: None }
    }

    /// An empty list that keeps only the first `most` diagnostics.
    pub(crate) const fn at_most(most: usize) -> Diagnostics {
        Diagnostics { list: Vec::new(), most: Some(most) }
    }

    /// True if the list accepts no further diagnostic.
    pub(crate) fn is_full(&self) -> bool {
        self.most.is_some_and(|most| self.list.len() >= most)
    }

    /// Adds a diagnostic, unless the list is full.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        if self.is_full() {
            return;
        }
        // Each of very many definitions may have a list of one.
        if self.list.is_empty() {
            self.list.reserve_exact(1);
        }
        self.list.push(diagnostic);
    }

    /// All of them.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.list.iter()
    }

    /// Number of diagnostics.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// True if there are no diagnostics.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Number of errors among them.
    pub fn errors(&self) -> usize {
        self.list.iter().filter(|diagnostic| diagnostic.severity == Severity::Error).count()
    }

    /// Removes all but the first `count`.
    pub fn truncate(&mut self, count: usize) {
        self.list.truncate(count);
    }

    /// Removes those for which `is_wanted` is false.
    pub fn retain(&mut self, is_wanted: impl FnMut(&Diagnostic) -> bool) {
        self.list.retain(is_wanted);
    }

    /// Removes all but `count`: first warnings go, and among equals the later
    /// ones.
    pub fn keep_worst(&mut self, count: usize) {
        let mut errors = count;
        let mut warnings = count.saturating_sub(self.errors());
        self.retain(|one| {
            let left = match one.severity {
                Severity::Error => &mut errors,
                Severity::Warning => &mut warnings,
            };
            let is_kept = *left > 0;
            *left = left.saturating_sub(1);
            is_kept
        });
    }

    /// Removes those that only follow from others.
    pub fn without_consequences(mut self) -> Diagnostics {
        self.list.retain(|one| !one.is_consequence);
        self
    }

    /// The diagnostics from `first` on.
    pub fn since_mut(&mut self, first: usize) -> &mut [Diagnostic] {
        self.list.get_mut(first..).unwrap_or_default()
    }

    /// Changes each diagnostic.
    pub(crate) fn change_each(&mut self, change: impl FnMut(&mut Diagnostic)) {
        self.list.iter_mut().for_each(change);
    }

    /// Sets the metric of the diagnostics from `first` on.
    pub fn name_metric(&mut self, first: usize, metric: &str) {
        for diagnostic in self.list.iter_mut().skip(first) {
            diagnostic.metric.get_or_insert_with(|| metric.into());
        }
    }

    /// Sorts by text, then by place. Diagnostics of one place keep their order.
    pub fn sort(&mut self) {
        self.list.sort_by_key(|diagnostic| {
            (diagnostic.span.source, diagnostic.span.start, diagnostic.span.end)
        });
    }
}

impl IntoIterator for Diagnostics {
    type Item = Diagnostic;
    type IntoIter = std::vec::IntoIter<Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter()
    }
}

impl<'d> IntoIterator for &'d Diagnostics {
    type Item = &'d Diagnostic;
    type IntoIter = std::slice::Iter<'d, Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.iter()
    }
}

impl Extend<Diagnostic> for Diagnostics {
    fn extend<T: IntoIterator<Item = Diagnostic>>(&mut self, diagnostics: T) {
        diagnostics.into_iter().for_each(|one| self.push(one));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(feature = "cli")]
    fn advice_names_the_switch_that_its_reader_has() {
        let text = "did you mean `abs(a)`, which needs extensions?";
        let at = Span::new(SourceMap::default().add("text", "ab(a)"), 0, 2);
        let mistake = || Diagnostic::error(Code::UnknownFunction, at, "no `ab`").help(text);
        let told = |name: fn(&mut Diagnostic)| {
            let mut mistake = mistake();
            name(&mut mistake);
            mistake.help.unwrap_or_default()
        };
        assert_eq!(
            told(Diagnostic::name_option),
            "did you mean `abs(a)`, which needs --extensions?"
        );
        let key = "did you mean `abs(a)`, which needs `extensions = true`?";
        assert_eq!(told(Diagnostic::name_key), key);
        assert_eq!(told(Diagnostic::without_extensions), "did you mean `abs(a)`?");
    }
}

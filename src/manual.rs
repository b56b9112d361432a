//! The manual of pmderive: what it is for, its language, its commands, and
//! recipes. `pmderive help TOPIC` shows the same pages in a terminal, and
//! mdBook makes a book of them.
//!
//! A page is a Markdown file in `src/manual`, or one that stands beside the
//! code it describes. Examples in blocks called `console` and `rust` are run
//! by tests, which also hold the list below to the book's (`SUMMARY.md`).
//!
//! Pages name each other by reference, as in `[units]`. The target of a
//! reference in these pages is a module, in the book it is a file; the first
//! definition of a reference counts, so the modules' come first here.

/// A page of the manual.
#[derive(Debug)]
pub struct Topic {
    /// Its name in `pmderive help NAME`.
    pub name: &'static str,
    /// Its subject, in a few words.
    pub title: &'static str,
    /// Its text, in Markdown.
    pub text: &'static str,
}

/// The pages in their order, for one macro after the other.
macro_rules! pages {
    ($use:ident) => {
        $use! {
            start, "manual/start.md", "Ten minutes with pmderive";
            concepts, "manual/concepts.md", "Metrics, and metrics derived from them";
            language, "manual/language.md", "Expressions and definition files";
            functions, "manual/functions.md", "Every function, with an example";
            extensions, "../grammar/extensions.md", "What the language has beyond libpcp's";
            units, "manual/units.md", "Types, semantics, units and instances";
            sources, "manual/sources.md", "Hosts, archives and this machine";
            archives, "manual/archives.md", "Reading archives";
            recording, "manual/recording.md", "Writing archives";
            tables, "manual/tables.md", "Tables for data frames";
            checking, "manual/checking.md", "Checking and testing definitions";
            editors, "manual/editors.md", "Editors";
            fleets, "manual/fleets.md", "Thousands of hosts in one process";
            config, "fleet/config/config.md", "The configuration of serve";
            names, "fleet/sinks/names.md", "Names and labels of series";
            cookbook, "manual/cookbook.md", "Recipes for machines";
            services, "manual/services.md", "Recipes for databases and servers";
            tools, "manual/tools.md", "pminfo, pmval and pmprobe";
            pmrep, "manual/pmrep.md", "Coming from pmrep";
            pmie, "manual/pmie.md", "Coming from pmie";
            promql, "manual/promql.md", "Coming from PromQL";
            library, "manual/library.md", "The Rust library";
            programs, "manual/programs.md", "First programs";
            differences, "manual/differences.md", "Where answers differ from libpcp's";
            statuses, "manual/statuses.md", "Exit statuses";
            files, "manual/files.md", "Files, variables and output";
            troubleshooting, "manual/troubleshooting.md", "What messages mean, and what to do";
            codes, "manual/codes.md", "Codes of diagnostics";
        }
    };
}

macro_rules! topics {
    ($($name:ident, $file:literal, $title:literal;)*) => {
        /// All pages, in the order in which they are best read.
        pub static TOPICS: &[Topic] = &[
            $(Topic { name: stringify!($name), title: $title, text: include_str!($file) },)*
        ];
    };
}

macro_rules! modules {
    ($($name:ident, $file:literal, $title:literal;)*) => {
        $(
            #[doc = pages!(targets)]
            #[doc = include_str!($file)]
            pub mod $name {}
        )*
    };
}

/// The targets of references to pages, in this crate's documentation.
macro_rules! targets {
    ($($name:ident, $file:literal, $title:literal;)*) => {
        concat!($("[", stringify!($name), "]: crate::manual::", stringify!($name), "\n",)*)
    };
}

pages!(topics);
pages!(modules);

/// The page of a name.
pub fn topic(name: &str) -> Option<&'static Topic> {
    TOPICS.iter().find(|topic| topic.name == name)
}

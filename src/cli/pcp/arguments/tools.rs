//! The options of pminfo, pmval and pmprobe, in the order and with the words of their usage
//! messages.

use crate::dialect::Dialect;

/// A tool of PCP.
#[derive(Debug)]
pub struct Tool {
    /// Its name, which stands in front of its messages.
    pub name: &'static str,
    /// The command of this program that stands in for it.
    pub command: &'static str,
    /// The operands in the usage message, after the name.
    pub operands: &'static str,
    /// Its options, by sections of the usage message.
    pub sections: &'static [Section],
    /// A letter that the usage message shows but the tool refuses.
    pub refused_letter: Option<char>,
}

/// A part of a usage message.
#[derive(Debug)]
pub struct Section {
    /// Its heading.
    pub title: &'static str,
    /// The options in it.
    pub options: &'static [PcpOption],
}

/// An option of a tool.
#[derive(Debug)]
pub struct PcpOption {
    /// Its letter.
    pub letter: Option<char>,
    /// Its word.
    pub word: &'static str,
    /// Name of its argument, if it has one.
    pub argument: Option<&'static str>,
    /// Its help in the words of version 6. The usage message omits an option without help.
    pub help: &'static str,
    /// True for an option that version 6 lacks.
    pub is_new: bool,
}

impl Tool {
    /// The tool that a command is named after.
    pub fn of_command(command: &str) -> Option<&'static Tool> {
        TOOLS.into_iter().find(|tool| tool.command == command)
    }

    /// The options of the tool in any version.
    fn all(&self) -> impl Iterator<Item = &'static PcpOption> + Clone + use<> {
        self.sections.iter().flat_map(|section| section.options)
    }

    /// True if one of the tools has an option with this word, in any version.
    pub fn any_has(word: &str) -> bool {
        TOOLS.iter().flat_map(|tool| tool.all()).any(|option| option.word == word)
    }

    /// True if the tool has an option with this letter, in any version.
    pub fn has_letter(&self, letter: char) -> bool {
        self.all().any(|option| option.letter == Some(letter))
    }

    /// True if the tool obeys an option. Variables give it further ones; it obeys those that
    /// choose the time to report on.
    pub fn needs(&self, word: &str) -> bool {
        ["start", "finish", "align"].contains(&word) || self.all().any(|one| one.word == word)
    }

    /// The options of the tool in a version.
    pub fn options(&self, dialect: Dialect) -> impl Iterator<Item = &'static PcpOption> + Clone {
        let is_known = move |option: &&PcpOption| !option.is_new || dialect != Dialect::Pcp6_0;
        self.all().filter(is_known)
    }
}

impl PcpOption {
    /// The option with this word, of any tool.
    pub fn of_variable(word: &str) -> &'static PcpOption {
        let options = TOOLS.iter().flat_map(|tool| tool.all());
        let found = options.chain(ONLY_VARIABLES).find(|option| option.word == word);
        found.unwrap_or(&DEBUG)
    }

    /// The same option with another letter, or none.
    const fn by(self, letter: Option<char>) -> PcpOption {
        PcpOption { letter, ..self }
    }
}

const fn flag(letter: char, word: &'static str, help: &'static str) -> PcpOption {
    PcpOption { letter: Some(letter), word, argument: None, help, is_new: false }
}

const fn with(
    letter: char,
    word: &'static str,
    argument: &'static str,
    help: &'static str,
) -> PcpOption {
    PcpOption { letter: Some(letter), word, argument: Some(argument), help, is_new: false }
}

const ALIGN: PcpOption = with('A', "align", "TIME", "align sample times on natural boundaries");
const ARCHIVE: PcpOption = with('a', "archive", "FILE", "metrics source is a PCP log archive");
const CONTAINER: PcpOption =
    with('?', "container", "NAME", "specify an individual container to be queried").by(None);
const DEBUG: PcpOption = with('D', "debug", "DEBUG", "");
const DERIVED: PcpOption =
    with('c', "derived", "FILE", "load derived metric definitions from FILE(s)");
const FINISH: PcpOption = with('T', "finish", "TIME", "end of the time window");
const GUI_MODE: PcpOption = flag('g', "guimode", "start in GUI mode with new time control");
const GUI_PORT: PcpOption =
    with('p', "guiport", "N", "port for connection to existing time control");
const HELP: PcpOption = flag('?', "help", "show this usage message and exit");
const HOST: PcpOption = with('h', "host", "HOST", "metrics source is PMCD on host");
const HOST_ZONE: PcpOption =
    flag('z', "hostzone", "set reporting timezone to local time of metrics source");
const INTERVAL: PcpOption = with('t', "interval", "DELTA", "sampling interval");
const LOCAL: PcpOption = flag('L', "local-PMDA", "metrics source is local connection to a PMDA");
const NAME_SPACE: PcpOption = with('n', "namespace", "FILE", "use an alternative PMNS");
const ORIGIN: PcpOption = with('O', "origin", "TIME", "initial sample time within the time window");
const SAMPLES: PcpOption = with('s', "samples", "N", "terminate after this many samples");
const SPEC_LOCAL: PcpOption =
    with('K', "spec-local", "SPEC", "optional additional PMDA spec for local connection");
const START: PcpOption = with('S', "start", "TIME", "start of the time window");
const TIME_ZONE: PcpOption = with('Z', "timezone", "TZ", "set reporting timezone");
const UNIQUE_NAMES: PcpOption =
    with('N', "uniqnames", "FILE", "like -n but only one name allowed for each PMID");
const VERSION: PcpOption = flag('V', "version", "display version number and exit");

/// Options that only variables give: no tool has them.
static ONLY_VARIABLES: &[PcpOption] = &[
    with('?', "archive-folio", "FILE", "").by(None),
    with('?', "archive-list", "FILES", "").by(None),
    with('?', "host-list", "HOSTS", "").by(None),
];

static TOOLS: [&Tool; 3] = [&PMINFO, &PMVAL, &PMPROBE];

/// pminfo(1).
static PMINFO: Tool = Tool {
    name: "pminfo",
    command: "info",
    operands: "[metricname | pmid | indom]...",
    refused_letter: None,
    sections: &[
        Section {
            title: "General options",
            options: &[
                ARCHIVE,
                DEBUG,
                HOST,
                CONTAINER,
                LOCAL,
                SPEC_LOCAL,
                NAME_SPACE,
                UNIQUE_NAMES,
                ORIGIN,
                TIME_ZONE,
                HOST_ZONE,
                VERSION,
                HELP,
            ],
        },
        Section {
            title: "Protocol options",
            options: &[
                with('b', "batch", "N", "fetch N metrics at a time for -f and -v [128]"),
                flag('d', "desc", "get and print metric description"),
                PcpOption { is_new: true, ..flag('1', "desc-oneline", "as -d, on one line") },
                flag('f', "fetch", "fetch and print values for all instances"),
                flag('F', "fetchall", "fetch and print values for non-enumerable indoms"),
                flag('I', "fullindom", "print InDom in verbose format"),
                flag('l', "labels", "print InDom, metric and instance labels"),
                flag('m', "pmid", "print PMID"),
                flag('M', "fullpmid", "print PMID in verbose format"),
                flag('s', "series", "print source, metric, instance series identifiers"),
                flag('t', "oneline", "get and display (terse) oneline text"),
                flag('T', "helptext", "get and display (verbose) help text"),
            ],
        },
        Section {
            title: "Metrics options",
            options: &[
                DERIVED,
                PcpOption {
                    is_new: true,
                    ..with('r', "register", "NAME=EXPR", "add a derived metric to the context")
                },
                flag('x', "events", "unpack and report on any fetched event records"),
                flag('v', "verify", "verify mode, be quiet and only report errors"),
                PcpOption {
                    is_new: true,
                    ..flag('e', "metadata-errors", "as -v, for lasting errors only")
                },
            ],
        },
    ],
};

/// pmval(1).
static PMVAL: Tool = Tool {
    name: "pmval",
    command: "val",
    operands: "metricname",
    refused_letter: None,
    sections: &[
        Section {
            title: "General options",
            options: &[
                ALIGN,
                ARCHIVE,
                DEBUG,
                GUI_MODE,
                HOST,
                NAME_SPACE,
                ORIGIN,
                GUI_PORT,
                START,
                SAMPLES,
                FINISH,
                INTERVAL,
                TIME_ZONE,
                HOST_ZONE,
                VERSION,
                HELP,
                SPEC_LOCAL,
                LOCAL,
                CONTAINER,
                DERIVED.by(None),
            ],
        },
        Section {
            title: "Reporting options",
            options: &[
                flag('d', "delay", "delay, pause between updates for archive replay"),
                with('f', "precision", "N", "fixed output format with N digits precision"),
                with('i', "instances", "INST", "comma-separated metrics instance list"),
                flag('r', "raw", "output raw counter values (no rate conversion)"),
                with('U', "nointerp", "FILE", "non-interpolated fetching; ignores interval"),
                flag('v', "verbose", "increase diagnostic output"),
                with('w', "width", "N", "set the width of each column of output"),
                with('x', "filter", "VALUE", "store to the metric before fetching (filter)"),
                flag('X', "timestamp", "include date and microseconds in reported timestamps"),
            ],
        },
    ],
};

/// pmprobe(1).
static PMPROBE: Tool = Tool {
    name: "pmprobe",
    command: "probe",
    operands: "[metricname ...]",
    refused_letter: Some('d'),
    sections: &[
        Section {
            title: "General options",
            options: &[
                ARCHIVE,
                DEBUG,
                HOST,
                CONTAINER,
                DERIVED.by(None),
                LOCAL,
                SPEC_LOCAL,
                NAME_SPACE,
                ORIGIN,
                TIME_ZONE,
                HOST_ZONE,
                VERSION.by(Some('d')),
                HELP,
            ],
        },
        Section {
            title: "Protocol options",
            options: &[with('b', "batch", "N", "fetch at most N metrics at a time [128]")],
        },
        Section {
            title: "Reporting options",
            options: &[
                flag('f', "force", "report all pmGetIndom or pmGetInDomArchive instances"),
                flag('F', "faster", "assume given metric names are PMNS leaf nodes"),
                flag('I', "external", "list external instance names"),
                flag('i', "internal", "list internal instance numbers"),
                flag('V', "verbose", "report PDU operations (verbose)"),
                flag('v', "values", "list metric values"),
                // The tool refuses it without a message.
                flag('e', "", ""),
            ],
        },
    ],
};

//! What manual pages say that no option knows: exit statuses, the environment,
//! files, other pages.

/// A term, and what it means.
pub type Entry = (&'static str, &'static str);

/// Exit statuses of all commands but those called after PCP's tools.
const OWN: &[Entry] = &[
    ("0", "Nothing is wrong. A metric without a value yet is not wrong."),
    ("1", "A metric or a unit test failed, or a file is not formatted."),
    ("2", "The usage, a definition or a file of tests is wrong."),
    ("3", "The source failed, or the output cannot be written."),
];

/// Exit statuses of `info`, `val` and `probe`.
const OF_TOOLS: &[Entry] =
    &[("0", "Nothing is wrong."), ("1", "Something failed: an argument, a metric or the source.")];

/// The exit statuses of a command.
pub fn exit_statuses(command: &str) -> &'static [Entry] {
    match command {
        "info" | "val" | "probe" => OF_TOOLS,
        _ => OWN,
    }
}

/// Variables that the commands read.
pub const ENVIRONMENT: &[Entry] = &[
    (
        "PCP_DERIVED_CONFIG",
        "Definitions that every PCP client on this machine has, in place of the default folder.",
    ),
    ("PCP_SECURE_SOCKETS", "TLS with pmcd: enforce checks its certificate, relaxed takes any."),
    ("PCP_TLSCONF_PATH", "The file about certificates and keys."),
    ("PMDERIVE_PASSWORD", "The password, where a host specification has user= only."),
    ("PCP_CONTAINER", "The container whose metrics are wanted."),
    ("PMPROXY_HOST, PMPROXY_PORT", "The pmproxy(1) that connections go through."),
    (
        "PCP_ARCHIVE, PCP_HOST, PCP_INTERVAL, ...",
        "Options of info, val and probe; see pmGetOptions(3).",
    ),
    (
        "NO_COLOR, CLICOLOR, CLICOLOR_FORCE, TERM",
        "Whether messages have colours; --color overrides them.",
    ),
    ("LC_ALL, LC_CTYPE, LANG", "Whether a terminal shows more than ASCII."),
    ("TZ", "The zone of times, unless -z or -Z chooses one."),
];

/// Files that the commands read.
pub const FILES: &[Entry] = &[
    ("/var/lib/pcp/config/derived", "Definitions that every PCP client on this machine has."),
    ("/etc/pcp.conf", "Where PCP keeps its files."),
    ("/etc/pcp/tls.conf", "Certificates and keys for TLS with pmcd."),
    ("/etc/pmderive/serve.toml", "The configuration of the service pmderive-serve."),
    (
        "/etc/pmderive/record/NAME.conf",
        "The definitions that the service pmderive-record@NAME records; its options are in NAME.env.",
    ),
];

/// Pages about PCP.
pub const SEE_ALSO: &[&str] = &[
    "PCPIntro(1)",
    "pmcd(1)",
    "pminfo(1)",
    "pmlogger(1)",
    "pmprobe(1)",
    "pmval(1)",
    "pmGetOptions(3)",
    "pmRegisterDerived(3)",
];

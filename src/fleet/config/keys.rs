//! The keys of the configuration: what a user writes, with the defaults. The
//! document about them, `config.md`, is made from this table, and the reader
//! knows no other key.

/// A table of the file.
pub struct Section {
    /// How it is written.
    pub heading: &'static str,
    /// What it is about.
    pub about: &'static str,
    /// Its keys.
    pub keys: &'static [Key],
}

/// One key.
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// What its value is.
    pub value: &'static str,
    /// What holds without it, as it would be written, or in words.
    pub default: &'static str,
    /// What it means.
    pub about: &'static str,
}

const fn key(
    name: &'static str,
    value: &'static str,
    default: &'static str,
    about: &'static str,
) -> Key {
    Key { name, value, default, about }
}

/// What stands before all tables.
pub const TOP: Section = Section {
    heading: "Before all tables",
    about: "What holds for the whole process.",
    keys: &[
        key(
            "interval",
            "time",
            "`\"10 sec\"`",
            "How often each host is fetched: 10 msec at least.",
        ),
        key(
            "deadline",
            "time",
            "4/5 of the interval",
            "How long a host may take for a slot: names, connection, reply. Shorter than the interval.",
        ),
        key(
            "listen",
            "address and port",
            "no listener",
            "Where `/metrics` (values over the fleet), `/metrics?target=HOST` (those of a host), `/healthz`, `/-/targets` and `/-/reload` are served. A sink of kind `prometheus` needs it. Beyond this machine only with `[web]`'s certificate and token.",
        ),
        key(
            "threads",
            "number",
            "as many as processors",
            "Threads that fetch and evaluate: 256 at most.",
        ),
        key(
            "compat",
            "`\"off\"`, `\"6.0\"` or `\"7.2\"`",
            "`\"off\"`",
            "The version of libpcp whose answers definitions have.",
        ),
        key(
            "extensions",
            "`true` or `false`",
            "`true`",
            "Whether definitions may use what libpcp does not have.",
        ),
    ],
};

/// `[limits]`.
pub const LIMITS: Section = Section {
    heading: "[limits]",
    about: "What the process refuses, so that no mistake elsewhere takes its memory.",
    keys: &[
        key(
            "targets",
            "number",
            "`100000`",
            "Hosts. A file of targets with more is refused whole.",
        ),
        key(
            "connects",
            "number",
            "`64`",
            "Attempts to connect at once, in each thread. One that hangs counts for a moment.",
        ),
        key(
            "kinds",
            "number",
            "`4096`",
            "Kinds of hosts: hosts in which a definition has another type, unit or domain are of another kind.",
        ),
        key(
            "instances",
            "number",
            "`10000`",
            "Instances of one exported metric on one host. Of more, none is exported.",
        ),
    ],
};

/// `[web]`.
pub const WEB: Section = Section {
    heading: "[web]",
    about: "Who may read what `listen` serves.",
    keys: &[
        key("certificate", "path", "no TLS", "Certificates of the server, PEM."),
        key("key", "path", "no TLS", "Its private key, PEM."),
        key(
            "token-file",
            "path",
            "no token",
            "A file whose first line is the token that requests have to bring (`Authorization: Bearer`). Browsers ask for it as a password, with any name.",
        ),
    ],
};

/// `[[group]]`.
pub const GROUP: Section = Section {
    heading: "[[group]]",
    about: "Hosts that are watched alike. There may be several; a host is in one.",
    keys: &[
        key("name", "text", "required", "What the group is called; the label `job` of its series."),
        key(
            "targets",
            "list of paths",
            "required",
            "Files of targets, in the JSON form of Prometheus' file_sd. They are read again when they change.",
        ),
        key("definitions", "list of paths", "required", "Files of definitions."),
        key(
            "export",
            "list of texts",
            "what the files mark",
            "Metrics that sinks get: names, patterns with `*`, or paths of `definitions`. A file marks a definition by a comment `# pmderive: export` above it.",
        ),
        key(
            "interval",
            "time",
            "that of the process",
            "How often each host of the group is fetched.",
        ),
        key("deadline", "time", "4/5 of the interval", "How long a host may take for a slot."),
        key(
            "labels",
            "table of texts",
            "none",
            "Labels of all its hosts, for which the files of targets give none of that name.",
        ),
        key(
            "secure",
            "`\"off\"`, `\"relaxed\"` or `\"required\"`",
            "`\"off\"`",
            "Whether connections are encrypted. `relaxed` does not look at who answers.",
        ),
        key(
            "tls",
            "path",
            "PCP's `tls.conf`",
            "Certificates and keys, in the form of PCP's `tls.conf`.",
        ),
        key("user", "text", "nobody", "Who logs in at pmcd."),
        key("password-file", "path", "no password", "A file whose first line is the password."),
    ],
};

/// `[fleet]`.
pub const FLEET: Section = Section {
    heading: "[fleet]",
    about: "What is computed across hosts. All groups have one interval then.",
    keys: &[
        key(
            "definitions",
            "list of paths",
            "required",
            "Files of definitions over the fleet, such as `racks.rate = sum(shop.rate) by (rack)`. They read any definition of the groups, exported or not.",
        ),
        key(
            "export",
            "list of texts",
            "all, and `fleet.hosts.*`",
            "Metrics of the fleet that sinks get: names, patterns with `*`, or paths of `definitions`. `fleet.hosts.*` are the numbers of hosts of each group.",
        ),
        key(
            "grace",
            "time",
            "the longest deadline of the groups",
            "How long hosts are waited for after the end of a slot. What comes later is dropped, and counted.",
        ),
    ],
};

/// `[[sink]]`.
pub const SINK: Section = Section {
    heading: "[[sink]]",
    about: "Where values go. There may be at most 63.",
    keys: &[
        key("name", "text", "its kind", "What it is called in messages and in its own metrics."),
        key(
            "kind",
            "`\"json-lines\"`, `\"prometheus\"` or `\"remote-write\"`",
            "required",
            "What it is: a file of JSON lines, `/metrics` and `/metrics?target=HOST` of this process, or a receiver of Prometheus' remote write.",
        ),
        key(
            "export",
            "list of texts",
            "what groups export and `[fleet]` defines",
            "Which of the exported metrics, and of those of `[fleet]`, it gets: names or patterns with `*`.",
        ),
        key(
            "buffer",
            "size",
            "`\"64 MB\"`",
            "Bytes that wait for it at most. Beyond that the oldest are dropped, and counted. For `prometheus` the bytes of hosts' newest frames: a host for which there is no room is not shown by `/metrics?target=`, and counted.",
        ),
        key(
            "path",
            "path",
            "`\"-\"`, standard output",
            "JSON lines: the file. It is opened anew at SIGUSR1, for rotation. Two sinks may share a device such as `/dev/null`, but no file.",
        ),
        key("url", "text", "required", "Remote write: where the receiver is, `http` or `https`."),
        key("authorities", "path", "the system's", "Remote write: who is trusted in TLS, PEM."),
        key("user", "text", "nobody", "Remote write: who logs in, with `password-file`."),
        key(
            "password-file",
            "path",
            "no password",
            "Remote write: a file whose first line is the password.",
        ),
        key(
            "token-file",
            "path",
            "no token",
            "Remote write: a file whose first line is a bearer token.",
        ),
        key("timeout", "time", "`\"30 sec\"`", "Remote write: how long the receiver may take."),
        key(
            "max-age",
            "time",
            "`\"10 min\"`",
            "Remote write: samples older than this are not sent any more.",
        ),
    ],
};

/// All tables, in the order of the document.
pub const SECTIONS: &[&Section] = &[&TOP, &LIMITS, &WEB, &GROUP, &FLEET, &SINK];

impl Section {
    /// The names of its keys.
    pub fn names(&self) -> Vec<&'static str> {
        self.keys.iter().map(|key| key.name).collect()
    }
}

/// The tables of the document about all keys, as Markdown.
pub fn document() -> String {
    let mut out = String::new();
    for section in SECTIONS {
        out += &format!(
            "\n## {}\n\n{}\n\n| Key | Value | Default | Meaning |\n|---|---|---|---|\n",
            heading(section),
            section.about
        );
        for key in section.keys {
            out +=
                &format!("| `{}` | {} | {} | {} |\n", key.name, key.value, key.default, key.about);
        }
    }
    out
}

fn heading(section: &Section) -> String {
    match section.heading.starts_with('[') {
        true => format!("`{}`", section.heading),
        false => section.heading.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/fleet/config/config.md");
    const MARK: &str = "\n<!-- From here on made from keys.rs: INSTA_UPDATE=always cargo test --lib fleet::config -->\n";

    #[test]
    fn the_document_has_every_key() {
        let text = include_str!("config.md");
        let (before, made) = text.split_once(MARK).expect("the mark");
        if made != document() && std::env::var("INSTA_UPDATE").as_deref() == Ok("always") {
            std::fs::write(PATH, format!("{before}{MARK}{}", document())).expect("written");
        } else {
            assert_eq!(made, document());
        }
    }
}

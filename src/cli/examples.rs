//! Examples of each command, for its help and for its manual page.
//!
//! A test runs every line that needs nothing outside of the repository. It parses the arguments
//! of all lines.

/// One example of a command.
#[derive(Clone, Copy, Debug)]
pub struct Example {
    /// The effect of the command.
    pub what: &'static str,
    /// The command line.
    pub line: &'static str,
}

const fn example(what: &'static str, line: &'static str) -> Example {
    Example { what, line }
}

/// Examples by command; the first ones are those of the program.
const EXAMPLES: &[(&str, &[Example])] = &[
    (
        "pmderive",
        &[
            example(
                "Three samples of this machine, a second apart, without PCP:",
                "pmderive eval -L -s 3 kernel.all.load 'rate(kernel.all.pswitch)'",
            ),
            example(
                "Find mistakes in a definition file, against a host's metrics:",
                "pmderive check -h web1 shop.conf",
            ),
            example("What a diagnostic means:", "pmderive explain PMD0202"),
        ],
    ),
    (
        "eval",
        &[
            example(
                "Three samples of this machine, a second apart, without PCP:",
                "pmderive eval -L -s 3 kernel.all.load 'rate(kernel.all.pswitch)'",
            ),
            example(
                "A group of metrics of a host, as JSON:",
                "pmderive eval -h web1 --json disk.dev",
            ),
            example(
                "A line a second for a minute, in columns as pmrep has them:",
                "pmderive eval -h web1 -t 1 -s 60 --format columns kernel.all.load 'rate(disk.all.total)'",
            ),
            example(
                "Ten minutes of an archive, in steps of a minute:",
                "pmderive eval -a pcplog -S @10:00 -T 10min -t 1min 'rate(disk.all.total)'",
            ),
        ],
    ),
    (
        "export",
        &[
            example(
                "An archive as CSV, a row for each value and minute:",
                "pmderive export -a pcplog -t 1min -o disks.csv disk.dev",
            ),
            example(
                "The metrics of a definition file, from now on:",
                "pmderive export -h web1 -c shop.conf -s 60 -o shop.csv",
            ),
        ],
    ),
    (
        "check",
        &[
            example("Mistakes in the text of a file:", "pmderive check shop.conf"),
            example(
                "Also names, types and units, and what is probably wrong:",
                "pmderive check -h web1 --lint shop.conf",
            ),
            example(
                "Without a source, as in continuous integration:",
                "pmderive check --metadata metadata.json shop.conf",
            ),
        ],
    ),
    (
        "explain",
        &[
            example(
                "Types, semantics, units and instances of every part:",
                "pmderive explain -L 'rate(disk.dev.total) / hinv.ncpu'",
            ),
            example("What a diagnostic means:", "pmderive explain PMD0202"),
        ],
    ),
    (
        "fmt",
        &[
            example("Format a file in place:", "pmderive fmt shop.conf"),
            example("In continuous integration:", "pmderive fmt --check definitions/"),
        ],
    ),
    ("test", &[example("Run a file of tests:", "pmderive test shop.toml")]),
    (
        "deps",
        &[
            example(
                "What pmlogger has to log for a file:",
                "pmderive deps --format pmlogger shop.conf",
            ),
            example(
                "Metadata for checks without a source:",
                "pmderive deps -h web1 --format metadata shop.conf > metadata.json",
            ),
        ],
    ),
    (
        "info",
        &[
            example("All that is known of a group of metrics:", "pmderive info -L -dtT disk.dev"),
            example("Values of an expression:", "pmderive info -h web1 -f 'sum(disk.dev.total)'"),
        ],
    ),
    (
        "val",
        &[
            example(
                "A counter's rate, every five seconds:",
                "pmderive val -L -t 5 kernel.all.pswitch",
            ),
            example(
                "An expression:",
                "pmderive val -a pcplog 'rate(disk.all.read) / rate(disk.all.total)'",
            ),
        ],
    ),
    (
        "probe",
        &[example("Instances that metrics have now:", "pmderive probe -L -I disk.dev.total")],
    ),
    (
        "record",
        &[
            example(
                "What a file defines, with its operands, every ten seconds:",
                "pmderive record -h web1 -c shop.conf --with-operands -t 10sec -o web1",
            ),
            example(
                "A derived metric into a copy of an archive:",
                "pmderive record -a pcplog -o copy . 'my.rate = rate(disk.all.total)'",
            ),
        ],
    ),
    (
        "archive",
        &[
            example("What archives hold, and from when to when:", "pmderive archive pcplog"),
            example("Look for damage:", "pmderive archive --scan pcplog"),
        ],
    ),
    (
        "serve",
        &[
            example(
                "A few hosts, for Prometheus to scrape at /metrics?target=HOST:",
                "pmderive serve --targets hosts.json -c shop.conf --export 'shop.*' --listen 127.0.0.1:9464",
            ),
            example(
                "Check a configuration and all its files:",
                "pmderive serve --config serve.toml --check",
            ),
        ],
    ),
    (
        "lsp",
        &[example("What an editor starts, to know the metrics of a host:", "pmderive lsp -h web1")],
    ),
    (
        "completions",
        &[example(
            "In bash, for this user:",
            "pmderive completions bash > ~/.local/share/bash-completion/completions/pmderive",
        )],
    ),
    (
        "man",
        &[
            example("Read the page of a command:", "pmderive man eval | man -l -"),
            example("All pages into a folder:", "pmderive man --output ~/.local/share/man/man1"),
        ],
    ),
];

/// The examples of a command. The program's own examples have the program's name.
pub fn of(command: &str) -> &'static [Example] {
    let found = EXAMPLES.iter().find(|(name, _)| *name == command);
    found.map_or(&[], |(_, examples)| examples)
}

/// The examples of a command, formatted for its help.
pub fn examples(command: &str) -> Option<String> {
    let examples = of(command);
    let each = |one: &Example| format!("  {}\n    {}", one.what, one.line);
    let each: Vec<String> = examples.iter().map(each).collect();
    (!each.is_empty()).then(|| format!("Examples:\n{}", each.join("\n")))
}

/// The end of the program's own help.
pub fn first_steps() -> String {
    let examples = examples("pmderive").unwrap_or_default();
    format!(
        "{examples}\n\n`pmderive help start` is a first tour; `pmderive help COMMAND` shows the options of a command."
    )
}

#[cfg(test)]
mod tests {
    use super::super::command_line::command;
    use super::*;

    /// Splits a line into words as a shell does, up to a redirection.
    fn words(line: &str) -> Vec<String> {
        let command = line.split(" > ").next().unwrap_or_default();
        let command = command.split(" | ").next().unwrap_or_default();
        let parts = command.split('\'').enumerate();
        let words = parts.flat_map(|(at, part)| match at % 2 {
            0 => part.split_whitespace().map(str::to_owned).collect::<Vec<_>>(),
            _ => vec![part.to_owned()],
        });
        words.collect()
    }

    #[test]
    fn every_example_is_understood() {
        let root = command();
        for (name, examples) in EXAMPLES {
            let is_built = root.find_subcommand(name).is_some();
            if ["lsp", "serve"].contains(name) && !is_built {
                continue;
            }
            assert!(*name == "pmderive" || is_built, "{name}");
            for example in *examples {
                let read = command().try_get_matches_from(words(example.line));
                assert!(read.is_ok(), "{}: {}", example.line, read.unwrap_err());
                assert!(example.line.contains(&format!("pmderive {name}")) || *name == "pmderive");
            }
        }
    }

    #[test]
    fn every_command_has_examples() {
        let root = command();
        let shown = root.get_subcommands().filter(|one| !one.is_hide_set());
        let without: Vec<&str> = shown
            .filter(|one| of(one.get_name()).is_empty())
            .map(clap::Command::get_name)
            .filter(|name| *name != "help")
            .collect();
        assert!(without.is_empty(), "{without:?}");
    }
}

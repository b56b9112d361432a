//! The arguments of `serve`: a configuration file, or flags for the simple case.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

use crate::cli::args::{interval, time};
use crate::cli::fleet::ShownLine;
use crate::cli::stop::Stop;
use crate::fleet::config::{
    Access, Config, DEFAULT_BUFFER, DEFAULT_INTERVAL, Group, INTERVALS, Limits, Sink, SinkKind,
    USUAL, Web, default_deadline,
};
use crate::fleet::labels::Labels;
use crate::fleet::plan::Origin;
use crate::text::Span;

/// Help text after the options.
const NOTES: &str = "\
hosts.json has the form of Prometheus' file_sd_configs:
  [{ \"targets\": [\"web1\", \"web2\"], \"labels\": { \"rack\": \"a\" } }]

Files are read again when they change, and at SIGHUP. SIGTERM ends the process. At SIGUSR1 it
reopens the files that it writes.";

/// Arguments of `serve`.
#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub struct ServeArguments {
    /// Read the configuration from this file (TOML).
    #[arg(long, value_name = "FILE", conflicts_with_all = ["targets", "definitions", "interval", "listen", "export"])]
    config: Option<PathBuf>,
    /// Watch the hosts in this file, a list of targets in JSON.
    #[arg(long, value_name = "FILE", requires = "definitions", value_parser = NonEmptyStringValueParser::new())]
    targets: Vec<String>,
    /// Read definitions from this file.
    #[arg(short = 'c', long, value_name = "FILE", requires = "targets", value_parser = NonEmptyStringValueParser::new())]
    definitions: Vec<String>,
    /// Fetch each host every INTERVAL [default: 10sec].
    #[arg(short = 't', long, value_name = "INTERVAL", value_parser = interval_of_hosts)]
    interval: Option<Duration>,
    /// Serve /metrics at this address. Without it values go to standard output, as lines of JSON.
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    listen: Option<SocketAddr>,
    /// Export these metrics, by name or pattern [default: those that the files mark].
    #[arg(long, value_name = "METRIC")]
    export: Vec<String>,
    /// Check all these files, and start nothing.
    #[arg(long)]
    pub check: bool,
    /// At the end, wait this long for values to be delivered.
    #[arg(long, value_name = "TIME", value_parser = interval, default_value = "5 sec")]
    pub drain: Duration,
    /// Log more.
    #[arg(short, long, display_order = 993)]
    pub verbose: bool,
}

fn interval_of_hosts(text: &str) -> Result<Duration, String> {
    let range = format!("an interval here is from {}", INTERVALS.words);
    let interval = time(text).map_err(|error| format!("{error}\n{range}"))?;
    match (INTERVALS.shortest..=INTERVALS.longest).contains(&interval) {
        true => Ok(interval),
        false => Err(range),
    }
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let expected = "an address with a port is such as 127.0.0.1:9464; names are not looked up";
    text.parse().map_err(|_| expected.to_owned())
}

impl ServeArguments {
    /// The origin of the configuration: the file or the flags.
    pub fn origin(&self) -> Result<Origin, Stop> {
        if let Some(path) = &self.config {
            return Ok(Origin::File(path.clone()));
        }
        if self.targets.is_empty() {
            let usage = "nothing to watch: give --config FILE, or --targets FILE and -c FILE";
            return Err(Stop::Usage(usage.to_owned()));
        }
        let mut line = ShownLine::new("pmderive serve", Origin::ARGUMENTS);
        let targets = line.all("--targets", &self.targets, |path| PathBuf::from(path));
        let definitions = line.all("-c", &self.definitions, |path| PathBuf::from(path));
        let export = line.all("--export", &self.export, |entry| Box::from(&**entry));
        let text = line.text;
        // The mistake is in the arguments as a whole, not in one of the values.
        let whole = Span::new(Origin::ARGUMENTS, 0, text.len() as u32);
        let interval = self.interval.unwrap_or(DEFAULT_INTERVAL);
        let group = Group {
            name: "fleet".into(),
            span: whole,
            targets,
            definitions,
            export: Some(export).filter(|export| !export.is_empty()),
            interval,
            deadline: default_deadline(interval),
            labels: Labels::default(),
            access: Access::default(),
        };
        let (name, kind) = match self.listen {
            Some(_) => ("prometheus", SinkKind::Prometheus),
            None => ("json-lines", SinkKind::JsonLines(None)),
        };
        let (name, buffer) = (name.into(), DEFAULT_BUFFER);
        let config = Config {
            language: USUAL,
            listen: self.listen,
            web: Web::default(),
            threads: None,
            limits: Limits::default(),
            groups: vec![group],
            fleet: None,
            sinks: vec![Sink { name, span: whole, export: None, buffer, kind }],
        };
        Ok(Origin::Arguments { text, config: Box::new(config) })
    }
}

//! The arguments of `serve`: a configuration file, or flags for the simple case. The
//! flags are turned into the text of such a file.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::cli::args::interval;
use crate::cli::stop::Stop;
use crate::fleet::plan::Origin;

/// Said after the options.
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
    #[arg(long, value_name = "FILE", requires = "definitions")]
    targets: Vec<String>,
    /// Read definitions from this file.
    #[arg(short = 'c', long, value_name = "FILE", requires = "targets")]
    definitions: Vec<String>,
    /// Fetch each host every INTERVAL [default: 10sec].
    #[arg(short = 't', long, value_name = "INTERVAL", value_parser = interval)]
    interval: Option<Duration>,
    /// Serve /metrics at this address. Without it values go to standard output, as lines of JSON.
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
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

impl ServeArguments {
    /// Where the configuration is from.
    pub fn origin(&self) -> Result<Origin, Stop> {
        if let Some(path) = &self.config {
            return Ok(Origin::File(path.clone()));
        }
        if self.targets.is_empty() {
            let usage = "nothing to watch: give --config FILE, or --targets FILE and -c FILE";
            return Err(Stop::Usage(usage.to_owned()));
        }
        let list = |texts: &[String]| {
            let texts: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
            texts.join(", ")
        };
        let mut text = String::new();
        if let Some(interval) = self.interval {
            let _ = writeln!(text, "interval = \"{} sec\"", interval.as_secs_f64());
        }
        if let Some(listen) = &self.listen {
            let _ = writeln!(text, "listen = {}", quoted(listen));
        }
        let (targets, definitions) = (list(&self.targets), list(&self.definitions));
        let _ = writeln!(text, "[[group]]\nname = \"fleet\"\ntargets = [{targets}]");
        let _ = writeln!(text, "definitions = [{definitions}]");
        if !self.export.is_empty() {
            let _ = writeln!(text, "export = [{}]", list(&self.export));
        }
        let kind = if self.listen.is_some() { "prometheus" } else { "json-lines" };
        let _ = writeln!(text, "[[sink]]\nkind = \"{kind}\"");
        Ok(Origin::Arguments(text))
    }
}

/// A text as TOML has it: JSON's form is one of TOML's.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

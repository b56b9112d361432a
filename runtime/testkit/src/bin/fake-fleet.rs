//! The pmcds of an invented fleet in a process of their own.
//!
//! ```text
//! cargo run --release -p pmderive-testkit --bin fake-fleet -- --hosts 10000 --port 44740 \
//!     --targets hosts.json --definitions fleet.conf --churning 0.05 --vanished 0.01 --dripping 0.01
//! ```
//!
//! SIGUSR1 cuts all connections. It serves until it is killed, or until its
//! standard input ends if `--until-eof` says so.

use std::error::Error;
use std::io::Read as _;
use std::path::PathBuf;
use std::process::ExitCode;

use pmderive_testkit::fleet::{FakeFleet, Plan, definitions};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::signal::unix::{SignalKind, signal};

const USAGE: &str = "fake-fleet [OPTION VALUE]...
  --hosts N           hosts (10000)
  --port P            port of the loopback device (a free one)
  --classes N         kinds of hosts (20)
  --seed N            what all is drawn by (1)
  --singles N         metrics with one value (70)
  --domains N         instance domains (6)
  --per-domain N      metrics over each domain (5)
  --instances A-B     instances of a domain (1-19)
  --churning SHARE    of the hosts change an instance every second (0)
  --dripping SHARE    answer fetches with a byte a second (0)
  --silent SHARE      take connections and say nothing (0)
  --refusing SHARE    refuse connections (0)
  --vanished SHARE    do not answer attempts to connect (0)
  --targets FILE      written: the hosts with their labels, as JSON for file_sd
  --definitions FILE  written: derived metrics, as many as --count says (1000)
  --count N           derived metrics in that file
  --until-eof yes     ends when standard input does
";

struct Options {
    plan: Plan,
    port: u16,
    targets: Option<PathBuf>,
    definitions: Option<PathBuf>,
    count: u32,
    until_eof: bool,
}

fn options() -> Result<Options, Box<dyn Error>> {
    let mut options = Options {
        plan: Plan::default(),
        port: 0,
        targets: None,
        definitions: None,
        count: 1_000,
        until_eof: false,
    };
    let Options { plan, port, targets, definitions, count, until_eof } = &mut options;
    let mut arguments = std::env::args().skip(1);
    while let Some(option) = arguments.next() {
        let value = arguments.next().ok_or(USAGE)?;
        match option.as_str() {
            "--hosts" => plan.hosts = value.parse()?,
            "--port" => *port = value.parse()?,
            "--classes" => plan.classes = value.parse()?,
            "--seed" => plan.seed = value.parse()?,
            "--singles" => plan.singles = value.parse()?,
            "--domains" => plan.domains = value.parse()?,
            "--per-domain" => plan.per_domain = value.parse()?,
            "--instances" => {
                let (least, most) = value.split_once('-').ok_or(USAGE)?;
                plan.instances = least.parse()?..=most.parse()?;
            }
            "--churning" => plan.shares.churning = value.parse()?,
            "--dripping" => plan.shares.dripping = value.parse()?,
            "--silent" => plan.shares.silent = value.parse()?,
            "--refusing" => plan.shares.refusing = value.parse()?,
            "--vanished" => plan.shares.vanished = value.parse()?,
            "--targets" => *targets = Some(value.into()),
            "--definitions" => *definitions = Some(value.into()),
            "--count" => *count = value.parse()?,
            "--until-eof" => *until_eof = value == "yes",
            _ => return Err(USAGE.into()),
        }
    }
    Ok(options)
}

/// Raises the limit of files: every connection needs one.
fn raise_limit_of_files() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    // With fewer files there are fewer connections.
    let _ = setrlimit(Resource::Nofile, raised);
}

fn serve() -> Result<(), Box<dyn Error>> {
    let options = options()?;
    raise_limit_of_files();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    // From here on, the signal no longer ends the process.
    let mut cuts = runtime.block_on(async { signal(SignalKind::user_defined1()) })?;
    let fleet = FakeFleet::start(options.plan, options.port)?;
    if let Some(path) = options.definitions {
        std::fs::write(path, definitions(fleet.plan(), options.count))?;
    }
    if let Some(path) = options.targets {
        std::fs::write(path, fleet.targets())?;
    }
    println!("{} hosts, the first one at {}", fleet.plan().hosts, fleet.address(0));
    if options.until_eof {
        std::thread::spawn(|| {
            let ended = std::io::stdin().read_to_end(&mut Vec::new());
            std::process::exit(if ended.is_ok() { 0 } else { 1 });
        });
    }
    runtime.block_on(async {
        while cuts.recv().await.is_some() {
            fleet.cut_all();
            println!("all connections are cut");
        }
    });
    Ok(())
}

fn main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fake-fleet: {error}");
            ExitCode::FAILURE
        }
    }
}

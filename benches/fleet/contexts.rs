//! Figures of blocking contexts with 1,000 definitions: the cost of a further
//! context of a real pmcd or of an archive, and whether steady fetches
//! allocate.

use std::error::Error;
use std::sync::Arc;

use pmderive::engine::{Backend, Session, Space};
use pmderive_runtime::archive::ArchiveContext;
use pmderive_runtime::archive_writer::ArchiveWriter;
use pmderive_runtime::context::{ConnectOptions, HostContext, HostSpec};
use pmderive_runtime::eval::Buffers;
use pmderive_runtime::model::{Pmid, Semantics, StateChange, ValueType};
use pmderive_runtime::result::{FetchResult, ResultBatch};
use pmderive_runtime::source::{FetchList, FetchSource, MetadataSource, Mode};
use pmderive_testkit::archives;

use super::client::{Client, ClientDefinitions};
use super::definitions::{DEFINITIONS, text};
use super::hosts::Hosts;
use super::like_hosts::on_one_thread;
use super::meter::resident;
use super::plan::Plan;
use super::rows::Row;
use super::{Sizes, counting, oracle};

/// Fetches of each context before memory is looked at.
const FETCHES: u32 = 10;
/// Records of the archive.
const RECORDS: u32 = 40;

/// Memory per further one of the things that `open` makes.
fn slope<T>(
    sizes: Sizes,
    mut open: impl FnMut() -> Result<T, Box<dyn Error>>,
) -> Result<f64, Box<dyn Error>> {
    let mut all = Vec::new();
    let few = sizes.contexts / 5;
    for _ in 0..few {
        all.push(open()?);
    }
    let before = resident();
    for _ in few..sizes.contexts {
        all.push(open()?);
    }
    Ok((resident() - before) as f64 / f64::from(sizes.contexts - few) / 1024.0)
}

/// A context that has fetched and whose values were read.
fn evaluated<S: FetchSource>(
    definitions: &ClientDefinitions,
    source: S,
    space: &mut Space,
) -> Result<Session<S>, Box<dyn Error>> {
    let mut diagnostics = Default::default();
    let selection = definitions.registry.all();
    let engine = Arc::clone(&definitions.engine);
    let mut context =
        Session::new(engine, Arc::clone(&definitions.shared), source).expect("one language");
    context.choose(&selection, &mut diagnostics)?;
    for _ in 0..FETCHES {
        let sample = context.sample(space)?;
        let (values, sum) = oracle::read(&sample.values);
        std::hint::black_box(sum);
        if values == 0 {
            return Err("no values".into());
        }
    }
    Ok(context)
}

/// Contexts of a fake host: whether blocking fetches allocate.
pub fn allocations(sizes: Sizes) -> Result<Vec<Row>, Box<dyn Error>> {
    let hosts = Hosts::start(Plan { hosts: 1, classes: 1, is_drawn: false })?;
    let definitions = ClientDefinitions::new(&text(), Backend::Jit);
    let mut space = Space::default();
    let source = HostContext::open_with(&hosts.spec(0), ConnectOptions::default())?;
    let mut context = evaluated(&definitions, source, &mut space)?;
    let before = counting::allocations_so_far();
    for _ in 0..sizes.rounds {
        context.sample(&mut space)?;
    }
    let made = (counting::allocations_so_far() - before) as f64 / f64::from(sizes.rounds);
    Ok(vec![Row::new("blocking-allocations", "allocations in a steady blocking fetch", made, "")])
}

/// Contexts of an archive, by record or between records.
pub fn of_archive(name: &str, sizes: Sizes) -> Result<Vec<Row>, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let base = folder.path().join("host");
    write_archive(&base)?;
    let definitions = ClientDefinitions::new(&text(), Backend::Jit);
    let mut space = Space::default();
    let memory = slope(sizes, || {
        let mut archive = ArchiveContext::open(&base)?;
        if name == "between" {
            let start = archive.label().start;
            archive.set_mode(Mode::Interpolated { step: 500_000_000 }, Some(start))?;
        }
        evaluated(&definitions, archive, &mut space)
    })?;
    let how = if name == "between" { "between records" } else { "by record" };
    let what = format!("memory per further context of an archive, {how}");
    Ok(vec![Row::new(&format!("archive-{name}"), &what, memory, "KB")])
}

/// An archive of a fake host.
fn write_archive(base: &std::path::Path) -> Result<(), Box<dyn Error>> {
    let hosts = Hosts::start(Plan { hosts: 1, classes: 1, is_drawn: false })?;
    let mut host = HostContext::open_with(&hosts.spec(0), ConnectOptions::default())?;
    let names = host.traverse("fleet")?;
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let pmids: Vec<Pmid> = host.lookup_names(&names)?.into_iter().flatten().collect();
    let descs = host.lookup_descs(&pmids)?;
    let list = FetchList::new(pmids, Vec::new());
    let mut batch = ResultBatch::default();
    host.fetch(&list, &mut batch)?;
    let mut writer = ArchiveWriter::create(base, archives::options("host0", batch.timestamp()))?;
    let mut domains = Vec::new();
    for (desc, name) in descs.iter().flatten().zip(&names) {
        writer.describe(desc, &[name])?;
        domains.extend(desc.indom.filter(|indom| !domains.contains(indom)));
    }
    for indom in domains {
        let domain = host.instance_domain(indom, pmderive_runtime::source::Freshness::Current)?;
        writer.instances(
            batch.timestamp(),
            indom,
            &*domain.map_err(|status| status.to_string())?,
        )?;
    }
    for _ in 0..RECORDS {
        writer.record(&FetchResult::of_batch(&batch, StateChange::default()))?;
        batch.clear();
        host.fetch(&list, &mut batch)?;
    }
    writer.finish()?;
    Ok(())
}

/// Contexts of a real pmcd, by one of three ways.
pub fn of_pmcd(name: &str, host: &str, sizes: Sizes) -> Result<Vec<Row>, Box<dyn Error>> {
    let spec: HostSpec = host.parse()?;
    let open = || HostContext::open_with(&spec, ConnectOptions::default());
    let text = definitions_of(&mut open()?)?;
    let definitions = ClientDefinitions::new(&text, Backend::Jit);
    let mut space = Space::default();
    let memory = match name {
        "context" => slope(sizes, || evaluated(&definitions, open()?, &mut space))?,
        "derived" => {
            let ClientDefinitions { engine, registry, shared, .. } = definitions;
            let names: Vec<String> = registry.names().map(String::from).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let mut batch = ResultBatch::default();
            slope(sizes, || {
                let (engine, shared) = (Arc::clone(&engine), Arc::clone(&shared));
                let mut context = Session::new(engine, shared, open()?).expect("one language");
                let pmids = context.lookup_names(&names)?.into_iter().flatten().collect();
                let list = FetchList::new(pmids, Vec::new());
                for _ in 0..FETCHES {
                    batch.clear();
                    context.fetch(&list, &mut batch)?;
                }
                Ok(context)
            })?
        }
        _ => on_one_thread(async {
            let mut all = Vec::new();
            let mut batch = ResultBatch::default();
            let mut buffers = Buffers::default();
            let few = sizes.contexts / 5;
            let mut before = 0;
            for number in 0..sizes.contexts {
                if number == few {
                    before = resident();
                }
                let mut client = Client::open(&spec, &definitions).await?;
                for _ in 0..FETCHES {
                    let events = client.fetch(&definitions, &mut batch).await?;
                    let evaluation = client.evaluate(&batch, events, &mut buffers);
                    std::hint::black_box(oracle::read(&evaluation).1);
                }
                all.push(client);
            }
            Ok((resident() - before) as f64 / f64::from(sizes.contexts - few) / 1024.0)
        })?,
    };
    let what = format!("memory per further context of a real pmcd ({name})");
    Ok(vec![Row::new(&format!("pmcd-{name}"), &what, memory, "KB")])
}

/// 1,000 definitions over what a pmcd has.
fn definitions_of(source: &mut HostContext) -> Result<String, Box<dyn Error>> {
    let mut names = Vec::new();
    for node in ["kernel", "mem", "network", "disk", "hinv", "sample"] {
        names.extend(source.traverse(node).unwrap_or_default());
    }
    let asked: Vec<&str> = names.iter().map(String::as_str).collect();
    let pmids = source.lookup_names(&asked)?;
    let known: Vec<(&str, Pmid)> =
        asked.iter().zip(pmids).filter_map(|(name, pmid)| Some((*name, pmid.ok()?))).collect();
    let descs = source.lookup_descs(&known.iter().map(|(_, pmid)| *pmid).collect::<Vec<_>>())?;
    let mut usable = Vec::new();
    for ((name, _), desc) in known.iter().zip(descs) {
        let Ok(desc) = desc else { continue };
        let is_number = !matches!(desc.value_type, ValueType::String) && {
            pmderive_runtime::program::scalar_of(desc.value_type).is_some()
        };
        if is_number {
            usable.push((*name, desc.semantics == Semantics::Counter));
        }
    }
    if usable.is_empty() {
        return Err("this pmcd has no metrics that are numbers".into());
    }
    let line = |(index, (name, is_counter)): (u32, &(&str, bool))| match is_counter {
        true => format!("fleet.real.m{index} = {} * rate({name})\n", index + 1),
        false => format!("fleet.real.m{index} = {} * {name}\n", index + 1),
    };
    Ok((0..DEFINITIONS).zip(usable.iter().cycle()).map(line).collect())
}

//! Derived metrics of a live pmcd, compared with the answers of libpcp. Its tools are clients
//! of the same pmcd with the same definitions.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use pmderive::dialect::Dialect;
use pmderive::engine::{Backend, Definitions, Engine, Session};
use pmderive_runtime::context::HostContext;
use pmderive_runtime::model::{
    InDom, InstanceProfile, PmStatus, Pmid, RawValueRef, TextKind, TextSubject, Value, ValueType,
};
use pmderive_runtime::result::ResultBatch;
use pmderive_runtime::source::{FetchList, FetchSource, MetadataSource, SourceError};
use pmderive_testkit::real_pmcd;

use real_pmcd::RealPmcd;

const DEFINITIONS: &str = r#"
live.sum = sum(sample.bin)
live.sum(oneline) = all bins together
live.sum(helptext) = "The sum
of all bins."
live.twice = sample.bin * 2
live.twice(oneline) = twice as much
live.lost = sample.missing + 1
live.text = sample.string.hullo
live.rate = rate(sample.byte_ctr)
live.bad = sample.bin + sample.colour
live.scaled = rescale(hinv.physmem, "Gbyte")
sample.bin.below = sample.long.one
sample.long.one = 5
live.memory = mem.physmem / hinv.ncpu
live.defined = defined(sample.missing) ? 1 : 2
live.one = sample.bin[bin-300]
live.constant = mkconst(4, type=double, units="Kbyte / sec", semantics=instant)
"#;

type Context = Session<HostContext>;

fn context(pmcd: &RealPmcd, shared: &Arc<Definitions>) -> Context {
    let engine = Engine::new(shared.language(), Backend::Interp);
    let spec = format!("unix:{}", pmcd.socket.display());
    let source = HostContext::open(&spec.parse().expect("a host")).expect("a running pmcd");
    Session::new(Arc::new(engine), Arc::clone(shared), source).expect("one language")
}

/// What a tool of PCP prints with the definitions in a file.
fn tool(pmcd: &RealPmcd, config: &Path, name: &str, arguments: &[&str]) -> String {
    let output = Command::new(name)
        .args(["-h", &format!("unix:{}", pmcd.socket.display())])
        .args(arguments)
        .env("LC_ALL", "C")
        .env("PCP_DERIVED_CONFIG", config)
        .output();
    String::from_utf8_lossy(&output.expect(name).stdout).into_owned()
}

fn lookup(context: &mut Context, names: &[&str]) -> Vec<Pmid> {
    let pmids = context.lookup_names(names).expect("pmcd answers");
    pmids.into_iter().map(|pmid| pmid.expect("a known name")).collect()
}

/// Name space, identifiers, descriptors, texts and values are those of libpcp.
#[test]
fn as_libpcp_has_them() {
    let Some(pmcd) = RealPmcd::start() else { return };
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), DEFINITIONS).expect("a file");
    let shared = Arc::new(Definitions::new(Dialect::Pcp6_0));
    let loaded = shared.load(file.path().to_str().expect("UTF-8"));
    assert_eq!((loaded.registered, loaded.diagnostics.len()), (13, 0));
    let mut context = context(&pmcd, &shared);

    let all = context.traverse("").expect("pmcd answers");
    let printed = tool(&pmcd, file.path(), "pminfo", &[]);
    let printed: Vec<&str> = printed.lines().collect();
    assert_eq!(all, printed, "the whole name space in its order");
    let below = context.traverse("sample.bin").expect("pmcd answers");
    assert_eq!(
        below,
        tool(&pmcd, file.path(), "pminfo", &["sample.bin"]).lines().collect::<Vec<_>>()
    );

    let names: Vec<&str> = all
        .iter()
        .map(String::as_str)
        .filter(|name| ["live.", "event.", "sample.bin."].iter().any(|top| name.starts_with(top)))
        .collect();
    assert_eq!(names.len(), 12, "{names:?}");
    let pmids = lookup(&mut context, &names);
    let descs = context.lookup_descs(&pmids).expect("pmcd answers");
    let mut described = String::new();
    for (name, desc) in names.iter().zip(&descs) {
        let desc = desc.expect("a usable metric");
        let pmid = desc.pmid;
        let known = context.names_of(pmid).expect("pmcd answers").expect("at least one name");
        assert!(known.iter().any(|one| **one == **name), "{name}: {known:?}");
        let indom = desc.indom.map_or_else(
            || "PM_INDOM_NULL 0xffffffff".to_owned(),
            |indom| format!("{indom} {:#x}", indom.0),
        );
        let units = desc.units.to_string();
        let _ = writeln!(
            described,
            "{name} PMID: {pmid}|{indom}|{}|{}",
            desc.semantics,
            if units.is_empty() { "none" } else { &units },
        );
    }
    let printed = tool(&pmcd, file.path(), "pminfo", &[&["-m", "-d"], &names[..]].concat());
    let mut expected = String::new();
    for block in printed.trim().split("\n\n") {
        let lines: Vec<&str> = block.lines().map(str::trim).collect();
        let after = |text: &str, word: &str| {
            text.split_once(word).map(|(_, rest)| rest.trim().to_owned()).expect("a field")
        };
        let indom = after(lines[1], "InDom:");
        let (semantics, units) = lines[2].split_once("Units:").expect("two fields");
        let semantics = after(semantics, "Semantics:");
        let _ = writeln!(expected, "{}|{indom}|{semantics}|{}", lines[0], units.trim());
    }
    assert_eq!(described, expected);

    let unusable = ["live.lost", "live.bad"];
    let pmids_of_unusable = lookup(&mut context, &unusable);
    for desc in context.lookup_descs(&pmids_of_unusable).expect("pmcd answers") {
        assert_eq!(desc, Err(PmStatus::BADDERIVE));
    }

    for (name, pmid) in names.iter().zip(&pmids) {
        for (kind, option) in [(TextKind::OneLine, "-t"), (TextKind::Help, "-T")] {
            // The anonymous ones are explained in our own words.
            if name.starts_with("event.") && kind == TextKind::Help {
                continue;
            }
            let text = context.text(TextSubject::Metric(*pmid), kind).expect("pmcd answers");
            let printed = tool(&pmcd, file.path(), "pminfo", &[option, name]);
            let shown = match (&text, kind) {
                (Ok(text), TextKind::OneLine) => format!("{name} [{text}]\n"),
                (Err(status), TextKind::OneLine) => {
                    format!("{name} One-line Help: Error: {status}\n")
                }
                (Ok(text), TextKind::Help) => format!("\n{name}\nHelp:\n{text}\n"),
                (Err(status), TextKind::Help) => format!("\n{name}\nFull Help: Error: {status}\n"),
            };
            assert_eq!(shown, printed, "{name}");
        }
    }

    // Some of both, in an order of no one's.
    let mix = ["live.twice", "hinv.ncpu", "live.rate", "event.flags", "live.sum", "live.text"];
    let list = FetchList::new(lookup(&mut context, &mix), Vec::new());
    let mut batch = ResultBatch::default();
    context.fetch(&list, &mut batch).expect("pmcd answers");
    let part = &batch.parts()[0];
    let printed = tool(&pmcd, file.path(), "pmprobe", &[&["-v"], &mix[..]].concat());
    let mut shown = String::new();
    for (name, set) in mix.iter().zip(part.sets()) {
        let _ = match set.count {
            Err(status) => writeln!(shown, "{name} {} {status}", status.0),
            Ok(count) => {
                let _ = write!(shown, "{name} {count}");
                for (_, value) in set.values() {
                    let _ = match value.expect("a value").encoded(&mut [0; 8]) {
                        Err(word) => write!(shown, " {word}"),
                        Ok((_, data)) => {
                            let text = data.strip_suffix(&[0]).expect("a text");
                            write!(shown, " \"{}\"", String::from_utf8_lossy(text))
                        }
                    };
                }
                writeln!(shown)
            }
        };
    }
    assert_eq!(shown, printed);
}

/// After pmcd was away the context is bound to the new one by itself, and no
/// difference spans the gap.
#[test]
fn a_pmcd_that_goes_and_comes_back() {
    let Some(mut pmcd) = RealPmcd::start() else { return };
    let shared = Arc::new(Definitions::new(Dialect::Fixed));
    shared.register("live.sum", "sum(sample.bin)").expect("a good definition");
    shared.register("live.change", "delta(sample.seconds)").expect("a good definition");
    let mut context = context(&pmcd, &shared);
    let names = ["live.change", "live.sum", "hinv.ncpu"];
    let list = FetchList::new(lookup(&mut context, &names), Vec::new());
    let mut batch = ResultBatch::default();
    let mut counts = |context: &mut Context| {
        context.fetch(&list, &mut batch)?;
        Ok(batch.parts()[0].sets().map(|set| set.count).collect::<Vec<_>>())
    };
    let connected = |counts: Result<Vec<_>, SourceError>| counts.expect("pmcd answers");
    assert_eq!(connected(counts(&mut context)), [Ok(0), Ok(1), Ok(1)]);
    assert_eq!(connected(counts(&mut context)), [Ok(1), Ok(1), Ok(1)]);
    let epoch = context.metadata_epoch();
    pmcd.restart();
    assert!(counts(&mut context).is_err(), "the connection broke");
    assert_eq!(connected(counts(&mut context)), [Ok(0), Ok(1), Ok(1)]);
    assert_eq!(connected(counts(&mut context)), [Ok(1), Ok(1), Ok(1)]);
    assert_ne!(context.metadata_epoch(), epoch);
}

/// 20,000 derived metrics in one fetch, along with more metrics of pmcd's than
/// it takes in one request.
#[test]
fn twenty_thousand_at_once() {
    const COUNT: u32 = 20_000;
    let Some(pmcd) = RealPmcd::start() else { return };
    let shared = Arc::new(Definitions::new(Dialect::Fixed));
    for index in 0..COUNT {
        let text = format!("sample.long.million * {} + hinv.ncpu * 0", index % 1000);
        shared.register(&format!("many.n{index}"), &text).expect("a good definition");
    }
    let mut context = context(&pmcd, &shared);
    let names: Vec<String> = (0..COUNT).map(|index| format!("many.n{index}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut pmids = lookup(&mut context, &names);
    // The sample agent knows a few of these only.
    let unknown = (0..COUNT).map(|index| Pmid::new(29, 2000 + index / 1000, index % 1000));
    pmids.extend(unknown);
    let list = FetchList::new(pmids, Vec::new());
    let mut batch = ResultBatch::default();
    for _ in 0..3 {
        context.fetch(&list, &mut batch).expect("pmcd answers");
        let part = &batch.parts()[0];
        assert_eq!(part.set_count(), list.pmids().len());
        for ((index, pmid), set) in (0..).zip(list.pmids()).zip(part.sets()) {
            assert_eq!(set.pmid, *pmid);
            if index < COUNT {
                let value = RawValueRef::InPlace(1_000_000 * (index % 1000));
                assert_eq!((set.count, set.value(0)), (Ok(1), Some(value)));
            } else {
                assert!(matches!(set.count, Ok(0) | Err(_)), "{pmid}");
            }
        }
    }
    assert!(context.traverse("many").expect("pmcd answers").len() == names.len());
}

/// A derived metric is computed of what the profile leaves its operands. What
/// is expected was printed by a program over libpcp 6.0.3 with the same steps.
#[test]
fn operands_with_a_profile() {
    let Some(pmcd) = RealPmcd::start() else { return };
    for dialect in [Dialect::Pcp6_0, Dialect::Fixed] {
        let shared = Arc::new(Definitions::new(dialect));
        for (name, text) in [
            ("d.sum", "sum(sample.bin)"),
            ("d.each", "sample.bin + 1"),
            ("d.count", "count(sample.bin)"),
        ] {
            shared.register(name, text).expect("a good definition");
        }
        let mut context = context(&pmcd, &shared);
        let pmids = lookup(&mut context, &["d.sum", "d.each", "d.count"]);
        let bins = InDom::new(29, 2);
        let mut profile = InstanceProfile::default();
        let number = |value: &Value| match value {
            Value::I32(number) => number.to_string(),
            Value::U32(number) => number.to_string(),
            other => format!("{other:?}"),
        };
        let mut fetch = |change: &dyn Fn(&mut InstanceProfile)| {
            change(&mut profile);
            context.set_profile(&profile).expect("a small profile");
            let result = context.fetch_values(&pmids).expect("values");
            let types = [ValueType::I32, ValueType::I32, ValueType::U32];
            let values = result.sets.iter().zip(types).map(|(set, value_type)| {
                let decoded = set.decode(value_type).expect("numbers").into_iter();
                decoded.map(|(instance, value)| (instance, number(&value))).collect::<Vec<_>>()
            });
            values.collect::<Vec<_>>()
        };
        let one = |value: &str| vec![(-1, value.to_owned())];
        let all = fetch(&|_| {});
        assert_eq!((all[0].clone(), all[1].len(), all[2].clone()), (one("4500"), 9, one("9")));
        let two = fetch(&|profile| profile.include(bins, &[100, 300]));
        let each = vec![(100, "101".to_owned()), (300, "301".to_owned())];
        assert_eq!(two, [one("400"), each, one("2")], "{dialect:?}");
        let none = fetch(&|profile| profile.exclude_all(bins));
        assert_eq!(none, [one("0"), vec![], one("0")], "{dialect:?}");
    }
}

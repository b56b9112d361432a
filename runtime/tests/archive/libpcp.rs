//! The libpcp 6.0 of this machine as a program that fetches from archives
//! (`oracle.c`), and our answers in its form.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Stdio;

use pmderive_runtime::archive::{ArchiveContext, InterpolationRules, Neighbour, Overflow};
use pmderive_runtime::model::{
    InstId, InstanceProfile, PmStatus, Pmid, RawValue, Timestamp, ValueType,
};
use pmderive_runtime::result::{FetchResult, MetricValues};
use pmderive_runtime::source::{
    FetchList, FetchSource, Freshness, MetadataSource, Mode, SourceError,
};

use crate::oracle::{Oracle, answer};

/// The way in which a case fetches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Forward,
    Backward,
    Interpolated {
        step: i64,
    },
    /// `pmFetchArchive(3)`, forward.
    Records,
    /// `pmFetchArchive(3)`, backward.
    RecordsBackward,
}

/// One run of fetches over an archive.
#[derive(Clone, Debug)]
pub struct Case {
    pub archive: PathBuf,
    pub kind: Kind,
    pub start: Timestamp,
    pub count: usize,
    pub pmids: Vec<Pmid>,
    /// Instances that the profile admits. Empty for all.
    pub admitted: Vec<InstId>,
}

/// libpcp as a program.
pub struct Libpcp(Oracle);

impl Libpcp {
    /// Compiles it, see [`Oracle::compile`].
    pub fn new() -> Option<Libpcp> {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/archive/oracle.c");
        Oracle::compile(source, &[]).map(Libpcp)
    }

    /// Answers to cases, in order: the lines of each.
    pub fn answers(&self, cases: &[Case], environment: &[(&str, &str)]) -> Vec<Vec<String>> {
        let mut input = String::new();
        for case in cases {
            let (kind, step) = match case.kind {
                Kind::Forward => ("forw", 0),
                Kind::Backward => ("back", 0),
                Kind::Records => ("all", 0),
                Kind::RecordsBackward => ("allback", 0),
                Kind::Interpolated { step } => ("interp", step),
            };
            let pmids: Vec<String> = case.pmids.iter().map(|pmid| pmid.0.to_string()).collect();
            let (archive, pmids) = (case.archive.display(), pmids.join(","));
            let admitted: Vec<String> = case.admitted.iter().map(InstId::to_string).collect();
            let (Case { start, count, .. }, admitted) = (case, admitted.join(","));
            let _ =
                writeln!(input, "{archive}\t{kind}\t{start}\t{step}\t{count}\t{pmids}\t{admitted}");
        }
        let mut command = self.0.command();
        command.envs(environment.iter().copied()).stderr(Stdio::null());
        let output = answer(command, input);
        let answers = output.split_terminator("\n\n").map(|answer| {
            answer.lines().filter(|line| !line.is_empty()).map(String::from).collect()
        });
        answers.collect()
    }
}

/// The rules of libpcp 6.0.
pub const RULES: InterpolationRules = InterpolationRules {
    neighbour: Neighbour::Earlier,
    overflow: Overflow::AsInC,
    counters_wrap: false,
    marks: pmderive_runtime::archive::MarkRule::All,
};

/// Our answers to a case.
pub fn own_answers(case: &Case, rules: InterpolationRules) -> Vec<String> {
    let mut context = match ArchiveContext::open(&case.archive) {
        Ok(context) => context,
        Err(error) => return vec![format!("! {}", error.status().0)],
    };
    if let Err(error) = context.pass_over_nothing() {
        return vec![format!("! {}", error.status().0)];
    }
    context.set_interpolation_rules(rules);
    let mode = match case.kind {
        Kind::Forward | Kind::Records => Mode::Forward,
        Kind::Backward | Kind::RecordsBackward => Mode::Backward,
        Kind::Interpolated { step } => Mode::Interpolated { step },
    };
    context.set_mode(mode, Some(case.start)).expect("a mode of archives");
    let mut profile = InstanceProfile::default();
    let descs = context.lookup_descs(&case.pmids).expect("archives know their metrics");
    for indom in descs.into_iter().filter_map(|desc| desc.ok()?.indom) {
        if !case.admitted.is_empty() {
            profile.exclude_all(indom);
            profile.include(indom, &case.admitted);
        }
    }
    context.set_profile(&profile).expect("archives have profiles");
    let list = FetchList::new(case.pmids.clone(), vec![]);
    let mut batch = Default::default();
    let mut lines = Vec::new();
    for _ in 0..case.count {
        let result = match case.kind {
            Kind::Records | Kind::RecordsBackward => context.next_record(),
            _ => context
                .fetch(&list, &mut batch)
                .map(|events| FetchResult::of_batch(&batch, events.changes)),
        };
        match result {
            Ok(result) => put_result(&result, &mut context, &mut lines),
            Err(error) => {
                lines.push(format!("! {}", error.status().0));
                if error.is_end_of_archive() {
                    put_domains(&mut context, &case.pmids, &mut lines);
                    break;
                }
            }
        }
    }
    lines
}

/// The results of comparisons over many archives.
#[derive(Default)]
pub struct Tally {
    cases: usize,
    values: usize,
    failed: usize,
    report: String,
}

impl Tally {
    /// Number of differences to report one by one.
    const TOLD: usize = 40;

    /// Compares our answer to a case over the archive `name` with libpcp's.
    pub fn compare(&mut self, name: &str, case: &Case, want: &[String], got: &[String]) {
        self.cases += 1;
        self.values += got.iter().map(|line| line.matches('=').count()).sum::<usize>();
        if got == want {
            return;
        }
        self.failed += 1;
        if self.failed <= Tally::TOLD {
            let _ = writeln!(self.report, "{name}: {:?} from {}", case.kind, case.start);
            self.tell_first_difference(want, got);
        }
    }

    fn tell_first_difference(&mut self, want: &[String], got: &[String]) {
        let at = want.iter().zip(got).position(|(want, got)| want != got);
        let at = at.unwrap_or(want.len().min(got.len()));
        let stamp = want.iter().take(at + 1).rfind(|line| line.starts_with(['@', '!']));
        let line = |lines: &[String]| -> String {
            lines.get(at).map_or("nothing".to_owned(), |line| line.chars().take(200).collect())
        };
        let _ = writeln!(self.report, "    line {at}, {}", stamp.map_or("", String::as_str));
        let _ = writeln!(self.report, "    libpcp {}\n    here   {}", line(want), line(got));
    }

    /// Fails if any answers differ.
    pub fn finish(self) {
        let Tally { cases, values, failed, report } = self;
        println!("{cases} cases, {values} values, {failed} differ");
        assert!(failed == 0, "{failed} of {cases} cases differ:\n{report}");
    }
}

/// Adds the domains of metrics as of the present time.
fn put_domains(context: &mut ArchiveContext, pmids: &[Pmid], lines: &mut Vec<String>) {
    let descs = context.lookup_descs(pmids).expect("archives know their metrics");
    for indom in descs.into_iter().filter_map(|desc| desc.ok()?.indom) {
        let domain = context.instance_domain(indom, Freshness::Cached).expect("readable");
        lines.push(match domain {
            Ok(domain) => {
                let sum: i64 = domain.instances().map(|(id, _)| i64::from(id)).sum();
                format!("{} {} {sum}", indom.0, domain.instances().count())
            }
            Err(PmStatus(status)) => format!("{} {status}", indom.0),
        });
    }
}

fn put_result(result: &FetchResult, context: &mut ArchiveContext, lines: &mut Vec<String>) {
    lines.push(format!("@ {}", result.timestamp));
    for MetricValues { pmid, outcome } in &result.sets {
        let descs: Result<_, SourceError> = context.lookup_descs(&[*pmid]);
        let value_type = descs.expect("archives know their metrics")[0]
            .map_or(ValueType::Unknown, |desc| desc.value_type);
        let mut line = match outcome {
            Ok(values) => format!("{} {}", pmid.0, values.len()),
            Err(PmStatus(status)) => format!("{} {status}", pmid.0),
        };
        for value in outcome.iter().flatten() {
            let _ = write!(line, " {}=", value.instance);
            put_value(&value.value, value_type, &mut line);
        }
        lines.push(line);
    }
}

fn put_value(value: &RawValue, value_type: ValueType, line: &mut String) {
    let bytes = match value {
        RawValue::InPlace(bits) => {
            let _ = write!(line, "{bits:x}");
            return;
        }
        RawValue::Block { bytes, .. } => bytes,
    };
    match value_type {
        ValueType::I64 | ValueType::U64 | ValueType::F64 | ValueType::F32 => {
            let bits = bytes.iter().fold(0u64, |bits, byte| bits << 8 | u64::from(*byte));
            let _ = write!(line, "{bits:x}");
        }
        ValueType::Event | ValueType::HighResEvent => line.push('-'),
        _ => {
            line.push(':');
            for byte in bytes {
                let _ = write!(line, "{byte:02x}");
            }
        }
    }
}

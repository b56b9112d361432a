//! The running sinks, and the change to another configuration. A sink with the same
//! destination goes on, with all waiting events.

use std::fs::OpenOptions;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pmderive_runtime::context::TlsSettings;
use tokio::time::Instant;

use crate::fleet::config::{self, MAX_SINKS, SinkKind};
use crate::fleet::sinks::json_lines::JsonLines;
use crate::fleet::sinks::newest_frames::NewestFrames;
use crate::fleet::sinks::numbers::SinkNumbers;
use crate::fleet::sinks::outlets::{Outlet, Outlets};
use crate::fleet::sinks::remote_write::{Change, SenderOptions};
use crate::fleet::sinks::ring::Ring;
use crate::fleet::sinks::sink_set::SinkPlace;
use crate::fleet::world::{Job, World};
use crate::text::paths::directory_of;

/// Time for a removed sink to deliver its waiting events.
const FAREWELL: Duration = Duration::from_secs(10);

/// Time for a sink to notice that its deadline has passed.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// The running sinks.
#[derive(Default)]
pub struct Sinks {
    /// The configured sinks, in order.
    all: Vec<Sink>,
    /// Removed sinks that may still deliver their waiting events.
    leaving: Vec<Sink>,
}

struct Sink {
    place: SinkPlace,
    config: config::Sink,
    numbers: Arc<SinkNumbers>,
    outlet: Arc<dyn Outlet>,
    /// The delivery; `None` for the sink that the listener shows.
    delivery: Option<Delivery>,
}

/// The delivery of a sink: its ring and its job.
struct Delivery {
    ring: Arc<Ring>,
    job: Job,
    handle: Handle,
}

/// The means to change a running delivery.
enum Handle {
    Lines(JsonLines),
    Sender(Change),
}

impl Sinks {
    /// Changes to another configuration.
    ///
    /// # Errors
    /// A sink cannot be started. Returns the sinks as they were, and the reason.
    pub fn follow<W: World>(
        self,
        configured: &[config::Sink],
        places: &[SinkPlace],
        newest: &Arc<NewestFrames>,
    ) -> Result<Sinks, (Sinks, String)> {
        let mut new = Vec::new();
        for (sink, place) in configured.iter().zip(places) {
            let goes_on = self.all.iter().find(|known| known.goes_on_as(sink, *place));
            let started = match goes_on {
                Some(known) => known.check(sink),
                None => {
                    // The counts of a name go on, also at another destination.
                    let former = self.all.iter().find(|known| known.config.name == sink.name);
                    let numbers = former.map(|known| Arc::clone(&known.numbers));
                    start::<W>(*place, sink, newest, numbers.unwrap_or_default())
                        .map(|sink| new.push(sink))
                }
            };
            if let Err(problem) = started {
                new.into_iter().for_each(|sink: Sink| sink.end(Instant::now()));
                for Sink { numbers, config, .. } in &self.all {
                    numbers.ring_limit.set(config.buffer as u64);
                }
                return Err((self, format!("sink `{}`: {problem}", sink.name)));
            }
        }
        // No step can fail from here on.
        for sink in &new {
            if sink.delivery.is_none() {
                newest.limit(sink.config.buffer, Arc::clone(&sink.numbers));
            }
        }
        let mut old = self.all;
        let mut sinks = new;
        for (config, place) in configured.iter().zip(places) {
            if let Some(at) = old.iter().position(|known| known.goes_on_as(config, *place)) {
                sinks.push(old.swap_remove(at).changed(config));
            }
        }
        let position = |sink: &Sink| configured.iter().position(|one| one.name == sink.config.name);
        sinks.sort_by_key(position);
        if sinks.iter().all(|sink| sink.delivery.is_some()) {
            newest.clear();
        }
        // Their waiting events are delivered while other sinks go on.
        old.iter().for_each(|sink| sink.close(Instant::now() + FAREWELL));
        let mut leaving = self.leaving;
        leaving.extend(old);
        leaving.retain(Sink::is_running);
        Ok(Sinks { all: sinks, leaving })
    }

    /// The inlets of all sinks.
    pub fn outlets(&self) -> Outlets {
        Outlets::new(self.all.iter().map(|sink| (sink.place, Arc::clone(&sink.outlet))).collect())
    }

    /// Place of the sink whose metrics the listener shows.
    pub fn shown(&self) -> Option<SinkPlace> {
        self.all.iter().find(|sink| sink.delivery.is_none()).map(|sink| sink.place)
    }

    /// Places of configured sinks: their present ones, also under another name, and free ones
    /// for new sinks.
    pub fn places(&self, configured: &[config::Sink]) -> Vec<SinkPlace> {
        let named = |name: &str| self.all.iter().find(|sink| *sink.config.name == *name);
        let renamed = |sink: &config::Sink| {
            let goes = |known: &&Sink| configured.iter().all(|one| one.name != known.config.name);
            self.all.iter().filter(goes).find(|known| same_end(&known.config.kind, &sink.kind))
        };
        let mut given: Vec<Option<SinkPlace>> = Vec::with_capacity(configured.len());
        for sink in configured {
            let known = named(&sink.name).or_else(|| renamed(sink)).map(|known| known.place);
            given.push(known.filter(|place| !given.contains(&Some(*place))));
        }
        // Places beyond all others come first, as values for a former sink may be on their way.
        // The places of leaving sinks come last.
        let all = || (0..MAX_SINKS as u32).map(SinkPlace);
        let is_taken = |place: SinkPlace| self.all.iter().any(|sink| sink.place == place);
        let beyond = self.all.iter().map(|sink| sink.place.0 + 1).max().unwrap_or_default();
        let free = all().filter(|place| place.0 < beyond && !is_taken(*place));
        let goes_on = given.clone();
        let left = all().filter(|place| is_taken(*place) && !goes_on.contains(&Some(*place)));
        let mut free = all().filter(|place| place.0 >= beyond).chain(free).chain(left);
        let given = given.into_iter().map(|place| place.or_else(|| free.next()));
        // There are as many places as sinks can be configured.
        given.map(Option::unwrap_or_default).collect()
    }

    /// The numbers of each sink, with its name. A removed sink has them until it has ended.
    pub fn numbers(&self) -> Vec<(Box<str>, Arc<SinkNumbers>)> {
        let leaving = self.leaving.iter().filter(|sink| sink.is_running());
        let mut all: Vec<(Box<str>, Arc<SinkNumbers>)> = Vec::new();
        for (name, numbers) in self.all.iter().chain(leaving).map(Sink::named_numbers) {
            if all.iter().all(|(known, _)| *known != name) {
                all.push((name, numbers));
            }
        }
        all
    }

    /// For each sink with a thread, a number that grows every second unless the thread is
    /// stuck. Sinks that wait for a reader of their lines have none, and neither have ended
    /// ones.
    pub fn beats(&self) -> impl Iterator<Item = (String, u64)> {
        let all = self.all.iter().filter_map(|sink| Some((sink, sink.delivery.as_ref()?)));
        let is_still = |lines: &JsonLines| lines.is_writing() || lines.is_closed();
        let all = all.filter(move |(sink, _)| !sink.lines().is_some_and(is_still));
        all.map(|(sink, one)| (format!("sink {}", sink.config.name), one.job.beat()))
    }

    /// True if there were sinks, and none has a receiver left.
    pub fn are_closed(&self) -> bool {
        let is_closed = |sink: &Sink| sink.lines().is_some_and(JsonLines::is_closed);
        !self.all.is_empty() && self.all.iter().all(is_closed)
    }

    /// Opens the files of sinks again.
    pub fn reopen(&self) {
        self.all.iter().filter_map(Sink::lines).for_each(JsonLines::reopen);
    }

    /// Ends all sinks, which deliver their events until the deadline, and waits for them.
    /// Returns the final numbers of each, with its name.
    pub fn stop(self, deadline: Instant) -> Vec<(Box<str>, Arc<SinkNumbers>)> {
        let all = || self.all.iter().chain(&self.leaving);
        all().for_each(|sink| sink.close(deadline));
        let numbers = all().map(Sink::named_numbers).collect();
        self.all.into_iter().chain(self.leaving).for_each(|sink| sink.end(deadline));
        numbers
    }
}

impl Sink {
    /// True if it can change to a configuration without an end.
    fn goes_on_as(&self, other: &config::Sink, place: SinkPlace) -> bool {
        let config::Sink { name, buffer, kind, .. } = &self.config;
        let can_change = match &self.delivery {
            Some(Delivery { handle: Handle::Sender(_), .. }) => true,
            Some(Delivery { handle: Handle::Lines(_), .. }) => *name == other.name,
            None => *name == other.name && *buffer == other.buffer,
        };
        can_change && self.place == place && same_end(kind, &other.kind)
    }

    /// The options of its sender, if these differ in another configuration.
    fn options(&self, config: &config::Sink) -> Option<SenderOptions> {
        let SinkKind::RemoteWrite(remote) = &config.kind else { return None };
        let is_same = self.config.name == config.name && self.config.kind == config.kind;
        (!is_same).then(|| SenderOptions::to(&config.name, self.place, remote))
    }

    /// Checks that it can change to a configuration.
    fn check(&self, config: &config::Sink) -> Result<(), String> {
        self.options(config).map_or(Ok(()), |options| options.check_files())
    }

    /// The sink with a configuration to which it can change.
    fn changed(self, config: &config::Sink) -> Sink {
        if let Some(Delivery { ring, handle, .. }) = &self.delivery {
            ring.resize(config.buffer);
            if let (Handle::Sender(change), Some(options)) = (handle, self.options(config))
                && let Err(problem) = change(options)
            {
                tracing::error!("sink `{}`: {problem}", config.name);
            }
        }
        Sink { config: config.clone(), ..self }
    }

    fn is_running(&self) -> bool {
        self.delivery.as_ref().is_some_and(|one| !one.job.is_over())
    }

    fn named_numbers(&self) -> (Box<str>, Arc<SinkNumbers>) {
        (self.config.name.clone(), Arc::clone(&self.numbers))
    }

    fn lines(&self) -> Option<&JsonLines> {
        match &self.delivery.as_ref()?.handle {
            Handle::Lines(lines) => Some(lines),
            Handle::Sender(_) => None,
        }
    }

    /// Closes the inlet. A sink that is leaving gets no more time than it has.
    fn close(&self, deadline: Instant) {
        if let Some(Delivery { ring, .. }) = &self.delivery {
            ring.close(ring.deadline().map_or(deadline, |own| own.min(deadline)));
        }
    }

    fn end(self, deadline: Instant) {
        self.close(deadline);
        let Some(Delivery { ring, job, .. }) = self.delivery else { return };
        let deadline = ring.deadline().unwrap_or(deadline);
        if !job.join(deadline + LAST_WORDS) {
            // Its thread ends with the process.
            ring.abandon();
            let sink = &*self.config.name;
            tracing::warn!(sink, "does not end in time; what waits for it is lost");
        }
    }
}

/// True if two sinks have the same destination.
fn same_end(one: &SinkKind, other: &SinkKind) -> bool {
    match (one, other) {
        (SinkKind::RemoteWrite(one), SinkKind::RemoteWrite(other)) => one.url == other.url,
        _ => one == other,
    }
}

fn start<W: World>(
    place: SinkPlace,
    sink: &config::Sink,
    newest: &Arc<NewestFrames>,
    numbers: Arc<SinkNumbers>,
) -> Result<Sink, String> {
    let config = sink.clone();
    let ring = Arc::new(Ring::new(sink.buffer, Arc::clone(&numbers)));
    let (own, counts) = (Arc::clone(&ring), Arc::clone(&numbers));
    let (job, handle) = match &sink.kind {
        SinkKind::Prometheus => {
            let outlet = Arc::clone(newest) as Arc<dyn Outlet>;
            return Ok(Sink { place, config, numbers, outlet, delivery: None });
        }
        SinkKind::JsonLines(path) => {
            let (lines, job) = JsonLines::start::<W>(&sink.name, place, path.clone(), own, counts)?;
            (job, Handle::Lines(lines))
        }
        SinkKind::RemoteWrite(remote) => {
            let (change, job) =
                SenderOptions::to(&sink.name, place, remote).start::<W>(own, counts)?;
            (job, Handle::Sender(change))
        }
    };
    let outlet = Arc::clone(&ring) as Arc<dyn Outlet>;
    Ok(Sink { place, config, numbers, outlet, delivery: Some(Delivery { ring, job, handle }) })
}

/// Lists the files that each sink could not read or write if it were started here.
pub fn unusable_files(sinks: &[config::Sink]) -> impl Iterator<Item = String> {
    sinks.iter().filter_map(|sink| {
        let problem = match &sink.kind {
            SinkKind::Prometheus | SinkKind::JsonLines(None) => None,
            SinkKind::JsonLines(Some(path)) => {
                let problem = |what: &str| format!("{} {what}", crate::escape::path(path));
                let opened = || OpenOptions::new().append(true).open(path);
                if path.is_dir() {
                    Some(problem("is a folder"))
                } else if !directory_of(path).is_dir() {
                    Some(problem("is in a folder that does not exist"))
                } else if path.is_file() {
                    let error = opened().err();
                    error.map(|error| problem(&format!("cannot be written: {error}")))
                } else {
                    // Opening a FIFO may block.
                    None
                }
            }
            SinkKind::RemoteWrite(remote) => {
                SenderOptions::to(&sink.name, SinkPlace(0), remote).check_files().err()
            }
        }?;
        Some(format!("sink `{}` would not start here: {problem}", sink.name))
    })
}

/// Lists the files of a group that cannot be read here.
pub fn unusable_of_group(group: &config::Group, tls: &TlsSettings) -> Vec<String> {
    let of_tls = group.access.tls.iter().flat_map(|_| tls.files());
    let files = group.access.password_file.clone().into_iter().chain(of_tls);
    let problem = |path: PathBuf| {
        // Opening a FIFO may block.
        let opened = || std::fs::File::open(&path).map(drop);
        let found = std::fs::metadata(&path);
        let error =
            found.and_then(|found| if found.is_file() { opened() } else { Ok(()) }).err()?;
        let path = crate::escape::path(&path);
        Some(format!("group `{}` could not use a file here: {path}: {error}", group.name))
    };
    files.filter_map(problem).collect()
}

#[cfg(test)]
mod tests {
    use pmderive_runtime::model::{Semantics, ValueType};

    use super::*;
    use crate::fleet::frame::Schema;
    use crate::fleet::labels::Labels;
    use crate::fleet::sinks::client::{Credentials, Url};
    use crate::fleet::sinks::samples;
    use crate::fleet::world::Machine;
    use crate::text::{SourceId, Span};

    #[test]
    fn sinks_keep_their_places() {
        let span = Span::new(SourceId(0), 0, 0);
        let lines = |name: &str, path: &str| {
            let kind = SinkKind::JsonLines(Some(path.into()));
            config::Sink { name: name.into(), span, export: None, buffer: 1 << 20, kind }
        };
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
        let [a, b, c] = ["a", "b", "c"].map(|name| lines(name, &path(name)));
        let newest = Arc::new(NewestFrames::default());
        let mut sinks = Sinks::default();
        for (configured, places) in [
            (vec![a.clone(), b.clone()], vec![0, 1]),
            (vec![b.clone(), a.clone()], vec![1, 0]),
            // A sink that goes makes no room for another one at once,
            (vec![c.clone(), a.clone()], vec![2, 0]),
            (vec![a.clone(), b.clone(), c.clone()], vec![0, 3, 2]),
            // but for the same one under another name.
            (vec![lines("d", &path("b")), a.clone(), c.clone()], vec![3, 0, 2]),
        ] {
            let places: Vec<SinkPlace> = places.into_iter().map(SinkPlace).collect();
            assert_eq!(sinks.places(&configured), places);
            sinks = match sinks.follow::<Machine>(&configured, &places, &newest) {
                Ok(sinks) => sinks,
                Err((_, problem)) => panic!("{problem}"),
            };
        }
        // Without room beyond, the places of leaving sinks are used.
        let many = |letter: char| -> Vec<config::Sink> {
            let names = (0..40).map(|number| format!("{letter}{number}"));
            let sinks = names.map(|name| lines(&name, &path(&name)));
            sinks.chain([a.clone()]).collect()
        };
        for configured in [many('m'), many('n'), many('o')] {
            let places = sinks.places(&configured);
            let different: std::collections::BTreeSet<SinkPlace> = places.iter().copied().collect();
            assert_eq!(different.len(), 41);
            assert!(different.last().is_some_and(|place| place.index() < MAX_SINKS));
            assert_eq!(places[40], SinkPlace(0));
            sinks = match sinks.follow::<Machine>(&configured, &places, &newest) {
                Ok(sinks) => sinks,
                Err((_, problem)) => panic!("{problem}"),
            };
        }
        sinks.stop(Instant::now());
    }

    /// Its time is over, and other sinks do not wait for it.
    #[tokio::test(start_paused = true)]
    async fn a_sink_that_left_and_is_stuck_keeps_nothing_from_ending() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("lines");
        let made = std::process::Command::new("mkfifo").arg(&path).status().expect("mkfifo");
        assert!(made.success());
        let mut reader = std::fs::File::options().read(true).write(true).open(&path).expect("one");
        // This many fit into the ring.
        std::io::Write::write_all(&mut reader, &[b'\n'; 64 << 10]).expect("room");
        let span = Span::new(SourceId(0), 0, 0);
        let kind = SinkKind::JsonLines(Some(path));
        let sink = config::Sink { name: "a".into(), span, export: None, buffer: 1 << 20, kind };
        let newest = Arc::new(NewestFrames::default());
        let places = [SinkPlace(0)];
        let Ok(sinks) = Sinks::default().follow::<Machine>(&[sink], &places, &newest) else {
            panic!("it starts")
        };
        sinks.all[0].outlet.push(&samples::frame_of_slot(1));
        let is_writing = |sinks: &Sinks| sinks.all[0].lines().is_some_and(JsonLines::is_writing);
        while !is_writing(&sinks) {
            std::thread::yield_now();
        }
        let Ok(sinks) = sinks.follow::<Machine>(&[], &[], &newest) else { panic!("it leaves") };
        tokio::time::advance(FAREWELL + LAST_WORDS).await;
        let before = std::time::Instant::now();
        let numbers = sinks.stop(Instant::now() + Duration::from_secs(60));
        assert!(before.elapsed() < Duration::from_secs(60));
        assert_eq!(numbers.len(), 1);
        drop(reader);
    }

    fn sender(name: &str, url: &str, buffer: usize, timeout: u64) -> config::Sink {
        let remote = config::RemoteWrite {
            timeout: Duration::from_secs(timeout),
            ..config::RemoteWrite::to(Url::parse(url).expect("a URL"))
        };
        let span = Span::new(SourceId(0), 0, 0);
        let kind = SinkKind::RemoteWrite(Box::new(remote));
        config::Sink { name: name.into(), span, export: None, buffer, kind }
    }

    /// A second sender would overtake the first, whose samples the receiver would then refuse.
    #[test]
    fn a_sender_to_the_same_receiver_goes_on() {
        // It accepts connections and never answers.
        let receiver = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/", receiver.local_addr().expect("an address"));
        let newest = Arc::new(NewestFrames::default());
        let mut sinks = Sinks::default();
        let mut known: Option<(Arc<SinkNumbers>, Arc<dyn Outlet>)> = None;
        let mut follow = |sink: config::Sink, goes_on: bool| {
            let places = sinks.places(std::slice::from_ref(&sink));
            let before = std::mem::take(&mut sinks);
            let buffer = sink.buffer as u64;
            let Ok(after) = before.follow::<Machine>(&[sink], &places, &newest) else {
                panic!("it starts")
            };
            let Sink { numbers, outlet, .. } = &after.all[0];
            outlet.push(&samples::frame_of_slot(1));
            assert_eq!(numbers.ring_limit.get(), buffer);
            if let Some((counts, ring)) = &known {
                // Its counts go on in any case.
                assert!(Arc::ptr_eq(numbers, counts));
                assert_eq!(Arc::ptr_eq(outlet, ring), goes_on);
            }
            known = Some((Arc::clone(numbers), Arc::clone(outlet)));
            assert_eq!((after.leaving.is_empty(), after.numbers().len()), (goes_on, 1));
            sinks = after;
        };
        follow(sender("a", &url, 1 << 20, 60), true);
        follow(sender("a", &url, 1 << 20, 30), true);
        follow(sender("a", &url, 1 << 21, 30), true);
        follow(sender("b", &url, 1 << 20, 60), true);
        follow(sender("b", &format!("{url}other"), 1 << 20, 60), false);
        let places = [SinkPlace(0)];
        let Ok(sinks) =
            sinks.follow::<Machine>(&[sender("c", &url, 1 << 20, 60)], &places, &newest)
        else {
            panic!("it starts")
        };
        let names = |sinks: &Sinks| -> Vec<Box<str>> {
            sinks.numbers().into_iter().map(|(name, _)| name).collect()
        };
        assert_eq!(names(&sinks), ["c".into(), "b".into()], "until it has ended");
        sinks.stop(Instant::now());
    }

    #[test]
    fn where_there_is_no_sink_none_is_closed() {
        assert!(!Sinks::default().are_closed());
    }

    /// A sink that cannot be started comes after one that would show less.
    #[test]
    fn sinks_that_are_refused_change_nothing_of_what_is_shown() {
        let span = Span::new(SourceId(0), 0, 0);
        let sink =
            |buffer, kind| config::Sink { name: "a".into(), span, export: None, buffer, kind };
        let newest = Arc::new(NewestFrames::default());
        let shows = |buffer| sink(buffer, SinkKind::Prometheus);
        let sinks = Sinks::default().follow::<Machine>(&[shows(1 << 20)], &[SinkPlace(0)], &newest);
        let Ok(sinks) = sinks else { panic!("they start") };
        let away = config::RemoteWrite {
            credentials: Credentials::Bearer { token_file: "nosuch".into() },
            ..config::RemoteWrite::to(Url::parse("http://nowhere/").expect("a URL"))
        };
        let refused = [shows(1), sink(1, SinkKind::RemoteWrite(Box::new(away)))];
        let Err((sinks, problem)) =
            sinks.follow::<Machine>(&refused, &[SinkPlace(1), SinkPlace(2)], &newest)
        else {
            panic!("they are refused")
        };
        assert!(problem.starts_with("sink `a`: "), "{problem}");
        let metric =
            samples::exported("n", ValueType::U64, Semantics::Instant, samples::sinks(&[0]));
        let schema = Arc::new(Schema { metrics: [metric].into() });
        let column = samples::column(&samples::single(), &[1]);
        let host = samples::target("web1:44321", Labels::default());
        newest.push(&Arc::new(samples::frame(&host, 1, &schema, &[column])));
        assert!(newest.frame_of("web1:44321").is_some());
        assert_eq!(sinks.numbers()[0].1.ring_limit.get(), 1 << 20);
    }
}

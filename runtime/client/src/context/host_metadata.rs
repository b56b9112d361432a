//! Asks pmcd for metadata: names, descriptors, instances, texts, labels.
//!
//! The cache answers the questions that it can. All others go out together, in as few requests as
//! pmcd accepts. If pmcd may know more than its first answer, it is asked a second time, again
//! together. `async_host` has the connection and fetches values.

use pmderive_core::model::{
    PmStatus, Pmid, StateChange, TextKind, Value, ValueType, text_of_bytes, until_nul,
};
use pmderive_core::result::{FetchResult, MetricValues, ResultBatch};
use pmderive_core::source::{
    Answer, Child, Fact, FetchList, Freshness, Question, SourceError, is_at_or_below,
};

use super::async_host::AsyncHostContext;
use super::metadata_cache::MetadataCache;
use super::spec::{HostSpec, Target};
use crate::pdu::{Features, MAX_REQUEST_BYTES, PmnsName, PmnsNames, TextRequest};
use crate::proto::{Reply, Request};
use crate::transport::Transport;

/// Number of descriptors per request. If an agent is a process, pmcd asks it for each
/// descriptor separately, and serves no other client meanwhile.
const DESCS_PER_REQUEST: usize = 200;

/// Splits names into groups, each of which fits into one request.
fn name_groups(names: &[&str]) -> Vec<std::ops::Range<usize>> {
    let mut groups = Vec::new();
    let (mut start, mut bytes) = (0, PmnsNames::FIXED_BYTES);
    for (at, name) in names.iter().enumerate() {
        let size = PmnsNames::name_bytes(name);
        if bytes + size > MAX_REQUEST_BYTES {
            groups.push(start..at);
            (start, bytes) = (at, PmnsNames::FIXED_BYTES);
        }
        bytes += size;
    }
    if start < names.len() {
        groups.push(start..names.len());
    }
    groups
}

/// True if a request can contain the name.
fn can_be_asked(name: &str) -> bool {
    let bytes = PmnsNames::FIXED_BYTES + PmnsNames::name_bytes(name);
    !name.is_empty() && !name.contains('\0') && bytes <= MAX_REQUEST_BYTES
}

/// An unanswered question, with its position among all questions.
type Open<'q> = (usize, Question<'q>);

/// Questions that go out together.
#[derive(Default)]
struct Round<'q> {
    /// Names that share requests, parallel to `about_names`.
    names: Vec<&'q str>,
    about_names: Vec<Open<'q>>,
    /// Metrics whose descriptors share requests, parallel to `pmid_positions`.
    pmids: Vec<Pmid>,
    pmid_positions: Vec<usize>,
    /// Questions that need a request of their own.
    single: Vec<Open<'q>>,
}

impl<'q> Round<'q> {
    /// Groups questions into as few requests as possible.
    fn together(open: Vec<Open<'q>>, features: Features) -> Round<'q> {
        let mut round = Round::default();
        for (at, question) in open {
            match question {
                Question::Pmid(name) | Question::PmidIfAny(name) => {
                    round.names.push(name);
                    round.about_names.push((at, question));
                }
                Question::Desc(pmid) if features.has(Features::DESCS) => {
                    round.pmids.push(pmid);
                    round.pmid_positions.push(at);
                }
                question => round.single.push((at, question)),
            }
        }
        round
    }
}

impl<T: Transport> AsyncHostContext<T> {
    /// Appends an answer to each question, in their order, like
    /// [`MetadataSource::ask`](pmderive_core::source::MetadataSource::ask).
    ///
    /// Cached answers cost nothing. All others share one round trip; failed ones may
    /// need a second for the reasons. The host's name and time zone are values of
    /// metrics, which need one or two round trips each.
    ///
    /// # Errors
    /// The host failed; the answers appended to `answers` are then meaningless. A fact
    /// that the host does not know is not an error but an answer.
    pub async fn ask(
        &mut self,
        questions: &[Question<'_>],
        answers: &mut Vec<Answer>,
    ) -> Result<(), SourceError> {
        let start = answers.len();
        if let ([Question::HostName], Some(name)) = (questions, &self.cache.host_name) {
            answers.push(Ok(Fact::Text(name.as_str().into())));
            return Ok(());
        }
        self.ask_metadata(questions, answers).await?;
        for (at, question) in (start..).zip(questions) {
            answers[at] = match question {
                Question::HostName => Ok(Fact::Text(self.name_of_host().await?.into())),
                Question::TimeZone => {
                    let [zone, short] = self.texts_of(["pmcd.zoneinfo", "pmcd.timezone"]).await?;
                    zone.or(short).map(|zone| Fact::Text(zone.into())).ok_or(question.status())
                }
                _ => continue,
            };
        }
        Ok(())
    }

    /// Asks questions that are about metadata only.
    async fn ask_metadata(
        &mut self,
        questions: &[Question<'_>],
        answers: &mut Vec<Answer>,
    ) -> Result<(), SourceError> {
        self.connect().await?;
        let start = answers.len();
        let mut open = Vec::new();
        for (at, question) in questions.iter().enumerate() {
            let known = self.known(*question);
            if known.is_none() {
                open.push((at, *question));
            }
            answers.push(known.unwrap_or(Err(question.status())));
        }
        if open.is_empty() {
            return Ok(());
        }
        let round = Round::together(open, self.features());
        let answers = &mut answers[start..];
        let again = self.go_round(round, answers).await?;
        if !again.is_empty() {
            let round = Round { single: again, ..Round::default() };
            self.go_round(round, answers).await?;
        }
        Ok(())
    }

    /// The answer to a question if pmcd need not be asked.
    fn known(&self, question: Question<'_>) -> Option<Answer> {
        let cache = &self.cache;
        let fact = match question {
            Question::Pmid(name) | Question::PmidIfAny(name) => cache.pmid(name).map(Fact::Pmid),
            Question::Desc(pmid) => cache.desc(pmid).map(Fact::Desc),
            Question::Domain(indom, Freshness::Cached) => cache.domain(indom).map(Fact::Domain),
            Question::NamesOf(pmid) => cache.names(pmid).map(Fact::Names),
            Question::Labels(level) => cache.labels(level.of_cluster()).map(Fact::Labels),
            // A live source has no other times.
            Question::NamesAtOtherTimes(..) => Some(Fact::Instances(Vec::new())),
            _ => None,
        };
        fact.map(Ok).or_else(|| (!self.can_be_asked(question)).then(|| Err(question.status())))
    }

    /// True for a question that can be sent to pmcd. The answer may be a status.
    fn can_be_asked(&self, question: Question<'_>) -> bool {
        match question {
            Question::Pmid(name) | Question::PmidIfAny(name) | Question::Instance(_, name) => {
                can_be_asked(name)
            }
            Question::MetricsBelow(node) | Question::Children(node) => {
                node.is_empty() || can_be_asked(node)
            }
            // -1 stands for all instances.
            Question::InstanceName(_, instance) => instance != -1,
            Question::Labels(_) => self.features().has(Features::LABELS),
            Question::HostName | Question::TimeZone => false,
            _ => true,
        }
    }

    /// Sends the requests of a round back to back, and stores the answers at their
    /// positions. Returns the questions that must be asked once more.
    async fn go_round<'q>(
        &mut self,
        round: Round<'q>,
        answers: &mut [Answer],
    ) -> Result<Vec<Open<'q>>, SourceError> {
        let Round { names, about_names, pmids, pmid_positions, single } = &round;
        let groups = name_groups(names);
        let first_of_descs = groups.len();
        let first_of_single = first_of_descs + pmids.len().div_ceil(DESCS_PER_REQUEST);
        let requests = (groups.iter().map(|group| Request::LookupNames(&names[group.clone()])))
            .chain(pmids.chunks(DESCS_PER_REQUEST).map(Request::LookupDescs))
            .chain(single.iter().filter_map(|(_, question)| request(question)));
        let mut again = Vec::new();
        self.exchange(requests, |cache, position, reply| {
            if let Some(group) = groups.get(position) {
                let asked = about_names[group.clone()].iter().zip(&names[group.clone()]);
                match reply {
                    Ok(Reply::Ids(found)) => {
                        for (((at, question), name), pmid) in asked.zip(found) {
                            answers[*at] = match (pmid, question) {
                                // pmcd tells the reason only if a request has a single
                                // name.
                                (Pmid::NULL, Question::Pmid(_)) => {
                                    again.push((*at, *question));
                                    continue;
                                }
                                (Pmid::NULL, _) => Err(question.status()),
                                (pmid, _) => Ok(learnt_name(cache, name, pmid)),
                            };
                        }
                    }
                    Ok(_) => {}
                    // An agent that does not answer about one name fails the request.
                    Err(_) if group.len() > 1 => {
                        again.extend(asked.map(|((at, question), _)| (*at, *question)));
                    }
                    Err(status) => asked.for_each(|((at, _), _)| answers[*at] = Err(status)),
                }
            } else if position < first_of_single {
                let start = (position - first_of_descs) * DESCS_PER_REQUEST;
                let asked = pmid_positions.iter().zip(pmids).skip(start).take(DESCS_PER_REQUEST);
                match reply {
                    Ok(Reply::Descs(found)) => {
                        for ((at, pmid), desc) in asked.zip(found) {
                            let Some(desc) = desc else {
                                again.push((*at, Question::Desc(*pmid)));
                                continue;
                            };
                            cache.learn_desc(desc);
                            answers[*at] = Ok(Fact::Desc(desc));
                        }
                    }
                    Ok(_) => {}
                    Err(status) => asked.for_each(|(at, _)| answers[*at] = Err(status)),
                }
            } else if let Some((at, question)) = single.get(position - first_of_single) {
                answers[*at] = answer(cache, *question, reply);
                // Some agents have only the one-line text.
                if let Question::Text(of, TextKind::Help) = question
                    && match &answers[*at] {
                        Ok(Fact::Text(text)) => text.is_empty(),
                        answer => *answer == Err(PmStatus::TEXT),
                    }
                {
                    again.push((*at, Question::Text(*of, TextKind::OneLine)));
                }
            }
        })
        .await?;
        Ok(again)
    }

    /// Name of the host: from its pmcd, or else from the specification.
    async fn name_of_host(&mut self) -> Result<String, SourceError> {
        if let Some(name) = &self.cache.host_name {
            return Ok(name.clone());
        }
        let [said] = self.texts_of(["pmcd.hostname"]).await?;
        let name = said.unwrap_or_else(|| host_named_by(&self.spec));
        self.cache.host_name = Some(name.clone());
        Ok(name)
    }

    /// Values of singular metrics of type string. `None` for a metric without a value,
    /// or with an empty one.
    async fn texts_of<const N: usize>(
        &mut self,
        names: [&str; N],
    ) -> Result<[Option<String>; N], SourceError> {
        let mut found = Vec::with_capacity(N);
        self.ask_metadata(&names.map(Question::Pmid), &mut found).await?;
        let pmid = |answer: &Answer| match answer {
            Ok(Fact::Pmid(pmid)) => Some(*pmid),
            _ => None,
        };
        let known = found.iter().filter_map(pmid).collect();
        let mut batch = ResultBatch::default();
        self.fetch_and_keep_events(&FetchList::new(known, Vec::new()), &mut batch).await?;
        let result = FetchResult::of_batch(&batch, StateChange::default());
        let text = |set: &MetricValues| match set.decode(ValueType::String).ok()?.pop()?.1 {
            Value::Text(text) if !text.is_empty() => Some(text.into()),
            _ => None,
        };
        let mut texts = result.sets.iter().map(text);
        let mut found = found.iter();
        Ok([(); N].map(|()| found.next().and_then(pmid).and_then(|_| texts.next()?)))
    }
}

/// The request for one question; `None` if pmcd is not asked.
fn request<'q>(question: &'q Question<'q>) -> Option<Request<'q>> {
    Some(match question {
        Question::Pmid(name) | Question::PmidIfAny(name) => {
            Request::LookupNames(std::slice::from_ref(name))
        }
        Question::Desc(pmid) => Request::LookupDesc(*pmid),
        Question::Domain(indom, _) | Question::KnownInstances(indom) => {
            Request::InstanceDomain(*indom)
        }
        Question::Instance(indom, name) => Request::LookupInstance(*indom, name),
        Question::InstanceName(indom, instance) => Request::InstanceName(*indom, *instance),
        Question::MetricsBelow(node) => Request::Traverse(node),
        Question::Children(node) => Request::Children(node),
        Question::NamesOf(pmid) => Request::NamesOf(*pmid),
        Question::Text(of, kind) => Request::HelpText(TextRequest { subject: *of, kind: *kind }),
        Question::Labels(level) => Request::Labels(level.of_cluster()),
        _ => return None,
    })
}

/// Converts the reply to the request for one question.
fn answer(
    cache: &mut MetadataCache,
    question: Question<'_>,
    reply: Result<Reply<'_>, PmStatus>,
) -> Answer {
    let none = Err(question.status());
    match (question, reply?) {
        (Question::Pmid(name) | Question::PmidIfAny(name), Reply::Ids(pmids)) => {
            match pmids.first() {
                Some(pmid) if *pmid != Pmid::NULL => Ok(learnt_name(cache, name, *pmid)),
                _ => none,
            }
        }
        (Question::Desc(_), Reply::Desc(desc)) => {
            cache.learn_desc(desc);
            Ok(Fact::Desc(desc))
        }
        (_, Reply::Failed(status)) => Err(status),
        (_, Reply::Instances(instances)) => Ok(Fact::Domain(cache.learn_domain(&instances))),
        (_, Reply::Instance(instance)) => Ok(Fact::Instance(instance)),
        (_, Reply::InstanceName(name)) => Ok(Fact::Text(text_of_bytes(name).into())),
        (Question::MetricsBelow(node), Reply::Names(names)) => {
            Ok(Fact::Names(metric_names(&names, node)))
        }
        (Question::Children(_), Reply::Names(names)) => {
            Ok(Fact::Children(names.iter().filter_map(child).collect()))
        }
        (Question::NamesOf(pmid), Reply::Names(names)) => {
            let names = metric_names(&names, "");
            if names.is_empty() {
                return none;
            }
            cache.learn_names(pmid, &names);
            Ok(Fact::Names(names))
        }
        (_, Reply::Text(bytes)) => Ok(Fact::Text(text_of_bytes(until_nul(bytes)).into())),
        (Question::Labels(level), Reply::Labels(sets)) => {
            cache.learn_labels(level.of_cluster(), &sets);
            Ok(Fact::Labels(sets))
        }
        _ => none,
    }
}

fn learnt_name(cache: &mut MetadataCache, name: &str, pmid: Pmid) -> Fact {
    cache.learn_name(name, pmid);
    Fact::Pmid(pmid)
}

/// The valid names among those that pmcd has sent for a node.
fn metric_names(names: &PmnsNames<'_>, node: &str) -> Vec<Box<str>> {
    let names = names.iter().filter_map(|name| std::str::from_utf8(name.name).ok());
    names.filter(|name| is_metric_name_below(name, node)).map(Box::from).collect()
}

/// The host that a specification names; for a local one, this host.
fn host_named_by(spec: &HostSpec) -> String {
    match &spec.target {
        Target::Host(host) if host.name != "localhost" => host.name.clone(),
        _ => rustix::system::uname().nodename().to_string_lossy().into_owned(),
    }
}

/// True for a valid metric name at or below a node. A peer must not be able to bring
/// other names into programs and terminals.
fn is_metric_name_below(name: &str, node: &str) -> bool {
    is_at_or_below(name, node)
        && name.split('.').all(|part| !part.is_empty())
        && !name.contains(char::is_control)
}

/// A child, if its name is a valid component.
fn child(name: PmnsName<'_>) -> Option<Child> {
    let component = std::str::from_utf8(name.name).ok()?;
    let well_formed =
        !component.is_empty() && !component.contains(|c: char| c == '.' || c.is_control());
    well_formed.then(|| Child { name: component.into(), is_leaf: name.status == Some(0) })
}

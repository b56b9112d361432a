//! Answers of pmcd 6 to requests for metadata.
//!
//! Input: the bytes of one request. Output: those of the reply.
//!
//! pmcd 6.0.3 accepts requests that the layouts of [`pmderive_client::pdu`] do not
//! allow, and so does this. A client must not depend on a stricter peer.

use std::collections::BTreeMap;

use pmderive_client::pdu::{
    Desc, DescIds, DescRequest, Descs, HEADER_BYTES, InstanceRequest, Instances, Labels, Pdu,
    PduType, PmnsChild, PmnsIds, PmnsName, PmnsNames, PmnsTraverse, Reader, Text,
};
use pmderive_core::model::{
    InDom, LabelFlags, LabelLevel, LabelSet, PmStatus, Pmid, TextKind, TextSubject, json_string,
};
use pmderive_core::source::Child;

use super::fetch;
use super::host::{FakeHost, HostState};
use super::session::Client;

/// The answer to a request.
#[derive(Debug)]
pub(super) enum Answer {
    /// Rightly no answer.
    None,
    /// The bytes of a PDU, or of several.
    Reply(Vec<u8>),
    /// An ERROR.
    Failed(PmStatus),
}

/// The answer to a malformed request, whatever its fault is.
impl From<pmderive_client::pdu::DecodeError> for Answer {
    fn from(_: pmderive_client::pdu::DecodeError) -> Answer {
        Answer::Failed(PmStatus::IPC)
    }
}

impl From<PmStatus> for Answer {
    fn from(status: PmStatus) -> Answer {
        Answer::Failed(status)
    }
}

/// Answers a request of a type.
pub(super) fn answer(
    host: &FakeHost,
    state: &mut HostState,
    client: &mut Client,
    kind: PduType,
    pdu: &[u8],
) -> Answer {
    let outcome = match kind {
        PduType::Profile => fetch::profile(client, pdu),
        PduType::Fetch | PduType::HighresFetch => fetch::fetch(host, state, client, pdu),
        PduType::Result => fetch::store(host, state, pdu),
        PduType::DescRequest => desc(state, pdu),
        PduType::DescIds => descs(state, pdu),
        PduType::InstanceRequest => instances(host, state, pdu),
        PduType::TextRequest => text(state, pdu),
        PduType::PmnsNames => pmids(state, pdu),
        PduType::PmnsIds => names(state, pdu),
        PduType::PmnsChild => children(state, pdu),
        PduType::PmnsTraverse => traverse(state, pdu),
        PduType::LabelRequest => labels(host, state, client, pdu),
        // Others come from servers, or at another time, or are unknown to this pmcd.
        _ => Err(Answer::Failed(PmStatus::IPC)),
    };
    outcome.unwrap_or_else(|answer| answer)
}

/// An answer in both cases: `Err` is a failure, for use with `?`.
pub(super) type Outcome = Result<Answer, Answer>;

/// Reads the fields of a request. Bytes may follow the last field.
fn begin_of<'a, P: Pdu<'a>>(pdu: &'a [u8]) -> Result<P, Answer> {
    let mut reader = Reader::starting_at(pdu, HEADER_BYTES, P::NAME);
    Ok(P::read(P::TYPES[0], &mut reader)?)
}

fn encoded<'a>(pdu: &impl Pdu<'a>) -> Outcome {
    let mut reply = Vec::new();
    pdu.encode(&mut reply);
    Ok(Answer::Reply(reply))
}

/// The descriptor of a metric whose agent runs.
fn desc_of(state: &HostState, pmid: Pmid) -> Result<pmderive_core::model::MetricDesc, PmStatus> {
    state.agent(pmid.domain())?;
    state.world.metadata().desc(pmid).copied().ok_or(PmStatus::PMID)
}

fn desc(state: &HostState, pdu: &[u8]) -> Outcome {
    let DescRequest { pmid } = DescRequest::decode(pdu)?;
    encoded(&Desc { desc: desc_of(state, pmid)? })
}

fn descs(state: &HostState, pdu: &[u8]) -> Outcome {
    let DescIds { pmids } = begin_of(pdu)?;
    match pmids[..] {
        [] => Err(PmStatus::IPC.into()),
        [pmid] => encoded(&Descs { descs: vec![Some(desc_of(state, pmid)?)] }),
        _ => {
            encoded(&Descs { descs: pmids.iter().map(|pmid| desc_of(state, *pmid).ok()).collect() })
        }
    }
}

fn instances(host: &FakeHost, state: &HostState, pdu: &[u8]) -> Outcome {
    let request = read_instance_request(pdu)?;
    let indom = request.indom;
    if !state.agent(indom.domain())? {
        return Err(PmStatus::INDOM.into());
    }
    let domain = host.instances(state, indom)?;
    let mut reply = Vec::new();
    match (request.instance, request.name) {
        (-1, b"") => {
            let all: Vec<_> = domain.instances().map(|(id, name)| (id, name.as_bytes())).collect();
            Instances::encode_list(indom, &all, &mut reply);
        }
        (id, b"") => {
            let name = domain.name(id).ok_or(PmStatus::INST)?;
            Instances::encode_list(indom, &[(-1, name.as_bytes())], &mut reply);
        }
        (-1, name) => {
            let name = std::str::from_utf8(name).map_err(|_| PmStatus::INST)?;
            let id = domain.lookup(name).ok_or(PmStatus::INST)?;
            Instances::encode_list(indom, &[(id, b"")], &mut reply);
        }
        _ => return Err(PmStatus::INST.into()),
    }
    Ok(Answer::Reply(reply))
}

/// Bytes may follow the name.
fn read_instance_request(pdu: &[u8]) -> Result<InstanceRequest<'_>, Answer> {
    let mut reader = Reader::starting_at(pdu, HEADER_BYTES, "instance_req");
    let indom = InDom(reader.u32("indom")?);
    reader.i64("unused")?;
    let instance = reader.i32("inst")?;
    let len = reader.count(1, "namelen")?;
    Ok(InstanceRequest { indom, instance, name: reader.bytes(len, "name")? })
}

fn text(state: &HostState, pdu: &[u8]) -> Outcome {
    let mut reader = Reader::starting_at(pdu, HEADER_BYTES, "text_req");
    let ident = reader.u32("ident")?;
    let kind = reader.u32("type")?;
    let (subject, domain) = if kind & 4 != 0 {
        (TextSubject::Metric(Pmid(ident)), Pmid(ident).domain())
    } else if kind & 8 != 0 {
        (TextSubject::Domain(InDom(ident)), InDom(ident).domain())
    } else {
        return Err(PmStatus::PMID.into());
    };
    if !state.agent(domain)? {
        return Err(PmStatus::PMID.into());
    }
    let kind = if kind & 1 != 0 { TextKind::OneLine } else { TextKind::Help };
    let metadata = state.world.metadata();
    let text = match metadata.own_text(subject, kind) {
        Some(text) => text.as_bytes(),
        // Agents whose texts come from files give an empty one if they have the
        // other.
        None if metadata.text(subject, TextKind::Help).is_ok() => b"",
        None => return Err(PmStatus::TEXT.into()),
    };
    // The bytes are swapped, as on a little-endian machine.
    encoded(&Text { ident: ident.swap_bytes(), text })
}

fn pmids(state: &HostState, pdu: &[u8]) -> Outcome {
    let names = read_names(pdu)?;
    let find = |name: &&[u8]| {
        let name = std::str::from_utf8(name).map_err(|_| PmStatus::NAME)?;
        if name.is_empty() { Err(PmStatus::NAME) } else { state.world.metadata().pmid_of(name) }
    };
    match names[..] {
        [b""] => return Err(PmStatus::IPC.into()),
        [name] => {
            let pmids = vec![find(&name)?];
            return encoded(&PmnsIds { status: 1, pmids: pmids.into() });
        }
        _ => {}
    }
    let pmids: Vec<Pmid> = names.iter().map(|name| find(name).unwrap_or(Pmid::NULL)).collect();
    let found = pmids.iter().filter(|pmid| **pmid != Pmid::NULL).count();
    // There are fewer names than bytes of a request.
    let status = i32::try_from(found).unwrap_or(i32::MAX);
    encoded(&PmnsIds { status, pmids: pmids.into() })
}

/// The names of a request, each up to its first NUL. They may have statuses,
/// and the last one need not be padded.
fn read_names(pdu: &[u8]) -> Result<Vec<&[u8]>, Answer> {
    let mut reader = Reader::starting_at(pdu, HEADER_BYTES, "pmns_names");
    let announced = reader.i32("nstrbytes")?;
    let with_status = reader.i32("numstatus")? != 0;
    let count = reader.count(4, "numnames")?;
    if count == 0 {
        return Err(PmStatus::TOOSMALL.into());
    }
    let mut names = Vec::with_capacity(count);
    let mut string_bytes = 0;
    for _ in 0..count {
        if with_status {
            reader.i32("status")?;
        }
        let len = reader.count(1, "namelen")?;
        let name = reader.bytes(len, "name")?;
        let padding = len.next_multiple_of(4) - len;
        reader.bytes(padding.min(reader.remaining()), "name")?;
        string_bytes += len + 1;
        names.push(name.split(|byte| *byte == 0).next().unwrap_or_default());
    }
    if usize::try_from(announced) != Ok(string_bytes) {
        return Err(PmStatus::IPC.into());
    }
    Ok(names)
}

fn names(state: &HostState, pdu: &[u8]) -> Outcome {
    let PmnsIds { pmids, .. } = begin_of(pdu)?;
    let [pmid] = pmids[..] else { return Err(PmStatus::IPC.into()) };
    let mut names = state.world.metadata().names_of(pmid);
    // pmcd finds the name that was added last first.
    names.reverse();
    if names.is_empty() {
        // pmcd asks the agent.
        let status = if state.agent(pmid.domain())? { PmStatus::PMID } else { PmStatus::NOAGENT };
        return Err(status.into());
    }
    let mut reply = Vec::new();
    PmnsNames::encode_names(&names, &mut reply);
    Ok(Answer::Reply(reply))
}

fn children(state: &HostState, pdu: &[u8]) -> Outcome {
    let PmnsChild { name, subtype } = begin_of(pdu)?;
    let node = std::str::from_utf8(name).map_err(|_| PmStatus::NAME)?;
    let names = state.world.metadata().traverse(node)?;
    let children = Child::below(node, names);
    let mut reply = Vec::new();
    if subtype == 0 {
        let names: Vec<&str> = children.iter().map(|child| &*child.name).collect();
        PmnsNames::encode_names(&names, &mut reply);
    } else {
        let children: Vec<_> = children.iter().map(named_child).collect();
        PmnsNames::encode_list(&children, &mut reply);
    }
    Ok(Answer::Reply(reply))
}

fn named_child(child: &Child) -> PmnsName<'_> {
    PmnsName { status: Some(i32::from(!child.is_leaf)), name: child.name.as_bytes() }
}

fn traverse(state: &HostState, pdu: &[u8]) -> Outcome {
    let PmnsTraverse { name } = begin_of(pdu)?;
    let node = std::str::from_utf8(name).map_err(|_| PmStatus::NAME)?;
    let names = state.world.metadata().traverse(node)?;
    let mut reply = Vec::new();
    PmnsNames::encode_names(&names, &mut reply);
    Ok(Answer::Reply(reply))
}

fn labels(host: &FakeHost, state: &HostState, client: &Client, pdu: &[u8]) -> Outcome {
    let mut reader = Reader::starting_at(pdu, HEADER_BYTES, "label_req");
    let ident = reader.u32("ident")?;
    let bit = reader.u32("type")?;
    let level = LabelLevel::from_wire(bit, ident).ok_or(PmStatus::TYPE)?;
    let (domain, unknown) = match level {
        LabelLevel::Context => {
            return encoded(&Labels { level, sets: context_labels(state, client) });
        }
        LabelLevel::Domain(domain) => (domain, PmStatus::NOAGENT),
        LabelLevel::InDom(indom) | LabelLevel::Instances(indom) => {
            (indom.domain(), PmStatus::INDOM)
        }
        LabelLevel::Cluster(pmid) | LabelLevel::Item(pmid) => (pmid.domain(), PmStatus::PMID),
    };
    if !state.agent(domain)? {
        return Err(unknown.into());
    }
    if let LabelLevel::Instances(indom) = level {
        host.instances(state, indom)?;
    }
    encoded(&Labels { level, sets: state.world.labels(level).to_vec() })
}

/// The labels of the world, or else the host's name; and the client's
/// container.
fn context_labels(state: &HostState, client: &Client) -> Vec<LabelSet> {
    let own = state.world.labels(LabelLevel::Context);
    if !own.is_empty() && client.container.is_none() {
        return own.to_vec();
    }
    let labels = own.iter().flat_map(LabelSet::labels);
    let mut members: BTreeMap<&str, String> =
        labels.map(|label| (label.name, label.value.to_owned())).collect();
    members.entry("hostname").or_insert_with(|| json_string(&state.name));
    if let Some(container) = &client.container {
        members.insert("container", json_string(container));
    }
    let members: Vec<String> =
        members.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
    let json = format!("{{{}}}", members.join(","));
    LabelSet::parse(&json, LabelFlags(LabelLevel::Context.bit())).into_iter().collect()
}

//! Answers of pmcd 6 to fetches and stores, and the profiles that it remembers.

use std::collections::{HashMap, HashSet};

use pmderive_client::pdu::{
    ErrorPdu, Fetch, HEADER_BYTES, Pdu, Reader, Resolution, ResultFrame, encode_result,
};
use pmderive_core::model::{InDom, InstId, PmStatus, Pmid, Value};
use pmderive_core::result::{BlockValue, ResultPart, ResultWriter, ValueSet};

use super::answers::{Answer, Outcome};
use super::host::{FakeHost, FetchTime, HostState};
use super::script::Moment;
use super::session::Client;
use super::world::ScriptedMetric;

/// The instances that the fetches of one context return.
#[derive(Debug)]
pub(super) struct Admitted {
    others: bool,
    /// The rule for the instances of a domain that are not listed. The opposite
    /// holds for the listed ones.
    domains: HashMap<u32, (bool, HashSet<InstId>)>,
}

impl Admitted {
    fn admits(&self, indom: InDom, instance: InstId) -> bool {
        match self.domains.get(&indom.0) {
            Some((others, exceptions)) => *others != exceptions.contains(&instance),
            None => self.others,
        }
    }
}

/// Stores a profile in place of the context's earlier one. pmcd reads every
/// state except 0 as exclusion, and one more word if there are no entries.
pub(super) fn profile(client: &mut Client, pdu: &[u8]) -> Outcome {
    let mut reader = Reader::starting_at(pdu, HEADER_BYTES, "profile");
    let context = reader.i32("ctxnum")?;
    let others = reader.i32("state")? == 0;
    let count = reader.count(16, "numprof")?;
    reader.u32("pad")?;
    if context < 0 {
        return Err(PmStatus::IPC.into());
    }
    let mut heads = Vec::with_capacity(count);
    for _ in 0..count {
        let indom = reader.u32("indom")?;
        let others = reader.i32("state")? == 0;
        heads.push((indom, others, reader.count(4, "numinst")?));
        reader.u32("pad")?;
    }
    let mut domains = HashMap::with_capacity(count);
    for (indom, others, len) in heads {
        let listed = (0..len).map(|_| reader.i32("insts")).collect::<Result<_, _>>()?;
        domains.insert(indom, (others, listed));
    }
    let admitted = Admitted { others, domains };
    match client.profiles.iter_mut().find(|(number, _)| *number == context) {
        Some((_, known)) => *known = admitted,
        None => client.profiles.push((context, admitted)),
    }
    Ok(Answer::None)
}

/// Answers FETCH and HIGHRES_FETCH, after the due notices.
pub(super) fn fetch(
    host: &FakeHost,
    state: &mut HostState,
    client: &mut Client,
    pdu: &[u8],
) -> Outcome {
    let fetch = Fetch::decode(pdu)?;
    if fetch.pmids.is_empty() {
        return Err(PmStatus::IPC.into());
    }
    let profile = client.profiles.iter().find(|(number, _)| *number == fetch.context);
    let Some((_, admitted)) = profile else { return Err(PmStatus::NOPROFILE.into()) };
    let now = host.begin_fetch(state);
    let mut part = ResultPart::default();
    let mut writer = ResultWriter::new(&mut part, now.stamp);
    for pmid in fetch.pmids.iter() {
        write_set(host, state, admitted, now, *pmid, &mut writer);
    }
    let mut reply = Vec::new();
    let notices = state.notices_since(client.notices);
    client.notices = state.notices();
    if !notices.is_none() {
        ErrorPdu { status: notices.0 }.encode(&mut reply);
    }
    encode_result(&part, fetch.resolution, &mut reply);
    Ok(Answer::Reply(reply))
}

fn write_set(
    host: &FakeHost,
    state: &HostState,
    admitted: &Admitted,
    now: FetchTime,
    pmid: Pmid,
    writer: &mut ResultWriter<'_>,
) {
    let served = match (state.agent(pmid.domain()), state.world.served(pmid)) {
        (Ok(true), Some(served)) => served,
        (Ok(true), None) => return writer.status(pmid, PmStatus::PMID),
        _ => return writer.status(pmid, PmStatus::NOAGENT),
    };
    let mut moment = Moment {
        time: now.time,
        age: state.age(pmid, now.time),
        fetch: now.fetch,
        seed: host.seed(),
        host: &state.name,
        pmid,
        instance: -1,
    };
    writer.set(pmid);
    let mut form = None;
    let Some(indom) = served.desc.indom else {
        write_value(state, served, &moment, &mut form, writer);
        return;
    };
    let domain = match state.world.instances(indom, host.seed(), now.time) {
        Ok(domain) => domain,
        Err(status) => return writer.fail(status),
    };
    for (instance, _) in domain.instances() {
        if !admitted.admits(indom, instance) {
            continue;
        }
        moment.instance = instance;
        if !write_value(state, served, &moment, &mut form, writer) {
            return;
        }
    }
}

/// Writes the value of one instance, if it has one. False if the set has failed
/// instead. `form` is that of the set's first value: in place, or not.
fn write_value(
    state: &HostState,
    served: &ScriptedMetric,
    moment: &Moment<'_>,
    form: &mut Option<bool>,
    writer: &mut ResultWriter<'_>,
) -> bool {
    let stored = state.stored.get(&(moment.pmid, moment.instance));
    let value = match stored {
        Some(stored) => Ok(Some(stored.clone())),
        None => served.script.value(served.desc.value_type, moment),
    };
    let value = match value {
        Ok(Some(value)) => value,
        Ok(None) => return true,
        Err(status) => {
            writer.fail(status);
            return false;
        }
    };
    let in_place = matches!(value, Value::I32(_) | Value::U32(_));
    if *form.get_or_insert(in_place) != in_place {
        writer.fail(PmStatus::CONV);
        return false;
    }
    let instance = moment.instance;
    match &value {
        Value::I32(number) => writer.in_place(instance, number.cast_unsigned()),
        Value::U32(number) => writer.in_place(instance, *number),
        Value::I64(number) => writer.block(instance, BlockValue::I64(*number)),
        Value::U64(number) => writer.block(instance, BlockValue::U64(*number)),
        Value::F32(number) => writer.block(instance, BlockValue::F32(*number)),
        Value::F64(number) => writer.block(instance, BlockValue::F64(*number)),
        Value::Text(text) => writer.block(instance, BlockValue::Text(text)),
        Value::Aggregate(bytes) => writer.block(instance, BlockValue::Aggregate(bytes)),
        Value::Event(bytes) => writer.encoded_block(instance, EVENT, bytes),
        Value::HighResEvent(bytes) => {
            writer.encoded_block(instance, HIGHRES_EVENT, bytes);
        }
    }
    true
}

/// Type codes of event arrays.
const EVENT: u8 = 9;
const HIGHRES_EVENT: u8 = 10;

/// Stores the values of a RESULT from a client. Good ones are stored even if
/// another one is wrong; the status of the latter is returned.
pub(super) fn store(host: &FakeHost, state: &mut HostState, pdu: &[u8]) -> Outcome {
    let frame = ResultFrame::decode(pdu, Resolution::Micro, None)?;
    let part = frame.into_part(pdu.to_vec());
    let mut outcome = PmStatus(0);
    for set in part.sets() {
        if let Err(status) = store_set(host, state, &set) {
            outcome = status;
        }
    }
    let mut reply = Vec::new();
    ErrorPdu { status: outcome.0 }.encode(&mut reply);
    Ok(Answer::Reply(reply))
}

fn store_set(host: &FakeHost, state: &mut HostState, set: &ValueSet<'_>) -> Result<(), PmStatus> {
    if set.is_empty() {
        return Err(PmStatus::BADSTORE);
    }
    if !state.agent(set.pmid.domain())? {
        return Err(PmStatus::NOAGENT);
    }
    let served = state.world.served(set.pmid).ok_or(PmStatus::PMID)?;
    if !served.writable {
        return Err(PmStatus::PERMISSION);
    }
    let (value_type, indom) = (served.desc.value_type, served.desc.indom);
    for (instance, value) in set.values() {
        let known = match indom {
            // Every client of `pmcd.client.whoami` has an instance of its own.
            Some(indom) if indom.domain() != super::PMCD_AGENT => {
                host.instances(state, indom)?.name(instance).is_some()
            }
            _ => true,
        };
        if !known {
            return Err(PmStatus::INST);
        }
        let value = value.ok_or(PmStatus::IPC)?.decode(value_type)?;
        state.stored.insert((set.pmid, instance), value);
    }
    Ok(())
}

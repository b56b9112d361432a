//! Requests to pmcd, and its replies.
//!
//! Requests borrow the identifiers and names that they ask about. Large replies
//! borrow from the received bytes.

use std::sync::Arc;

use pmderive_core::model::{InDom, InstId, LabelLevel, LabelSet, MetricDesc, PmStatus, Pmid};
use pmderive_core::result::ResultBatch;

use super::StoreRequest;
use crate::pdu::{
    DescIds, DescRequest, Fetch, InstanceRequest, Instances, LabelRequest, MAX_REQUEST_BYTES, Pdu,
    PduType, PmnsChild, PmnsIds, PmnsNames, PmnsTraverse, Resolution, ResultFrame, TextRequest,
};

/// One request. Its answer is one reply, or a status.
#[derive(Clone, Copy, Debug)]
pub enum Request<'a> {
    /// Identifiers of names. All names must fit into one PDU of [`MAX_REQUEST_BYTES`].
    /// Answered by [`Reply::Ids`]. If a single name is not found, the answer is its
    /// status.
    LookupNames(&'a [&'a str]),
    /// The descriptor of one metric. Answered by [`Reply::Desc`].
    LookupDesc(Pmid),
    /// Descriptors of several metrics. Answered by [`Reply::Descs`]. If a single metric
    /// is not found, the answer is its status. Only for a pmcd with
    /// [`crate::pdu::Features::DESCS`].
    LookupDescs(&'a [Pmid]),
    /// All instances of a domain. Answered by [`Reply::Instances`].
    InstanceDomain(InDom),
    /// The instance that the agent finds for a name, which must not be empty. Answered
    /// by [`Reply::Instance`].
    LookupInstance(InDom, &'a str),
    /// The name of an instance, which must not be -1. Answered by
    /// [`Reply::InstanceName`].
    InstanceName(InDom, InstId),
    /// All metric names at or below a node. Answered by [`Reply::Names`].
    Traverse(&'a str),
    /// The children of a node. Answered by [`Reply::Names`] with statuses.
    Children(&'a str),
    /// All names of a metric. Answered by [`Reply::Names`].
    NamesOf(Pmid),
    /// A help text. Answered by [`Reply::Text`].
    HelpText(TextRequest),
    /// The labels of a level. Answered by [`Reply::Labels`]. Only for a pmcd with
    /// [`crate::pdu::Features::LABELS`].
    Labels(LabelLevel),
    /// The values of metrics. Answered by [`Reply::Result`].
    Fetch(&'a Arc<FetchRequest>),
    /// New values for metrics. Answered by [`Reply::Stored`].
    Store(&'a StoreRequest),
}

/// A request for values, which is encoded once and sent often.
#[derive(Debug)]
pub struct FetchRequest {
    pub(super) pdu: Vec<u8>,
    pmids: Box<[Pmid]>,
    resolution: Resolution,
}

impl FetchRequest {
    /// Maximum number of metrics that pmcd accepts in one request.
    pub const MAX_PMIDS: usize = (MAX_REQUEST_BYTES - Fetch::FIXED_BYTES) / 4;

    /// Encodes the request for context 0 of a connection. `pmids` must have at least
    /// one and at most [`FetchRequest::MAX_PMIDS`] metrics.
    pub fn new(pmids: &[Pmid], resolution: Resolution) -> FetchRequest {
        let mut pdu = Vec::new();
        Fetch { resolution, context: 0, pmids: pmids.into() }.encode(&mut pdu);
        FetchRequest { pdu, pmids: pmids.into(), resolution }
    }

    /// Adds a reply to a batch as columns, if it differs only in numbers from an earlier
    /// one for the list with that identity (see [`ResultFrame::add_as_before`]).
    pub(super) fn add_as_before(&self, pdu: &[u8], list: u64, batch: &mut ResultBatch) -> bool {
        ResultFrame::add_as_before(pdu, (list, self.resolution), &self.pmids, batch)
    }
}

/// The reply to a request.
#[derive(Debug, PartialEq)]
// Exhaustive on purpose: a caller must handle each reply, and the compiler
// reports a missing one.
pub enum Reply<'a> {
    /// One identifier per name; [`Pmid::NULL`] for a name that was not found.
    Ids(Vec<Pmid>),
    /// A descriptor.
    Desc(MetricDesc),
    /// One descriptor per metric; `None` for a metric that was not found.
    Descs(Vec<Option<MetricDesc>>),
    /// Instances.
    Instances(Instances<'a>),
    /// An instance.
    Instance(InstId),
    /// Name of an instance.
    InstanceName(&'a [u8]),
    /// Names.
    Names(PmnsNames<'a>),
    /// The status of an agent in place of names.
    Failed(PmStatus),
    /// Text.
    Text(&'a [u8]),
    /// Labels.
    Labels(Vec<LabelSet>),
    /// The values; [`super::Connection::take_result`] returns them.
    Result(ResultFrame),
    /// The values are stored.
    Stored,
}

/// A reply that is due, with the data to check it.
#[derive(Clone, Debug)]
pub(super) enum ExpectedReply {
    Ids(usize),
    Desc(Pmid),
    Descs(Box<[Pmid]>),
    Instances(InDom),
    Instance,
    InstanceName,
    Names,
    /// Names with statuses.
    Children,
    Text,
    Labels(LabelLevel),
    Result {
        request: Arc<FetchRequest>,
        after_profile: bool,
    },
    Stored,
}

impl ExpectedReply {
    /// Type of the PDU that is due.
    pub(super) fn pdu_type(&self) -> PduType {
        match self {
            ExpectedReply::Ids(_) => PduType::PmnsIds,
            ExpectedReply::Desc(_) => PduType::Desc,
            ExpectedReply::Descs(_) => PduType::Descs,
            ExpectedReply::Instances(_) | ExpectedReply::Instance | ExpectedReply::InstanceName => {
                PduType::Instances
            }
            ExpectedReply::Names | ExpectedReply::Children => PduType::PmnsNames,
            ExpectedReply::Text => PduType::Text,
            ExpectedReply::Labels(_) => PduType::Labels,
            ExpectedReply::Result { request, .. } => match request.resolution {
                Resolution::Micro => PduType::Result,
                Resolution::Nano => PduType::HighresResult,
            },
            // Success has no PDU of its own: it is a status of 0.
            ExpectedReply::Stored => PduType::Error,
        }
    }

    /// Decodes the PDU that answers the request.
    pub(super) fn decode<'a>(&self, pdu: &'a [u8]) -> Result<Reply<'a>, crate::pdu::DecodeError> {
        use crate::pdu::{Desc, Descs, Labels, Text};
        match self {
            ExpectedReply::Ids(count) => {
                let ids = PmnsIds::decode(pdu)?;
                same("pmns_ids", "numids", 16, ids.pmids.len(), *count)?;
                for (pmid, offset) in ids.pmids.iter().zip((20..).step_by(4)) {
                    if *pmid != Pmid::NULL {
                        // The flag bit is for private use within one process.
                        same("pmns_ids", "pmids", offset, pmid.0, pmid.0 & 0x7fff_ffff)?;
                    }
                }
                Ok(Reply::Ids(ids.pmids.into_owned()))
            }
            ExpectedReply::Desc(pmid) => {
                // An agent may give it another identifier, which libpcp passes over.
                let Desc { desc } = Desc::decode(pdu)?;
                Ok(Reply::Desc(MetricDesc { pmid: *pmid, ..desc }))
            }
            ExpectedReply::Descs(pmids) => {
                let Descs { descs } = Descs::decode(pdu)?;
                same("descs", "numdescs", 12, descs.len(), pmids.len())?;
                // One of another metric is asked for once more, by itself.
                let descs = descs.into_iter().zip(pmids);
                let own = descs.map(|(desc, pmid)| desc.filter(|desc| desc.pmid == *pmid));
                Ok(Reply::Descs(own.collect()))
            }
            ExpectedReply::Instances(indom) => {
                // The domain in the reply is unreliable: for some of its own domains,
                // pmcd sends uninitialised memory.
                let mut instances = Instances::decode(pdu)?;
                instances.indom = *indom;
                Ok(Reply::Instances(instances))
            }
            ExpectedReply::Instance => single(pdu).map(|(instance, _)| Reply::Instance(instance)),
            ExpectedReply::InstanceName => single(pdu).map(|(_, name)| Reply::InstanceName(name)),
            ExpectedReply::Names | ExpectedReply::Children
                if let Some(status) = PmnsNames::failure(pdu) =>
            {
                Ok(Reply::Failed(status))
            }
            ExpectedReply::Names => PmnsNames::decode(pdu).map(Reply::Names),
            ExpectedReply::Children => {
                let names = PmnsNames::decode(pdu)?;
                let statuses = if names.has_statuses() { names.len() } else { 0 };
                same("pmns_names", "numstatus", 16, statuses, names.len())?;
                Ok(Reply::Names(names))
            }
            ExpectedReply::Text => Text::decode(pdu).map(|text| Reply::Text(text.text)),
            ExpectedReply::Labels(level) => {
                let labels = Labels::decode(pdu)?;
                same("label", "ident", 12, labels.level.ident(), level.ident())?;
                same("label", "type", 16, labels.level.bit(), level.bit())?;
                Ok(Reply::Labels(labels.sets))
            }
            ExpectedReply::Result { request, .. } => {
                ResultFrame::decode(pdu, request.resolution, Some(&request.pmids))
                    .map(Reply::Result)
            }
            ExpectedReply::Stored => Ok(Reply::Stored),
        }
    }
}

/// The only instance of a reply.
fn single(pdu: &[u8]) -> Result<(InstId, &[u8]), crate::pdu::DecodeError> {
    let instances = Instances::decode(pdu)?;
    same("instance", "numinst", 16, instances.len(), 1)?;
    Ok(instances.iter().next().unwrap_or((-1, &[])))
}

/// Fails unless a number in a reply is the one that the request implies.
fn same<T: TryInto<i64> + PartialEq>(
    structure: &'static str,
    field: &'static str,
    offset: usize,
    found: T,
    expected: T,
) -> Result<(), crate::pdu::DecodeError> {
    if found == expected {
        return Ok(());
    }
    let problem = crate::pdu::Problem::mismatch(found, expected);
    Err(crate::pdu::DecodeError { structure, field, offset, problem })
}

impl Request<'_> {
    /// Appends the request's PDU, and returns the reply that is due.
    pub(super) fn encode(self, out: &mut Vec<u8>) -> ExpectedReply {
        match self {
            Request::LookupNames(names) => {
                PmnsNames::encode_names(names, out);
                ExpectedReply::Ids(names.len())
            }
            Request::LookupDesc(pmid) => {
                DescRequest { pmid }.encode(out);
                ExpectedReply::Desc(pmid)
            }
            Request::LookupDescs(pmids) => {
                DescIds { pmids: pmids.into() }.encode(out);
                ExpectedReply::Descs(pmids.into())
            }
            Request::InstanceDomain(indom) => {
                InstanceRequest::all(indom).encode(out);
                ExpectedReply::Instances(indom)
            }
            Request::LookupInstance(indom, name) => {
                InstanceRequest { indom, instance: -1, name: name.as_bytes() }.encode(out);
                ExpectedReply::Instance
            }
            Request::InstanceName(indom, instance) => {
                InstanceRequest { indom, instance, name: &[] }.encode(out);
                ExpectedReply::InstanceName
            }
            Request::Traverse(prefix) => {
                PmnsTraverse { name: prefix.as_bytes() }.encode(out);
                ExpectedReply::Names
            }
            Request::Children(node) => {
                PmnsChild { name: node.as_bytes(), subtype: 1 }.encode(out);
                ExpectedReply::Children
            }
            Request::NamesOf(pmid) => {
                PmnsIds { status: 0, pmids: [pmid][..].into() }.encode(out);
                ExpectedReply::Names
            }
            Request::HelpText(request) => {
                request.encode(out);
                ExpectedReply::Text
            }
            Request::Labels(level) => {
                LabelRequest { level }.encode(out);
                ExpectedReply::Labels(level)
            }
            Request::Fetch(request) => {
                out.extend_from_slice(&request.pdu);
                ExpectedReply::Result { request: Arc::clone(request), after_profile: false }
            }
            Request::Store(request) => {
                out.extend_from_slice(request.pdu());
                ExpectedReply::Stored
            }
        }
    }
}

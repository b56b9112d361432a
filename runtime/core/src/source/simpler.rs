//! Answers to questions, composed from simpler ones, for sources that know only
//! names, descriptors and instances.

use std::sync::Arc;

use super::{
    Answer, Child, Fact, Freshness, MetadataSource, OneAnswer, Question, SourceError, one,
};
use crate::model::{InstanceDomain, PmStatus, Pmid};

/// Answers a question by asking the same source simpler ones. The simplest
/// questions get the status for "no answer". A domain's instances are the
/// current ones, there are no texts and no labels, and the source's name is the
/// host name.
pub fn by_simpler_questions(
    source: &mut (impl MetadataSource + ?Sized),
    question: Question<'_>,
) -> Result<Answer, SourceError> {
    let mut domain = |indom| one(source, Question::Domain(indom, Freshness::Current));
    Ok(match question {
        Question::KnownInstances(indom) => domain(indom)?.map(Fact::Domain),
        Question::Instance(indom, name) => domain(indom)?
            .and_then(|domain: Arc<InstanceDomain>| domain.lookup(name).ok_or(PmStatus::INST))
            .map(Fact::Instance),
        Question::InstanceName(indom, instance) => domain(indom)?
            .and_then(|domain: Arc<InstanceDomain>| {
                domain.name(instance).map(Box::from).ok_or(PmStatus::INST)
            })
            .map(Fact::Text),
        Question::NamesAtOtherTimes(..) => Ok(Fact::Instances(Vec::new())),
        Question::Children(node) => {
            let names: Result<Vec<Box<str>>, _> = one(source, Question::MetricsBelow(node))?;
            let children =
                |names: Vec<Box<str>>| Child::below(node, names.iter().map(|name| &**name));
            names.map(children).map(Fact::Children)
        }
        Question::NamesOf(pmid) => names_of(source, pmid)?.map(Fact::Names),
        Question::PmidIfAny(name) => one(source, Question::Pmid(name))?.map(Fact::Pmid),
        Question::HostName => Ok(Fact::Text(source.name().into())),
        // The simplest questions, and questions that only some sources can
        // answer.
        _ => Err(question.status()),
    })
}

/// All names of a metric, found by looking up every name.
fn names_of(source: &mut (impl MetadataSource + ?Sized), pmid: Pmid) -> OneAnswer<Vec<Box<str>>> {
    let all: Vec<Box<str>> = match one(source, Question::MetricsBelow(""))? {
        Ok(all) => all,
        Err(status) => return Ok(Err(status)),
    };
    let questions: Vec<&str> = all.iter().map(|name| &**name).collect();
    let pmids = source.lookup_names(&questions)?;
    let named = all.iter().zip(pmids).filter(|(_, found)| *found == Ok(pmid));
    let named: Vec<Box<str>> = named.map(|(name, _)| name.clone()).collect();
    Ok(if named.is_empty() { Err(PmStatus::PMID) } else { Ok(named) })
}

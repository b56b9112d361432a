//! An agent inside the process offers names with descriptors, instance domains,
//! and values on request.
//!
//! An agent writes its values through [`Values`], which checks them against the
//! metric's type. The agent knows neither the order of a request nor the form
//! of a result.

use std::borrow::Cow;
use std::sync::Arc;

use pmderive_core::model::{
    InDom, InstId, InstanceDomain, InstanceProfile, LabelLevel, LabelSet, MetricDesc, PmStatus,
    Pmid, ValueType,
};
use pmderive_core::result::{BlockValue, ResultWriter};

/// Largest number of bytes of a value of text or opaque bytes. A block's length
/// has 24 bits and includes the block's header and a terminating NUL.
const MAX_VALUE_BYTES: usize = 0xff_ffff - 5;

/// A source of metrics within this process. It plays the part that a PMDA plays
/// for pmcd (`PMDA(3)`).
///
/// ```
/// use std::sync::Arc;
/// use pmderive_local::{Agent, Metric, AgentValue, Values};
/// use pmderive_core::model::*;
///
/// struct Answer;
///
/// impl Agent for Answer {
///     fn name(&self) -> &str {
///         "answer"
///     }
///     fn metrics(&self) -> Vec<Metric> {
///         let desc = MetricDesc {
///             pmid: Pmid::new(400, 0, 0),
///             value_type: ValueType::U32,
///             indom: None,
///             semantics: Semantics::Discrete,
///             units: Units::NONE,
///         };
///         vec![Metric { name: "answer.value".into(), desc, help: "The answer.".into() }]
///     }
///     fn fetch(&mut self, _: Pmid, values: &mut Values<'_, '_>) -> Result<(), PmStatus> {
///         values.put(-1, AgentValue::U32(42));
///         Ok(())
///     }
/// }
/// ```
pub trait Agent: Send {
    /// Name for messages.
    fn name(&self) -> &str;

    /// Another agent of the same kind over the same root, for another context
    /// (`pmDupContext(3)`). `None` if the agent cannot be duplicated.
    fn duplicate(&self) -> Option<Box<dyn Agent>> {
        None
    }

    /// All metrics of the agent. The context asks once, when it attaches the
    /// agent: an agent's metrics do not change while it is in use.
    fn metrics(&self) -> Vec<Metric>;

    /// Begins a fetch, or a question about current instances. Earlier readings
    /// of the agent are now out of date. All answers until the next call must
    /// describe the same moment, because the metrics of a fetch belong
    /// together.
    fn begin_fetch(&mut self) {}

    /// Adds the values that the metric has now. A metric without values adds
    /// none.
    ///
    /// # Errors
    /// The status with which the metric failed. It becomes the metric's result,
    /// even if values were added before.
    fn fetch(&mut self, pmid: Pmid, values: &mut Values<'_, '_>) -> Result<(), PmStatus>;

    /// Changes a value (`pmStore(3)`). By default every change is refused with
    /// [`PmStatus::PERMISSION`].
    ///
    /// # Errors
    /// The status that the caller gets.
    fn store(
        &mut self,
        pmid: Pmid,
        instance: InstId,
        value: &pmderive_core::model::Value,
    ) -> Result<(), PmStatus> {
        let _ = (pmid, instance, value);
        Err(PmStatus::PERMISSION)
    }

    /// The instance domain as of the current fetch. Return the same `Arc` while
    /// nothing changes; [`super::Instances`] helps with that. An agent whose
    /// metrics all have a single value need not implement this.
    ///
    /// # Errors
    /// [`PmStatus::INDOM`] for a domain that the agent does not have.
    fn instance_domain(&mut self, indom: InDom) -> Result<Arc<InstanceDomain>, PmStatus> {
        let _ = indom;
        Err(PmStatus::INDOM)
    }

    /// Identifier of the instance that `name` stands for (`pmLookupInDom(3)`),
    /// as of the current fetch. The name is usually the instance's own, or its
    /// first word.
    ///
    /// # Errors
    /// [`PmStatus::INST`] when no instance has the name, and every error of
    /// [`Agent::instance_domain`].
    fn lookup_instance(&mut self, indom: InDom, name: &str) -> Result<InstId, PmStatus> {
        self.instance_domain(indom)?.lookup(name).ok_or(PmStatus::INST)
    }

    /// One line of help about an instance domain (`pmLookupInDomText(3)`), if
    /// the agent has one.
    fn domain_help(&self, indom: InDom) -> Option<Cow<'static, str>> {
        let _ = indom;
        None
    }

    /// Labels of a level (`pmdaLabel(3)`); never asked for the level of the
    /// context. At most one set, except for instances: there, one set for each
    /// instance with labels, as of the current fetch. The context itself adds
    /// the label that names the agent.
    fn labels(&mut self, level: LabelLevel) -> Vec<LabelSet> {
        let _ = level;
        Vec::new()
    }
}

/// A metric as its agent describes it.
#[derive(Clone, Debug)]
pub struct Metric {
    /// Full name, components separated by dots (`PMNS(5)`).
    pub name: Cow<'static, str>,
    /// Identifier, type, instance domain, semantics and units.
    pub desc: MetricDesc,
    /// One line of help (`pmLookupText(3)`).
    pub help: Cow<'static, str>,
}

/// One value of a metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AgentValue<'a> {
    /// 32-bit signed integer.
    I32(i32),
    /// 32-bit unsigned integer.
    U32(u32),
    /// 64-bit signed integer.
    I64(i64),
    /// 64-bit unsigned integer.
    U64(u64),
    /// 32-bit floating point.
    F32(f32),
    /// 64-bit floating point.
    F64(f64),
    /// Text.
    Text(&'a str),
    /// Opaque bytes.
    Aggregate(&'a [u8]),
}

impl AgentValue<'_> {
    /// The type of the metrics that accept this value.
    pub fn value_type(&self) -> ValueType {
        match self {
            AgentValue::I32(_) => ValueType::I32,
            AgentValue::U32(_) => ValueType::U32,
            AgentValue::I64(_) => ValueType::I64,
            AgentValue::U64(_) => ValueType::U64,
            AgentValue::F32(_) => ValueType::F32,
            AgentValue::F64(_) => ValueType::F64,
            AgentValue::Text(_) => ValueType::String,
            AgentValue::Aggregate(_) => ValueType::Aggregate,
        }
    }
}

/// A receiver of the values of one metric in a fetch.
#[derive(Debug)]
pub struct Values<'w, 'p> {
    writer: &'w mut ResultWriter<'p>,
    desc: MetricDesc,
    profile: &'w InstanceProfile,
    rejected: Option<PmStatus>,
}

impl<'w, 'p> Values<'w, 'p> {
    /// Begins the value set of a metric.
    pub(super) fn new(
        writer: &'w mut ResultWriter<'p>,
        desc: MetricDesc,
        profile: &'w InstanceProfile,
    ) -> Values<'w, 'p> {
        writer.set(desc.pmid);
        Values { writer, desc, profile, rejected: None }
    }

    /// Ends the value set. It becomes a status if the agent failed or if one of
    /// its values was not acceptable.
    pub(super) fn finish(self, outcome: Result<(), PmStatus>) {
        if let Some(status) = outcome.err().or(self.rejected) {
            self.writer.fail(status);
        }
    }

    /// Makes the metric fail.
    pub(super) fn fail(&mut self, status: PmStatus) {
        self.rejected = Some(status);
    }

    /// Descriptor of the metric that is being fetched.
    pub fn desc(&self) -> &MetricDesc {
        &self.desc
    }

    /// The instances that the caller requests (`pmAddProfile(3)`). Values of
    /// other instances are dropped, so an agent need not compute expensive
    /// ones.
    pub fn profile(&self) -> &'w InstanceProfile {
        self.profile
    }

    /// Adds the value of an instance. Instance -1 (`PM_IN_NULL`) stands for the
    /// single value of a metric without an instance domain.
    ///
    /// A value of another type than the metric's makes the metric fail with
    /// [`PmStatus::TYPE`]. A value longer than a result can carry (16 MiB)
    /// makes it fail with [`PmStatus::TRUNC`].
    pub fn put(&mut self, instance: InstId, value: AgentValue<'_>) {
        if value.value_type() != self.desc.value_type {
            self.rejected = Some(PmStatus::TYPE);
            return;
        }
        if self.desc.indom.is_some_and(|indom| !self.profile.admits(indom, instance)) {
            return;
        }
        let block = match value {
            AgentValue::I32(v) => return self.writer.in_place(instance, v.cast_unsigned()),
            AgentValue::U32(v) => return self.writer.in_place(instance, v),
            AgentValue::I64(v) => BlockValue::I64(v),
            AgentValue::U64(v) => BlockValue::U64(v),
            AgentValue::F32(v) => BlockValue::F32(v),
            AgentValue::F64(v) => BlockValue::F64(v),
            AgentValue::Text(v) if v.len() <= MAX_VALUE_BYTES => BlockValue::Text(v),
            AgentValue::Aggregate(v) if v.len() <= MAX_VALUE_BYTES => BlockValue::Aggregate(v),
            AgentValue::Text(_) | AgentValue::Aggregate(_) => {
                self.rejected = Some(PmStatus::TRUNC);
                return;
            }
        };
        self.writer.block(instance, block);
    }
}

//! Adds entries to a group: looks up and checks everything, in the order of
//! pmExtendFetchGroup_item(3) and its kin.

use pmderive_core::model::{
    EVENT_FLAGS, EVENT_MISSED, InstId, MetricDesc, PmStatus, Semantics, Units, ValueType,
};
use pmderive_core::source::FetchSource;

use super::recipe::Recipe;
use super::slots::{EventsSlot, HeldValue, InstancesSlot, ItemSlot};
use super::target::{Events, Instances, Item, Target};
use super::{ExtendError, FetchGroup, ItemSpec};

fn refused(metric: &str, problem: impl Into<String>, status: PmStatus) -> ExtendError {
    ExtendError::Refused { metric: metric.into(), problem: problem.into(), status }
}

/// The recipe from a metric's values to those of the target type and the
/// specification.
fn recipe<T: Target>(spec: &ItemSpec, desc: &MetricDesc) -> Result<Recipe, ExtendError> {
    let wanted = T::VALUE_TYPE.or(spec.value_type).unwrap_or(desc.value_type);
    let recipe = Recipe::new(desc, spec.scale.as_deref(), wanted);
    recipe.map_err(|(problem, status)| refused(&spec.metric, problem, status))
}

impl<S: FetchSource> FetchGroup<S> {
    /// Adds one value: that of a metric without an instance domain, or of one
    /// instance (`pmExtendFetchGroup_item(3)`). The instance may be absent now
    /// if it exists at another time of the archive.
    ///
    /// # Errors
    /// The source failed, it does not have the metric or the instance, or the
    /// value cannot be converted.
    pub fn item<T: Target>(&mut self, spec: impl Into<ItemSpec>) -> Result<Item<T>, ExtendError> {
        let spec = &spec.into();
        let desc = self.metric(&spec.metric)?;
        let instance = self.instance(spec, &desc)?;
        let recipe = recipe::<T>(spec, &desc)?;
        if let (Some(indom), Some(instance)) = (desc.indom, instance) {
            self.profile.include(indom, &[instance]);
        }
        let metric = self.position(&desc);
        let is_kept = self.is_kept(&desc);
        self.items.push(ItemSlot { metric, instance, recipe, is_kept, held: HeldValue::NOTHING });
        Ok(Item::new(self.place(self.items.len())))
    }

    /// Adds the values of all instances of a metric, as they are at each fetch
    /// (`pmExtendFetchGroup_indom(3)`). A metric without an instance domain has
    /// one row: instance -1, without a name.
    ///
    /// # Errors
    /// As for [`FetchGroup::item`].
    pub fn indom<T: Target>(
        &mut self,
        spec: impl Into<ItemSpec>,
    ) -> Result<Instances<T>, ExtendError> {
        let spec = &spec.into();
        let desc = self.metric(&spec.metric)?;
        if spec.instance.is_some() {
            let problem = "the entry is for all instances, but an instance is given";
            return Err(refused(&spec.metric, problem, PmStatus::INDOM));
        }
        let recipe = recipe::<T>(spec, &desc)?;
        if let Some(indom) = desc.indom {
            self.profile.include_all(indom);
        }
        let metric = self.position(&desc);
        let is_kept = self.is_kept(&desc);
        let slot = InstancesSlot::new(metric, desc.indom, recipe, is_kept, spec.most);
        self.domains.push(slot);
        Ok(Instances::new(self.place(self.domains.len())))
    }

    /// Adds the values of a field in all event records of a metric or instance
    /// (`pmExtendFetchGroup_event(3)`). A field is itself a metric; the scale
    /// applies to it. Records have no rates.
    ///
    /// # Errors
    /// As for [`FetchGroup::item`].
    pub fn event<T: Target>(
        &mut self,
        spec: impl Into<ItemSpec>,
        field: &str,
    ) -> Result<Events<T>, ExtendError> {
        let spec = &spec.into();
        let desc = self.metric(&spec.metric)?;
        let instance = self.instance(spec, &desc)?;
        let field_desc = self.field(field)?;
        if field_desc.indom.is_some() {
            let problem = "this metric has instances, and a field of an event record has none";
            return Err(refused(field, problem, PmStatus::INDOM));
        }
        if !desc.value_type.is_event() {
            let problem = format!("values of type {} are not event records", desc.value_type);
            return Err(refused(&spec.metric, problem, PmStatus::TYPE));
        }
        let recipe = recipe::<T>(spec, &field_desc)?;
        if recipe.is_rate {
            let problem = "event records have no rates; the scale `instant` gives the values";
            return Err(refused(field, problem, PmStatus::CONV));
        }
        if let (Some(indom), Some(instance)) = (desc.indom, instance) {
            self.profile.include(indom, &[instance]);
        }
        let metric = self.position(&desc);
        self.events.push(EventsSlot {
            metric,
            instance,
            field: field_desc.pmid,
            recipe,
            most: spec.most,
            rows: Vec::new(),
            status: Err(PmStatus::VALUE),
        });
        Ok(Events::new(self.place(self.events.len())))
    }

    fn is_kept(&self, desc: &MetricDesc) -> bool {
        self.options.keep_discrete && desc.semantics == Semantics::Discrete
    }

    fn metric(&mut self, name: &str) -> Result<MetricDesc, ExtendError> {
        let pmid = self.source.lookup_names(&[name])?.pop().unwrap_or(Err(PmStatus::NAME));
        let pmid = pmid.map_err(|status| {
            let problem = match status {
                PmStatus::NAME => "no metric has this name",
                PmStatus::NONLEAF => "this is a node of the name space, and no metric",
                _ => "the source does not look up this name",
            };
            refused(name, problem, status)
        })?;
        self.source.lookup_desc(pmid)?.map_err(|status| {
            let problem = match status {
                PmStatus::BADDERIVE => "its definition cannot be used with this source",
                _ => "the metric has no descriptor",
            };
            refused(name, problem, status)
        })
    }

    /// The descriptor of a field. Fields that libpcp itself adds to a record
    /// have one even if the source lacks their names.
    fn field(&mut self, name: &str) -> Result<MetricDesc, ExtendError> {
        let pmid = match name {
            "event.flags" => EVENT_FLAGS,
            "event.missed" => EVENT_MISSED,
            _ => return self.metric(name),
        };
        Ok(MetricDesc {
            pmid,
            value_type: ValueType::U32,
            indom: None,
            semantics: Semantics::Discrete,
            units: Units::NONE,
        })
    }

    /// The instance that a specification names. `None` for a metric without
    /// instances.
    fn instance(
        &mut self,
        spec: &ItemSpec,
        desc: &MetricDesc,
    ) -> Result<Option<InstId>, ExtendError> {
        let problem = |text: &str| refused(&spec.metric, text, PmStatus::INDOM);
        let (indom, name) = match (desc.indom, spec.instance.as_deref()) {
            (None, None) => return Ok(None),
            (None, Some(_)) => return Err(problem("this metric has no instances")),
            (Some(_), None) => return Err(problem("this metric needs an instance")),
            (Some(indom), Some(name)) => (indom, name),
        };
        let found = match self.source.lookup_instance(indom, name)? {
            Ok(instance) => Ok(instance),
            // The instance may come later, or have existed before.
            Err(status) => match self.source.known_instances(indom)? {
                // Before the first fetch of an archive, its domains count as unknown.
                Ok(domain) => domain.lookup(name).ok_or(match status {
                    PmStatus::INDOM_LOG => PmStatus::INST_LOG,
                    status => status,
                }),
                Err(_) => Err(status),
            },
        };
        found.map(Some).map_err(|status| {
            refused(&spec.metric, format!("there is no instance \"{name}\""), status)
        })
    }

    /// Position of a metric among the fetched ones; adds a new metric.
    fn position(&mut self, desc: &MetricDesc) -> usize {
        self.is_prepared = false;
        let known = self.metrics.iter().position(|pmid| *pmid == desc.pmid);
        known.unwrap_or_else(|| {
            self.metrics.push(desc.pmid);
            self.metrics.len() - 1
        })
    }
}

//! Adding entries to a group: everything is looked up and checked here, in the
//! order of pmExtendFetchGroup_item(3) and its kin.

use pmderive_core::model::{
    EVENT_FLAGS, EVENT_MISSED, InstId, MetricDesc, PmStatus, Semantics, Units, ValueType,
};
use pmderive_core::source::FetchSource;

use super::recipe::Recipe;
use super::slots::{EventsSlot, Held, InstancesSlot, ItemSlot};
use super::target::{Events, Instances, Item, Target};
use super::{ExtendError, FetchGroup, ItemSpec};

fn refused(metric: &str, problem: impl Into<String>, status: PmStatus) -> ExtendError {
    ExtendError::Refused { metric: metric.into(), problem: problem.into(), status }
}

/// How the values of a metric become what a target or a specification asks for.
fn recipe<T: Target>(spec: &ItemSpec, desc: &MetricDesc) -> Result<Recipe, ExtendError> {
    let wanted = T::VALUE_TYPE.or(spec.value_type).unwrap_or(desc.value_type);
    let recipe = Recipe::new(desc, spec.scale.as_deref(), wanted);
    recipe.map_err(|(problem, status)| refused(&spec.metric, problem, status))
}

impl<S: FetchSource> FetchGroup<S> {
    /// Adds one value: that of a metric without an instance domain, or of one
    /// instance (`pmExtendFetchGroup_item(3)`). An instance that is not there now
    /// but at some other time of an archive will do.
    ///
    /// # Errors
    /// The source failed, does not have the metric or instance, or the value
    /// cannot be converted as is wanted.
    pub fn item<T: Target>(&mut self, spec: &ItemSpec) -> Result<Item<T>, ExtendError> {
        let desc = self.metric(&spec.metric)?;
        let instance = self.instance(spec, &desc)?;
        let recipe = recipe::<T>(spec, &desc)?;
        if let (Some(indom), Some(instance)) = (desc.indom, instance) {
            self.profile.include(indom, &[instance]);
        }
        let metric = self.position(&desc);
        let is_kept = self.is_kept(&desc);
        self.items.push(ItemSlot { metric, instance, recipe, is_kept, held: Held::NOTHING });
        Ok(Item::new(self.place(self.items.len())))
    }

    /// Adds the values of all instances of a metric, those of the moment of
    /// each fetch (`pmExtendFetchGroup_indom(3)`). A metric without an instance
    /// domain has one row, of instance -1 without a name.
    ///
    /// # Errors
    /// As for [`FetchGroup::item`].
    pub fn indom<T: Target>(&mut self, spec: &ItemSpec) -> Result<Instances<T>, ExtendError> {
        let desc = self.metric(&spec.metric)?;
        if spec.instance.is_some() {
            let problem = "all instances are wanted, and an instance is given";
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

    /// Adds the values of a field, which is a metric, of all event records of a
    /// metric or instance (`pmExtendFetchGroup_event(3)`). The scale is that of
    /// the field; records have no rates.
    ///
    /// # Errors
    /// As for [`FetchGroup::item`].
    pub fn event<T: Target>(
        &mut self,
        spec: &ItemSpec,
        field: &str,
    ) -> Result<Events<T>, ExtendError> {
        let desc = self.metric(&spec.metric)?;
        let instance = self.instance(spec, &desc)?;
        let field_desc = self.field(field)?;
        if field_desc.indom.is_some() {
            let problem = "a field of an event record has no instances, and this metric does";
            return Err(refused(field, problem, PmStatus::INDOM));
        }
        if !matches!(desc.value_type, ValueType::Event | ValueType::HighResEvent) {
            let problem = format!("values of type {} are no event records", desc.value_type);
            return Err(refused(&spec.metric, problem, PmStatus::TYPE));
        }
        let recipe = recipe::<T>(spec, &field_desc)?;
        if recipe.is_rate {
            let problem = "event records have no rates; the scale `instant` asks for the values";
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
        let pmid = pmid.map_err(|status| refused(name, "this name is no metric's", status))?;
        let desc = self.source.lookup_descs(&[pmid])?.pop().unwrap_or(Err(PmStatus::PMID));
        desc.map_err(|status| refused(name, "there is no descriptor", status))
    }

    /// The descriptor of a field. Those that libpcp itself makes of a record are
    /// known whether or not the source has their names.
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

    /// The instance of a specification; none for a metric that has none.
    fn instance(
        &mut self,
        spec: &ItemSpec,
        desc: &MetricDesc,
    ) -> Result<Option<InstId>, ExtendError> {
        let problem = |text: &str| refused(&spec.metric, text, PmStatus::INDOM);
        let (indom, name) = match (desc.indom, spec.instance.as_deref()) {
            (None, None) => return Ok(None),
            (None, Some(_)) => return Err(problem("this metric has no instances")),
            (Some(_), None) => return Err(problem("an instance is due")),
            (Some(indom), Some(name)) => (indom, name),
        };
        let found = match self.source.lookup_instance(indom, name)? {
            Ok(instance) => Ok(instance),
            // It may come later, or have been before.
            Err(status) => match self.source.known_instances(indom)? {
                Ok(domain) => domain.lookup(name).ok_or(status),
                Err(_) => Err(status),
            },
        };
        found.map(Some).map_err(|status| {
            refused(&spec.metric, format!("there is no instance \"{name}\""), status)
        })
    }

    /// Position of a metric among those to be fetched.
    fn position(&mut self, desc: &MetricDesc) -> usize {
        self.is_prepared = false;
        let known = self.metrics.iter().position(|pmid| *pmid == desc.pmid);
        known.unwrap_or_else(|| {
            self.metrics.push(desc.pmid);
            self.metrics.len() - 1
        })
    }
}

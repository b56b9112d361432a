//! Instance domains and their instances.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use crate::escape::escaped;

use super::TextFault;
use super::dotted::dotted;

/// Internal instance identifier. It is -1 (`PM_IN_NULL`) for the single value
/// of a metric without an instance domain.
pub type InstId = i32;

/// Identifies an instance domain within one source: domain (9 bits) and serial
/// (22 bits).
///
/// It corresponds to `pmInDom` of PMAPI(3) and is printed as `pmInDomStr(3)`
/// does. "No instance domain" is `None` of an `Option<InDom>`, never a value of
/// this type.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InDom(pub u32);

impl InDom {
    /// Builds an identifier from its parts (`pmInDom_build(3)`); bits beyond a
    /// field's width are dropped.
    pub const fn new(domain: u32, serial: u32) -> InDom {
        InDom((domain & 0x1ff) << 22 | (serial & 0x3f_ffff))
    }

    /// Reads the wire form, where all ones (`PM_INDOM_NULL`) means none.
    pub const fn from_wire(word: u32) -> Option<InDom> {
        if word == 0xffff_ffff { None } else { Some(InDom(word)) }
    }

    /// The wire form.
    pub const fn to_wire(indom: Option<InDom>) -> u32 {
        match indom {
            Some(indom) => indom.0,
            None => 0xffff_ffff,
        }
    }

    /// Number of the agent's domain (`pmInDom_domain(3)`).
    pub const fn domain(self) -> u32 {
        self.0 >> 22 & 0x1ff
    }

    /// Number of the instance domain within the agent's domain
    /// (`pmInDom_serial(3)`).
    pub const fn serial(self) -> u32 {
        self.0 & 0x3f_ffff
    }
}

/// Reads `DOMAIN.SERIAL`, decimal numbers within 511.4194303.
impl FromStr for InDom {
    type Err = TextFault;

    fn from_str(text: &str) -> Result<InDom, TextFault> {
        let [domain, serial] = dotted(text, [0x1ff, 0x3f_ffff])?;
        Ok(InDom::new(domain, serial))
    }
}

/// As it is printed: `InDom(60.1)`. With the flag bit, which is not printed, the number.
impl fmt::Debug for InDom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 >> 31 == 1 {
            true => write!(f, "InDom({:#x})", self.0),
            false => write!(f, "InDom({self})"),
        }
    }
}

impl fmt::Display for InDom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.domain(), self.serial())
    }
}

/// The instances of a domain, as a source knows them at one time: internal
/// identifiers with external names, in the source's order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InstanceDomain {
    instances: Vec<(InstId, Box<str>)>,
    by_id: HashMap<InstId, u32>,
    /// True if lookups follow [`InstanceDomain::with_lookup_by_beginning`].
    by_beginning: bool,
    /// Instances whose names have a character for each byte, ascending.
    in_bytes: Box<[InstId]>,
}

/// Looks up names of several instances of a domain. It needs no search while
/// the instances come in the domain's order.
#[derive(Clone, Debug)]
pub struct InstanceNames<'d> {
    domain: &'d InstanceDomain,
    /// Position of the instance that is expected next.
    next: usize,
}

impl<'d> InstanceNames<'d> {
    /// External name of an instance, the same as [`InstanceDomain::name`]
    /// gives.
    pub fn of(&mut self, id: InstId) -> Option<&'d str> {
        let InstanceDomain { instances, by_id, .. } = self.domain;
        let is_expected = instances.get(self.next).is_some_and(|(found, _)| *found == id);
        // The first of two entries with the same identifier counts.
        if !is_expected || by_id.len() != instances.len() {
            self.next = *by_id.get(&id)? as usize;
        }
        let (_, name) = instances.get(self.next)?;
        self.next += 1;
        Some(name)
    }

    /// External name of an instance, the same as [`InstanceDomain::name_as_text`] gives.
    pub fn as_text(&mut self, id: InstId) -> Option<Cow<'d, str>> {
        self.of(id).map(|name| self.domain.text(id, name))
    }
}

impl InstanceDomain {
    /// A domain with instances in the source's order. Lookups find the first of
    /// two entries with the same identifier.
    ///
    /// In a name that is not UTF-8 on the wire, each byte is one character; see
    /// [`InstanceDomain::with_names_in_bytes`].
    pub fn new(instances: Vec<(InstId, Box<str>)>) -> InstanceDomain {
        let mut by_id = HashMap::with_capacity(instances.len());
        for (position, (id, _)) in (0u32..).zip(&instances) {
            by_id.entry(*id).or_insert(position);
        }
        InstanceDomain { instances, by_id, by_beginning: false, in_bytes: Box::default() }
    }

    /// Marks instances whose names are not UTF-8 on the wire. In these names
    /// each character stands for a byte.
    #[must_use]
    pub fn with_names_in_bytes(self, mut instances: Vec<InstId>) -> InstanceDomain {
        instances.sort_unstable();
        instances.dedup();
        InstanceDomain { in_bytes: instances.into(), ..self }
    }

    /// True if the name of an instance is not UTF-8 on the wire.
    pub fn is_named_in_bytes(&self, id: InstId) -> bool {
        self.in_bytes.binary_search(&id).is_ok()
    }

    /// Makes lookups work as in libpcp's archives: if there is `1 minute` but
    /// no `15 minute`, the name `15` finds the former.
    #[must_use]
    pub fn with_lookup_by_beginning(self) -> InstanceDomain {
        InstanceDomain { by_beginning: true, ..self }
    }

    /// True after [`InstanceDomain::with_lookup_by_beginning`].
    pub fn looks_up_by_beginning(&self) -> bool {
        self.by_beginning
    }

    /// Makes lookups of `name` find `id`, even if another instance has that
    /// name. The instance's own name stays the same.
    #[must_use]
    pub fn with_name_of(&self, id: InstId, name: &str) -> InstanceDomain {
        let own = self.name(id).map(|own| (id, own.into()));
        let first = own.into_iter().chain([(id, name.into())]);
        let instances = first.chain(self.instances.iter().cloned()).collect();
        let in_bytes = self.in_bytes.clone();
        InstanceDomain {
            by_beginning: self.by_beginning,
            in_bytes,
            ..InstanceDomain::new(instances)
        }
    }

    /// All instances, in the source's order (`pmGetInDom(3)`).
    pub fn instances(&self) -> impl ExactSizeIterator<Item = (InstId, &str)> {
        self.instances.iter().map(|(id, name)| (*id, &**name))
    }

    /// Number of instances.
    pub fn len(&self) -> usize {
        self.instances.len()
    }

    /// True if the domain has no instances now.
    pub fn is_empty(&self) -> bool {
        self.instances.is_empty()
    }

    /// External name of an instance (`pmNameInDom(3)`).
    pub fn name(&self, id: InstId) -> Option<&str> {
        let position = *self.by_id.get(&id)?;
        Some(&self.instances[position as usize].1)
    }

    /// External name of an instance in the source's own bytes, which are what
    /// tools print.
    pub fn name_in_bytes(&self, id: InstId) -> Option<Cow<'_, [u8]>> {
        self.name(id).map(|name| self.bytes(id, name))
    }

    /// The name of an instance in the source's own bytes.
    fn bytes<'d>(&self, id: InstId, name: &'d str) -> Cow<'d, [u8]> {
        let bytes = || name.chars().map(u8::try_from).collect::<Result<Vec<u8>, _>>().ok();
        let bytes = self.is_named_in_bytes(id).then(bytes).flatten();
        bytes.map_or(Cow::Borrowed(name.as_bytes()), Cow::Owned)
    }

    /// External name of an instance where only UTF-8 can be written: other bytes are
    /// `\xNN`.
    pub fn name_as_text(&self, id: InstId) -> Option<Cow<'_, str>> {
        self.name(id).map(|name| self.text(id, name))
    }

    fn text<'d>(&self, id: InstId, name: &'d str) -> Cow<'d, str> {
        match self.is_named_in_bytes(id).then(|| self.bytes(id, name)) {
            Some(Cow::Owned(bytes)) => escaped(&bytes, |_| false).into_owned().into(),
            _ => name.into(),
        }
    }

    /// Starts a lookup of names of several instances, one after the other.
    pub fn names(&self) -> InstanceNames<'_> {
        InstanceNames { domain: self, next: 0 }
    }

    /// Identifier of the instance with an external name (`pmLookupInDom(3)`).
    /// An exact match comes first, then an instance whose name up to its first
    /// blank is `name`.
    pub fn lookup(&self, name: &str) -> Option<InstId> {
        let exact = self.instances.iter().find(|(_, n)| **n == *name);
        let by_word = |(_, n): &&(InstId, Box<str>)| {
            n.split_once(' ').is_some_and(|(word, _)| match self.by_beginning {
                true => name.starts_with(word),
                false => word == name,
            })
        };
        exact.or_else(|| self.instances.iter().find(by_word)).map(|(id, _)| *id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_given_to_an_instance_counts_first() {
        let domain = InstanceDomain::new(vec![(10, "10 second".into()), (60, "1 minute".into())]);
        let domain = domain.with_lookup_by_beginning().with_name_of(60, "10 second");
        assert_eq!(domain.lookup("10 second"), Some(60));
        assert_eq!((domain.name(10), domain.name(60)), (Some("10 second"), Some("1 minute")));
        assert!(domain.looks_up_by_beginning());
    }

    #[test]
    fn names_are_printed_in_the_bytes_that_they_came_in() {
        let names = vec![(3, "gr\u{fc}n".into()), (1, "gr\u{fc}n".into()), (2, "\u{20ac}".into())];
        let domain = InstanceDomain::new(names).with_names_in_bytes(vec![3, 2, 3]);
        let bytes = |id| domain.name_in_bytes(id).map(Cow::into_owned);
        assert_eq!(bytes(3).as_deref(), Some(&b"gr\xfcn"[..]));
        assert_eq!(bytes(1).as_deref(), Some("gr\u{fc}n".as_bytes()));
        // The euro sign is above 255, so it cannot stand for a byte.
        assert_eq!(bytes(2).as_deref(), Some("\u{20ac}".as_bytes()));
        assert_eq!(bytes(4), None);
        assert_eq!(domain.name_as_text(3).as_deref(), Some("gr\\xfcn"));
        assert_eq!(domain.names().as_text(1).as_deref(), Some("gr\u{fc}n"));
        let named = domain.with_name_of(3, "green");
        assert_eq!(named.name_in_bytes(3).as_deref(), Some(&b"gr\xfcn"[..]));
    }

    #[test]
    fn lookup_prefers_exact_names_and_accepts_the_first_word() {
        let domain = InstanceDomain::new(vec![
            (1, "1 minute".into()),
            (5, "5 minute".into()),
            (7, "5".into()),
        ]);
        assert_eq!(domain.lookup("1"), Some(1));
        assert_eq!(domain.lookup("5"), Some(7));
        assert_eq!(domain.lookup("5 minute"), Some(5));
        assert_eq!(domain.lookup("15"), None);
        assert_eq!(domain.name(5), Some("5 minute"));
        assert_eq!(domain.with_lookup_by_beginning().lookup("15"), Some(1));
    }
}

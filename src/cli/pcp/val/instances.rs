//! The instances that a report has columns for.
//!
//! They are all instances of the source, or the requested ones. They ascend by identifier, like
//! the values of a sample.

use pmderive_runtime::context::Context;
use pmderive_runtime::model::{InDom, InstId, InstanceProfile};
use pmderive_runtime::source::{FetchSource, MetadataSource};

use crate::cli::pcp::source::AnyNamed;
use crate::cli::stop::Stop;
use crate::engine::Session;
use crate::escape::Foreign;
use crate::text::Escaping;

/// The columns of a metric with an instance domain.
pub struct Instances {
    indom: InDom,
    /// True if the user named none.
    are_all: bool,
    /// Identifiers, ascending.
    ids: Vec<InstId>,
    /// Escaped names, parallel to `ids`.
    names: Vec<Box<[u8]>>,
    /// How the bytes of names are escaped.
    escaping: Escaping,
}

impl Instances {
    /// All instances of a domain: the present ones, or all that an archive ever had.
    ///
    /// # Errors
    /// The source failed, or has no such domain.
    pub fn all(
        source: &mut Session<AnyNamed>,
        indom: InDom,
        escaping: Escaping,
    ) -> Result<Instances, Stop> {
        let (ids, names) = (Vec::new(), Vec::new());
        let mut instances = Instances { indom, are_all: true, ids, names, escaping };
        instances.refresh(source)?;
        Ok(instances)
    }

    /// Instances by name, as often as they are named. Later fetches deliver no others.
    ///
    /// # Errors
    /// The source failed, or has no instance of one of the names.
    pub fn named(
        source: &mut Session<AnyNamed>,
        indom: InDom,
        names: &[String],
        escaping: Escaping,
    ) -> Result<Instances, Stop> {
        let mut shown: Vec<(InstId, Box<[u8]>)> = Vec::new();
        for name in names {
            let id = match source.source().source() {
                // Instances of any time count, not only those of the archive's start.
                Context::Archive(_) => {
                    source.known_instances(indom)?.ok().and_then(|domain| domain.lookup(name))
                }
                _ => source.lookup_instance(indom, name)?.ok(),
            };
            let id =
                id.ok_or_else(|| Stop::tool(&[&"instance ", &Foreign(name), &" not available"]))?;
            shown.push((id, escaping.bytes(name.as_bytes()).into()));
        }
        let mut profile = InstanceProfile::default();
        let ids: Vec<InstId> = shown.iter().map(|(id, _)| *id).collect();
        match ids.is_empty() {
            true => profile.include_all(indom),
            false => profile.include(indom, &ids),
        }
        source.set_profile(&profile)?;
        shown.sort_by_key(|(id, _)| *id);
        let (ids, names) = shown.into_iter().unzip();
        Ok(Instances { indom, are_all: false, ids, names, escaping })
    }

    /// Reads the present instances.
    fn refresh(&mut self, source: &mut Session<AnyNamed>) -> Result<(), Stop> {
        let domain = source
            .known_instances(self.indom)?
            .map_err(|status| Stop::tool(&[&"pmGetInDom(", &self.indom, &"): ", &status]))?;
        let name = |id| domain.name_in_bytes(id).unwrap_or_default();
        self.ids = domain.instances().map(|(id, _)| id).collect();
        self.ids.sort();
        self.names = self.ids.iter().map(|id| self.escaping.bytes(&name(*id)).into()).collect();
        Ok(())
    }

    /// Reads all instances again if one of `found`, ascending, has no column. Returns whether
    /// it did.
    ///
    /// # Errors
    /// As for [`Instances::all`].
    pub fn follow(
        &mut self,
        source: &mut Session<AnyNamed>,
        found: &[InstId],
    ) -> Result<bool, Stop> {
        let found_too = found.iter().map(|id| (*id, ()));
        let has_news = self.ids != found && self.without_column(found_too).next().is_some();
        if has_news {
            self.refresh(source)?;
        }
        Ok(has_news)
    }

    /// Filters ascending instances: only those that should have a column and have none.
    pub fn without_column<V>(
        &self,
        values: impl Iterator<Item = (InstId, V)>,
    ) -> impl Iterator<Item = (InstId, V)> {
        let mut at = 0;
        values.filter(move |(id, _)| {
            while self.ids.get(at).is_some_and(|column| column < id) {
                at += 1;
            }
            self.are_all && self.ids.get(at).is_none_or(|column| column != id)
        })
    }

    /// True if columns of the same identifiers have the same names, and named ones the same
    /// identifiers.
    pub fn agrees_with(&self, now: &Instances) -> bool {
        let is_same = |(id, name)| now.name(id).is_none_or(|other| other == name);
        self.columns().all(is_same) && (self.are_all || self.ids == now.ids)
    }

    /// The name of an instance that has a column.
    pub fn name(&self, id: InstId) -> Option<&[u8]> {
        let at = self.ids.binary_search(&id).ok()?;
        Some(&self.names[at])
    }

    /// The instances of the columns, ascending.
    pub fn ids(&self) -> &[InstId] {
        &self.ids
    }

    /// The columns, in order.
    pub fn columns(&self) -> impl Iterator<Item = (InstId, &[u8])> {
        self.ids.iter().zip(&self.names).map(|(id, name)| (*id, &**name))
    }
}

/// The names in a list of instances (`-i`). They stand between commas and blanks. In quotes of
/// either kind they may contain these.
pub fn names_in(list: &str) -> Vec<String> {
    let is_between = |c: char| matches!(c, ',' | ' ' | '\t' | '\n');
    let mut names = Vec::new();
    let mut rest = list.trim_start_matches(is_between);
    while let Some(first) = rest.chars().next() {
        let (name, after) = match first {
            '"' | '\'' => {
                let quoted = &rest[1..];
                quoted.split_once(first).unwrap_or((quoted, ""))
            }
            _ => rest.split_at(rest.find(is_between).unwrap_or(rest.len())),
        };
        names.push(name.to_owned());
        // Text right behind a closing quote is dropped.
        let mut after = after.chars();
        after.next();
        rest = after.as_str().trim_start_matches(is_between);
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_taken_apart_as_pmval_does_it() {
        let cases: &[(&str, &[&str])] = &[
            ("", &[]),
            (" ,\t", &[]),
            ("one", &["one"]),
            ("one,two three", &["one", "two", "three"]),
            (",one,,two,", &["one", "two"]),
            ("'1 minute','5 minute'", &["1 minute", "5 minute"]),
            ("\"1 minute\" \"5 minute\"", &["1 minute", "5 minute"]),
            ("\"it's\" 'a \"b\"'", &["it's", "a \"b\""]),
            ("'open end", &["open end"]),
            ("''", &[""]),
            ("mid\"quote x", &["mid\"quote", "x"]),
            ("'a'xb,c", &["a", "b", "c"]),
            ("\u{e9}t\u{e9} 'h\u{f4}te'\u{e9}x", &["\u{e9}t\u{e9}", "h\u{f4}te", "x"]),
        ];
        for (list, expected) in cases {
            assert_eq!(names_in(list), *expected, "{list:?}");
        }
    }
}

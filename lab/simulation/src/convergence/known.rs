//! The versions of objects that a process has received, with the moments at which they were replaced.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::kinds::{Kind, name};

/// A position in the record.
type Moment = usize;

/// A version of an object.
#[derive(Debug)]
struct Version {
    /// `None` if the object did not exist.
    object: Option<Value>,
    /// The arrival of the next version; `None` for the newest.
    until: Option<Moment>,
}

/// The versions of all objects that one process has received.
#[derive(Debug, Default)]
pub(crate) struct Known {
    versions: BTreeMap<(Kind, String), Vec<Version>>,
    /// The kinds that were listed at least once.
    listed: BTreeSet<Kind>,
}

impl Known {
    /// Reads the response to a list. A known object that it lacks is gone.
    pub(crate) fn read_list(&mut self, kind: Kind, mut list: Value, now: Moment) {
        let items = list["items"]
            .as_array_mut()
            .map(std::mem::take)
            .unwrap_or_default();
        let shown: BTreeSet<String> = items.iter().map(|item| name(item).to_owned()).collect();
        let known = self.versions.keys().filter(|(of, _)| *of == kind);
        let gone: Vec<String> = known
            .filter(|(_, name)| !shown.contains(name))
            .map(|(_, name)| name.clone())
            .collect();
        for name in gone {
            self.replace(kind, name, None, now);
        }
        for item in items {
            self.replace(kind, name(&item).to_owned(), Some(item), now);
        }
        self.listed.insert(kind);
    }

    /// Reads a line of a watch.
    pub(crate) fn read_event(&mut self, kind: Kind, mut event: Value, now: Moment) {
        let object = event["object"].take();
        let name = name(&object).to_owned();
        match event["type"].as_str() {
            Some("ADDED" | "MODIFIED") => self.replace(kind, name, Some(object), now),
            Some("DELETED") => self.replace(kind, name, None, now),
            _ => {}
        }
    }

    fn replace(&mut self, kind: Kind, name: String, object: Option<Value>, now: Moment) {
        let versions = self.versions.entry((kind, name)).or_default();
        match versions.last_mut() {
            Some(last) => last.until = Some(now),
            // Until now the process knew the object as absent.
            None => versions.push(Version {
                object: None,
                until: Some(now),
            }),
        }
        versions.push(Version {
            object,
            until: None,
        });
    }

    /// Returns `true` if each of `kinds` was listed.
    pub(crate) fn has_listed(&self, kinds: &[Kind]) -> bool {
        kinds.iter().all(|kind| self.listed.contains(kind))
    }

    /// Returns the versions of an object that the process knew at any moment since `then`; `None`
    /// stands for an absent object.
    pub(crate) fn versions(&self, kind: Kind, name: &str, then: Moment) -> Vec<Option<&Value>> {
        let Some(versions) = self.versions.get(&(kind, name.to_owned())) else {
            return vec![None];
        };
        let is_recent = |version: &&Version| version.until.is_none_or(|until| until >= then);
        versions
            .iter()
            .filter(is_recent)
            .map(|version| version.object.as_ref())
            .collect()
    }

    /// Returns the names of all objects of a kind that the process ever received.
    pub(crate) fn names(&self, kind: Kind) -> impl Iterator<Item = &str> {
        let of_kind = self.versions.keys().filter(move |(of, _)| *of == kind);
        of_kind.map(|(_, name)| name.as_str())
    }
}

//! What a process has been told: each version of each object, and when it was replaced.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::kinds::{Kind, name};

/// Since and until when, in entries of the record.
type Moment = usize;

/// A version of an object that a process was told.
#[derive(Debug)]
struct Version {
    /// None: it was told that there is no such object.
    object: Option<Value>,
    /// When another one was told; none: it is the newest.
    until: Option<Moment>,
}

/// Everything that one process was told of objects.
#[derive(Debug, Default)]
pub(crate) struct Told {
    versions: BTreeMap<(Kind, String), Vec<Version>>,
    /// The kinds that were listed at least once.
    listed: BTreeSet<Kind>,
}

impl Told {
    /// A list was answered.
    pub(crate) fn list(&mut self, kind: Kind, mut list: Value, now: Moment) {
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

    /// A line of a watch was read.
    pub(crate) fn event(&mut self, kind: Kind, mut event: Value, now: Moment) {
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
            // It was not there before.
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

    /// Whether every one of these was listed.
    pub(crate) fn has_listed(&self, kinds: &[Kind]) -> bool {
        kinds.iter().all(|kind| self.listed.contains(kind))
    }

    /// What the process knew an object as, at any moment since `then`; none: as absent.
    pub(crate) fn known(&self, kind: Kind, name: &str, then: Moment) -> Vec<Option<&Value>> {
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

    /// The names of all objects of a kind that the process was told of at any time.
    pub(crate) fn names(&self, kind: Kind) -> impl Iterator<Item = &str> {
        let of_kind = self.versions.keys().filter(move |(of, _)| *of == kind);
        of_kind.map(|(_, name)| name.as_str())
    }
}

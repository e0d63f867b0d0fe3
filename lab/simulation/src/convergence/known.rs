//! The versions of objects that a process has received, with the moments at which they were replaced.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::kinds::Kind;
use super::model;
use crate::harness::value::{name, text};

/// A position in the record.
pub(crate) type Moment = usize;

/// A version of an object.
#[derive(Debug)]
struct Version {
    /// `None` if the object did not exist.
    object: Option<Arc<Value>>,
    /// The arrival of the version that replaced it; `None` for those that may be the newest.
    until: Option<Moment>,
}

/// The versions of all objects that one process has received.
#[derive(Debug, Default)]
pub(crate) struct Known {
    versions: BTreeMap<(Kind, String), Vec<Version>>,
    /// The same objects by their name and resource version, and those in responses to writes, which may
    /// be without anything but metadata.
    by_version: BTreeMap<(Kind, String, String), Arc<Value>>,
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

    /// Reads the object in the response to a write or to a read of one object. One of which the API gave the metadata alone
    /// is what a version was like, if nothing else tells that, and is not decided from.
    pub(crate) fn read_object(&mut self, kind: Kind, object: Value, now: Moment) {
        let is_whole = object["kind"] == kind.names().2;
        if is_whole {
            self.replace(kind, name(&object).to_owned(), Some(object), now);
        } else {
            let key = by_version(kind, &object);
            self.by_version
                .entry(key)
                .or_insert_with(|| Arc::new(object));
        }
    }

    /// Notes that the process has deleted an object, or has found it absent.
    pub(crate) fn read_absence(&mut self, kind: Kind, name: &str, now: Moment) {
        self.replace(kind, name.to_owned(), None, now);
    }

    fn remember(&mut self, kind: Kind, object: &Arc<Value>) {
        let key = by_version(kind, object);
        self.by_version.insert(key, Arc::clone(object));
    }

    fn replace(&mut self, kind: Kind, name: String, object: Option<Value>, now: Moment) {
        let object = object.map(Arc::new);
        if let Some(object) = &object {
            self.remember(kind, object);
        }
        let versions = self.versions.entry((kind, name)).or_default();
        if versions.is_empty() {
            // Until now the process knew the object as absent.
            versions.push(Version {
                object: None,
                until: None,
            });
        }
        // Beside an unreadable version the last readable one stays in use.
        let is_readable = |object: &Option<Arc<Value>>| {
            let object = object.as_deref();
            object.is_some_and(|object| model::is_readable(kind, object))
        };
        let keeps_readable = object.is_some() && !is_readable(&object);
        for version in versions.iter_mut().filter(|v| v.until.is_none()) {
            if !(keeps_readable && is_readable(&version.object)) {
                version.until = Some(now);
            }
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
            .map(|version| version.object.as_deref())
            .collect()
    }

    /// Returns the object of this name and resource version, whenever it was received.
    pub(crate) fn at_version(&self, kind: Kind, name: &str, version: &str) -> Option<&Value> {
        let key = (kind, name.to_owned(), version.to_owned());
        self.by_version.get(&key).map(|object| &**object)
    }

    /// Returns the newest version of an object that existed.
    pub(crate) fn newest(&self, kind: Kind, name: &str) -> Option<&Value> {
        let versions = self.versions.get(&(kind, name.to_owned()))?;
        let mut existing = versions.iter().rev().filter_map(|v| v.object.as_deref());
        existing.next()
    }

    /// Returns the names of all objects of a kind that the process ever received.
    pub(crate) fn names(&self, kind: Kind) -> impl Iterator<Item = &str> {
        let of_kind = self.versions.keys().filter(move |(of, _)| *of == kind);
        of_kind.map(|(_, name)| name.as_str())
    }
}

/// Returns the key of a version of an object.
fn by_version(kind: Kind, object: &Value) -> (Kind, String, String) {
    let version = text(object, "/metadata/resourceVersion").to_owned();
    (kind, name(object).to_owned(), version)
}

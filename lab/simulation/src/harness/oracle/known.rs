//! The knowledge that a process has of objects: their versions, and when these were replaced.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::check::{Check, check};
use super::reads::{METADATA_ONLY, Reads, Sources};
use super::request::{Request, guard};
use super::target::{ObjectPath, Target};

use crate::harness::Api;
use crate::harness::value::{name, text};

/// The time within which a process has taken in an event of a watch.
const TAKEN_IN: Duration = Duration::from_secs(1);

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

/// The traces of an object, of which nothing else is kept where no write is explained by its fields.
#[derive(Debug, Default)]
struct Traces {
    /// The uids and resource versions that the process has received.
    ids: BTreeSet<String>,
    /// The resource version that a list or a watch showed last, and since when.
    shown: Option<(u64, Instant)>,
}

/// The knowledge of one process.
#[derive(Debug, Default)]
pub(crate) struct Known {
    traces: BTreeMap<ObjectPath, Traces>,
    versions: BTreeMap<ObjectPath, Vec<Version>>,
    /// The same objects by their path and resource version, and those in responses to writes, which may
    /// be without anything but metadata.
    by_version: BTreeMap<(ObjectPath, String), Arc<Value>>,
    /// The kinds that were listed at least once, by the paths of their collections of every namespace.
    listed: BTreeSet<(Api, String)>,
    /// The writes that conflicted, and when the process was told.
    conflicts: BTreeMap<String, Instant>,
}

impl Known {
    /// Reads the response to a list. A known object that it lacks is gone.
    pub(super) fn read_list<R: Reads>(
        &mut self,
        target: &Target,
        mut list: Value,
        (now, at): (Moment, Instant),
    ) {
        let items = list["items"]
            .as_array_mut()
            .map(std::mem::take)
            .unwrap_or_default();
        for item in &items {
            self.show::<R>(target, item, at);
        }
        if target.is_of_version() || R::sources(target) == Sources::None {
            return;
        }
        let shown: BTreeSet<ObjectPath> = items.iter().map(|item| target.path_of(item)).collect();
        let known = self.versions.keys();
        let gone: Vec<ObjectPath> = known
            .filter(|path| target.has(path) && !shown.contains(*path))
            .cloned()
            .collect();
        for path in gone {
            self.replace::<R>(target, path, None, now);
        }
        for item in items {
            self.replace::<R>(target, target.path_of(&item), Some(item), now);
        }
        self.listed.insert((target.api, target.everywhere()));
    }

    /// Reads a line of a watch.
    pub(super) fn read_event<R: Reads>(
        &mut self,
        target: &Target,
        mut event: Value,
        (now, at): (Moment, Instant),
    ) {
        let object = event["object"].take();
        let path = target.path_of(&object);
        let is_there = match event["type"].as_str() {
            Some("ADDED" | "MODIFIED") => true,
            Some("DELETED") => false,
            _ => return,
        };
        if is_there {
            self.show::<R>(target, &object, at);
        } else {
            self.trace(&path, &object).shown = None;
        }
        if R::sources(target) != Sources::None {
            self.replace::<R>(target, path, is_there.then_some(object), now);
        }
    }

    /// Reads the object in the response to a write or to a read of one object. Nothing is decided from one of
    /// which the API gave the metadata alone: it stands for its version, if nothing else does.
    pub(super) fn read_object<R: Reads>(&mut self, target: &Target, object: Value, now: Moment) {
        // A deletion is answered with a `Status`.
        if name(&object).is_empty() {
            return;
        }
        let path = target.path_of(&object);
        self.trace(&path, &object);
        let object = match R::sources(target) {
            Sources::None => return,
            Sources::Answers if object["kind"] != METADATA_ONLY => {
                return self.replace::<R>(target, path, Some(object), now);
            }
            Sources::Answers => object,
            Sources::Watches => json!({ "metadata": object["metadata"] }),
        };
        let key = (path, version(&object));
        self.by_version
            .entry(key)
            .or_insert_with(|| Arc::new(object));
    }

    /// Notes that a write has conflicted.
    pub(super) fn read_conflict(&mut self, request: &Request, at: Instant) {
        self.conflicts.insert(request.line.clone(), at);
    }

    fn trace(&mut self, path: &ObjectPath, object: &Value) -> &mut Traces {
        let traces = self.traces.entry(path.clone()).or_default();
        let ids = ["/metadata/uid", "/metadata/resourceVersion"].map(|id| text(object, id));
        traces.ids.extend(ids.map(str::to_owned));
        traces
    }

    /// Notes a version that a list or a watch shows. One that the programs cannot read may leave the last one in use, and
    /// metadata alone are no version: whoever asks for them wants to know whether the API can be read.
    fn show<R: Reads>(&mut self, target: &Target, object: &Value, at: Instant) {
        let traces = self.trace(&target.path_of(object), object);
        let version: Option<u64> = version(object).parse().ok();
        let is_used = object["kind"] != METADATA_ONLY && R::is_readable(target, object);
        if is_used && version != traces.shown.map(|(shown, _)| shown) {
            traces.shown = version.map(|version| (version, at));
        }
    }

    /// Notes another version of an object; none once the process has deleted it, or has found it absent.
    pub(super) fn replace<R: Reads>(
        &mut self,
        target: &Target,
        path: ObjectPath,
        object: Option<Value>,
        now: Moment,
    ) {
        let object = object.map(Arc::new);
        if let Some(object) = &object {
            let key = (path.clone(), version(object));
            self.by_version.insert(key, Arc::clone(object));
        }
        let versions = self.versions.entry(path).or_default();
        if versions.is_empty() {
            // Until now the process knew the object as absent.
            versions.push(Version {
                object: None,
                until: None,
            });
        }
        // Beside an unreadable version the last readable one stays in use.
        let is_unreadable = object
            .as_ref()
            .is_some_and(|object| !R::is_readable(target, object));
        for version in versions.iter_mut().filter(|v| v.until.is_none()) {
            let before = version.object.as_deref();
            let is_readable = before.is_some_and(|before| R::is_readable(target, before));
            if !(is_unreadable && is_readable) {
                version.until = Some(now);
            }
        }
        versions.push(Version {
            object,
            until: None,
        });
    }

    /// Checks that a write is about an object that the process has received, that it demands no other uid and version
    /// than it has received, and that it does not repeat a conflict though a newer version had been shown before that.
    pub(super) fn admits(&self, request: &Request) -> Check {
        let Some(path) = request.target.object() else {
            return Ok(());
        };
        let traces = self.traces.get(&path);
        check(traces.is_some() || request.may_precede(), || {
            "the process never received the object".to_owned()
        })?;
        for field in ["uid", "resourceVersion"] {
            let demanded = request.demanded(field).as_str().unwrap_or_default();
            let is_known = traces.is_some_and(|traces| traces.ids.contains(demanded));
            check(demanded.is_empty() || is_known, || {
                let what = if field == "uid" { "uid" } else { "version" };
                format!("the process never received {what} {demanded}")
            })?;
        }
        let shown = traces.and_then(|traces| traces.shown);
        let (Some((shown, since)), Some(told)) = (shown, self.conflicts.get(&request.line)) else {
            return Ok(());
        };
        let demanded = request.demanded("resourceVersion").as_str();
        let is_older = demanded
            .and_then(|demanded| demanded.parse::<u64>().ok())
            .is_some_and(|demanded| demanded < shown);
        check(!is_older || since + TAKEN_IN > *told, || {
            format!("it repeats a conflict, though version {shown} was known before that")
        })
    }

    /// Returns `true` if a kind was listed, which is named by the path of its collection of every namespace.
    pub(crate) fn has_listed(&self, api: Api, everywhere: String) -> bool {
        self.listed.contains(&(api, everywhere))
    }

    /// Returns the versions of an object that the process knew at any moment since `then`; `None`
    /// stands for an absent object.
    pub(crate) fn versions(&self, path: &ObjectPath, then: Moment) -> Vec<Option<&Value>> {
        let Some(versions) = self.versions.get(path) else {
            return vec![None];
        };
        versions
            .iter()
            .filter(|version| version.until.is_none_or(|until| until >= then))
            .map(|version| version.object.as_deref())
            .collect()
    }

    /// Returns the newest version of an object that existed.
    pub(super) fn newest(&self, path: &ObjectPath) -> Option<&Value> {
        let versions = self.versions.get(path)?;
        let mut existing = versions.iter().rev().filter_map(|v| v.object.as_deref());
        existing.next()
    }

    /// Returns the names of all objects in a collection that the process ever received.
    pub(crate) fn names(&self, api: Api, collection: &str) -> Vec<&str> {
        let paths = self.versions.keys().filter(|(of, _)| *of == api);
        paths
            .filter_map(|(_, path)| path.strip_prefix(collection)?.strip_prefix('/'))
            .collect()
    }

    /// Returns the object at the version that a patch or a deletion demands.
    pub(crate) fn base(&self, path: &ObjectPath, version: &Value) -> Check<&Value> {
        let version = version
            .as_str()
            .ok_or("it does not depend on the version of the object")?;
        let base = self.by_version.get(&(path.clone(), version.to_owned()));
        let base = base.map(|object| &**object);
        base.ok_or_else(|| format!("the process never received version {version}"))
    }

    /// Returns the object that a JSON patch or a merge patch makes of the version that it demands.
    pub(crate) fn patched(&self, path: &ObjectPath, change: &Value) -> Check<Value> {
        let mut object = self.base(path, guard(change, "resourceVersion"))?.clone();
        if !change.is_array() {
            json_patch::merge(&mut object, change);
            return Ok(object);
        }
        let operations: json_patch::Patch =
            serde_json::from_value(change.clone()).map_err(|error| error.to_string())?;
        json_patch::patch(&mut object, &operations)
            .map_err(|error| format!("it does not fit the version that it names: {error}"))?;
        Ok(object)
    }
}

fn version(object: &Value) -> String {
    text(object, "/metadata/resourceVersion").to_owned()
}

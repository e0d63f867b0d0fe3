//! The findings about objects that are left as they are: each holds until the object changes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use karmada_runtime::untyped::Untyped;
use kube::core::Status;
use objects::comparison::Compared;
use objects::drift::Settled;
use objects::ownership::ObservedObject;
use objects::{GroupVersionKind, Key, Metadata};
use serde_json::Value;
use tokio::time::Instant;

use crate::error::MemberError;
use crate::manifest_set::{ManifestRef, ManifestSet, hash};
use crate::result::Synced;

/// The time for which a rejection stands, even if nothing is seen to change: it may be for the sake of anything.
pub(crate) const REJECTION: Duration = Duration::from_mins(15);

/// Why an object was not written.
#[derive(Clone, Debug)]
pub(crate) enum NotWritten {
    /// It must not be touched.
    Refused {
        /// The reason, and the way out.
        reason: String,
    },
    /// It differs from its manifest, and is written only if it does not.
    Differs(Arc<Compared>),
    /// It was only to be compared.
    Compared(Arc<Compared>),
    /// The cluster rejects the manifest, or does not tell the changes of its application.
    Rejected {
        /// The request.
        request: String,
        /// The answer.
        status: Box<Status>,
    },
}

impl NotWritten {
    /// Returns the result of a manifest with this finding about its object.
    pub(crate) fn into_synced<S>(self, one: &ManifestRef<'_, S>) -> Synced {
        let object = one.name();
        let (error, compared) = match self {
            Self::Refused { reason } => (Some(MemberError::Refused { object, reason }), None),
            Self::Differs(compared) => (Some(MemberError::Differs { object }), Some(compared)),
            Self::Compared(compared) => (None, Some(compared)),
            Self::Rejected { request, status } => {
                let error = kube::Error::Api(status);
                (Some(MemberError::Request { request, error }), None)
            }
        };
        Synced {
            error,
            compared,
            ..Synced::observed(ObservedObject::Absent)
        }
    }
}

/// Why every object that a set has looked at was left.
pub(crate) struct NotWrittenCache {
    found: BTreeMap<(GroupVersionKind, Key), BTreeMap<Key, Entry>>,
    /// The labels and annotations of which a change is no news, by their keys.
    ignored: fn(&str) -> bool,
}

#[derive(Default)]
struct Entry {
    /// The object; absent if there was none.
    object: Option<State>,
    cause: Option<(NotWritten, Question, Instant)>,
    /// True from the beginning of a look until something has come of it: one that fails says nothing.
    is_looked_at: bool,
    /// True once the object has changed.
    is_stale: bool,
}

/// The hash of the question about an object: its manifest and the terms of its set.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Question(u64);

impl Question {
    fn of<S>(one: &ManifestRef<'_, S>) -> Self {
        Self(hash(&(one.hash(), &one.set.terms)))
    }
}

/// The part of an object that decides about a comparison.
#[derive(PartialEq, Eq)]
struct State {
    settled: Settled,
    owners: Vec<String>,
}

impl State {
    fn of(object: &Value, ignored: fn(&str) -> bool) -> Self {
        let owners = object.owners();
        Self {
            settled: Settled::but_for(object, ignored),
            owners: owners.iter().map(|owner| owner.uid.to_owned()).collect(),
        }
    }
}

impl NotWrittenCache {
    pub(crate) fn new(ignored: fn(&str) -> bool) -> Self {
        Self {
            found: BTreeMap::new(),
            ignored,
        }
    }

    /// Returns why the object of a manifest was not written, if neither has changed since.
    pub(crate) fn standing<S>(&self, one: &ManifestRef<'_, S>) -> Option<NotWritten> {
        let entry = self.get(one)?;
        let (cause, question, time) = entry.cause.as_ref()?;
        let is_news = entry.is_stale || entry.is_looked_at;
        let is_over = matches!(cause, NotWritten::Rejected { .. }) && time.elapsed() >= REJECTION;
        let stands = !is_news && !is_over && *question == Question::of(one);
        stands.then(|| cause.clone())
    }

    /// Begins a look at an object: from now on, its changes are news to the set.
    pub(crate) fn begin<S>(&mut self, one: &ManifestRef<'_, S>) {
        let of_object = self.found.entry((one.kind(), one.key())).or_default();
        let entry = of_object.entry(one.set.key.clone()).or_default();
        entry.is_stale = false;
        entry.is_looked_at = true;
    }

    /// Returns the finding of an earlier comparison, if the object is found to be the same.
    pub(crate) fn same<S>(
        &self,
        one: &ManifestRef<'_, S>,
        object: Option<&Value>,
    ) -> Option<NotWritten> {
        let entry = self.get(one)?;
        let (cause, question, _) = entry.cause.as_ref()?;
        // The others may be for the sake of other objects.
        let is_of_object = matches!(cause, NotWritten::Differs(_) | NotWritten::Compared(_));
        let is_same = is_of_object
            && *question == Question::of(one)
            && entry.object == object.map(|object| State::of(object, self.ignored));
        is_same.then(|| cause.clone())
    }

    /// Records the finding of a look, if one was begun.
    pub(crate) fn record<S>(
        &mut self,
        one: &ManifestRef<'_, S>,
        object: Option<&Value>,
        cause: &NotWritten,
    ) {
        let of_object = self.found.get_mut(&(one.kind(), one.key()));
        if let Some(entry) = of_object.and_then(|sets| sets.get_mut(&one.set.key)) {
            entry.object = object.map(|object| State::of(object, self.ignored));
            entry.cause = Some((cause.clone(), Question::of(one), Instant::now()));
            entry.is_looked_at = false;
        }
    }

    /// Forgets the findings about the object of a manifest.
    pub(crate) fn clear<S>(&mut self, one: &ManifestRef<'_, S>) {
        let id = (one.kind(), one.key());
        if let Some(sets) = self.found.get_mut(&id) {
            sets.remove(&one.set.key);
            if sets.is_empty() {
                self.found.remove(&id);
            }
        }
    }

    /// Forgets a set that is gone.
    pub(crate) fn forget(&mut self, set: &Key) {
        self.found.retain(|_, sets| {
            sets.remove(set);
            !sets.is_empty()
        });
    }

    /// Forgets the objects of which a set has no manifest any more.
    pub(crate) fn keep<S>(&mut self, set: &ManifestSet<'_, S>) {
        if self.found.is_empty() {
            return;
        }
        let wanted: BTreeSet<_> = set.refs().map(|one| (one.kind(), one.key())).collect();
        self.found.retain(|id, sets| {
            if !wanted.contains(id) {
                sets.remove(&set.key);
            }
            !sets.is_empty()
        });
    }

    /// Returns the sets to which the change of an object is news: it is not as they have found it, or being looked at.
    pub(crate) fn change(
        &mut self,
        kind: &GroupVersionKind,
        key: &Key,
        object: Option<&Untyped>,
    ) -> Vec<Key> {
        let Some(sets) = self.found.get_mut(&(kind.clone(), key.clone())) else {
            return Vec::new();
        };
        let state = object.map(|object| State::of(&object.value(), self.ignored));
        let sets = sets.iter_mut();
        let changed = sets.filter(|(_, found)| found.is_looked_at || found.object != state);
        changed.filter_map(news).collect()
    }

    /// Returns the sets to which it is news that every object of a kind was listed: any may have changed before.
    pub(crate) fn list(&mut self, kind: &GroupVersionKind) -> BTreeSet<Key> {
        let of_kind = self.found.iter_mut().filter(|((of, _), _)| of == kind);
        let sets = of_kind.flat_map(|(_, sets)| sets);
        sets.filter_map(news).collect()
    }

    /// Returns the sets that were refused an object, which is news to them now.
    pub(crate) fn reopen(&mut self) -> BTreeSet<Key> {
        let all = self.found.values_mut().flatten();
        let refused =
            all.filter(|(_, found)| matches!(found.cause, Some((NotWritten::Refused { .. }, ..))));
        refused.filter_map(news).collect()
    }

    fn get<S>(&self, one: &ManifestRef<'_, S>) -> Option<&Entry> {
        self.found.get(&(one.kind(), one.key()))?.get(&one.set.key)
    }
}

fn news((set, entry): (&Key, &mut Entry)) -> Option<Key> {
    let was_stale = std::mem::replace(&mut entry.is_stale, true);
    (!was_stale).then(|| set.clone())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::manifest_set::LastWrite;

    fn set<'a>(manifests: &'a [Value], terms: &str) -> ManifestSet<'a, ()> {
        ManifestSet {
            source: &(),
            key: Key::new("sets", "a"),
            generation: Some(1),
            manifests: manifests.iter().collect(),
            withheld: BTreeSet::new(),
            terms: terms.to_owned(),
            suspended: false,
            last_write: LastWrite::Unknown,
            notes: "",
        }
    }

    fn map(name: &str) -> Value {
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name, "uid": name } })
    }

    fn changed(field: &str) -> Untyped {
        let mut object = map("a");
        object[field] = json!({ "a": "b" });
        Untyped::from(object)
    }

    fn cache() -> NotWrittenCache {
        NotWrittenCache::new(|key| key == "ignored")
    }

    fn cause() -> NotWritten {
        NotWritten::Compared(Arc::new(Compared::of(None, Vec::new())))
    }

    /// A finding holds until the object changes, even if that happens while it is looked at; then its set is told once.
    #[test]
    fn change_during_look_is_kept() {
        let (manifests, kind) = ([map("a")], GroupVersionKind::new("v1", "ConfigMap"));
        let set = set(&manifests, "");
        let (one, key) = (set.refs().next().unwrap(), Key::cluster_scoped("a"));
        let mut cache = cache();
        assert!(cache.change(&kind, &key, None).is_empty());
        for (before, during, stands) in [(0, 0, true), (1, 0, true), (0, 1, false), (2, 2, false)] {
            let told = (0..before).map(|_| cache.change(&kind, &key, None).len());
            assert_eq!(told.sum::<usize>(), before.min(1));
            cache.begin(&one);
            let told = (0..during).map(|_| cache.change(&kind, &key, None).len());
            assert_eq!(told.sum::<usize>(), during.min(1));
            cache.record(&one, Some(&map("a")), &cause());
            assert_eq!(cache.standing(&one).is_some(), stands, "{before} {during}");
            cache.begin(&one);
            cache.record(&one, Some(&map("a")), &cause());
        }
        assert_eq!(cache.list(&kind).len(), 1);
        assert!(cache.standing(&one).is_none());
    }

    /// The status of an object, and an annotation that says nothing, are not looked at.
    #[test]
    fn status_is_no_news() {
        let (manifests, kind) = ([map("a")], GroupVersionKind::new("v1", "ConfigMap"));
        let set = set(&manifests, "");
        let (one, key) = (set.refs().next().unwrap(), Key::cluster_scoped("a"));
        let mut cache = cache();
        cache.begin(&one);
        cache.record(&one, Some(&map("a")), &cause());
        let mut marked = map("a");
        marked["metadata"]["annotations"] = json!({ "ignored": "1" });
        for same in [changed("status"), Untyped::from(marked)] {
            assert_eq!(cache.change(&kind, &key, Some(&same)).len(), 0);
            assert!(cache.standing(&one).is_some());
        }
        let other = changed("data");
        assert_eq!(cache.change(&kind, &key, Some(&other)).len(), 1);
        assert!(cache.standing(&one).is_none());
    }

    /// A look that fails leaves nothing standing: the finding before is known to be outdated.
    #[test]
    fn failed_look_finds_nothing() {
        let (manifests, kind) = ([map("a")], GroupVersionKind::new("v1", "ConfigMap"));
        let set = set(&manifests, "");
        let one = set.refs().next().unwrap();
        let mut cache = cache();
        cache.begin(&one);
        cache.record(&one, Some(&map("a")), &cause());
        assert!(cache.standing(&one).is_some());
        cache.change(&kind, &Key::cluster_scoped("a"), None);
        cache.begin(&one);
        assert!(cache.standing(&one).is_none());
        cache.record(&one, Some(&map("a")), &cause());
        assert!(cache.standing(&one).is_some());
    }

    /// An entry is about the object as it was, by its manifest and on the terms of that time; other manifests of the set
    /// may change.
    #[test]
    fn others_have_no_finding() {
        let manifests = [map("a"), map("b")];
        let before = set(&manifests, "");
        let mut cache = cache();
        for one in before.refs() {
            cache.begin(&one);
            cache.record(&one, Some(one.manifest), &cause());
            let mut owned = one.manifest.clone();
            owned["metadata"]["ownerReferences"] = json!([{ "uid": "o" }]);
            assert!(cache.same(&one, Some(one.manifest)).is_some());
            assert!(cache.same(&one, Some(&owned)).is_none());
            assert!(cache.same(&one, None).is_none());
        }
        let mut edited = manifests.clone();
        edited[1]["data"] = json!({ "a": "b" });
        let after = set(&edited, "");
        let stand: Vec<_> = after
            .refs()
            .map(|one| cache.standing(&one).is_some())
            .collect();
        assert_eq!(stand, [true, false]);
        let on_other_terms = set(&manifests, "other");
        let mut stand = on_other_terms.refs().map(|one| cache.standing(&one));
        assert!(stand.all(|one| one.is_none()));
        cache.keep(&set(&manifests[..1], ""));
        let stand: Vec<_> = before
            .refs()
            .map(|one| cache.standing(&one).is_some())
            .collect();
        assert_eq!(stand, [true, false]);
        cache.forget(&before.key);
        assert!(cache.found.is_empty());
    }
}

//! What was found of objects that are left as they are: it holds until one changes.

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
use crate::result::Synced;
use crate::unit::{ManifestRef, Unit, hash};

/// The time for which a rejection stands, even if nothing is seen to change: it may be for the sake of anything.
pub(crate) const REJECTION: Duration = Duration::from_mins(15);

/// Why an object was not written.
#[derive(Clone, Debug)]
pub(crate) enum Verdict {
    /// It must not be touched.
    Refused {
        /// The reason, and the way out.
        reason: String,
    },
    /// It differs from its manifest, and is written only if it does not.
    Differs(Arc<Compared>),
    /// It was only to be compared.
    Compared(Arc<Compared>),
    /// The cluster rejects the manifest, or does not tell what its application would change.
    Rejected {
        /// The request.
        request: String,
        /// The answer.
        status: Box<Status>,
    },
}

impl Verdict {
    /// Returns the result of a manifest about whose object this was found.
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

/// The findings about every object that a unit has looked at and left.
pub(crate) struct Findings {
    found: BTreeMap<(GroupVersionKind, Key), BTreeMap<Key, Finding>>,
    /// The labels and annotations of which a change is no news, by their keys.
    ignored: fn(&str) -> bool,
}

#[derive(Default)]
struct Finding {
    /// The object; absent if there was none.
    object: Option<State>,
    verdict: Option<(Verdict, Question, Instant)>,
    /// True from the beginning of a look until something has come of it: one that fails says nothing.
    is_looked_at: bool,
    /// True once the object has changed.
    is_stale: bool,
}

/// The hash of what was asked about an object: its manifest and the terms of its unit.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Question(u64);

impl Question {
    fn of<S>(one: &ManifestRef<'_, S>) -> Self {
        Self(hash(&(one.hash(), &one.unit.terms)))
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

impl Findings {
    pub(crate) fn new(ignored: fn(&str) -> bool) -> Self {
        Self {
            found: BTreeMap::new(),
            ignored,
        }
    }

    /// Returns the verdict about the object of a manifest, if neither has changed since.
    pub(crate) fn standing<S>(&self, one: &ManifestRef<'_, S>) -> Option<Verdict> {
        let finding = self.get(one)?;
        let (verdict, question, time) = finding.verdict.as_ref()?;
        let is_news = finding.is_stale || finding.is_looked_at;
        let is_over = matches!(verdict, Verdict::Rejected { .. }) && time.elapsed() >= REJECTION;
        let stands = !is_news && !is_over && *question == Question::of(one);
        stands.then(|| verdict.clone())
    }

    /// Begins a look at an object: from now on, its changes are news to the unit.
    pub(crate) fn begin<S>(&mut self, one: &ManifestRef<'_, S>) {
        let of_object = self.found.entry((one.kind(), one.key())).or_default();
        let finding = of_object.entry(one.unit.key.clone()).or_default();
        finding.is_stale = false;
        finding.is_looked_at = true;
    }

    /// Returns what a comparison has shown before, if the object is found to be the same.
    pub(crate) fn same<S>(
        &self,
        one: &ManifestRef<'_, S>,
        object: Option<&Value>,
    ) -> Option<Verdict> {
        let finding = self.get(one)?;
        let (verdict, question, _) = finding.verdict.as_ref()?;
        // The others may be for the sake of other objects.
        let is_of_object = matches!(verdict, Verdict::Differs(_) | Verdict::Compared(_));
        let is_same = is_of_object
            && *question == Question::of(one)
            && finding.object == object.map(|object| State::of(object, self.ignored));
        is_same.then(|| verdict.clone())
    }

    /// Records what has come of a look, if one was begun.
    pub(crate) fn set<S>(
        &mut self,
        one: &ManifestRef<'_, S>,
        object: Option<&Value>,
        verdict: &Verdict,
    ) {
        let of_object = self.found.get_mut(&(one.kind(), one.key()));
        if let Some(finding) = of_object.and_then(|units| units.get_mut(&one.unit.key)) {
            finding.object = object.map(|object| State::of(object, self.ignored));
            finding.verdict = Some((verdict.clone(), Question::of(one), Instant::now()));
            finding.is_looked_at = false;
        }
    }

    /// Forgets what was found about the object of a manifest.
    pub(crate) fn clear<S>(&mut self, one: &ManifestRef<'_, S>) {
        let id = (one.kind(), one.key());
        if let Some(units) = self.found.get_mut(&id) {
            units.remove(&one.unit.key);
            if units.is_empty() {
                self.found.remove(&id);
            }
        }
    }

    /// Forgets a unit that is gone.
    pub(crate) fn forget(&mut self, unit: &Key) {
        self.found.retain(|_, units| {
            units.remove(unit);
            !units.is_empty()
        });
    }

    /// Forgets the objects of which a unit has no manifest any more.
    pub(crate) fn keep<S>(&mut self, unit: &Unit<'_, S>) {
        if self.found.is_empty() {
            return;
        }
        let wanted: BTreeSet<_> = unit.refs().map(|one| (one.kind(), one.key())).collect();
        self.found.retain(|id, units| {
            if !wanted.contains(id) {
                units.remove(&unit.key);
            }
            !units.is_empty()
        });
    }

    /// Returns the units to which the change of an object is news: it is not as they have found it, or being looked at.
    pub(crate) fn change(
        &mut self,
        kind: &GroupVersionKind,
        key: &Key,
        object: Option<&Untyped>,
    ) -> Vec<Key> {
        let Some(units) = self.found.get_mut(&(kind.clone(), key.clone())) else {
            return Vec::new();
        };
        let state = object.map(|object| State::of(&object.value(), self.ignored));
        let units = units.iter_mut();
        let changed = units.filter(|(_, found)| found.is_looked_at || found.object != state);
        changed.filter_map(news).collect()
    }

    /// Returns the units to which it is news that every object of a kind was listed: any may have changed before.
    pub(crate) fn list(&mut self, kind: &GroupVersionKind) -> BTreeSet<Key> {
        let of_kind = self.found.iter_mut().filter(|((of, _), _)| of == kind);
        let units = of_kind.flat_map(|(_, units)| units);
        units.filter_map(news).collect()
    }

    /// Returns the units that were refused an object, which is news to them now.
    pub(crate) fn reopen(&mut self) -> BTreeSet<Key> {
        let all = self.found.values_mut().flatten();
        let refused =
            all.filter(|(_, found)| matches!(found.verdict, Some((Verdict::Refused { .. }, ..))));
        refused.filter_map(news).collect()
    }

    fn get<S>(&self, one: &ManifestRef<'_, S>) -> Option<&Finding> {
        self.found.get(&(one.kind(), one.key()))?.get(&one.unit.key)
    }
}

fn news((unit, finding): (&Key, &mut Finding)) -> Option<Key> {
    let was_stale = std::mem::replace(&mut finding.is_stale, true);
    (!was_stale).then(|| unit.clone())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::unit::LastWrite;

    fn unit<'a>(manifests: &'a [Value], terms: &str) -> Unit<'a, ()> {
        Unit {
            source: &(),
            key: Key::new("units", "a"),
            generation: Some(1),
            manifests: manifests.iter().collect(),
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

    fn findings() -> Findings {
        Findings::new(|key| key == "ignored")
    }

    fn verdict() -> Verdict {
        Verdict::Compared(Arc::new(Compared::of(None, Vec::new())))
    }

    /// What was found holds until the object changes, even if that happens while it is looked at; then its unit is told once.
    #[test]
    fn change_during_look_is_kept() {
        let (manifests, kind) = ([map("a")], GroupVersionKind::new("v1", "ConfigMap"));
        let unit = unit(&manifests, "");
        let (one, key) = (unit.refs().next().unwrap(), Key::cluster_scoped("a"));
        let mut findings = findings();
        let change = |findings: &mut Findings| findings.change(&kind, &key, None).len();
        assert_eq!(change(&mut findings), 0);
        for (before, during, stands) in [(0, 0, true), (1, 0, true), (0, 1, false), (2, 2, false)] {
            let told: usize = (0..before).map(|_| change(&mut findings)).sum();
            assert_eq!(told, before.min(1));
            findings.begin(&one);
            let told: usize = (0..during).map(|_| change(&mut findings)).sum();
            assert_eq!(told, during.min(1));
            findings.set(&one, Some(&map("a")), &verdict());
            assert_eq!(
                findings.standing(&one).is_some(),
                stands,
                "{before} {during}"
            );
            findings.begin(&one);
            findings.set(&one, Some(&map("a")), &verdict());
        }
        assert_eq!(findings.list(&kind).len(), 1);
        assert!(findings.standing(&one).is_none());
    }

    /// What an object reports of itself, or keeps in an annotation that says nothing, is not looked at.
    #[test]
    fn status_is_no_news() {
        let (manifests, kind) = ([map("a")], GroupVersionKind::new("v1", "ConfigMap"));
        let unit = unit(&manifests, "");
        let (one, key) = (unit.refs().next().unwrap(), Key::cluster_scoped("a"));
        let mut findings = findings();
        findings.begin(&one);
        findings.set(&one, Some(&map("a")), &verdict());
        let mut marked = map("a");
        marked["metadata"]["annotations"] = json!({ "ignored": "1" });
        for same in [changed("status"), Untyped::from(marked)] {
            assert_eq!(findings.change(&kind, &key, Some(&same)).len(), 0);
            assert!(findings.standing(&one).is_some());
        }
        let other = changed("data");
        assert_eq!(findings.change(&kind, &key, Some(&other)).len(), 1);
        assert!(findings.standing(&one).is_none());
    }

    /// A look that fails leaves nothing standing: what was found before is known to be outdated.
    #[test]
    fn failed_look_finds_nothing() {
        let (manifests, kind) = ([map("a")], GroupVersionKind::new("v1", "ConfigMap"));
        let unit = unit(&manifests, "");
        let one = unit.refs().next().unwrap();
        let mut findings = findings();
        findings.begin(&one);
        findings.set(&one, Some(&map("a")), &verdict());
        assert!(findings.standing(&one).is_some());
        findings.change(&kind, &Key::cluster_scoped("a"), None);
        findings.begin(&one);
        assert!(findings.standing(&one).is_none());
        findings.set(&one, Some(&map("a")), &verdict());
        assert!(findings.standing(&one).is_some());
    }

    /// A finding is one about the object as it was, by its manifest and on the terms of that time; other manifests of the unit
    /// may change.
    #[test]
    fn others_have_no_finding() {
        let manifests = [map("a"), map("b")];
        let before = unit(&manifests, "");
        let mut findings = findings();
        for one in before.refs() {
            findings.begin(&one);
            findings.set(&one, Some(one.manifest), &verdict());
            let mut owned = one.manifest.clone();
            owned["metadata"]["ownerReferences"] = json!([{ "uid": "o" }]);
            assert!(findings.same(&one, Some(one.manifest)).is_some());
            assert!(findings.same(&one, Some(&owned)).is_none());
            assert!(findings.same(&one, None).is_none());
        }
        let mut edited = manifests.clone();
        edited[1]["data"] = json!({ "a": "b" });
        let after = unit(&edited, "");
        let stand: Vec<_> = after
            .refs()
            .map(|one| findings.standing(&one).is_some())
            .collect();
        assert_eq!(stand, [true, false]);
        let on_other_terms = unit(&manifests, "other");
        let mut stand = on_other_terms.refs().map(|one| findings.standing(&one));
        assert!(stand.all(|one| one.is_none()));
        findings.keep(&unit(&manifests[..1], ""));
        let stand: Vec<_> = before
            .refs()
            .map(|one| findings.standing(&one).is_some())
            .collect();
        assert_eq!(stand, [true, false]);
        findings.forget(&before.key);
        assert!(findings.found.is_empty());
    }
}

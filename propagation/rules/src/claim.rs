//! The claim of a policy on a template and its binding: labels and annotations that name the policy.
//!
//! A template has one claim at most, so the keys of the other scope's policies go when one is made.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use karmada_api::names;
use objects::write::{Guard, Write};
use objects::{Key, Metadata, metadata};
use serde_json::{Map, Value, json};

use super::candidate::Candidate;

/// The policy that claims a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The policy's ID; empty if the claim has lost it.
    pub id: String,
    /// The policy's namespace; absent for a `ClusterPropagationPolicy`.
    pub namespace: Option<String>,
    /// The policy's name.
    pub name: String,
}

/// A label or an annotation of a claim, with its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark<'a> {
    pub(super) map: &'static str,
    pub(super) key: &'static str,
    pub(super) value: Option<&'a str>,
}

const LABELS: &str = "labels";
const ANNOTATIONS: &str = "annotations";

/// The name of the writes to a policy in metrics.
const TARGET: &str = "policy";

impl Claim {
    /// Returns the claim of `policy`, or `None` while the policy has no ID.
    pub fn by(policy: &Candidate<'_>) -> Option<Self> {
        Some(Self {
            id: policy.id()?.to_owned(),
            namespace: policy.namespace().map(str::to_owned),
            name: policy.name().to_owned(),
        })
    }

    /// Returns the claim on `object`.
    pub fn of(object: &impl Metadata) -> Option<Self> {
        let namespace = object.annotation(names::POLICY_NAMESPACE);
        let (id, namespace, name) = match (object.annotation(names::POLICY_NAME), namespace) {
            (Some(name), Some(namespace)) if !name.is_empty() => {
                (names::POLICY_ID, Some(namespace), name)
            }
            _ => {
                let name = object.annotation(names::CLUSTER_POLICY_NAME)?;
                (names::CLUSTER_POLICY_ID, None, name)
            }
        };
        (!name.is_empty()).then(|| Self {
            id: object.label(id).unwrap_or_default().to_owned(),
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
        })
    }

    /// Returns the claim on `template`, or on its `binding` if that is its own: a user's PUT wipes that of the template.
    pub fn on(template: &Value, binding: Option<&ObjectMeta>) -> Option<Self> {
        let own = binding.filter(|binding| is_own(binding, template));
        Self::of(template).or_else(|| Self::of(own?))
    }

    /// Returns the key of the policy; one without a namespace is a `ClusterPropagationPolicy`.
    pub fn policy(&self) -> Key {
        Key::new(self.namespace.as_deref().unwrap_or_default(), &self.name)
    }

    /// Returns the policy as people write it: `namespace/name`, or the name of a `ClusterPropagationPolicy`.
    pub fn policy_text(&self) -> String {
        policy_text(self.namespace.as_deref(), &self.name)
    }

    /// Returns `true` if the claim is that of `policy`. A policy that was deleted and made again has
    /// another ID.
    pub fn is_of(&self, policy: &Candidate<'_>) -> bool {
        self.namespace.as_deref() == policy.namespace()
            && self.name == policy.name()
            && (self.id.is_empty() || policy.id().is_none_or(|id| id == self.id))
    }
}

/// Returns `true` if an object has the claim of `policy`.
pub fn is_claimed_by(object: &impl Metadata, policy: &Candidate<'_>) -> bool {
    Claim::of(object).is_some_and(|claim| claim.is_of(policy))
}

/// Returns `true` if the binding is that of the template, and not of a former one of its name.
pub fn is_own(binding: &ObjectMeta, template: &Value) -> bool {
    let mut owners = binding.owner_references.iter().flatten();
    owners.any(|owner| owner.uid == template.uid())
}

pub(super) fn policy_text(namespace: Option<&str>, name: &str) -> String {
    namespace.map_or_else(
        || name.to_owned(),
        |namespace| format!("{namespace}/{name}"),
    )
}

/// Returns the labels and annotations of an object with `claim`, or without one.
pub(super) fn marks(claim: Option<&Claim>) -> [Mark<'_>; 5] {
    let (policy, cluster_policy) = match claim {
        Some(claim) if claim.namespace.is_some() => (Some(claim), None),
        claim => (None, claim),
    };
    [
        (LABELS, names::POLICY_ID, policy.map(|c| &*c.id)),
        (
            ANNOTATIONS,
            names::POLICY_NAMESPACE,
            policy.and_then(|c| c.namespace.as_deref()),
        ),
        (ANNOTATIONS, names::POLICY_NAME, policy.map(|c| &*c.name)),
        (
            LABELS,
            names::CLUSTER_POLICY_ID,
            cluster_policy.map(|c| &*c.id),
        ),
        (
            ANNOTATIONS,
            names::CLUSTER_POLICY_NAME,
            cluster_policy.map(|c| &*c.name),
        ),
    ]
    .map(|(map, key, value)| Mark { map, key, value })
}

/// Puts the claim of a binding on its template, if that shows none. Both are claimed at once, but the copy at hand of
/// the template may be older.
pub(super) fn share(binding: &ObjectMeta, template: &mut Value) {
    if Claim::of(template).is_some() {
        return;
    }
    let claim = Claim::of(binding);
    for Mark { map, key, value } in marks(claim.as_ref()) {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            metadata::edit(template, map, |map| {
                map.insert(key.to_owned(), value.into());
            });
        }
    }
}

impl Mark<'_> {
    /// Returns `true` for a label, `false` for an annotation.
    pub(super) fn is_label(&self) -> bool {
        self.map == LABELS
    }

    /// Returns `true` if the object has the mark, or lacks it, as wanted.
    pub(super) fn is_on(&self, object: &impl Metadata) -> bool {
        let current = if self.is_label() {
            object.label(self.key)
        } else {
            object.annotation(self.key)
        };
        current == self.value
    }
}

/// Returns the merge patch that brings the claim on a template to `claim`, or takes it away; `None` if
/// nothing is to do. `held` is the fingerprint of a template that gets no binding before its next edit; an
/// older one stays.
pub fn patch_template(object: &Value, claim: Option<&Claim>, held: Option<&str>) -> Option<Value> {
    let before = object.annotation(names::CLAIMED_FINGERPRINT);
    let mark = Mark {
        map: ANNOTATIONS,
        key: names::CLAIMED_FINGERPRINT,
        value: if claim.is_some() {
            held.or(before)
        } else {
            None
        },
    };
    // An annotation that is not there is not mentioned.
    let mark = [mark].into_iter().filter(|mark| mark.value != before);
    patch(object, marks(claim).into_iter().chain(mark))
}

/// Returns the merge patch that takes the claim on a binding away; `None` if there is none.
pub fn patch_unclaimed(binding: &ObjectMeta) -> Option<Value> {
    patch(binding, marks(None).into_iter())
}

fn patch<'a>(object: &impl Metadata, marks: impl Iterator<Item = Mark<'a>>) -> Option<Value> {
    let marks: Vec<_> = marks.collect();
    if marks.iter().all(|mark| mark.is_on(object)) {
        return None;
    }
    // The uid is a precondition: an object that was made again has a user who expects no claim.
    Some(json!({ "metadata": {
        "uid": object.uid(),
        "labels": part(&marks, LABELS),
        "annotations": part(&marks, ANNOTATIONS),
    } }))
}

/// Returns the marks that are in this map.
fn part(marks: &[Mark<'_>], map: &str) -> Map<String, Value> {
    let of_map = marks.iter().filter(|mark| mark.map == map);
    of_map
        .map(|mark| (mark.key.to_owned(), json!(mark.value)))
        .collect()
}

/// Returns the write that gives a policy its ID and finalizer where it lacks them. `new_id` is the ID of
/// one that has none.
pub fn adoption(policy: &Candidate<'_>, new_id: impl FnOnce() -> String) -> Option<Write> {
    if policy.is_deleting() {
        return None;
    }
    let mut patch = Map::new();
    if policy.id().is_none() {
        patch.insert(LABELS.to_owned(), json!({ policy.id_label(): new_id() }));
    }
    if let Some(finalizers) = policy.metadata.with_finalizers(&[policy.finalizer()]) {
        patch.insert("finalizers".to_owned(), json!(finalizers));
    }
    if patch.is_empty() {
        return None;
    }
    let write = Write::merge(TARGET, policy.object(), json!({ "metadata": patch }));
    Some(write.guarded(Guard::Version))
}

/// Returns the write that removes our finalizer from a policy whose claims are gone.
pub fn release(policy: &Candidate<'_>) -> Option<Write> {
    let rest = policy.metadata.without_finalizers(&[policy.finalizer()])?;
    Some(Write::finalizers(TARGET, policy.object(), &rest))
}

#[cfg(test)]
mod tests {
    use karmada_api::PropagationSpec;

    use super::*;

    fn claim(namespace: Option<&str>) -> Claim {
        Claim {
            id: "id-1".to_owned(),
            namespace: namespace.map(str::to_owned),
            name: "web".to_owned(),
        }
    }

    fn patched(mut object: Value, patch: &Value) -> Value {
        json_patch::merge(&mut object, patch);
        object
    }

    /// A claim is made moved between scopes and taken away.
    #[test]
    fn claim_moves_between_scopes() {
        let object = json!({ "metadata": {
            "uid": "u",
            "labels": { "app": "web" },
            "annotations": { "note": "x" },
        } });
        let mut now = object.clone();
        for wanted in [claim(Some("shop")), claim(None), claim(Some("other"))] {
            assert_ne!(Claim::of(&now), Some(wanted.clone()));
            let body = patch_template(&now, Some(&wanted), None).unwrap();
            assert_eq!(body["metadata"]["uid"], "u");
            now = patched(now, &body);
            assert_eq!(Claim::of(&now), Some(wanted.clone()));
            assert_eq!(patch_template(&now, Some(&wanted), None), None);
        }
        now = patched(now.clone(), &patch_template(&now, None, None).unwrap());
        assert_eq!(now, object);
        assert_eq!(patch_template(&now, None, None), None);
    }

    /// The fingerprint of a template that waits stays until its claim goes.
    #[test]
    fn held_fingerprint_outlives_patches() {
        let mut now = json!({ "metadata": { "uid": "u" } });
        let claim = claim(None);
        for (held, expected) in [
            (None, None),
            (Some("a"), Some("a")),
            (None, Some("a")),
            (Some("b"), Some("b")),
        ] {
            if let Some(body) = patch_template(&now, Some(&claim), held) {
                now = patched(now, &body);
            }
            assert_eq!(now.annotation(names::CLAIMED_FINGERPRINT), expected);
        }
        now = patched(now.clone(), &patch_template(&now, None, None).unwrap());
        assert_eq!(now.annotation(names::CLAIMED_FINGERPRINT), None);
    }

    /// A claim has the keys of Karmada.
    #[test]
    fn claim_has_karmadas_keys() {
        let object = json!({ "metadata": { "uid": "u" } });
        let body = patch_template(&object, Some(&claim(None)), None);
        assert_eq!(
            body,
            Some(json!({ "metadata": {
                "uid": "u",
                "labels": {
                    "clusterpropagationpolicy.karmada.io/permanent-id": "id-1",
                    "propagationpolicy.karmada.io/permanent-id": null,
                },
                "annotations": {
                    "clusterpropagationpolicy.karmada.io/name": "web",
                    "propagationpolicy.karmada.io/name": null,
                    "propagationpolicy.karmada.io/namespace": null,
                },
            } }))
        );
    }

    /// A policy gets the marks that no webhook gave it and loses only our finalizer.
    #[test]
    fn adoption_spares_other_finalizers() {
        let spec = PropagationSpec::default();
        let mut metadata = ObjectMeta {
            namespace: Some("shop".to_owned()),
            name: Some("web".to_owned()),
            resource_version: Some("7".to_owned()),
            finalizers: Some(vec!["other".to_owned()]),
            ..ObjectMeta::default()
        };
        let finalizer = names::POLICY_FINALIZER;
        let write = adoption(&Candidate::new(&metadata, &spec), || "new".to_owned());
        assert_eq!(
            write.unwrap().guarded_body(),
            json!({ "metadata": {
                "resourceVersion": "7",
                "labels": { names::POLICY_ID: "new" },
                "finalizers": ["other", finalizer],
            } })
        );
        metadata.labels = Some([(names::POLICY_ID.to_owned(), "new".to_owned())].into());
        metadata.finalizers = Some(vec!["other".to_owned(), finalizer.to_owned()]);
        let settled = Candidate::new(&metadata, &spec);
        assert_eq!(adoption(&settled, || unreachable!()), None);
        assert_eq!(
            release(&settled).unwrap().guarded_body(),
            json!({ "metadata": { "resourceVersion": "7", "finalizers": ["other"] } })
        );
        metadata.finalizers = None;
        assert_eq!(release(&Candidate::new(&metadata, &spec)), None);
    }
}

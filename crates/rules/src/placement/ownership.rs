//! Whose an object in a member is, and what a Work may do with it.

use std::collections::BTreeMap;

use karmada_api::fleet::names::{PLACEMENT, SPEC_HASH};
use karmada_api::fleet::{AppliedWork, Work};
use karmada_api::names::MANAGED;
use objects::managed_fields::{Managers, TakeOver};
use objects::metadata::{self, Owner};
use objects::ownership::{Adoption, Removal};
use objects::patch::guarded;
use objects::{Metadata, group};
use serde_json::{Value, json};

use super::strategy::only_reports;
use super::takeover::{LEFT_ALONE, leaves_alone};

/// The managers of what we write in members, and of what KubeFleet's agent wrote there before us.
pub const MANAGERS: Managers = Managers {
    ours: "placement-agent",
    predecessors: &["work-api-agent", "memberagent"],
};

/// The names of the `AppliedWork`s that exist in a member, by their uids.
pub type Owners = BTreeMap<String, String>;

/// Returns `true` if an `AppliedWork` owns the object, one that exists or not.
pub fn is_placed(object: &impl Metadata) -> bool {
    object.owners().iter().any(is_applied_work)
}

/// Returns the name of the `AppliedWork` that owns the object.
pub fn owner_of<'a>(object: &impl Metadata, owners: &'a Owners) -> Option<&'a str> {
    let references = object.owners();
    let mut placed = references.iter().filter(|owner| is_applied_work(owner));
    placed.find_map(|owner| owners.get(owner.uid).map(String::as_str))
}

/// Decides what a Work may do with an object that exists where one of its manifests is to be applied. `own` is the
/// uid of its `AppliedWork`.
pub fn adoption(work: &Work, own: &str, owners: &Owners, object: &Value) -> Adoption {
    let strategy = work.spec.apply_strategy.as_ref();
    let may_share = strategy.is_some_and(|strategy| strategy.allow_co_ownership == Some(true));
    let references = object.owners();
    // The reference of one that is gone goes with the next write.
    let is_there = |owner: &&Owner<'_>| !is_applied_work(owner) || owners.contains_key(owner.uid);
    let mut others = references
        .iter()
        .filter(is_there)
        .filter(|owner| owner.uid != own);
    if let Some(other) = others.find(|owner| is_applied_work(owner) || !may_share) {
        let Owner { kind, name, .. } = other;
        let way_out = if is_applied_work(other) {
            "place the object once"
        } else {
            "place it without that, or set allowCoOwnership"
        };
        return Adoption::Refuse {
            reason: format!("the object in the member belongs to {kind} {name}: {way_out}"),
        };
    }
    if object.label(MANAGED) == Some("true") {
        let reason = "the object in the member is propagated by Karmada: place it, or propagate it, but not both";
        return Adoption::Refuse {
            reason: reason.to_owned(),
        };
    }
    if references.iter().any(|owner| owner.uid == own) {
        Adoption::Owned
    } else if leaves_alone(work) {
        Adoption::Refuse {
            reason: LEFT_ALONE.to_owned(),
        }
    } else {
        Adoption::Adopt {
            fields: TakeOver::FromPredecessors,
        }
    }
}

/// Decides what becomes of an object that a Work gives up, whose `AppliedWork` has the uid `own`. A Work that only reports
/// deletes nothing: what it has from when it applied is let go.
pub fn removal(work: &Work, own: &str, owners: &Owners, object: &Value) -> Removal {
    let references = object.owners();
    let is_ours = references.iter().any(|owner| owner.uid == own);
    if !is_ours || object.is_deleting() || object.uid().is_empty() {
        return Removal::Nothing;
    }
    let is_there = |owner: &Owner<'_>| !is_applied_work(owner) || owners.contains_key(owner.uid);
    let is_shared = references
        .iter()
        .any(|owner| owner.uid != own && is_there(owner));
    if !is_shared && !only_reports(work.spec.apply_strategy.as_ref()) {
        return Removal::Delete {
            uid: object.uid().to_owned(),
        };
    }
    let all = metadata::field(object, "ownerReferences").and_then(Value::as_array);
    let others: Vec<_> = all
        .into_iter()
        .flatten()
        .filter(|owner| owner["uid"] != own)
        .collect();
    let mut body = json!({ "metadata": { "ownerReferences": others } });
    // What we have noted on it is not true of it any more.
    for note in [SPEC_HASH, PLACEMENT] {
        if object.annotation(note).is_some() {
            body["metadata"]["annotations"][note] = Value::Null;
        }
    }
    Removal::Release {
        patch: guarded(Some(object.resource_version()), body),
    }
}

fn is_applied_work(owner: &Owner<'_>) -> bool {
    owner.kind == AppliedWork::KIND && owner.group == group(AppliedWork::API_VERSION)
}

#[cfg(test)]
mod tests {
    use serde_json::from_value;

    use super::super::fixtures::items;
    use super::*;

    const OTHERS: (&str, &str) = ("apps/v1", "Deployment");
    const PLACED: (&str, &str) = ("placement.kubernetes-fleet.io/v1beta1", "AppliedWork");

    fn owners() -> Owners {
        [("ours", "a-work"), ("theirs", "b-work")]
            .map(|(uid, name)| (uid.to_owned(), name.to_owned()))
            .into()
    }

    fn object(references: &[((&str, &str), &str)]) -> Value {
        let references: Vec<_> = references
            .iter()
            .map(|((version, kind), uid)| {
                json!({ "apiVersion": version, "kind": kind, "name": uid, "uid": uid })
            })
            .collect();
        json!({ "metadata": { "name": "a", "uid": "u", "resourceVersion": "7",
            "ownerReferences": references } })
    }

    fn work(may_share: bool) -> Work {
        from_value(json!({ "spec": { "applyStrategy": { "allowCoOwnership": may_share } } }))
            .unwrap()
    }

    /// An object of nobody, or of an owner that is gone, may be taken over; one of another never, and one of somebody
    /// else only where that was asked for.
    #[test]
    fn owners_decide_about_adoption() {
        let adopted = Adoption::Adopt {
            fields: TakeOver::FromPredecessors,
        };
        for (object, may_share, expected) in [
            (object(&[]), false, Some(adopted.clone())),
            (object(&[(PLACED, "gone")]), false, Some(adopted.clone())),
            (object(&[(PLACED, "ours")]), false, Some(Adoption::Owned)),
            (
                object(&[(PLACED, "ours"), (PLACED, "gone")]),
                false,
                Some(Adoption::Owned),
            ),
            (object(&[(PLACED, "theirs")]), true, None),
            (object(&[(OTHERS, "else")]), false, None),
            (object(&[(OTHERS, "else")]), true, Some(adopted)),
            (object(&[(PLACED, "ours"), (OTHERS, "else")]), false, None),
            (
                object(&[(PLACED, "ours"), (OTHERS, "else")]),
                true,
                Some(Adoption::Owned),
            ),
        ] {
            let adoption = adoption(&work(may_share), "ours", &owners(), &object);
            match expected {
                Some(expected) => assert_eq!(adoption, expected, "{object}"),
                None => assert!(matches!(adoption, Adoption::Refuse { .. }), "{object}"),
            }
        }
    }

    /// What nobody has is left alone where that is asked for; what is ours stays ours.
    #[test]
    fn never_leaves_objects_alone() {
        let work: Work = from_value(json!({ "spec": { "applyStrategy": {
            "whenToTakeOver": "Never", "allowCoOwnership": true } } }))
        .unwrap();
        let adopts = |object: &Value| adoption(&work, "ours", &owners(), object);
        let reason = LEFT_ALONE.to_owned();
        assert_eq!(adopts(&object(&[])), Adoption::Refuse { reason });
        assert_eq!(adopts(&object(&[(PLACED, "ours")])), Adoption::Owned);
    }

    /// Both halves of this house may work in one cluster: an object belongs to one of them.
    #[test]
    fn propagated_object_is_refused() {
        let mut object = object(&[]);
        object["metadata"]["labels"] = json!({ MANAGED: "true" });
        let adoption = adoption(&work(true), "ours", &owners(), &object);
        assert!(matches!(adoption, Adoption::Refuse { .. }));
    }

    /// An object goes with its last owner; until then, it only loses the owner that gives it up.
    #[test]
    fn last_owner_takes_object_away() {
        let delete = Removal::Delete {
            uid: "u".to_owned(),
        };
        let removal = |object: &Value| removal(&work(false), "ours", &owners(), object);
        let ours = object(&[(PLACED, "ours"), (PLACED, "gone")]);
        assert_eq!(removal(&ours), delete);
        let theirs = object(&[(PLACED, "theirs")]);
        assert_eq!(removal(&theirs), Removal::Nothing);
        let shared = object(&[(PLACED, "ours"), (OTHERS, "else")]);
        let Removal::Release { patch } = removal(&shared) else {
            panic!("not released");
        };
        let left = &patch["metadata"]["ownerReferences"];
        assert_eq!(left.as_array().map(Vec::len), Some(1));
        assert_eq!(left[0]["uid"], "else");
        assert_eq!(patch["metadata"]["resourceVersion"], "7");
        let mut going = ours;
        going["metadata"]["deletionTimestamp"] = json!("2026-11-25T17:00:00Z");
        assert_eq!(removal(&going), Removal::Nothing);
    }

    /// Who only looks takes nothing away, not even what he owns since he did more than that.
    #[test]
    fn reporter_deletes_nothing() {
        let work: Work =
            from_value(json!({ "spec": { "applyStrategy": { "type": "ReportDiff" } } })).unwrap();
        let mut ours = object(&[(PLACED, "ours")]);
        ours["metadata"]["annotations"] = json!({ SPEC_HASH: "h", "example.com/theirs": "" });
        let Removal::Release { patch } = removal(&work, "ours", &owners(), &ours) else {
            panic!("not released");
        };
        assert_eq!(patch["metadata"]["ownerReferences"], json!([]));
        assert_eq!(patch["metadata"]["annotations"], json!({ SPEC_HASH: null }));
        let free = removal(&work, "ours", &owners(), &object(&[]));
        assert_eq!(free, Removal::Nothing);
    }

    #[test]
    fn recorded_objects_have_owners() {
        for object in items("crp-1-member-objects") {
            assert!(is_placed(&object), "{}", objects::kind(&object));
            assert_eq!(owner_of(&object, &Owners::new()), None);
        }
    }
}

//! The owner of an object in a member, and the rights of a Work to it.

use std::collections::{BTreeMap, BTreeSet};

use fleet_api::names::{PLACEMENT, SPEC_HASH};
use fleet_api::{AppliedWork, Work};
use objects::managed_fields::{Managers, TakeOver};
use objects::metadata::{self, Owner};
use objects::ownership::{Adoption, Instruction, Removal, Retain};
use objects::patch::guarded;
use objects::{Metadata, group};
use serde_json::{Value, json};

use super::strategy::{Strategy, WhenToTakeOver};
use super::takeover::{LEFT_ALONE, comparison};
use super::waves::wave;

/// The managers of the fields written in members. The first is that of KubeFleet's agent, so that each goes on with the fields
/// of the other; the second was ours before, and the third takes over there.
pub const MANAGERS: Managers = Managers {
    ours: "work-api-agent",
    predecessors: &["placement-agent", "memberagent"],
};

/// The label of objects that Karmada propagates.
const MANAGED_BY_KARMADA: &str = "karmada.io/managed";

/// The names of the `AppliedWork`s that exist in a member, by their uids.
pub type Owners = BTreeMap<String, String>;

/// The `AppliedWork` of a Work.
#[derive(Clone, Debug, Default)]
pub struct Own {
    /// Its uid; empty if there is none.
    uid: String,
    /// The uids of the objects that it has.
    applied: BTreeSet<String>,
}

impl Own {
    /// Returns the uids of an `AppliedWork` and of the objects that it has.
    pub fn of(owner: &AppliedWork) -> Self {
        let applied = owner
            .status
            .iter()
            .flat_map(|status| &status.applied_resources);
        Self {
            uid: owner.metadata.uid().to_owned(),
            applied: applied.map(|one| one.uid.clone()).collect(),
        }
    }

    /// Returns `true` if it has the object: its owner reference says so, or, if somebody has taken that off, its uid does.
    pub fn has(&self, object: &impl Metadata) -> bool {
        self.is_named_by(object) || self.applied.contains(object.uid())
    }

    fn is_named_by(&self, object: &impl Metadata) -> bool {
        object.owners().iter().any(|owner| owner.uid == self.uid)
    }
}

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

/// Decides about a manifest of a Work, by the object that is found in its place.
pub fn instruction(
    work: &Work,
    own: &Own,
    owners: &Owners,
    (manifest, object): (&Value, Option<&Value>),
) -> Instruction {
    let strategy = Strategy::of(work.spec.apply_strategy.as_ref());
    let adopt = match object {
        Some(object) => adoption(work, own, owners, (manifest, object)),
        None if strategy.when_to_take_over == WhenToTakeOver::Always => Adoption::Owned,
        None => Adoption::Refuse {
            reason: "an object that a member had before is looked at first".to_owned(),
        },
    };
    let is_owned = object.is_some_and(|object| own.has(object));
    Instruction {
        style: strategy.write_style(),
        adopt,
        compare: comparison(strategy, manifest, object, is_owned),
        retain: Retain::default(),
        wave: wave(manifest) as usize,
    }
}

/// Decides about an object that exists where one of its manifests is to be applied.
fn adoption(
    work: &Work,
    own: &Own,
    owners: &Owners,
    (manifest, object): (&Value, &Value),
) -> Adoption {
    let strategy = Strategy::of(work.spec.apply_strategy.as_ref());
    let references = object.owners();
    // The reference of one that is gone goes with the next write.
    let mut others = references
        .iter()
        .filter(|owner| owner.uid != own.uid && is_there(owner, owners));
    if let Some(other) = others.find(|owner| is_applied_work(owner) || !strategy.allow_co_ownership)
    {
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
    if object.label(MANAGED_BY_KARMADA) == Some("true") {
        let reason = "the object in the member is propagated by Karmada: place it, or propagate it, but not both";
        return Adoption::Refuse {
            reason: reason.to_owned(),
        };
    }
    let is_ours = own.has(object);
    let has_manifest = object.annotation(SPEC_HASH).is_some()
        && object.annotation(SPEC_HASH) == manifest.annotation(SPEC_HASH);
    if is_ours && has_manifest {
        // The fields that it lacks somebody has taken away, and those in their places are not beside them.
        Adoption::Adopt {
            fields: TakeOver::Displaced,
        }
    } else if own.is_named_by(object) {
        Adoption::Owned
    } else if strategy.when_to_take_over == WhenToTakeOver::Never && !is_ours {
        Adoption::Refuse {
            reason: LEFT_ALONE.to_owned(),
        }
    } else {
        Adoption::Adopt {
            fields: TakeOver::FromPredecessors,
        }
    }
}

/// Decides the fate of an object that a Work gives up. One that only reports deletes the objects that it has applied, which
/// have the hash of a manifest; those that KubeFleet's agent owns because it has looked at them are let go.
pub fn removal(work: &Work, own: &Own, owners: &Owners, object: &Value) -> Removal {
    let references = object.owners();
    if !own.has(object) || object.is_deleting() || object.uid().is_empty() {
        return Removal::Nothing;
    }
    let is_shared = references
        .iter()
        .any(|owner| owner.uid != own.uid && is_there(owner, owners));
    let strategy = Strategy::of(work.spec.apply_strategy.as_ref());
    let is_applied = !strategy.only_reports() || object.annotation(SPEC_HASH).is_some();
    if !is_shared && is_applied {
        return Removal::Delete {
            uid: object.uid().to_owned(),
        };
    }
    let all = metadata::field(object, "ownerReferences").and_then(Value::as_array);
    let others: Vec<_> = all
        .into_iter()
        .flatten()
        .filter(|owner| owner["uid"] != *own.uid)
        .collect();
    let mut body = json!({ "metadata": { "ownerReferences": others } });
    // Our note on it is not true of it any more.
    for note in [SPEC_HASH, PLACEMENT] {
        if object.annotation(note).is_some() {
            body["metadata"]["annotations"][note] = Value::Null;
        }
    }
    Removal::Release {
        patch: guarded(Some(object.resource_version()), body),
    }
}

/// Returns `true` unless an owner is an `AppliedWork` that is gone.
fn is_there(owner: &Owner<'_>, owners: &Owners) -> bool {
    !is_applied_work(owner) || owners.contains_key(owner.uid)
}

fn is_applied_work(owner: &Owner<'_>) -> bool {
    owner.kind == AppliedWork::KIND && owner.group == group(AppliedWork::API_VERSION)
}

#[cfg(test)]
mod tests {
    use objects::ownership::WriteStyle;
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

    fn own() -> Own {
        Own {
            uid: "ours".to_owned(),
            applied: ["listed".to_owned()].into(),
        }
    }

    fn adopted(work: &Work, object: &Value) -> Adoption {
        adoption(work, &own(), &owners(), (&json!({}), object))
    }

    fn work(may_share: bool) -> Work {
        from_value(json!({ "spec": { "applyStrategy": { "allowCoOwnership": may_share } } }))
            .unwrap()
    }

    /// Fields of others are taken unless somebody asks for an apply that spares them, and an object that appears meanwhile is
    /// taken over unless it is to be looked at first. A word of a newer KubeFleet means the default.
    #[test]
    fn strategies_decide_about_writes() {
        let forced = json!({ "force": true });
        let forced = json!({ "type": "ServerSideApply", "serverSideApplyConfig": forced });
        let (apply, unforced) = (WriteStyle::Apply, WriteStyle::ApplyUnforced);
        for (strategy, style, adopts_unseen) in [
            (json!(null), apply, true),
            (json!({ "type": "ClientSideApply" }), apply, true),
            (json!({ "type": "ServerSideApply" }), unforced, true),
            (forced, apply, true),
            (json!({ "whenToTakeOver": "IfNoDiff" }), apply, false),
            (json!({ "whenToTakeOver": "Never" }), apply, false),
            (json!({ "whenToTakeOver": "Newer" }), apply, true),
        ] {
            let work: Work = from_value(json!({ "spec": { "applyStrategy": strategy } })).unwrap();
            let told = instruction(&work, &own(), &owners(), (&json!({}), None));
            assert_eq!(told.style, style, "{strategy}");
            let is_adopted = told.adopt == Adoption::Owned;
            assert_eq!(is_adopted, adopts_unseen, "{strategy}");
        }
    }

    /// An object of nobody, or of an owner that is gone, may be taken over; one of another never, and one of somebody
    /// else only where that was asked for.
    #[test]
    fn owners_decide_about_adoption() {
        let adopt = Adoption::Adopt {
            fields: TakeOver::FromPredecessors,
        };
        for (object, may_share, expected) in [
            (object(&[]), false, Some(adopt.clone())),
            (object(&[(PLACED, "gone")]), false, Some(adopt.clone())),
            (object(&[(PLACED, "ours")]), false, Some(Adoption::Owned)),
            (
                object(&[(PLACED, "ours"), (PLACED, "gone")]),
                false,
                Some(Adoption::Owned),
            ),
            (object(&[(PLACED, "theirs")]), true, None),
            (object(&[(OTHERS, "else")]), false, None),
            (object(&[(OTHERS, "else")]), true, Some(adopt)),
            (object(&[(PLACED, "ours"), (OTHERS, "else")]), false, None),
            (
                object(&[(PLACED, "ours"), (OTHERS, "else")]),
                true,
                Some(Adoption::Owned),
            ),
        ] {
            let adoption = adopted(&work(may_share), &object);
            match expected {
                Some(expected) => assert_eq!(adoption, expected, "{object}"),
                None => assert!(matches!(adoption, Adoption::Refuse { .. }), "{object}"),
            }
        }
    }

    /// An object that nobody has is left alone where that is asked for; ours stay ours.
    #[test]
    fn never_leaves_objects_alone() {
        let work: Work = from_value(json!({ "spec": { "applyStrategy": {
            "whenToTakeOver": "Never", "allowCoOwnership": true } } }))
        .unwrap();
        let (free, ours) = (object(&[]), object(&[(PLACED, "ours")]));
        let reason = LEFT_ALONE.to_owned();
        assert_eq!(adopted(&work, &free), Adoption::Refuse { reason });
        assert_eq!(adopted(&work, &ours), Adoption::Owned);
    }

    /// Case F107: an object whose owner somebody has taken off is known by its uid, and goes with its
    /// Work. One that was made in its place is another.
    #[test]
    fn stripped_object_is_known() {
        let work: Work =
            from_value(json!({ "spec": { "applyStrategy": { "whenToTakeOver": "Never" } } }))
                .unwrap();
        let mut stripped = object(&[]);
        stripped["metadata"]["uid"] = json!("listed");
        let fields = TakeOver::FromPredecessors;
        assert_eq!(adopted(&work, &stripped), Adoption::Adopt { fields });
        let uid = "listed".to_owned();
        let removed = removal(&work, &own(), &owners(), &stripped);
        assert_eq!(removed, Removal::Delete { uid });
        stripped["metadata"]["uid"] = json!("another");
        assert!(matches!(adopted(&work, &stripped), Adoption::Refuse { .. }));
        let removed = removal(&work, &own(), &owners(), &stripped);
        assert_eq!(removed, Removal::Nothing);
    }

    /// Fields that somebody has put in the place of those of the manifest go, once that is all there is to write.
    #[test]
    fn written_object_is_restored() {
        let mut ours = object(&[(PLACED, "ours")]);
        ours["metadata"]["annotations"] = json!({ SPEC_HASH: "h" });
        let fields = TakeOver::Displaced;
        for (hash, expected) in [("h", Adoption::Adopt { fields }), ("next", Adoption::Owned)] {
            let manifest = json!({ "metadata": { "annotations": { SPEC_HASH: hash } } });
            let adoption = adoption(&work(false), &own(), &owners(), (&manifest, &ours));
            assert_eq!(adoption, expected, "{hash}");
        }
    }

    /// Both halves of this house may work in one cluster: an object belongs to one of them.
    #[test]
    fn propagated_object_is_refused() {
        let mut object = object(&[]);
        object["metadata"]["labels"] = json!({ MANAGED_BY_KARMADA: "true" });
        let adoption = adopted(&work(true), &object);
        assert!(matches!(adoption, Adoption::Refuse { .. }));
    }

    /// An object goes with its last owner; until then, it only loses the owner that gives it up.
    #[test]
    fn last_owner_takes_object_away() {
        let delete = Removal::Delete {
            uid: "u".to_owned(),
        };
        let (work, own, owners) = (work(false), own(), owners());
        let ours = object(&[(PLACED, "ours"), (PLACED, "gone")]);
        assert_eq!(removal(&work, &own, &owners, &ours), delete);
        let theirs = object(&[(PLACED, "theirs")]);
        assert_eq!(removal(&work, &own, &owners, &theirs), Removal::Nothing);
        let shared = object(&[(PLACED, "ours"), (OTHERS, "else")]);
        let Removal::Release { patch } = removal(&work, &own, &owners, &shared) else {
            panic!("not released");
        };
        let left = &patch["metadata"]["ownerReferences"];
        assert_eq!(left.as_array().map(Vec::len), Some(1));
        assert_eq!(left[0]["uid"], "else");
        assert_eq!(patch["metadata"]["resourceVersion"], "7");
        let mut going = ours;
        going["metadata"]["deletionTimestamp"] = json!("2026-11-25T17:00:00Z");
        assert_eq!(removal(&work, &own, &owners, &going), Removal::Nothing);
    }

    /// A Work that only reports takes away the objects that it has applied before, and none that it has only looked at.
    #[test]
    fn reporter_deletes_what_was_applied() {
        let work: Work =
            from_value(json!({ "spec": { "applyStrategy": { "type": "ReportDiff" } } })).unwrap();
        let mut ours = object(&[(PLACED, "ours")]);
        let Removal::Release { patch } = removal(&work, &own(), &owners(), &ours) else {
            panic!("not released");
        };
        assert_eq!(patch["metadata"]["ownerReferences"], json!([]));
        ours["metadata"]["annotations"] = json!({ SPEC_HASH: "h" });
        let applied = removal(&work, &own(), &owners(), &ours);
        let uid = "u".to_owned();
        assert_eq!(applied, Removal::Delete { uid });
        let free = removal(&work, &own(), &owners(), &object(&[]));
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

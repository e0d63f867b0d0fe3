//! The actions of a `MemberCluster`. Its status has no field for them, and a fleet acts on its conditions: the one
//! action that there is, `TrafficControl`, is a condition of that type, which is there only while a Remedy requires it.

use jiff::Timestamp;
use karmada_api::condition::TRUE;
use karmada_api::{Cluster, ClusterSpec, ClusterStatus, TRAFFIC_CONTROL};
use kube::core::Object;
use objects::condition::{AnyCondition, find, retain_patch, transition, upsert_patch};
use objects::wanted::Wanted;
use objects::write::{Guard, ObjectRef, Write};
use serde_json::{Value, json};

use super::ActionChange;
use crate::ClusterKind;

/// A cluster as its API has it, of either kind.
pub type StoredCluster = Object<ClusterSpec, ClusterStatus>;

/// The reason of the condition.
const REASON: &str = "RemedyActionSet";

/// Returns an object of this `kind` as a `Cluster`, which has its actions apart from its conditions.
pub fn cluster_of(kind: ClusterKind, stored: StoredCluster) -> Cluster {
    let mut cluster = Cluster {
        metadata: stored.metadata,
        spec: stored.spec,
        status: stored.status,
    };
    if kind == ClusterKind::MemberCluster {
        take_actions(&mut cluster);
    }
    cluster
}

fn take_actions(cluster: &mut Cluster) {
    let Some(status) = &mut cluster.status else {
        return;
    };
    let Some(conditions) = &mut status.conditions else {
        return;
    };
    let action = find(conditions.iter(), TRAFFIC_CONTROL);
    let is_set = action.is_some_and(|action| action.status == TRUE);
    conditions.retain(|condition| condition.type_ != TRAFFIC_CONTROL);
    status.remedy_actions = is_set.then(|| vec![TRAFFIC_CONTROL.to_owned()]);
}

/// Returns the one of these changes that a `MemberCluster` can have: a Remedy may name actions that nobody knows.
pub fn member_change(changes: Vec<ActionChange>) -> Option<ActionChange> {
    let mut changes = changes.into_iter();
    changes.find(|change| change.action() == TRAFFIC_CONTROL)
}

/// Returns the write that makes `change` of the action of a `MemberCluster`, with its `conditions`, raw as the server stores
/// them. `time` becomes the transition time of one that is set.
pub fn member_write(
    object: ObjectRef,
    conditions: &[Value],
    change: &ActionChange,
    time: Timestamp,
) -> Write {
    let version = object.version.as_deref();
    let body = match change {
        ActionChange::Set { .. } => {
            let current = find(conditions, TRAFFIC_CONTROL);
            let condition = json!({
                "type": TRAFFIC_CONTROL,
                "status": TRUE,
                "reason": REASON,
                "message": change.to_string(),
                "lastTransitionTime": transition(current, TRUE, time),
            });
            upsert_patch(conditions, condition, version)
        }
        ActionChange::Cleared { .. } => {
            retain_patch(conditions, |one| one.kind() != TRAFFIC_CONTROL, version)
        }
    };
    // By this, and not by the conditions of others, it is known again where somebody undoes it.
    let wanted = Wanted {
        value: change.to_string().into(),
        paths: vec!["/status/conditions".to_owned()],
    };
    let write = Write::merge("remedy_actions", object, body);
    let write = write.of_status().guarded(Guard::Version);
    write.bringing(wanted)
}

#[cfg(test)]
mod tests {
    use fleet_api::MemberCluster;
    use serde_json::from_value;

    use super::*;
    use crate::remedy::Cause;

    fn joined() -> Value {
        json!({ "type": "Joined", "status": "True", "reason": "R", "lastTransitionTime": "2026-11-20T08:00:00.5Z" })
    }

    fn action(status: &str) -> Value {
        json!({ "type": TRAFFIC_CONTROL, "status": status, "lastTransitionTime": "2026-11-19T08:00:00Z" })
    }

    fn set(action: &str) -> ActionChange {
        ActionChange::Set {
            action: action.to_owned(),
            remedy: "maintenance".to_owned(),
            cause: Cause::Unconditional,
        }
    }

    fn cleared() -> ActionChange {
        ActionChange::Cleared {
            action: TRAFFIC_CONTROL.to_owned(),
        }
    }

    /// Returns the conditions that a change makes of these.
    fn conditions(change: &ActionChange, before: &[Value]) -> Value {
        let metadata = json!({ "name": "m1", "resourceVersion": "7" });
        let member: MemberCluster = from_value(json!({ "metadata": metadata })).unwrap();
        let object = ObjectRef::of(&member, &());
        let write = member_write(object, before, change, Timestamp::UNIX_EPOCH);
        let sent = write.guarded_body();
        assert_eq!(sent["metadata"]["resourceVersion"], "7");
        sent["status"]["conditions"].clone()
    }

    /// The action is a condition that names its Remedy, beside those of others as they are stored, and goes without a trace.
    #[test]
    fn action_is_a_condition() {
        let both = conditions(&set(TRAFFIC_CONTROL), &[joined()]);
        assert_eq!(both[0], joined());
        assert_eq!(
            both[1],
            json!({
                "type": TRAFFIC_CONTROL, "status": "True", "reason": REASON,
                "message": set(TRAFFIC_CONTROL).to_string(), "lastTransitionTime": "1970-01-01T00:00:00Z",
            })
        );
        let both = both.as_array().unwrap();
        assert_eq!(conditions(&cleared(), both), json!([joined()]));
        let again = conditions(&set(TRAFFIC_CONTROL), &[action("True")]);
        assert_eq!(again[0]["lastTransitionTime"], "2026-11-19T08:00:00Z");
        let changes = vec![set("Joined"), cleared()];
        assert_eq!(member_change(changes), Some(cleared()));
    }

    /// No Remedy can refer to the action as to a condition.
    #[test]
    fn actions_are_no_conditions() {
        for (present, actions) in [
            (None, &[][..]),
            (Some(action("True")), &[TRAFFIC_CONTROL]),
            (Some(action("False")), &[]),
            (Some(json!({ "type": TRAFFIC_CONTROL, "status": 7 })), &[]),
        ] {
            let conditions: Vec<_> = present.into_iter().chain([joined()]).collect();
            let status = json!({ "conditions": conditions });
            let stored = json!({ "metadata": { "name": "m1" }, "status": status });
            let cluster = cluster_of(ClusterKind::MemberCluster, from_value(stored).unwrap());
            assert_eq!(cluster.remedy_actions(), actions, "{conditions:?}");
            let types: Vec<_> = cluster.conditions().iter().map(|one| &*one.type_).collect();
            assert_eq!(types, ["Joined"]);
        }
    }
}

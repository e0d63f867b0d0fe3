//! The conditions of a template of a Deployment, for tools that wait for them by kstatus, as Helm and Flux do, or by `kubectl wait`.

use objects::{Metadata, group_kind};
use serde_json::{Map, Value, json};

use super::members::text;
use super::reflect::number;

/// Adds the conditions `Available` and `Progressing` to the `patch` of the status of `template`, by the counts that this will have. Others are
/// not touched, nor any that the patch has already. `now` is the time of those that change.
pub fn with_conditions(template: &Value, patch: Option<Value>, now: &Value) -> Option<Value> {
    if group_kind(template) != ("apps", "Deployment") {
        return patch;
    }
    let current = template.get("status").unwrap_or(&Value::Null);
    let mut body = patch.clone().unwrap_or_else(|| json!({ "status": {} }));
    let status = body.get_mut("status").and_then(Value::as_object_mut);
    let Some(status) = status.filter(|status| !status.contains_key("conditions")) else {
        return patch;
    };
    let list = current.get("conditions").and_then(Value::as_array);
    let list = list.map(Vec::as_slice).unwrap_or_default();
    let mut new = list.to_vec();
    for wanted in wanted(template, &Counts { current, status }) {
        set(&mut new, &wanted, now);
    }
    if new == list {
        return patch;
    }
    status.insert("conditions".to_owned(), new.into());
    Some(body)
}

/// The counts of a status and its patch.
struct Counts<'a> {
    current: &'a Value,
    status: &'a Map<String, Value>,
}

impl Counts<'_> {
    fn get(&self, name: &str) -> i64 {
        match self.status.get(name) {
            Some(count) => count.as_i64().unwrap_or_default(),
            None => number(Some(self.current), name),
        }
    }
}

/// A condition as it is to be.
struct Wanted {
    kind: &'static str,
    is_true: bool,
    reason: &'static str,
    message: String,
}

fn wanted(template: &Value, counts: &Counts<'_>) -> [Wanted; 2] {
    let desired = template.pointer("/spec/replicas").and_then(Value::as_i64);
    let [replicas, updated, available] =
        ["replicas", "updatedReplicas", "availableReplicas"].map(|name| counts.get(name));
    // Where each cluster has all replicas, there are more than the template says.
    let desired = desired.unwrap_or(1).max(replicas);
    let is_available = available >= desired - max_unavailable(template, desired);
    let is_seen = counts.get("observedGeneration") == template.generation().unwrap_or_default();
    let is_done = is_seen && updated >= desired && available >= updated;
    let shown = format!("{available} of {desired} replicas are available in all clusters");
    [
        Wanted {
            kind: "Available",
            is_true: is_available,
            reason: if is_available {
                "MinimumReplicasAvailable"
            } else {
                "MinimumReplicasUnavailable"
            },
            message: shown.clone(),
        },
        Wanted {
            kind: "Progressing",
            is_true: true,
            reason: if is_done {
                "NewReplicaSetAvailable"
            } else {
                "ReplicaSetUpdated"
            },
            message: format!("{updated} of {desired} replicas are updated, and {shown}"),
        },
    ]
}

/// Returns the number of replicas that may be unavailable during an update.
fn max_unavailable(template: &Value, replicas: i64) -> i64 {
    if template.pointer("/spec/strategy/type") == Some(&json!("Recreate")) {
        return 0;
    }
    let bound = template.pointer("/spec/strategy/rollingUpdate/maxUnavailable");
    let percent = match bound {
        Some(Value::Number(number)) => return number.as_i64().unwrap_or_default(),
        Some(Value::String(percent)) => percent.as_str(),
        _ => "25%",
    };
    let percent = percent.strip_suffix('%').and_then(|it| it.parse().ok());
    replicas.saturating_mul(percent.unwrap_or_default()) / 100
}

/// Puts a condition into the list. Its times change with status and reason.
fn set(list: &mut Vec<Value>, wanted: &Wanted, now: &Value) {
    let known = list
        .iter()
        .position(|one| text(one, "type") == Some(wanted.kind));
    let old = known.and_then(|place| list.get(place));
    let status = if wanted.is_true { "True" } else { "False" };
    let same_status = old.filter(|old| text(old, "status") == Some(status));
    let transition = same_status.and_then(|old| old.get("lastTransitionTime"));
    let same_reason = same_status.filter(|old| text(old, "reason") == Some(wanted.reason));
    let update = same_reason.and_then(|old| old.get("lastUpdateTime"));
    let new = json!({
        "type": wanted.kind,
        "status": status,
        "reason": wanted.reason,
        "message": wanted.message,
        "lastUpdateTime": update.unwrap_or(now),
        "lastTransitionTime": transition.unwrap_or(now),
    });
    match known.and_then(|place| list.get_mut(place)) {
        Some(place) => *place = new,
        None => list.push(new),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(status: &Value) -> Value {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": { "name": "web", "generation": 3 },
            "spec": { "replicas": 8 },
            "status": status,
        })
    }

    fn counts(updated: i64, available: i64, generation: i64) -> Value {
        json!({ "replicas": 8, "updatedReplicas": updated, "availableReplicas": available,
            "observedGeneration": generation })
    }

    /// Returns the status and the reason of each condition.
    fn shown(body: &Value) -> Vec<(&str, &str, &str)> {
        let list = body["status"]["conditions"].as_array().unwrap();
        let shown = list.iter().map(|one| {
            let fields = ["type", "status", "reason"];
            fields.map(|name| text(one, name).unwrap()).into()
        });
        shown.collect()
    }

    /// A rollout ends for kstatus once all replicas are updated, available, and of the newest generation.
    #[test]
    fn rollout_ends_when_all_is_seen() {
        let now = json!("2026-11-20T08:00:00Z");
        for (counts, available, reason) in [
            (counts(8, 8, 3), "True", "NewReplicaSetAvailable"),
            // A quarter may be unavailable.
            (counts(8, 6, 3), "True", "ReplicaSetUpdated"),
            (counts(8, 5, 3), "False", "ReplicaSetUpdated"),
            (counts(7, 8, 3), "True", "ReplicaSetUpdated"),
            (counts(8, 8, 2), "True", "ReplicaSetUpdated"),
        ] {
            let patch = json!({ "status": counts });
            let body = with_conditions(&template(&json!({})), Some(patch), &now).unwrap();
            let [(_, is_available, _), (_, progresses, why)] = shown(&body)[..] else {
                panic!("{body}");
            };
            assert_eq!((is_available, progresses, why), (available, "True", reason));
            // A change that the API has by now is no reason to write.
            let written = template(&body["status"]);
            assert_eq!(with_conditions(&written, None, &json!("later")), None);
        }
    }

    /// A condition keeps its time while it stays, and those of others stay.
    #[test]
    fn times_change_with_conditions() {
        let (before, after) = (json!("2026-11-20T08:00:00Z"), json!("2026-11-20T09:00:00Z"));
        let other = json!({ "type": "Other", "status": "True", "reason": "O" });
        let mut status = counts(8, 5, 3);
        status["conditions"] = json!([other]);
        let first = with_conditions(&template(&status), None, &before).unwrap();
        status["conditions"] = first["status"]["conditions"].clone();
        let patch = json!({ "status": { "availableReplicas": 7 } });
        let second = with_conditions(&template(&status), Some(patch), &after).unwrap();
        let list = &second["status"]["conditions"];
        assert_eq!(list[0], other);
        assert_eq!(
            (&list[1]["type"], &list[1]["status"]),
            (&json!("Available"), &json!("True"))
        );
        assert_eq!(list[1]["lastTransitionTime"], after);
        assert_eq!(list[2]["lastTransitionTime"], before);
        assert_eq!(list[2]["lastUpdateTime"], before);
    }

    /// Other kinds, and conditions that a script has put together, are as they were.
    #[test]
    fn others_stay_as_they_are() {
        let now = json!("2026-11-20T08:00:00Z");
        let own = json!({ "status": { "conditions": [] } });
        for patch in [own, json!({ "status": null })] {
            let kept = with_conditions(&template(&json!({})), Some(patch.clone()), &now);
            assert_eq!(kept, Some(patch));
        }
        let mut set = template(&json!({}));
        set["kind"] = "StatefulSet".into();
        assert_eq!(with_conditions(&set, None, &now), None);
    }
}

//! The status of a template as a script has put it together.

use objects::group_kind;
use serde_json::{Map, Value, json};

use super::aggregate::is_same;
use super::times::Timed;

/// Returns the merge patch (RFC 7396) by which the status of `template` becomes `status`, and `None` if it is that,
/// times aside, or the script has left it open.
pub fn scripted_status(template: &Value, status: Timed) -> Option<Value> {
    let current = template.get("status").unwrap_or(&Value::Null);
    let wanted = status.unless_only_times_differ_from(current);
    let is_that = if leaves_out_zeros(template) {
        is_same(Some(current), &wanted)
    } else {
        wanted == *current
    };
    if is_that || !wanted.is_object() {
        return None;
    }
    Some(json!({ "status": difference(current, &wanted) }))
}

/// Returns `true` for Kubernetes' own kinds: their APIs keep no zeros and nothing that is empty, however often a script
/// asks for them.
fn leaves_out_zeros(template: &Value) -> bool {
    !group_kind(template).0.contains('.')
}

/// Returns the merge patch that leads from one value to another.
fn difference(from: &Value, to: &Value) -> Value {
    let (Value::Object(from), Value::Object(to)) = (from, to) else {
        return to.clone();
    };
    let gone = from.keys().filter(|name| !to.contains_key(*name));
    let mut patch: Map<String, Value> = gone.map(|name| (name.clone(), Value::Null)).collect();
    for (name, value) in to {
        match from.get(name) {
            Some(same) if same == value => {}
            Some(other) => drop(patch.insert(name.clone(), difference(other, value))),
            None => drop(patch.insert(name.clone(), value.clone())),
        }
    }
    Value::Object(patch)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The patch leads to the whole status, without the fields that have left it.
    #[test]
    fn status_becomes_the_scripts() {
        let template = json!({ "status": { "a": 1, "b": { "c": 1, "d": 2 }, "gone": 1 } });
        let wanted = json!({ "a": 1, "b": { "c": 3 }, "new": [1] });
        let patch = scripted_status(&template, wanted.clone().into()).unwrap();
        let expected = json!({ "b": { "c": 3, "d": null }, "new": [1], "gone": null });
        assert_eq!(patch, json!({ "status": expected }));
        let mut patched = template;
        json_patch::merge(&mut patched, &patch);
        assert_eq!(patched["status"], wanted);
        assert_eq!(scripted_status(&patched, wanted.into()), None);
    }

    /// Fields that an API leaves out are not asked for again; that of a definition keeps them.
    #[test]
    fn left_out_zeros_are_there() {
        let status = json!({ "readyReplicas": 0, "phase": "", "conditions": [] });
        let deployment = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "status": {} });
        assert_eq!(scripted_status(&deployment, status.clone().into()), None);
        let ready = json!({ "apiVersion": "apps/v1", "status": { "readyReplicas": 1 } });
        assert!(scripted_status(&ready, status.clone().into()).is_some());
        let shirt = json!({ "apiVersion": "example.com/v1", "kind": "Shirt", "status": {} });
        let patch = scripted_status(&shirt, status.clone().into());
        assert_eq!(patch, Some(json!({ "status": status })));
    }

    /// A script that leaves the status open leaves it as it is.
    #[test]
    fn open_status_stays() {
        let template = json!({ "status": { "a": 1 } });
        assert_eq!(scripted_status(&template, Value::Null.into()), None);
        let fresh = json!({});
        let patch = scripted_status(&fresh, json!({ "a": 1 }).into());
        assert_eq!(patch, Some(json!({ "status": { "a": 1 } })));
    }
}

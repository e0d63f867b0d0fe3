//! The specs of overrides and of their snapshots.

use serde_json::{Value, json};

use super::amendments::{Amendment, amended, at, first_of, one_of, rules, selection_scope};
use crate::overrides::{OverrideSnapshotSpec, OverrideSpec};
use objects::schema::structural;

const OF_CLUSTER: &str = "clusterResourceSelectors";
const OF_NAMESPACE: &str = "resourceSelectors";

/// Returns the spec of a cluster-scoped override.
pub(super) fn cluster_scoped() -> Value {
    let is_cluster = "!has(self.placement) || self.placement.scope == 'Cluster'";
    let message = "clusterResourceOverride placement reference cannot be Namespaced scope";
    let own = [
        at("", rules(&[IMMUTABLE_PLACEMENT, (is_cluster, message)])),
        (
            format!("{OF_CLUSTER}[]"),
            json!({ "required": ["group", "kind", "version"] }),
        ),
        (format!("{OF_CLUSTER}[].selectionScope"), selection_scope()),
    ];
    spec(OF_CLUSTER, OF_NAMESPACE, &own)
}

/// Returns the spec of a namespaced override.
pub(super) fn namespaced() -> Value {
    let own = [
        at("", rules(&[IMMUTABLE_PLACEMENT])),
        (
            format!("{OF_NAMESPACE}[]"),
            json!({ "required": ["group", "kind", "name", "version"] }),
        ),
    ];
    spec(OF_NAMESPACE, OF_CLUSTER, &own)
}

/// Returns the spec of the snapshot of an override that has this one.
pub(super) fn snapshot(spec: Value) -> Value {
    let mut snapshot = structural::<OverrideSnapshotSpec>();
    snapshot["required"] = json!(["overrideHash", "overrideSpec"]);
    snapshot["properties"]["overrideSpec"] = spec;
    snapshot
}

const IMMUTABLE_PLACEMENT: (&str, &str) = (
    "has(self.placement) == has(oldSelf.placement) && (!has(self.placement) || self.placement == oldSelf.placement)",
    "The placement field is immutable",
);

/// Returns the spec of an override that has these selectors, and not the others.
fn spec(selectors: &str, others: &str, own: &[Amendment]) -> Value {
    let mut spec = structural::<OverrideSpec>();
    if let Some(fields) = spec["properties"].as_object_mut() {
        fields.remove(others);
    }
    let bounds = json!({ "minItems": 1, "maxItems": 20 });
    let rules = "policy.overrideRules";
    let patches = format!("{rules}[].jsonPatchOverrides");
    let terms = format!("{rules}[].clusterSelector.clusterSelectorTerms");
    let common = [
        at("", json!({ "required": ["policy", selectors] })),
        at(selectors, bounds.clone()),
        at("placement", json!({ "required": ["name"] })),
        at("placement.scope", first_of(&["Cluster", "Namespaced"])),
        at("policy", json!({ "required": ["overrideRules"] })),
        at(rules, bounds.clone()),
        (
            format!("{rules}[].overrideType"),
            first_of(&["JSONPatch", "Delete"]),
        ),
        (terms, json!({ "maxItems": 10 })),
        (patches.clone(), bounds),
        (
            format!("{patches}[]"),
            json!({ "required": ["op", "path"] }),
        ),
        (
            format!("{patches}[].op"),
            one_of(&["add", "remove", "replace"]),
        ),
    ];
    amended(amended(spec, &common), own)
}

//! The definitions of these kinds, as KubeFleet installs them: v1beta1 is stored, and most are served as v1, too.

mod amendments;
mod columns;
mod definition;
mod members;
mod overrides;
mod update;

use kube::Resource;
use serde_json::{Value, json};

use super::binding::{BindingSpec, BindingStatus};
use super::envelope::EnvelopeContent;
use super::eviction::{BudgetSpec, EvictionSpec, EvictionStatus};
use super::placement::{PlacementSpec, PlacementStatus};
use super::snapshot::{PolicySnapshotSpec, PolicySnapshotStatus, ResourceSnapshotSpec};
use super::work::{AppliedWorkSpec, AppliedWorkStatus, WorkSpec, WorkStatus};
use super::{
    AppliedWork, Binding, ClusterResourceEnvelope, ClusterResourceOverride,
    ClusterResourceOverrideSnapshot, ClusterResourcePlacementDisruptionBudget,
    ClusterResourcePlacementEviction, ClusterResourcePlacementStatus, Placement, PolicySnapshot,
    ResourceEnvelope, ResourceOverride, ResourceOverrideSnapshot, ResourceSnapshot, Work,
};
use amendments::{
    Amendment, amended, apply_strategy, at, first_of, immutable, one_of, rules, selection_scope,
};
use definition::{Definition, definition};
use objects::Scope;
use objects::schema::{age_column, structural};

/// Returns the definitions.
pub fn definitions() -> Vec<Value> {
    [
        of_placements(Scope::Cluster),
        of_works(),
        of_placements(Scope::Namespaced),
        members::definitions(),
        of_envelopes(),
        of_evictions(),
        of_overrides(),
        update::definitions(),
        vec![status_copy()],
    ]
    .concat()
}

/// Returns the definitions of placements of a scope, and of the objects that are made of them there.
fn of_placements(scope: Scope) -> Vec<Value> {
    let short_names = match scope {
        Scope::Cluster => ["crp", "csps", "crs", "crb"],
        Scope::Namespaced => ["rp", "sps", "rs", "rb"],
    };
    let [of_placements, of_policies, of_resources, of_bindings] = short_names;
    vec![
        Definition {
            short_names: json!([of_placements]),
            spec: placement(scope),
            status: Some(placement_status()),
            columns: columns::of_placements(scope),
        }
        .of_scope::<Placement>(scope),
        Definition {
            short_names: json!([of_policies]),
            spec: policy_snapshot(),
            status: Some(policy_snapshot_status()),
            columns: vec![columns::generation(), age_column()],
        }
        .of_scope::<PolicySnapshot>(scope),
        Definition {
            short_names: json!([of_resources]),
            spec: immutable(structural::<ResourceSnapshotSpec>()),
            status: None,
            columns: vec![columns::generation(), age_column()],
        }
        .of_scope::<ResourceSnapshot>(scope),
        Definition {
            short_names: json!([of_bindings]),
            spec: amended(
                structural::<BindingSpec>(),
                &apply_strategy("applyStrategy"),
            ),
            status: Some(structural::<BindingStatus>()),
            columns: columns::of_bindings(),
        }
        .of_scope::<Binding>(scope),
    ]
}

fn of_works() -> Vec<Value> {
    vec![
        Definition {
            short_names: json!([]),
            spec: amended(structural::<WorkSpec>(), &apply_strategy("applyStrategy")),
            status: Some(structural::<WorkStatus>()),
            columns: vec![age_column()],
        }
        .of::<Work>(Scope::Namespaced),
        Definition {
            short_names: json!([]),
            spec: structural::<AppliedWorkSpec>(),
            status: Some(structural::<AppliedWorkStatus>()),
            columns: vec![age_column()],
        }
        .of::<AppliedWork>(Scope::Cluster),
    ]
}

fn of_envelopes() -> Vec<Value> {
    vec![
        envelope::<ClusterResourceEnvelope>(Scope::Cluster),
        envelope::<ResourceEnvelope>(Scope::Namespaced),
    ]
}

fn of_evictions() -> Vec<Value> {
    vec![
        Definition {
            short_names: json!(["crpe"]),
            spec: eviction(),
            status: Some(structural::<EvictionStatus>()),
            columns: columns::of_evictions(),
        }
        .of::<ClusterResourcePlacementEviction>(Scope::Cluster),
        Definition {
            short_names: json!(["crpdb"]),
            spec: budget(),
            status: None,
            columns: vec![age_column()],
        }
        .of::<ClusterResourcePlacementDisruptionBudget>(Scope::Cluster),
    ]
}

fn of_overrides() -> Vec<Value> {
    vec![
        of_override::<ClusterResourceOverride>(Scope::Cluster, overrides::cluster_scoped()),
        of_override::<ResourceOverride>(Scope::Namespaced, overrides::namespaced()),
        snapshot_of::<ClusterResourceOverrideSnapshot>(Scope::Cluster, overrides::cluster_scoped()),
        snapshot_of::<ResourceOverrideSnapshot>(Scope::Namespaced, overrides::namespaced()),
    ]
}

fn of_override<K: Resource<DynamicType = ()>>(scope: Scope, spec: Value) -> Value {
    Definition {
        short_names: json!([]),
        spec,
        status: None,
        columns: vec![age_column()],
    }
    .of::<K>(scope)
}

/// Returns the definition of the snapshots of an override with this spec.
fn snapshot_of<K: Resource<DynamicType = ()>>(scope: Scope, spec: Value) -> Value {
    Definition {
        short_names: json!([]),
        spec: immutable(overrides::snapshot(spec)),
        status: None,
        columns: vec![columns::generation(), age_column()],
    }
    .of::<K>(scope)
}

/// Returns the definition of an envelope, which KubeFleet has in one version.
fn envelope<K: Resource<DynamicType = ()>>(scope: Scope) -> Value {
    let mut content = structural::<EnvelopeContent>();
    content["required"] = json!(["data"]);
    let bounds = json!({ "minProperties": 1, "maxProperties": 50 });
    let version = json!({
        "name": "v1beta1", "served": true, "storage": true,
        "schema": { "openAPIV3Schema": amended(content, &[at("data", bounds)]) },
    });
    definition::<K>((&(), scope), &json!([]), &json!([version]))
}

/// Returns the definition of the copies of placements' statuses, which KubeFleet has in one version.
fn status_copy() -> Value {
    let time = json!({ "type": "string", "format": "date-time" });
    let version = json!({
        "name": "v1beta1", "served": true, "storage": true,
        "additionalPrinterColumns": columns::of_status_copies(),
        "schema": { "openAPIV3Schema": {
            "type": "object", "required": ["lastUpdatedTime", "sourceStatus"],
            "properties": { "lastUpdatedTime": time, "sourceStatus": placement_status() } } },
    });
    let scope = Scope::Namespaced;
    definition::<ClusterResourcePlacementStatus>((&(), scope), &json!(["crps"]), &json!([version]))
}

/// Returns the rules of a policy, that of a placement or of a snapshot.
fn policy() -> Vec<Amendment> {
    const AFFINITY: &str = "policy.affinity.clusterAffinity";
    let required =
        format!("{AFFINITY}.requiredDuringSchedulingIgnoredDuringExecution.clusterSelectorTerms");
    let preferred = format!("{AFFINITY}.preferredDuringSchedulingIgnoredDuringExecution");
    let mut amendments = vec![
        at(
            "policy.placementType",
            first_of(&["PickAll", "PickN", "PickFixed"]),
        ),
        at("policy.clusterNames", json!({ "maxItems": 100 })),
        at("policy.clusterNames[]", json!({ "maxLength": 63 })),
        at("policy.numberOfClusters", json!({ "minimum": 0 })),
        (required.clone(), json!({ "maxItems": 10 })),
        (
            format!("{preferred}[].weight"),
            json!({ "minimum": -100, "maximum": 100 }),
        ),
        at(
            "policy.topologySpreadConstraints[]",
            json!({ "required": ["topologyKey"] }),
        ),
        at(
            "policy.topologySpreadConstraints[].maxSkew",
            json!({ "minimum": 1, "default": 1 }),
        ),
        at(
            "policy.topologySpreadConstraints[].whenUnsatisfiable",
            one_of(&["DoNotSchedule", "ScheduleAnyway"]),
        ),
        at("policy.tolerations", json!({ "maxItems": 100 })),
        at(
            "policy.tolerations[].operator",
            first_of(&["Equal", "Exists"]),
        ),
        at("policy.tolerations[].effect", one_of(&["NoSchedule"])),
    ];
    for term in [format!("{required}[]"), format!("{preferred}[].preference")] {
        let expressions = format!("{term}.propertySelector.matchExpressions[]");
        let operators = one_of(&["Gt", "Ge", "Eq", "Ne", "Lt", "Le"]);
        amendments.extend([
            (
                expressions.clone(),
                json!({ "required": ["name", "operator", "values"] }),
            ),
            (format!("{expressions}.operator"), operators),
            (
                format!("{expressions}.values"),
                json!({ "minItems": 1, "maxItems": 1 }),
            ),
            (
                format!("{term}.propertySorter.sortOrder"),
                one_of(&["Descending", "Ascending"]),
            ),
        ]);
    }
    amendments
}

/// Returns the rules of the strategy of a placement.
fn strategy() -> Vec<Amendment> {
    let bound = json!({ "x-kubernetes-int-or-string": true, "default": "25%",
        "pattern": "^((100|[0-9]{1,2})%|[0-9]+)$" });
    let mut amendments = vec![
        at("strategy.type", first_of(&["RollingUpdate", "External"])),
        at("strategy.rollingUpdate.maxUnavailable", bound.clone()),
        at("strategy.rollingUpdate.maxSurge", bound),
        at(
            "strategy.rollingUpdate.unavailablePeriodSeconds",
            json!({ "minimum": 0, "default": 60 }),
        ),
        at(
            "strategy.deleteStrategy.propagationPolicy",
            first_of(&["Delete", "Abandon"]),
        ),
        at(
            "strategy.reportBackStrategy.type",
            first_of(&["Disabled", "Mirror"]),
        ),
    ];
    amendments.extend(apply_strategy("strategy.applyStrategy"));
    amendments
}

/// Returns the rule that other selectors select in one namespace at most, which is named.
fn one_namespace() -> Amendment {
    let of_namespaces = "s.group == '' && s.kind == 'Namespace'";
    let chooses = format!(
        "{of_namespaces} && has(s.selectionScope) && s.selectionScope == 'NamespaceWithResourceSelectors'"
    );
    let chosen_once = format!("self.filter(s, {chooses}).size() <= 1");
    let is_named = format!("self.all(s, !({chooses}) || (has(s.name) && s.name != ''))");
    let is_one =
        format!("!self.exists(s, {chooses}) || self.filter(s, {of_namespaces}).size() == 1");
    at(
        "resourceSelectors",
        rules(&[
            (
                &chosen_once,
                "only one namespace selector with NamespaceWithResourceSelectors mode is allowed",
            ),
            (
                &is_named,
                "namespace selector with NamespaceWithResourceSelectors mode must select by name",
            ),
            (
                &is_one,
                "when using NamespaceWithResourceSelectors mode, only one namespace selector is allowed",
            ),
        ]),
    )
}

/// Returns the rules of a placement of this scope as a whole.
fn of_whole_placement(scope: Scope) -> Amendment {
    let [was_external, is_external] = ["oldSelf", "self"].map(|object| {
        format!(
            "has({object}.strategy) && has({object}.strategy.type) && {object}.strategy.type == 'External'"
        )
    });
    let stays_external = format!("!({was_external}) || ({is_external})");
    let mut all: Vec<(&str, &str)> = vec![
        (
            "!(has(oldSelf.policy) && !has(self.policy))",
            "policy cannot be removed once set",
        ),
        (
            stays_external.as_str(),
            "cannot change rollout strategy type from 'External' to other types",
        ),
    ];
    if scope == Scope::Cluster {
        all.push((
            "!(has(self.statusReportingScope) && self.statusReportingScope == 'NamespaceAccessible') \
             || self.resourceSelectors.filter(s, s.kind == 'Namespace').size() == 1",
            "when statusReportingScope is NamespaceAccessible, exactly one resourceSelector with kind 'Namespace' is required",
        ));
    }
    at("", rules(&all))
}

fn placement(scope: Scope) -> Value {
    let selector = "!(has(self.name) && has(self.labelSelector))";
    let placement_type = "self.placementType == oldSelf.placementType";
    let mut amendments = policy();
    amendments.extend(strategy());
    amendments.extend([
        of_whole_placement(scope),
        at("", json!({ "required": ["resourceSelectors"] })),
        at(
            "resourceSelectors",
            json!({ "minItems": 1, "maxItems": 100 }),
        ),
        one_namespace(),
        at(
            "resourceSelectors[]",
            json!({ "required": ["group", "kind", "version"] }),
        ),
        at(
            "resourceSelectors[]",
            rules(&[(selector, "labelSelector and name are mutually exclusive")]),
        ),
        at("resourceSelectors[].selectionScope", selection_scope()),
        at(
            "policy",
            rules(&[(placement_type, "placement type is immutable")]),
        ),
        at(
            "revisionHistoryLimit",
            json!({ "minimum": 1, "maximum": 1000, "default": 10 }),
        ),
        at(
            "statusReportingScope",
            first_of(&["ClusterScopeOnly", "NamespaceAccessible"]),
        ),
    ]);
    if scope == Scope::Cluster {
        let immutable = ("self == oldSelf", "statusReportingScope is immutable");
        amendments.push(at("statusReportingScope", rules(&[immutable])));
    }
    amended(structural::<PlacementSpec>(), &amendments)
}

fn placement_status() -> Value {
    let lists = ["failedPlacements", "driftedPlacements", "diffedPlacements"];
    let bounds = lists.map(|list| {
        (
            format!("placementStatuses[].{list}"),
            json!({ "maxItems": 100 }),
        )
    });
    amended(structural::<PlacementStatus>(), &bounds)
}

fn policy_snapshot() -> Value {
    immutable(amended(structural::<PolicySnapshotSpec>(), &policy()))
}

fn policy_snapshot_status() -> Value {
    let bound = at("targetClusters", json!({ "maxItems": 1000 }));
    amended(structural::<PolicySnapshotStatus>(), &[bound])
}

fn eviction() -> Value {
    let immutable = |field: &str, message: &str| {
        let mut bounds = rules(&[("self == oldSelf", message)]);
        bounds["maxLength"] = 255.into();
        at(field, bounds)
    };
    let amendments = [
        at("", json!({ "required": ["placementName", "clusterName"] })),
        immutable("placementName", "The PlacementName field is immutable"),
        immutable("clusterName", "The ClusterName field is immutable"),
    ];
    amended(structural::<EvictionSpec>(), &amendments)
}

fn budget() -> Value {
    let number = "type(self) == string ? self.matches('^(100|[0-9]{1,2})%$') : self >= 0";
    let mut of_number = rules(&[(number, "must be a number, or a percentage such as 25%")]);
    of_number["x-kubernetes-int-or-string"] = true.into();
    let one = "!(has(self.maxUnavailable) && has(self.minAvailable))";
    let one = rules(&[(
        one,
        "Both MaxUnavailable and MinAvailable cannot be specified",
    )]);
    let amendments = [
        at("", one),
        at("maxUnavailable", of_number.clone()),
        at("minAvailable", of_number),
    ];
    amended(structural::<BudgetSpec>(), &amendments)
}

mod recorded;
mod refused;
mod staleness;

use fleet_api::overrides::{OverriddenPlacement, OverrideSpec};
use fleet_api::placement::ResourceIdentifier;
use fleet_api::{
    ClusterResourceOverrideSnapshot, MemberCluster, Placement, ResourceOverrideSnapshot,
    ResourceSnapshot,
};
use objects::Key;
use serde_json::{Value, from_value, json};

use super::*;
use crate::envelope::Opening;
use crate::hash::of_names;
use crate::select::identifier;

fn cluster(name: &str, labels: &Value) -> MemberCluster {
    from_value(json!({ "metadata": { "name": name, "labels": labels } })).unwrap()
}

/// Returns a snapshot of a cluster-scoped override of the namespace `shop` and the role `reader`.
fn of_cluster(name: &str, spec: &Value) -> ClusterResourceOverrideSnapshot {
    let mut spec = spec.clone();
    spec["clusterResourceSelectors"] = json!([
        { "group": "", "version": "v1", "kind": "Namespace", "name": "shop" },
        { "group": "rbac.authorization.k8s.io", "version": "v1", "kind": "ClusterRole", "name": "reader" },
    ]);
    from_value(json!({
        "metadata": { "name": format!("{name}-0"),
            "labels": { "kubernetes-fleet.io/parent-resource-override": name } },
        "spec": { "overrideSpec": spec },
    }))
    .unwrap()
}

/// Returns a snapshot of an override of the map `settings` in the namespace `shop`.
fn of_namespace(name: &str, spec: &Value) -> ResourceOverrideSnapshot {
    let mut spec = spec.clone();
    spec["resourceSelectors"] =
        json!([{ "group": "", "version": "v1", "kind": "ConfigMap", "name": "settings" }]);
    from_value(json!({
        "metadata": { "namespace": "shop", "name": format!("{name}-0"),
            "labels": { "kubernetes-fleet.io/parent-resource-override": name } },
        "spec": { "overrideSpec": spec },
    }))
    .unwrap()
}

/// Returns a spec with one rule, for every cluster.
fn everywhere(patches: &Value) -> Value {
    rules(
        &json!([{ "clusterSelector": { "clusterSelectorTerms": [] }, "jsonPatchOverrides": patches }]),
    )
}

fn rules(rules: &Value) -> Value {
    json!({ "policy": { "overrideRules": rules } })
}

fn set(path: &str, value: &Value) -> Value {
    json!([{ "op": "add", "path": path, "value": value }])
}

fn map(namespace: &str, name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": name, "namespace": namespace }, "data": { "a": "hub", "b": "hub" } })
}

fn role(name: &str) -> Value {
    json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": { "name": name } })
}

/// Returns the data of the map `settings` of `shop` in a cluster of these labels.
fn data(overrides: &[SnapshotView<'_>], labels: &Value) -> Result<Value, String> {
    let cluster = cluster("m1", labels);
    let manifest = overridden(map("shop", "settings"), overrides, &cluster)?;
    Ok(manifest.map_or(Value::Null, |manifest| manifest["data"].clone()))
}

/// Case F36: a namespaced override is about the objects that it names, a cluster-scoped one also about all that is in a
/// namespace that it names.
#[test]
fn names_and_namespaces_select() {
    let spec = everywhere(&set("/data", &json!({})));
    let (of_cluster, of_namespace) = (of_cluster("a", &spec), of_namespace("a", &spec));
    let namespace =
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "shop" } });
    let mut other_version = map("shop", "settings");
    other_version["apiVersion"] = json!("v2");
    for (object, expected) in [
        (namespace, [true, false]),
        (map("shop", "settings"), [true, true]),
        (map("shop", "other"), [true, false]),
        (map("else", "settings"), [false, false]),
        (other_version, [true, true]),
        (role("reader"), [true, false]),
        (role("settings"), [false, false]),
    ] {
        let selects = [
            SnapshotView::of(&of_cluster),
            SnapshotView::of(&of_namespace),
        ];
        let selects = selects.map(|one| one.selects(&identifier(&object)));
        assert_eq!(selects, expected, "{object}");
    }
}

fn term(value: &str) -> Value {
    json!({ "labelSelector": { "matchLabels": { "env": value } } })
}

/// Case F36: a rule without a selector is for no cluster, one without terms for all, and any one term is enough; one
/// without labels is for none, as KubeFleet has it.
#[test]
fn any_term_selects_a_cluster() {
    for (selector, expected) in [
        (json!(null), ["hub", "hub"]),
        (json!({}), ["own", "own"]),
        (json!({ "clusterSelectorTerms": [] }), ["own", "own"]),
        (
            json!({ "clusterSelectorTerms": [term("test")] }),
            ["own", "hub"],
        ),
        (
            json!({ "clusterSelectorTerms": [term("x"), term("prod")] }),
            ["hub", "own"],
        ),
        (
            json!({ "clusterSelectorTerms": [term("x")] }),
            ["hub", "hub"],
        ),
        (json!({ "clusterSelectorTerms": [{}] }), ["hub", "hub"]),
        (
            json!({ "clusterSelectorTerms": [{ "labelSelector": {} }] }),
            ["own", "own"],
        ),
    ] {
        let spec = rules(&json!([{ "clusterSelector": selector,
            "jsonPatchOverrides": set("/data/a", &json!("own")) }]));
        let snapshot = of_namespace("a", &spec);
        let got = ["test", "prod"].map(|env| {
            let data = data(&[SnapshotView::of(&snapshot)], &json!({ "env": env })).unwrap();
            data["a"].as_str().unwrap().to_owned()
        });
        assert_eq!(got, expected, "{selector}");
    }
}

/// Case F36: rules are applied in their order; `Delete` is the end.
#[test]
fn rules_have_their_order() {
    let all = json!({ "clusterSelectorTerms": [] });
    let rule = |value: &str| json!({ "clusterSelector": all, "jsonPatchOverrides": set("/data/a", &json!(value)) });
    let delete = json!({ "clusterSelector": all, "overrideType": "Delete" });
    let twice = of_namespace("a", &rules(&json!([rule("first"), rule("second")])));
    let result = data(&[SnapshotView::of(&twice)], &json!({})).unwrap();
    assert_eq!(result, json!({ "a": "second", "b": "hub" }));
    let gone = of_namespace("a", &rules(&json!([rule("first"), delete, rule("last")])));
    assert_eq!(
        data(&[SnapshotView::of(&gone)], &json!({})).unwrap(),
        Value::Null
    );
}

/// Case F36: a place in a list may be counted from its end, as in KubeFleet: -1 is the last, and where something is added the
/// place after that.
#[test]
fn places_count_from_the_end() {
    for (operator, path, expected) in [
        ("replace", "/data/list/-1", Some(json!(["a", "b", "x"]))),
        ("replace", "/data/list/-3", Some(json!(["x", "b", "c"]))),
        ("add", "/data/list/-1", Some(json!(["a", "b", "c", "x"]))),
        ("add", "/data/list/-4", Some(json!(["x", "a", "b", "c"]))),
        ("remove", "/data/list/-2", Some(json!(["a", "c"]))),
        ("replace", "/data/list/-4", None),
        ("add", "/data/list/-5", None),
    ] {
        let mut patch = json!({ "op": operator, "path": path });
        if operator != "remove" {
            patch["value"] = json!("x");
        }
        let list = json!([
            { "op": "add", "path": "/data", "value": { "list": ["a", "b", "c"], "-1": [[]] } },
            patch,
            { "op": "add", "path": "/data/-1/-1/-1", "value": "inner" },
        ]);
        let snapshot = of_namespace("a", &everywhere(&list));
        let made = data(&[SnapshotView::of(&snapshot)], &json!({})).ok();
        let expected = expected.map(|list| json!({ "list": list, "-1": [["inner"]] }));
        assert_eq!(made, expected, "{operator} {path}");
    }
}

/// Case F36: values name their cluster and its labels, in texts and keys at any depth.
#[test]
fn variables_stand_for_the_cluster() {
    let value = json!({
        "name": "${MEMBER-CLUSTER-NAME}-${MEMBER-CLUSTER-LABEL-KEY-topology.io/region}",
        "${MEMBER-CLUSTER-NAME}": ["x", "${MEMBER-CLUSTER-LABEL-KEY-topology.io/region}!", 1],
        "other": "${HOME}",
    });
    let snapshot = of_namespace("a", &everywhere(&set("/data", &value)));
    let data = data(
        &[SnapshotView::of(&snapshot)],
        &json!({ "topology.io/region": "east" }),
    )
    .unwrap();
    let expected = json!({ "name": "m1-east", "m1": ["x", "east!", 1], "other": "${HOME}" });
    assert_eq!(data, expected);
}

/// Case F36: a failure is told with the override, its rule, the path and the cluster.
#[test]
fn failures_are_named() {
    for (patches, reason) in [
        (
            json!([{ "op": "replace", "path": "/data/c/d", "value": 1 }]),
            "replace /data/c/d: the object has no such place",
        ),
        (
            json!([{ "op": "remove", "path": "/data/c" }]),
            "remove /data/c: the object has no such place",
        ),
        (
            set("/data/a", &json!("${MEMBER-CLUSTER-LABEL-KEY-region}")),
            "add /data/a: the cluster has no label region",
        ),
        (
            set("/data/a", &json!("${MEMBER-CLUSTER-LABEL-KEY-region")),
            "add /data/a: ${MEMBER-CLUSTER-LABEL-KEY-region has no closing brace",
        ),
        (
            json!([{ "op": "move", "path": "/data/a" }]),
            "move /data/a: `move` is no operator that is known",
        ),
        (
            set("/metadata/name", &json!("other")),
            "add /metadata/name: apiVersion, kind, status and metadata cannot be changed, but labels and annotations",
        ),
    ] {
        let snapshot = of_namespace("a", &everywhere(&patches));
        let failure = data(&[SnapshotView::of(&snapshot)], &json!({})).unwrap_err();
        let prefix = "rule 1 of ResourceOverride shop/a cannot be applied to ConfigMap shop/settings for m1: ";
        assert_eq!(failure, format!("{prefix}{reason}"));
    }
}

/// The override of a namespace leaves the grants of a Role and its bindings, as the API does where its author has less.
#[test]
fn overrides_grant_nothing() {
    let role = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": { "name": "reader", "namespace": "shop" }, "rules": [] });
    let spec = everywhere(&set("/rules", &json!([{ "verbs": ["*"] }])));
    let selector = json!([{ "group": "rbac.authorization.k8s.io", "version": "v1", "kind": "Role", "name": "reader" }]);
    let mut own = of_namespace("a", &spec);
    own.spec.override_spec.resource_selectors = from_value(selector).unwrap();
    let cluster = cluster("m1", &json!({}));
    let refused = overridden(role.clone(), &[SnapshotView::of(&own)], &cluster).unwrap_err();
    assert_eq!(
        refused,
        "rule 1 of ResourceOverride shop/a cannot be applied to Role shop/reader for m1: it would change `rules`, and so grant rights that its author need not have"
    );
    let of_fleet = of_cluster("a", &spec);
    let applied = overridden(role.clone(), &[SnapshotView::of(&of_fleet)], &cluster);
    assert_ne!(applied.unwrap().unwrap()["rules"], role["rules"]);
}

/// Case F36: the objects in an envelope are selected, and not the envelope.
#[test]
fn envelopes_are_looked_into() {
    let envelope = json!({ "apiVersion": "placement.kubernetes-fleet.io/v1beta1", "kind": "ResourceEnvelope",
        "metadata": { "name": "wrapped", "namespace": "shop" },
        "data": { "map": map("shop", "settings") } });
    let selected: ResourceSnapshot =
        from_value(json!({ "spec": { "selectedResources": [envelope] } })).unwrap();
    let snapshot = of_namespace("a", &everywhere(&set("/data", &json!({}))));
    let cluster = cluster("m1", &json!({}));
    let objects = contents(&[selected], Opening { config_maps: false });
    let overrides = placed(&[SnapshotView::of(&snapshot)], &objects, &cluster);
    assert_ne!(overrides, Applicable::default());
}

/// Returns the overrides of the placement `crp` of these objects for a cluster.
fn placed(
    latest: &[SnapshotView<'_>],
    objects: &[ResourceIdentifier],
    cluster: &MemberCluster,
) -> Applicable {
    let placement = placement();
    let clusters = [cluster];
    let overrides = Overrides::of(&OverridesFacts {
        placement: &placement,
        latest,
        listed: &[],
        objects,
        clusters: &clusters,
    });
    let binding = from_value(json!({ "spec": { "targetCluster": "m1" } })).unwrap();
    overrides.applicable(&binding).unwrap().clone()
}

fn placement() -> Placement {
    from_value(json!({ "metadata": { "name": "crp" } })).unwrap()
}

/// Case F36: overrides are applied by the names of their snapshots, as in KubeFleet: `web-1-0` is before `web-3`, though `web`
/// is before `web-1`. The Works carry the hash of the names in this order.
#[test]
fn snapshots_are_applied_by_name() {
    let [mut web, web_1] = ["web", "web-1"].map(|name| {
        let annotate = set("/metadata/annotations", &json!({ "by": name }));
        of_cluster(name, &everywhere(&annotate))
    });
    web.metadata.name = Some("web-3".to_owned());
    let (latest, cluster) = (
        [SnapshotView::of(&web), SnapshotView::of(&web_1)],
        cluster("m1", &json!({})),
    );
    let applicable = placed(&latest, &[identifier(&role("reader"))], &cluster);
    assert_eq!(applicable.cluster_scoped, ["web-1-0", "web-3"]);
    let hash = of_names(Some(&applicable.cluster_scoped[..])).unwrap();
    let expected = "978d7ca0018caeffb7c021c08dcc6bbb4c425ac771c82db73bd42429d72049ec";
    assert_eq!(hash, expected);
    let made = overridden(role("reader"), &[latest[1], latest[0]], &cluster);
    let made = made.unwrap().unwrap();
    assert_eq!(made["metadata"]["annotations"]["by"], "web");
}

/// Case F93: an override is for the placement of its scope that has the name, in its own namespace if that has one; without a
/// name for any.
#[test]
fn scope_tells_namesakes_apart() {
    let named = |scope: &str| OverrideSpec {
        placement: Some(OverriddenPlacement {
            name: "web".to_owned(),
            scope: scope.to_owned(),
        }),
        ..OverrideSpec::default()
    };
    let placements = [("", "web"), ("shop", "web"), ("else", "web"), ("", "other")];
    let placements = placements.map(|(namespace, name)| Key::new(namespace, name));
    for (spec, own, expected) in [
        (named(""), "shop", [true, false, false, false]),
        (named("Cluster"), "shop", [true, false, false, false]),
        (named("Namespaced"), "shop", [false, true, false, false]),
        (named("Cluster"), "", [true, false, false, false]),
        (named("Namespaced"), "", [false; 4]),
        (OverrideSpec::default(), "shop", [true; 4]),
    ] {
        let about = placements.each_ref().map(|one| is_for(&spec, own, one));
        assert_eq!(about, expected, "{spec:?} in {own:?}");
    }
}

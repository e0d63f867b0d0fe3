//! The objects of the users: their names, paths and contents.

use serde_json::{Value, json};

use super::step::{Apply, PlacementShape, Policy, Scope};
use crate::harness::access::NAMESPACES;
use crate::harness::clusters;

/// The number of applications: a namespace, and a placement of the same name.
pub(crate) const APPS: u8 = 2;
/// The application beside them, whose placement is in its namespace.
pub(crate) const OF_NAMESPACE: u8 = APPS;
/// The number of maps that an application may have.
pub(crate) const MAPS: u8 = 3;

pub(crate) const MEMBERS: &str = "/apis/cluster.kubernetes-fleet.io/v1beta1/memberclusters";
pub(crate) const PLACEMENTS: &str =
    "/apis/placement.kubernetes-fleet.io/v1beta1/clusterresourceplacements";
pub(crate) const POLICIES: &str =
    "/apis/placement.kubernetes-fleet.io/v1beta1/clusterschedulingpolicysnapshots";
pub(crate) const SNAPSHOTS: &str =
    "/apis/placement.kubernetes-fleet.io/v1beta1/clusterresourcesnapshots";
pub(crate) const BINDINGS: &str =
    "/apis/placement.kubernetes-fleet.io/v1beta1/clusterresourcebindings";
pub(crate) const OWNERS: &str = "/apis/placement.kubernetes-fleet.io/v1beta1/appliedworks";

/// The label of the objects of a placement.
pub(crate) const PLACEMENT: &str = "/metadata/labels/kubernetes-fleet.io~1parent-CRP";

/// Returns the name of an application, of its namespace and of its placement.
pub(crate) fn app(nth: u8) -> String {
    format!("app-{nth}")
}

/// Returns the path of a fleet's kind in the namespace of that application.
pub(crate) fn in_namespace(plural: &str) -> String {
    let namespace = app(OF_NAMESPACE);
    format!("/apis/placement.kubernetes-fleet.io/v1beta1/namespaces/{namespace}/{plural}")
}

/// Returns the path of the placements among which that of an application is.
pub(crate) fn placements(nth: u8) -> String {
    if nth == OF_NAMESPACE {
        in_namespace("resourceplacements")
    } else {
        PLACEMENTS.to_owned()
    }
}

/// Returns the namespace that a cluster has on the hub.
pub(crate) fn space(cluster: &str) -> String {
    format!("fleet-member-{cluster}")
}

/// Returns the path of the Works of a cluster.
pub(crate) fn works(cluster: &str) -> String {
    let space = space(cluster);
    format!("/apis/placement.kubernetes-fleet.io/v1beta1/namespaces/{space}/works")
}

/// Returns the path of the maps of an application.
pub(crate) fn maps(app: &str) -> String {
    format!("{NAMESPACES}/{app}/configmaps")
}

pub(crate) fn map_path(app: u8, map: u8) -> String {
    format!("{}/map-{map}", maps(&self::app(app)))
}

/// Returns a map as a user writes it. Those with an even value are labelled; the others are not, or not any longer.
pub(crate) fn map(map: u8, value: u8) -> Value {
    let tier = value.is_multiple_of(2).then_some("x");
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": format!("map-{map}"), "labels": { "tier": tier } },
        "data": { "value": value.to_string() },
    })
}

pub(crate) fn member(nth: u8, region: u8) -> Value {
    json!({
        "apiVersion": "cluster.kubernetes-fleet.io/v1beta1", "kind": "MemberCluster",
        "metadata": { "name": clusters::name(nth), "labels": { "region": self::region(region) } },
        "spec": { "identity": {
            "kind": "ServiceAccount", "name": "agent", "namespace": "fleet-system",
        } },
    })
}

/// Returns the name of a region, a label of clusters.
pub(crate) fn region(nth: u8) -> String {
    format!("r{nth}")
}

pub(crate) fn taints(is_tainted: bool) -> Value {
    if is_tainted {
        json!([{ "key": "lab", "effect": "NoSchedule" }])
    } else {
        json!([])
    }
}

/// Returns the placement of an application. That in a namespace selects the maps there, and goes where that is: nothing else
/// decides.
pub(crate) fn placement(nth: u8, shape: PlacementShape) -> Value {
    let app = app(nth);
    let (kind, selectors, policy) = if nth == OF_NAMESPACE {
        let maps = json!([{ "group": "", "version": "v1", "kind": "ConfigMap" }]);
        ("ResourcePlacement", maps, policy(anywhere(shape)))
    } else {
        let selectors = selectors(&app, shape.scope);
        ("ClusterResourcePlacement", selectors, policy(shape))
    };
    json!({
        "apiVersion": "placement.kubernetes-fleet.io/v1beta1", "kind": kind,
        "metadata": { "name": app },
        "spec": {
            "resourceSelectors": selectors, "policy": policy, "strategy": strategy(shape.apply),
        },
    })
}

/// Returns a shape by which each cluster is as good as any other.
fn anywhere(shape: PlacementShape) -> PlacementShape {
    let policy = match shape.policy {
        Policy::Number { clusters, .. } => Policy::Number {
            clusters,
            spreads: false,
        },
        policy => policy,
    };
    PlacementShape {
        policy,
        region: None,
        tolerates: true,
        ..shape
    }
}

fn strategy(apply: Apply) -> Value {
    let mut strategy = json!({ "type": "RollingUpdate" });
    match apply {
        Apply::ClientSide => {}
        Apply::ServerSide => {
            strategy["applyStrategy"] =
                json!({ "type": "ServerSideApply", "serverSideApplyConfig": { "force": true } });
        }
        Apply::ReportDiff => strategy["applyStrategy"] = json!({ "type": "ReportDiff" }),
    }
    strategy
}

fn selectors(app: &str, scope: Scope) -> Value {
    let selected = match scope {
        Scope::Whole => "NamespaceWithResources",
        Scope::Alone => "NamespaceOnly",
        Scope::Labelled => "NamespaceWithResourceSelectors",
    };
    let namespace = json!({
        "group": "", "version": "v1", "kind": "Namespace", "name": app, "selectionScope": selected,
    });
    let maps = json!({
        "group": "", "version": "v1", "kind": "ConfigMap",
        "labelSelector": { "matchLabels": { "tier": "x" } },
    });
    if scope == Scope::Labelled {
        json!([namespace, maps])
    } else {
        json!([namespace])
    }
}

fn policy(shape: PlacementShape) -> Value {
    let mut policy = match shape.policy {
        Policy::All => json!({ "placementType": "PickAll" }),
        Policy::Named(bits) => {
            return json!({ "placementType": "PickFixed", "clusterNames": clusters::names(bits) });
        }
        Policy::Number { clusters, .. } => {
            json!({ "placementType": "PickN", "numberOfClusters": clusters })
        }
    };
    if let Policy::Number { spreads: true, .. } = shape.policy {
        policy["topologySpreadConstraints"] = json!([{
            "maxSkew": 1, "topologyKey": "region", "whenUnsatisfiable": "DoNotSchedule",
        }]);
    }
    if let Some(region) = shape.region {
        policy["affinity"] = json!({ "clusterAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": { "clusterSelectorTerms": [
                { "labelSelector": { "matchLabels": { "region": self::region(region) } } },
            ] },
        } });
    }
    if shape.tolerates {
        policy["tolerations"] =
            json!([{ "key": "lab", "operator": "Exists", "effect": "NoSchedule" }]);
    }
    policy
}

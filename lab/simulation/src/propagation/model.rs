//! The demands of the policies, computed anew and as naively as possible, without the rules of the programs.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::objects::Template;
use super::world::{World, is_deleting, items, name, text};

/// Returns `true` for a policy of templates of any namespace.
fn is_of_cluster(policy: &Value) -> bool {
    text(policy, "/metadata/namespace").is_empty()
}

fn priority(policy: &Value) -> i64 {
    policy["spec"]["priority"].as_i64().unwrap_or_default()
}

/// Returns `true` if a policy selects a template.
fn selects(policy: &Value, template: Template) -> bool {
    let may = is_of_cluster(policy) || template.is_namespaced();
    may && items(policy, "/spec/resourceSelectors").any(|selector| {
        let (by_name, by_label) = (
            text(selector, "/name"),
            text(selector, "/labelSelector/matchLabels/tier"),
        );
        selector["apiVersion"] == template.api_version()
            && selector["kind"] == template.kind()
            && if by_name.is_empty() {
                by_label.is_empty() || by_label == template.tier()
            } else {
                by_name == template.name()
            }
    })
}

/// Returns the policies that select a template.
pub(crate) fn candidates(world: &World, template: Template) -> Vec<&Value> {
    let policies = world.policies.iter();
    policies
        .filter(|policy| !is_deleting(policy) && selects(policy, template))
        .collect()
}

/// Returns `true` if `other` takes the templates of `policy`.
pub(crate) fn preempts(other: &Value, policy: &Value) -> bool {
    let is_higher = priority(other) > priority(policy);
    other["spec"]["preemption"] == "Always"
        && match (is_of_cluster(other), is_of_cluster(policy)) {
            (false, true) => true,
            (true, false) => false,
            _ => is_higher,
        }
}

/// Returns the policy that an object names as its own.
pub(crate) fn claimed<'a>(world: &'a World, object: &Value) -> Option<&'a Value> {
    let annotation = |key: &str| text(object, &format!("/metadata/annotations/{key}"));
    let of_cluster = annotation("clusterpropagationpolicy.karmada.io~1name");
    let of_namespace = annotation("propagationpolicy.karmada.io~1name");
    world.policies.iter().find(|policy| {
        let (prefix, wanted) = if is_of_cluster(policy) {
            ("clusterpropagationpolicy", of_cluster)
        } else {
            ("propagationpolicy", of_namespace)
        };
        let id = format!("/metadata/labels/{prefix}.karmada.io~1permanent-id");
        name(policy) == wanted && text(*policy, &id) == text(object, &id)
    })
}

/// Returns `true` if an object bears a claim of any policy.
pub(crate) fn is_claimed(object: &Value) -> bool {
    let is_key = |key: &String| key.contains("propagationpolicy.karmada.io/");
    ["/metadata/labels", "/metadata/annotations"]
        .iter()
        .filter_map(|map| object.pointer(map)?.as_object())
        .any(|map| map.keys().any(is_key))
}

/// Returns `true` if a suspension concerns a cluster.
pub(crate) fn is_paused(suspension: &Value, cluster: &str) -> bool {
    suspension["dispatching"] == true
        || items(suspension, "/dispatchingOnClusters/clusterNames").any(|name| name == cluster)
}

/// Returns `true` if a suspension concerns anything.
pub(crate) fn pauses(suspension: &Value) -> bool {
    suspension["dispatching"] == true
        || items(suspension, "/dispatchingOnClusters/clusterNames").count() > 0
}

/// Returns `true` for a policy that its templates follow only once they are edited.
pub(crate) fn is_lazy(policy: &Value) -> bool {
    policy["spec"]["activationPreference"] == "Lazy"
}

/// Returns the clusters that a placement allows.
pub(crate) fn allowed(world: &World, placement: &Value) -> BTreeSet<String> {
    let affinity = &placement["clusterAffinity"];
    let names: Vec<&Value> = items(affinity, "/clusterNames").collect();
    let region = text(affinity, "/labelSelector/matchLabels/region");
    let is_allowed = |(cluster, object): &(&String, &Value)| {
        (names.is_empty() || names.iter().any(|name| name.as_str() == Some(cluster)))
            && (region.is_empty() || text(*object, "/metadata/labels/region") == region)
    };
    let allowed = world.clusters.iter().filter(is_allowed);
    allowed.map(|(cluster, _)| cluster.clone()).collect()
}

/// Returns the weights of clusters, if a placement divides replicas by them.
pub(crate) fn weights(placement: &Value) -> Option<BTreeMap<String, u64>> {
    let scheduling = &placement["replicaScheduling"];
    let list = scheduling.pointer("/weightPreference/staticWeightList")?;
    let mut weights = BTreeMap::new();
    for rule in items(list, "") {
        for cluster in items(rule, "/targetCluster/clusterNames") {
            let cluster = cluster.as_str().unwrap_or_default().to_owned();
            weights.insert(cluster, rule["weight"].as_u64().unwrap_or_default());
        }
    }
    Some(weights)
}

/// Returns `true` if `seats` divide their sum by `weights` as Webster's method does, whatever decides ties.
pub(crate) fn is_divided(seats: &BTreeMap<String, u64>, weights: &BTreeMap<String, u64>) -> bool {
    let seats_of = |cluster: &String| seats.get(cluster).copied().unwrap_or_default();
    // Nobody's last seat was worth less to it than one more would be to another.
    let worth = |weight: u64, divisor: u64, other: u64, other_divisor: u64| {
        weight * other_divisor >= other * divisor
    };
    seats.keys().all(|cluster| weights.contains_key(cluster))
        && weights.iter().all(|(cluster, weight)| {
            let seats = seats_of(cluster);
            seats == 0
                || weights.iter().all(|(other, other_weight)| {
                    other == cluster
                        || worth(
                            *weight,
                            2 * seats - 1,
                            *other_weight,
                            2 * seats_of(other) + 1,
                        )
                })
        })
}

/// Returns the labels that override policies give the copy of a template in a cluster.
pub(crate) fn override_labels(
    world: &World,
    template: Template,
    cluster: &str,
) -> BTreeMap<String, Value> {
    let mut labels = BTreeMap::new();
    for policy in &world.overrides {
        let may = is_of_cluster(policy) || template.is_namespaced();
        let selected = items(policy, "/spec/resourceSelectors").any(|selector| {
            selector["kind"] == template.kind() && selector["name"] == template.name()
        });
        for rule in items(policy, "/spec/overrideRules").filter(|_| may && selected) {
            if items(rule, "/targetCluster/clusterNames").any(|name| name == cluster) {
                let added = rule.pointer("/overriders/labelsOverrider/0/value");
                let added = added.and_then(Value::as_object).into_iter().flatten();
                labels.extend(added.map(|(key, value)| (key.clone(), value.clone())));
            }
        }
    }
    labels
}

/// Returns the parts of an object that matter: its labels that are not Karmada's, its content, and its replicas.
pub(crate) fn essence(template: Template, object: &Value) -> Value {
    let labels = object
        .pointer("/metadata/labels")
        .and_then(Value::as_object);
    let is_users = |(key, _): &(&String, &Value)| !key.contains("karmada.io/");
    let labels: BTreeMap<&String, &Value> = labels.into_iter().flatten().filter(is_users).collect();
    json!({
        "labels": labels,
        "content": template.content(object),
        "replicas": object["spec"]["replicas"],
    })
}

/// Returns the essence of the copy of a template in a cluster that gets `replicas`.
pub(crate) fn copy(
    world: &World,
    template: Template,
    cluster: &str,
    replicas: Option<u64>,
) -> Value {
    let source = world.templates.get(&template).unwrap_or(&Value::Null);
    let mut essence = essence(template, source);
    for (key, value) in override_labels(world, template, cluster) {
        essence["labels"][key] = value;
    }
    if let Some(replicas) = replicas {
        essence["replicas"] = replicas.into();
    }
    essence
}

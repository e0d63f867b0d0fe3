//! The demands of the policies, computed anew and as naively as possible, without the rules of the programs.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::objects::Template;
use super::snapshot::Snapshot;
use crate::harness::value::{is_deleting, items, name, text};

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

/// Returns `true` if a policy or a binding is about a kind of templates. Nobody looks at any others, such as that
/// of a template whose policy was replaced when it had a claim and no binding yet.
pub(crate) fn is_watched(snapshot: &Snapshot, template: Template) -> bool {
    let mut selectors = snapshot
        .policies
        .iter()
        .flat_map(|policy| items(policy, "/spec/resourceSelectors"));
    let mut bound = snapshot.bindings.keys();
    selectors.any(|selector| selector["kind"] == template.kind())
        || bound.any(|bound| bound.kind() == template.kind())
}

/// Returns the policies that select a template.
pub(crate) fn candidates(snapshot: &Snapshot, template: Template) -> Vec<&Value> {
    let policies = snapshot.policies.iter();
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
pub(crate) fn claimed<'a>(snapshot: &'a Snapshot, object: &Value) -> Option<&'a Value> {
    let kinds = ["clusterpropagationpolicy", "propagationpolicy"];
    let [of_cluster, of_namespace] = kinds.map(|kind| {
        text(
            object,
            &format!("/metadata/annotations/{kind}.karmada.io~1name"),
        )
    });
    snapshot.policies.iter().find(|policy| {
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
    ["/metadata/labels", "/metadata/annotations"]
        .iter()
        .filter_map(|map| object.pointer(map)?.as_object())
        .flat_map(Map::keys)
        .any(|key| key.contains("propagationpolicy.karmada.io/"))
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

/// A group of clusters of a placement, or all that a placement without groups allows.
#[derive(Debug)]
pub(crate) struct Group<'a> {
    /// The name, which is empty in a placement without groups.
    pub(crate) name: &'a str,
    pub(crate) clusters: BTreeSet<String>,
}

/// Returns the groups of a placement, in their order.
pub(crate) fn groups<'a>(snapshot: &Snapshot, placement: &'a Value) -> Vec<Group<'a>> {
    let mut affinities: Vec<&Value> = items(placement, "/clusterAffinities").collect();
    if affinities.is_empty() {
        affinities.push(&placement["clusterAffinity"]);
    }
    let groups = affinities.into_iter().map(|affinity| Group {
        name: text(affinity, "/affinityName"),
        clusters: allowed(snapshot, affinity),
    });
    groups.collect()
}

/// Returns `true` if workloads have to leave a cluster for its taint, now or once it is tolerated no longer.
pub(crate) fn drives_away(snapshot: &Snapshot, placement: &Value, cluster: &str) -> bool {
    let mut tolerations = items(placement, "/clusterTolerations");
    let is_tolerated = tolerations.any(|toleration| toleration["tolerationSeconds"].is_null());
    !is_tolerated && has_taint(snapshot, cluster, "NoExecute")
}

/// Returns the clusters that workloads may come to and stay in.
pub(crate) fn open(
    snapshot: &Snapshot,
    placement: &Value,
    clusters: &BTreeSet<String>,
) -> BTreeSet<String> {
    let mut open = clusters.clone();
    open.retain(|cluster| {
        !drives_away(snapshot, placement, cluster) && !has_taint(snapshot, cluster, "NoSchedule")
    });
    open
}

/// Returns the least and the greatest number that a placement allows, of clusters or of their regions.
fn bounds(placement: &Value, field: &str) -> Option<[usize; 2]> {
    let mut constraints = items(placement, "/spreadConstraints");
    let constraint = constraints.find(|constraint| constraint["spreadByField"] == field)?;
    let [least, most] = ["minGroups", "maxGroups"].map(|key| constraint[key].as_u64());
    Some([usize::try_from(least?).ok()?, usize::try_from(most?).ok()?])
}

/// Returns `true` if a placement bounds the number of regions.
pub(crate) fn has_regions(placement: &Value) -> bool {
    bounds(placement, "region").is_some()
}

/// Returns every choice among clusters that the bounds of a placement leave: as many as are allowed, with at least
/// one of each region in use.
pub(crate) fn choices(
    snapshot: &Snapshot,
    placement: &Value,
    clusters: &BTreeSet<String>,
) -> Vec<BTreeSet<String>> {
    let (of_regions, of_clusters) = (bounds(placement, "region"), bounds(placement, "cluster"));
    let region = |name: &String| match of_regions {
        Some(_) => text(snapshot.clusters.get(name), "/spec/region"),
        None => "",
    };
    let is_allowed = |choice: &BTreeSet<String>| {
        let regions: BTreeSet<&str> = choice.iter().map(region).collect();
        let offered = clusters
            .iter()
            .filter(|name| regions.contains(region(name)));
        let offered = offered.count();
        let [least, most] = of_clusters.unwrap_or([0, offered]);
        let has_regions =
            of_regions.is_none_or(|[least, most]| (least..=most).contains(&regions.len()));
        has_regions && offered >= least && choice.len() == offered.min(most).max(regions.len())
    };
    let mut choices = vec![BTreeSet::new()];
    for cluster in clusters {
        let mut with = choices.clone();
        for choice in &mut with {
            choice.insert(cluster.clone());
        }
        choices.append(&mut with);
    }
    choices.retain(|choice| !choice.is_empty() && is_allowed(choice));
    choices
}

fn has_taint(snapshot: &Snapshot, cluster: &str, effect: &str) -> bool {
    let object = snapshot.clusters.get(cluster);
    object.is_some_and(|object| items(object, "/spec/taints").any(|one| one["effect"] == effect))
}

/// Returns the number of pods for which a cluster has room. No member counts those that it has.
pub(crate) fn room(snapshot: &Snapshot, cluster: &str) -> u64 {
    let pods = "/status/resourceSummary/allocatable/pods";
    let pods = text(snapshot.clusters.get(cluster), pods);
    pods.parse().unwrap_or_default()
}

/// The division of replicas that a placement asks for.
#[derive(Debug)]
pub(crate) enum Division {
    /// Each cluster has all.
    None,
    /// By these weights of the clusters.
    Weights(BTreeMap<String, u64>),
    /// By their room.
    Room,
}

/// Returns the division of a placement.
pub(crate) fn division(placement: &Value) -> Division {
    let scheduling = &placement["replicaScheduling"];
    if scheduling.is_null() {
        return Division::None;
    }
    let Some(list) = scheduling.pointer("/weightPreference/staticWeightList") else {
        return Division::Room;
    };
    let mut weights = BTreeMap::new();
    for rule in items(list, "") {
        for cluster in items(rule, "/targetCluster/clusterNames") {
            let cluster = cluster.as_str().unwrap_or_default().to_owned();
            weights.insert(cluster, rule["weight"].as_u64().unwrap_or_default());
        }
    }
    Division::Weights(weights)
}

/// The clusters in which the Deployment needs the objects to which it refers.
#[derive(Debug)]
pub(crate) struct Need {
    pub(crate) clusters: BTreeSet<String>,
    /// The suspension of the Deployment.
    pub(crate) suspension: Value,
    /// Set if others that were needed once may still be there: of a Deployment that is paused anywhere, or
    /// that no policy has any more.
    pub(crate) is_frozen: bool,
}

/// Returns the clusters in which the Deployment needs a template.
pub(crate) fn need(snapshot: &Snapshot, template: Template) -> Need {
    let mut need = Need {
        clusters: BTreeSet::new(),
        suspension: Value::Null,
        is_frozen: false,
    };
    let deployment = snapshot.templates.get(&Template::Deployment);
    let binding = snapshot.bindings.get(&Template::Deployment);
    let (Some(deployment), Some(binding)) = (deployment, binding) else {
        return need;
    };
    let spec = &binding["spec"];
    let policy = claimed(snapshot, deployment);
    let suspension = policy.map_or(&spec["suspension"], |policy| &policy["spec"]["suspension"]);
    need.suspension.clone_from(suspension);
    need.is_frozen = template.is_namespaced() && (policy.is_none() || pauses(suspension));
    if need.is_frozen {
        let required = snapshot.bindings.get(&template).into_iter();
        let required = required.flat_map(|binding| items(binding, "/spec/requiredBy"));
        let required = required.flat_map(|snapshot| items(snapshot, "/clusters"));
        need.clusters = required.map(|one| text(one, "/name").to_owned()).collect();
        need.is_frozen = !need.clusters.is_empty();
    }
    if policy.is_some() && spec["propagateDeps"] == true && template.is_dependency_of(deployment) {
        let scheduled = items(spec, "/clusters");
        let scheduled = scheduled.map(|target| text(target, "/name").to_owned());
        need.clusters.extend(scheduled);
    }
    need
}

fn allowed(snapshot: &Snapshot, affinity: &Value) -> BTreeSet<String> {
    let names: Vec<&Value> = items(affinity, "/clusterNames").collect();
    let region = text(affinity, "/labelSelector/matchLabels/region");
    let allowed = snapshot.clusters.iter().filter(|(cluster, object)| {
        (names.is_empty() || names.iter().any(|name| name.as_str() == Some(cluster)))
            && (region.is_empty() || text(*object, "/metadata/labels/region") == region)
    });
    allowed.map(|(cluster, _)| cluster.clone()).collect()
}

/// Returns `true` if `seats` divide their sum by `weights` as Webster's method does, whatever decides ties.
pub(crate) fn is_divided(seats: &BTreeMap<String, u64>, weights: &BTreeMap<String, u64>) -> bool {
    let seats_of = |cluster: &String| seats.get(cluster).copied().unwrap_or_default();
    seats.keys().all(|cluster| weights.contains_key(cluster))
        && weights.iter().all(|(cluster, weight)| {
            let seats = seats_of(cluster);
            // Nobody's last seat was worth less to it than one more would be to another.
            seats == 0
                || weights.iter().all(|(other, other_weight)| {
                    other == cluster
                        || weight * (2 * seats_of(other) + 1) >= other_weight * (2 * seats - 1)
                })
        })
}

/// Returns the labels that override policies give the copy of a template in a cluster.
pub(crate) fn override_labels(
    snapshot: &Snapshot,
    template: Template,
    cluster: &str,
) -> BTreeMap<String, Value> {
    let mut labels = BTreeMap::new();
    for policy in &snapshot.overrides {
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
    let labels = labels.into_iter().flatten();
    let labels: BTreeMap<&String, &Value> = labels
        .filter(|(key, _)| !key.contains("karmada.io/"))
        .collect();
    json!({
        "labels": labels,
        "content": template.content(object),
        "replicas": object["spec"]["replicas"],
    })
}

/// Returns the essence of the copy of a template in a cluster that gets `replicas`.
pub(crate) fn copy(
    snapshot: &Snapshot,
    template: Template,
    cluster: &str,
    replicas: Option<u64>,
) -> Value {
    let source = snapshot.templates.get(&template).unwrap_or(&Value::Null);
    let mut essence = essence(template, source);
    for (key, value) in override_labels(snapshot, template, cluster) {
        essence["labels"][key] = value;
    }
    if let Some(replicas) = replicas {
        essence["replicas"] = replicas.into();
    }
    essence
}

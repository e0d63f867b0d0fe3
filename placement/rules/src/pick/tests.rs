use fleet_api::binding::BindingState;
use fleet_api::names::{NUMBER_OF_CLUSTERS, PARENT_PLACEMENT};
use fleet_api::{Binding, MemberCluster, Placement, PolicySnapshot};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use objects::write::Action;
use serde_json::{Value, from_value, json};

use super::*;
use crate::eligible::Obstacle;
use crate::fixtures::{fixture, merged};

mod history;
mod recorded;

/// The time at which all recorded policies were scheduled.
const NOW: &str = "2026-11-25T16:44:45Z";

/// A fleet with one placement.
#[derive(Clone)]
struct World {
    placement: Placement,
    policy: PolicySnapshot,
    clusters: Vec<MemberCluster>,
    ineligible: Vec<String>,
    bindings: Vec<Binding>,
}

fn cluster(name: &str, labels: &Value) -> MemberCluster {
    from_value(json!({ "metadata": { "name": name, "labels": labels } })).unwrap()
}

/// Returns a cluster whose agent tells of these namespaces.
fn telling(mut cluster: MemberCluster, namespaces: &Value) -> MemberCluster {
    let told = json!({ "namespaces": namespaces,
        "conditions": [{ "type": "NamespaceCollectionSucceeded", "status": "True" }] });
    cluster.status = from_value(told).unwrap();
    cluster
}

impl World {
    fn new(clusters: Vec<MemberCluster>, policy: &Value) -> Self {
        let mut placement = Placement::default();
        placement.metadata.name = Some("crp".to_owned());
        let mut world = Self {
            placement,
            policy: PolicySnapshot::default(),
            clusters,
            ineligible: Vec::new(),
            bindings: Vec::new(),
        };
        world.adopt(policy, 0);
        world
    }

    /// The three members of the recorded fleet, with a recorded policy that has not been scheduled yet.
    fn recorded(policy: &str) -> Self {
        let policy = fixture(policy);
        let clusters = [
            ("1", "east", "prod"),
            ("2", "east", "canary"),
            ("3", "west", "prod"),
        ];
        let clusters = clusters.map(|(number, region, env)| {
            let labels = json!({ "region": region, "env": env });
            cluster(&format!("kind-cluster-{number}"), &labels)
        });
        let mut world = Self::new(clusters.to_vec(), &Value::Null);
        let owner = policy.label(PARENT_PLACEMENT).unwrap();
        world.placement.metadata.name = Some(owner.to_owned());
        world.policy = from_value(policy).unwrap();
        world.policy.status = None;
        world
    }

    /// Has a new policy.
    fn adopt(&mut self, policy: &Value, index: u32) {
        self.policy = from_value(json!({ "metadata": { "name": format!("crp-{index}") },
            "spec": { "policy": policy } }))
        .unwrap();
    }

    fn number(&mut self, number: u32) {
        let annotations = [(NUMBER_OF_CLUSTERS.to_owned(), number.to_string())];
        self.policy.metadata.annotations = Some(annotations.into());
    }

    fn plan(&mut self) -> [Vec<Write>; 2] {
        let clusters = self.clusters.iter().map(|cluster| FleetCluster {
            cluster,
            obstacle: self
                .ineligible
                .iter()
                .any(|name| name == cluster.metadata.name())
                .then_some(Obstacle::Silent),
        });
        let clusters: Vec<_> = clusters.collect();
        let bindings: Vec<_> = self.bindings.iter().collect();
        let facts = SchedulingFacts {
            placement: &self.placement,
            policy: &self.policy,
            clusters: &clusters,
            bindings: &bindings,
            now: NOW.parse::<Timestamp>().unwrap(),
        };
        plan(&facts)
    }

    /// Returns the names of the bindings that scheduling creates; it is to write to no others.
    fn created(&mut self) -> Vec<String> {
        let [bindings, _] = self.plan();
        let names = bindings.into_iter().map(|write| match write.action {
            Action::Create(_) => write.object.key.name,
            action => panic!("{action:?}"),
        });
        names.collect()
    }

    /// Schedules, and returns the names of the clusters that have the placement then.
    fn schedule(&mut self) -> Vec<String> {
        let [bindings, status] = self.plan();
        for write in bindings {
            if let Action::Create(binding) = write.action {
                self.bindings.push(from_value(binding).unwrap());
                continue;
            }
            let mut bindings = self.bindings.iter_mut();
            let binding = bindings.find(|one| one.metadata.key() == write.object.key);
            let binding = binding.unwrap();
            *binding = merged(binding, &write);
        }
        for write in status {
            self.policy = merged(&self.policy, &write);
        }
        assert_eq!(self.plan(), [vec![], vec![]], "a second pass writes");
        self.scheduled()
    }

    fn scheduled(&self) -> Vec<String> {
        let bindings = self.bindings.iter();
        let scheduled = bindings.filter(|one| one.spec.state != BindingState::Unscheduled);
        let mut names: Vec<_> = scheduled
            .map(|one| one.spec.target_cluster.clone())
            .collect();
        names.sort();
        names
    }

    fn bind_all(&mut self) {
        for binding in &mut self.bindings {
            if binding.spec.state == BindingState::Scheduled {
                binding.spec.state = BindingState::Bound;
            }
        }
    }

    fn reasons(&self) -> Vec<&str> {
        let decisions = &self.policy.status.as_ref().unwrap().target_clusters;
        let refused = decisions.iter().filter(|decision| !decision.selected);
        refused.map(|decision| &*decision.reason).collect()
    }

    fn is_fulfilled(&self) -> bool {
        self.policy.status.as_ref().unwrap().conditions[0].status == "True"
    }
}

fn lettered(number: usize) -> Vec<MemberCluster> {
    let names = ('a'..='z').take(number);
    let clusters = names.map(|name| cluster(&name.to_string(), &json!({ "is": name.to_string() })));
    clusters.collect()
}

/// Who decides again before a watch has shown the bindings of a large placement names the same ones: the API has one for
/// each cluster. One that follows another in its cluster has another name.
#[test]
fn late_watch_makes_no_second() {
    let mut world = World::new(lettered(2), &Value::Null);
    let first = world.created();
    assert_eq!(world.created(), first);
    assert_ne!(first[0], first[1]);
    world.schedule();
    for binding in &mut world.bindings {
        binding.metadata.uid = Some("u".to_owned());
        binding.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
    }
    let next = world.created();
    assert_eq!(next.len(), 2);
    assert!(!next.iter().any(|name| first.contains(name)), "{next:?}");
}

/// Case F19: new clusters join; one that no longer matches keeps the placement, and one that is gone loses it.
#[test]
fn every_cluster_that_fits_joins() {
    let mut world = World::new(lettered(2), &Value::Null);
    world.ineligible.push("b".to_owned());
    assert_eq!(world.schedule(), ["a"]);
    let silent = "ClusterUnschedulable, the cluster's agent has not been heard of for too long";
    assert_eq!(world.reasons(), [silent]);
    assert!(world.is_fulfilled());
    world.ineligible = vec!["a".to_owned()];
    world.clusters.push(cluster("c", &json!({})));
    assert_eq!(world.schedule(), ["a", "b", "c"]);
    world.clusters.remove(0);
    assert_eq!(world.schedule(), ["b", "c"]);
}

/// Cases F4 and F20.
#[test]
fn named_clusters_are_found_or_named() {
    let policy = json!({ "placementType": "PickFixed", "clusterNames": ["c", "x", "b", "b"] });
    let mut world = World::new(lettered(3), &policy);
    world.ineligible.push("c".to_owned());
    assert_eq!(world.schedule(), ["b"]);
    let silent = "ClusterUnschedulable, the cluster's agent has not been heard of for too long";
    assert_eq!(
        world.reasons(),
        [silent, "Specified cluster \"x\" is not found"]
    );
    world.ineligible = vec!["b".to_owned()];
    assert_eq!(world.schedule(), ["b", "c"]);
    let other = json!({ "placementType": "PickFixed", "clusterNames": ["a", "b"] });
    world.adopt(&other, 1);
    assert_eq!(world.schedule(), ["a", "b"]);
    assert!(world.is_fulfilled());
}

/// Case F21: of equals the larger names win; fewer keep the largest, and none is a number too.
#[test]
fn numbers_go_up_and_down() {
    let mut world = World::new(lettered(4), &json!({ "placementType": "PickN" }));
    world.number(2);
    assert_eq!(world.schedule(), ["c", "d"]);
    let not_best =
        "cluster \"b\" does not score high enough (affinity score: 0, topology spread score: 0)";
    assert_eq!(world.reasons().first(), Some(&not_best));
    world.number(6);
    assert_eq!(world.schedule(), ["a", "b", "c", "d"]);
    assert!(!world.is_fulfilled());
    world.number(1);
    assert_eq!(world.schedule(), ["d"]);
    world.number(0);
    assert!(world.schedule().is_empty() && world.is_fulfilled());
}

#[test]
fn bound_ones_are_kept_longest() {
    let mut world = World::new(lettered(3), &json!({ "placementType": "PickN" }));
    world.number(1);
    world.clusters.pop();
    assert_eq!(world.schedule(), ["b"]);
    world.bind_all();
    world.clusters = lettered(3);
    world.number(2);
    assert_eq!(world.schedule(), ["b", "c"]);
    world.number(1);
    assert_eq!(world.schedule(), ["b"]);
}

fn prefer(name: &str, weight: i32) -> Value {
    json!({ "placementType": "PickN", "affinity": { "clusterAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [{ "weight": weight,
            "preference": { "labelSelector": { "matchLabels": { "is": name } } } }] } } })
}

/// Case F27: under another policy the best clusters are others; of equals, those that have the placement are better.
#[test]
fn new_policies_replace_the_obsolete() {
    let mut world = World::new(lettered(3), &prefer("a", 100));
    world.number(1);
    assert_eq!(world.schedule(), ["a"]);
    world.bind_all();
    world.adopt(&prefer("a", 0), 1);
    world.number(1);
    assert_eq!(world.schedule(), ["a"]);
    world.adopt(&prefer("b", 1), 2);
    world.number(1);
    assert_eq!(world.schedule(), ["b"]);
    let restored = world.bindings[0].clone();
    assert_eq!(restored.spec.state, BindingState::Unscheduled);
    world.adopt(&prefer("a", 1), 3);
    world.number(1);
    assert_eq!(world.schedule(), ["a"]);
    let [a, b] = &world.bindings[..] else {
        panic!()
    };
    assert_eq!(
        (a.spec.state, b.spec.state),
        (BindingState::Bound, BindingState::Unscheduled)
    );
    assert_eq!(a.metadata.annotations, Some([].into()));
}

fn sorted_by_nodes(order: &str) -> Value {
    json!({ "placementType": "PickN", "affinity": { "clusterAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [{ "weight": 20, "preference": {
            "propertySorter": { "name": "nodes", "sortOrder": order } } }] } } })
}

/// Case F23: the weight is divided between the least and the greatest value of all clusters.
#[test]
fn sorters_grade_by_value() {
    let mut clusters = lettered(4);
    for (cluster, nodes) in clusters.iter_mut().zip(["1", "2", "5"]) {
        cluster.status =
            from_value(json!({ "properties": { "nodes": { "value": nodes } } })).unwrap();
    }
    for (order, scores) in [
        ("Descending", [("c", 20), ("b", 5), ("d", 0), ("a", 0)]),
        ("Ascending", [("a", 20), ("b", 15), ("d", 0), ("c", 0)]),
    ] {
        let mut world = World::new(clusters.clone(), &sorted_by_nodes(order));
        world.number(4);
        world.schedule();
        let decisions = world.policy.status.unwrap().target_clusters;
        let decided = decisions.iter().map(|decision| {
            (
                &*decision.cluster_name,
                decision.cluster_score.unwrap().affinity_score,
            )
        });
        assert_eq!(decided.collect::<Vec<_>>(), scores, "{order}");
    }
}

/// Case F28.
#[test]
fn names_of_bindings_are_labels() {
    let mut world = World::new(
        vec![cluster(&format!("west.{}", "c".repeat(40)), &json!({}))],
        &Value::Null,
    );
    world.placement.metadata.name = Some(format!("crp.{}", "p".repeat(40)));
    world.schedule();
    let (name, id) = world.bindings[0].metadata.name().rsplit_once('-').unwrap();
    assert_eq!(id.len(), 8);
    let expected = format!("crp-{}-west-{}", "p".repeat(22), "c".repeat(22));
    assert_eq!(name, expected);
}

/// Case F24: 1,000 clusters in 10 regions of 7 zones: 100 of them in one pass, as even as can be.
#[test]
fn thousand_clusters_take_one_pass() {
    let clusters = (0..1000).map(|n| {
        let labels = json!({ "region": (n % 10).to_string(), "zone": (n % 7).to_string() });
        cluster(&format!("c{n:03}"), &labels)
    });
    let policy = json!({ "placementType": "PickN", "topologySpreadConstraints": [
        { "topologyKey": "region" }, { "topologyKey": "zone" }] });
    let mut world = World::new(clusters.collect(), &policy);
    world.number(100);
    let picked = world.schedule();
    assert_eq!(picked.len(), 100);
    for (domains, least, most) in [(10, 10, 10), (7, 14, 15)] {
        let mut counts = vec![0; domains];
        for name in &picked {
            let number: usize = name.trim_start_matches('c').parse().unwrap();
            counts[number % domains] += 1;
        }
        let is_even = counts.iter().all(|count| (least..=most).contains(count));
        assert!(is_even, "{counts:?}");
    }
}

/// Case F112: domains are those of clusters where the placement may be: an empty one of others
/// lets no domain have more.
#[test]
fn excluded_domains_do_not_count() {
    let clusters = [
        ("a1", "a", "yes"),
        ("a2", "a", "yes"),
        ("b1", "b", "no"),
        ("c1", "c", "yes"),
    ]
    .map(|(name, zone, picked)| cluster(name, &json!({ "zone": zone, "picked": picked })));
    let policy = json!({ "placementType": "PickN",
        "affinity": { "clusterAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": {
            "clusterSelectorTerms": [{ "labelSelector": { "matchLabels": { "picked": "yes" } } }] } } },
        "topologySpreadConstraints": [{ "topologyKey": "zone" }] });
    let mut world = World::new(clusters.into(), &policy);
    world.ineligible = vec!["c1".to_owned()];
    world.number(2);
    assert_eq!(world.schedule(), ["a1", "a2"]);

    // So of a placement of a namespace, in a domain whose clusters do not have that.
    let (has, lacks) = (json!({ "shop": "" }), json!({}));
    let clusters = [
        ("a1", "a", &has),
        ("a2", "a", &has),
        ("b1", "b", &lacks),
        ("c1", "c", &Value::Null),
    ]
    .map(|(name, zone, told)| telling(cluster(name, &json!({ "zone": zone })), told));
    let policy = json!({ "placementType": "PickN",
        "topologySpreadConstraints": [{ "topologyKey": "zone" }] });
    let mut world = World::new(clusters.into(), &policy);
    world.placement.metadata.namespace = Some("shop".to_owned());
    world.number(2);
    assert_eq!(world.schedule(), ["a1", "a2"]);
}

/// Case F92: where its agent tells of namespaces, a cluster without that of the placement is not picked, or is left; of the
/// others nobody knows.
#[test]
fn clusters_without_namespace_are_left() {
    let clusters = vec![
        telling(cluster("has", &json!({})), &json!({ "shop": "shop-work" })),
        telling(cluster("lacks", &json!({})), &json!({ "default": "" })),
        telling(cluster("new", &json!({})), &Value::Null),
        cluster("silent", &json!({})),
    ];
    let mut world = World::new(clusters, &json!({ "placementType": "PickAll" }));
    world.placement.metadata.namespace = Some("shop".to_owned());
    assert_eq!(world.schedule(), ["has", "silent"]);
    let reasons = world.reasons();
    let lacks = "ClusterUnschedulable, target namespace does not exist on cluster";
    assert!(reasons.contains(&lacks), "{reasons:?}");
    let new = "ClusterUnschedulable, cluster has no namespace information available";
    assert!(reasons.contains(&new), "{reasons:?}");
    world.placement.metadata.namespace = None;
    assert_eq!(world.schedule(), ["has", "lacks", "new", "silent"]);

    // Who names clusters gets those that have it, and one that loses it is left.
    let named = json!({ "placementType": "PickFixed", "clusterNames": ["has", "lacks"] });
    let mut world = World::new(world.clusters, &named);
    world.placement.metadata.namespace = Some("shop".to_owned());
    assert_eq!(world.schedule(), ["has"]);
    assert!(world.reasons().contains(&lacks));
    let none = world.clusters[1].status.clone();
    world.clusters[0].status = none;
    assert_eq!(world.schedule(), [""; 0]);
}

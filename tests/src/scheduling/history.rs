//! A binding through several decisions: it is made, something changes, and its placement changes.

use fastrand::Rng;
use karmada_api::names;
use serde_json::{Value, json};

use super::case::{Case, Decision, ESTIMATE};

/// The decisions of a history.
pub(super) const DECISIONS: u64 = 3;
/// With more clusters than these Go's sort leaves those that are equal in no particular order.
const MOST_CLUSTERS: usize = 12;

/// The times of the past: of the last decision, and of a request for another after it.
const BEFORE: &str = "2020-01-01T00:00:00Z";
const REQUESTED: &str = "2020-01-02T00:00:00Z";

const REGIONS: [&str; 3] = ["r1", "r2", "r3"];
const ZONES: [&str; 3] = ["z1", "z2", "z3"];
const ENVIRONMENTS: [&str; 2] = ["prod", "test"];
/// Amounts of which many are equal.
const AMOUNTS: [u32; 8] = [0, 2, 4, 8, 8, 16, 16, 32];

/// A binding and its clusters, with the case that is to be decided next.
pub(super) struct History {
    /// The seed that it is drawn from.
    pub(super) seed: u64,
    /// The number of decisions before.
    pub(super) past: u64,
    pub(super) case: Case,
    rng: Rng,
    has_estimators: bool,
    has_models: bool,
}

impl History {
    pub(super) fn draw(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let mut history = Self {
            seed,
            past: 0,
            has_estimators: percent(&mut rng, 25),
            has_models: percent(&mut rng, 20),
            case: Case {
                clusters: Vec::new(),
                binding: binding(&mut rng),
                keeps_empty: percent(&mut rng, 10),
            },
            rng,
        };
        let count = history.rng.usize(1..=MOST_CLUSTERS);
        history.case.clusters = (1..=count).map(|nth| history.cluster(nth)).collect();
        *history.case.placement() = history.placement();
        history
    }

    /// Goes on with the binding as it is after the decision: something changes.
    pub(super) fn go_on(&mut self, after: &Value) {
        self.past += 1;
        self.case.binding = after.clone();
        let binding = &mut self.case.binding;
        let generation = binding["metadata"]["generation"].as_i64();
        let generation = generation.unwrap_or_default();
        binding["metadata"]["generation"] = json!(generation + 1);
        binding["metadata"]["resourceVersion"] = json!("1");
        let status = &mut binding["status"];
        // A failure that is shown already would not be written.
        if !Decision::of(after).succeeds() {
            status["conditions"] = json!([]);
        }
        status["schedulerObservedGeneration"] = json!(generation);
        if status["lastScheduledTime"].is_string() {
            status["lastScheduledTime"] = json!(BEFORE);
        }
        if self.past + 1 < DECISIONS {
            self.change_fleet();
        } else {
            self.change_policy();
        }
    }

    /// Changes the number of replicas, or clusters.
    fn change_fleet(&mut self) {
        if self.rng.bool() {
            self.case.binding["spec"]["replicas"] = json!(self.rng.u32(1..=20));
        }
        let mut clusters = std::mem::take(&mut self.case.clusters);
        match self.rng.u8(0..6) {
            0 => clusters
                .iter_mut()
                .for_each(|cluster| self.change_room(cluster)),
            1 => clusters.iter_mut().for_each(|cluster| {
                cluster["spec"]["taints"] = taints(&mut self.rng);
            }),
            2 => clusters.iter_mut().for_each(|cluster| {
                cluster["metadata"]["labels"] = labels(&mut self.rng);
            }),
            3 => drop(clusters.pop()),
            4 => {
                if let Some(leaving) = clusters.last_mut() {
                    leaving["metadata"]["deletionTimestamp"] = json!(BEFORE);
                    leaving["metadata"]["finalizers"] = json!(["karmada.io/cluster-controller"]);
                }
            }
            _ => {}
        }
        self.case.clusters = clusters;
    }

    /// Changes the placement, or asks for a decision from the start.
    fn change_policy(&mut self) {
        let which = self.rng.u8(0..10);
        if which > 1 {
            *self.case.placement() = self.placement();
        }
        if which < 3 {
            self.case.binding["spec"]["rescheduleTriggeredAt"] = json!(REQUESTED);
        }
    }

    fn cluster(&mut self, nth: usize) -> Value {
        let rng = &mut self.rng;
        let zones = rng.usize(0..3);
        let mut spec = json!({
            "syncMode": "Push",
            "region": if percent(rng, 7) { "" } else { one(rng, &REGIONS) },
            "provider": if percent(rng, 20) { "" } else { "p" },
            "zones": rng.choose_multiple(ZONES, zones),
            "taints": taints(rng),
        });
        if self.has_models {
            spec["resourceModels"] = models();
        }
        let mut cluster = json!({
            "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster",
            "metadata": { "name": format!("m{nth}"), "labels": labels(rng) },
            "spec": spec,
            "status": {},
        });
        if !percent(rng, 4) {
            cluster["status"]["apiEnablements"] = json!([
                { "groupVersion": "apps/v1", "resources": [{ "name": "deployments", "kind": "Deployment" }] },
            ]);
        }
        self.change_room(&mut cluster);
        cluster
    }

    /// Draws the room that a cluster has left, and the answer of its estimator.
    fn change_room(&mut self, cluster: &mut Value) {
        let rng = &mut self.rng;
        if !percent(rng, 4) {
            let (cpus, used) = (one(rng, &AMOUNTS), rng.u32(0..3));
            let counts = (0..3).map(|grade| json!({ "grade": grade, "count": rng.u32(0..4) }));
            let counts: Vec<_> = counts.collect();
            cluster["status"]["resourceSummary"] = json!({
                "allocatable": { "cpu": cpus.to_string(), "memory": "64Gi", "pods": (3 * cpus).to_string() },
                "allocated": { "cpu": used.to_string(), "memory": "1Gi", "pods": used.to_string() },
                "allocating": { "pods": "1" },
                "allocatableModelings": if self.has_models { json!(counts) } else { Value::Null },
            });
        }
        if self.has_estimators && rng.bool() {
            let estimate = rng.i32(-1..12).to_string();
            cluster["metadata"]["annotations"] = json!({ ESTIMATE: estimate });
        }
    }

    fn placement(&mut self) -> Value {
        let mut placement = json!({});
        let rng = &mut self.rng;
        match rng.u8(0..10) {
            0..3 => {}
            3..7 => placement["clusterAffinity"] = selector(rng),
            _ => {
                let groups = (0..rng.u8(1..=3)).map(|nth| group(rng, nth));
                placement["clusterAffinities"] = groups.collect();
            }
        }
        if percent(rng, 25) {
            let exists = json!({ "key": "a", "operator": "Exists" });
            let equal =
                json!({ "key": "b", "operator": "Equal", "value": "x", "effect": "NoSchedule" });
            placement["clusterTolerations"] = json!([if rng.bool() { exists } else { equal }]);
        }
        let constraints = constraints(rng);
        if !constraints.is_empty() {
            placement["spreadConstraints"] = json!(constraints);
        }
        let scheduling = scheduling(rng);
        if !scheduling.is_null() {
            placement["replicaScheduling"] = scheduling;
        }
        placement
    }
}

fn binding(rng: &mut Rng) -> Value {
    let mut spec = json!({
        "resource": {
            "apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "web",
            "uid": format!("{:08x}", rng.u32(..)),
        },
        "replicas": if percent(rng, 5) { 0 } else { rng.u32(1..=20) },
    });
    match rng.u8(0..8) {
        0 => {}
        1 => {
            spec["replicaRequirements"] =
                json!({ "resourceRequest": { "cpu": "500m", "memory": "6Gi" } });
        }
        which => {
            let cpus = if which < 5 { "1" } else { "2" };
            spec["replicaRequirements"] = json!({ "resourceRequest": { "cpu": cpus } });
        }
    }
    json!({
        "apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding",
        "metadata": {
            "name": "web-deployment", "namespace": "shop", "generation": 1, "resourceVersion": "1",
            "labels": { names::POLICY_ID: "1" },
        },
        "spec": spec,
    })
}

fn group(rng: &mut Rng, nth: u8) -> Value {
    let mut group = selector(rng);
    group["affinityName"] = json!(format!("g{nth}"));
    if percent(rng, 30) {
        let tiers = (0..rng.u8(1..=2)).map(|tier| {
            let mut overflow = selector(rng);
            overflow["affinityName"] = json!(format!("o{tier}"));
            overflow
        });
        group["overflowAffinities"] = tiers.collect();
    }
    group
}

/// Draws a selection of clusters, of which some select none.
fn selector(rng: &mut Rng) -> Value {
    let names = |rng: &mut Rng| {
        let count = rng.usize(1..=4);
        let all = (1..=MOST_CLUSTERS).map(|nth| format!("m{nth}"));
        rng.choose_multiple(all, count)
    };
    let field = |key: &str, operator: &str, values: &[&str]| {
        let requirement = json!({ "key": key, "operator": operator, "values": values });
        json!({ "fieldSelector": { "matchExpressions": [requirement] } })
    };
    match rng.u8(0..7) {
        0 => json!({}),
        1 => json!({ "clusterNames": names(rng) }),
        2 => json!({ "exclude": names(rng) }),
        3 | 4 => {
            json!({ "labelSelector": { "matchLabels": { "env": one(rng, &ENVIRONMENTS) } } })
        }
        5 => field("region", "In", &[one(rng, &REGIONS), one(rng, &REGIONS)]),
        _ => field("zone", "NotIn", &[one(rng, &ZONES)]),
    }
}

fn constraints(rng: &mut Rng) -> Vec<Value> {
    let by = |field: &str, least: u32, most: u32| json!({ "spreadByField": field, "minGroups": least, "maxGroups": most });
    let (least, more) = (rng.u32(1..=3), rng.u32(0..=2));
    let cluster = by("cluster", least, least + more);
    match rng.u8(0..20) {
        0..8 => Vec::new(),
        8..13 => vec![cluster],
        13..18 => {
            let least = rng.u32(1..=2);
            vec![by("region", least, least + rng.u32(0..=1)), cluster]
        }
        18 => vec![by(one(rng, &["zone", "provider"]), 1, 2), cluster],
        _ if rng.bool() => vec![json!({ "spreadByField": "cluster", "minGroups": least })],
        _ => vec![json!({ "spreadByLabel": "env", "minGroups": 1, "maxGroups": 2 })],
    }
}

fn scheduling(rng: &mut Rng) -> Value {
    let weighted = |preference: Value| {
        json!({
            "replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted",
            "weightPreference": preference,
        })
    };
    match rng.u8(0..10) {
        0 => Value::Null,
        1..4 => json!({ "replicaSchedulingType": "Duplicated" }),
        4..7 => {
            json!({ "replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated" })
        }
        7 | 8 => weighted(json!({ "dynamicWeight": "AvailableReplicas" })),
        _ if percent(rng, 30) => {
            json!({ "replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted" })
        }
        _ => {
            let weights = (0..rng.u8(1..=3))
                .map(|_| json!({ "targetCluster": selector(rng), "weight": rng.u32(1..=3) }));
            weighted(json!({ "staticWeightList": weights.collect::<Vec<_>>() }))
        }
    }
}

fn taints(rng: &mut Rng) -> Value {
    if !percent(rng, 20) {
        return json!([]);
    }
    let effect = one(rng, &["NoSchedule", "NoExecute", "PreferNoSchedule"]);
    json!([{ "key": one(rng, &["a", "b"]), "value": "x", "effect": effect, "timeAdded": BEFORE }])
}

fn labels(rng: &mut Rng) -> Value {
    json!({ "env": one(rng, &ENVIRONMENTS) })
}

/// Returns the models of small, middling and large nodes.
fn models() -> Value {
    let range = |name: &str, min: &str, max: &str| json!({ "name": name, "min": min, "max": max });
    json!([
        { "grade": 0, "ranges": [range("cpu", "0", "2"), range("memory", "0", "4Gi")] },
        { "grade": 1, "ranges": [range("cpu", "2", "4"), range("memory", "4Gi", "8Gi")] },
        { "grade": 2, "ranges": [range("cpu", "4", "1k"), range("memory", "8Gi", "1Ti")] },
    ])
}

/// Returns `true` in so many of a hundred cases.
fn percent(rng: &mut Rng, share: u8) -> bool {
    rng.u8(0..100) < share
}

fn one<T: Copy>(rng: &mut Rng, of: &[T]) -> T {
    of[rng.usize(..of.len())]
}

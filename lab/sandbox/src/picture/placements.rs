//! The placements of the hub: the clusters that each picks, the state of the latest change in each, and the
//! fleet that they pick from.

use std::collections::BTreeMap;
use std::sync::Arc;

use fleet_api::binding::BindingState;
use fleet_api::conditions::{APPLIED, AVAILABLE, PREPARING, PROGRESS_DEADLINE_EXCEEDED};
use fleet_api::names::PARENT_PLACEMENT;
use fleet_api::placement::FailedPlacement;
use fleet_api::{Binding, MemberCluster, Placement, PolicySnapshot, ResourceSnapshot};
use k8s_openapi::api::apps::v1::Deployment;
use karmada_api::condition::{FALSE, TRUE};
use kube::{Resource, ResourceExt};
use objects::condition::find;
use placement_rules::explain::{ExplainFacts, PlacementExplanation, explain};
use tokio::time::Instant;

use super::rollout::{Pods, web};
use super::state::{
    FleetClusterState, Membership, PlacedClusterState, PlacedPhase, PlacementPhase, PlacementState,
    PlacementsState,
};
use super::timeline::{Stage, Step, Timeline};
use super::traffic::Traffic;
use crate::hub::{CORDONED, SICK, STORE, has_joined};
use crate::objects::WEB;
use crate::rollout::{image, version, version_of};
use crate::update::{HubUpdate, Request};

/// The text about a cluster about which a placement has decided nothing.
const NOT_CONSIDERED: &str =
    "it has not been looked at: a placement looks for clusters when it needs one";

#[derive(Debug, Default)]
pub(super) struct Placements {
    clusters: BTreeMap<String, FleetCluster>,
    /// The image of the store on the hub; none while it is not there.
    wanted: Option<String>,
    known: Vec<Arc<Placement>>,
    policies: Vec<Arc<PolicySnapshot>>,
    snapshots: Vec<Arc<ResourceSnapshot>>,
    bindings: Vec<Arc<Binding>>,
    /// How far the latest snapshot of each placement has come.
    waves: BTreeMap<String, Waves>,
    /// The requests to the store that no cluster could be sent.
    unserved: u64,
}

/// A cluster of the sandbox, in the fleet or not.
#[derive(Debug, Default)]
struct FleetCluster {
    member: Option<Arc<MemberCluster>>,
    /// Those of the store.
    pods: Pods,
    traffic: Traffic,
    picked: Picks,
}

/// The placements that pick a cluster, each with the obstacle to being available there, if there is one.
type Picks = BTreeMap<String, Option<String>>;

/// The order in which clusters got a snapshot.
#[derive(Debug, Default)]
struct Waves {
    snapshot: String,
    /// The wave of each cluster, counted from 1.
    of: BTreeMap<String, usize>,
}

impl FleetCluster {
    fn membership(&self) -> Membership {
        let Some(member) = &self.member else {
            return Membership::Left;
        };
        if member.metadata.deletion_timestamp.is_some() {
            Membership::Leaving
        } else if has_joined(Some(member)) {
            Membership::Joined
        } else {
            Membership::Joining
        }
    }

    fn is_cordoned(&self) -> bool {
        self.has_taint(CORDONED)
    }

    fn has_taint(&self, key: &str) -> bool {
        let mut taints = self.member.iter().flat_map(|member| &member.spec.taints);
        taints.any(|taint| taint.key == key)
    }
}

impl Placements {
    pub(super) fn new(members: &[String]) -> Self {
        let clusters = members
            .iter()
            .map(|name| (name.clone(), FleetCluster::default()));
        Self {
            clusters: clusters.collect(),
            ..Self::default()
        }
    }

    /// Notes the objects of one kind on the hub.
    pub(super) fn apply(&mut self, at: Instant, update: HubUpdate, timeline: &mut Timeline) {
        match update {
            HubUpdate::Deployments(deployments) => self.deployments(at, &deployments, timeline),
            HubUpdate::Clusters(clusters) => self.members(at, &clusters, timeline),
            HubUpdate::Placements(placements) => self.known = placements,
            HubUpdate::Policies(policies) => self.policies = policies,
            HubUpdate::Snapshots(snapshots) => {
                self.snapshots = snapshots;
                self.note_waves(at, timeline);
            }
            HubUpdate::Bindings(bindings) => {
                self.bindings = bindings;
                self.note_picks(at, timeline);
                self.note_waves(at, timeline);
            }
        }
    }

    /// Notes the outcome of a request to the store.
    pub(super) fn request(&mut self, at: Instant, request: Request) {
        match request {
            Request::Sent { cluster } => {
                if let Some(cluster) = self.clusters.get_mut(&cluster) {
                    cluster.traffic.sent(at);
                }
            }
            Request::Responded { cluster, ok } => {
                if let Some(cluster) = self.clusters.get_mut(&cluster) {
                    cluster.traffic.ended(at, ok);
                }
            }
            Request::Unserved => self.unserved += 1,
        }
    }

    /// Notes the store on the hub.
    fn deployments(
        &mut self,
        at: Instant,
        deployments: &[Arc<Deployment>],
        timeline: &mut Timeline,
    ) {
        let wanted = web(deployments).and_then(image).map(str::to_owned);
        let before = std::mem::replace(&mut self.wanted, wanted);
        if let (Some(before), Some(now)) = (before, &self.wanted)
            && before != *now
        {
            let text = format!("the hub's {STORE} wants version {}", version(now));
            let step = Step(Stage::StoreWanted, true);
            timeline.add_for_all(at, self.clusters.keys(), step, text);
        }
    }

    /// Notes the store in a member.
    pub(super) fn copies(
        &mut self,
        at: Instant,
        name: &str,
        copies: &[Arc<Deployment>],
        timeline: &mut Timeline,
    ) {
        let Some(cluster) = self.clusters.get_mut(name) else {
            return;
        };
        if !cluster.pods.note(web(copies)) {
            return;
        }
        let runs = cluster.pods.runs.as_deref();
        let text = match runs {
            Some(image) => format!("its {STORE} runs version {}", version(image)),
            None => format!("its {STORE}/{WEB} is gone"),
        };
        timeline.add(at, name, Step(Stage::StoreRuns, runs.is_some()), text);
    }

    /// Notes the clusters of the fleet.
    fn members(&mut self, at: Instant, members: &[Arc<MemberCluster>], timeline: &mut Timeline) {
        for (name, cluster) in &mut self.clusters {
            let before = (cluster.membership(), cluster.is_cordoned());
            let found = members.iter().find(|member| member.name_any() == *name);
            cluster.member = found.cloned();
            let now = (cluster.membership(), cluster.is_cordoned());
            let joins = match now.0 {
                _ if before.0 == now.0 => None,
                // Its agent joins at once.
                Membership::Joining => None,
                Membership::Joined => Some((true, "has joined the fleet")),
                Membership::Leaving => Some((false, "is leaving the fleet")),
                Membership::Left => Some((false, "has left the fleet, and keeps what it has")),
            };
            if let Some((good, text)) = joins {
                timeline.add(at, name, Step(Stage::Membership, good), text.to_owned());
            }
            let cordons = match now.1 {
                _ if before.1 == now.1 || now.0 == Membership::Left => None,
                true => Some((false, "is cordoned: placements give it nothing new")),
                false => Some((true, "is cordoned no longer")),
            };
            if let Some((good, text)) = cordons {
                timeline.add(at, name, Step(Stage::Cordon, good), text.to_owned());
            }
        }
    }

    /// Notes which clusters the placements pick, and where the latest does not get on.
    fn note_picks(&mut self, at: Instant, timeline: &mut Timeline) {
        let mut now = self.picks();
        for (name, cluster) in &mut self.clusters {
            let now = now.remove(name).unwrap_or_default();
            for placement in now.keys().filter(|it| !cluster.picked.contains_key(*it)) {
                let text = format!("placement {placement} picks it");
                timeline.add(at, name, Step(Stage::Picked, true), text);
            }
            for placement in cluster.picked.keys().filter(|it| !now.contains_key(*it)) {
                let text = format!("placement {placement} picks it no longer");
                timeline.add(at, name, Step(Stage::Picked, false), text);
            }
            for (placement, obstacle) in &now {
                let before = cluster.picked.get(placement).cloned().flatten();
                if let (None, Some(obstacle)) = (before, obstacle) {
                    let text = format!("placement {placement} is stuck: {obstacle}");
                    timeline.add(at, name, Step(Stage::PlacementStuck, false), text);
                }
            }
            cluster.picked = now;
        }
    }

    /// Returns the placements that pick each cluster.
    fn picks(&self) -> BTreeMap<String, Picks> {
        let mut picks = BTreeMap::<String, Picks>::new();
        for binding in self.bindings.iter().filter(|binding| !is_removed(binding)) {
            let Some(placement) = placement_of(binding.as_ref()) else {
                continue;
            };
            let cluster = &binding.spec.target_cluster;
            let explained = is_stuck(binding).then(|| self.explain(placement)).flatten();
            let here = explained.and_then(|explained| {
                let mut clusters = explained.clusters.into_iter();
                clusters.find(|placed| placed.name == *cluster)
            });
            let obstacle = here.map(|placed| placed.failures.join("; "));
            let of_cluster = picks.entry(cluster.clone()).or_default();
            of_cluster.insert(placement.to_owned(), obstacle);
        }
        picks
    }

    /// Notes which clusters got the latest snapshot. One that gets it while another of the newest wave is not
    /// available belongs to that wave.
    fn note_waves(&mut self, at: Instant, timeline: &mut Timeline) {
        let placements: Vec<_> = self.known.iter().map(|known| known.name_any()).collect();
        for placement in placements {
            let Some(latest) = self.explain(&placement).and_then(|it| it.latest_snapshot) else {
                continue;
            };
            let given = self.bindings.iter().filter(|binding| {
                placement_of(binding.as_ref()) == Some(&placement)
                    && binding.spec.resource_snapshot_name == latest
            });
            let given: BTreeMap<_, _> = given
                .map(|binding| (binding.spec.target_cluster.clone(), is_available(binding)))
                .collect();
            let waves = self.waves.entry(placement).or_default();
            if waves.snapshot != latest {
                *waves = Waves {
                    snapshot: latest,
                    ..Waves::default()
                };
            }
            for cluster in given.keys() {
                if waves.of.contains_key(cluster) {
                    continue;
                }
                let newest = waves.of.values().max().copied().unwrap_or_default();
                let mut those = waves.of.iter().filter(|(_, wave)| **wave == newest);
                let is_over = those.all(|(name, _)| given.get(name) == Some(&true));
                let wave = if is_over { newest + 1 } else { newest };
                waves.of.insert(cluster.clone(), wave);
                let text = format!("gets {}, in wave {wave}", waves.snapshot);
                timeline.add(at, cluster, Step(Stage::Wave, true), text);
            }
        }
    }

    /// Explains a placement as `kubectl remedy why` does.
    fn explain(&self, placement: &str) -> Option<PlacementExplanation> {
        let known = self.known.iter().find(|it| it.name_any() == placement)?;
        let snapshots = of(&self.snapshots, placement);
        let snapshots: Vec<_> = snapshots.iter().map(|it| &it.metadata).collect();
        Some(explain(&ExplainFacts {
            placement: known,
            policies: &of(&self.policies, placement),
            snapshots: &snapshots,
            bindings: &of(&self.bindings, placement),
            runs: &[],
        }))
    }

    pub(super) fn state(&mut self, now: Instant) -> PlacementsState {
        let names = self.known.iter().map(|known| known.name_any());
        let explained = names.filter_map(|name| self.explain(&name));
        let placements = explained.map(|explained| self.placement(&explained));
        let placements: Vec<_> = placements.collect();
        let clusters = self.clusters.iter_mut().map(|(name, cluster)| {
            let (requests_per_second, errors_per_second) = cluster.traffic.rates(now);
            FleetClusterState {
                name: name.clone(),
                membership: cluster.membership(),
                cordoned: cluster.is_cordoned(),
                sick: cluster.has_taint(SICK),
                runs: version_of(cluster.pods.runs.as_deref()),
                starts: version_of(cluster.pods.starts.as_deref()),
                requests_per_second,
                errors_per_second,
                requests: cluster.traffic.ended,
                errors: cluster.traffic.errors,
            }
        });
        PlacementsState {
            wanted: version_of(self.wanted.as_deref()),
            clusters: clusters.collect(),
            placements,
            unserved: self.unserved,
        }
    }

    fn placement(&self, explained: &PlacementExplanation) -> PlacementState {
        let clusters = self.clusters.iter();
        let clusters = clusters.map(|(name, known)| self.cluster(name, known, explained));
        let clusters: Vec<_> = clusters.collect();
        let mut conditions = explained.conditions.iter();
        let undone = conditions.find(|condition| condition.status != TRUE);
        let is_stuck = clusters.iter().any(|it| it.phase == PlacedPhase::Stuck);
        let phase = match undone {
            _ if is_stuck => PlacementPhase::Stuck,
            None if !explained.conditions.is_empty() => PlacementPhase::Available,
            _ => PlacementPhase::RollingOut,
        };
        let says = undone.map(|it| format!("{}: {}", it.reason, it.message));
        PlacementState {
            name: explained.placement.clone(),
            phase,
            says,
            clusters,
        }
    }

    fn cluster(
        &self,
        name: &str,
        known: &FleetCluster,
        explained: &PlacementExplanation,
    ) -> PlacedClusterState {
        let placement = &explained.placement;
        let mut placed = explained.clusters.iter();
        let Some(placed) = placed.find(|placed| placed.name == name) else {
            let mut others = explained.others.iter();
            let reason = others.find(|other| other.name == name);
            let text = match reason {
                _ if known.member.is_none() => "it is not in the fleet".to_owned(),
                Some(other) => other.reason.clone(),
                None => NOT_CONSIDERED.to_owned(),
            };
            return PlacedClusterState {
                name: name.to_owned(),
                phase: PlacedPhase::NotPicked,
                wave: None,
                text,
                picked: None,
                failures: Vec::new(),
            };
        };
        let bindings = of(&self.bindings, placement);
        let mut bindings = bindings.iter();
        let binding = bindings.find(|it| it.spec.target_cluster == name);
        let phase = match binding {
            Some(binding) if is_removed(binding) => PlacedPhase::Removing,
            Some(_) if !placed.is_latest => PlacedPhase::Waiting,
            Some(binding) if is_available(binding) => PlacedPhase::Available,
            Some(binding) if is_stuck(binding) => PlacedPhase::Stuck,
            _ => PlacedPhase::RollingOut,
        };
        let waves = self.waves.get(placement);
        PlacedClusterState {
            name: name.to_owned(),
            phase,
            wave: waves.and_then(|waves| waves.of.get(name)).copied(),
            text: placed.state.clone(),
            picked: Some(placed.picked.clone()),
            failures: placed.failures.clone(),
        }
    }
}

/// Returns those that a placement made.
fn of<'a, K: Resource>(all: &'a [Arc<K>], placement: &str) -> Vec<&'a K> {
    let all = all.iter().map(Arc::as_ref);
    all.filter(|it| placement_of(*it) == Some(placement))
        .collect()
}

fn placement_of(object: &impl Resource) -> Option<&str> {
    let labels = object.meta().labels.as_ref()?;
    labels.get(PARENT_PLACEMENT).map(String::as_str)
}

/// Returns `true` if the cluster of a binding is to lose its share of the placement.
fn is_removed(binding: &Binding) -> bool {
    binding.metadata.deletion_timestamp.is_some() || binding.spec.state == BindingState::Unscheduled
}

/// Returns `true` if all that a cluster is to have is there and available.
fn is_available(binding: &Binding) -> bool {
    let status = binding.status.as_ref();
    let available = status.and_then(|status| find(&status.conditions, AVAILABLE));
    available.is_some_and(|it| {
        it.status == TRUE && it.observed_generation == binding.metadata.generation
    })
}

/// Returns `true` if the objects for a cluster will not be available there as they are.
fn is_stuck(binding: &Binding) -> bool {
    let Some(status) = &binding.status else {
        return false;
    };
    let is_current = [APPLIED, AVAILABLE].into_iter().any(|kind| {
        find(&status.conditions, kind).is_some_and(|it| {
            it.status == FALSE && it.observed_generation == binding.metadata.generation
        })
    });
    let mut failed = status.failed_placements.iter();
    is_current
        && failed.any(|FailedPlacement { condition, .. }| {
            condition.reason == PROGRESS_DEADLINE_EXCEEDED
                || (condition.type_ == APPLIED && condition.reason != PREPARING)
        })
}

#[cfg(test)]
mod tests {
    use fleet_api::names::RESOURCE_INDEX;
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    use super::super::timeline::Clock;
    use super::*;

    struct Hub {
        placements: Placements,
        timeline: Timeline,
    }

    impl Hub {
        /// Starts with a placement of the store in three clusters.
        fn new() -> Self {
            let names = ["m1", "m2", "m3"].map(str::to_owned);
            let mut hub = Self {
                placements: Placements::new(&names),
                timeline: Timeline::new(Clock::new()),
            };
            let known =
                json!({ "metadata": { "name": "store" }, "spec": { "resourceSelectors": [] } });
            assert_eq!(hub.note(HubUpdate::Placements(parsed([known]))), [""; 0]);
            hub
        }

        /// Notes an update, and returns the entries of the timeline about it.
        fn note(&mut self, update: HubUpdate) -> Vec<String> {
            let timeline = &mut self.timeline;
            self.placements.apply(Instant::now(), update, timeline);
            let entries = timeline.take().into_iter();
            entries
                .map(|it| match it.cluster {
                    Some(cluster) => format!("{cluster} {}", it.text),
                    None => it.text,
                })
                .collect()
        }

        fn bindings(&mut self, bindings: impl IntoIterator<Item = Value>) -> Vec<String> {
            self.note(HubUpdate::Bindings(parsed(bindings)))
        }

        /// Takes this for the latest snapshot.
        fn snapshot(&mut self, index: usize) -> Vec<String> {
            let name = format!("store-{index}-snapshot");
            let labels = json!({ PARENT_PLACEMENT: "store", RESOURCE_INDEX: index.to_string() });
            let annotations = json!({ "kubernetes-fleet.io/number-of-resource-snapshots": "1",
                "kubernetes-fleet.io/resource-hash": "a" });
            let metadata = json!({ "name": name, "labels": labels, "annotations": annotations });
            let snapshot = json!({ "metadata": metadata, "spec": { "selectedResources": [] } });
            self.note(HubUpdate::Snapshots(parsed([snapshot])))
        }

        fn cluster(&mut self, name: &str) -> PlacedClusterState {
            let state = self.placements.state(Instant::now());
            let [store] = &state.placements[..] else {
                panic!("{state:?}");
            };
            let found = store.clusters.iter().find(|it| it.name == name);
            found.unwrap().clone()
        }
    }

    fn parsed<K: DeserializeOwned>(objects: impl IntoIterator<Item = Value>) -> Vec<Arc<K>> {
        let objects = objects.into_iter();
        objects
            .map(|object| Arc::new(serde_json::from_value(object).unwrap()))
            .collect()
    }

    /// Returns the binding of a cluster, with a snapshot of this index that is available or not.
    fn binding(cluster: &str, index: usize, is_available: bool) -> Value {
        let status = if is_available { "True" } else { "False" };
        let condition = json!({ "type": AVAILABLE, "status": status, "reason": "R", "message": "m",
            "observedGeneration": 1, "lastTransitionTime": "2026-11-20T08:00:00Z" });
        let name = format!("store-{cluster}");
        json!({
            "metadata": { "name": name, "generation": 1, "labels": { PARENT_PLACEMENT: "store" } },
            "spec": { "state": "Bound", "targetCluster": cluster,
                "resourceSnapshotName": format!("store-{index}-snapshot"),
                "schedulingPolicySnapshotName": "store-0",
                "clusterDecision": { "clusterName": cluster, "selected": true, "reason": "picked" } },
            "status": { "conditions": [condition] },
        })
    }

    /// A cluster that gets a change while another has it and is not available is in the same wave.
    #[tokio::test]
    async fn waves_follow_availability() {
        let mut hub = Hub::new();
        hub.snapshot(0);
        let [one, two, three] = ["m1", "m2", "m3"];
        let all = [one, two, three].map(|it| binding(it, 0, false));
        let first = "gets store-0-snapshot, in wave 1";
        let entries = hub.bindings(all);
        assert_eq!(entries.iter().filter(|it| it.ends_with(first)).count(), 3);
        assert_eq!(entries.len(), 6, "{entries:?}");
        assert_eq!(
            hub.bindings([one, two, three].map(|it| binding(it, 0, true))),
            [""; 0]
        );

        hub.snapshot(1);
        let given = hub.bindings([
            binding(one, 1, false),
            binding(two, 0, true),
            binding(three, 0, true),
        ]);
        assert_eq!(given, ["m1 gets store-1-snapshot, in wave 1"]);
        let given = hub.bindings([
            binding(one, 1, false),
            binding(two, 1, false),
            binding(three, 0, true),
        ]);
        assert_eq!(given, ["m2 gets store-1-snapshot, in wave 1"]);
        let given = hub.bindings([
            binding(one, 1, true),
            binding(two, 1, true),
            binding(three, 1, false),
        ]);
        assert_eq!(given, ["m3 gets store-1-snapshot, in wave 2"]);
        assert_eq!(hub.cluster(three).wave, Some(2));
        assert_eq!(hub.cluster(three).phase, PlacedPhase::RollingOut);
        assert_eq!(hub.cluster(one).phase, PlacedPhase::Available);
    }

    /// A rollout that its controller has given up is told once, with the object.
    #[tokio::test]
    async fn stuck_cluster_is_told_once() {
        let mut hub = Hub::new();
        hub.snapshot(1);
        let waiting = binding("m2", 0, true);
        let mut stuck = binding("m1", 1, false);
        let reported = hub.bindings([stuck.clone(), waiting.clone()]);
        assert_eq!(reported.len(), 3, "{reported:?}");
        let condition = json!({ "type": AVAILABLE, "status": "False", "message": "given up",
            "reason": PROGRESS_DEADLINE_EXCEEDED, "lastTransitionTime": "2026-11-20T08:00:00Z" });
        stuck["status"]["failedPlacements"] = json!([{ "group": "apps", "version": "v1",
            "kind": "Deployment", "namespace": "store", "name": "web", "condition": condition }]);
        let object = "Deployment store/web: ProgressDeadlineExceeded: given up";
        let told = format!("m1 placement store is stuck: {object}");
        assert_eq!(hub.bindings([stuck.clone(), waiting.clone()]), [told]);
        assert_eq!(hub.bindings([stuck, waiting]), [""; 0]);
        let seen = hub.cluster("m1");
        assert_eq!(
            (seen.phase, &*seen.failures),
            (PlacedPhase::Stuck, &[object.to_owned()][..])
        );
        assert_eq!(hub.cluster("m2").phase, PlacedPhase::Waiting);
        let state = hub.placements.state(Instant::now());
        assert_eq!(state.placements[0].phase, PlacementPhase::Stuck);
    }

    /// A cluster that is not picked has the scheduler's reason; one that left the fleet has that.
    #[tokio::test]
    async fn unpicked_clusters_have_reasons() {
        let mut hub = Hub::new();
        let members = ["m1", "m2"].map(|name| json!({ "metadata": { "name": name }, "spec": {} }));
        assert_eq!(hub.note(HubUpdate::Clusters(parsed(members))), [""; 0]);
        let decision = json!({ "clusterName": "m1", "selected": false, "reason": "tainted" });
        let policy = json!({
            "metadata": { "name": "store-0", "labels": { PARENT_PLACEMENT: "store",
                "kubernetes-fleet.io/policy-index": "0" } },
            "spec": { "policyHash": "" }, "status": { "targetClusters": [decision] },
        });
        hub.note(HubUpdate::Policies(parsed([policy])));
        let texts = ["m1", "m2", "m3"].map(|name| hub.cluster(name).text);
        assert_eq!(texts, ["tainted", NOT_CONSIDERED, "it is not in the fleet"]);
    }

    /// A cluster joins, is cordoned, and leaves before the reader's eyes.
    #[tokio::test]
    async fn membership_is_told() {
        let mut hub = Hub::new();
        let member = |taints: Value, joined: &str| {
            let condition = json!({ "type": "Joined", "status": joined, "reason": "R",
                "message": "", "lastTransitionTime": "2026-11-20T08:00:00Z" });
            json!({ "metadata": { "name": "m1" }, "spec": { "taints": taints },
                "status": { "conditions": [condition] } })
        };
        let cordoned = json!([{ "key": CORDONED, "effect": "NoSchedule" }]);
        let mut leaving = member(json!([]), "True");
        leaving["metadata"]["deletionTimestamp"] = json!("2026-11-20T08:00:00Z");
        for (members, expected) in [
            (vec![member(json!([]), "Unknown")], None),
            (
                vec![member(json!([]), "True")],
                Some("m1 has joined the fleet"),
            ),
            (
                vec![member(cordoned, "True")],
                Some("m1 is cordoned: placements give it nothing new"),
            ),
            (
                vec![member(json!([]), "True")],
                Some("m1 is cordoned no longer"),
            ),
            (vec![leaving], Some("m1 is leaving the fleet")),
            (vec![], Some("m1 has left the fleet, and keeps what it has")),
        ] {
            let told = hub.note(HubUpdate::Clusters(parsed(members)));
            let expected: Vec<_> = expected.into_iter().collect();
            assert_eq!(told, expected);
        }
    }
}

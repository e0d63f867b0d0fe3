//! The facts that decide about one binding.

use jiff::Timestamp;
use karmada_api::cluster_view::ClusterViewStatus;
use karmada_api::{ClusterView, Placement, ResourceBindingSpec, names};
use kube::core::ObjectMeta;
use objects::Metadata;
use serde_json::Value;

use super::affinity_groups::AffinityGroups;
use super::assumed::Assumed;
use super::estimates::Estimates;
use super::failure::AffinityFailure;
use super::pods::Pods;
use super::strategy::{ReplicaStrategy, is_set};
use crate::binding_ref::BindingRef;

/// The settings of a scheduler.
#[derive(Clone, Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the program"
)]
pub struct Scheduler {
    /// The name by which policies choose it.
    pub name: String,
    /// True if a cluster that gets no replica of a workload is a target all the same.
    pub keeps_empty: bool,
    /// True if a template whose Pods differ goes to one cluster that has room for all of them, where it is to go to one.
    pub fits_sets: bool,
    /// The way in which the room of a cluster is counted.
    pub room: Room,
    /// True if workloads leave clusters with a `NoExecute` taint that they do not tolerate.
    pub evicts: bool,
    /// The share of the fleet above which unready clusters are left by no workload.
    pub unhealthy_threshold: UnhealthyThreshold,
    /// True if workloads return to an earlier group of clusters once it fits again.
    pub fails_back: bool,
}

/// A share of the clusters: if more are not ready, the fault may be on the way to them, and in them all may be well.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UnhealthyThreshold(pub f64);

impl Default for UnhealthyThreshold {
    /// As that of Karmada's flag.
    fn default() -> Self {
        Self(0.55)
    }
}

impl UnhealthyThreshold {
    /// Returns `true` if so many of `all` are more than this share.
    pub(super) fn is_exceeded(self, unready: usize, all: usize) -> bool {
        #[expect(clippy::cast_precision_loss, reason = "no fleet has so many clusters")]
        let (unready, all) = (unready as f64, all as f64);
        unready > self.0 * all
    }
}

/// The ways in which the room of a cluster is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Room {
    /// The room that its nodes together have left.
    #[default]
    Summary,
    /// The room that each of its nodes has left by its model, where the cluster has models.
    Models,
}

/// The scheduler of a binding that names none.
const DEFAULT: &str = "default-scheduler";

/// The labels of bindings that somebody keeps: only these are scheduled.
const KEPT: [&str; 3] = [
    names::POLICY_ID,
    names::CLUSTER_POLICY_ID,
    names::MANAGED_BY,
];

impl Scheduler {
    /// Returns `true` if evictions are ended by this scheduler, which begins some.
    pub(super) fn ends_evictions(&self) -> bool {
        self.evicts || self.fails_back
    }

    /// Returns `true` if the binding is to be scheduled, and by this scheduler.
    pub fn schedules(&self, binding: BindingRef<'_>) -> bool {
        let suspension = binding.spec.suspension.as_ref();
        self.has(binding) && suspension.and_then(|suspension| suspension.scheduling) != Some(true)
    }

    /// Returns `true` if the binding is one of this scheduler, whether or not its scheduling is suspended.
    pub fn has(&self, binding: BindingRef<'_>) -> bool {
        let BindingRef { metadata, spec, .. } = binding;
        let name = spec.scheduler_name.as_deref();
        let name = name.filter(|name| !name.is_empty()).unwrap_or(DEFAULT);
        let labels = KEPT.iter().filter_map(|key| metadata.label(key));
        spec.placement.as_ref().is_some_and(Value::is_object)
            && !metadata.is_deleting()
            && name == self.name
            && labels.into_iter().any(|id| !id.is_empty())
    }
}

/// The clusters of the fleet.
#[derive(Clone, Copy, Debug)]
pub struct KnownClusters<'a> {
    /// Every cluster that can be read.
    pub clusters: &'a [&'a ClusterView],
    /// False while a cluster exists that could not be read yet.
    pub complete: bool,
}

/// Keeps the parts of a cluster that scheduling reads. The rest is gone before a rule could read it, and wakes no binding
/// when it changes; of the status it is named, so that a new field stays.
pub fn keep_facts(cluster: &mut ClusterView) {
    let metadata = std::mem::take(&mut cluster.metadata);
    let status = std::mem::take(&mut cluster.status);
    *cluster = ClusterView {
        metadata: ObjectMeta {
            name: metadata.name,
            uid: metadata.uid,
            resource_version: metadata.resource_version,
            generation: metadata.generation,
            labels: metadata.labels,
            deletion_timestamp: metadata.deletion_timestamp,
            ..ObjectMeta::default()
        },
        spec: std::mem::take(&mut cluster.spec),
        status: ClusterViewStatus {
            kubernetes_version: String::new(),
            conditions: Vec::new(),
            node_summary: None,
            remedy_actions: None,
            ..status
        },
        ..ClusterView::default()
    };
}

impl<'a> KnownClusters<'a> {
    /// Returns the cluster of this name.
    pub(super) fn get(self, name: &str) -> Option<&'a ClusterView> {
        named(self.clusters, name)
    }
}

/// Returns the cluster of this name.
pub(super) fn named<'a>(clusters: &[&'a ClusterView], name: &str) -> Option<&'a ClusterView> {
    let mut clusters = clusters.iter().copied();
    clusters.find(|cluster| cluster.metadata.name() == name)
}

/// The occasion of a decision.
#[derive(Clone, Copy, Debug)]
pub struct Pass<'a> {
    /// The time.
    pub now: Timestamp,
    /// True if labels or spec of a cluster have changed that the affinity in use selects or selected.
    pub cluster_changed: bool,
    /// The other workloads of its groups; `None` if it is in none.
    pub affinity_groups: Option<&'a AffinityGroups>,
    /// The Pods that are assumed in clusters besides those that they report; `None` if nobody keeps account of it.
    pub assumed: Option<&'a Assumed>,
    /// The answers of estimators; `None` if none was asked.
    pub estimates: Option<&'a Estimates>,
}

impl<'a> Pass<'a> {
    /// Returns the Pods that are assumed to be in a cluster.
    pub(super) fn assumed_in(self, cluster: &str) -> &'a [Pods] {
        let assumed = self.assumed;
        assumed.map_or(&[], |assumed| assumed.pods_in(cluster))
    }
}

/// Everything that decides about one binding.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts<'a> {
    pub(super) scheduler: &'a Scheduler,
    pub(super) binding: BindingRef<'a>,
    pub(super) placement: &'a Placement,
    pub(super) strategy: ReplicaStrategy<'a>,
    pub(super) fleet: KnownClusters<'a>,
    pub(super) pass: Pass<'a>,
}

impl<'a> Facts<'a> {
    /// Puts together the facts about a binding.
    ///
    /// # Errors
    /// Fails if the placement asks for a strategy that is unknown.
    pub(super) fn new(
        scheduler: &'a Scheduler,
        binding: BindingRef<'a>,
        placement: &'a Placement,
        fleet: KnownClusters<'a>,
        pass: Pass<'a>,
    ) -> Result<Self, AffinityFailure> {
        let is_set = scheduler.fits_sets && is_set(binding.spec, placement);
        let strategy = if is_set {
            ReplicaStrategy::Set
        } else {
            ReplicaStrategy::of(binding.spec, placement)?
        };
        Ok(Self {
            scheduler,
            binding,
            placement,
            strategy,
            fleet,
            pass,
        })
    }

    /// Returns the facts as they would be with another spec of the binding.
    pub(super) fn with_spec(self, spec: &'a ResourceBindingSpec) -> Self {
        let binding = BindingRef {
            spec,
            ..self.binding
        };
        Self { binding, ..self }
    }
}

//! The facts that decide about a step of one run.

use std::sync::Arc;

use fleet_api::names::{PARENT_PLACEMENT, TARGET_RUN};
use fleet_api::placement::ResourceIdentifier;
use fleet_api::update::UpdateRunStatus;
use fleet_api::{
    ApprovalRequest, Binding, MemberCluster, Placement, PolicySnapshot, ResourceSnapshot,
    StagedUpdateRun, StagedUpdateStrategy,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use karmada_runtime::error::BoxError;
use kube::Resource;
use kube::api::ListParams;
use objects::qualified_name::{is_label_value, is_subdomain};
use objects::{Key, Metadata};
use placement_rules::envelope::Opening;
use placement_rules::overrides::{Overrides, OverridesFacts, contents};
use placement_rules::strategy::is_external;
use placement_rules::update::{
    UpdateFacts, UpdatePlan, asks_for_latest, placement_of, plan, snapshot_of,
};
use tokio::time::Instant;

use crate::index::{StoredSnapshot, group};
use crate::overrides::{OfPlacement, Snapshot};
use crate::requests::HubApi;
use crate::rollout::waits;
use crate::shared::SharedIndex;

/// A run, and the facts that decide about it.
pub(super) struct Known {
    run: Arc<StagedUpdateRun>,
    placement: Option<Arc<Placement>>,
    strategy: Option<Arc<StagedUpdateStrategy>>,
    policies: Vec<Arc<PolicySnapshot>>,
    snapshots: Vec<ObjectMeta>,
    /// The snapshots that its clusters get, as far as they are there; read while it has not begun.
    group: Vec<Arc<StoredSnapshot>>,
    bindings: Vec<Arc<Binding>>,
    clusters: Vec<Arc<MemberCluster>>,
    approvals: Vec<Arc<ApprovalRequest>>,
    overrides: OfPlacement,
}

impl Known {
    /// Returns the facts that the watches show. Nothing is decided about a placement that is refused.
    pub(super) fn read(index: &SharedIndex, key: &Key) -> Option<Self> {
        index.read(|index| {
            let run = Arc::clone(index.runs.runs.get(key)?);
            let of = placement_of(&run);
            let placed = index.placed(&of);
            if placed
                .as_ref()
                .is_some_and(|placed| placed.refusal().is_some())
            {
                return None;
            }
            let snapshots = index.snapshots.of(&of);
            let metadata: Vec<_> = snapshots.iter().map(|one| one.meta().clone()).collect();
            let bindings = index.bindings_of(&of);
            let mut overrides = index.overrides.of_placement(&of, &bindings);
            let status = run.status.as_ref();
            let listed = status.into_iter().flat_map(listed);
            overrides.listed.extend(index.overrides.snapshots(listed));
            let given = snapshot_of(&run, &metadata).filter(|_| !has_begun(&run));
            let group = given.map_or_else(Vec::new, |name| group(&snapshots, &name));
            let strategy = Key::new(&*of.namespace, &*run.spec.strategy_name);
            let members = index.fleet.members.iter();
            Some(Self {
                placement: placed.map(|placed| placed.placement),
                strategy: index.runs.strategies.get(&strategy).cloned(),
                policies: index.policies.of(&of),
                snapshots: metadata,
                group,
                bindings,
                clusters: members.map(|(_, cluster)| Arc::clone(cluster)).collect(),
                approvals: index.runs.approvals.of(key),
                overrides,
                run,
            })
        })
    }

    /// Returns the same as the API has it now; `None` if the run is another one by now.
    pub(super) async fn certain(self, hub: &HubApi) -> Result<Option<Self>, BoxError> {
        let shown = Arc::clone(&self.run);
        let Key { namespace, name } = shown.metadata.key();
        let runs = hub.of_scope::<StagedUpdateRun>(&namespace);
        let Some(run) = runs.get_opt(&name).await? else {
            return Ok(None);
        };
        // The watch is about to show it.
        if run.metadata.resource_version != shown.metadata.resource_version {
            return Ok(None);
        }
        let of = &*run.spec.placement_name;
        let none = ListParams::default();
        let members = hub.all::<MemberCluster>().list(&none).await?;
        let strategies = hub.of_scope::<StagedUpdateStrategy>(&namespace);
        let strategy = match &*run.spec.strategy_name {
            name if is_subdomain(name) => strategies.get_opt(name).await?,
            _ => None,
        };
        let mut certain = Self {
            placement: None,
            strategy: strategy.map(Arc::new),
            policies: Vec::new(),
            snapshots: Vec::new(),
            bindings: Vec::new(),
            clusters: members.items.into_iter().map(Arc::new).collect(),
            ..self
        };
        // No placement has another name, and a request for it would be another request.
        if is_subdomain(of) && is_label_value(of) {
            let labelled = ListParams::default().labels(&format!("{PARENT_PLACEMENT}={of}"));
            let placements = hub.of_scope::<Placement>(&namespace);
            let policies = hub.of_scope::<PolicySnapshot>(&namespace);
            let snapshots = hub.of_scope::<ResourceSnapshot>(&namespace);
            let bindings = hub.of_scope::<Binding>(&namespace);
            let (placement, policies, snapshots, bindings) = tokio::try_join!(
                placements.get_opt(of),
                policies.list(&labelled),
                snapshots.list_metadata(&labelled),
                bindings.list(&labelled),
            )?;
            certain.placement = placement.map(Arc::new);
            certain.policies = policies.items.into_iter().map(Arc::new).collect();
            let snapshots = snapshots.items.into_iter();
            certain.snapshots = snapshots.map(|one| one.metadata).collect();
            certain.bindings = bindings.items.into_iter().map(Arc::new).collect();
        }
        if is_label_value(&name) {
            let labelled = ListParams::default().labels(&format!("{TARGET_RUN}={name}"));
            let approvals = hub.of_scope::<ApprovalRequest>(&namespace);
            let approvals = approvals.list(&labelled).await?;
            certain.approvals = approvals.items.into_iter().map(Arc::new).collect();
        }
        Ok(Some(certain))
    }

    /// Returns `true` if the run is to begin with a snapshot that is made for it.
    pub(super) fn asks_for_latest(&self) -> bool {
        let placement = self.placement.as_ref();
        asks_for_latest(&self.run) && placement.is_some_and(|placement| is_external(placement))
    }

    /// Returns the time until which the run waits for snapshots of overrides, before it begins.
    pub(super) fn waits(&self, opening: Opening) -> Option<Instant> {
        if self.overrides.pending.is_empty() {
            return None;
        }
        waits(&self.overrides.pending, &self.objects(opening))
    }

    pub(super) fn plan(&self, opening: Opening, now: Timestamp) -> UpdatePlan {
        let clusters: Vec<_> = self.clusters.iter().map(|one| &**one).collect();
        let placement = self.placement.as_deref();
        // Only those that may be about something in it are reason enough to read it.
        let objects = if self.overrides.latest.is_empty() {
            Vec::new()
        } else {
            self.objects(opening)
        };
        let [latest, listed] = [&self.overrides.latest, &self.overrides.listed]
            .map(|snapshots| snapshots.iter().map(Snapshot::view).collect::<Vec<_>>());
        let overrides = placement.map(|placement| {
            Overrides::of(&OverridesFacts {
                placement,
                latest: &latest,
                listed: &listed,
                objects: &objects,
                clusters: &clusters,
            })
        });
        let policies: Vec<_> = self.policies.iter().map(|one| &**one).collect();
        let bindings: Vec<_> = self.bindings.iter().map(|one| &**one).collect();
        let approvals: Vec<_> = self.approvals.iter().map(|one| &**one).collect();
        plan(&UpdateFacts {
            run: &self.run,
            placement,
            strategy: self.strategy.as_deref(),
            policies: &policies,
            snapshots: &self.snapshots.iter().collect::<Vec<_>>(),
            overrides: &overrides.unwrap_or_default(),
            bindings: &bindings,
            clusters: &clusters,
            approvals: &approvals,
            now,
        })
    }

    /// Returns the objects in the snapshot that the clusters get, while the run has not begun.
    fn objects(&self, opening: Opening) -> Vec<ResourceIdentifier> {
        let group: Vec<_> = self.group.iter().map(|one| one.object()).collect();
        contents(&group, opening)
    }
}

fn has_begun(run: &StagedUpdateRun) -> bool {
    let status = run.status.as_ref();
    status.is_some_and(|status| status.strategy.is_some())
}

/// Returns the namespace, which is empty for a cluster-scoped one, and the name of each snapshot of an override that a run
/// gives to its clusters.
fn listed(status: &UpdateRunStatus) -> impl Iterator<Item = (&str, &str)> {
    let clusters = status.stages.iter().flat_map(|stage| &stage.clusters);
    clusters.flat_map(|cluster| {
        let cluster_scoped = cluster.cluster_resource_override_snapshots.iter();
        let namespaced = cluster.resource_override_snapshots.iter();
        let cluster_scoped = cluster_scoped.map(|name| ("", &**name));
        cluster_scoped.chain(namespaced.map(|one| (&*one.namespace, &*one.name)))
    })
}

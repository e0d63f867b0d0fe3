//! Many placements in many clusters: from placements to bindings and Works. The agents are scripted: a heartbeat each,
//! and no word about Works.

use std::time::Duration;

use anyhow::Result;
use fleet_api::{
    Binding, InternalMemberCluster, MemberCluster, Placement, ResourceOverride,
    ResourceOverrideSnapshot,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{Client, runtime::watcher::Config};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::{
    limit::{self, Chain},
    objects::{
        Told, everywhere, is_joined, is_ready_to_join, is_synchronized, map, override_name,
        override_of, told, untyped,
    },
};
use crate::{
    api::merge_status,
    bench::{
        AT_ONCE, Pairs, Seen, all, beside_a_watch, leads, memory,
        requests::{create, delete},
    },
    control_plane::ApiKind,
    placement::{PlacementFleet, PlacementPrograms},
    programs::Profile,
};

/// The extent of the benchmark on the hub.
#[derive(Clone, Copy, Debug)]
pub struct PlacementBench {
    /// The number of placements.
    pub placements: u16,
    /// The number of clusters.
    pub clusters: u16,
    /// The number of overrides of each placement; 0 measures none.
    pub overrides: u16,
    /// The number of rounds, in each of which the controller and its limit are measured.
    pub rounds: u8,
}

/// The beginning of the names of the controller's metrics.
const CONTROLLER: &str = "karmada_placement_controller";

/// A scripted agent beats once.
const FLAGS: [&str; 1] = ["--heartbeat-timeout=24h"];

/// The time without a write that is looked at after a restart.
const REST: Duration = Duration::from_secs(5);

struct Hub {
    fleet: PlacementFleet,
    names: Vec<String>,
    clusters: usize,
    overrides: usize,
    /// The bindings that say that their Works are there.
    bound: Seen<Told>,
}

/// Measures the controller with scripted agents.
pub(super) async fn bench(extent: PlacementBench, print: &mut impl FnMut(&str)) -> Result<()> {
    let PlacementBench {
        placements,
        clusters,
        overrides,
        rounds,
    } = extent;
    let kinds = [ApiKind::Real; 2];
    let fleet = PlacementFleet::start_for(kinds, 0, Profile::Dist).await?;
    let names = (1..=placements).map(|nth| format!("app-{nth}"));
    let bindings = told::<Binding>(fleet.hub.client());
    let mut hub = Hub {
        names: names.collect(),
        clusters: clusters.into(),
        overrides: overrides.into(),
        bound: Seen::watch(bindings, Config::default(), is_synchronized).await?,
        fleet,
    };
    hub.prepare().await?;
    let mut created = Pairs::default();
    let mut deleted = Pairs::default();
    let mut overridden = Pairs::default();
    let mut notes = Vec::new();
    for _ in 0..rounds {
        let ([create, delete], chains, of_round) = hub.round().await?;
        let limits = hub.limits(&chains).await?;
        created.add(create, limits[0]);
        deleted.add(delete, limits[1]);
        if overrides > 0 {
            hub.write_overrides().await?;
            let ([with, _], _, _) = hub.round().await?;
            overridden.add(with, create);
            hub.delete_overrides().await?;
        }
        notes = of_round;
    }
    print(&format!(
        "{placements} placements in {clusters} clusters with scripted agents; in parentheses the limit: the same writes by a bare client, {AT_ONCE} placements at a time"
    ));
    print(&format!(
        "created, until every binding says that its Works are there: {created}"
    ));
    print(&format!("deleted, until no placement is left: {deleted}"));
    for note in notes {
        print(&note);
    }
    if overrides > 0 {
        print(&format!(
            "created with {overrides} overrides of each placement; in parentheses without any: {overridden}"
        ));
    }
    Ok(())
}

impl Hub {
    fn client(&self) -> Client {
        self.fleet.hub.client()
    }

    /// Creates the placed objects and the clusters, and lets each of them join.
    async fn prepare(&self) -> Result<()> {
        all(self.names.iter().map(async |name| {
            self.fleet.hub.namespace(name).await?;
            // An object is in one override.
            let maps = untyped::<ConfigMap>(self.client(), name);
            for nth in 0..self.overrides.max(1) {
                create(&maps, &map(nth)).await?;
            }
            Ok(())
        }))
        .await?;
        let clusters = || (1..=self.clusters).map(|nth| format!("cluster-{nth}"));
        let members = untyped::<MemberCluster>(self.client(), "");
        all(clusters().map(async |name| {
            let identity = json!({ "kind": "User", "name": name });
            let cluster = json!({
                "apiVersion": "cluster.kubernetes-fleet.io/v1beta1", "kind": "MemberCluster",
                "metadata": { "name": name }, "spec": { "identity": identity },
            });
            create(&members, &cluster).await
        }))
        .await?;
        let programs = self.start().await?;
        let of_clusters = || told::<MemberCluster>(self.client());
        let mut ready = Seen::watch(of_clusters(), Config::default(), is_ready_to_join).await?;
        ready.until_count(self.clusters).await?;
        all(clusters().map(async |name| {
            let space = format!("fleet-member-{name}");
            let channels = untyped::<InternalMemberCluster>(self.client(), &space);
            let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
            let conditions = ["Joined", "Healthy"].map(|kind| {
                json!({ "type": kind, "status": "True", "reason": "Scripted", "message": "",
                    "lastTransitionTime": now })
            });
            let agent = json!([{ "type": "MemberAgent", "conditions": conditions,
                "lastReceivedHeartbeat": now }]);
            merge_status(&channels, &name, &json!({ "agentStatus": agent })).await
        }))
        .await?;
        let mut joined = Seen::watch(of_clusters(), Config::default(), is_joined).await?;
        joined.until_count(self.clusters).await?;
        programs.settled().await?;
        programs.stop().await
    }

    /// Writes the overrides of each placement, one of each of its maps.
    async fn write_overrides(&self) -> Result<()> {
        all(self.names.iter().map(async |name| {
            let overrides = untyped::<ResourceOverride>(self.client(), name);
            for nth in 0..self.overrides {
                create(&overrides, &override_of(name, nth)).await?;
            }
            Ok(())
        }))
        .await
    }

    async fn delete_overrides(&self) -> Result<()> {
        let programs = self.start().await?;
        all(self.names.iter().map(async |name| {
            let overrides = untyped::<ResourceOverride>(self.client(), name);
            for nth in 0..self.overrides {
                delete(&overrides, &override_name(name, nth)).await?;
            }
            Ok(())
        }))
        .await?;
        let snapshots = told::<ResourceOverrideSnapshot>(self.client());
        let mut left = Seen::watch(snapshots, Config::default(), |_| true).await?;
        left.until_count(0).await?;
        programs.settled().await?;
        programs.stop().await
    }

    async fn start(&self) -> Result<PlacementPrograms> {
        let programs = self.fleet.run_with(&FLAGS).await?;
        leads(&programs.controller, CONTROLLER).await?;
        programs.settled().await?;
        Ok(programs)
    }

    /// Measures the controller. Returns the times, the objects that it made, and further notes.
    async fn round(&mut self) -> Result<([Duration; 2], Vec<Chain>, Vec<String>)> {
        let programs = self.start().await?;
        let before = self.fleet.hub.successful_writes().await?;
        let began = Instant::now();
        let placing = all(self
            .names
            .iter()
            .map(|name| self.fleet.place(name, everywhere(name))));
        let count = self.names.len() * self.clusters;
        let ((), there) = tokio::try_join!(placing, self.bound.until_count(count))?;
        let created = there - began;
        programs.settled().await?;
        let written = self.fleet.hub.successful_writes().await?.since(&before);
        let mut notes = vec![
            format!("writes until there: {written}"),
            format!("with {count} bindings: {}", memory(&programs.controller)?),
        ];
        programs.stop().await?;
        let chains = limit::chains(&self.client()).await?;

        let before = self.fleet.hub.successful_writes().await?;
        let began = Instant::now();
        let programs = self.start().await?;
        let ready = began.elapsed();
        sleep(REST).await;
        let written = self.fleet.hub.successful_writes().await?.since(&before);
        notes.push(format!(
            "started again: at rest after {ready:.2?}, {written}; {}",
            memory(&programs.controller)?
        ));

        let before = self.fleet.hub.successful_writes().await?;
        let began = Instant::now();
        let placements = untyped::<Placement>(self.client(), "");
        let all_told = told::<Placement>(self.client());
        let mut left = Seen::watch(all_told, Config::default(), |_| true).await?;
        let deleting = all(self.names.iter().map(|name| delete(&placements, name)));
        let ((), gone, _) =
            tokio::try_join!(deleting, left.until_count(0), self.bound.until_count(0))?;
        programs.settled().await?;
        let written = self.fleet.hub.successful_writes().await?.since(&before);
        notes.push(format!("writes until gone: {written}"));
        programs.stop().await?;
        Ok(([created, gone - began], chains, notes))
    }

    /// Measures a bare client, beside watches like those of the controller.
    async fn limits(&mut self, chains: &[Chain]) -> Result<[Duration; 2]> {
        let hub = self.client();
        let works = untyped::<fleet_api::Work>(self.client(), "");
        let namespaces = untyped::<Namespace>(self.client(), "");
        let count = self.names.len() * self.clusters;
        let bound = &mut self.bound;
        let work = async {
            let began = Instant::now();
            let creating = all(chains.iter().map(|chain| chain.create(&hub)));
            let ((), there) = tokio::try_join!(creating, bound.until_count(count))?;
            let created = there - began;
            let began = Instant::now();
            let deleting = all(chains.iter().map(|chain| chain.delete(&hub)));
            let ((), gone) = tokio::try_join!(deleting, bound.until_count(0))?;
            Ok([created, gone - began])
        };
        let work = beside_a_watch(works, Box::pin(work));
        beside_a_watch(namespaces, work).await
    }
}

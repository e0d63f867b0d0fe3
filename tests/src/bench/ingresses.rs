//! The ingress-controller with many ingresses, when a cluster in which some of them are located is blocked and admitted
//! again.

use std::{
    iter,
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use anyhow::{Result, ensure};
use k8s_openapi::api::{discovery::v1::EndpointSlice, networking::v1::Ingress};
use karmada_api::{MultiClusterIngress, TRAFFIC_CONTROL};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams},
    runtime::watcher::Config,
};
use serde_json::json;
use tokio::time::Instant;

use super::{
    AT_ONCE, Glance, Pairs, ROUNDS, Seen, all, beside_a_watch, in_mebibytes, leads, mebibytes,
    patch,
};
use crate::{
    control_plane::ApiKind,
    fleet::{Fleet, NAMESPACE},
    programs::{Profile, Running},
};

/// The prefix of the controller's metrics.
const METRICS: &str = "karmada_ingress_controller";
/// The metric of its processor time, in seconds.
const CPU: &str = "process_cpu_seconds_total";
/// The number of clusters in which the Service of an ingress runs, if there are so many.
const EACH_IN: usize = 3;
/// The position of the cluster that is blocked.
const BLOCKED: usize = 0;
/// The position of the cluster that makes a started controller reconcile ingresses.
const OTHER: usize = 1;
/// Selects the slices of [`BLOCKED`] in the gateway.
const ITS_SLICES: &str = "karmada-rs.io/cluster=member1";

/// Runs the benchmark with `mcis` ingresses in `clusters` clusters, first without a provider and then with the provider
/// `kubernetes`, and passes each line of its results to `print`.
///
/// # Errors
/// A part does not start, no change is seen for five minutes, or the controller makes requests about ingresses that
/// are not in the cluster.
pub async fn bench(mcis: u16, clusters: u16, mut print: impl FnMut(&str)) -> Result<()> {
    let fleet = Fleet::start(ApiKind::Real, Profile::Dist).await?;
    let (mcis, clusters) = (usize::from(mcis), usize::from(clusters));
    print(&format!("creating {mcis} ingresses"));
    all((0..clusters).map(async |nth| fleet.create_cluster(&cluster(nth)).await)).await?;
    all((0..mcis).map(|nth| create(&fleet, nth, clusters))).await?;
    let slices = Api::namespaced(fleet.gateway.client(), NAMESPACE);
    let of_blocked = Config::default().labels(ITS_SLICES);
    let mut bench = Ingresses {
        statuses: Seen::actions::<MultiClusterIngress>(|resource| {
            Api::namespaced_with(fleet.karmada.client(), NAMESPACE, resource)
        })
        .await?,
        slices: Seen::watch(slices, of_blocked, |_| true).await?,
        mcis,
        in_blocked: located_in(BLOCKED, mcis, clusters),
        in_other: located_in(OTHER, mcis, clusters).len(),
        fleet,
    };
    print(&format!(
        "{mcis} ingresses in {clusters} clusters, {} of them in the one that is blocked; in parentheses the limit: the same writes by a bare client, {AT_ONCE} ingresses at a time",
        bench.in_blocked.len()
    ));
    for provider in [Provider::None, Provider::Kubernetes] {
        bench.measure(provider, &mut print).await?;
    }
    Ok(())
}

/// Returns the name of a cluster.
fn cluster(nth: usize) -> String {
    format!("member{}", nth + 1)
}

/// Returns the name of an ingress.
fn ingress(nth: usize) -> String {
    format!("ingress{}", nth + 1)
}

/// Returns the clusters in which the Service of an ingress runs. Over all ingresses they are spread evenly.
fn locations(ingress: usize, clusters: usize) -> impl Iterator<Item = usize> {
    let each_in = EACH_IN.min(clusters);
    (0..each_in).map(move |nth| (ingress + nth * clusters / each_in) % clusters)
}

/// Returns the names of the ingresses whose Service runs in a cluster.
fn located_in(cluster: usize, mcis: usize, clusters: usize) -> Vec<String> {
    let located = (0..mcis).filter(|nth| locations(*nth, clusters).any(|one| one == cluster));
    located.map(ingress).collect()
}

/// Creates an ingress, and before it a Service of its own with an endpoint in each of its clusters.
async fn create(fleet: &Fleet, nth: usize, clusters: usize) -> Result<()> {
    let (name, service) = (ingress(nth), format!("web{}", nth + 1));
    let mut endpoints = Vec::new();
    for (place, location) in locations(nth, clusters).enumerate() {
        let nth = u32::try_from(nth * EACH_IN + place)?;
        let address = Ipv4Addr::from(u32::from(Ipv4Addr::new(10, 0, 0, 1)) + nth);
        endpoints.push((cluster(location), SocketAddr::from((address, 8080))));
    }
    fleet.place_service(&service, &endpoints).await?;
    let host = format!("{name}.example.com");
    fleet
        .create_ingress_to(&service, &name, "karmada-rs", &host)
        .await
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Provider {
    None,
    Kubernetes,
}

impl Provider {
    /// Returns the number of requests that an ingress needs for a change: its status, and a slice in the gateway.
    fn needed(self) -> usize {
        match self {
            Self::None => 1,
            Self::Kubernetes => 2,
        }
    }
}

struct Ingresses {
    fleet: Fleet,
    /// The number of ingresses.
    mcis: usize,
    /// The names of those in [`BLOCKED`].
    in_blocked: Vec<String>,
    /// The number of those in [`OTHER`].
    in_other: usize,
    /// The ingresses in which a cluster is blocked.
    statuses: Seen<Glance>,
    /// The slices of [`BLOCKED`] in the gateway.
    slices: Seen<EndpointSlice>,
}

impl Ingresses {
    async fn measure(&mut self, provider: Provider, print: &mut impl FnMut(&str)) -> Result<()> {
        let (mut blocked, mut admitted) = (Pairs::default(), Pairs::default());
        let (mut elsewhere, mut peak) = (0_u64, 0_u64);
        let (mut resident, mut seconds) = (0.0, 0.0);
        let needed = u64::try_from(2 * self.in_blocked.len() * provider.needed())?;
        for _ in 0..ROUNDS {
            let controller = self.start(provider).await?;
            let (requests, used) = (self.requests().await?, controller.metric(CPU).await?);
            let block = self.act(true, provider).await?;
            controller.rests(METRICS).await?;
            let admit = self.act(false, provider).await?;
            controller.rests(METRICS).await?;
            seconds = controller.metric(CPU).await? - used;
            elsewhere += (self.requests().await? - requests).saturating_sub(needed);
            resident = mebibytes(&controller)?;
            peak = peak.max(controller.peak_memory()?);
            controller.stop().await?;
            let [block_limit, admit_limit] = self.limits(provider).await?;
            blocked.add(block, block_limit);
            admitted.add(admit, admit_limit);
        }
        print(&format!("provider {provider:?}"));
        print(&format!(
            "the cluster blocked in all of its ingresses: {blocked}"
        ));
        print(&format!("and admitted again: {admitted}"));
        print(&format!(
            "requests about other ingresses, or repeated: {elsewhere}"
        ));
        print(&format!(
            "controller: {resident:.1} MiB resident, {:.1} MiB at its peak, {seconds:.2} s of a core for both changes",
            in_mebibytes(peak)?
        ));
        ensure!(
            elsewhere == 0,
            "the controller made {elsewhere} requests more than the ingresses of the cluster need"
        );
        Ok(())
    }

    /// Starts a controller and waits until it has reconciled every ingress: it has begun, once it has blocked another cluster
    /// and admitted it again.
    async fn start(&mut self, provider: Provider) -> Result<Running> {
        let controller = match provider {
            Provider::None => self.fleet.ingress_controller_alone().await?,
            Provider::Kubernetes => self.fleet.ingress_controller().await?,
        };
        leads(&controller, METRICS).await?;
        self.act_elsewhere().await?;
        if provider == Provider::Kubernetes {
            let served: Api<Ingress> = Api::namespaced(self.fleet.gateway.client(), NAMESPACE);
            let mut served = Seen::watch(served, Config::default(), |_| true).await?;
            served.until_count(self.mcis).await?;
            self.slices.until_count(self.in_blocked.len()).await?;
        }
        controller.rests(METRICS).await?;
        // Then the watch has shown all that the controller wrote, and is not behind when it is measured.
        self.act_elsewhere().await?;
        controller.rests(METRICS).await?;
        Ok(controller)
    }

    /// Blocks and admits [`OTHER`].
    async fn act_elsewhere(&mut self) -> Result<()> {
        for (block, count) in [(true, self.in_other), (false, 0)] {
            self.set_action(OTHER, block).await?;
            self.statuses.until_count(count).await?;
        }
        Ok(())
    }

    /// Blocks or admits [`BLOCKED`], and returns the time until the controller has changed everything.
    async fn act(&mut self, block: bool, provider: Provider) -> Result<Duration> {
        let began = Instant::now();
        self.set_action(BLOCKED, block).await?;
        Ok(self.until(block, provider).await? - began)
    }

    /// Sets or clears the action of a cluster.
    async fn set_action(&self, nth: usize, block: bool) -> Result<()> {
        let actions = block.then_some([TRAFFIC_CONTROL]);
        let patch = Patch::Merge(json!({ "status": { "remedyActions": actions } }));
        let clusters = self.fleet.clusters();
        let parameters = PatchParams::default();
        clusters
            .patch_status(&cluster(nth), &parameters, &patch)
            .await?;
        Ok(())
    }

    /// Returns the number of requests so far about single ingresses, and about the objects that the provider makes of them.
    async fn requests(&self) -> Result<u64> {
        let Fleet {
            karmada, gateway, ..
        } = &self.fleet;
        let ingresses = karmada.requests_about("multiclusteringresses").await?;
        let slices = gateway.requests_about("endpointslices").await?;
        let served = gateway.requests_about("ingresses").await?;
        Ok(ingresses + slices + served)
    }

    /// Waits until the cluster is blocked or admitted in each of its ingresses, and in the gateway.
    async fn until(&mut self, blocked: bool, provider: Provider) -> Result<Instant> {
        let count = self.in_blocked.len();
        let statuses = self.statuses.until_count(if blocked { count } else { 0 });
        if provider == Provider::None {
            return statuses.await;
        }
        let slices = self.slices.until_count(if blocked { 0 } else { count });
        let (statuses, slices) = tokio::try_join!(statuses, slices)?;
        Ok(statuses.max(slices))
    }

    /// Makes the controller's writes, and returns the times until they have been seen.
    async fn limits(&mut self, provider: Provider) -> Result<[Duration; 2]> {
        let ingresses = self.statuses.objects.clone();
        if provider == Provider::None {
            return beside_a_watch(ingresses, self.write(provider, &[])).await;
        }
        let slices = self.slices.objects.clone();
        let of_blocked = ListParams::default().labels(ITS_SLICES);
        let its_slices = slices.list(&of_blocked).await?.items;
        let writes = beside_a_watch(slices, self.write(provider, &its_slices));
        beside_a_watch(ingresses, writes).await
    }

    /// Blocks and admits the cluster in each of its ingresses, with one of its slices for each in a gateway, and
    /// returns the times.
    async fn write(
        &mut self,
        provider: Provider,
        its_slices: &[EndpointSlice],
    ) -> Result<[Duration; 2]> {
        let names = self.in_blocked.clone();
        let ingresses = self.statuses.objects.clone();
        let slices = self.slices.objects.clone();
        let mut times = [Duration::ZERO; 2];
        for (time, block) in times.iter_mut().zip([true, false]) {
            let status = json!({ "trafficBlockClusters": block.then(|| [cluster(BLOCKED)]) });
            let its_slices = its_slices.iter().map(Some).chain(iter::repeat(None));
            let writes = names.iter().zip(its_slices).map(async |(name, slice)| {
                let in_gateway = async {
                    match slice {
                        Some(slice) => write_slice(&slices, slice, block).await,
                        None => Ok(()),
                    }
                };
                tokio::try_join!(patch(&ingresses, name, &status), in_gateway)?;
                Ok(())
            });
            let began = Instant::now();
            let (seen, ()) = tokio::try_join!(self.until(block, provider), all(writes))?;
            *time = seen - began;
        }
        Ok(times)
    }
}

/// Deletes a slice, or creates it as it was.
async fn write_slice(
    slices: &Api<EndpointSlice>,
    original: &EndpointSlice,
    delete: bool,
) -> Result<()> {
    if delete {
        let parameters = DeleteParams::default();
        slices.delete(&original.name_any(), &parameters).await?;
        return Ok(());
    }
    let slice = EndpointSlice {
        metadata: ObjectMeta {
            name: original.metadata.name.clone(),
            labels: original.metadata.labels.clone(),
            annotations: original.metadata.annotations.clone(),
            ..ObjectMeta::default()
        },
        ..original.clone()
    };
    slices.create(&PostParams::default(), &slice).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each ingress is in different clusters, and each cluster has as many ingresses as any other.
    #[test]
    fn locations_are_spread_evenly() {
        assert_eq!(locations(7, 200).collect::<Vec<_>>(), [7, 73, 140]);
        for clusters in [2, 3, 4, 200] {
            for one in 0..clusters {
                let ingresses = located_in(one, 5 * clusters, clusters);
                assert_eq!(ingresses.len(), 5 * EACH_IN.min(clusters), "{clusters}");
            }
        }
    }
}

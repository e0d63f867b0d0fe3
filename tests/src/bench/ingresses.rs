//! The ingress-controller with many ingresses of a cluster that is blocked and admitted again.

use std::{iter, time::Duration};

use anyhow::Result;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use karmada_api::{MultiClusterIngress, TRAFFIC_CONTROL};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams},
    runtime::watcher::Config,
};
use serde_json::json;
use tokio::time::Instant;

use super::{AT_ONCE, Glance, Pairs, ROUNDS, Seen, all, beside_a_watch, leads, memory, patch};
use crate::{
    control_plane::ApiKind,
    fleet::{Fleet, Member, NAMESPACE},
    programs::{Profile, Running},
};

/// The prefix of the controller's metrics.
const METRICS: &str = "karmada_ingress_controller";
/// The cluster that is blocked.
const BLOCKED: Member = Member(1);
/// The cluster that makes a started controller reconcile every ingress.
const OTHER: Member = Member(2);
/// Selects the slices of [`BLOCKED`] in the gateway.
const ITS_SLICES: &str = "karmada-rs.io/cluster=member1";

/// Runs the benchmark with `ingresses` ingresses, first without a provider and then with the provider
/// `kubernetes`, and passes each line of its results to `print`.
///
/// # Errors
/// A part does not start, or no change is seen for five minutes.
pub async fn bench(ingresses: u16, mut print: impl FnMut(&str)) -> Result<()> {
    let fleet = Fleet::start(ApiKind::Real, Profile::Dist).await?;
    for member in [BLOCKED, OTHER] {
        fleet.join(member).await?;
    }
    fleet.place(&[BLOCKED, OTHER]).await?;
    let names: Vec<String> = (1..=ingresses).map(|nth| format!("ingress{nth}")).collect();
    print(&format!("creating {ingresses} ingresses"));
    all(names
        .iter()
        .map(|name| fleet.create_ingress(name, "karmada-rs")))
    .await?;
    let slices = Api::namespaced(fleet.gateway.client(), NAMESPACE);
    let of_blocked = Config::default().labels(ITS_SLICES);
    let mut bench = Ingresses {
        statuses: Seen::actions::<MultiClusterIngress>(|resource| {
            Api::namespaced_with(fleet.karmada.client(), NAMESPACE, resource)
        })
        .await?,
        slices: Seen::watch(slices, of_blocked, |_| true).await?,
        names,
        fleet,
    };
    print(&format!(
        "in parentheses the limit: the same writes by a bare client, {AT_ONCE} ingresses at a time"
    ));
    for provider in [Provider::None, Provider::Kubernetes] {
        bench.measure(provider, &mut print).await?;
    }
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Provider {
    None,
    Kubernetes,
}

struct Ingresses {
    fleet: Fleet,
    names: Vec<String>,
    /// The ingresses in which a cluster is blocked.
    statuses: Seen<Glance>,
    /// The slices of [`BLOCKED`] in the gateway.
    slices: Seen<EndpointSlice>,
}

impl Ingresses {
    async fn measure(&mut self, provider: Provider, print: &mut impl FnMut(&str)) -> Result<()> {
        let (mut blocked, mut admitted) = (Pairs::default(), Pairs::default());
        let mut resident = String::new();
        for _ in 0..ROUNDS {
            let controller = self.start(provider).await?;
            let block = self.act(BLOCKED, true, provider).await?;
            controller.rests(METRICS).await?;
            let admit = self.act(BLOCKED, false, provider).await?;
            resident = memory(&controller)?;
            controller.stop().await?;
            let [block_limit, admit_limit] = self.limits(provider).await?;
            blocked.add(block, block_limit);
            admitted.add(admit, admit_limit);
        }
        let count = self.names.len();
        print(&format!("{count} ingresses, provider {provider:?}"));
        print(&format!("a cluster blocked in all: {blocked}"));
        print(&format!("and admitted again: {admitted}"));
        print(&resident);
        Ok(())
    }

    /// Starts a controller and waits until it has reconciled every ingress: it has, once it has
    /// blocked another cluster in all of them and admitted it again.
    async fn start(&mut self, provider: Provider) -> Result<Running> {
        let controller = match provider {
            Provider::None => self.fleet.ingress_controller_alone().await?,
            Provider::Kubernetes => self.fleet.ingress_controller().await?,
        };
        leads(&controller, METRICS).await?;
        for blocked in [true, false] {
            self.act(OTHER, blocked, Provider::None).await?;
        }
        if provider == Provider::Kubernetes {
            self.slices.until_count(self.names.len()).await?;
        }
        controller.rests(METRICS).await?;
        Ok(controller)
    }

    /// Sets or clears the action of a cluster, and returns the time until the controller has changed
    /// everything.
    async fn act(&mut self, member: Member, block: bool, provider: Provider) -> Result<Duration> {
        let actions = block.then_some([TRAFFIC_CONTROL]);
        let patch = Patch::Merge(json!({ "status": { "remedyActions": actions } }));
        let clusters = self.fleet.clusters();
        let began = Instant::now();
        clusters
            .patch_status(&member.name(), &PatchParams::default(), &patch)
            .await?;
        Ok(self.until(block, provider).await? - began)
    }

    /// Waits until the cluster is blocked or admitted in every ingress, and in the gateway.
    async fn until(&mut self, blocked: bool, provider: Provider) -> Result<Instant> {
        let count = self.names.len();
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

    /// Blocks and admits the cluster in every ingress, with one of its slices for each in a gateway, and
    /// returns the times.
    async fn write(
        &mut self,
        provider: Provider,
        its_slices: &[EndpointSlice],
    ) -> Result<[Duration; 2]> {
        let names = self.names.clone();
        let ingresses = self.statuses.objects.clone();
        let slices = self.slices.objects.clone();
        let mut times = [Duration::ZERO; 2];
        for (time, block) in times.iter_mut().zip([true, false]) {
            let status = json!({ "trafficBlockClusters": block.then(|| [BLOCKED.name()]) });
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

//! The fleet of one run, and the changes of it.

use std::collections::BTreeMap;

use anyhow::Result;
use http::Method;
use serde_json::{Value, json};

use super::agent::Agent;
use super::apis::{Apis, lease};
use super::clients;
use super::kinds::{Kind, Side};
use super::model::{self, is_readable};
use super::objects::{self, class_name, ingress_name, remedy_name, service_name};
use super::program::Role;
use super::step::{Backends, Change, Class, ConditionState, Corrupted, SERVICES};
use crate::clock;
use crate::harness::Record;
use crate::harness::access::Access;
use crate::harness::clusters::{self, CLUSTERS};

/// Karmada's finalizer on clusters.
const CLUSTER_FINALIZER: &str = "karmada.io/cluster-controller";

/// A small fleet with two replicas of each controller.
#[derive(Debug)]
pub struct Controllers {
    pub(crate) apis: Apis,
    pub(crate) record: Record<Role>,
    pub(crate) agents: BTreeMap<u8, Agent>,
    /// The distinct statuses of each cluster so far, oldest first.
    statuses: BTreeMap<u8, Vec<Value>>,
    /// The specs of the objects that were made unreadable.
    corrupted: BTreeMap<(Kind, String), Value>,
    /// The number of objects that were made unreadable.
    pub(crate) corruptions: u64,
    /// The choice among the values that other clients may leave in a Cluster.
    chance: fastrand::Rng,
    /// The number of Clusters with such a value.
    pub(crate) mutated: u64,
}

impl Controllers {
    /// Creates two members with both Services, an ingress of ours, and no Remedy.
    pub(crate) async fn on(apis: Apis, record: Record<Role>) -> Result<Self> {
        apis.lay_out().await?;
        let mut fleet = Self {
            apis,
            record,
            agents: BTreeMap::new(),
            statuses: BTreeMap::new(),
            corrupted: BTreeMap::new(),
            corruptions: 0,
            // It takes nothing from the generator of the programs' jitter.
            chance: fastrand::Rng::with_seed(fastrand::get_seed()),
            mutated: 0,
        };
        for cluster in 0..2 {
            fleet.change(&Change::Join { cluster }).await?;
        }
        for service in 0..SERVICES {
            let (ports, endpoints) = (Some(0), Some(0));
            fleet.change(&Change::Template { service, ports }).await?;
            let (to, applied) = (0b11, 0);
            let bind = Change::Bind {
                service,
                to,
                applied,
            };
            fleet.change(&bind).await?;
            for cluster in 0..2 {
                let collect = Change::Collect {
                    service,
                    cluster,
                    endpoints,
                };
                fleet.change(&collect).await?;
            }
        }
        let (class, ours, default) = (0, true, false);
        let put_class = Change::PutClass {
            class,
            ours,
            default,
        };
        fleet.change(&put_class).await?;
        let (ingress, class, backends) = (0, Class::Named(0), Backends::Rule(0));
        let put_ingress = Change::PutIngress {
            ingress,
            class,
            backends,
        };
        fleet.change(&put_ingress).await?;
        fleet.remember().await?;
        Ok(fleet)
    }

    /// Applies a change. One that concerns absent objects does nothing.
    pub(crate) async fn change(&mut self, change: &Change) -> Result<()> {
        let apis = &self.apis;
        match *change {
            Change::Join { cluster } => self.join(cluster).await,
            Change::Leave { cluster } => apis.delete(Kind::Cluster, &clusters::name(cluster)).await,
            Change::RemoveFinalizer { cluster } => {
                let name = clusters::name(cluster);
                clients::remove_finalizer(apis, Kind::Cluster, &name, CLUSTER_FINALIZER).await
            }
            Change::Condition {
                cluster,
                reporter,
                status,
            } => clients::set_condition(apis, cluster, reporter, status).await,
            Change::Observe { cluster, resolves } => self.observe_dns(cluster, resolves).await,
            Change::RewriteStatus { cluster, age } => self.rewrite_status(cluster, age).await,
            Change::PutRemedy { remedy, ref spec } => {
                let object = objects::remedy(spec, clock::now());
                apis.put(Kind::Remedy, &remedy_name(remedy), object).await
            }
            Change::DeleteRemedy { remedy } => {
                apis.delete(Kind::Remedy, &remedy_name(remedy)).await
            }
            Change::PutIngress {
                ingress,
                class,
                backends,
            } => {
                let object = objects::ingress(ingress, class, backends);
                let name = ingress_name(ingress);
                apis.put(Kind::MultiClusterIngress, &name, object).await
            }
            Change::HoldIngress { ingress, held } => {
                clients::hold(apis, &ingress_name(ingress), held).await
            }
            Change::DeleteIngress { ingress } => {
                let name = ingress_name(ingress);
                apis.delete(Kind::MultiClusterIngress, &name).await
            }
            Change::PutClass {
                class,
                ours,
                default,
            } => {
                let (name, object) = (class_name(class), objects::class(ours, default));
                apis.delete(Kind::IngressClass, name).await?;
                apis.put(Kind::IngressClass, name, object).await
            }
            Change::DeleteClass { class } => {
                apis.delete(Kind::IngressClass, class_name(class)).await
            }
            Change::Bind {
                service,
                to,
                applied,
            } => clients::bind(apis, service, to, applied).await,
            Change::Unbind { service } => {
                let name = model::binding_name(service_name(service));
                apis.delete(Kind::Binding, &name).await
            }
            Change::Template { service, ports } => clients::template(apis, service, ports).await,
            Change::Collect {
                service,
                cluster,
                endpoints,
            } => clients::collect(apis, service, cluster, endpoints).await,
            Change::Address { ingress, served } => {
                clients::set_address(apis, ingress, served).await
            }
            Change::DeleteFromGateway { nth } => clients::delete_from_gateway(apis, nth).await,
            Change::StealLease { program } => {
                let thief = json!({ "spec": { "holderIdentity": "a-thief" } });
                let karmada = apis.access(Side::Karmada);
                karmada.patch(&lease(program), &thief).await
            }
            Change::DeleteLease { program } => {
                apis.access(Side::Karmada).delete(&lease(program)).await
            }
            Change::Corrupt { corrupted, nth } => self.corrupt(corrupted, nth).await,
        }
    }

    async fn observe_dns(&mut self, cluster: u8, resolves: bool) -> Result<()> {
        if let Some(agent) = self.agents.get(&cluster) {
            agent.set_resolves(resolves);
        } else {
            let agent = Agent::start(&self.apis, cluster, resolves).await?;
            self.agents.insert(cluster, agent);
        }
        Ok(())
    }

    /// Makes every object readable.
    pub(crate) async fn make_readable(&mut self) -> Result<()> {
        for ((kind, name), spec) in std::mem::take(&mut self.corrupted) {
            let found = self.apis.object(kind, &name).await?;
            if found.is_some_and(|found| !is_readable(kind, &found)) {
                clients::write_spec(&self.apis, kind, &name, &spec).await?;
            }
        }
        Ok(())
    }

    /// Creates a healthy Cluster unless it exists, one of whose values is not as Karmada would leave it. A real server
    /// may refuse that value.
    async fn join(&mut self, cluster: u8) -> Result<()> {
        let name = clusters::name(cluster);
        let name = name.as_str();
        if self.apis.object(Kind::Cluster, name).await?.is_some() {
            return Ok(());
        }
        let mutations = &*objects::FOREIGN_MUTATIONS;
        let mutated = &mutations[self.chance.usize(..mutations.len())];
        let apis = &self.apis;
        let metadata = json!({ "finalizers": [CLUSTER_FINALIZER] });
        let mut object = json!({ "metadata": metadata, "spec": mutated["spec"] });
        let put = apis.put(Kind::Cluster, name, object.clone()).await;
        if put.is_err() {
            object["spec"] = objects::foreign()["spec"].clone();
            apis.put(Kind::Cluster, name, object).await?;
        }
        let path = format!("{}/status", Kind::Cluster.path(name));
        let body = json!({ "status": mutated["status"] });
        let access = apis.access(Side::Karmada);
        let (status, _) = access.send(Method::PATCH, &path, &body).await?;
        self.mutated += u64::from(put.is_ok() && status.is_success());
        let healthy = Some(ConditionState::Healthy);
        clients::set_condition(&self.apis, cluster, false, healthy).await
    }

    /// Makes an object unreadable, if there is one and the server accepts that.
    async fn corrupt(&mut self, corrupted: Corrupted, nth: u8) -> Result<()> {
        let (kind, name) = match corrupted {
            Corrupted::Remedy => (Kind::Remedy, remedy_name(nth)),
            Corrupted::Ingress => (Kind::MultiClusterIngress, ingress_name(nth)),
            Corrupted::Binding => (Kind::Binding, model::binding_name(service_name(nth))),
        };
        let Some(found) = self.apis.object(kind, &name).await? else {
            return Ok(());
        };
        if is_readable(kind, &found) {
            self.corruptions +=
                u64::from(clients::write_spec(&self.apis, kind, &name, &json!(7)).await?);
            self.corrupted.insert((kind, name), found["spec"].clone());
        }
        Ok(())
    }

    /// Records the statuses of the clusters for [`Change::RewriteStatus`].
    pub(crate) async fn remember(&mut self) -> Result<()> {
        for cluster in 0..CLUSTERS {
            let found = self
                .apis
                .object(Kind::Cluster, &clusters::name(cluster))
                .await?;
            let seen = self.statuses.entry(cluster).or_default();
            match found {
                None => seen.clear(),
                Some(found) if seen.last() != Some(&found["status"]) => {
                    seen.push(found["status"].clone());
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    async fn rewrite_status(&self, cluster: u8, age: u8) -> Result<()> {
        let name = clusters::name(cluster);
        let Some(mut object) = self.apis.object(Kind::Cluster, &name).await? else {
            return Ok(());
        };
        let seen = self
            .statuses
            .get(&cluster)
            .map(Vec::as_slice)
            .unwrap_or_default();
        let Some(old) = seen.iter().rev().nth(age.into()).or_else(|| seen.first()) else {
            return Ok(());
        };
        object["status"] = old.clone();
        let path = format!("{}/status", Kind::Cluster.path(&name));
        self.apis
            .access(Side::Karmada)
            .write(Method::PUT, &path, &object)
            .await?;
        Ok(())
    }
}

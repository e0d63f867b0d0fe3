//! The fleet of one run: the APIs, the programs, and the steps that change them.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use http::Method;
use serde_json::{Value, json};

use super::agent::Agent;
use super::apis::{Apis, LEASES};
use super::clients;
use super::kinds::{Kind, Side};
use super::model::{self, is_readable};
use super::objects::{self, class_name, cluster_name, ingress_name, remedy_name, service_name};
use super::program::Role;
use super::record::Record;
use super::replicas::Replicas;
use super::step::{Backends, CLUSTERS, Class, ConditionState, Corrupted, REPLICAS, SERVICES, Step};
use crate::harness::access::Access;

/// Karmada's finalizer on clusters.
const CLUSTER_FINALIZER: &str = "karmada.io/cluster-controller";

/// Two APIs and the replicas of the controllers.
#[derive(Debug)]
pub(crate) struct Fleet {
    pub(crate) apis: Apis,
    pub(crate) replicas: Replicas,
    agents: BTreeMap<u8, Agent>,
    /// The distinct statuses of each cluster so far, oldest first.
    statuses: BTreeMap<u8, Vec<Value>>,
    /// The specs of the objects that were made unreadable.
    corrupted: BTreeMap<(Kind, String), Value>,
    /// The number of objects that were made unreadable.
    corruptions: u64,
    /// The choice among the values that other clients may leave in a Cluster.
    chance: fastrand::Rng,
    /// The number of Clusters with such a value.
    mutated: u64,
}

impl Fleet {
    /// Creates two members with both Services, an ingress of ours, and no Remedy. No program runs yet.
    pub(crate) async fn new(apis: Apis, record: Record) -> Result<Self> {
        apis.lay_out().await?;
        let mut fleet = Self {
            apis,
            replicas: Replicas::new(record),
            agents: BTreeMap::new(),
            statuses: BTreeMap::new(),
            corrupted: BTreeMap::new(),
            corruptions: 0,
            // It takes nothing from the generator of the programs' jitter.
            chance: fastrand::Rng::with_seed(fastrand::get_seed()),
            mutated: 0,
        };
        for cluster in 0..2 {
            fleet.apply(&Step::Join { cluster }).await?;
        }
        for service in 0..SERVICES {
            fleet
                .apply(&Step::Template {
                    service,
                    ports: Some(0),
                })
                .await?;
            fleet
                .apply(&Step::Bind {
                    service,
                    to: 0b11,
                    applied: 0,
                })
                .await?;
            for cluster in 0..2 {
                fleet
                    .apply(&Step::Collect {
                        service,
                        cluster,
                        endpoints: Some(0),
                    })
                    .await?;
            }
        }
        fleet
            .apply(&Step::PutClass {
                class: 0,
                ours: true,
                default: false,
            })
            .await?;
        let (class, backends) = (Class::Named(0), Backends::Rule(0));
        fleet
            .apply(&Step::PutIngress {
                ingress: 0,
                class,
                backends,
            })
            .await?;
        Ok(fleet)
    }

    /// Starts every replica.
    pub(crate) async fn start_all(&mut self) -> Result<()> {
        for program in Role::ALL {
            for replica in 0..REPLICAS {
                self.replicas.start(&self.apis, program, replica).await?;
            }
        }
        Ok(())
    }

    /// Applies a step.
    #[expect(clippy::too_many_lines, reason = "one arm for each step")]
    pub(crate) async fn apply(&mut self, step: &Step) -> Result<()> {
        let apis = &self.apis;
        match step {
            Step::Join { cluster } => {
                let name = cluster_name(*cluster);
                if apis.object(Kind::Cluster, &name).await?.is_none() {
                    self.join(&name).await?;
                    let healthy = Some(ConditionState::Healthy);
                    clients::set_condition(&self.apis, *cluster, false, healthy).await?;
                }
            }
            Step::Leave { cluster } => {
                apis.delete(Kind::Cluster, &cluster_name(*cluster)).await?;
            }
            Step::RemoveFinalizer { cluster } => {
                clients::remove_finalizer(
                    apis,
                    Kind::Cluster,
                    &cluster_name(*cluster),
                    CLUSTER_FINALIZER,
                )
                .await?;
            }
            Step::Condition {
                cluster,
                reporter,
                status,
            } => {
                clients::set_condition(apis, *cluster, *reporter, *status).await?;
            }
            Step::Observe { cluster, resolves } => {
                if let Some(agent) = self.agents.get(cluster) {
                    agent.set_resolves(*resolves);
                } else {
                    let agent = Agent::start(apis, *cluster, *resolves).await?;
                    self.agents.insert(*cluster, agent);
                }
            }
            Step::RewriteStatus { cluster, age } => self.rewrite_status(*cluster, *age).await?,
            Step::PutRemedy { remedy, spec } => {
                let object = objects::remedy(spec, crate::clock::now());
                apis.put(Kind::Remedy, &remedy_name(*remedy), object)
                    .await?;
            }
            Step::DeleteRemedy { remedy } => {
                apis.delete(Kind::Remedy, &remedy_name(*remedy)).await?;
            }
            Step::PutIngress {
                ingress,
                class,
                backends,
            } => {
                let object = objects::ingress(*ingress, *class, *backends);
                let name = ingress_name(*ingress);
                apis.put(Kind::MultiClusterIngress, &name, object).await?;
            }
            Step::HoldIngress { ingress, held } => {
                clients::hold(apis, &ingress_name(*ingress), *held).await?;
            }
            Step::DeleteIngress { ingress } => {
                apis.delete(Kind::MultiClusterIngress, &ingress_name(*ingress))
                    .await?;
            }
            Step::PutClass {
                class,
                ours,
                default,
            } => {
                let name = class_name(*class);
                apis.delete(Kind::IngressClass, name).await?;
                apis.put(Kind::IngressClass, name, objects::class(*ours, *default))
                    .await?;
            }
            Step::DeleteClass { class } => {
                apis.delete(Kind::IngressClass, class_name(*class)).await?;
            }
            Step::Bind {
                service,
                to,
                applied,
            } => clients::bind(apis, *service, *to, *applied).await?,
            Step::Unbind { service } => {
                let name = model::binding_name(service_name(*service));
                apis.delete(Kind::Binding, &name).await?;
            }
            Step::Template { service, ports } => clients::template(apis, *service, *ports).await?,
            Step::Collect {
                service,
                cluster,
                endpoints,
            } => {
                clients::collect(apis, *service, *cluster, *endpoints).await?;
            }
            Step::Address { ingress, served } => {
                clients::set_address(apis, *ingress, *served).await?;
            }
            Step::DeleteFromGateway { nth } => {
                let objects = apis.objects().await?;
                let ours: Vec<_> = objects
                    .keys()
                    .filter(|(kind, _)| kind.side() == Side::Gateway)
                    .collect();
                if !ours.is_empty() {
                    let (kind, name) = ours[usize::from(*nth) % ours.len()];
                    apis.delete(*kind, name).await?;
                }
            }
            Step::Kill { program, replica } => self.replicas.kill(*program, *replica).await,
            Step::Stop { program, replica } => self.replicas.stop(*program, *replica),
            Step::Start { program, replica } => {
                self.replicas.start(&self.apis, *program, *replica).await?;
            }
            Step::StealLease { program } => {
                let path = format!("{LEASES}/{}", program.name());
                let body = json!({ "spec": { "holderIdentity": "a-thief" } });
                apis.access(Side::Karmada)
                    .write(Method::PATCH, &path, &body)
                    .await?;
            }
            Step::DeleteLease { program } => {
                let path = format!("{LEASES}/{}", program.name());
                apis.access(Side::Karmada)
                    .write(Method::DELETE, &path, &Value::Null)
                    .await?;
            }
            Step::Fault {
                gateway,
                program,
                about,
                fault,
                seconds,
            } => {
                let side = if *gateway {
                    Side::Gateway
                } else {
                    Side::Karmada
                };
                // A part of the programs' user agents: the steps' own requests must succeed.
                let client = program.map_or("/", Role::name);
                let lasting = Duration::from_secs((*seconds).into());
                match fault.injection() {
                    Ok(injection) => {
                        let injection = injection.client(client).lasting(lasting);
                        let injection = about
                            .iter()
                            .fold(injection, |injection, about| injection.kind(about.plural()));
                        apis.inject(side, injection);
                    }
                    Err(late) => {
                        let concerned = |one: &Role| program.is_none_or(|p| p == *one);
                        for one in Role::ALL.into_iter().filter(concerned) {
                            apis.delays(side, one).add(late);
                        }
                    }
                }
            }
            Step::Corrupt { corrupted, nth } => self.corrupt(*corrupted, *nth).await?,
            Step::Repair => self.repair().await?,
            Step::Wait { millis } => {
                tokio::time::sleep(Duration::from_millis((*millis).into())).await;
            }
        }
        self.remember().await
    }

    /// Ends every fault and makes every object readable.
    pub(crate) async fn repair(&mut self) -> Result<()> {
        self.apis.end_faults();
        for ((kind, name), spec) in std::mem::take(&mut self.corrupted) {
            let found = self.apis.object(kind, &name).await?;
            if found.is_some_and(|found| !is_readable(kind, &found)) {
                clients::write_spec(&self.apis, kind, &name, &spec).await?;
            }
        }
        Ok(())
    }

    /// Returns `true` if an agent ended by itself.
    pub(crate) fn has_lost_an_agent(&self) -> bool {
        self.agents.values().any(Agent::has_ended)
    }

    /// Returns the number of times that each fault was applied.
    pub(crate) fn faults(&self) -> BTreeMap<&'static str, u64> {
        let mut hits = self.apis.hits();
        hits.insert("Corrupt", self.corruptions);
        hits.insert("ForeignValue", self.mutated);
        hits
    }

    /// Creates a Cluster, one of whose values is not as Karmada would leave it. A real server may refuse
    /// that value.
    async fn join(&mut self, name: &str) -> Result<()> {
        let metadata = json!({ "finalizers": [CLUSTER_FINALIZER] });
        let object = |spec: &Value| json!({ "metadata": metadata, "spec": spec });
        let mutations = &*objects::FOREIGN_MUTATIONS;
        let mutated = &mutations[self.chance.usize(..mutations.len())];
        let apis = &self.apis;
        let put = apis
            .put(Kind::Cluster, name, object(&mutated["spec"]))
            .await;
        if put.is_err() {
            let spec = &objects::foreign()["spec"];
            apis.put(Kind::Cluster, name, object(spec)).await?;
        }
        let path = format!("{}/status", Kind::Cluster.path(name));
        let body = json!({ "status": mutated["status"] });
        let access = apis.access(Side::Karmada);
        let (status, _) = access.send(Method::PATCH, &path, &body).await?;
        self.mutated += u64::from(put.is_ok() && status.is_success());
        Ok(())
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

    /// Records the statuses of the clusters for [`Step::RewriteStatus`].
    async fn remember(&mut self) -> Result<()> {
        for cluster in 0..CLUSTERS {
            let found = self
                .apis
                .object(Kind::Cluster, &cluster_name(cluster))
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
        let name = cluster_name(cluster);
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

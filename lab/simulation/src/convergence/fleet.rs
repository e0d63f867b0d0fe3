//! The fleet of one run: the APIs, the programs, and the steps that change them.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use embedded_apiserver::{Fault, Injection};
use http::Method;
use serde_json::{Value, json};

use super::agent::Agent;
use super::apis::{Apis, LEASES};
use super::kinds::{Kind, Side, is_deleting, list};
use super::model::is_readable;
use super::objects::{
    self, class_name, cluster_name, cluster_names, condition_type, ingress_name, remedy_name,
    service_name,
};
use super::program::Role;
use super::record::Record;
use super::replicas::Replicas;
use super::step::{
    ApiFault, Backends, CLUSTERS, Class, ConditionState, REPLICAS, SERVICES, Spoilt, Step,
};

/// Karmada's finalizer on clusters.
const CLUSTER_FINALIZER: &str = "karmada.io/cluster-controller";
/// The finalizer of another controller on ingresses.
const HOLD: &str = "example.com/hold";

/// Two APIs and the replicas of the controllers.
#[derive(Debug)]
pub(crate) struct Fleet {
    pub(crate) apis: Apis,
    pub(crate) replicas: Replicas,
    agents: BTreeMap<u8, Agent>,
    /// The distinct statuses of each cluster so far, oldest first.
    statuses: BTreeMap<u8, Vec<Value>>,
    /// The specs of the objects that were made unreadable.
    spoilt: BTreeMap<(Kind, String), Value>,
    /// The number of objects that were made unreadable.
    spoilings: u64,
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
            spoilt: BTreeMap::new(),
            spoilings: 0,
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
                    self.condition(*cluster, false, Some(ConditionState::Healthy))
                        .await?;
                }
            }
            Step::Leave { cluster } => {
                apis.delete(Kind::Cluster, &cluster_name(*cluster)).await?;
            }
            Step::RemoveFinalizer { cluster } => {
                self.remove_finalizer(Kind::Cluster, &cluster_name(*cluster), CLUSTER_FINALIZER)
                    .await?;
            }
            Step::Condition {
                cluster,
                reporter,
                status,
            } => {
                self.condition(*cluster, *reporter, *status).await?;
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
                self.hold(&ingress_name(*ingress), *held).await?;
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
            } => self.bind(*service, *to, *applied).await?,
            Step::Unbind { service } => {
                let name = super::model::binding_name(service_name(*service));
                apis.delete(Kind::Binding, &name).await?;
            }
            Step::Template { service, ports } => {
                let name = service_name(*service);
                match ports {
                    None => apis.delete(Kind::Service, name).await?,
                    Some(ports) => {
                        let found = apis.object(Kind::Service, name).await?.unwrap_or_default();
                        // The API server sets other fields, and some of them are immutable.
                        let mut spec = found["spec"].clone();
                        spec["ports"] = objects::service_ports(*ports);
                        apis.put(Kind::Service, name, json!({ "spec": spec }))
                            .await?;
                    }
                }
            }
            Step::Collect {
                service,
                cluster,
                endpoints,
            } => {
                self.collect(*service, *cluster, *endpoints).await?;
            }
            Step::Address { ingress, served } => {
                let balancer = if *served {
                    json!({ "ingress": [{ "ip": format!("192.0.2.{ingress}") }] })
                } else {
                    json!({})
                };
                let path = format!(
                    "{}/status",
                    Kind::GatewayIngress.path(&ingress_name(*ingress))
                );
                // A merge patch alone would keep fields that `balancer` lacks.
                let body = json!({ "status": { "loadBalancer": null } });
                let access = apis.access(Side::Gateway);
                access.write(Method::PATCH, &path, Some(&body)).await?;
                let body = json!({ "status": { "loadBalancer": balancer } });
                access.write(Method::PATCH, &path, Some(&body)).await?;
            }
            Step::Drift { nth } => {
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
                    .write(Method::PATCH, &path, Some(&body))
                    .await?;
            }
            Step::DeleteLease { program } => {
                let path = format!("{LEASES}/{}", program.name());
                apis.access(Side::Karmada)
                    .write(Method::DELETE, &path, None)
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
                match injection(*fault) {
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
            Step::Spoil { spoilt, nth } => self.spoil(*spoilt, *nth).await?,
            Step::Mend => self.mend().await?,
            Step::Wait { millis } => {
                tokio::time::sleep(Duration::from_millis((*millis).into())).await;
            }
        }
        self.remember().await
    }

    /// Ends every fault and makes every object readable.
    pub(crate) async fn mend(&mut self) -> Result<()> {
        self.apis.mend();
        for ((kind, name), spec) in std::mem::take(&mut self.spoilt) {
            let found = self.apis.object(kind, &name).await?;
            if found.is_some_and(|found| !is_readable(kind, &found)) {
                self.write_spec(kind, &name, &spec).await?;
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
        hits.insert("Spoil", self.spoilings);
        hits.insert("ForeignValue", self.mutated);
        hits
    }

    /// Creates a Cluster, one of whose values is not as Karmada would leave it. A real server may refuse
    /// that value.
    async fn join(&mut self, name: &str) -> Result<()> {
        let metadata = json!({ "finalizers": [CLUSTER_FINALIZER] });
        let object = |spec: &Value| json!({ "metadata": metadata, "spec": spec });
        let mutations = objects::foreign_mutations();
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
        let (status, _) = access.send(Method::PATCH, &path, Some(&body)).await?;
        self.mutated += u64::from(put.is_ok() && status.is_success());
        Ok(())
    }

    /// Makes an object unreadable, if there is one and the server accepts that.
    async fn spoil(&mut self, spoilt: Spoilt, nth: u8) -> Result<()> {
        let (kind, name) = match spoilt {
            Spoilt::Remedy => (Kind::Remedy, remedy_name(nth)),
            Spoilt::Ingress => (Kind::MultiClusterIngress, ingress_name(nth)),
            Spoilt::Binding => (Kind::Binding, super::model::binding_name(service_name(nth))),
        };
        let Some(found) = self.apis.object(kind, &name).await? else {
            return Ok(());
        };
        if is_readable(kind, &found) {
            self.spoilings += u64::from(self.write_spec(kind, &name, &json!(7)).await?);
            self.spoilt.insert((kind, name), found["spec"].clone());
        }
        Ok(())
    }

    /// Replaces the spec of an object. Returns `false` if the server refuses it, as a real one does with
    /// one that does not fit its schema.
    async fn write_spec(&self, kind: Kind, name: &str, spec: &Value) -> Result<bool> {
        let access = self.apis.access(kind.side());
        let body = json!({ "spec": spec });
        let (status, _) = access
            .send(Method::PATCH, &kind.path(name), Some(&body))
            .await?;
        Ok(status.is_success())
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

    async fn condition(
        &self,
        cluster: u8,
        reporter: bool,
        verdict: Option<ConditionState>,
    ) -> Result<()> {
        let name = cluster_name(cluster);
        let Some(found) = self.apis.object(Kind::Cluster, &name).await? else {
            return Ok(());
        };
        let kind = condition_type(reporter);
        let mut conditions: Vec<Value> = list(&found, "/status/conditions")
            .filter(|c| c["type"] != kind)
            .cloned()
            .collect();
        if let Some(verdict) = verdict {
            conditions.push(objects::condition(reporter, verdict));
        }
        let path = format!("{}/status", Kind::Cluster.path(&name));
        let body = json!({ "status": { "conditions": conditions } });
        self.apis
            .access(Side::Karmada)
            .write(Method::PATCH, &path, Some(&body))
            .await?;
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
            .write(Method::PUT, &path, Some(&object))
            .await?;
        Ok(())
    }

    async fn hold(&self, name: &str, held: bool) -> Result<()> {
        let kind = Kind::MultiClusterIngress;
        if !held {
            return self.remove_finalizer(kind, name, HOLD).await;
        }
        let Some(found) = self.apis.object(kind, name).await? else {
            return Ok(());
        };
        if is_deleting(&found) || super::model::carries(&found, HOLD) {
            return Ok(());
        }
        let mut finalizers: Vec<&Value> = list(&found, "/metadata/finalizers").collect();
        let ours = json!(HOLD);
        finalizers.push(&ours);
        let body = json!({ "metadata": { "finalizers": finalizers } });
        self.apis
            .access(Side::Karmada)
            .write(Method::PATCH, &kind.path(name), Some(&body))
            .await?;
        Ok(())
    }

    async fn remove_finalizer(&self, kind: Kind, name: &str, finalizer: &str) -> Result<()> {
        let Some(found) = self.apis.object(kind, name).await? else {
            return Ok(());
        };
        if kind == Kind::Cluster && !is_deleting(&found) {
            return Ok(());
        }
        let rest: Vec<&Value> = list(&found, "/metadata/finalizers")
            .filter(|f| **f != finalizer)
            .collect();
        let body = json!({ "metadata": { "finalizers": rest } });
        self.apis
            .access(Side::Karmada)
            .write(Method::PATCH, &kind.path(name), Some(&body))
            .await?;
        Ok(())
    }

    async fn bind(&self, service: u8, to: u8, applied: u8) -> Result<()> {
        let service = service_name(service);
        let name = super::model::binding_name(service);
        let applied: Vec<Value> = cluster_names(applied)
            .iter()
            .map(|name| json!({ "clusterName": name, "applied": true }))
            .collect();
        self.apis
            .put(Kind::Binding, &name, objects::binding(service, to))
            .await?;
        let path = format!("{}/status", Kind::Binding.path(&name));
        let body = json!({ "status": { "aggregatedStatus": applied } });
        self.apis
            .access(Side::Karmada)
            .write(Method::PATCH, &path, Some(&body))
            .await?;
        Ok(())
    }

    async fn collect(&self, service: u8, cluster: u8, endpoints: Option<u8>) -> Result<()> {
        let name = format!(
            "imported-{}-{}",
            cluster_name(cluster),
            service_name(service)
        );
        let Some(endpoints) = endpoints else {
            return self.apis.delete(Kind::EndpointSlice, &name).await;
        };
        let object = objects::endpoint_slice(service, cluster, endpoints);
        self.apis.put(Kind::EndpointSlice, &name, object).await
    }
}

/// Returns the injection of a fault.
///
/// # Errors
/// The delay of a write, which is not a fault of the server.
fn injection(fault: ApiFault) -> std::result::Result<Injection, Duration> {
    let millis = |millis: u16| Duration::from_millis(millis.into());
    Ok(match fault {
        ApiFault::Conflicts { every } => Fault::Conflict.every(every.into()),
        ApiFault::TooManyRequests { seconds } => {
            let retry_after = Duration::from_secs(seconds.into());
            Fault::TooManyRequests { retry_after }.into()
        }
        ApiFault::Unauthorized => Fault::Unauthorized.into(),
        ApiFault::Forbidden => Fault::Forbidden.into(),
        ApiFault::InternalErrors { every } => Fault::InternalError.every(every.into()),
        ApiFault::Unavailable => Fault::Unavailable.into(),
        ApiFault::Slow { millis: by } => Fault::Slow(millis(by)).into(),
        ApiFault::LoseResponses { every } => Fault::LoseResponse.every(every.into()),
        ApiFault::Outage => Fault::Disconnect.into(),
        ApiFault::Silence => Fault::Silence.into(),
        ApiFault::CutWatches { inside_line } => Fault::CutWatch { inside_line }.into(),
        ApiFault::ExpireWatches => Fault::ExpireWatch.into(),
        ApiFault::FailWatches => Fault::FailWatch.into(),
        ApiFault::WithholdBookmarks => Fault::WithholdBookmarks.into(),
        ApiFault::DelayEvents {
            millis: by,
            coalesce,
        } => Fault::DelayEvents {
            by: millis(by),
            coalesce,
        }
        .into(),
        ApiFault::StaleLists { versions } => Fault::StaleList {
            versions: versions.into(),
        }
        .into(),
        ApiFault::Late { millis: by } => return Err(millis(by)),
    })
}

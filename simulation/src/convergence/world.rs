//! One run: the APIs, the programs, and a sequence of steps.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use apiserver::{Fault, Injection};
use http::Method;
use serde_json::{Value, json};

use super::apis::{Apis, LEASES};
use super::kinds::{Kind, NAMESPACE, Side, is_deleting, list};
use super::program::{CONTROLLER, Program};
use super::record::Record;
use super::replicas::Replicas;
use super::step::{
    Backends, CLUSTERS, Class, REPLICAS, RemedySpec, SERVICES, Step, Trouble, Verdict,
};

/// Karmada's finalizer on clusters.
const CLUSTER_FINALIZER: &str = "karmada.io/cluster-controller";
/// Somebody else's, on ingresses.
const HOLD: &str = "example.com/hold";

/// The classes' names, the first of which is ours at first.
const CLASSES: [&str; 2] = ["karmada-rs", "other"];

/// Everything that runs.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) apis: Apis,
    pub(crate) replicas: Replicas,
    /// The statuses that each cluster has had.
    statuses: BTreeMap<u8, Vec<Value>>,
}

pub(crate) fn cluster_name(cluster: u8) -> String {
    format!("m{cluster}")
}

pub(crate) fn service_name(service: u8) -> &'static str {
    if service == 0 { "web" } else { "api" }
}

pub(crate) fn ingress_name(ingress: u8) -> String {
    format!("i{ingress}")
}

fn remedy_name(remedy: u8) -> String {
    format!("r{remedy}")
}

fn class_name(class: u8) -> &'static str {
    CLASSES[usize::from(class) % CLASSES.len()]
}

fn cluster_names(bits: u8) -> Vec<String> {
    (0..CLUSTERS)
        .filter(|n| bits & (1 << n) != 0)
        .map(cluster_name)
        .collect()
}

impl World {
    /// Two members, both Services in them, an ingress of ours, and no Remedy. No program runs.
    pub(crate) async fn new(apis: Apis, record: Record) -> Result<Self> {
        apis.lay_out().await?;
        let mut world = Self {
            apis,
            replicas: Replicas::new(record),
            statuses: BTreeMap::new(),
        };
        for cluster in 0..2 {
            world.take(&Step::Join { cluster }).await?;
        }
        for service in 0..SERVICES {
            world
                .take(&Step::Template {
                    service,
                    ports: Some(0),
                })
                .await?;
            world
                .take(&Step::Bind {
                    service,
                    to: 0b11,
                    applied: 0,
                })
                .await?;
            for cluster in 0..2 {
                world
                    .take(&Step::Collect {
                        service,
                        cluster,
                        endpoints: Some(0),
                    })
                    .await?;
            }
        }
        world
            .take(&Step::PutClass {
                class: 0,
                ours: true,
                default: false,
            })
            .await?;
        let (class, backends) = (Class::Named(0), Backends::Rule(0));
        world
            .take(&Step::PutIngress {
                ingress: 0,
                class,
                backends,
            })
            .await?;
        Ok(world)
    }

    /// Starts every replica.
    pub(crate) async fn start_all(&mut self) -> Result<()> {
        for program in Program::ALL {
            for replica in 0..REPLICAS {
                self.replicas.start(&self.apis, program, replica).await?;
            }
        }
        Ok(())
    }

    /// Has a step happen.
    #[expect(clippy::too_many_lines, reason = "one arm for each step")]
    pub(crate) async fn take(&mut self, step: &Step) -> Result<()> {
        let apis = &self.apis;
        match step {
            Step::Join { cluster } => {
                let name = cluster_name(*cluster);
                if apis.object(Kind::Cluster, &name).await?.is_none() {
                    let metadata = json!({ "finalizers": [CLUSTER_FINALIZER] });
                    let object = json!({ "metadata": metadata, "spec": {} });
                    apis.put(Kind::Cluster, &name, object).await?;
                    self.condition(*cluster, false, Some(Verdict::Healthy))
                        .await?;
                }
            }
            Step::Leave { cluster } => {
                apis.delete(Kind::Cluster, &cluster_name(*cluster)).await?;
            }
            Step::LetGo { cluster } => {
                self.let_go(Kind::Cluster, &cluster_name(*cluster), CLUSTER_FINALIZER)
                    .await?;
            }
            Step::Condition {
                cluster,
                reporter,
                status,
            } => {
                self.condition(*cluster, *reporter, *status).await?;
            }
            Step::RewriteStatus { cluster, age } => self.rewrite_status(*cluster, *age).await?,
            Step::PutRemedy { remedy, spec } => {
                let object = json!({ "spec": spec.json() });
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
                let object = ingress_object(*ingress, *class, *backends);
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
                let controller = if *ours {
                    CONTROLLER
                } else {
                    "example.com/other"
                };
                let annotation = "ingressclass.kubernetes.io/is-default-class";
                let object = json!({
                    "metadata": { "annotations": { annotation: default.to_string() } },
                    "spec": { "controller": controller },
                });
                apis.put(Kind::IngressClass, name, object).await?;
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
                        let mut spec = found["spec"].clone();
                        spec["ports"] = service_ports(*ports);
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
                trouble,
                seconds,
            } => {
                let side = if *gateway {
                    Side::Gateway
                } else {
                    Side::Karmada
                };
                // The steps' own requests are spared.
                let client = program.map_or("-controller", Program::name);
                let lasting = Duration::from_secs((*seconds).into());
                match injection(*trouble) {
                    Ok(injection) => {
                        let injection = injection.client(client).lasting(lasting);
                        let injection = about
                            .iter()
                            .fold(injection, |injection, about| injection.kind(about.plural()));
                        apis.inject(side, injection);
                    }
                    Err(late) => {
                        let concerned = |one: &Program| program.is_none_or(|p| p == *one);
                        for one in Program::ALL.into_iter().filter(concerned) {
                            apis.delays(side, one).add(late);
                        }
                    }
                }
            }
            Step::Mend => apis.mend(),
            Step::Wait { millis } => {
                tokio::time::sleep(Duration::from_millis((*millis).into())).await;
            }
        }
        self.remember().await
    }

    /// Notes the statuses of the clusters.
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

    async fn condition(&self, cluster: u8, reporter: bool, verdict: Option<Verdict>) -> Result<()> {
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
            conditions.push(json!({
                "type": kind, "status": verdict.to_string(), "reason": "Simulated",
                "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
            }));
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
            return self.let_go(kind, name, HOLD).await;
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

    async fn let_go(&self, kind: Kind, name: &str, finalizer: &str) -> Result<()> {
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
        let clusters: Vec<Value> = cluster_names(to)
            .iter()
            .map(|name| json!({ "name": name }))
            .collect();
        let applied: Vec<Value> = cluster_names(applied)
            .iter()
            .map(|name| json!({ "clusterName": name, "applied": true }))
            .collect();
        let spec = json!({
            "resource": {
                "apiVersion": "v1", "kind": "Service", "namespace": NAMESPACE, "name": service,
            },
            "clusters": clusters,
        });
        self.apis
            .put(Kind::Binding, &name, json!({ "spec": spec }))
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
        let addresses: Vec<Value> = (0..=endpoints)
            .skip(usize::from(endpoints == 2) * 3)
            .map(|n| json!({ "addresses": [format!("10.{cluster}.{service}.{n}")] }))
            .collect();
        let object = json!({
            "metadata": {
                "labels": {
                    "kubernetes.io/service-name": format!("derived-{}", service_name(service)),
                    "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.karmada.io",
                },
                "annotations": {
                    "work.karmada.io/namespace": format!("karmada-es-{}", cluster_name(cluster)),
                },
            },
            "addressType": "IPv4",
            "endpoints": addresses,
            "ports": [{ "name": "http", "port": 8080 + u16::from(endpoints), "protocol": "TCP" }],
        });
        self.apis.put(Kind::EndpointSlice, &name, object).await
    }
}

/// The fault of an API; or how late a write reaches it.
fn injection(trouble: Trouble) -> std::result::Result<Injection, Duration> {
    let millis = |millis: u16| Duration::from_millis(millis.into());
    Ok(match trouble {
        Trouble::Conflicts { every } => Fault::Conflict.every(every.into()),
        Trouble::TooManyRequests { seconds } => {
            let retry_after = Duration::from_secs(seconds.into());
            Fault::TooManyRequests { retry_after }.into()
        }
        Trouble::InternalErrors { every } => Fault::InternalError.every(every.into()),
        Trouble::Unavailable => Fault::Unavailable.into(),
        Trouble::Slow { millis: by } => Fault::Slow(millis(by)).into(),
        Trouble::LoseAnswers { every } => Fault::LoseAnswer.every(every.into()),
        Trouble::Outage => Fault::Disconnect.into(),
        Trouble::Silence => Fault::Silence.into(),
        Trouble::CutWatches { inside_line } => Fault::CutWatch { inside_line }.into(),
        Trouble::ExpireWatches => Fault::ExpireWatch.into(),
        Trouble::WithholdBookmarks => Fault::WithholdBookmarks.into(),
        Trouble::DelayEvents {
            millis: by,
            coalesce,
        } => Fault::DelayEvents {
            by: millis(by),
            coalesce,
        }
        .into(),
        Trouble::StaleLists { versions } => Fault::StaleList {
            versions: versions.into(),
        }
        .into(),
        Trouble::Late { millis: by } => return Err(millis(by)),
    })
}

fn condition_type(reporter: bool) -> &'static str {
    if reporter {
        "HealthReporterReady"
    } else {
        "ServiceDomainNameResolutionReady"
    }
}

impl RemedySpec {
    fn json(&self) -> Value {
        let mut spec = json!({});
        if let Some(bits) = self.clusters {
            spec["clusterAffinity"] = json!({ "clusterNames": cluster_names(bits) });
        }
        if let Some(matches) = &self.matches {
            let matches = matches.iter().map(|one| {
                json!({ "clusterConditionMatch": {
                    "conditionType": condition_type(one.reporter),
                    "operator": if one.equal { "Equal" } else { "NotEqual" },
                    "conditionStatus": one.status.to_string(),
                } })
            });
            spec["decisionMatches"] = matches.collect();
        }
        let actions = ["TrafficControl", "Cordon"].into_iter().enumerate();
        let asked = actions.filter(|(n, _)| self.actions & (1 << n) != 0);
        spec["actions"] = asked.map(|(_, action)| json!(action)).collect();
        spec
    }
}

fn service_ports(variant: u8) -> Value {
    let http = json!({ "name": "http", "port": 80, "protocol": "TCP", "targetPort": 8080 });
    let https = json!({ "name": "https", "port": 443, "protocol": "TCP", "targetPort": 8443 });
    match variant {
        0 => json!([http]),
        1 => json!([http, https]),
        _ => json!([https]),
    }
}

fn ingress_object(ingress: u8, class: Class, backends: Backends) -> Value {
    let backend = |service: u8, port: Value| json!({ "service": { "name": service_name(service), "port": port } });
    let rule = |service: u8| {
        json!([{
            "host": format!("i{ingress}.example.com"),
            "http": { "paths": [{
                "path": "/", "pathType": "Prefix",
                "backend": backend(service, json!({ "number": 80 })),
            }] },
        }])
    };
    let named = json!({ "name": "http" });
    let mut spec = match backends {
        Backends::Rule(service) => json!({ "rules": rule(service) }),
        Backends::Default(service) => json!({ "defaultBackend": backend(service, named) }),
        Backends::Both => json!({ "rules": rule(0), "defaultBackend": backend(1, named) }),
    };
    if let Class::Named(class) = class {
        spec["ingressClassName"] = json!(class_name(class));
    }
    json!({ "spec": spec })
}

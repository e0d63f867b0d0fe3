//! A small fleet: a Karmada API, a gateway API, and what users put there. Our programs run against
//! it with the rights that `manifests/` gives them, and no other.

use std::{ffi::OsString, fmt::Debug, net::SocketAddr, path::PathBuf, time::Duration};

use anyhow::{Context, Result, bail};
use api::{
    Cluster, MultiClusterIngress, Remedy, ResourceBinding, TRAFFIC_CONTROL, condition::DNS_READY,
    execution_namespace,
};
use futures::StreamExt;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::{
    core::v1::Service,
    discovery::v1::EndpointSlice,
    events::v1::Event,
    networking::v1::{Ingress, IngressClass},
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
    runtime::{
        WatchStreamExt,
        watcher::{Config, watcher},
    },
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use crate::{
    control_plane::{ControlPlane, Options},
    crds, manifests, netns,
    programs::{self, Profile, Program, Running},
    served::Served,
    wait::until,
};

const NOTED_WITHIN: Duration = Duration::from_mins(1);

/// The namespace of the users' objects.
pub const NAMESPACE: &str = "shop";
/// The Service behind the ingress.
pub const SERVICE: &str = "web";
/// The ingress.
pub const INGRESS: &str = "shop";
/// The host it serves.
pub const HOST: &str = "shop.example.com";
/// Where the gateway's proxy listens.
pub const PROXY: &str = "10.244.0.80:80";
/// The class of the gateway's own ingress controller.
pub const GATEWAY_CLASS: &str = "traefik";

/// A Cluster as a real Karmada serves it.
const CLUSTER: &str = include_str!("../fixtures/cluster.json");

/// A member cluster: `member1`, `member2`, …
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member(pub u8);

impl Member {
    /// Its name.
    pub fn name(self) -> String {
        format!("member{}", self.0)
    }

    /// Where its DNS server answers.
    pub fn dns(self) -> SocketAddr {
        SocketAddr::from(([10, 244, self.0, 53], 53))
    }

    /// Where its instance of the Service answers.
    pub fn backend(self) -> SocketAddr {
        SocketAddr::from(([10, 244, self.0, 10], 8080))
    }
}

/// Runs the body of the test `name` with our programs built, [isolated](netns::isolated).
///
/// # Panics
/// When the body fails, the programs do not build, or namespaces cannot be made here.
pub fn isolated(name: &str, body: impl AsyncFnOnce() -> Result<()>) {
    if !netns::inside()
        && let Err(error) = programs::build(Profile::Debug)
    {
        #[expect(clippy::panic, reason = "this is how a test fails")]
        {
            panic!("{error:#}");
        }
    }
    netns::isolated(name, body);
}

/// The two APIs of a fleet. Dropping it ends them.
pub struct Fleet {
    /// The Karmada API: a plain API server with Karmada's kinds.
    pub karmada: ControlPlane,
    /// The API of the cluster whose proxy serves the ingresses.
    pub gateway: ControlPlane,
    /// What the gateway has been told to serve.
    pub served: Served,
    profile: Profile,
}

impl Fleet {
    /// Starts both APIs and installs what a user installs; there is no cluster yet.
    pub async fn start(profile: Profile) -> Result<Self> {
        let (karmada, gateway) = tokio::try_join!(
            ControlPlane::start(Options::named("karmada")),
            ControlPlane::start(Options::named("gateway")),
        )?;
        karmada.install_crds(&crds::karmada()).await?;
        for file in [
            "karmada/namespace.yaml",
            "karmada/remedy-controller.yaml",
            "karmada/ingress-controller.yaml",
            "karmada/ingressclass.yaml",
        ] {
            manifests::apply(&karmada.client(), file).await?;
        }
        manifests::apply(&gateway.client(), "gateway/ingress-controller.yaml").await?;
        karmada.namespace(NAMESPACE).await?;
        let served = Served::watch(gateway.client(), NAMESPACE);
        Ok(Self {
            karmada,
            gateway,
            served,
            profile,
        })
    }

    /// Starts both APIs, with these clusters, the Service in all of them, and the ingress.
    pub async fn with_members(profile: Profile, members: &[Member]) -> Result<Self> {
        let fleet = Self::start(profile).await?;
        for member in members {
            fleet.join(*member).await?;
        }
        fleet.place(members).await?;
        fleet.create_ingress(INGRESS, "karmada-rs").await?;
        Ok(fleet)
    }

    /// A member joins the fleet, as Karmada records it, without a verdict and without actions.
    pub async fn join(&self, member: Member) -> Result<()> {
        let name = member.name();
        let mut cluster: Value = serde_json::from_str(CLUSTER)?;
        cluster["metadata"] = json!({ "name": name });
        let mut status = cluster["status"].take();
        status["remedyActions"] = Value::Null;
        if let Some(conditions) = status["conditions"].as_array_mut() {
            conditions.retain(|condition| condition["type"] != DNS_READY);
        }
        let resource = ApiResource::erase::<Cluster>(&());
        let clusters: Api<DynamicObject> = Api::all_with(self.karmada.client(), &resource);
        let cluster = serde_json::from_value(cluster)?;
        clusters.create(&PostParams::default(), &cluster).await?;
        let status = Patch::Merge(json!({ "status": status }));
        clusters
            .patch_status(&name, &PatchParams::default(), &status)
            .await?;
        self.karmada.namespace(&execution_namespace(&name)).await?;
        manifests::apply_edited(&self.karmada.client(), "karmada/agent.yaml", |text| {
            text.replace("member1", &name)
        })
        .await
    }

    /// Places the Service in exactly these clusters: its template, its binding, and the endpoints
    /// that Karmada collects.
    pub async fn place(&self, members: &[Member]) -> Result<()> {
        let client = self.karmada.client();
        let services: Api<Service> = Api::namespaced(client.clone(), NAMESPACE);
        let port = json!({ "name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP" });
        apply(&services, SERVICE, json!({ "spec": { "ports": [port] } })).await?;

        let bindings: Api<ResourceBinding> = Api::namespaced(client.clone(), NAMESPACE);
        let clusters: Vec<Value> = members
            .iter()
            .map(|member| json!({ "name": member.name() }))
            .collect();
        let resource = json!({ "apiVersion": "v1", "kind": "Service", "namespace": NAMESPACE, "name": SERVICE });
        let spec = json!({ "spec": { "resource": resource, "clusters": clusters } });
        apply(&bindings, &format!("{SERVICE}-service"), spec).await?;

        let slices: Api<EndpointSlice> = Api::namespaced(client, NAMESPACE);
        for member in members {
            let backend = member.backend();
            let slice = json!({
                "metadata": {
                    "labels": {
                        "kubernetes.io/service-name": format!("derived-{SERVICE}"),
                        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.karmada.io",
                    },
                    "annotations": { "work.karmada.io/namespace": execution_namespace(&member.name()) },
                },
                "addressType": "IPv4",
                "endpoints": [{ "addresses": [backend.ip()], "conditions": { "ready": true } }],
                "ports": [{ "name": "http", "port": backend.port(), "protocol": "TCP" }],
            });
            apply(
                &slices,
                &format!("imported-{}-{SERVICE}", member.name()),
                slice,
            )
            .await?;
        }
        Ok(())
    }

    /// Makes an ingress of that class for the Service.
    pub async fn create_ingress(&self, name: &str, class: &str) -> Result<()> {
        let ingress = serde_json::from_value(json!({
            "apiVersion": "networking.karmada.io/v1alpha1",
            "kind": "MultiClusterIngress",
            "metadata": { "name": name },
            "spec": {
                "ingressClassName": class,
                "rules": [{ "host": HOST, "http": { "paths": [{
                    "path": "/",
                    "pathType": "Prefix",
                    "backend": { "service": { "name": SERVICE, "port": { "number": 80 } } },
                }] } }],
            },
        }))?;
        self.ingresses()
            .create(&PostParams::default(), &ingress)
            .await?;
        Ok(())
    }

    /// Makes a remedy from its spec.
    pub async fn create_remedy(&self, name: &str, spec: Value) -> Result<()> {
        let remedy = Remedy::new(name, serde_json::from_value(spec)?);
        self.remedies()
            .create(&PostParams::default(), &remedy)
            .await?;
        Ok(())
    }

    /// Deletes a remedy.
    pub async fn delete_remedy(&self, name: &str) -> Result<()> {
        self.remedies()
            .delete(name, &DeleteParams::default())
            .await?;
        Ok(())
    }

    /// Starts the remedy controller.
    pub async fn remedy_controller(&self) -> Result<Running> {
        let kubeconfig = account(&self.karmada, "karmada-system", "remedy-controller")?;
        self.run(
            Program::RemedyController,
            [flag("--kubeconfig", kubeconfig)],
        )
        .await
    }

    /// Starts the ingress controller with the `kubernetes` provider.
    pub async fn ingress_controller(&self) -> Result<Running> {
        let karmada = account(&self.karmada, "karmada-system", "ingress-controller")?;
        let gateway = account(&self.gateway, "karmada-rs", "ingress-controller")?;
        let flags = [
            flag("--kubeconfig", karmada),
            "--provider=kubernetes".into(),
            flag("--gateway-kubeconfig", gateway),
            flag("--gateway-ingress-class", GATEWAY_CLASS),
        ];
        self.run(Program::IngressController, flags).await
    }

    /// Starts the agent of a member, with these flags besides those that say which it is.
    pub async fn agent(&self, member: Member, flags: &[String]) -> Result<Running> {
        let name = member.name();
        let namespace = execution_namespace(&name);
        let kubeconfig = account(&self.karmada, &namespace, "cluster-health-agent")?;
        let own = [
            flag("--karmada-kubeconfig", kubeconfig),
            flag("--cluster-name", &name),
            flag("--host-name", format!("{name}-node1")),
            flag("--nameserver", member.dns().to_string()),
        ];
        self.run(
            Program::Agent,
            own.into_iter().chain(flags.iter().map(Into::into)),
        )
        .await
    }

    /// The gateway's class, and a kubeconfig with which its proxy may read everything.
    pub async fn proxy_access(&self) -> Result<PathBuf> {
        let classes: Api<IngressClass> = Api::all(self.gateway.client());
        let class = json!({ "spec": { "controller": "traefik.io/ingress-controller" } });
        apply(&classes, GATEWAY_CLASS, class).await?;
        self.gateway.kubeconfig_for("proxy", Some("system:masters"))
    }

    /// Gives the namespace that this process is in the addresses of the members and the proxy, and
    /// a resolv.conf as pods have it.
    pub fn lay_network(members: &[Member]) -> Result<()> {
        let proxy: SocketAddr = PROXY.parse()?;
        netns::add_address(proxy.ip())?;
        for member in members {
            netns::add_address(member.dns().ip())?;
            netns::add_address(member.backend().ip())?;
        }
        netns::mount_resolv_conf(
            "search default.svc.cluster.local svc.cluster.local cluster.local\n\
             nameserver 10.96.0.10\noptions ndots:5\n",
        )
    }

    /// Waits until a condition of a member has this status, and says when it had.
    pub async fn has_condition(&self, member: Member, kind: &str, status: &str) -> Result<Instant> {
        let what = format!("{kind} {status}");
        let is = |cluster: Option<&Cluster>| {
            let condition = cluster.and_then(|cluster| cluster.condition(kind));
            condition.is_some_and(|condition| condition.status == status)
        };
        until(&self.clusters(), &member.name(), &what, is).await
    }

    /// Waits until a member has exactly these remedy actions, and says when it had.
    pub async fn has_actions(&self, member: Member, actions: &[&str]) -> Result<Instant> {
        let what = format!("with the actions {actions:?}");
        let is = |cluster: Option<&Cluster>| {
            cluster.is_some_and(|cluster| cluster.remedy_actions() == actions)
        };
        until(&self.clusters(), &member.name(), &what, is).await
    }

    /// Waits until exactly these members are blocked for the ingress, and says when they were.
    pub async fn has_blocked(&self, members: &[Member]) -> Result<Instant> {
        let names: Vec<String> = members.iter().map(|member| member.name()).collect();
        let what = format!("with {names:?} blocked");
        let is = |ingress: Option<&MultiClusterIngress>| {
            let status = ingress.and_then(|ingress| ingress.status.as_ref());
            let blocked = status.and_then(|status| status.traffic_block_clusters.as_ref());
            ingress.is_some() && blocked.map_or(&[][..], Vec::as_slice) == names
        };
        until(&self.ingresses(), INGRESS, &what, is).await
    }

    /// Clusters of the Karmada API.
    pub fn clusters(&self) -> Api<Cluster> {
        Api::all(self.karmada.client())
    }

    /// Ingresses of the Karmada API.
    pub fn ingresses(&self) -> Api<MultiClusterIngress> {
        Api::namespaced(self.karmada.client(), NAMESPACE)
    }

    /// Remedies of the Karmada API.
    pub fn remedies(&self) -> Api<Remedy> {
        Api::all(self.karmada.client())
    }

    /// Waits until the gateway serves the Service of exactly these members.
    pub async fn serves(&self, members: &[Member]) -> Result<()> {
        let backends: Vec<SocketAddr> = members.iter().map(|member| member.backend()).collect();
        self.served.becomes(&backends).await
    }

    /// Waits until an Event about an object of the Karmada API has `text` in its reason or note.
    pub async fn noted(&self, regarding: &str, name: &str, text: &str) -> Result<()> {
        let events: Api<Event> = Api::all(self.karmada.client());
        let mut events = std::pin::pin!(watcher(events, Config::default()).touched_objects());
        let found = async {
            while let Some(event) = events.next().await {
                let event = event?;
                let about = event.regarding.unwrap_or_default();
                let told = format!(
                    "{} {}",
                    event.reason.unwrap_or_default(),
                    event.note.unwrap_or_default()
                );
                if about.kind.as_deref() == Some(regarding)
                    && about.name.as_deref() == Some(name)
                    && told.contains(text)
                {
                    return Ok(());
                }
            }
            bail!("the watch ended")
        };
        timeout(NOTED_WITHIN, found)
            .await
            .with_context(|| format!("no Event about {regarding} {name} says {text:?}"))?
    }

    /// Makes an Ingress in the gateway that is not ours.
    pub async fn create_foreign_ingress(&self, name: &str) -> Result<Ingress> {
        self.gateway.namespace(NAMESPACE).await?;
        let ingresses: Api<Ingress> = Api::namespaced(self.gateway.client(), NAMESPACE);
        let backend = json!({ "service": { "name": "other", "port": { "number": 80 } } });
        apply(
            &ingresses,
            name,
            json!({ "spec": { "defaultBackend": backend } }),
        )
        .await?;
        self.gateway_ingress(name).await
    }

    /// An Ingress in the gateway.
    pub async fn gateway_ingress(&self, name: &str) -> Result<Ingress> {
        let ingresses: Api<Ingress> = Api::namespaced(self.gateway.client(), NAMESPACE);
        Ok(ingresses.get(name).await?)
    }

    /// The names of all objects that our provider has left in the gateway's namespace.
    pub async fn left_in_gateway(&self) -> Result<Vec<String>> {
        let client = self.gateway.client();
        let mut left = names::<Service>(&client).await?;
        left.extend(names::<EndpointSlice>(&client).await?);
        left.extend(names::<Ingress>(&client).await?);
        Ok(left)
    }

    async fn run(
        &self,
        program: Program,
        flags: impl IntoIterator<Item = OsString>,
    ) -> Result<Running> {
        let started = Running::start(program, self.profile, flags).await;
        started.with_context(|| format!("{} does not start", program.name()))
    }
}

fn flag(name: &str, value: impl Into<OsString>) -> OsString {
    let mut flag = OsString::from(format!("{name}="));
    flag.push(value.into());
    flag
}

/// The spec of a remedy that takes a member's traffic away at once.
pub fn maintenance(member: Member) -> Value {
    json!({ "clusterAffinity": { "clusterNames": [member.name()] }, "actions": [TRAFFIC_CONTROL] })
}

/// The spec of a remedy that takes the traffic of every member away whose DNS is dead.
pub fn on_dns() -> Value {
    let requirement =
        json!({ "conditionType": DNS_READY, "operator": "Equal", "conditionStatus": "False" });
    let matches = json!([{ "clusterConditionMatch": requirement }]);
    json!({ "decisionMatches": matches, "actions": [TRAFFIC_CONTROL] })
}

fn account(of: &ControlPlane, namespace: &str, name: &str) -> Result<PathBuf> {
    of.kubeconfig_for(&format!("system:serviceaccount:{namespace}:{name}"), None)
}

/// Makes an object what `object` says, whether it is there or not.
async fn apply<K>(api: &Api<K>, name: &str, mut object: Value) -> Result<()>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    object["apiVersion"] = K::api_version(&()).into();
    object["kind"] = K::kind(&()).into();
    object["metadata"]["name"] = name.into();
    let parameters = PatchParams::apply("pipeline-tests").force();
    api.patch(name, &parameters, &Patch::Apply(object)).await?;
    Ok(())
}

async fn names<K>(client: &Client) -> Result<Vec<String>>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + Debug,
{
    let api: Api<K> = Api::namespaced(client.clone(), NAMESPACE);
    let objects = api.list(&ListParams::default()).await?;
    Ok(objects.iter().map(ResourceExt::name_any).collect())
}

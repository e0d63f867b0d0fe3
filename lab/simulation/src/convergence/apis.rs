//! The two APIs, and the writes of all clients but our controllers.

use std::fmt;
use std::path::PathBuf;
use std::sync::LazyLock;

use anyhow::{Result, anyhow};
use embedded_apiserver::ApiServer;
use http::{Method, Request, StatusCode};
use karmada_runtime::client;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tower::service_fn;

use super::kinds::{Kind, NAMESPACE, Objects, Side};
use super::late::{Delays, Late};
use super::program::Role;
use crate::harness::Connections;
use crate::harness::access::Access;
use crate::harness::connection::nowhere;

/// The definitions of Karmada's kinds.
const DEFINITIONS: [&str; 4] = [
    include_str!("../../../../manifests/fleet/remedy.karmada.io_remedies.yaml"),
    include_str!("../../../../manifests/fleet/networking.karmada.io_multiclusteringresses.yaml"),
    include_str!("../../../../manifests/fleet/cluster.karmada.io_clusters.yaml"),
    include_str!("../../../../manifests/fleet/work.karmada.io_resourcebindings.yaml"),
];

/// A server with Karmada's kinds. Every run gets a fork of it, because compiling the definitions takes
/// longer than most runs.
static KARMADA: LazyLock<Result<ApiServer, String>> = LazyLock::new(|| {
    let server = ApiServer::new();
    for definition in DEFINITIONS {
        let mut definition: Value =
            serde_saphyr::from_str(definition).map_err(|error| error.to_string())?;
        loosen(&mut definition);
        let installed = server.install(&definition);
        installed.map_err(|error| error.to_string())?;
    }
    Ok(server)
});

/// Lets a definition accept any `spec`, as a later version of a kind may, and as Karmada's own does where
/// ours has rules; and any field of a Cluster's status, which several clients write.
fn loosen(definition: &mut Value) {
    let is_cluster = definition["spec"]["names"]["kind"] == "Cluster";
    for version in definition["spec"]["versions"]
        .as_array_mut()
        .into_iter()
        .flatten()
    {
        let properties = &mut version["schema"]["openAPIV3Schema"]["properties"];
        properties["spec"] = json!({ "x-kubernetes-preserve-unknown-fields": true });
        if is_cluster {
            properties["status"] =
                json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
        }
    }
}

/// The path of the leases.
pub(crate) const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/karmada-system/leases";

/// Returns the path of the lease of a program.
pub(crate) fn lease(program: Role) -> String {
    format!("{LEASES}/{}", program.name())
}

/// A server. Only the programs' clients record their requests to it.
#[derive(Clone, Debug)]
pub(crate) enum Server {
    Embedded(ApiServer),
    Real(Remote),
}

/// A real API server.
#[derive(Clone)]
pub struct Remote {
    /// A client of a cluster administrator.
    pub client: Client,
    /// The kubeconfig of a cluster administrator.
    pub kubeconfig: PathBuf,
}

impl Remote {
    async fn connect(&self, name: &str) -> Result<Client> {
        let source = client::Source {
            kubeconfig: Some(self.kubeconfig.clone()),
            ..client::Source::default()
        };
        Ok(client::connect(&source, name).await?)
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Remote").field(&self.kubeconfig).finish()
    }
}

impl Access for Server {
    async fn exchange(&self, request: Request<Body>) -> Result<(StatusCode, Value)> {
        match self {
            Self::Embedded(server) => server.exchange(request).await,
            Self::Real(remote) => remote.client.exchange(request).await,
        }
    }
}

/// Both APIs.
#[derive(Debug)]
pub(crate) struct Apis {
    karmada: Server,
    gateway: Server,
    delays: [[Delays; 2]; 2],
}

impl Apis {
    /// Creates two embedded servers.
    pub(crate) fn embedded() -> Result<Self> {
        let karmada = KARMADA.as_ref().map_err(|error| anyhow!("{error}"))?;
        Ok(Self {
            karmada: Server::Embedded(karmada.fork()),
            gateway: Server::Embedded(ApiServer::new()),
            delays: Default::default(),
        })
    }

    /// Uses two real servers; Karmada's kinds are installed on the first.
    pub(crate) fn real(karmada: Remote, gateway: Remote) -> Self {
        Self {
            karmada: Server::Real(karmada),
            gateway: Server::Real(gateway),
            delays: Default::default(),
        }
    }

    /// Creates the namespaces that the objects and the leases need.
    pub(crate) async fn lay_out(&self) -> Result<()> {
        for namespace in ["karmada-system", NAMESPACE] {
            self.karmada.create_namespace(namespace).await?;
        }
        Ok(())
    }

    /// Returns the access to an API that injected faults do not affect.
    pub(crate) fn access(&self, side: Side) -> &Server {
        match side {
            Side::Karmada => &self.karmada,
            Side::Gateway => &self.gateway,
        }
    }

    /// Connects a process to an API. Requests to an embedded server are recorded.
    pub(crate) async fn client(
        &self,
        side: Side,
        connections: &Connections<Role>,
    ) -> Result<Client> {
        let program = connections.process.program;
        Ok(match self.access(side) {
            Server::Embedded(server) => {
                let late = Late {
                    service: server.service(),
                    delays: self.delays(side, program),
                };
                let service = service_fn(move |request| late.clone().send(request));
                connections.client(side.into(), service)?
            }
            Server::Real(remote) => remote.connect(program.name()).await?,
        })
    }

    /// Connects a program to Karmada of which no request is recorded or judged.
    pub(crate) async fn unrecorded(&self, name: &str) -> Result<Client> {
        Ok(match &self.karmada {
            Server::Embedded(server) => client::with_service(server.service(), nowhere(), name)?,
            Server::Real(remote) => remote.connect(name).await?,
        })
    }

    /// Returns the delays of a program's writes to an API.
    pub(crate) fn delays(&self, side: Side, program: Role) -> Delays {
        self.delays[side as usize][program as usize].clone()
    }

    /// Returns the delays of all writes.
    pub(crate) fn all_delays(&self) -> impl Iterator<Item = &Delays> {
        self.delays.iter().flatten()
    }

    /// Returns the embedded server of an API.
    pub(crate) fn embedded_server(&self, side: Side) -> Option<ApiServer> {
        match self.access(side) {
            Server::Embedded(server) => Some(server.clone()),
            Server::Real(_) => None,
        }
    }

    /// Reads one object.
    pub(crate) async fn object(&self, kind: Kind, name: &str) -> Result<Option<Value>> {
        self.access(kind.side()).get(&kind.path(name)).await
    }

    /// Reads every object that the controllers read or write.
    pub(crate) async fn objects(&self) -> Result<Objects> {
        let mut objects = Objects::new();
        for kind in Kind::ALL {
            let access = self.access(kind.side());
            let of_kind = access.by_name(&kind.collection()).await?.into_iter();
            objects.extend(of_kind.map(|(name, object)| ((kind, name), object)));
        }
        Ok(objects)
    }

    /// Creates or replaces an object. Metadata that `object` does not set is kept.
    pub(crate) async fn put(&self, kind: Kind, name: &str, mut object: Value) -> Result<()> {
        let (api_version, _, kind_name) = kind.names();
        object["apiVersion"] = api_version.into();
        object["kind"] = kind_name.into();
        object["metadata"]["name"] = name.into();
        let access = self.access(kind.side());
        let Some(found) = self.object(kind, name).await? else {
            access.create(&kind.collection(), &object).await?;
            return Ok(());
        };
        for (key, value) in found["metadata"].as_object().into_iter().flatten() {
            if object["metadata"].get(key).is_none() {
                object["metadata"][key] = value.clone();
            }
        }
        let path = kind.path(name);
        access.write(Method::PUT, &path, &object).await?;
        Ok(())
    }

    pub(crate) async fn delete(&self, kind: Kind, name: &str) -> Result<()> {
        self.access(kind.side()).delete(&kind.path(name)).await
    }
}

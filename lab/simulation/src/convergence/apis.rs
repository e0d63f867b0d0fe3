//! The two APIs, and everybody who writes to them besides our controllers.

use std::fmt;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use apiserver::{ApiServer, Injection};
use axum::body::Body;
use http::{Method, Request, StatusCode, header};
use http_body_util::BodyExt;
use karmada_runtime::client;
use kube::{Client, Config};
use serde_json::{Value, json};
use tower::Service;

use super::kinds::{Kind, NAMESPACE, Objects, Side};
use super::program::{Process, Program};
use super::record::{Delays, Record, Recorded};

/// What makes an API a Karmada API.
const DEFINITIONS: [&str; 4] = [
    include_str!("../../../../manifests/crds/remedy.karmada.io_remedies.yaml"),
    include_str!("../../../../manifests/crds/networking.karmada.io_multiclusteringresses.yaml"),
    include_str!("../../../../tests/crds/cluster.karmada.io_clusters.yaml"),
    include_str!("../../../../tests/crds/work.karmada.io_resourcebindings.yaml"),
];

/// Where the leases are.
pub(crate) const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/karmada-system/leases";

/// A server, as it is reached by everybody but the programs.
#[derive(Clone, Debug)]
enum Server {
    Embedded(ApiServer),
    Real(Remote),
}

/// A real API server.
#[derive(Clone)]
pub struct Remote {
    /// With every right.
    pub client: Client,
    /// Of a user with every right.
    pub kubeconfig: PathBuf,
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Remote").field(&self.kubeconfig).finish()
    }
}

/// A way to an API that no fault touches.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    server: Server,
}

impl Access {
    /// Sends a request and reads the whole answer.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<(StatusCode, Value)> {
        let kind = match method {
            Method::PATCH => "application/merge-patch+json",
            _ => "application/json",
        };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::USER_AGENT, "simulation")
            .header(header::CONTENT_TYPE, kind);
        let body = body.map(Value::to_string).unwrap_or_default();
        let (status, body) = match &self.server {
            Server::Embedded(server) => {
                let answer = server
                    .service()
                    .call(request.body(Body::from(body))?)
                    .await?;
                (
                    answer.status(),
                    answer.into_body().collect().await?.to_bytes(),
                )
            }
            Server::Real(remote) => {
                let request = request.body(kube::client::Body::from(body.into_bytes()))?;
                let answer = remote.client.send(request).await?;
                (
                    answer.status(),
                    answer.into_body().collect().await?.to_bytes(),
                )
            }
        };
        Ok((status, serde_json::from_slice(&body)?))
    }

    /// Reads; none: it does not exist.
    pub(crate) async fn get(&self, path: &str) -> Result<Option<Value>> {
        let (status, body) = self.send(Method::GET, path, None).await?;
        if status == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        ensure!(status.is_success(), "GET {path}: {body}");
        Ok(Some(body))
    }

    /// Writes. What is not there, is there already or was changed meanwhile is no error.
    pub(crate) async fn write(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Option<Value>> {
        let (status, answer) = self.send(method.clone(), path, body).await?;
        match status {
            StatusCode::NOT_FOUND | StatusCode::CONFLICT => Ok(None),
            status => {
                ensure!(status.is_success(), "{method} {path} of {body:?}: {answer}");
                Ok(Some(answer))
            }
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
    /// Two embedded servers.
    ///
    /// # Errors
    /// When they do not take the kinds of Karmada.
    pub(crate) fn embedded() -> Result<Self> {
        let karmada = ApiServer::new();
        for definition in DEFINITIONS {
            karmada.install(&serde_saphyr::from_str(definition)?)?;
        }
        Ok(Self {
            karmada: Server::Embedded(karmada),
            gateway: Server::Embedded(ApiServer::new()),
            delays: Default::default(),
        })
    }

    /// Two real ones, of which the first has the kinds of Karmada.
    pub(crate) fn real(karmada: Remote, gateway: Remote) -> Self {
        Self {
            karmada: Server::Real(karmada),
            gateway: Server::Real(gateway),
            delays: Default::default(),
        }
    }

    /// Makes the namespaces that users make.
    pub(crate) async fn lay_out(&self) -> Result<()> {
        for namespace in ["karmada-system", NAMESPACE] {
            let body = json!({
                "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace },
            });
            let access = self.access(Side::Karmada);
            access
                .write(Method::POST, "/api/v1/namespaces", Some(&body))
                .await?;
        }
        Ok(())
    }

    fn server(&self, side: Side) -> &Server {
        match side {
            Side::Karmada => &self.karmada,
            Side::Gateway => &self.gateway,
        }
    }

    pub(crate) fn access(&self, side: Side) -> Access {
        Access {
            server: self.server(side).clone(),
        }
    }

    /// A program's own way to an API. What goes over one to an embedded server is recorded.
    pub(crate) async fn client(
        &self,
        side: Side,
        process: Process,
        record: &Record,
    ) -> Result<Client> {
        let name = process.program.name();
        Ok(match self.server(side) {
            Server::Embedded(server) => {
                let service = Recorded {
                    inner: server.service(),
                    record: record.clone(),
                    process,
                    side,
                    delays: self.delays(side, process.program),
                };
                let config = Config::new(http::Uri::from_static("http://api"));
                client::with_service(service, config, name)?
            }
            Server::Real(remote) => {
                let kubeconfig = Some(remote.kubeconfig.clone());
                let source = client::Source {
                    kubeconfig,
                    ..client::Source::default()
                };
                client::connect(&source, name).await?
            }
        })
    }

    /// Begins a fault. A real server has none.
    pub(crate) fn inject(&self, side: Side, injection: Injection) {
        if let Server::Embedded(server) = self.server(side) {
            server.faults().inject(injection);
        }
    }

    /// How late the writes of a program reach an API.
    pub(crate) fn delays(&self, side: Side, program: Program) -> Delays {
        self.delays[side as usize][program as usize].clone()
    }

    /// Ends all that ails them.
    pub(crate) fn mend(&self) {
        for server in [&self.karmada, &self.gateway] {
            if let Server::Embedded(server) = server {
                server.faults().clear();
            }
        }
        self.delays.iter().flatten().for_each(Delays::clear);
    }

    /// Reads one object.
    pub(crate) async fn object(&self, kind: Kind, name: &str) -> Result<Option<Value>> {
        self.access(kind.side()).get(&kind.path(name)).await
    }

    /// Every object that decides something, or is decided.
    pub(crate) async fn objects(&self) -> Result<Objects> {
        let mut objects = Objects::new();
        for kind in Kind::ALL {
            let access = self.access(kind.side());
            let mut list = access.get(&kind.collection()).await?.unwrap_or_default();
            let items = list["items"]
                .as_array_mut()
                .context("a list without items")?;
            for item in std::mem::take(items) {
                let name = super::kinds::name(&item).to_owned();
                objects.insert((kind, name), item);
            }
        }
        Ok(objects)
    }

    /// Makes an object what `object` says but for what only the API says, whether it is there or not.
    pub(crate) async fn put(&self, kind: Kind, name: &str, mut object: Value) -> Result<()> {
        let (api_version, _, word) = kind.names();
        object["apiVersion"] = api_version.into();
        object["kind"] = word.into();
        object["metadata"]["name"] = name.into();
        let access = self.access(kind.side());
        match self.object(kind, name).await? {
            None => {
                access
                    .write(Method::POST, &kind.collection(), Some(&object))
                    .await?
            }
            Some(found) => {
                for (key, value) in found["metadata"].as_object().into_iter().flatten() {
                    if object["metadata"].get(key).is_none() {
                        object["metadata"][key] = value.clone();
                    }
                }
                access
                    .write(Method::PUT, &kind.path(name), Some(&object))
                    .await?
            }
        };
        Ok(())
    }

    pub(crate) async fn delete(&self, kind: Kind, name: &str) -> Result<()> {
        let access = self.access(kind.side());
        access.write(Method::DELETE, &kind.path(name), None).await?;
        Ok(())
    }
}

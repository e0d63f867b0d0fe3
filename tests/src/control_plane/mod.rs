//! A Kubernetes API for a test: etcd and kube-apiserver on this machine, or the embedded API server
//! in the process of the test, behind one interface.

mod embedded;
mod real;
mod token;

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use http::Request;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::{
    Api, Client,
    api::{ObjectMeta, PostParams},
};
use serde_json::json;
use tempfile::TempDir;

use self::{
    embedded::Embedded,
    real::{Real, TOKEN},
};
use crate::{
    api_proxy::ApiProxy,
    certs::Authority,
    crds,
    kubeconfig::{self, Access},
    manifests, scratch,
    writes::{self, WriteCounts},
};

/// The implementation of an API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiKind {
    /// The crate `embedded-apiserver` in the process of the test: in memory, without authentication, and with
    /// every right for everyone.
    Embedded,
    /// The same by TLS, where each connection over HTTP/2 carries as many streams as kube-apiserver allows.
    EmbeddedByTls,
    /// etcd and kube-apiserver, with RBAC. Their binaries must have been
    /// [built](tools::build).
    Real,
}

/// A running API on 127.0.0.1. Dropping it ends its processes and removes its files.
pub struct ControlPlane {
    access: Access,
    kubeconfig: PathBuf,
    client: Client,
    backing: Backing,
    proxy: Option<(ApiProxy, SocketAddr)>,
    folder: TempDir,
}

enum Backing {
    Embedded(Embedded),
    Real(Box<Real>),
}

impl ControlPlane {
    /// Starts an API, with this name in logs and kubeconfigs, and waits until it is ready.
    pub async fn start(name: &str, server: ApiKind) -> Result<Self> {
        let folder = scratch::folder(name)?;
        let (backing, address, authority) = match server {
            ApiKind::Embedded => {
                let embedded = Embedded::start(None)?;
                let address = embedded.address();
                (Backing::Embedded(embedded), address, None)
            }
            ApiKind::EmbeddedByTls => {
                let authority = Authority::new(&format!("{name} authority"))?;
                let embedded = Embedded::start(Some(authority.acceptor()?))?;
                let address = embedded.address();
                (Backing::Embedded(embedded), address, Some(authority))
            }
            ApiKind::Real => {
                let authority = Authority::new(&format!("{name} authority"))?;
                let real = Real::new(folder.path(), &authority).await?;
                let address = real.address();
                (Backing::Real(Box::new(real)), address, Some(authority))
            }
        };
        let access = Access {
            name: name.to_owned(),
            address,
            authority,
        };
        let kubeconfig = access.grant(folder.path(), "admin", Some("system:masters"))?;
        let mut control_plane = Self {
            client: kubeconfig::client(&kubeconfig).await?,
            access,
            kubeconfig,
            backing,
            proxy: None,
            folder,
        };
        if let Backing::Real(real) = &mut control_plane.backing {
            real.start_api(&control_plane.client).await?;
        }
        Ok(control_plane)
    }

    /// Installs files below `manifests/` with admission policies. The embedded API evaluates none.
    pub async fn guard(&self, files: impl IntoIterator<Item = &str>) -> Result<()> {
        if let Backing::Real(_) = self.backing {
            for file in files {
                manifests::apply(&self.client, file).await?;
            }
        }
        Ok(())
    }

    /// Returns the address of the API.
    pub fn address(&self) -> SocketAddr {
        self.access.address
    }

    /// Leads those through a proxy who are given a kubeconfig or the URL from now on. By the URL everybody has every right.
    pub fn interpose(&mut self, proxy: &ApiProxy) -> Result<()> {
        let address = proxy.serve(&self.access.name, &self.kubeconfig)?;
        self.proxy = Some((proxy.clone(), address));
        Ok(())
    }

    /// Returns the URL of the API.
    pub fn url(&self) -> String {
        if let Some((_, address)) = &self.proxy {
            return format!("http://{address}");
        }
        let scheme = if self.access.authority.is_some() {
            "https"
        } else {
            "http"
        };
        format!("{scheme}://{}", self.access.address)
    }

    /// Returns a token with every right.
    pub fn token(&self) -> &'static str {
        TOKEN
    }

    /// Returns a token of a service account that begins and ends at these times, as the API would have issued it then.
    ///
    /// # Errors
    /// The embedded API has no tokens. The account does not exist.
    pub async fn account_token(
        &self,
        namespace: &str,
        name: &str,
        [from, until]: [Timestamp; 2],
    ) -> Result<String> {
        let Backing::Real(real) = &self.backing else {
            bail!("{} has no tokens", self.access.name);
        };
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client(), namespace);
        let account = accounts.get(name).await?;
        let (from, until) = (from.as_second(), until.as_second());
        real.token(json!({
            "iat": from, "nbf": from, "exp": until,
            "sub": format!("system:serviceaccount:{namespace}:{name}"),
            "kubernetes.io": { "namespace": namespace,
                "serviceaccount": { "name": name, "uid": account.metadata.uid } },
        }))
    }

    /// Returns the certificate with which the API's is verified, if it has one.
    pub fn authority(&self) -> Option<&str> {
        let authority = self.access.authority.as_ref();
        let authority = authority.filter(|_| self.proxy.is_none());
        authority.map(Authority::certificate)
    }

    /// Returns a client with every right.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Returns the kubeconfig of a user with every right.
    pub fn kubeconfig_path(&self) -> &Path {
        &self.kubeconfig
    }

    /// Creates a kubeconfig for a service account.
    pub fn account_kubeconfig(&self, namespace: &str, name: &str) -> Result<PathBuf> {
        self.kubeconfig_for(&format!("system:serviceaccount:{namespace}:{name}"))
    }

    /// Returns a client of a user, as [`Self::kubeconfig_for`] does a kubeconfig.
    pub async fn client_for(&self, user: &str) -> Result<Client> {
        kubeconfig::client(&self.kubeconfig_for(user)?).await
    }

    /// Creates a kubeconfig for a user with the rights that RBAC grants to this name; on the embedded API, every
    /// right. `system:serviceaccount:<namespace>:<name>` has those of the service account.
    pub fn kubeconfig_for(&self, user: &str) -> Result<PathBuf> {
        let path = self.access.grant(self.folder.path(), user, None)?;
        let Some((proxy, _)) = &self.proxy else {
            return Ok(path);
        };
        let name = self.access.name.clone();
        let proxied = Access {
            address: proxy.serve(&name, &path)?,
            name,
            authority: None,
        };
        proxied.grant(self.folder.path(), user, None)
    }

    /// Creates a namespace unless it exists.
    pub async fn namespace(&self, name: &str) -> Result<()> {
        let namespace = Namespace {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                ..ObjectMeta::default()
            },
            ..Namespace::default()
        };
        let api: Api<Namespace> = Api::all(self.client());
        match api.create(&PostParams::default(), &namespace).await {
            Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
            result => result
                .map(drop)
                .with_context(|| format!("cannot create the namespace {name}")),
        }
    }

    /// Applies the CRDs in the `.yaml` files of these folders and waits until all are served.
    /// [`crds::karmada`] has the folders that make this a Karmada API.
    pub async fn install_crds(&self, folders: &[impl AsRef<Path>]) -> Result<()> {
        crds::install(&self.client, folders).await
    }

    /// Returns the writes since the API server started, in its own count.
    pub async fn successful_writes(&self) -> Result<WriteCounts> {
        Ok(WriteCounts::from_metrics(&self.metrics().await?))
    }

    /// Returns the number of reads of single objects since the API server started.
    pub async fn reads(&self) -> Result<u64> {
        Ok(writes::reads(&self.metrics().await?))
    }

    /// Returns the number of requests about single objects of a resource since the API server started, whatever
    /// came of them.
    pub async fn requests_about(&self, resource: &str) -> Result<u64> {
        Ok(writes::requests_about(&self.metrics().await?, resource))
    }

    async fn metrics(&self) -> Result<String> {
        let request = Request::get("/metrics").body(Vec::new())?;
        let metrics = self.client.request_text(request).await;
        metrics.with_context(|| format!("cannot read the metrics of {}", self.access.name))
    }

    /// Kills the API server: connections are lost and new ones refused, data and address are kept.
    pub async fn stop_api(&mut self) -> Result<()> {
        let stopped = match &mut self.backing {
            Backing::Embedded(embedded) => embedded.stop_api().await,
            Backing::Real(real) => real.stop_api().await,
        };
        stopped.with_context(|| format!("cannot stop the API server of {}", self.access.name))
    }

    /// Starts the API server after [`Self::stop_api`] and waits until it is ready. An older client may
    /// lose its connection once more.
    pub async fn start_api(&mut self) -> Result<()> {
        self.client = kubeconfig::client(&self.kubeconfig).await?;
        let started = match &mut self.backing {
            Backing::Embedded(embedded) => embedded.start_api(),
            Backing::Real(real) => real.start_api(&self.client).await,
        };
        started.with_context(|| format!("cannot start the API server of {}", self.access.name))
    }

    /// Copies the data, for [`Self::restore_data`]. The API does not run meanwhile.
    pub async fn copy_data(&mut self) -> Result<()> {
        self.stop_api().await?;
        match &mut self.backing {
            Backing::Embedded(embedded) => embedded.copy_data(),
            Backing::Real(real) => real.copy_data().await?,
        }
        self.start_api().await
    }

    /// Puts the copy in the place of the data: the resource versions go back. The API does not run meanwhile.
    pub async fn restore_data(&mut self) -> Result<()> {
        self.stop_api().await?;
        match &mut self.backing {
            Backing::Embedded(embedded) => embedded.restore_data()?,
            Backing::Real(real) => real.restore_data().await?,
        }
        self.start_api().await
    }

    /// Starts the controllers that delete the dependents of deleted objects and empties deleted namespaces, also for the
    /// kinds installed before. The embedded API does both by itself.
    pub async fn start_controllers(&mut self) -> Result<()> {
        let started = match &mut self.backing {
            Backing::Embedded(_) => Ok(()),
            Backing::Real(real) => real.start_controllers(&self.kubeconfig).await,
        };
        started.with_context(|| format!("cannot start the controllers of {}", self.access.name))
    }

    /// Waits until the API ends by itself, and returns an error about that.
    pub async fn failure(&mut self) -> anyhow::Error {
        match &mut self.backing {
            Backing::Embedded(embedded) => embedded.failure().await,
            Backing::Real(real) => real.failure().await,
        }
    }
}

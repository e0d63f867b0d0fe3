//! Kubeconfigs for the users of one API server.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use lab_parts::kubeconfig;

use crate::certs::Authority;

/// Returns a client with the current context of the kubeconfig at `path`.
pub(crate) async fn client(path: &Path) -> Result<Client> {
    let kubeconfig = Kubeconfig::read_from(path)?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    Ok(Client::try_from(config)?)
}

/// Who may be let in where.
pub(crate) struct Access {
    /// The name of the API in kubeconfigs.
    pub(crate) name: String,
    /// The address on which the API server listens.
    pub(crate) address: SocketAddr,
    /// Whom the API server and its users trust; none: it lets everybody in, without encryption.
    pub(crate) authority: Option<Authority>,
}

impl Access {
    /// Writes a kubeconfig into a new folder in `folder`, with the user's own certificate.
    pub(crate) fn grant(&self, folder: &Path, user: &str, group: Option<&str>) -> Result<PathBuf> {
        let Self {
            name,
            address,
            authority,
        } = self;
        // No colon in it: KUBECONFIG is a list separated by colons.
        let prefix = user.replace(|c: char| !c.is_ascii_alphanumeric(), "-") + "-";
        let own = tempfile::Builder::new()
            .prefix(&prefix)
            .disable_cleanup(true)
            .tempdir_in(folder)
            .with_context(|| format!("cannot make a folder in {}", folder.display()))?;
        let own = own.path();
        let mut access = kubeconfig::Access::open(name, *address);
        if let Some(authority) = authority {
            let identity = authority.client(user, group)?;
            let file = |name: &str, text: &str| -> Result<String> {
                Ok(write(own, name, text)?.display().to_string())
            };
            access.cluster.server = Some(format!("https://{address}"));
            access.cluster.certificate_authority = Some(file("ca.crt", authority.certificate())?);
            access.user.client_certificate = Some(file("client.crt", &identity.certificate)?);
            access.user.client_key = Some(file("client.key", &identity.key)?);
        }
        let path = own.join("kubeconfig");
        kubeconfig::write(&path, &[&access])
            .with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path)
    }
}

/// Writes a file and gives its path.
pub(crate) fn write(folder: &Path, name: &str, text: &str) -> Result<PathBuf> {
    let path = folder.join(name);
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

//! Kubeconfigs for the users of one API server, each with a client certificate of its own.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use serde_json::json;

use crate::certs::Authority;

/// Who may be let in where.
#[derive(Debug)]
pub(crate) struct Access {
    /// The name of the API in kubeconfigs.
    pub(crate) name: String,
    /// Where the API server listens.
    pub(crate) address: SocketAddr,
    /// Whom the API server and its users trust.
    pub(crate) authority: Authority,
}

impl Access {
    /// Writes a kubeconfig and its certificates into a new folder in `folder`.
    pub(crate) fn grant(&self, folder: &Path, user: &str, group: Option<&str>) -> Result<PathBuf> {
        let Self {
            name,
            address,
            authority,
        } = self;
        let identity = authority.client(user, group)?;
        // No colon in it: KUBECONFIG is a list separated by colons.
        let prefix = user.replace(|c: char| !c.is_ascii_alphanumeric(), "-") + "-";
        let own = tempfile::Builder::new()
            .prefix(&prefix)
            .disable_cleanup(true)
            .tempdir_in(folder)
            .with_context(|| format!("cannot make a folder in {}", folder.display()))?;
        let own = own.path();
        let kubeconfig = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": {
                "server": format!("https://{address}"),
                "certificate-authority": write(own, "ca.crt", authority.certificate())?,
            }}],
            "users": [{"name": user, "user": {
                "client-certificate": write(own, "client.crt", &identity.certificate)?,
                "client-key": write(own, "client.key", &identity.key)?,
            }}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": user}}],
            "current-context": name,
        });
        write(own, "kubeconfig", &format!("{kubeconfig:#}\n"))
    }
}

/// Writes a file and gives its path.
pub(crate) fn write(folder: &Path, name: &str, text: &str) -> Result<PathBuf> {
    let path = folder.join(name);
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

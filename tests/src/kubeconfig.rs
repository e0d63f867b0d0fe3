//! Kubeconfigs for the users of one API server.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use serde_json::json;

use crate::certs::Authority;

/// Who may be let in where.
pub(crate) struct Access {
    /// The name of the API in kubeconfigs.
    pub(crate) name: String,
    /// Where the API server listens.
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
        let (cluster, credentials) = match authority {
            None => (json!({"server": format!("http://{address}")}), json!({})),
            Some(authority) => {
                let identity = authority.client(user, group)?;
                (
                    json!({
                        "server": format!("https://{address}"),
                        "certificate-authority": write(own, "ca.crt", authority.certificate())?,
                    }),
                    json!({
                        "client-certificate": write(own, "client.crt", &identity.certificate)?,
                        "client-key": write(own, "client.key", &identity.key)?,
                    }),
                )
            }
        };
        let kubeconfig = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": cluster}],
            "users": [{"name": user, "user": credentials}],
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

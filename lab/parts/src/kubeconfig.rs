//! Kubeconfig files.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::Path;

use kube::config::{
    AuthInfo, Cluster, Context, Kubeconfig, NamedAuthInfo, NamedCluster, NamedContext,
};

/// A server and a user of it, which a kubeconfig offers as the context, the cluster and the user of
/// one name.
#[derive(Clone, Debug)]
pub struct Access {
    /// The name of the context.
    pub name: String,
    /// The server, and whose certificates to trust.
    pub cluster: Cluster,
    /// The user's credentials.
    pub user: AuthInfo,
}

impl Access {
    /// Returns the access to a server without encryption or authentication.
    pub fn open(name: &str, server: SocketAddr) -> Self {
        let cluster = Cluster {
            server: Some(format!("http://{server}")),
            ..Cluster::default()
        };
        Self {
            name: name.to_owned(),
            cluster,
            user: AuthInfo::default(),
        }
    }

    /// Returns the three parts of a kubeconfig that it is made of.
    fn named(&self) -> (NamedCluster, NamedAuthInfo, NamedContext) {
        let name = &self.name;
        let context = Context {
            cluster: name.clone(),
            user: Some(name.clone()),
            ..Context::default()
        };
        (
            NamedCluster {
                name: name.clone(),
                cluster: Some(self.cluster.clone()),
                ..NamedCluster::default()
            },
            NamedAuthInfo {
                name: name.clone(),
                auth_info: Some(self.user.clone()),
                ..NamedAuthInfo::default()
            },
            NamedContext {
                name: name.clone(),
                context: Some(context),
                ..NamedContext::default()
            },
        )
    }
}

/// Writes a kubeconfig with a context for each access, the first being the current one.
pub fn write(path: &Path, accesses: &[&Access]) -> io::Result<()> {
    let named = accesses.iter().map(|access| access.named());
    let (clusters, auth_infos, contexts) = named.collect();
    let kubeconfig = Kubeconfig {
        // kubectl refuses a file without them.
        api_version: Some("v1".to_owned()),
        kind: Some("Config".to_owned()),
        current_context: accesses.first().map(|access| access.name.clone()),
        clusters,
        auth_infos,
        contexts,
        ..Kubeconfig::default()
    };
    // Readers expect YAML, which JSON is.
    fs::write(path, serde_json::to_string_pretty(&kubeconfig)? + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kube_reads_what_is_written_and_the_first_context_is_current() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kubeconfig");
        let one = Access::open("one", ([127, 0, 0, 1], 1).into());
        let other = Access::open("other", ([127, 0, 0, 1], 2).into());
        write(&path, &[&other, &one]).unwrap();
        let read = Kubeconfig::read_from(&path).unwrap();
        assert_eq!(read.current_context.as_deref(), Some("other"));
        let contexts = read.contexts.iter().map(|context| {
            let cluster = &context.context.as_ref().unwrap().cluster;
            let found = read.clusters.iter().find(|found| found.name == *cluster);
            let server = found.and_then(|found| found.cluster.as_ref()?.server.clone());
            (context.name.as_str(), server.unwrap())
        });
        let contexts: Vec<_> = contexts.collect();
        assert_eq!(
            contexts,
            [
                ("other", "http://127.0.0.1:2".to_owned()),
                ("one", "http://127.0.0.1:1".to_owned()),
            ]
        );
    }
}

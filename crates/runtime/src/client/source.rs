//! Where the address of a server and the credentials for it come from.

use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;
use std::{env, fs};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kube::config::{Cluster, Kubeconfig, KubeconfigError};

use super::error::ClientError;
use super::selected::{cluster_of, token_of, user_of};
use super::server::Server;

/// The source of the server's address and the credentials.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// A kubeconfig file; defaults to `$KUBECONFIG`, `~/.kube/config`, or the pod's service account.
    pub kubeconfig: Option<PathBuf>,
    /// A context of the kubeconfig; defaults to the current one.
    pub context: Option<String>,
    /// A server and its credentials, in place of a kubeconfig.
    pub server: Option<Server>,
    /// A kubeconfig that was read already, in place of a file.
    pub present: Option<Kubeconfig>,
    /// The server's addresses, which replace a DNS lookup. The certificate must still match the host
    /// name of the kubeconfig.
    pub addresses: Vec<IpAddr>,
}

impl Source {
    /// Returns `true` if no kubeconfig is named or present, so that only the pod's service account
    /// remains.
    pub(super) fn is_pod(&self) -> bool {
        self.is_pod_with(env::var_os("KUBECONFIG"), env::home_dir())
    }

    fn is_pod_with(&self, variable: Option<OsString>, home: Option<PathBuf>) -> bool {
        let named = variable.is_some_and(|variable| {
            // As kube reads it: empty paths count for nothing.
            env::split_paths(&variable).any(|path| !path.as_os_str().is_empty())
        });
        // A path that cannot be examined may be a file.
        let present =
            || home.is_some_and(|home| home.join(".kube/config").try_exists().unwrap_or(true));
        let is_silent = self.kubeconfig.is_none()
            && self.context.is_none()
            && self.server.is_none()
            && self.present.is_none();
        is_silent && !named && !present()
    }

    /// Reads the kubeconfig, and returns where it is from too.
    pub(super) fn read(&self) -> Result<(Kubeconfig, String), ClientError> {
        if let Some(server) = &self.server {
            return Ok((server.kubeconfig(), server.url.clone()));
        }
        if let Some(present) = &self.present {
            return Ok((present.clone(), "(given)".to_owned()));
        }
        if let Some(path) = &self.kubeconfig {
            let file = Kubeconfig::read_from(path).map_err(|source| ClientError::Unreadable {
                path: path.clone(),
                source,
            })?;
            return Ok((file, path.display().to_string()));
        }
        let origin = "($KUBECONFIG or ~/.kube/config)".to_owned();
        match Kubeconfig::read() {
            Ok(file) => Ok((file, origin)),
            Err(source) => Err(ClientError::Unusable { origin, source }),
        }
    }

    /// Returns the cluster of the context, with the certificates of its authority inline.
    ///
    /// # Errors
    /// Fails if the kubeconfig or the file of the certificates cannot be read, or has no such context.
    pub fn cluster(&self) -> Result<Cluster, ClientError> {
        let (file, origin) = self.read()?;
        let unusable = |source| ClientError::Unusable {
            origin: origin.clone(),
            source,
        };
        let context = self.context.as_ref().or(file.current_context.as_ref());
        let context = context.ok_or_else(|| unusable(KubeconfigError::CurrentContextNotSet))?;
        let found = cluster_of(&file, context);
        let found = found.ok_or_else(|| unusable(KubeconfigError::LoadContext(context.clone())))?;
        let mut cluster = found.clone();
        if let Some(path) = cluster.certificate_authority.take()
            && cluster.certificate_authority_data.is_none()
        {
            let pem = fs::read(&path).map_err(|source| {
                unusable(KubeconfigError::ReadConfig(source, path.clone().into()))
            })?;
            cluster.certificate_authority_data = Some(STANDARD.encode(pem));
        }
        Ok(cluster)
    }

    /// Returns the same source with another URL of its server, whose certificate must have the host of that.
    ///
    /// # Errors
    /// Fails if the kubeconfig cannot be read.
    pub fn at(&self, url: &str) -> Result<Self, ClientError> {
        let (mut file, _) = self.read()?;
        for cluster in file
            .clusters
            .iter_mut()
            .filter_map(|it| it.cluster.as_mut())
        {
            cluster.server = Some(url.to_owned());
            cluster.tls_server_name = None;
            cluster.insecure_skip_tls_verify = None;
        }
        Ok(Self {
            present: Some(file),
            context: self.context.clone(),
            ..Self::default()
        })
    }

    /// Returns the bearer token of the context's user, if it has one; a file is read.
    ///
    /// # Errors
    /// Fails if the kubeconfig cannot be read.
    pub fn token(&self) -> Result<Option<String>, ClientError> {
        let (file, _) = self.read()?;
        let context = self.context.as_ref().or(file.current_context.as_ref());
        Ok(context.and_then(|context| token_of(user_of(&file, context)?)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The service account is used only where no kubeconfig is named or present.
    #[test]
    fn service_account_is_last_resort() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().to_owned();
        let default = Source::default();
        let named = Source {
            kubeconfig: Some("/missing".into()),
            ..Source::default()
        };
        let context = Source {
            context: Some("one".to_owned()),
            ..Source::default()
        };
        let is_pod = |source: &Source, variable: Option<&str>| {
            source.is_pod_with(variable.map(OsString::from), Some(home.clone()))
        };
        assert!(default.is_pod_with(None, None));
        assert!(is_pod(&default, None));
        assert!(is_pod(&default, Some("")));
        // A file that is missing or half written does not make it the pod's service account.
        assert!(!is_pod(&default, Some("/missing")));
        assert!(!is_pod(&named, None));
        assert!(!is_pod(&context, None));
        fs::create_dir(home.join(".kube")).unwrap();
        fs::write(home.join(".kube/config"), "half").unwrap();
        assert!(!is_pod(&default, None));
    }

    /// The cluster and the token are those of the context, from files too.
    #[test]
    fn context_selects_cluster_and_token() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            path
        };
        write("ca.crt", "PEM");
        write("token", "t1\n");
        let text = json!({
            "current-context": "one",
            "contexts": [
                { "name": "one", "context": { "cluster": "c1", "user": "u1" } },
                { "name": "two", "context": { "cluster": "c2", "user": "u2" } },
            ],
            "clusters": [
                { "name": "c1", "cluster": { "server": "https://a", "certificate-authority": "ca.crt" } },
                { "name": "c2", "cluster": { "server": "https://b" } },
            ],
            "users": [
                { "name": "u1", "user": { "tokenFile": "token" } },
                { "name": "u2", "user": {} },
            ],
        });
        let source = |context: Option<&str>| Source {
            kubeconfig: Some(write("kubeconfig", &text.to_string())),
            context: context.map(ToOwned::to_owned),
            ..Source::default()
        };
        let one = source(None).cluster().unwrap();
        assert_eq!(one.server.as_deref(), Some("https://a"));
        assert_eq!(one.certificate_authority, None);
        let pem = one.certificate_authority_data.unwrap();
        assert_eq!(STANDARD.decode(pem).unwrap(), b"PEM");
        assert_eq!(source(None).token().unwrap().as_deref(), Some("t1"));
        let two = source(Some("two"));
        assert_eq!(two.cluster().unwrap().server.as_deref(), Some("https://b"));
        assert_eq!(two.token().unwrap(), None);
        let error = source(Some("three")).cluster().unwrap_err();
        assert!(crate::error::Chain(&error).to_string().contains("three"));
    }
}

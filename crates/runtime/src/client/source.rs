//! Where the address of a server and the credentials for it come from.

use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;
use std::{env, fs, io};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kube::config::{Cluster, KubeConfigOptions, Kubeconfig, KubeconfigError};

use super::error::ClientError;
use super::kubeconfig;
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
        let named = !listed(variable).is_empty();
        // A path that cannot be examined may be a file.
        let present =
            || home.is_some_and(|home| home.join(".kube/config").try_exists().unwrap_or(true));
        let is_silent = self.kubeconfig.is_none()
            && self.context.as_ref().is_none_or(String::is_empty)
            && self.server.is_none()
            && self.present.is_none();
        is_silent && !named && !present()
    }

    /// Returns the files of the kubeconfig, of which those that do not exist are passed over unless one is named by itself.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        if self.server.is_some() || self.present.is_some() {
            return Vec::new();
        }
        if let Some(path) = &self.kubeconfig {
            return vec![path.clone()];
        }
        let listed = listed(env::var_os("KUBECONFIG"));
        if listed.is_empty() {
            let home = env::home_dir().map(|home| home.join(".kube/config"));
            return home.into_iter().collect();
        }
        listed
    }

    /// Reads the kubeconfig, and returns where it is from too.
    pub(super) fn read(&self) -> Result<(Kubeconfig, String), ClientError> {
        if let Some(server) = &self.server {
            return Ok((server.kubeconfig(), server.url.clone()));
        }
        if let Some(present) = &self.present {
            return Ok((present.clone(), "(given)".to_owned()));
        }
        self.merge(&self.files())
    }

    /// Reads these files, of which the first wins that has an entry, and returns their names too.
    fn merge(&self, files: &[PathBuf]) -> Result<(Kubeconfig, String), ClientError> {
        let names: Vec<String> = files
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        let names = names.join(", ");
        let mut merged: Option<Kubeconfig> = None;
        for path in files {
            let file = match kubeconfig::read(path) {
                Ok(file) => file,
                Err(kubeconfig::KubeconfigError::File(error))
                    if self.kubeconfig.is_none() && error.kind() == io::ErrorKind::NotFound =>
                {
                    continue;
                }
                Err(source) => {
                    let path = path.clone();
                    return Err(ClientError::Unreadable { path, source });
                }
            };
            merged = Some(match merged {
                Some(merged) => merged.merge(file).map_err(|source| {
                    let origin = names.clone();
                    ClientError::Unusable { origin, source }
                })?,
                None => file,
            });
        }
        match merged {
            Some(merged) => Ok((merged, names)),
            None => Err(ClientError::Absent(names)),
        }
    }

    /// Returns the name of the context of `file`.
    fn context_of<'a>(&'a self, file: &'a Kubeconfig) -> Option<&'a String> {
        let named = self.context.as_ref().filter(|name| !name.is_empty());
        named.or(file.current_context.as_ref())
    }

    /// Returns the options that select the context in kube's reader.
    pub(super) fn options(&self, file: &Kubeconfig) -> KubeConfigOptions {
        KubeConfigOptions {
            context: self.context_of(file).cloned(),
            ..KubeConfigOptions::default()
        }
    }

    /// Returns the cluster of the context, with the certificates of its authority inline.
    ///
    /// # Errors
    /// Fails if the kubeconfig or the file of the certificates cannot be read, or has no such context.
    pub fn cluster(&self) -> Result<Cluster, ClientError> {
        let (file, origin) = self.read()?;
        self.cluster_in(&file)
            .map_err(|source| ClientError::Unusable { origin, source })
    }

    fn cluster_in(&self, file: &Kubeconfig) -> Result<Cluster, KubeconfigError> {
        let context = self.context_of(file);
        let context = context.ok_or(KubeconfigError::CurrentContextNotSet)?;
        let cluster = cluster_of(file, context).cloned();
        let mut cluster = cluster.ok_or_else(|| KubeconfigError::LoadContext(context.clone()))?;
        if let Some(path) = cluster.certificate_authority.take()
            && cluster.certificate_authority_data.is_none()
        {
            let pem = fs::read(&path)
                .map_err(|source| KubeconfigError::ReadConfig(source, path.into()))?;
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
        let context = self.context_of(&file);
        Ok(context.and_then(|context| token_of(user_of(&file, context)?)))
    }
}

/// Returns the files in the variable `KUBECONFIG`. Empty names count for nothing.
fn listed(variable: Option<OsString>) -> Vec<PathBuf> {
    let variable = variable.unwrap_or_default();
    let paths = env::split_paths(&variable);
    paths.filter(|path| !path.as_os_str().is_empty()).collect()
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

    /// Of a list of files the missing ones are passed over, and the first wins that has something.
    #[test]
    fn list_is_merged_like_kubectl() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for (name, current, server) in [("a", "", "https://a"), ("b", "b", "https://b")] {
            let text = json!({
                "current-context": current,
                "contexts": [
                    { "name": "c", "context": { "cluster": "c" } },
                    { "name": name, "context": { "cluster": "c" } },
                ],
                "clusters": [{ "name": "c", "cluster": { "server": server } }],
            });
            fs::write(path(name), text.to_string()).unwrap();
        }
        let list = |names: &[&str]| {
            let files: Vec<PathBuf> = names.iter().map(|name| path(name)).collect();
            Source::default().merge(&files)
        };
        let (merged, origin) = list(&["missing", "a", "b"]).unwrap();
        assert_eq!(merged.current_context.as_deref(), Some("b"));
        let server = cluster_of(&merged, "b").unwrap().server.as_deref();
        assert_eq!(server, Some("https://a"));
        assert!(origin.contains("missing, "), "{origin}");
        let error = list(&["missing", "gone"]).unwrap_err().to_string();
        assert!(error.contains("gone does not exist"), "{error}");
        fs::write(path("half"), "users: [").unwrap();
        let error = list(&["a", "half"]).unwrap_err().to_string();
        assert!(error.ends_with("half"), "{error}");
        // One that is named by itself must be there.
        let named = Source {
            kubeconfig: Some(path("missing")),
            ..Source::default()
        };
        assert!(matches!(named.read(), Err(ClientError::Unreadable { .. })));
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
        let server = source(Some("")).cluster().unwrap().server;
        assert_eq!(server.as_deref(), Some("https://a"));
        let two = source(Some("two"));
        assert_eq!(two.cluster().unwrap().server.as_deref(), Some("https://b"));
        assert_eq!(two.token().unwrap(), None);
        let error = source(Some("three")).cluster().unwrap_err();
        assert!(crate::error::Chain(&error).to_string().contains("three"));
    }
}

//! The cluster and the user of the context of a kubeconfig.

use std::fs;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kube::config::{AuthInfo, Cluster, Kubeconfig, KubeconfigError};

use super::{ClientError, Source};

impl Source {
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

/// Returns the cluster of a context, if it has one.
pub(super) fn cluster_of<'a>(file: &'a Kubeconfig, context: &str) -> Option<&'a Cluster> {
    let context = named_context(file, context)?;
    let mut clusters = file.clusters.iter();
    let named = clusters.find(|named| named.name == context.cluster)?;
    named.cluster.as_ref()
}

fn user_of<'a>(file: &'a Kubeconfig, context: &str) -> Option<&'a AuthInfo> {
    let user = named_context(file, context)?.user.as_ref()?;
    let mut users = file.auth_infos.iter();
    users.find(|named| named.name == *user)?.auth_info.as_ref()
}

fn named_context<'a>(file: &'a Kubeconfig, name: &str) -> Option<&'a kube::config::Context> {
    let mut contexts = file.contexts.iter();
    contexts.find(|named| named.name == name)?.context.as_ref()
}

/// Returns the bearer token of a user, if there is one. A file is read anew.
pub(super) fn token_of(auth: &AuthInfo) -> Option<String> {
    let token = if auth.token.is_some() {
        // Only its serialization shows a secret.
        let auth = serde_json::to_value(auth).unwrap_or_default();
        auth["token"].as_str().map(ToOwned::to_owned)
    } else {
        (auth.token_file.as_ref()).and_then(|path| fs::read_to_string(path).ok())
    };
    token.map(|token| token.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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

//! The cluster and the user of the context of a kubeconfig.

use std::fs;

use kube::config::{AuthInfo, Cluster, Kubeconfig};

/// Returns the cluster of a context, if it has one.
pub(super) fn cluster_of<'a>(file: &'a Kubeconfig, context: &str) -> Option<&'a Cluster> {
    let context = named_context(file, context)?;
    let mut clusters = file.clusters.iter();
    let named = clusters.find(|named| named.name == context.cluster)?;
    named.cluster.as_ref()
}

/// Returns the user of a context, if it has one.
pub(super) fn user_of<'a>(file: &'a Kubeconfig, context: &str) -> Option<&'a AuthInfo> {
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

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

/// Returns the bearer token of a user, if there is one: that of its file, which is read anew, or else the one in the
/// kubeconfig.
pub(super) fn token_of(auth: &AuthInfo) -> Option<String> {
    let path = auth.token_file.as_ref();
    let filed = path.and_then(|path| fs::read_to_string(path).ok());
    let token = filed.or_else(|| inline_token(auth));
    token.map(|token| token.trim().to_owned())
}

/// Returns the bearer token in the kubeconfig itself.
pub(super) fn inline_token(auth: &AuthInfo) -> Option<String> {
    // Only its serialization shows a secret.
    let auth = serde_json::to_value(auth).ok()?;
    auth["token"].as_str().map(ToOwned::to_owned)
}

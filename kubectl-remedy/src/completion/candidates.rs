//! The candidates that the API of the line knows.

use std::fmt::Debug;
use std::path::PathBuf;

use fleet_api::MemberCluster;
use karmada_api::Cluster;
use karmada_runtime::client::{Source, connect};
use kube::api::ListParams;
use kube::discovery::{ApiGroup, Discovery, verbs};
use kube::{Api, Client, Resource, ResourceExt};
use propagation_rules::rights::GroupResource;
use serde::de::DeserializeOwned;

use crate::identity::NAME;
use crate::propagation::{Named, Served, served};

/// Returns the API to which the line leads.
pub(super) async fn api(words: &[String]) -> Option<Client> {
    let source = Source {
        kubeconfig: value(words, "--kubeconfig").map(PathBuf::from),
        context: value(words, "--context"),
        ..Source::default()
    };
    connect(&source, NAME).await.ok()
}

/// Returns the names of the clusters, of a Karmada or of a hub.
pub(super) async fn clusters(client: &Client) -> Vec<(String, String)> {
    let (mut all, members) = tokio::join!(
        names(Api::<Cluster>::all(client.clone())),
        names(Api::<MemberCluster>::all(client.clone())),
    );
    all.extend(members);
    all
}

async fn names<K>(objects: Api<K>) -> Vec<(String, String)>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    let listed = objects.list_metadata(&ListParams::default()).await;
    let names = listed.into_iter().flatten();
    names
        .map(|object| (object.name_any(), String::new()))
        .collect()
}

/// Returns the kinds that can be propagated.
pub(super) async fn kinds(client: &Client) -> Vec<(String, String)> {
    let Ok(served) = Discovery::new(client.clone()).run_aggregated().await else {
        return Vec::new();
    };
    let resources = served
        .groups()
        .flat_map(ApiGroup::recommended_resources)
        .filter(|(_, can)| can.supports_operation(verbs::PATCH));
    let kinds = resources.filter_map(|(resource, _)| {
        let name = if resource.group.is_empty() {
            resource.plural
        } else {
            format!("{}/{}", resource.group, resource.plural)
        };
        // Some are never propagated.
        let kind: GroupResource = name.parse().ok()?;
        Some((kind.to_string(), resource.kind))
    });
    kinds.collect()
}

/// Returns the clusters and the types of objects that are propagated, or the objects of the type that `incomplete` names.
pub(super) async fn subjects(
    client: &Client,
    words: &[String],
    incomplete: &str,
) -> Vec<(String, String)> {
    let Some((type_, _)) = incomplete.split_once('/') else {
        let (mut offered, types) = tokio::join!(clusters(client), types(client));
        offered.extend(types);
        return offered;
    };
    let served = served(client).await.unwrap_or_default();
    // Any name does.
    let any = format!("{type_}/-");
    let named = Named::parse(&any).ok().flatten();
    let Some(kind) = named.and_then(|named| Served::named(&served, &named)) else {
        return Vec::new();
    };
    let given = value(words, "--namespace").or_else(|| value(words, "-n"));
    let namespace = given.unwrap_or_else(|| client.default_namespace().to_owned());
    let namespace = if kind.is_namespaced { &*namespace } else { "" };
    let objects = kind.objects(client, kind.preferred(), namespace);
    let listed = objects.list_metadata(&ListParams::default()).await;
    let objects = listed.into_iter().flatten();
    objects
        .map(|object| (format!("{type_}/{}", object.name_any()), String::new()))
        .collect()
}

/// Returns the types of objects that are propagated, each with its description.
async fn types(client: &Client) -> Vec<(String, String)> {
    let kinds = kinds(client).await.into_iter();
    kinds
        .map(|(kind, description)| match kind.split_once('/') {
            Some((group, plural)) => (format!("{plural}.{group}/"), description),
            None => (format!("{kind}/"), description),
        })
        .collect()
}

/// Returns the value of a flag in `words`, in the next word or behind `=`.
fn value(words: &[String], flag: &str) -> Option<String> {
    words
        .iter()
        .enumerate()
        .find_map(|(index, word)| match word.strip_prefix(flag)? {
            "" => words.get(index + 1).cloned(),
            rest => rest.strip_prefix('=').map(ToOwned::to_owned),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The connection is that of the line.
    #[test]
    fn connection_follows_the_line() {
        let line = ["why", "--context=a", "--kubeconfig", "/k", "m"].map(ToOwned::to_owned);
        assert_eq!(value(&line, "--context").as_deref(), Some("a"));
        assert_eq!(value(&line, "--kubeconfig").as_deref(), Some("/k"));
        assert_eq!(value(&line, "--namespace"), None);
    }
}

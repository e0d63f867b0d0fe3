//! The clusters that a command is about.

use futures::{StreamExt, stream};
use karmada_api::{Cluster, ClusterView, cluster_of_execution_namespace};
use karmada_runtime::client::Source;
use kube::{Api, Client, ResourceExt};

use crate::args::join::ClustersArgs;
use crate::error::Error;
use crate::lists::list_each_metadata;
use crate::requests::refused;
use crate::terminal;

/// The number of clusters that are worked on at once.
const AT_ONCE: usize = 8;

/// Returns the names of the clusters, each once.
pub(crate) async fn named(args: &ClustersArgs, client: &Client) -> Result<Vec<String>, Error> {
    let mut names = if args.all {
        all(client).await?
    } else {
        args.clusters.clone()
    };
    names.sort();
    names.dedup();
    if names.is_empty() {
        return Err(Error::Unusable("there are no clusters".to_owned()));
    }
    Ok(names)
}

async fn all(client: &Client) -> Result<Vec<String>, Error> {
    let clusters: Api<Cluster> = Api::all(client.clone());
    let mut names = Vec::new();
    let read = list_each_metadata(&clusters, |found| names.push(found.name_any())).await;
    read.map_err(|source| refused("list clusters", source))?;
    Ok(names)
}

/// Refuses several clusters where `flags` are about one.
pub(crate) fn require_one(names: &[String], flags: &str) -> Result<(), Error> {
    if names.len() > 1 {
        let problem = format!("{flags} for one cluster: name one");
        return Err(Error::Unusable(problem));
    }
    Ok(())
}

/// Returns one cluster, or the error that there is none.
pub(crate) async fn require(cluster: &str, client: &Client) -> Result<(), Error> {
    let clusters: Api<Cluster> = Api::all(client.clone());
    let found = clusters.get_metadata_opt(cluster).await;
    let found = found.map_err(|source| refused(format!("get cluster {cluster}"), source))?;
    match found {
        None => Err(Error::Unusable("there is no such cluster".to_owned())),
        Some(found) if found.metadata.deletion_timestamp.is_some() => {
            Err(Error::Unusable("the cluster is being deleted".to_owned()))
        }
        Some(_) => Ok(()),
    }
}

/// Returns one cluster as far as it can be read, to say why nothing happens there.
pub(crate) async fn view(cluster: &str, client: &Client) -> Option<ClusterView> {
    let clusters: Api<ClusterView> = Api::all(client.clone());
    clusters.get_opt(cluster).await.ok().flatten()
}

/// Returns the way to a member by a context of the same kubeconfig.
pub(crate) fn of_member(source: &Source, context: &str) -> Source {
    Source {
        context: Some(context.to_owned()),
        ..source.clone()
    }
}

/// Returns the cluster of the namespace of a Work.
pub(crate) fn of_namespace(namespace: &str) -> &str {
    cluster_of_execution_namespace(namespace).unwrap_or(namespace)
}

/// Does `work` for several clusters at once, and prints a line for each that fails. Returns the results of the others, by name.
pub(crate) async fn each<T>(
    clusters: &[String],
    work: impl AsyncFn(&str) -> Result<T, Error>,
) -> Vec<(String, T)> {
    let work = &work;
    let running = stream::iter(clusters).map(async |cluster| (cluster, work(cluster).await));
    let mut running = std::pin::pin!(running.buffer_unordered(AT_ONCE));
    let mut done = Vec::new();
    while let Some((cluster, result)) = running.next().await {
        match result {
            Ok(result) => done.push((cluster.clone(), result)),
            Err(error) => fails(cluster, &error),
        }
    }
    done
}

/// Prints the line of a cluster that fails.
pub(crate) fn fails(cluster: &str, problem: &impl ToString) {
    // An API server may answer in several lines.
    let problem = problem.to_string();
    let line: Vec<&str> = problem.lines().map(str::trim).collect();
    terminal::print_error(&format!("{cluster}: {}", line.join(" ")));
}

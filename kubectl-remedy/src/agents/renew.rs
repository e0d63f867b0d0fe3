//! `kubectl remedy renew`: new tokens for the agents, in their Works.

use std::collections::BTreeMap;

use jiff::Timestamp;
use karmada_api::{Work, cluster_of_execution_namespace, execution_namespace};
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use serde_json::Value;

use super::member::Found;
use super::{rights, work};
use crate::answer::Answer;
use crate::args::join::RenewArgs;
use crate::clusters::each;
use crate::error::Error;
use crate::fleet::pages;
use crate::identity::NAME;
use crate::requests::refused;
use crate::{terminal, token};

/// Renews tokens that are due.
pub(crate) async fn run(
    args: &RenewArgs,
    client: &Client,
    now: Timestamp,
) -> Result<Answer, Error> {
    let works = works(client).await?;
    let names: Vec<String> = if args.clusters.is_empty() {
        works.keys().cloned().collect()
    } else {
        args.clusters.clone()
    };
    if names.is_empty() {
        if !args.fleet && !args.has_host() {
            terminal::print("No agent is a Work of `kubectl remedy join`\n");
        }
        return Ok(Answer::Yes);
    }
    let renew = async |cluster: &str| match works.get(cluster) {
        Some(work) => renew(cluster, work, args, client, now).await,
        // The cluster of a fleet need not have one.
        None if args.fleet => Ok(()),
        None => Err(Error::Unusable(
            "it has no Work of `kubectl remedy join`".to_owned(),
        )),
    };
    let renewed = each(&names, renew).await;
    Ok((renewed.len() == names.len()).into())
}

/// Returns the Work of each agent, by cluster.
async fn works(client: &Client) -> Result<BTreeMap<String, Work>, Error> {
    let works: Api<Work> = Api::all(client.clone());
    // A right to this name is enough.
    let named = ListParams::default().fields(&format!("metadata.name={}", work::AGENT));
    let (works, mut found) = (&works, BTreeMap::new());
    let request = |page| async move { works.list(&page).await };
    let take = |work: Work| {
        let namespace = work.namespace().unwrap_or_default();
        if let Some(cluster) = cluster_of_execution_namespace(&namespace) {
            found.insert(cluster.to_owned(), work);
        }
    };
    let read = pages(named, request, take).await;
    read.map_err(|source| refused("list works", source))?;
    Ok(found)
}

async fn renew(
    cluster: &str,
    work: &Work,
    args: &RenewArgs,
    client: &Client,
    now: Timestamp,
) -> Result<(), Error> {
    let found = Found::in_objects(&work.spec.workload.manifests).token;
    let lacking = || {
        let problem = "its Work has no token: `kubectl remedy join` writes it anew";
        Error::Unusable(problem.to_owned())
    };
    let old = found.ok_or_else(lacking)?;
    if !token::is_due(&old, args.when_less_than, now) {
        terminal::print(&format!("{cluster} unchanged; {}\n", token::end(&old)));
        return Ok(());
    }
    let new = token::request(&rights::account(cluster), args.token_duration, client).await?;
    let patch = work::replace_token(work, &new).ok_or_else(lacking)?;
    let patch: Patch<Value> = patch.into();
    let works: Api<Work> = Api::namespaced(client.clone(), &execution_namespace(cluster));
    let parameters = PatchParams {
        field_manager: Some(NAME.to_owned()),
        ..PatchParams::default()
    };
    let written = works.patch(work::AGENT, &parameters, &patch).await;
    written.map_err(|source| refused("write its Work", source))?;
    terminal::print(&format!("{cluster} renewed; {}\n", token::end(&new)));
    Ok(())
}

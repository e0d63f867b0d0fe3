//! `kubectl remedy renew`: new tokens for the agents, in their Works.

use std::collections::BTreeMap;

use jiff::Timestamp;
use karmada_api::{Work, cluster_of_execution_namespace, execution_namespace};
use kube::{Api, Client, ResourceExt};

use super::member::Found;
use super::{rights, work};
use crate::answer::Answer;
use crate::args::DryRun;
use crate::args::join::RenewArgs;
use crate::clusters::each;
use crate::error::Error;
use crate::lists::{by_name, list_each};
use crate::requests::refused;
use crate::send::{Edited, edit};
use crate::{terminal, token};

/// Renews tokens that are due.
pub(in crate::membership) async fn run(
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
    let renewed = each(&names, async |cluster: &str| match works.get(cluster) {
        Some(work) => renew(cluster, work, args, client, now).await,
        // The cluster of a fleet need not have one.
        None if args.fleet => Ok(()),
        None => Err(Error::Unusable(
            "it has no Work of `kubectl remedy join`".to_owned(),
        )),
    });
    let renewed = renewed.await;
    Ok((renewed.len() == names.len()).into())
}

/// Returns the Work of each agent, by cluster.
pub(crate) async fn works(client: &Client) -> Result<BTreeMap<String, Work>, Error> {
    let works: Api<Work> = Api::all(client.clone());
    let mut found = BTreeMap::new();
    // A right to this name is enough.
    let read = list_each(&works, by_name(work::AGENT), |work| {
        let namespace = work.namespace().unwrap_or_default();
        if let Some(cluster) = cluster_of_execution_namespace(&namespace) {
            found.insert(cluster.to_owned(), work);
        }
    });
    read.await.map_err(|source| refused("list works", source))?;
    Ok(found)
}

async fn renew(
    cluster: &str,
    work: &Work,
    args: &RenewArgs,
    client: &Client,
    now: Timestamp,
) -> Result<(), Error> {
    let old = token_of(work)?;
    if !token::is_due(&old, args.when_less_than, now) {
        terminal::print(&format!("{cluster} unchanged; {}\n", token::end(&old)));
        return Ok(());
    }
    let new = token::request(&rights::account(cluster), args.token_duration, client).await?;
    let works: Api<Work> = Api::namespaced(client.clone(), &execution_namespace(cluster));
    replace(&works, &old, &new).await?;
    terminal::print(&format!("{cluster} renewed; {}\n", token::end(&new)));
    Ok(())
}

/// Puts the token `new` in the place of `old` in the Work of an agent, of which anything else may change meanwhile.
pub(super) async fn replace(works: &Api<Work>, old: &str, new: &str) -> Result<(), Error> {
    let edited = edit(works, work::AGENT, DryRun::None, |work| {
        let is_old = token_of(work).is_ok_and(|token| token == old);
        is_old.then(|| work::replace_token(work, new)).flatten()
    });
    match edited.await {
        Ok(Edited::Written(_)) => Ok(()),
        Ok(Edited::Absent(_)) => Err(lacking()),
        Ok(Edited::Unchanged(work)) => {
            token_of(&work)?;
            let problem = "somebody else has replaced its token meanwhile";
            Err(Error::Unusable(problem.to_owned()))
        }
        Err(source) => Err(refused("write its Work", source)),
    }
}

/// Returns the token in the Work of an agent.
fn token_of(work: &Work) -> Result<String, Error> {
    let found = Found::in_objects(&work.spec.workload.manifests);
    found.token.ok_or_else(lacking)
}

fn lacking() -> Error {
    let problem = "its Work has no token: `kubectl remedy join` writes it anew";
    Error::Unusable(problem.to_owned())
}

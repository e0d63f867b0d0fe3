//! `kubectl remedy leave --fleet`: the Cluster goes first, and with it the objects that were propagated there; then the credentials, and the
//! account in the member, which that needs until then.

use std::collections::BTreeMap;

use karmada_api::ClusterView;
use karmada_runtime::client::{Claims, Source, connect};
use kube::{Api, Client};
use objects::Key;

use super::{access, account};
use crate::answer::Answer;
use crate::args::join::LeaveArgs;
use crate::clusters::{each, fails, named, of_member, require_one};
use crate::error::Error;
use crate::identity::NAME;
use crate::requests::{delete, read, refused};
use crate::terminal;
use crate::waiting::{Goal, Waiting, Watched};

/// Lets clusters leave.
pub(in crate::membership) async fn run(
    args: &LeaveArgs,
    source: &Source,
    client: &Client,
) -> Result<Answer, Error> {
    let names = named(&args.clusters, client).await?;
    if args.member_context.is_some() {
        require_one(&names, "--member-context is")?;
    }
    let started = each(&names, async |cluster: &str| {
        begin(cluster, &way(cluster, args, source), client).await
    });
    let started = started.await;
    let clusters = started.iter().map(|(cluster, _)| Key::new("", cluster));
    let waiting = Waiting::<ClusterView>::new(Goal::Gone, clusters);
    let left = waiting.run(&[Watched::All], args.timeout, client, |_| {});
    let left = left.await?;
    for key in left.keys() {
        fails(
            &key.name,
            &"its Cluster is not gone: either a binding has it that no other cluster can take (docs/join.md), or no cluster-controller runs: look at its lease karmada-system/cluster-controller; its credentials stay until then",
        );
    }
    let mut gone: BTreeMap<String, bool> = started.into_iter().collect();
    gone.retain(|cluster, _| !left.contains_key(&Key::new("", cluster)));
    let ready: Vec<String> = gone.keys().cloned().collect();
    let ended = each(&ready, async |cluster: &str| {
        end(cluster, &way(cluster, args, source), client).await
    });
    let ended = ended.await;
    for (cluster, had_more) in &ended {
        let had = *had_more || gone[cluster];
        let done = if had { "left" } else { "unchanged" };
        terminal::print(&format!("{cluster} {done}\n"));
    }
    Ok((ended.len() == names.len()).into())
}

/// Returns the way to a member.
fn way(cluster: &str, args: &LeaveArgs, source: &Source) -> Source {
    of_member(source, args.member_context.as_deref().unwrap_or(cluster))
}

/// Deletes the Cluster, if it is one of `join --fleet`. Returns `true` if there was one.
async fn begin(cluster: &str, way: &Source, client: &Client) -> Result<bool, Error> {
    let clusters: Api<ClusterView> = Api::all(client.clone());
    let found = clusters.get_opt(cluster).await;
    let found = found.map_err(|source| refused(format!("get cluster {cluster}"), source))?;
    // Without one, a run that was cut short goes on, or there is nothing to do.
    let Some(found) = found else {
        return Ok(false);
    };
    let secret = read(client, &access::secret_name(cluster)).await?;
    let token = secret.as_ref().and_then(access::token);
    access::require_ours(cluster, &found, token.as_deref())?;
    // Before anything is lost: the member is needed in the end.
    way.cluster()?;
    if found.metadata.deletion_timestamp.is_none() {
        delete(client, &access::cluster_name(cluster)).await?;
    }
    Ok(true)
}

/// Deletes the account in the member, and then the credentials, by which a run that was cut short knows it. Returns `true` if there was
/// any of it.
async fn end(cluster: &str, way: &Source, client: &Client) -> Result<bool, Error> {
    let secret = read(client, &access::secret_name(cluster)).await?;
    let token = secret.as_ref().and_then(access::token);
    let Some(token) = token.filter(|token| account::has_issued(token)) else {
        return Ok(false);
    };
    let in_member = delete_account(way, &token).await;
    delete(client, &access::secret_name(cluster)).await?;
    in_member.map_err(|error| {
        Error::Unusable(format!(
            "the fleet has forgotten it, and its account karmada-rs/fleet may still be in the member: {error}"
        ))
    })?;
    Ok(true)
}

/// Deletes the account that has issued `token`, with its rights.
async fn delete_account(way: &Source, token: &str) -> Result<(), Error> {
    let member = connect(way, NAME).await?;
    let [account, _] = account::identity();
    let Some(account) = read(&member, &account).await? else {
        return Ok(());
    };
    let uid = Claims::of(token).and_then(|claims| claims.account_uid);
    if uid.as_deref() != account["metadata"]["uid"].as_str() {
        let problem = "its context leads to another member, or the account is a new one";
        return Err(Error::Unusable(problem.to_owned()));
    }
    for object in account::everything() {
        delete(&member, &object).await?;
    }
    Ok(())
}

//! `kubectl remedy join --fleet`: an account in the member, the Secret and the Cluster here, and the wait until it is ready.

use std::collections::BTreeMap;

use jiff::Timestamp;
use karmada_api::ClusterView;
use karmada_api::condition::TRUE;
use karmada_runtime::client::{Source, connect};
use kube::Client;
use objects::Key;
use objects::condition::find;
use propagation_rules::cluster::READY;
use serde_json::{Value, from_value};

use super::access::{self, Address};
use super::account;
use super::ids::Ids;
use crate::answer::Answer;
use crate::args::join::JoinArgs;
use crate::clusters::{each, fails, named, of_member, require_one};
use crate::error::Error;
use crate::identity::NAME;
use crate::membership::joined::Joined;
use crate::requests::{Written, read, write, write_all};
use crate::waiting::{Goal, Waiting, Watched};

/// Lets clusters join.
pub(in crate::membership) async fn run(
    args: &JoinArgs,
    source: &Source,
    client: &Client,
    now: Timestamp,
) -> Result<Answer, Error> {
    let names = named(&args.clusters, client).await?;
    if args.member_context.is_some() || args.server.is_some() {
        require_one(&names, "--member-context and --server are")?;
    }
    let ids = Ids::read(client).await?;
    let joined = each(&names, async |cluster: &str| {
        let context = args.member_context.as_deref().unwrap_or(cluster);
        let way = of_member(source, context);
        join(cluster, args, &way, client, &ids, now).await
    });
    let joined = joined.await;
    let are_written = joined.len() == names.len();
    let are_ready = wait(joined, args, client).await?;
    Ok((are_written && are_ready).into())
}

/// Writes the objects in the member and the fleet. Nothing is written if the cluster cannot join.
async fn join(
    cluster: &str,
    args: &JoinArgs,
    way: &Source,
    client: &Client,
    ids: &Ids,
    now: Timestamp,
) -> Result<Joined, Error> {
    let present = read(client, &access::cluster_name(cluster)).await?;
    let stored = read(client, &access::secret_name(cluster)).await?;
    let known = stored.as_ref().and_then(access::token);
    if let Some(present) = &present {
        let view: ClusterView = from_value(present.clone())
            .map_err(|error| Error::Unusable(format!("its Cluster cannot be read: {error}")))?;
        if view.metadata.deletion_timestamp.is_some() {
            return Err(Error::Unusable("the cluster is being deleted".to_owned()));
        }
        access::require_ours(cluster, &view, known.as_deref())?;
    }
    let endpoint = access::endpoint(stored.as_ref(), present.as_ref());
    let address = Address::of(way.cluster()?, args, endpoint)?;
    let member = connect(way, NAME).await?;
    let id = ids.claim(cluster, &member).await?;
    let before = present.as_ref().and_then(|it| it["spec"]["id"].as_str());
    if before.is_some_and(|before| !before.is_empty() && before != id) {
        let problem = "its context leads to another member than when it joined: let it leave first";
        return Err(Error::Unusable(problem.to_owned()));
    }

    let (most, token) = in_member(args, &member, known, now).await?;
    let (secret, _) = write(client, &access::secret(cluster, &address, &token)).await?;
    let (joined, _) = write(client, &access::cluster(cluster, address, &id)).await?;
    Ok(Joined::new(joined, most.max(secret), token))
}

/// Writes the account with its rights, and returns a token of it: the one that is `known` if that is good for long.
async fn in_member(
    args: &JoinArgs,
    member: &Client,
    known: Option<String>,
    now: Timestamp,
) -> Result<(Written, String), Error> {
    let mut needed = Vec::from(account::first());
    needed.extend(account::rights());
    needed.extend(role(args, member).await?);
    let (most, uids) = write_all(member, &needed).await?;
    let [_, account, secret, ..] = &uids[..] else {
        return Err(Error::Unusable("its account has no uid".to_owned()));
    };
    let token = account::account()
        .token(known, [account, secret], args.token_duration, member, now)
        .await?;
    Ok((most, token))
}

/// Returns the role to write, if there is one to write: a role that is there stays unless kinds are given.
async fn role(args: &JoinArgs, member: &Client) -> Result<Option<Value>, Error> {
    if !args.kinds.is_empty() {
        return Ok(Some(account::role(&args.kinds)));
    }
    let usual = account::role(&account::usual_kinds()?);
    let present = read(member, &usual).await?;
    Ok(present.is_none().then_some(usual))
}

/// Waits until the clusters are ready, and tells of each. Returns `true` if all are.
async fn wait(
    joined: Vec<(String, Joined)>,
    args: &JoinArgs,
    client: &Client,
) -> Result<bool, Error> {
    let joined: BTreeMap<String, Joined> = joined.into_iter().collect();
    let clusters = joined.keys().map(|cluster| Key::new("", cluster));
    let waiting = Waiting::<ClusterView>::new(Goal::Is(is_ready), clusters);
    let left = waiting.run(&[Watched::All], args.timeout, client, |key| {
        if let Some(joined) = joined.get(&*key.name) {
            joined.print(&key.name);
        }
    });
    let left = left.await?;
    for (key, cluster) in &left {
        fails(&key.name, &late(cluster.as_ref()));
    }
    Ok(left.is_empty())
}

fn is_ready(cluster: &ClusterView) -> bool {
    find(&cluster.status.conditions, READY).is_some_and(|ready| ready.status == TRUE)
}

/// Tells why a cluster is not ready, and where to look.
fn late(cluster: Option<&ClusterView>) -> String {
    let ready = cluster.and_then(|cluster| find(&cluster.status.conditions, READY));
    match ready {
        Some(ready) => format!("it is not ready: {}: {}", ready.reason, ready.message),
        None => "nobody asks whether it is ready: look at the cluster-controller and its lease karmada-system/cluster-controller (docs/fleet.md)".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Whoever waits in vain learns why the cluster is not ready, or who should say so.
    #[test]
    fn late_cluster_is_explained() {
        let cluster = |conditions: Value| -> ClusterView {
            let status = json!({ "conditions": conditions });
            from_value(json!({ "metadata": { "name": "m1" }, "status": status })).unwrap()
        };
        let dead = json!([{ "type": "Ready", "status": "False", "reason": "ClusterNotReachable",
            "message": "no route to host" }]);
        let told = late(Some(&cluster(dead)));
        assert_eq!(
            told,
            "it is not ready: ClusterNotReachable: no route to host"
        );
        for silent in [None, Some(&cluster(json!([])))] {
            assert!(late(silent).contains("karmada-system/cluster-controller"));
        }
        let well = cluster(json!([{ "type": "Ready", "status": "True" }]));
        assert!(is_ready(&well) && !is_ready(&cluster(json!([]))));
    }
}

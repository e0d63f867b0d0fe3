//! `kubectl remedy leave`: takes away the objects of `join`, and those of the agents.

use karmada_api::condition::is_of_member;
use karmada_api::{Cluster, Work, execution_namespace};
use karmada_runtime::client::{Source, connect};
use kube::{Api, Client};
use objects::Key;
use objects::patch::JsonPatch;
use objects::write::{Guard, ObjectRef, Write};

use super::late::{NOT_GONE, explain};
use super::{member, rights, work};
use crate::answer::Answer;
use crate::args::DryRun;
use crate::args::join::LeaveArgs;
use crate::clusters::{each, fails, named, of_member, of_namespace, require_one, view};
use crate::error::Error;
use crate::identity::NAME;
use crate::requests::{delete, refused};
use crate::send::{Edited, edit};
use crate::terminal;
use crate::waiting::{Goal, Waiting, Watched};

/// Lets clusters leave.
pub(in crate::membership) async fn run(
    args: &LeaveArgs,
    source: &Source,
    client: &Client,
) -> Result<Answer, Error> {
    let names = named(&args.clusters, client).await?;
    let member = match &args.member_context {
        Some(context) => {
            require_one(&names, "--member-context is")?;
            Some(connect(&of_member(source, context), NAME).await?)
        }
        None => None,
    };
    let begun = each(&names, async |cluster: &str| {
        begin(cluster, member.as_ref(), client).await
    });
    let begun = begun.await;
    let works = begun.iter().flat_map(|(cluster, _)| {
        let namespace = execution_namespace(cluster);
        [work::AGENT, work::NAMESPACE].map(|name| Key::new(namespace.clone(), name))
    });
    let waiting = Waiting::<Work>::new(Goal::Gone, works);
    let watches = [work::AGENT, work::NAMESPACE].map(Watched::Named);
    let left = waiting.run(&watches, args.timeout, client, |_| {});
    let left = left.await?;

    let mut are_well = begun.len() == names.len();
    let begun_names: Vec<String> = begun.iter().map(|(cluster, _)| cluster.clone()).collect();
    let cleaned = each(&begun_names, async |cluster: &str| {
        clean(cluster, client).await
    })
    .await;
    are_well &= cleaned.len() == begun.len();
    for (cluster, cleaned) in &cleaned {
        let had = begun.iter().any(|(name, had)| name == cluster && *had);
        let late = left.iter();
        let late = late.filter(|(key, _)| of_namespace(&key.namespace) == cluster);
        let mut late = late.collect::<Vec<_>>().into_iter();
        if let Some((_, work)) = late.next() {
            let seen = view(cluster, client).await;
            fails(cluster, &explain(NOT_GONE, work.as_ref(), seen.as_ref()));
            are_well = false;
        } else if had || *cleaned == Cleaned::Something {
            terminal::print(&format!("{cluster} left\n"));
        } else if *cleaned == Cleaned::NoCluster {
            fails(cluster, &"there is no such cluster");
            are_well = false;
        } else {
            terminal::print(&format!("{cluster} unchanged\n"));
        }
    }
    Ok(are_well.into())
}

/// Deletes the agent and its rights: from then on it writes nothing. Returns `true` if there was any of it.
async fn begin(cluster: &str, member: Option<&Client>, client: &Client) -> Result<bool, Error> {
    let mut had = false;
    for work in work::names(cluster) {
        had |= delete(client, &work).await?;
    }
    if let Some(member) = member {
        let components = member::found(member).await?.components;
        let objects = member::objects("", "", "", &components)?;
        for object in objects.iter().rev() {
            had |= delete(member, object).await?;
        }
    }
    // The account is the first, and the last to go: a run that was cut short finds it.
    let mut rights = rights::objects(cluster)?;
    rights.push(rights::secret(cluster));
    for object in rights.iter().rev() {
        had |= delete(client, object).await?;
    }
    Ok(had)
}

/// The remains of the agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cleaned {
    Something,
    Nothing,
    NoCluster,
}

/// Deletes the writes of the agents: their lease, and the conditions of the cluster.
async fn clean(cluster: &str, client: &Client) -> Result<Cleaned, Error> {
    let had_lease = delete(client, &rights::lease(cluster)).await?;
    let clusters: Api<Cluster> = Api::all(client.clone());
    let edited = edit(&clusters, cluster, DryRun::None, removal).await;
    let edited =
        edited.map_err(|source| refused(format!("remove the conditions of {cluster}"), source))?;
    Ok(match edited {
        Edited::Written(_) => Cleaned::Something,
        _ if had_lease => Cleaned::Something,
        Edited::Unchanged(_) => Cleaned::Nothing,
        Edited::Absent(_) => Cleaned::NoCluster,
    })
}

/// Returns the write that removes the agents' conditions, if there are any.
fn removal(cluster: &Cluster) -> Option<Write> {
    let mut patch = JsonPatch::default();
    // From the end, so that the places of the others stay.
    for (place, condition) in cluster.conditions().iter().enumerate().rev() {
        if is_of_member(condition) {
            let place = place.to_string();
            let element = ["status", "conditions", &place];
            patch.test_name(element.into_iter().chain(["type"]), &condition.type_);
            patch.remove(element);
        }
    }
    if patch.is_empty() {
        return None;
    }
    let write = Write::json("conditions", ObjectRef::of(cluster, &()), patch);
    Some(write.of_status().guarded(Guard::Version))
}

//! `kubectl remedy join`: account, rights and token in the Karmada API, and the agent in the member.

use std::collections::BTreeMap;

use jiff::Timestamp;
use karmada_api::{Cluster, Work, execution_namespace};
use karmada_runtime::client::{Source, connect};
use kube::{Api, Client};
use objects::Key;
use propagation_rules::execution::applied;
use serde_json::Value;

use super::kubeconfig::Address;
use super::kustomize::Components;
use super::late::{UNAPPLIED, explain};
use super::member::{self, Found};
use super::{rights, unreported, work};
use crate::answer::Answer;
use crate::args::join::JoinArgs;
use crate::clusters::{each, fails, named, of_member, of_namespace, require, require_one, view};
use crate::error::Error;
use crate::identity::NAME;
use crate::manifest::Format;
use crate::membership::joined::Joined;
use crate::namespace::namespace;
use crate::requests::{Written, read, write, write_all};
use crate::waiting::{Goal, Waiting, Watched};
use crate::{manifest, terminal};

/// Where the agent of a cluster is written.
enum Place {
    /// Into the Karmada API, as Works.
    Works,
    /// Into the member.
    Member(Client),
    /// Onto standard output.
    Output(Format),
}

/// The part that is the same for each cluster.
struct Joining<'a> {
    args: &'a JoinArgs,
    address: Address,
    /// Those that the flags give, in place of those that an agent has kept.
    components: Option<Components>,
    place: Place,
}

/// Joins clusters.
pub(in crate::membership) async fn run(
    args: &JoinArgs,
    source: &Source,
    client: &Client,
    now: Timestamp,
) -> Result<Answer, Error> {
    let address = Address::of(args, source)?;
    let is_given = args.no_kustomize || !args.kustomize.is_empty();
    let given = is_given.then(|| Components::read(&args.kustomize));
    let components = given.transpose()?;
    let names = named(&args.clusters, client).await?;
    let joining = Joining {
        args,
        address,
        components,
        place: place(args, source, &names).await?,
    };
    let joined = each(&names, async |cluster: &str| {
        if !args.clusters.all {
            require(cluster, client).await?;
        }
        join(cluster, &joining, client, now).await
    });
    let joined = joined.await;
    let are_written = joined.len() == names.len();
    let are_well = match &joining.place {
        Place::Output(_) => true,
        Place::Member(member) => report(joined, Some(member), args, client).await?,
        Place::Works => {
            let carried_out = carried_out(joined, args, client).await?;
            let are_applied = carried_out.len() == names.len();
            report(carried_out, None, args, client).await? && are_applied
        }
    };
    Ok((are_written && are_well).into())
}

async fn place(args: &JoinArgs, source: &Source, names: &[String]) -> Result<Place, Error> {
    let place = match (&args.member_context, args.output) {
        (Some(context), _) => Place::Member(connect(&of_member(source, context), NAME).await?),
        (None, Some(format)) => Place::Output(format),
        (None, None) => return Ok(Place::Works),
    };
    require_one(names, "--member-context and -o are")?;
    Ok(place)
}

/// Writes the objects of a cluster. Nothing is written if something is missing for the agent itself.
async fn join(
    cluster: &str,
    joining: &Joining<'_>,
    client: &Client,
    now: Timestamp,
) -> Result<Joined, Error> {
    let Joining {
        args,
        address,
        components,
        place,
    } = joining;
    let found = found(cluster, place, client).await?;
    let image = args.image.as_ref().or(found.image.as_ref());
    let image = image.ok_or_else(|| {
        let problem = "it has no agent yet, so give --image, such as registry.example/cluster-health-agent:0.1.0";
        Error::Unusable(problem.to_owned())
    })?;
    let kubeconfig = address.kubeconfig(found.kubeconfig.as_deref())?;

    let mut needed = rights::objects(cluster)?;
    // Right behind the account: their uids are those of the token.
    needed.insert(1, rights::secret(cluster));
    let (most, uids) = write_all(client, &needed).await?;
    let [account, secret, ..] = &uids[..] else {
        return Err(Error::Unusable("its account has no uid".to_owned()));
    };
    let token = rights::account(cluster)
        .token(
            found.token,
            [account, secret],
            args.token_duration,
            client,
            now,
        )
        .await?;
    let components = components.as_ref().unwrap_or(&found.components);
    let objects = member::objects(image, &kubeconfig, &token, components)?;
    let agent = install(cluster, objects, place, client).await?;
    Ok(Joined::new(agent, most, token))
}

/// Returns the known agent of the cluster.
async fn found(cluster: &str, place: &Place, client: &Client) -> Result<Found, Error> {
    match place {
        Place::Works => {
            let [agent, _] = work::names(cluster);
            let found = read(client, &agent).await?.unwrap_or_default();
            Ok(Found::in_objects(work::objects(&found)))
        }
        Place::Member(member) => member::found(member).await,
        Place::Output(_) => Ok(Found::default()),
    }
}

/// Writes the agent where it belongs, and its namespace first.
async fn install(
    cluster: &str,
    mut objects: Vec<Value>,
    place: &Place,
    client: &Client,
) -> Result<Written, Error> {
    match place {
        Place::Works => {
            write(client, &work::of_namespace(cluster)).await?;
            let (written, _) = write(client, &work::of_agent(cluster, objects)).await?;
            Ok(written)
        }
        Place::Member(member) => {
            objects.insert(0, namespace());
            let (written, _) = write_all(member, &objects).await?;
            Ok(written)
        }
        Place::Output(format) => {
            objects.insert(0, namespace());
            let list = serde_json::json!({ "apiVersion": "v1", "kind": "List", "items": objects });
            terminal::print(&manifest::text(&list, *format)?);
            Ok(Written::Unchanged)
        }
    }
}

/// Waits until the Works are applied, and tells of those that are not. Returns the other clusters.
async fn carried_out(
    mut joined: Vec<(String, Joined)>,
    args: &JoinArgs,
    client: &Client,
) -> Result<Vec<(String, Joined)>, Error> {
    let works = joined.iter();
    let works = works.map(|(cluster, _)| Key::new(execution_namespace(cluster), work::AGENT));
    let waiting = Waiting::<Work>::new(Goal::Is(|work| applied(work).is_some()), works);
    let watches = [Watched::Named(work::AGENT)];
    let left = waiting.run(&watches, args.timeout, client, |_| {}).await?;
    for (key, work) in &left {
        let cluster = of_namespace(&key.namespace);
        let seen = view(cluster, client).await;
        fails(cluster, &explain(UNAPPLIED, work.as_ref(), seen.as_ref()));
        joined.retain(|(name, _)| name != cluster);
    }
    Ok(joined)
}

/// Waits until the agents report, unless that is not wanted, and tells of each cluster. Returns `true` if all do.
async fn report(
    joined: Vec<(String, Joined)>,
    member: Option<&Client>,
    args: &JoinArgs,
    client: &Client,
) -> Result<bool, Error> {
    let joined: BTreeMap<String, Joined> = joined.into_iter().collect();
    if !args.wait {
        for (cluster, joined) in &joined {
            joined.print(cluster);
        }
        return Ok(true);
    }
    let clusters = joined.keys().map(|cluster| Key::new("", cluster));
    let waiting = Waiting::<Cluster>::new(Goal::Is(unreported::reports), clusters);
    let left = waiting.run(&[Watched::All], args.timeout, client, |key| {
        if let Some(joined) = joined.get(&*key.name) {
            joined.print(&key.name);
        }
    });
    let left = left.await?;
    for key in left.keys() {
        let why = held_up(&key.name, member, client).await;
        fails(&key.name, &format!("its agents have not reported: {why}"));
    }
    Ok(left.is_empty())
}

/// Tells the obstacle of the agents of a cluster, as far as they can be read.
async fn held_up(cluster: &str, member: Option<&Client>, client: &Client) -> String {
    let Some(member) = member else {
        let works: Api<Work> = Api::namespaced(client.clone(), &execution_namespace(cluster));
        let work = works.get_opt(work::AGENT).await.ok().flatten();
        return unreported::explain(work.as_ref());
    };
    let names = member::names().unwrap_or_default();
    let mut agents = names.iter().filter(|object| object["kind"] == "DaemonSet");
    let found = match agents.next() {
        Some(agents) => read(member, agents).await.ok().flatten(),
        None => None,
    };
    unreported::explain_pods(found.as_ref().and_then(|found| found.get("status")))
}

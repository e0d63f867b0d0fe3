//! What the remedy controller costs in a big fleet, next to what the API server allows anybody: the
//! same patches by a bare client, in the same run.

use std::{collections::HashSet, pin::Pin, time::Duration};

use anyhow::{Context, Result};
use api::{Cluster, TRAFFIC_CONTROL, condition::DNS_READY};
use futures::{Stream, StreamExt, TryStreamExt, stream};
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, Patch, PatchParams},
    core::{NotUsed, Object},
    runtime::watcher::{self, Config, Event, watcher},
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use crate::{
    control_plane::Server,
    fleet::{Fleet, on_dns},
    programs::Profile,
};

/// How many patches the bare client has under way, as the controller has.
const AT_ONCE: usize = 8;
/// How often the way from a condition to the actions is timed.
const TIMES: usize = 101;
const SEEN_WITHIN: Duration = Duration::from_mins(5);

/// A Cluster of which little is read, so that looking costs little.
type Glance = Object<NotUsed, Actions>;

#[derive(Clone, Debug, Default, Deserialize)]
struct Actions {
    #[serde(default, rename = "remedyActions")]
    remedy_actions: Option<Vec<String>>,
}

/// Measures with so many clusters, on a real API server, and says what it finds.
///
/// # Errors
/// When a part does not start, or something is not seen within five minutes.
pub async fn bench(clusters: u16, say: impl Fn(String)) -> Result<()> {
    let fleet = Fleet::start(Server::Real, Profile::Dist).await?;
    let names: Vec<String> = (1..=clusters).map(|nth| format!("member{nth}")).collect();
    say(format!("creating {clusters} clusters"));
    let created = names.iter().map(|name| fleet.create_cluster(name));
    stream::iter(created)
        .buffer_unordered(AT_ONCE)
        .try_collect::<()>()
        .await?;
    let mut seen = Seen::watch(&fleet.karmada.client()).await?;

    say("measuring the limits".to_owned());
    let blocked = json!({ "remedyActions": [TRAFFIC_CONTROL] });
    let free = json!({ "remedyActions": null });
    let one = &names[0];
    let limit = Figures {
        applied: patch_all(&mut seen, &names, &blocked).await?,
        lifted: patch_all(&mut seen, &names, &free).await?,
        // The condition's patch and its event, then the actions' patch and its event.
        followed: 2 * p50(&mut seen, one, [&blocked, &free]).await?,
    };

    say("measuring the controller".to_owned());
    let controller = fleet.remedy_controller().await?;
    let leads = "karmada_remedy_controller_lease_holder";
    controller.until_metric(leads, |held| held > 0.0).await?;
    let began = Instant::now();
    let to_all = json!({ "actions": [TRAFFIC_CONTROL] });
    fleet.create_remedy("all", to_all).await?;
    let applied = seen.until(|acted| acted.len() == names.len()).await? - began;
    let began = Instant::now();
    fleet.delete_remedy("all").await?;
    let lifted = seen.until(HashSet::is_empty).await? - began;
    fleet.create_remedy("dns", on_dns()).await?;
    let [dead, well] = ["False", "True"].map(|status| {
        json!({ "conditions": [{
            "type": DNS_READY, "status": status, "reason": "Bench", "message": "",
            "lastTransitionTime": "2026-11-20T08:00:00Z",
        }] })
    });
    let followed = p50(&mut seen, one, [&dead, &well]).await?;
    let memory = f64::from(u32::try_from(controller.memory()?)?) / 1024.0;
    controller.stop().await?;

    say(format!(
        "with {clusters} clusters; in brackets the limit, the same patches by a bare client, {AT_ONCE} at once"
    ));
    say(format!(
        "a Remedy for all is applied: {applied:.2?} ({:.2?})",
        limit.applied
    ));
    say(format!("and lifted: {lifted:.2?} ({:.2?})", limit.lifted));
    say(format!(
        "actions follow a condition, p50 of {TIMES}: {followed:.1?} ({:.1?})",
        limit.followed
    ));
    say(format!("memory of the controller: {memory:.1} MiB"));
    Ok(())
}

/// What a bare client needs for what the controller does.
struct Figures {
    applied: Duration,
    lifted: Duration,
    followed: Duration,
}

/// Patches every cluster's status, and says how long it took until all patches were seen.
async fn patch_all(seen: &mut Seen, names: &[String], status: &Value) -> Result<Duration> {
    let began = Instant::now();
    let patches = names.iter().map(|name| seen.patch(name, status));
    let under_way = stream::iter(patches).buffer_unordered(AT_ONCE);
    under_way.try_collect::<()>().await?;
    let wanted = if status["remedyActions"].is_null() {
        0
    } else {
        names.len()
    };
    Ok(seen.until(|acted| acted.len() == wanted).await? - began)
}

/// Patches a cluster's status again and again with what gives it actions and what takes them away,
/// and says how long it mostly takes until that is seen.
async fn p50(seen: &mut Seen, name: &str, [giving, taking]: [&Value; 2]) -> Result<Duration> {
    let mut times = Vec::new();
    for nth in 0..TIMES {
        let gives = nth % 2 == 0;
        let began = Instant::now();
        seen.patch(name, if gives { giving } else { taking })
            .await?;
        let acted = seen.until(|acted| acted.contains(name) == gives).await?;
        times.push(acted - began);
    }
    seen.patch(name, taking).await?;
    seen.until(|acted| !acted.contains(name)).await?;
    times.sort_unstable();
    Ok(times[TIMES / 2])
}

/// A watch on the clusters, and which of them have actions.
struct Seen {
    clusters: Api<Glance>,
    events: Pin<Box<dyn Stream<Item = watcher::Result<Event<Glance>>>>>,
    acted: HashSet<String>,
}

impl Seen {
    async fn watch(client: &Client) -> Result<Self> {
        let clusters: Api<Glance> =
            Api::all_with(client.clone(), &ApiResource::erase::<Cluster>(&()));
        let mut events = Box::pin(watcher(clusters.clone(), Config::default()));
        while !matches!(events.try_next().await?, Some(Event::InitDone)) {}
        Ok(Self {
            clusters,
            events,
            acted: HashSet::new(),
        })
    }

    async fn patch(&self, name: &str, status: &Value) -> Result<()> {
        let patch = Patch::Merge(json!({ "status": status }));
        self.clusters
            .patch_status(name, &PatchParams::default(), &patch)
            .await?;
        Ok(())
    }

    /// Waits until those with actions are as `are` says, and says when that was.
    async fn until(&mut self, are: impl Fn(&HashSet<String>) -> bool) -> Result<Instant> {
        let looking = async {
            while !are(&self.acted) {
                let event = self.events.try_next().await?.context("the watch ended")?;
                let (Event::Apply(cluster) | Event::InitApply(cluster)) = event else {
                    continue;
                };
                let actions = cluster
                    .status
                    .as_ref()
                    .and_then(|status| status.remedy_actions.as_ref());
                if actions.is_some_and(|actions| !actions.is_empty()) {
                    self.acted.insert(cluster.name_any());
                } else {
                    self.acted.remove(&cluster.name_any());
                }
            }
            Ok(Instant::now())
        };
        timeout(SEEN_WITHIN, looking)
            .await
            .context("not seen in time")?
    }
}

//! The cost of our programs next to a limit measured in the same run. The limit of a controller is the
//! time of the same patches by a bare client on a real API server.

pub mod agent;
pub mod ingresses;
pub mod remedies;

use std::{collections::HashSet, time::Duration};

use anyhow::{Context, Result};
use futures::{
    StreamExt, TryStreamExt,
    stream::{self, BoxStream},
};
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams},
    core::{NotUsed, Object},
    runtime::watcher::{self, Config, Event, watcher},
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use crate::programs::Running;

/// The number of concurrent requests of the bare client, equal to a controller's.
const AT_ONCE: usize = 8;
/// The timeout of every wait for a change.
const SEEN_WITHIN: Duration = Duration::from_mins(5);

/// An object of which only the status is decoded, so that the watch costs little.
type Glance = Object<NotUsed, Status>;

/// The fields of a status that show an action on its object.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    /// Set on a Cluster.
    remedy_actions: Option<Vec<String>>,
    /// Set on an ingress.
    traffic_block_clusters: Option<Vec<String>>,
}

impl Status {
    fn is_acted_on(&self) -> bool {
        let mut lists = [&self.remedy_actions, &self.traffic_block_clusters].into_iter();
        lists.any(|list| list.as_ref().is_some_and(|list| !list.is_empty()))
    }
}

/// A watch on objects, with the names of those that show an action.
struct Seen {
    objects: Api<Glance>,
    events: BoxStream<'static, watcher::Result<Event<Glance>>>,
    acted_on: HashSet<String>,
}

impl Seen {
    /// Starts to watch objects, none of which may show an action yet.
    async fn watch(objects: Api<Glance>) -> Result<Self> {
        let mut events = watcher(objects.clone(), Config::default()).boxed();
        while !matches!(events.try_next().await?, Some(Event::InitDone)) {}
        Ok(Self {
            objects,
            events,
            acted_on: HashSet::new(),
        })
    }

    async fn patch(&self, name: &str, status: &Value) -> Result<()> {
        let patch = Patch::Merge(json!({ "status": status }));
        let parameters = PatchParams::default();
        self.objects.patch_status(name, &parameters, &patch).await?;
        Ok(())
    }

    /// Patches every object and returns the time until `then` objects show an action.
    async fn patch_all(
        &mut self,
        names: &[String],
        status: &Value,
        then: usize,
    ) -> Result<Duration> {
        let began = Instant::now();
        all(names.iter().map(|name| self.patch(name, status))).await?;
        Ok(self.until_count(then).await? - began)
    }

    /// Waits until `count` objects show an action and returns the instant at which they do.
    async fn until_count(&mut self, count: usize) -> Result<Instant> {
        self.until(|acted_on| acted_on.len() == count).await
    }

    async fn until(&mut self, are: impl Fn(&HashSet<String>) -> bool) -> Result<Instant> {
        let looking = async {
            while !are(&self.acted_on) {
                let event = self.events.try_next().await?.context("the watch ended")?;
                // A watcher that loses its watch lists anew, which shows changes as `InitApply`.
                let (Event::Apply(object) | Event::InitApply(object)) = event else {
                    continue;
                };
                let name = object.name_any();
                if object.status.is_some_and(|status| status.is_acted_on()) {
                    self.acted_on.insert(name);
                } else {
                    self.acted_on.remove(&name);
                }
            }
            Ok(Instant::now())
        };
        let looked = timeout(SEEN_WITHIN, looking).await;
        looked.context("not seen in time")?
    }
}

/// Runs all of `work`, [`AT_ONCE`] at a time.
async fn all(work: impl Iterator<Item = impl Future<Output = Result<()>>>) -> Result<()> {
    let under_way = stream::iter(work).buffer_unordered(AT_ONCE);
    under_way.try_collect().await
}

/// Waits until a controller leads.
async fn leads(controller: &Running, metric: &str) -> Result<()> {
    controller.until_metric(metric, |held| held > 0.0).await
}

/// Formats the resident memory of a controller.
fn memory(controller: &Running) -> Result<String> {
    let mebibytes = f64::from(u32::try_from(controller.memory()?)?) / 1024.0;
    Ok(format!(
        "resident memory of the controller: {mebibytes:.1} MiB"
    ))
}

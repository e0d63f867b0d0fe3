//! What our controllers cost in a big fleet, next to what a real API server allows anybody: the same
//! patches by a bare client, in the same run.

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

/// How much the bare client has under way, as the controllers have.
const AT_ONCE: usize = 8;
const SEEN_WITHIN: Duration = Duration::from_mins(5);

/// An object of which little is read, so that looking costs little.
type Glance = Object<NotUsed, Status>;

/// The parts of a status that say whether something is done about its object.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    /// Of a Cluster.
    remedy_actions: Option<Vec<String>>,
    /// Of an ingress.
    traffic_block_clusters: Option<Vec<String>>,
}

impl Status {
    fn is_acted_on(&self) -> bool {
        let mut lists = [&self.remedy_actions, &self.traffic_block_clusters].into_iter();
        lists.any(|list| list.as_ref().is_some_and(|list| !list.is_empty()))
    }
}

/// A watch on objects, and which of them are acted on.
struct Seen {
    objects: Api<Glance>,
    events: BoxStream<'static, watcher::Result<Event<Glance>>>,
    acted_on: HashSet<String>,
}

impl Seen {
    /// Begins to watch objects, none of which is acted on.
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

    /// Patches every object, and says how long it took until so many were seen to be acted on.
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

    /// Waits until so many objects are acted on, and says when that was.
    async fn until_count(&mut self, count: usize) -> Result<Instant> {
        self.until(|acted_on| acted_on.len() == count).await
    }

    async fn until(&mut self, are: impl Fn(&HashSet<String>) -> bool) -> Result<Instant> {
        let looking = async {
            while !are(&self.acted_on) {
                let event = self.events.try_next().await?.context("the watch ended")?;
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

/// Does all of this, [so much at once](AT_ONCE).
async fn all(work: impl Iterator<Item = impl Future<Output = Result<()>>>) -> Result<()> {
    let under_way = stream::iter(work).buffer_unordered(AT_ONCE);
    under_way.try_collect().await
}

/// Waits until a controller leads.
async fn leads(controller: &Running, metric: &str) -> Result<()> {
    controller.until_metric(metric, |held| held > 0.0).await
}

/// The memory of a controller, for a person.
fn memory(controller: &Running) -> Result<String> {
    let mebibytes = f64::from(u32::try_from(controller.memory()?)?) / 1024.0;
    Ok(format!("memory of the controller: {mebibytes:.1} MiB"))
}

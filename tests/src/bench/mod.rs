//! The cost of our programs next to a limit measured in the same run. The limit of a controller is the
//! time of the same writes by a bare client on a real API server. Controller and bare client are
//! measured in turns, each from rest, and beside the bare client idle watches stand for those of the
//! controller.

pub mod agent;
pub mod ingresses;
pub mod placement;
pub mod propagation;
pub mod remedies;
mod requests;

use std::{
    cmp::Ordering, collections::HashSet, convert::Infallible, fmt, fmt::Debug, time::Duration,
};

use anyhow::{Context, Result};
use futures::{
    StreamExt, TryStreamExt,
    stream::{self, BoxStream},
};
use kube::{
    Api, Resource, ResourceExt,
    api::{ApiResource, Patch, PatchParams},
    core::{NotUsed, Object},
    runtime::watcher::{self, Config, Event, watcher},
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::{
    task::JoinSet,
    time::{Instant, timeout},
};

use crate::programs::Running;

/// The number of concurrent requests of the bare client, equal to a controller's.
const AT_ONCE: usize = 8;
/// The number of rounds, in each of which a controller and its limit are measured.
const ROUNDS: usize = 3;
/// The timeout of every wait for the next change.
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

/// A watch on objects, with the names of those that are of interest.
struct Seen<K> {
    objects: Api<K>,
    events: BoxStream<'static, watcher::Result<Event<K>>>,
    is_of_interest: fn(&K) -> bool,
    of_interest: HashSet<String>,
}

impl Seen<Glance> {
    /// Starts to watch objects for actions.
    async fn actions<K>(objects: impl FnOnce(&ApiResource) -> Api<Glance>) -> Result<Self>
    where
        K: Resource<DynamicType = ()>,
    {
        Self::watch(
            objects(&ApiResource::erase::<K>(&())),
            Config::default(),
            |object: &Glance| object.status.as_ref().is_some_and(Status::is_acted_on),
        )
        .await
    }

    /// Patches every object and returns the time until `then` objects show an action.
    async fn patch_all(
        &mut self,
        names: &[String],
        status: &Value,
        then: usize,
    ) -> Result<Duration> {
        let began = Instant::now();
        let objects = self.objects.clone();
        let writes = all(names.iter().map(|name| patch(&objects, name, status)));
        let (seen, ()) = tokio::try_join!(self.until_count(then), writes)?;
        Ok(seen - began)
    }
}

/// Patches the status of an object.
async fn patch(objects: &Api<Glance>, name: &str, status: &Value) -> Result<()> {
    let patch = Patch::Merge(json!({ "status": status }));
    let parameters = PatchParams::default();
    objects.patch_status(name, &parameters, &patch).await?;
    Ok(())
}

impl<K> Seen<K>
where
    K: Resource<DynamicType: Clone> + Clone + DeserializeOwned + Debug + Send + 'static,
{
    /// Starts to watch objects and waits until those that exist have been seen.
    async fn watch(
        objects: Api<K>,
        config: Config,
        is_of_interest: fn(&K) -> bool,
    ) -> Result<Self> {
        let mut seen = Self {
            events: watcher(objects.clone(), config).boxed(),
            objects,
            is_of_interest,
            of_interest: HashSet::new(),
        };
        while !matches!(seen.next().await?, Event::InitDone) {}
        Ok(seen)
    }

    /// Waits until `count` objects are of interest and returns the instant at which they are.
    async fn until_count(&mut self, count: usize) -> Result<Instant> {
        self.until(|of_interest| of_interest.len() == count).await
    }

    async fn until(&mut self, are: impl Fn(&HashSet<String>) -> bool) -> Result<Instant> {
        while !are(&self.of_interest) {
            let changed = timeout(SEEN_WITHIN, self.next()).await;
            changed.context("no change is seen any more")??;
        }
        Ok(Instant::now())
    }

    async fn next(&mut self) -> Result<Event<K>> {
        let event = loop {
            match self.events.next().await.context("the watch ended")? {
                Ok(event) => break event,
                // A busy server keeps a short history, and the watcher lists anew.
                Err(watcher::Error::WatchError(status)) if status.code == 410 => {}
                Err(error) => return Err(error.into()),
            }
        };
        match &event {
            // A watcher that loses its watch lists anew, which shows changes as `InitApply`.
            Event::Apply(object) | Event::InitApply(object) if (self.is_of_interest)(object) => {
                self.of_interest.insert(object.name_any());
            }
            Event::Apply(object) | Event::InitApply(object) | Event::Delete(object) => {
                self.of_interest.remove(&object.name_any());
            }
            Event::Init | Event::InitDone => {}
        }
        Ok(event)
    }
}

/// Times of a program, each with the limit measured in the same round.
#[derive(Debug, Default)]
struct Pairs(Vec<(Duration, Duration)>);

impl Pairs {
    fn add(&mut self, program: Duration, limit: Duration) {
        self.0.push((program, limit));
    }
}

/// Shows every round and the median of the ratios.
impl fmt::Display for Pairs {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ratio = |(program, limit): &(Duration, Duration)| program.div_duration_f64(*limit);
        for (program, limit) in &self.0 {
            write!(formatter, "{program:.3?} ({limit:.3?}), ")?;
        }
        let median = median(self.0.iter().map(ratio).collect());
        write!(formatter, "{median:.2} times the limit")
    }
}

/// Returns the median of values, and of none the default of the type.
fn median<T: Copy + Default + PartialOrd>(mut values: Vec<T>) -> T {
    values.sort_unstable_by(|one, other| one.partial_cmp(other).unwrap_or(Ordering::Equal));
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// Performs `work` while a watch receives the changes, as that of a controller would.
async fn beside_a_watch<K, T>(objects: Api<K>, work: impl Future<Output = Result<T>>) -> Result<T>
where
    K: Resource<DynamicType: Clone> + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let mut idle = Seen::watch(objects, Config::default(), |_| false).await?;
    // A task, as a controller is a process of its own.
    let mut watching: JoinSet<Result<Infallible>> = JoinSet::new();
    watching.spawn(async move {
        loop {
            idle.next().await?;
        }
    });
    tokio::select! {
        done = work => done,
        Some(end) = watching.join_next() => match end?? {},
    }
}

/// Runs all of `work`, [`AT_ONCE`] at a time.
async fn all(work: impl Iterator<Item = impl Future<Output = Result<()>>>) -> Result<()> {
    let under_way = stream::iter(work).buffer_unordered(AT_ONCE);
    under_way.try_collect().await
}

/// Waits until a controller leads.
async fn leads(controller: &Running, prefix: &str) -> Result<()> {
    let metric = format!("{prefix}_lease_holder");
    controller.until_metric(&metric, |held| held > 0.0).await
}

/// Returns the resident memory of a controller, in MiB.
fn mebibytes(controller: &Running) -> Result<f64> {
    in_mebibytes(controller.memory()?)
}

fn in_mebibytes(kibibytes: u64) -> Result<f64> {
    Ok(f64::from(u32::try_from(kibibytes)?) / 1024.0)
}

/// Formats the resident memory of a controller.
fn memory(controller: &Running) -> Result<String> {
    let mebibytes = mebibytes(controller)?;
    Ok(format!(
        "resident memory of the controller: {mebibytes:.1} MiB"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A median is the middle value, in whatever order they come.
    #[test]
    fn median_is_the_middle() {
        assert_eq!(median(vec![9, 1, 4]), 4);
        let pairs = [(3, 2), (1, 2), (4, 2)]
            .map(|(program, limit)| (Duration::from_secs(program), Duration::from_secs(limit)));
        let shown = Pairs(pairs.to_vec()).to_string();
        assert!(shown.ends_with(" 1.50 times the limit"), "{shown}");
    }
}

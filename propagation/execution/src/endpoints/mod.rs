//! Collects the endpoints of exported Services from the members, where no Karmada does.
//!
//! ```text
//! ServiceExport or collected EndpointSlice changed → index → queue → reconcile → EndpointSlices of the fleet
//! Work with the Service changed → watch ↗
//! EndpointSlice in a member changed → member ↗
//! ```
//!
//! - `origin`: what is reconciled, the endpoints of one Service from one cluster.
//! - `dispatched`: which Services do Works bring to which clusters? No others are collected.
//! - `slices`: the slices of an API, by what they are endpoints of.
//! - `index`: what is known of exports, members and collected slices, and whom a change of it wakes.
//! - `member`: the watch in a member. It runs as long as an exported Service is there, on those slices only.
//! - `reconcile`: carries out what `karmada_rules::endpoints` plans, and `news` tells users what is in the way.
//!
//! Trouble with any of it holds up no Work: exports and slices have no gate of readiness, and a queue of their own.

mod dispatched;
mod index;
pub(crate) mod member;
mod news;
mod origin;
mod reconcile;
mod slices;

use std::fmt::Debug;
use std::sync::Arc;

use futures::StreamExt;
use karmada_rules::endpoints::COLLECTED;
use karmada_runtime::commit::Committer;
use karmada_runtime::controller;
use karmada_runtime::events::EventRecorder;
use karmada_runtime::lease::Leadership;
use karmada_runtime::program::Program;
use karmada_runtime::watch::{Decoded, events};
use kube::runtime::watcher::{Config, Event};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;

pub(crate) use self::index::SharedEndpoints;
use self::news::News;
use self::reconcile::Collector;

/// Spawns the collection of endpoints into the API of `client` as tasks of `program`.
pub(crate) fn spawn(
    program: &mut Program,
    client: Client,
    endpoints: Arc<SharedEndpoints>,
    committer: Committer,
    events: Option<EventRecorder>,
    leadership: Leadership,
) {
    let shared = Arc::clone(&endpoints);
    let observe = move |event| shared.observe_exports(event);
    program.run_until_stopped(
        "exports",
        follow(client.clone(), Config::default(), observe),
    );
    let shared = Arc::clone(&endpoints);
    let observe = move |event| shared.observe_collected(event);
    let collected = Config::default().labels(COLLECTED);
    program.run_until_stopped("slices", follow(client.clone(), collected, observe));
    let queue = endpoints.queue();
    let collector = Collector {
        endpoints,
        client,
        committer,
        news: News::new(events),
    };
    controller::spawn(program, "endpointslice", collector, queue, leadership);
}

async fn follow<K>(client: Client, selected: Config, observe: impl Fn(Event<Decoded<K>>))
where
    K: Resource<DynamicType: Default> + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let mut changes = std::pin::pin!(events(Api::all(client), selected));
    while let Some(event) = changes.next().await {
        observe(event);
    }
}

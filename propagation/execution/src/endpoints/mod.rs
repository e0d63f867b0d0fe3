//! Collects the endpoints of exported Services from the members, where no Karmada does.
//!
//! ```text
//! ServiceExport or collected EndpointSlice changed → index → queue → reconcile → EndpointSlices of the fleet
//! Work with the Service changed → watch ↗
//! EndpointSlice in a member changed → member ↗
//! ```
//!
//! - `origin`: the key of a reconcile, the endpoints of one Service from one cluster.
//! - `dispatched`: which Services do Works bring to which clusters? No others are collected.
//! - `index`: the known exports, members and collected slices, and the origins that a change of them wakes.
//! - `member`: the watch in a member. It runs as long as an exported Service is there, on those slices only.
//! - `imports`: keeps the Services for which the collected slices are where a ServiceImport takes them.
//! - `reconcile`: carries out the plans of `traffic::endpoints`, and `news` tells users of obstacles.
//!
//! Trouble with any of it holds up no Work: exports and slices have no gate of readiness, and a queue of their own.

mod dispatched;
mod imports;
mod index;
pub(crate) mod member;
mod news;
mod origin;
mod reconcile;

use std::sync::Arc;

use karmada_runtime::commit::Committer;
use karmada_runtime::controller;
use karmada_runtime::events::EventRecorder;
use karmada_runtime::lease::Leadership;
use karmada_runtime::program::Program;
use kube::Client;
use kube::runtime::watcher::Config;
use traffic::endpoints::COLLECTED;

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
    let (exports, collected) = (endpoints.export_rows(), endpoints.collected_rows());
    exports.start_ungated(program, &client, "exports", Config::default());
    let ours = Config::default().labels(COLLECTED);
    collected.start_ungated(program, &client, "slices", ours);
    let (importing, leads) = (committer.clone(), leadership.clone());
    imports::spawn(program, client, importing, leads);
    let queue = endpoints.queue();
    let collector = Collector {
        endpoints,
        committer,
        news: News::new(events),
    };
    controller::spawn(program, "endpointslice", collector, queue, leadership);
}

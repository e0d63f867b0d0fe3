//! The watch of the slices of a member.

use std::future::pending;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use karmada_runtime::watch::{Decoded, events_or_failures, is_forbidden, kept};
use kube::runtime::watcher::Config;
use kube::{Api, Client};
use tokio::sync::Notify;
use tokio::time::sleep;
use traffic::endpoints::Selection;

use super::index::SharedEndpoints;

/// The time for further exports and Works after one that asks for other Services: each such change lists anew.
const BURST: Duration = Duration::from_millis(100);

/// Keeps the slices of the needed Services of a member known, and never returns.
pub(crate) async fn watch(endpoints: &SharedEndpoints, cluster: &str, client: Client) {
    let changed = endpoints.connect(cluster);
    loop {
        let selected = endpoints.selection(cluster);
        tokio::select! {
            () = follow(endpoints, cluster, &selected, client.clone()) => {}
            () = until_others_are_needed(endpoints, cluster, &selected, &changed) => {}
        }
    }
}

async fn follow(endpoints: &SharedEndpoints, cluster: &str, selected: &Selection, client: Client) {
    if selected.services().is_empty() {
        endpoints.forget_slices(cluster);
        return pending().await;
    }
    let slices = Api::<Decoded<EndpointSlice>>::all(client);
    let sent = Config::default().labels(selected.selector());
    let changes = events_or_failures(slices, sent, |error| {
        if is_forbidden(error) {
            endpoints.forbid(cluster);
        }
    });
    let mut changes = std::pin::pin!(changes);
    while let Some(event) = changes.next().await {
        if let Some(event) = kept(event, |slice| selected.keeps(slice)) {
            endpoints.observe_member(cluster, selected, event);
        }
    }
}

async fn until_others_are_needed(
    endpoints: &SharedEndpoints,
    cluster: &str,
    selected: &Selection,
    changed: &Notify,
) {
    loop {
        changed.notified().await;
        sleep(BURST).await;
        if !selected.is_right_for(&endpoints.needed(cluster)) {
            return;
        }
    }
}

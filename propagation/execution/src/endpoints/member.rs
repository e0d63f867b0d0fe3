//! The watch of the slices of a member.

use std::future::pending;

use futures::StreamExt;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use karmada_runtime::watch::{Decoded, events_or_failures, is_forbidden, kept, until_outdated};
use kube::runtime::watcher::Config;
use kube::{Api, Client};
use traffic::endpoints::Selection;

use super::index::SharedEndpoints;

/// Keeps the slices of the needed Services of a member known, and never returns.
pub(crate) async fn watch(endpoints: &SharedEndpoints, cluster: &str, client: Client) {
    let changed = endpoints.connect(cluster);
    loop {
        let selected = endpoints.selection(cluster);
        tokio::select! {
            () = follow(endpoints, cluster, &selected, client.clone()) => {}
            () = until_outdated(&changed, || !selected.is_right_for(&endpoints.needed(cluster))) => {}
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

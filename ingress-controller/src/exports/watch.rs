//! The watches of exports and of our policies.

use std::sync::Arc;

use karmada_api::{PropagationPolicy, ServiceExport};
use karmada_runtime::error::Chain;
use karmada_runtime::program::Program;
use kube::runtime::watcher::Config;
use kube::{Client, Resource};
use traffic::ingress::Exporter;

use crate::index::Index;
use crate::optional::{self, PAUSE, follow};
use crate::watch::SharedIndex;

/// Watches exports and our policies, as soon as the API has these kinds. Readiness does not depend on
/// it: without them, endpoints are served where others export Services.
pub(crate) fn watch(
    program: &mut Program,
    client: &Client,
    index: &Arc<SharedIndex>,
    exporter: &Exporter,
) {
    let (client, index) = (client.clone(), Arc::clone(index));
    let ours = Config::default().labels(&exporter.selector());
    let watching = async move {
        until_served(&client).await;
        let exports = follow(&client, Config::default(), &index, Index::observe_export);
        let policies = follow(&client, ours, &index, Index::observe_policy);
        futures::join!(exports, policies);
    };
    program.run_until_stopped("exports", watching);
}

/// Waits until the API serves both kinds.
async fn until_served(client: &Client) {
    let mut logged = false;
    loop {
        match is_served(client).await {
            Ok(true) => return,
            Ok(false) | Err(_) if logged => {}
            Ok(false) => tracing::warn!(
                "The API has no ServiceExport or no PropagationPolicy: only Services that others export have endpoints"
            ),
            Err(error) => {
                tracing::warn!(error = %Chain(&error), "Could not find out whether the API has ServiceExports, will retry");
            }
        }
        logged = true;
        tokio::time::sleep(PAUSE).await;
    }
}

pub(super) async fn is_served(client: &Client) -> kube::Result<bool> {
    let kinds = [
        (ServiceExport::API_VERSION, ServiceExport::plural(&())),
        (
            PropagationPolicy::API_VERSION,
            PropagationPolicy::plural(&()),
        ),
    ];
    optional::is_served(client, &kinds).await
}

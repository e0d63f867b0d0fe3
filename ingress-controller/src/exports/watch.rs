//! The watches of exports and of our policies.

use karmada_api::{PropagationPolicy, ServiceExport};
use karmada_runtime::error::Chain;
use karmada_runtime::program::Program;
use kube::runtime::watcher::Config;
use kube::{Client, Resource};
use traffic::ingress::Exporter;

use crate::optional::{self, PAUSE};
use crate::watch::SharedIndex;

/// Watches exports and our policies, as soon as the API has these kinds. Readiness does not depend on
/// it: without them, endpoints are served where others export Services.
pub(crate) fn watch(
    program: &mut Program,
    client: &Client,
    index: &SharedIndex,
    exporter: &Exporter,
) {
    let (all, ours) = (
        Config::default(),
        Config::default().labels(&exporter.selector()),
    );
    let exports = index.exports().follow(program, client, all);
    let policies = index.policies().follow(program, client, ours);
    let client = client.clone();
    program.run_until_stopped("exports", async move {
        until_served(&client).await;
        futures::join!(exports, policies);
    });
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

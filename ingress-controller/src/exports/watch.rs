//! The watches of exports and of our policies.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use karmada_api::{PropagationPolicy, ServiceExport};
use karmada_runtime::error::Chain;
use karmada_runtime::program::Program;
use karmada_runtime::watch::{Decoded, events};
use kube::runtime::watcher::{Config, Event};
use kube::{Api, Client, Resource};
use objects::Key;
use serde::de::DeserializeOwned;
use traffic::ingress::Exporter;

use crate::index::Index;
use crate::watch::SharedIndex;

/// The pause between two looks for the kinds in an API that lacks them.
const PAUSE: Duration = Duration::from_mins(1);

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
    for (version, plural) in [
        (ServiceExport::API_VERSION, ServiceExport::plural(&())),
        (
            PropagationPolicy::API_VERSION,
            PropagationPolicy::plural(&()),
        ),
    ] {
        let resources = match client.list_api_group_resources(version).await {
            Ok(list) => list.resources,
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(false),
            Err(error) => return Err(error),
        };
        if !resources.iter().any(|resource| resource.name == plural) {
            return Ok(false);
        }
    }
    Ok(true)
}

async fn follow<K>(
    client: &Client,
    config: Config,
    index: &SharedIndex,
    observe: fn(&mut Index, Event<Decoded<K>>) -> Vec<Key>,
) where
    K: Resource<DynamicType: Default> + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let mut events = std::pin::pin!(events(Api::all(client.clone()), config));
    while let Some(event) = events.next().await {
        index.observe(|index| observe(index, event));
    }
}

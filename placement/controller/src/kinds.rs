//! The kinds of objects that a namespace of the hub may hold.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use karmada_runtime::error::{Chain, LastError};
use karmada_runtime::program::Program;
use kube::Client;
use kube::discovery::{self, ApiGroup, Discovery, verbs};
use objects::GroupVersionKind;
use placement_rules::content::{Hub, is_placeable};
use serde_json::json;
use tokio::sync::Notify;

use crate::inventory::NamespacedKinds;
use crate::shared::SharedIndex;

/// The time after which the kinds are looked up again though no definition has changed.
const LOOK_AGAIN: Duration = Duration::from_mins(15);
/// The same while a group does not answer.
const LOOK_FOR_ANSWER: Duration = Duration::from_secs(30);
/// The time after a failure to look them up, or a change of one, before the next look.
const LOOK_SOON: Duration = Duration::from_secs(1);

/// Keeps the kinds known, and looks at them when a definition has `changed`. If they are others, other objects may be
/// selected by now: that wakes all placements.
pub(crate) fn keep_known(
    program: &mut Program,
    client: &Client,
    hub: Hub,
    shared: &Arc<SharedIndex>,
    changed: Arc<Notify>,
) {
    let (shared, client) = (Arc::clone(shared), client.clone());
    program.run_until_stopped("kinds", async move {
        let mut last_error = LastError::default();
        loop {
            match namespaced_kinds(&client, &hub).await {
                Ok(kinds) => {
                    let unanswered = kinds.unanswered.iter().map(|one| &**one);
                    let unanswered = unanswered.collect::<Vec<_>>().join(", ");
                    let pause = if unanswered.is_empty() {
                        last_error.clear();
                        LOOK_AGAIN
                    } else {
                        if last_error.replace(&unanswered) {
                            tracing::warn!(
                                groups = unanswered,
                                "Groups of the hub's API do not answer, will retry"
                            );
                        }
                        LOOK_FOR_ANSWER
                    };
                    if shared.hub.replace_namespaced(kinds) {
                        let queue = &shared.queues.snapshots;
                        shared.read(|index| queue.add_all(index.placements.keys().cloned()));
                    }
                    tokio::select! {
                        () = changed.notified() => {}
                        () = tokio::time::sleep(pause) => {}
                    }
                }
                Err(error) => {
                    let error = Chain(&error).to_string();
                    if last_error.replace(&error) {
                        tracing::warn!(error, "Cannot look up the kinds of the hub, will retry");
                    }
                }
            }
            tokio::time::sleep(LOOK_SOON).await;
        }
    });
}

/// Groups of which nothing is ever placed, and that often cannot be reached.
const METRICS: [&str; 3] = [
    "custom.metrics.k8s.io",
    "external.metrics.k8s.io",
    "metrics.k8s.io",
];

/// Returns every kind that a namespace of the hub may hold, each in one version, and the groups that do not answer.
///
/// # Errors
/// Fails if the groups themselves cannot be asked for. They are not asked for at once, which leaves out in silence those
/// that do not answer: without them, the objects of one would look as if they were deleted.
async fn namespaced_kinds(client: &Client, hub: &Hub) -> kube::Result<NamespacedKinds> {
    let all = Discovery::new(client.clone()).exclude(&METRICS).run().await;
    if let Ok(groups) = all {
        return Ok(NamespacedKinds {
            kinds: held(&groups, hub),
            unanswered: BTreeSet::new(),
        });
    }
    let mut known = NamespacedKinds::default();
    let groups = client.list_api_groups().await?.groups.into_iter();
    let names = groups.map(|group| group.name);
    let names = names.filter(|name| !METRICS.contains(&&**name));
    for name in names.chain([ApiGroup::CORE_GROUP.to_owned()]) {
        let one = Discovery::new(client.clone()).filter(&[&name]).run().await;
        match one {
            Ok(group) => known.kinds.extend(held(&group, hub)),
            Err(kube::Error::Api(_)) if !name.is_empty() => {
                known.unanswered.insert(name);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(known)
}

/// Returns the kinds of groups that a namespace may hold, and that may be placed.
fn held(groups: &Discovery, hub: &Hub) -> BTreeSet<GroupVersionKind> {
    let resources = groups.groups().flat_map(ApiGroup::resources_by_stability);
    let held = resources.filter(|(_, capabilities)| {
        capabilities.scope == discovery::Scope::Namespaced
            && capabilities.supports_operation(verbs::LIST)
            && capabilities.supports_operation(verbs::WATCH)
    });
    let kinds = held.map(|(resource, _)| GroupVersionKind {
        group: resource.group,
        version: resource.version,
        kind: resource.kind,
    });
    let placed = kinds.filter(|kind| {
        let any = json!({ "apiVersion": kind.api_version(), "kind": kind.kind });
        is_placeable(&any, hub)
    });
    placed.collect()
}

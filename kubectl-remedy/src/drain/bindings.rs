//! The writes to bindings of either scope.

use futures::{StreamExt, TryStreamExt, stream};
use karmada_api::{ClusterResourceBinding, ResourceBinding};
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use kube::{Api, Client};
use objects::Key;
use serde_json::Value;

use crate::args::DryRun;
use crate::error::Error;
use crate::identity::NAME;
use crate::terminal;

/// The number of bindings that are written at once.
const AT_ONCE: usize = 8;

/// Writes merge patches of bindings, and returns these as they are then, but for those that have changed or gone since
/// they were read. `done` says in a word what each means.
pub(super) async fn patch_all(
    client: &Client,
    patches: Vec<(Key, Value)>,
    done: &str,
    dry_run: DryRun,
) -> Result<Vec<DynamicObject>, Error> {
    let writes = stream::iter(patches)
        .map(|(key, body)| async move { patch(client, &key, body, done, dry_run).await })
        .buffer_unordered(AT_ONCE);
    let written: Vec<Option<DynamicObject>> = writes.try_collect().await?;
    Ok(written.into_iter().flatten().collect())
}

async fn patch(
    client: &Client,
    key: &Key,
    body: Value,
    done: &str,
    dry_run: DryRun,
) -> Result<Option<DynamicObject>, Error> {
    let (bindings, plural) = api(client, &key.namespace);
    let mut written = None;
    if dry_run != DryRun::Client {
        let parameters = PatchParams {
            dry_run: dry_run == DryRun::Server,
            ..PatchParams::apply(NAME)
        };
        let patch = Patch::Merge(body);
        let patched = bindings.patch(&key.name, &parameters, &patch);
        written = match patched.await {
            Ok(binding) => Some(binding),
            Err(kube::Error::Api(status)) if [404, 409].contains(&status.code) => return Ok(None),
            Err(source) => {
                return Err(Error::request(format!("write {plural} {key}"), source));
            }
        };
    }
    let suffix = dry_run.suffix();
    terminal::print(&format!("{plural}.work.karmada.io {key} {done}{suffix}\n"));
    Ok(written)
}

/// Returns the bindings of a namespace, or those without one if it is empty, and their plural.
fn api(client: &Client, namespace: &str) -> (Api<DynamicObject>, String) {
    let client = client.clone();
    let kind = if namespace.is_empty() {
        ApiResource::erase::<ClusterResourceBinding>(&())
    } else {
        ApiResource::erase::<ResourceBinding>(&())
    };
    let bindings = if namespace.is_empty() {
        Api::all_with(client, &kind)
    } else {
        Api::namespaced_with(client, namespace, &kind)
    };
    (bindings, kind.plural)
}

//! The writes to bindings of either scope.

use futures::{StreamExt, TryStreamExt, stream};
use karmada_api::{ClusterResourceBinding, ResourceBinding};
use kube::Client;
use kube::api::DynamicObject;
use objects::Key;
use objects::write::{ObjectRef, Write};
use serde_json::Value;

use crate::args::DryRun;
use crate::error::Error;
use crate::send::send;
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
    let object = object(key);
    let plural = object.resource.plural.clone();
    let mut written = None;
    if dry_run != DryRun::Client {
        // The body names the version that was read.
        let write = Write::merge("binding", object, body);
        written = match send(client, &write, dry_run).await {
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

fn object(key: &Key) -> ObjectRef {
    if key.namespace.is_empty() {
        ObjectRef::named::<ClusterResourceBinding>(key.clone(), &())
    } else {
        ObjectRef::named::<ResourceBinding>(key.clone(), &())
    }
}

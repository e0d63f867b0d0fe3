//! The writes to bindings of either scope.

use futures::{StreamExt, TryStreamExt, stream};
use kube::Client;
use kube::api::DynamicObject;
use objects::write::Write;

use crate::args::DryRun;
use crate::error::Error;
use crate::send::send;
use crate::terminal;

/// The number of bindings that are written at once.
const AT_ONCE: usize = 8;

/// Sends writes to bindings, and returns these as they are then, but for those that have changed or gone since they were
/// read. `done` is the word for each.
pub(super) async fn write_all(
    client: &Client,
    writes: Vec<Write>,
    done: &str,
    dry_run: DryRun,
) -> Result<Vec<DynamicObject>, Error> {
    let writes = stream::iter(writes)
        .map(|one| async move { write(client, &one, done, dry_run).await })
        .buffer_unordered(AT_ONCE);
    let written: Vec<Option<DynamicObject>> = writes.try_collect().await?;
    Ok(written.into_iter().flatten().collect())
}

async fn write(
    client: &Client,
    write: &Write,
    done: &str,
    dry_run: DryRun,
) -> Result<Option<DynamicObject>, Error> {
    let (plural, key) = (&write.object.resource.plural, &write.object.key);
    let mut written = None;
    if dry_run != DryRun::Client {
        written = match send(client, write, dry_run).await {
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

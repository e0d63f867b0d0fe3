//! The one place that sends the writes of commands: whole objects, which are ours, and parts of those that others write, too.

use std::fmt::Debug;

use karmada_runtime::write::{Sender, is_conflict, submit};
use kube::api::{Patch, PatchParams};
use kube::core::Request;
use kube::{Api, Client, Resource};
use objects::write::Write;
use objects::yaml::as_yaml;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::args::DryRun;
use crate::identity::NAME;

/// The attempts at a write of a part that others write all the time, such as a status.
const ATTEMPTS: usize = 5;

/// The outcome for an object that was to be edited.
#[derive(Debug)]
pub(crate) enum Edited<K> {
    /// It was as this, and is written, or would be.
    Written(K),
    /// It is as it should be.
    Unchanged(K),
    /// It does not exist; or, as this, had no such part, or was deleted meanwhile.
    Absent(Option<K>),
}

/// Applies `object`, which is called `name` below `path`, and returns it as it is then. The values of others in the same
/// fields are replaced.
pub(crate) async fn apply<K>(
    client: &Client,
    path: &str,
    name: &str,
    object: &impl Serialize,
    dry_run: DryRun,
) -> kube::Result<K>
where
    K: DeserializeOwned,
{
    let mut parameters = PatchParams::apply(NAME).force();
    parameters.dry_run = dry_run == DryRun::Server;
    let request = Request::new(path).patch(name, &parameters, &Patch::Apply(object));
    // To an API server it is YAML.
    let request = request.map_err(kube::Error::BuildRequest)?.map(as_yaml);
    client.request(request).await
}

/// Sends a write, and returns the answer: the object as it is then, or a `Status` where that is gone.
pub(crate) async fn send<K: DeserializeOwned>(
    client: &Client,
    write: &Write,
    dry_run: DryRun,
) -> kube::Result<K> {
    let sender = Sender {
        manager: NAME,
        is_dry_run: dry_run == DryRun::Server,
    };
    submit(client, write, sender).await
}

/// Reads the object `name` and sends the write that is decided about it, anew where others have written it meanwhile.
pub(crate) async fn edit<K>(
    objects: &Api<K>,
    name: &str,
    dry_run: DryRun,
    decide: impl Fn(&K) -> Option<Write>,
) -> kube::Result<Edited<K>>
where
    K: Clone + Debug + DeserializeOwned + Resource,
{
    let client = objects.clone().into_client();
    let mut attempt = 1;
    loop {
        let Some(found) = objects.get_opt(name).await? else {
            return Ok(Edited::Absent(None));
        };
        let Some(write) = decide(&found) else {
            return Ok(Edited::Unchanged(found));
        };
        if dry_run == DryRun::Client {
            return Ok(Edited::Written(found));
        }
        match send::<Value>(&client, &write, dry_run).await {
            Ok(_) => return Ok(Edited::Written(found)),
            Err(kube::Error::Api(status)) if status.code == 404 => {
                return Ok(Edited::Absent(Some(found)));
            }
            Err(kube::Error::Api(status)) if attempt < ATTEMPTS && is_conflict(&status) => {
                attempt += 1;
            }
            Err(error) => return Err(error),
        }
    }
}

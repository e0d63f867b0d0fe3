//! Server-side apply.

use kube::Client;
use kube::api::{Patch, PatchParams};
use kube::core::Request;
use objects::yaml::as_yaml;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::identity::NAME;

/// Applies `object`, which is called `name` below `path`, and returns it as it is then. What others wrote into the same
/// fields is replaced.
pub(crate) async fn apply<K>(
    client: &Client,
    path: &str,
    name: &str,
    object: &impl Serialize,
    dry_run: bool,
) -> kube::Result<K>
where
    K: DeserializeOwned,
{
    let mut parameters = PatchParams::apply(NAME).force();
    parameters.dry_run = dry_run;
    let request = Request::new(path).patch(name, &parameters, &Patch::Apply(object));
    // To an API server it is YAML.
    let request = request.map_err(kube::Error::BuildRequest)?.map(as_yaml);
    client.request(request).await
}

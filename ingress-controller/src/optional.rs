//! Kinds that the Karmada API need not have.

use std::borrow::Cow;
use std::time::Duration;

use kube::Client;

/// The pause between two looks for the kinds in an API that lacks them.
pub(crate) const PAUSE: Duration = Duration::from_mins(1);

/// Returns `true` if the API serves all `kinds`, each given by its version and plural name. It is not asked for objects.
pub(crate) async fn is_served(
    client: &Client,
    kinds: &[(&str, Cow<'static, str>)],
) -> kube::Result<bool> {
    for (version, plural) in kinds {
        let resources = match client.list_api_group_resources(version).await {
            Ok(list) => list.resources,
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(false),
            Err(error) => return Err(error),
        };
        if !resources.iter().any(|resource| resource.name == *plural) {
            return Ok(false);
        }
    }
    Ok(true)
}

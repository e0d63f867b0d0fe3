//! Waiting for what an API shows, through a watch.

use std::{fmt::Debug, time::Duration};

use anyhow::{Context, Result, bail};
use kube::{Api, Resource, runtime::wait::await_condition};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout};

/// Longer than any threshold in a test, and than a slow machine takes.
const LIMIT: Duration = Duration::from_mins(2);

/// Waits until the object `name` is as `is` says (none: it is not there), and says when it was.
///
/// # Errors
/// After two minutes, with `what` was waited for and what the object is instead.
pub async fn until<K>(
    api: &Api<K>,
    name: &str,
    what: &str,
    is: impl Fn(Option<&K>) -> bool,
) -> Result<Instant>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let waiting = await_condition(api.clone(), name, |object: Option<&K>| is(object));
    let Ok(seen) = timeout(LIMIT, waiting).await else {
        let object = api.get_opt(name).await?;
        bail!("{name}: not {what} after {LIMIT:?}; it is {object:#?}")
    };
    seen.with_context(|| format!("cannot watch {name}"))?;
    Ok(Instant::now())
}

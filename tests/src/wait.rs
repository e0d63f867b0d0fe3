//! Waiting for the state of an object through a watch.

use std::{fmt::Debug, time::Duration};

use anyhow::{Context, Result, bail};
use kube::{Api, Resource, runtime::wait::await_condition};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout};

/// A limit longer than any threshold of a test on a slow machine.
const LIMIT: Duration = Duration::from_mins(2);

/// Waits until `is` returns `true` for the object `name` (`None`: it does not exist), and returns the
/// time of that.
///
/// # Errors
/// The object as it is after two minutes, with `what` was expected.
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

//! Waiting through a watch for the state of an object, or an Event about it.

use std::{fmt::Debug, pin::pin, time::Duration};

use anyhow::{Context, Result, bail};
use futures::StreamExt;
use k8s_openapi::api::events::v1::Event;
use karmada_api::ResourceBinding;
use kube::{
    Api, Client, Resource,
    runtime::{
        WatchStreamExt,
        wait::await_condition,
        watcher::{Config, watcher},
    },
};
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

/// Waits until a binding has the condition of this type and status, and its message has `text`.
pub async fn until_told(
    bindings: &Api<ResourceBinding>,
    name: &str,
    [kind, status]: [&str; 2],
    text: &str,
) -> Result<()> {
    let what = format!("{kind} {status} with {text:?}");
    until(bindings, name, &what, |binding| {
        let conditions = binding.and_then(|binding| binding.status.as_ref()?.conditions.as_deref());
        let mut conditions = conditions.into_iter().flatten();
        conditions.any(|condition| {
            condition.type_ == kind
                && condition.status == status
                && condition.message.contains(text)
        })
    })
    .await?;
    Ok(())
}

/// Waits until an Event about an object has `text` in its reason or note.
pub async fn until_event(client: &Client, regarding: &str, name: &str, text: &str) -> Result<()> {
    let events: Api<Event> = Api::all(client.clone());
    let mut events = pin!(watcher(events, Config::default()).touched_objects());
    let found = async {
        while let Some(event) = events.next().await {
            let event = event?;
            let about = event.regarding.unwrap_or_default();
            let text_of_event = format!(
                "{} {}",
                event.reason.unwrap_or_default(),
                event.note.unwrap_or_default()
            );
            if about.kind.as_deref() == Some(regarding)
                && about.name.as_deref() == Some(name)
                && text_of_event.contains(text)
            {
                return Ok(());
            }
        }
        bail!("the watch ended")
    };
    timeout(LIMIT, found)
        .await
        .with_context(|| format!("no Event about {regarding} {name} has {text:?}"))?
}

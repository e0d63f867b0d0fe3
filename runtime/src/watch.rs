//! Watches that go on whatever the API server sends: an object that cannot be read is told of and
//! skipped, an expired version is listed anew, a lost connection is made again.

use std::time::Duration;
use std::{borrow::Cow, fmt::Debug};

use backon::ExponentialBuilder;
use futures::{Stream, StreamExt};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Config, Event, ExponentialBackoff};
use kube::{Api, Resource};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use crate::error::{BoxError, Chain};
use crate::readiness::Gate;

const FIRST_RETRY: Duration = Duration::from_millis(500);
const LONGEST_RETRY: Duration = Duration::from_secs(5);
/// A page is held as bytes and again as objects while it is read: a small one keeps memory low.
const PAGE: u32 = 100;

/// An object as the API server sent it, readable or not; without its `managedFields`, which nobody
/// here needs and which are most of an object's memory.
#[derive(Clone, Debug)]
pub enum Guarded<K> {
    /// The object.
    Good(K),
    /// An object that is not of the shape our type says.
    Bad {
        /// Its metadata.
        metadata: Box<ObjectMeta>,
        /// What is wrong with it.
        error: String,
    },
}

/// The events of all objects that `api` and `config` select, for ever. Errors are logged and
/// retried after at most 5 s.
pub fn events<K>(
    api: Api<Guarded<K>>,
    config: Config,
) -> impl Stream<Item = Event<Guarded<K>>> + Send
where
    K: Resource<DynamicType: Default> + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let retries = ExponentialBuilder::new()
        .with_min_delay(FIRST_RETRY)
        .with_max_delay(LONGEST_RETRY)
        .with_jitter()
        .without_max_times();
    watcher::watcher(api, config.page_size(PAGE))
        .backoff(ExponentialBackoff::from(retries))
        .filter_map(async |event| {
            event
                .inspect_err(|error| {
                    let kind = K::kind(&K::DynamicType::default()).into_owned();
                    tracing::warn!(kind, error = %Chain(error), "Watch failed, will retry");
                })
                .ok()
        })
}

/// Gives each event to `observe` until the program stops. The gate opens after the first complete
/// list.
pub(crate) async fn feed<K>(
    events: impl Stream<Item = Event<Guarded<K>>>,
    gate: Gate,
    stopping: CancellationToken,
    mut observe: impl FnMut(Event<Guarded<K>>),
) -> Result<(), BoxError> {
    let mut events = std::pin::pin!(events.take_until(stopping.cancelled_owned()));
    while let Some(event) = events.next().await {
        let listed = matches!(event, Event::InitDone);
        observe(event);
        if listed {
            gate.open();
        }
    }
    Ok(())
}

impl<K: Resource> Guarded<K> {
    /// The object's metadata, readable or not.
    pub fn metadata(&self) -> &ObjectMeta {
        match self {
            Self::Good(object) => object.meta(),
            Self::Bad { metadata, .. } => metadata,
        }
    }
}

impl<'de, K: Resource + DeserializeOwned> Deserialize<'de> for Guarded<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct OnlyMetadata {
            #[serde(default)]
            metadata: ObjectMeta,
        }
        let raw = <&RawValue>::deserialize(deserializer)?;
        let mut guarded = match serde_json::from_str::<K>(raw.get()) {
            Ok(object) => Self::Good(object),
            Err(error) => {
                let OnlyMetadata { metadata } =
                    serde_json::from_str(raw.get()).map_err(D::Error::custom)?;
                Self::Bad {
                    metadata: Box::new(metadata),
                    error: error.to_string(),
                }
            }
        };
        guarded.meta_mut().managed_fields = None;
        Ok(guarded)
    }
}

impl<K: Resource> Resource for Guarded<K> {
    type DynamicType = K::DynamicType;
    type Scope = K::Scope;

    fn kind(dt: &Self::DynamicType) -> Cow<'_, str> {
        K::kind(dt)
    }

    fn group(dt: &Self::DynamicType) -> Cow<'_, str> {
        K::group(dt)
    }

    fn version(dt: &Self::DynamicType) -> Cow<'_, str> {
        K::version(dt)
    }

    fn plural(dt: &Self::DynamicType) -> Cow<'_, str> {
        K::plural(dt)
    }

    fn meta(&self) -> &ObjectMeta {
        self.metadata()
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        match self {
            Self::Good(object) => object.meta_mut(),
            Self::Bad { metadata, .. } => metadata,
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_unreadable_object_keeps_its_metadata() {
        let text = json!({"metadata": {"name": "a", "managedFields": [{}]}, "data": 7}).to_string();
        let guarded: Guarded<ConfigMap> = serde_json::from_str(&text).unwrap();
        assert!(matches!(&guarded, Guarded::Bad { error, .. } if error.contains("invalid type")));
        assert_eq!(guarded.metadata().name.as_deref(), Some("a"));
        assert_eq!(guarded.metadata().managed_fields, None);
    }

    #[test]
    fn a_readable_object_loses_only_its_managed_fields() {
        let text = json!({"metadata": {"name": "a", "managedFields": [{}]}, "data": {"k": "v"}})
            .to_string();
        let Guarded::Good(map) = serde_json::from_str::<Guarded<ConfigMap>>(&text).unwrap() else {
            panic!("unreadable");
        };
        assert_eq!(map.metadata.managed_fields, None);
        assert_eq!(map.data.unwrap()["k"], "v");
    }
}

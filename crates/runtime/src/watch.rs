//! Watches that go on whatever the API server sends: an object that cannot be read is told of and
//! skipped, an expired version is listed anew, a lost connection is made again.

use std::time::Duration;
use std::{borrow::Cow, fmt::Debug};

use backon::ExponentialBuilder;
use futures::future::ready;
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
/// The random part of a delay makes it up to twice as long.
const LONGEST_RETRY: Duration = Duration::from_millis(2_500);
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
        // The jitter at most doubles it.
        .with_max_delay(LONGEST_RETRY / 2)
        .with_jitter()
        .without_max_times();
    let mut failures = Failures {
        kind: K::kind(&K::DynamicType::default()).into_owned(),
        told: None,
    };
    watcher::watcher(api, config.page_size(PAGE))
        .backoff(ExponentialBackoff::from(retries))
        .filter_map(move |result| ready(failures.pass(result)))
}

/// Logs what goes wrong with a watch. A failure that only repeats the last is not worth a second
/// warning.
struct Failures {
    kind: String,
    told: Option<String>,
}

impl Failures {
    fn pass<K>(&mut self, result: watcher::Result<Event<K>>) -> Option<Event<K>> {
        let kind = &self.kind;
        match result {
            // A list begins with this whether it succeeds or not.
            Ok(Event::Init) => Some(Event::Init),
            Ok(event) => {
                self.told = None;
                Some(event)
            }
            Err(error) => {
                let error = Chain(&error).to_string();
                if self.told.as_ref() == Some(&error) {
                    tracing::debug!(kind, error, "Watch still fails, will retry");
                } else {
                    tracing::warn!(kind, error, "Watch failed, will retry");
                    self.told = Some(error);
                }
                None
            }
        }
    }
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
    use std::convert::Infallible;
    use std::sync::Arc;

    use http::{Request, Response};
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::Client;
    use kube::client::Body;
    use parking_lot::Mutex;
    use serde_json::{Value, json};

    use super::*;

    #[expect(
        clippy::needless_pass_by_value,
        reason = "callers write the data in place"
    )]
    fn map(name: &str, data: Value) -> Value {
        json!({ "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": name, "resourceVersion": "1" }, "data": data })
    }

    fn list(maps: &[Value]) -> String {
        json!({ "apiVersion": "v1", "kind": "ConfigMapList",
            "metadata": { "resourceVersion": "1" }, "items": maps })
        .to_string()
    }

    /// A line of a watch. As from an API server, `type` comes before `object`.
    fn event(kind: &str, object: &Value) -> String {
        format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n")
    }

    /// An API that gives these answers, in this order, and none after them.
    fn api(answers: Vec<String>) -> Api<Guarded<ConfigMap>> {
        let answers = Arc::new(Mutex::new(answers.into_iter()));
        let service = tower::service_fn(move |_: Request<Body>| {
            let answer = answers.lock().next();
            async move {
                match answer {
                    Some(answer) => {
                        Ok::<_, Infallible>(Response::new(Body::from(answer.into_bytes())))
                    }
                    None => std::future::pending().await,
                }
            }
        });
        Api::all(Client::new(service, "default"))
    }

    fn shown(event: &Event<Guarded<ConfigMap>>) -> String {
        let named = |guarded: &Guarded<ConfigMap>| {
            let name = guarded.metadata().name.clone().unwrap_or_default();
            let good = matches!(guarded, Guarded::Good(_));
            format!("{name} {}", if good { "good" } else { "bad" })
        };
        match event {
            Event::Init => "init".to_owned(),
            Event::InitDone => "done".to_owned(),
            Event::InitApply(map) => format!("listed {}", named(map)),
            Event::Apply(map) => format!("applied {}", named(map)),
            Event::Delete(map) => format!("deleted {}", named(map)),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_expired_version_is_listed_anew_and_a_bad_object_is_passed_over() {
        let expired = json!({ "apiVersion": "v1", "kind": "Status",
            "status": "Failure", "reason": "Expired", "message": "too old", "code": 410 });
        let api = api(vec![
            list(&[map("a", json!({})), map("b", json!(7))]),
            event("MODIFIED", &map("c", json!(7))) + &event("ERROR", &expired),
            list(&[map("a", json!({}))]),
        ]);
        let events = events(api, Config::default());
        let events: Vec<String> = events.map(|event| shown(&event)).take(7).collect().await;
        let first = [
            "init",
            "listed a good",
            "listed b bad",
            "done",
            "applied c bad",
        ];
        assert_eq!(events[..5], first);
        assert_eq!(events[5..], ["init", "listed a good"]);
    }

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

//! Watches that survive whatever the API server sends: an object that does not decode is logged and
//! kept apart, an expired resource version leads to a new list, a lost connection to a new one.

use std::time::Duration;
use std::{borrow::Cow, fmt::Debug};

use backon::ExponentialBuilder;
use futures::future::ready;
use futures::{Stream, StreamExt};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Config, Event, ExponentialBackoff};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::error::{Chain, LastError};

const MIN_RETRY: Duration = Duration::from_millis(500);
/// Before jitter, which at most doubles a delay.
const MAX_RETRY: Duration = Duration::from_millis(2_500);
/// A page is held as bytes and as objects while it is decoded: a small one keeps memory low.
const PAGE: u32 = 100;

/// An object from the API server, decoded as far as possible.
///
/// Like kube's `DeserializeGuard` it keeps one unexpected object from ending a whole watch. It drops
/// `managedFields`, which no program here reads and which are most of an object's memory.
#[derive(Clone, Debug)]
pub enum Decoded<K> {
    /// The object.
    Valid(K),
    /// An object whose shape differs from the type `K`.
    Invalid {
        /// The object's metadata.
        metadata: Box<ObjectMeta>,
        /// The error of the decoder.
        error: String,
    },
}

/// Returns the endless stream of events of all objects that `api` and `config` cover. Errors are
/// logged and retried after at most 5 s.
pub fn events<K>(
    api: Api<Decoded<K>>,
    config: Config,
) -> impl Stream<Item = Event<Decoded<K>>> + Send
where
    K: Resource<DynamicType: Default> + Clone + DeserializeOwned + Debug + Send + 'static,
{
    events_of(api, config, &K::DynamicType::default())
}

/// Returns the stream of [`events`] of a kind that is known at run time only.
pub fn events_of<K>(
    api: Api<Decoded<K>>,
    config: Config,
    kind: &K::DynamicType,
) -> impl Stream<Item = Event<Decoded<K>>> + Send + use<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let mut log = WatchLog::named(&K::kind(kind));
    attempts(api, config).filter_map(move |result| ready(log.filter(result)))
}

/// Returns the stream of [`events`], and passes each error to `failed`, too.
pub fn events_or_failures<K>(
    api: Api<Decoded<K>>,
    config: Config,
    mut failed: impl FnMut(&watcher::Error) + Send,
) -> impl Stream<Item = Event<Decoded<K>>> + Send
where
    K: Resource<DynamicType: Default> + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let mut log = WatchLog::new::<K>();
    attempts(api, config).filter_map(move |result| {
        if let Err(error) = &result {
            failed(error);
        }
        ready(log.filter(result))
    })
}

/// Returns `true` if the API answered that we may not list or watch a kind.
pub fn is_forbidden(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => status.code == 403,
        _ => false,
    }
}

/// Returns `true` if the API answered to a list that it does not serve the kind.
pub(crate) fn is_not_served(error: &watcher::Error) -> bool {
    matches!(error, watcher::Error::InitialListFailed(kube::Error::Api(status)) if status.code == 404)
}

/// Returns the stream of [`events`] with its errors, which are not logged.
pub(crate) fn attempts<K>(
    api: Api<Decoded<K>>,
    config: Config,
) -> impl Stream<Item = watcher::Result<Event<Decoded<K>>>> + Send
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let retries = ExponentialBuilder::new()
        .with_min_delay(MIN_RETRY)
        .with_max_delay(MAX_RETRY)
        .with_jitter()
        .without_max_times();
    watcher::watcher(api, config.page_size(PAGE)).backoff(ExponentialBackoff::from(retries))
}

/// Logs the errors of one watch.
pub(crate) struct WatchLog {
    kind: String,
    last_error: LastError,
}

impl WatchLog {
    pub(crate) fn new<K: Resource<DynamicType: Default>>() -> Self {
        Self::named(&K::kind(&K::DynamicType::default()))
    }

    pub(crate) fn named(kind: &str) -> Self {
        Self {
            kind: kind.to_owned(),
            last_error: LastError::default(),
        }
    }

    /// Returns the event of a result, and logs its error.
    pub(crate) fn filter<K>(&mut self, result: watcher::Result<Event<K>>) -> Option<Event<K>> {
        let kind = &self.kind;
        match result {
            // kube emits this before the first page arrives: it proves no recovery.
            Ok(Event::Init) => Some(Event::Init),
            Ok(event) => {
                self.last_error.clear();
                Some(event)
            }
            Err(error) => {
                let error = Chain(&error).to_string();
                if self.last_error.replace(&error) {
                    tracing::warn!(kind, error, "Watch failed, will retry");
                } else {
                    tracing::debug!(kind, error, "Watch still fails, will retry");
                }
                None
            }
        }
    }
}

impl<K: Resource> Decoded<K> {
    /// Returns the object's metadata, which decode even if the rest does not.
    pub fn metadata(&self) -> &ObjectMeta {
        match self {
            Self::Valid(object) => object.meta(),
            Self::Invalid { metadata, .. } => metadata,
        }
    }
}

impl<'de, K: Resource + DeserializeOwned> Deserialize<'de> for Decoded<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The raw text, because a failed attempt consumes the deserializer.
        let raw = <&RawValue>::deserialize(deserializer)?;
        // A response has many objects: none of them may make the others unreadable.
        let mut decoded = match serde_json::from_str::<K>(raw.get()) {
            Ok(object) => Self::Valid(object),
            Err(error) => mended(raw.get(), &error),
        };
        decoded.meta_mut().managed_fields = None;
        Ok(match decoded {
            Self::Valid(object) if object.meta().name.is_none() => Self::Invalid {
                metadata: Box::new(object.meta().clone()),
                error: "an object without a name".to_owned(),
            },
            decoded => decoded,
        })
    }
}

/// The metadata that decide: without them the object may be another, or not be gone.
const DECISIVE: [&str; 3] = ["name", "namespace", "deletionTimestamp"];

/// Decodes an object that failed to decode with `error` without those of its metadata that are of a
/// wrong type.
fn mended<K: Resource + DeserializeOwned>(text: &str, error: &serde_json::Error) -> Decoded<K> {
    let mut object: Map<String, Value> = serde_json::from_str(text).unwrap_or_default();
    let mut fields = match object.remove("metadata") {
        Some(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    let mut decides = true;
    fields.retain(|name, value| {
        match (&**name, &mut *value) {
            ("labels" | "annotations", Value::Object(texts)) => {
                texts.retain(|_, text| text.is_string());
            }
            ("finalizers", Value::Array(texts)) => texts.retain(Value::is_string),
            _ => {}
        }
        let alone = Map::from_iter([(name.clone(), value.clone())]);
        let reads = ObjectMeta::deserialize(Value::Object(alone)).is_ok();
        decides &= reads || !DECISIVE.contains(&&**name);
        reads
    });
    let metadata = ObjectMeta::deserialize(Value::Object(fields.clone())).unwrap_or_default();
    object.insert("metadata".to_owned(), Value::Object(fields));
    match K::deserialize(Value::Object(object)) {
        Ok(object) if decides => Decoded::Valid(object),
        _ => Decoded::Invalid {
            metadata: Box::new(metadata),
            error: error.to_string(),
        },
    }
}

impl<K: Resource> Resource for Decoded<K> {
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
            Self::Valid(object) => object.meta_mut(),
            Self::Invalid { metadata, .. } => metadata,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use embedded_apiserver::{ApiServer, Fault};
    use k8s_openapi::api::core::v1::ConfigMap;
    use karmada_api::Remedy;
    use kube::Client;
    use serde_json::json;
    use tokio::time::timeout;

    use super::*;

    const REMEDIES: &str = "/apis/remedy.karmada.io/v1alpha1/remedies";

    /// An API whose CRD of `Remedy` accepts more than the type, as a later version of it may.
    fn api_of_a_later_version() -> ApiServer {
        let server = ApiServer::new();
        let names = json!({ "plural": "remedies", "singular": "remedy", "kind": "Remedy" });
        let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
        let version = json!({ "name": "v1alpha1", "served": true, "storage": true,
            "schema": { "openAPIV3Schema": schema } });
        let crd = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": { "name": "remedies.remedy.karmada.io" },
            "spec": { "group": "remedy.karmada.io", "scope": "Cluster", "names": names,
                "versions": [version] },
        });
        server.install(&crd).unwrap();
        server
    }

    async fn send(server: &ApiServer, method: &str, path: &str, body: &Value) {
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header(
                "content-type",
                match method {
                    "PATCH" => "application/merge-patch+json",
                    _ => "application/json",
                },
            )
            .body(body.to_string().into_bytes())
            .unwrap();
        let client = Client::new(server.service(), "default");
        client.request_text(request).await.unwrap();
    }

    /// A Remedy whose actions are `actions`: valid if they are a list.
    async fn create(server: &ApiServer, name: &str, actions: Value) {
        let remedy = json!({ "apiVersion": "remedy.karmada.io/v1alpha1", "kind": "Remedy",
            "metadata": { "name": name }, "spec": { "actions": actions } });
        send(server, "POST", REMEDIES, &remedy).await;
    }

    fn shown(event: &Event<Decoded<Remedy>>) -> String {
        let named = |decoded: &Decoded<Remedy>| {
            let name = decoded.metadata().name.clone().unwrap_or_default();
            let valid = matches!(decoded, Decoded::Valid(_));
            format!("{name} {}", if valid { "valid" } else { "invalid" })
        };
        match event {
            Event::Init => "init".to_owned(),
            Event::InitDone => "done".to_owned(),
            Event::InitApply(remedy) => format!("listed {}", named(remedy)),
            Event::Apply(remedy) => format!("applied {}", named(remedy)),
            Event::Delete(remedy) => format!("deleted {}", named(remedy)),
        }
    }

    /// An expired version is listed anew and an invalid object is passed over.
    #[tokio::test(start_paused = true)]
    async fn expired_version_is_listed_anew() {
        let server = api_of_a_later_version();
        create(&server, "a", json!([])).await;
        create(&server, "b", json!(7)).await;
        let client = Client::new(server.service(), "default");
        let mut events = std::pin::pin!(events(Api::all(client), Config::default()));
        let mut next = async || {
            let event = timeout(Duration::from_mins(1), events.next()).await;
            shown(&event.unwrap().unwrap())
        };
        for expected in ["init", "listed a valid", "listed b invalid", "done"] {
            assert_eq!(next().await, expected);
        }
        // The watch opens only when it is polled, and a version that is older than it is no event.
        let (applied, ()) = futures::join!(next(), create(&server, "c", json!(7)));
        assert_eq!(applied, "applied c invalid");
        // 410 in place of this event: only a new list shows it.
        server.faults().inject(Fault::ExpireWatch.times(1));
        let change = json!({ "spec": { "actions": [] } });
        let path = format!("{REMEDIES}/c");
        let (listed, ()) = futures::join!(next(), send(&server, "PATCH", &path, &change));
        assert_eq!(listed, "init");
        for expected in [
            "listed a valid",
            "listed b invalid",
            "listed c valid",
            "done",
        ] {
            assert_eq!(next().await, expected);
        }
    }

    /// An invalid object keeps its metadata.
    #[test]
    fn invalid_object_keeps_metadata() {
        let text = json!({"metadata": {"name": "a", "managedFields": [{}]}, "data": 7}).to_string();
        let decoded: Decoded<ConfigMap> = serde_json::from_str(&text).unwrap();
        assert!(
            matches!(&decoded, Decoded::Invalid { error, .. } if error.contains("invalid type"))
        );
        assert_eq!(decoded.metadata().name.as_deref(), Some("a"));
        assert_eq!(decoded.metadata().managed_fields, None);
    }

    /// Metadata of a wrong type lose nothing else.
    #[test]
    fn bad_metadata_loses_nothing_else() {
        let good = json!({ "name": "a", "labels": { "a": "b" }, "resourceVersion": "7" });
        let odd = [
            json!(7),
            json!("x"),
            json!([7]),
            json!({ "x": 7 }),
            json!(true),
        ];
        for field in [
            "labels",
            "annotations",
            "finalizers",
            "creationTimestamp",
            "generation",
            "managedFields",
            "ownerReferences",
            "uid",
        ] {
            for value in &odd {
                let mut metadata = good.clone();
                metadata[field] = value.clone();
                let text = json!({ "metadata": metadata, "data": { "k": "v" } }).to_string();
                let decoded: Decoded<ConfigMap> = serde_json::from_str(&text).unwrap();
                let Decoded::Valid(map) = decoded else {
                    panic!("{text}: {decoded:?}");
                };
                assert_eq!(map.metadata.name.as_deref(), Some("a"), "{text}");
                assert_eq!(map.data.unwrap()["k"], "v");
            }
        }
        let labels = json!({ "metadata": { "name": "a", "labels": { "a": "b", "c": 7 } } });
        let decoded: Decoded<ConfigMap> = serde_json::from_str(&labels.to_string()).unwrap();
        let read = decoded.metadata().labels.as_ref().unwrap();
        assert_eq!(
            read.iter().collect::<Vec<_>>(),
            [(&"a".to_owned(), &"b".to_owned())]
        );
    }

    /// An object without what identifies it or its end is invalid and spares the others.
    #[test]
    fn nameless_object_spares_others() {
        for metadata in [
            json!(null),
            json!(7),
            json!({}),
            json!({ "name": 7 }),
            json!({ "name": "b", "namespace": 7 }),
            json!({ "name": "b", "deletionTimestamp": 7 }),
        ] {
            let list = json!([{ "metadata": metadata }, { "metadata": { "name": "a" } }, 7]);
            let list: Vec<Decoded<ConfigMap>> = serde_json::from_str(&list.to_string()).unwrap();
            assert!(
                matches!(
                    &*list,
                    [
                        Decoded::Invalid { .. },
                        Decoded::Valid(_),
                        Decoded::Invalid { .. }
                    ]
                ),
                "{list:?}"
            );
        }
    }

    /// A valid object loses only its managed fields.
    #[test]
    fn valid_object_loses_managed_fields() {
        let text = json!({"metadata": {"name": "a", "managedFields": [{}]}, "data": {"k": "v"}})
            .to_string();
        let Decoded::Valid(map) = serde_json::from_str::<Decoded<ConfigMap>>(&text).unwrap() else {
            panic!("invalid");
        };
        assert_eq!(map.metadata.managed_fields, None);
        assert_eq!(map.data.unwrap()["k"], "v");
    }
}

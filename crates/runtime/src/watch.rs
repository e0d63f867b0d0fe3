//! Watches that survive whatever the API server sends: an object that does not decode is logged and
//! kept apart, an expired resource version leads to a new list, a lost connection to a new one.

use std::time::Duration;

use backon::ExponentialBuilder;
use futures::future::ready;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Config, Event, ExponentialBackoff};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::Notify;
use tokio::time::sleep;

pub use crate::decoded::{Decoded, RawObject};
use crate::error::{Chain, LastError};

const MIN_RETRY: Duration = Duration::from_millis(500);
/// Before jitter, which at most doubles a delay.
const MAX_RETRY: Duration = Duration::from_millis(2_500);
/// A page is held as bytes and as objects while it is decoded: a small one keeps memory low.
const PAGE: u32 = 100;
/// The time for further changes after one by which other objects are needed: each such change lists anew.
const BURST: Duration = Duration::from_millis(100);

/// Returns the endless stream of events of all objects that `api` and `config` cover. Errors are
/// logged and retried after at most 5 s.
pub fn events<K>(
    api: Api<Decoded<K>>,
    config: Config,
) -> impl Stream<Item = Event<Decoded<K>>> + Send
where
    K: Resource<DynamicType: Default> + DeserializeOwned,
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
    K: Resource + DeserializeOwned,
{
    let mut log = WatchLog::new(&K::kind(kind));
    let events = attempts(raw(api), config).filter_map(move |result| ready(log.filter(result)));
    events.map(decoded)
}

/// Returns the stream of [`events`], and passes each error to `failed`, too.
pub fn events_or_failures<K>(
    api: Api<Decoded<K>>,
    config: Config,
    mut failed: impl FnMut(&watcher::Error) + Send,
) -> impl Stream<Item = Event<Decoded<K>>> + Send
where
    K: Resource<DynamicType: Default> + DeserializeOwned,
{
    let mut log = WatchLog::new(&K::kind(&K::DynamicType::default()));
    let events = attempts(raw(api), config).filter_map(move |result| {
        if let Err(error) = &result {
            failed(error);
        }
        ready(log.filter(result))
    });
    events.map(decoded)
}

/// Returns the event as it is to those who know only the objects that are kept, by their metadata.
pub fn kept<K: Resource>(
    event: Event<Decoded<K>>,
    keeps: impl Fn(&ObjectMeta) -> bool,
) -> Option<Event<Decoded<K>>> {
    match event {
        // It may have been one that is kept.
        Event::Apply(object) if !keeps(object.metadata()) => Some(Event::Delete(object)),
        // If it was, the end of the list shows that it is missing.
        Event::InitApply(object) if !keeps(object.metadata()) => None,
        event => Some(event),
    }
}

/// Returns once the selection of a watch `is_outdated`, soon after one of the changes of which `changed` tells.
pub async fn until_outdated(changed: &Notify, is_outdated: impl Fn() -> bool) {
    loop {
        changed.notified().await;
        sleep(BURST).await;
        if is_outdated() {
            return;
        }
    }
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

/// Returns `true` if the API answered to a list with an error.
pub(crate) fn is_refused_list(error: &watcher::Error) -> bool {
    matches!(
        error,
        watcher::Error::InitialListFailed(kube::Error::Api(_))
    )
}

/// Returns the stream of [`events`] before they are decoded, with its errors, which are not logged.
pub(crate) fn attempts(
    api: Api<RawObject>,
    config: Config,
) -> BoxStream<'static, watcher::Result<Event<RawObject>>> {
    let retries = ExponentialBuilder::new()
        .with_min_delay(MIN_RETRY)
        .with_max_delay(MAX_RETRY)
        .with_jitter()
        .without_max_times();
    let attempts = watcher::watcher(api, config.page_size(PAGE));
    attempts.backoff(ExponentialBackoff::from(retries)).boxed()
}

/// Returns the API of the same objects as they are sent.
pub fn raw<K: Resource>(api: Api<Decoded<K>>) -> Api<RawObject> {
    let collection = api.resource_url().to_owned();
    Api::all_with(api.into_client(), &collection)
}

/// Decodes the object of an event.
pub(crate) fn decoded<K: Resource + DeserializeOwned>(
    event: Event<RawObject>,
) -> Event<Decoded<K>> {
    match event {
        Event::Init => Event::Init,
        Event::InitApply(object) => Event::InitApply(object.into()),
        Event::InitDone => Event::InitDone,
        Event::Apply(object) => Event::Apply(object.into()),
        Event::Delete(object) => Event::Delete(object.into()),
    }
}

/// Logs the errors of one watch.
pub(crate) struct WatchLog {
    kind: String,
    last_error: LastError,
}

impl WatchLog {
    pub(crate) fn new(kind: &str) -> Self {
        Self {
            kind: kind.to_owned(),
            last_error: LastError::default(),
        }
    }

    /// Returns the event of a result, and logs its error.
    pub(crate) fn filter(
        &mut self,
        result: watcher::Result<Event<RawObject>>,
    ) -> Option<Event<RawObject>> {
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use embedded_apiserver::{ApiServer, Fault};
    use karmada_api::Remedy;
    use kube::Client;
    use serde_json::{Value, json};
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
        let (change, remedy) = match event {
            Event::Init => return "init".to_owned(),
            Event::InitDone => return "done".to_owned(),
            Event::InitApply(remedy) => ("listed", remedy),
            Event::Apply(remedy) => ("applied", remedy),
            Event::Delete(remedy) => ("deleted", remedy),
        };
        let name = remedy.metadata().name.clone().unwrap_or_default();
        let is_valid = matches!(remedy, Decoded::Valid(_));
        format!(
            "{change} {name} {}",
            if is_valid { "valid" } else { "invalid" }
        )
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
}

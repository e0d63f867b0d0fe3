//! The provider `webhook`: a load balancer that its own program configures, as that of a vendor. The program gets each ingress
//! whole, as JSON over HTTP, and needs no change here ([`karmada_api::provider`] is the protocol).
//!
//! - Which requests are sent? `traffic::ingress::webhook`.
//! - How is the program asked, and how much may it answer? `endpoint`.
//! - Which ingresses does it hold? `holdings`, which a list at the start and each minute corrects.

mod args;
mod endpoint;
mod error;
mod holdings;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use k8s_openapi::api::networking::v1::IngressLoadBalancerStatus;
use karmada_api::provider::{IngressReport, ProviderIngress};
use karmada_runtime::error::{BoxError, Chain, LastError};
use karmada_runtime::program::{Program, StartError};
use karmada_runtime::queue::Queue;
use karmada_runtime::readiness::Gate;
use karmada_runtime::write::{WriteError, Writer};
use kube::Client;
use objects::Key;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::timeout;
use traffic::ingress::webhook::{clusters, document, is_excluded, without};
use traffic::ingress::{ControllerName, Desired, ServedClusters};

pub(crate) use self::args::WebhookArgs;
use self::endpoint::Endpoint;
use self::error::{ProviderError, reported};
use self::holdings::Holdings;
use super::balancer::{Balancers, Ensured, LoadBalancer, NamedBalancer};

/// The name of the program's API in metrics and logs.
const NAME: &str = "provider";
/// The label of our writes in the metrics.
const TARGET: &str = "provider_ingress";
/// The pause between two lists: the program may have lost its ingresses, or somebody else may have written to it.
const LIST_EVERY: Duration = Duration::from_mins(1);
/// The pause after a list that failed.
const LIST_AGAIN: Duration = Duration::from_secs(5);
/// The time to an answer that changes nothing; that of a write has the same limit.
const LIMIT: Duration = Duration::from_secs(10);
/// The number of documents that are read at once.
const CONCURRENCY: usize = 8;

/// A load balancer's own program.
pub(crate) struct Webhook {
    controller: ControllerName,
    endpoint: Endpoint,
    writer: Writer,
    holdings: Mutex<Holdings>,
    /// Notified when the program is to be listed before its time.
    outdated: Notify,
}

/// Connects to the program of the flags.
pub(super) async fn connect(
    args: &WebhookArgs,
    controller: &ControllerName,
    program: &mut Program,
) -> Result<Balancers, StartError> {
    let client = program.connect(NAME, &args.source()?).await?;
    let controller = controller.clone();
    Ok(Box::new(move |writer| {
        NamedBalancer::only(Webhook::new(client, writer, &controller))
    }))
}

impl Webhook {
    /// Creates the provider for the program at the server of `client`.
    pub(crate) fn new(client: Client, writer: &Writer, controller: &ControllerName) -> Self {
        Self {
            controller: controller.clone(),
            endpoint: Endpoint::new(client),
            writer: writer.clone(),
            holdings: Mutex::default(),
            outdated: Notify::new(),
        }
    }

    /// Keeps the holdings of the program known, and wakes the ingresses that it holds otherwise. Opens `gate` after the first
    /// attempt: if that fails, each ingress says so.
    async fn keep_listed(&self, gate: Gate, queue: Queue<Key>) {
        let mut last_error = LastError::default();
        loop {
            let listed = self.list().await;
            gate.open();
            let pause = match listed {
                Ok(changed) => {
                    last_error.clear();
                    queue.add_all(changed);
                    LIST_EVERY
                }
                Err(error) => {
                    let error = Chain(&error).to_string();
                    if last_error.replace(&error) {
                        tracing::warn!(error, "Cannot list what the provider holds, will retry");
                    }
                    LIST_AGAIN
                }
            };
            drop(timeout(pause, self.outdated.notified()).await);
        }
    }

    /// Lists the holdings of the program, and returns the ingresses that it holds otherwise than was known.
    async fn list(&self) -> Result<Vec<Key>, ProviderError> {
        self.holdings.lock().begin_list();
        let mut listed = answer("GET of the list", self.endpoint.list()).await?;
        listed.retain(|held| held.controller == self.controller.as_str());
        let unread = self.holdings.lock().unread(&listed);
        let reading = futures::stream::iter(unread).map(|key| async move {
            let document = self.read(&key).await;
            (key, document)
        });
        let mut reading = reading.buffer_unordered(CONCURRENCY);
        let mut read = BTreeMap::new();
        let mut unanswered = 0;
        while let Some((key, document)) = reading.next().await {
            match document {
                Ok(Some(document)) => {
                    read.insert(key, document);
                }
                Ok(None) => {}
                Err(error) => {
                    unanswered += usize::from(matches!(error, ProviderError::Unanswered { .. }));
                    if unanswered > CONCURRENCY {
                        return Err(error);
                    }
                    // One document that is nonsense holds up no other ingress: its own is sent anew.
                    tracing::warn!(ingress = %key, error = %Chain(&error), "Cannot read what the provider holds of an ingress");
                }
            }
        }
        drop(reading);
        Ok(self.holdings.lock().list(listed, read))
    }

    /// Returns the document of an ingress as the program has it.
    async fn read(&self, key: &Key) -> Result<Option<Arc<ProviderIngress>>, ProviderError> {
        let request = format!("GET {key}");
        match answer(&request, self.endpoint.get(key)).await {
            Ok(document) if document.key() == *key => Ok(Some(Arc::new(document))),
            Ok(_) => Err(ProviderError::Unusable {
                request,
                reason: "it is of another ingress".to_owned(),
            }),
            Err(error) if error.is_missing() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the document of an ingress, if the program holds one that can be read.
    async fn held(&self, key: &Key) -> Result<Option<Arc<ProviderIngress>>, ProviderError> {
        let holding = {
            let holdings = self.holdings.lock();
            if !holdings.is_listed {
                return Err(ProviderError::Unlisted);
            }
            holdings.get(key).cloned()
        };
        let Some(holding) = holding else {
            return Ok(None);
        };
        if holding.document.is_some() {
            return Ok(holding.document);
        }
        match self.read(key).await {
            Ok(Some(document)) => {
                let mut holdings = self.holdings.lock();
                holdings.stored(Arc::clone(&document), holding.report);
                Ok(Some(document))
            }
            Ok(None) => {
                self.holdings.lock().removed(key);
                Ok(None)
            }
            // Its document is replaced, whatever it is.
            Err(ProviderError::Unusable { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn put(&self, document: ProviderIngress) -> Result<IngressReport, ProviderError> {
        let key = document.key();
        let written = self
            .writer
            .write(TARGET, self.endpoint.put(&document))
            .await;
        let report = self.settled("PUT", &key, written)?;
        let mut holdings = self.holdings.lock();
        holdings.stored(Arc::new(document), report.clone());
        Ok(report)
    }

    /// Returns the outcome of a write. If that is not known, the holdings of the program are not known either.
    fn settled<T>(
        &self,
        method: &str,
        key: &Key,
        written: Result<T, WriteError>,
    ) -> Result<T, ProviderError> {
        written.map_err(|error| {
            let error = ProviderError::new(format!("{method} {key}"), error);
            if error.is_uncertain() {
                self.holdings.lock().unknown(key);
                self.outdated.notify_one();
            }
            error
        })
    }

    /// Has the clusters that must get no request leave the document that is held, whatever the program has against the rest.
    async fn refused(&self, desired: &Desired, error: ProviderError) -> Result<Ensured, BoxError> {
        let key = &desired.key;
        if !matches!(error, ProviderError::Refused { .. }) {
            return Err(error.into());
        }
        let is_cut = |service: &str, cluster: &str| is_excluded(desired, service, cluster);
        let cut = self.cut_document(key, is_cut).await;
        let obstacle = error.obstacle(key).ok_or(error)?;
        let mut ensured = Ensured {
            load_balancer: None,
            obstacles: [obstacle].into(),
        };
        match cut {
            Ok(report) => ensured.load_balancer = report.and_then(|report| report.load_balancer),
            Err(error) => ensured.obstacles.extend(error.obstacle(key)),
        }
        Ok(ensured)
    }

    /// Takes the addresses for which `is_cut` holds of their Service and cluster out of the document that the program holds of an
    /// ingress, and returns the program's report.
    async fn cut_document(
        &self,
        key: &Key,
        is_cut: impl Fn(&str, &str) -> bool,
    ) -> Result<Option<IngressReport>, ProviderError> {
        let Some(held) = self.held(key).await? else {
            return Ok(None);
        };
        if let Some(rest) = without(&held, is_cut)? {
            self.put(rest).await.map(Some)
        } else {
            let holdings = self.holdings.lock();
            Ok(holdings.get(key).map(|holding| holding.report.clone()))
        }
    }
}

/// Returns the answer to a request that changes nothing.
async fn answer<T>(
    request: &str,
    asked: impl Future<Output = kube::Result<T>>,
) -> Result<T, ProviderError> {
    let answered = match timeout(LIMIT, asked).await {
        Ok(answered) => answered.map_err(WriteError::Api),
        Err(_) => Err(WriteError::TimedOut(LIMIT)),
    };
    answered.map_err(|error| ProviderError::new(request.to_owned(), error))
}

#[async_trait]
impl LoadBalancer for Webhook {
    fn serves(&self) -> bool {
        true
    }

    fn watch(self: Arc<Self>, program: &mut Program, queue: &Queue<Key>) {
        let (gate, queue) = (program.elsewhere.gate(NAME), queue.clone());
        program.run_until_stopped(NAME, async move { self.keep_listed(gate, queue).await });
    }

    async fn ensure(&self, desired: &Desired) -> Result<Ensured, BoxError> {
        let key = &desired.key;
        let held = self.held(key).await?;
        let wanted = document(&self.controller, desired, held.as_deref())
            .map_err(ProviderError::Document)?;
        let is_held = held.is_some_and(|held| held.revision == wanted.revision);
        let report = if is_held {
            let holdings = self.holdings.lock();
            holdings.get(key).map(|holding| holding.report.clone())
        } else {
            match self.put(wanted).await {
                Ok(report) => Some(report),
                Err(error) => return self.refused(desired, error).await,
            }
        };
        let report = report.unwrap_or_default();
        let problem = report.problem.as_deref();
        Ok(Ensured {
            load_balancer: report.load_balancer,
            obstacles: problem
                .map(|problem| reported(key, problem))
                .into_iter()
                .collect(),
        })
    }

    async fn delete(&self, key: &Key, excluded: &BTreeSet<String>) -> Result<Ensured, BoxError> {
        let report = {
            let holdings = self.holdings.lock();
            if !holdings.is_listed {
                return Err(ProviderError::Unlisted.into());
            }
            holdings.get(key).map(|holding| holding.report.clone())
        };
        let Some(report) = report else {
            return Ok(Ensured::default());
        };
        let deleted = self.writer.write(TARGET, self.endpoint.delete(key)).await;
        match self.settled("DELETE", key, deleted) {
            Err(error) if !error.is_missing() => {
                let Some(obstacle) = error.obstacle(key) else {
                    return Err(error.into());
                };
                self.cut_document(key, |_, cluster| excluded.contains(cluster))
                    .await?;
                return Err(obstacle.into());
            }
            Ok(()) | Err(_) => self.holdings.lock().removed(key),
        }
        let addresses = report.load_balancer;
        Ok(Ensured {
            load_balancer: addresses.map(|_| IngressLoadBalancerStatus::default()),
            obstacles: BTreeSet::new(),
        })
    }

    async fn cut(&self, key: &Key, cut: &ServedClusters) -> Result<(), BoxError> {
        let cut = self.cut_document(key, |service, cluster| {
            let clusters = cut.get(service);
            clusters.is_some_and(|clusters| clusters.contains(cluster))
        });
        match cut.await {
            Ok(_) => Ok(()),
            Err(error) => Err(match error.obstacle(key) {
                Some(obstacle) => obstacle.into(),
                None => error.into(),
            }),
        }
    }

    fn keys(&self) -> Vec<Key> {
        self.holdings.lock().keys()
    }

    fn holds(&self, key: &Key) -> bool {
        self.holdings.lock().get(key).is_some()
    }

    fn endpoints(&self, key: &Key) -> ServedClusters {
        let holdings = self.holdings.lock();
        let document = holdings.get(key).and_then(|one| one.document.as_ref());
        document
            .map(|document| clusters(document))
            .unwrap_or_default()
    }

    fn is_outage(&self, error: &BoxError) -> bool {
        let error = error.downcast_ref::<ProviderError>();
        error.is_some_and(ProviderError::is_outage)
    }

    async fn probe(&self) -> Result<(), BoxError> {
        answer("GET of the list", self.endpoint.list()).await?;
        // It may have lost its ingresses.
        self.outdated.notify_one();
        if self.holdings.lock().is_listed {
            Ok(())
        } else {
            Err(ProviderError::Unlisted.into())
        }
    }
}

//! A client whose kubeconfig is read again when it or a file that it names changes.

mod metrics;

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Request, Response};
use jiff::Timestamp;
use kube::Client;
use kube::client::Body;
use kube::config::AuthInfo;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tower::Service;

pub(crate) use self::metrics::CredentialMetrics;

use super::expiry::{CREDENTIALS, Validity, validities};
use super::{Addresses, ClientError, Source, connect_by};
use crate::error::{BoxError, Chain, LastError};

/// The interval between two looks at the files. They are a few kilobytes, and a program that sends no
/// request, as most agents, must notice a change as well.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// The service of a client that is replaced with its credentials.
#[derive(Clone)]
struct Replaceable {
    /// The client of the newest credentials. Requests in progress, watches included, keep theirs.
    newest: Arc<Mutex<Client>>,
}

impl Service<Request<Body>> for Replaceable {
    type Response = Response<Body>;
    type Error = kube::Error;
    type Future = BoxFuture<'static, kube::Result<Response<Body>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<kube::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let newest = self.newest.lock().clone();
        async move { newest.send(request).await }.boxed()
    }
}

/// A connection to an API and the files that it depends on.
pub(crate) struct Renewal {
    source: Source,
    /// True while the credentials are the pod's service account.
    is_pod: bool,
    user_agent: &'static str,
    addresses: Addresses,
    /// The name of the API in logs and metrics.
    api: &'static str,
    metrics: CredentialMetrics,
    clock: fn() -> Timestamp,
    client: Client,
    service: Replaceable,
    /// The files as they were before they were last used.
    fingerprint: u64,
    auth: AuthInfo,
    /// The end of a certificate that a command gave, which only another connection can replace.
    certificate_end: Option<Timestamp>,
    /// The ends that a warning has been logged about.
    warned: [Option<Validity>; CREDENTIALS.len()],
    last_error: LastError,
}

impl Renewal {
    /// Connects, and looks the server's name up in `addresses`.
    pub(crate) async fn start(
        source: &Source,
        user_agent: &'static str,
        addresses: Addresses,
        api: &'static str,
        metrics: CredentialMetrics,
        clock: fn() -> Timestamp,
    ) -> Result<Self, ClientError> {
        // Before the files are used: a change meanwhile shows at the next look.
        let fingerprint = fingerprint(source);
        let is_pod = source.is_pod();
        let (newest, auth, certificate_end) =
            connect_by(source, is_pod, user_agent, &addresses, api).await?;
        let namespace = newest.default_namespace().to_owned();
        let service = Replaceable {
            newest: Arc::new(Mutex::new(newest)),
        };
        let mut renewal = Self {
            source: source.clone(),
            is_pod,
            user_agent,
            addresses,
            api,
            metrics,
            clock,
            client: Client::new(service.clone(), namespace),
            service,
            fingerprint,
            auth,
            certificate_end,
            warned: [None; CREDENTIALS.len()],
            last_error: LastError::default(),
        };
        renewal.note_ends();
        Ok(renewal)
    }

    /// Returns the client, which follows the files while the renewal runs.
    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }

    /// Looks at the files now and then until the program stops.
    pub(crate) async fn run(mut self, stopping: CancellationToken) -> Result<(), BoxError> {
        loop {
            tokio::select! {
                biased;
                () = stopping.cancelled() => return Ok(()),
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
            self.look().await;
        }
    }

    /// Reads the files again if they have changed or a command's certificate has ended, and notes the ends of the credentials.
    async fn look(&mut self) {
        let fingerprint = fingerprint(&self.source);
        let now = (self.clock)();
        let has_ended = self.certificate_end.is_some_and(|end| end <= now);
        let has_changed = fingerprint != self.fingerprint;
        if has_changed || has_ended {
            let (done, failed) = if has_changed {
                (
                    "Read the changed kubeconfig",
                    "Cannot use the changed kubeconfig, will retry",
                )
            } else {
                (
                    "Replaced the certificate of the kubeconfig's command, which had ended",
                    "Cannot replace the certificate of the kubeconfig's command, which has ended, will retry",
                )
            };
            // Never back from a file: one that is gone for a moment must not lead to another cluster.
            let is_pod = self.is_pod && self.source.is_pod();
            let (source, addresses) = (&self.source, &self.addresses);
            match connect_by(source, is_pod, self.user_agent, addresses, self.api).await {
                Ok((newest, auth, certificate_end)) => {
                    self.is_pod = is_pod;
                    *self.service.newest.lock() = newest;
                    self.auth = auth;
                    self.certificate_end = certificate_end;
                    self.fingerprint = fingerprint;
                    self.last_error.clear();
                    tracing::info!(api = self.api, "{done}");
                }
                // Perhaps only half of it has been written yet. The credentials of before may still be valid.
                Err(error) => {
                    let error = Chain(&error).to_string();
                    if self.last_error.replace(&error) {
                        let api = self.api;
                        tracing::warn!(api, error, "{failed}");
                    }
                }
            }
        }
        self.note_ends();
    }

    fn note_ends(&mut self) {
        let (api, now) = (self.api, (self.clock)());
        let found = validities(&self.auth).into_iter();
        for ((credential, validity), warned) in
            CREDENTIALS.into_iter().zip(found).zip(&mut self.warned)
        {
            self.metrics.set(api, credential, validity, now);
            let ending = validity.filter(|validity| validity.ends_soon(now));
            if let Some(Validity { until, .. }) = ending
                && *warned != ending
            {
                tracing::warn!(api, credential, %until, "Credentials end soon, renew them");
            }
            *warned = ending;
        }
    }
}

/// Returns a hash of the kubeconfig and of the files that it names. A token file is read again by itself, too,
/// but only each minute.
fn fingerprint(source: &Source) -> u64 {
    let file = source.read().map(|(file, _)| file).unwrap_or_default();
    let clusters = file
        .clusters
        .iter()
        .filter_map(|named| named.cluster.as_ref());
    let users = file
        .auth_infos
        .iter()
        .filter_map(|named| named.auth_info.as_ref());
    let named = clusters
        .map(|cluster| &cluster.certificate_authority)
        .chain(
            users.flat_map(|user| [&user.client_certificate, &user.client_key, &user.token_file]),
        );
    let named = named.flatten().map(PathBuf::from);
    let mut hasher = DefaultHasher::new();
    for path in source.files().into_iter().chain(named) {
        fs::read(path).ok().hash(&mut hasher);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests;

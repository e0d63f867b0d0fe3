//! Watches that end as soon as they begin. kube restarts a watch that ended cleanly at once and without
//! backoff, so an API server or proxy that ends each watch immediately would be queried without a
//! pause. Here such an end becomes an error, which kube retries with backoff.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Frame, SizeHint};
use tokio::time::Instant;
use tower::{BoxError, Service};

/// A watch that ends sooner counts as failed (client-go's `VeryShortWatchError`).
const MIN_DURATION: Duration = Duration::from_secs(1);

/// A service whose watches fail if they end too soon.
#[derive(Clone, Debug)]
pub(super) struct FailShortWatches<S> {
    inner: S,
}

impl<S> FailShortWatches<S> {
    pub(super) fn new(inner: S) -> Self {
        Self { inner }
    }
}

impl<S, A, B> Service<Request<A>> for FailShortWatches<S>
where
    S: Service<Request<A>, Response = Response<B>>,
    S::Future: Send + 'static,
{
    type Response = Response<WatchBody<B>>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let query = request.uri().query().unwrap_or_default();
        let watches = query.split('&').any(|parameter| parameter == "watch=true");
        let response = self.inner.call(request);
        Box::pin(async move {
            // The time counts from the request: a server that is slow to respond and then ends the
            // watch has held the client back long enough.
            let watched_since = watches.then(Instant::now);
            let response = response.await?;
            Ok(response.map(|body| WatchBody {
                body: Box::pin(body),
                watched_since,
            }))
        })
    }
}

/// The body of a response, of a watch or not.
#[derive(Debug)]
pub(super) struct WatchBody<B> {
    body: Pin<Box<B>>,
    /// The start of the watch; `None` for other responses and after the end.
    watched_since: Option<Instant>,
}

#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the watch ended within {MIN_DURATION:?}")]
struct EndedTooSoon;

impl<B> http_body::Body for WatchBody<B>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = match ready!(self.body.as_mut().poll_frame(context)) {
            Some(Ok(frame)) => return Poll::Ready(Some(Ok(frame))),
            end => end.map(|failed| failed.map_err(Into::into)),
        };
        let since = self.watched_since.take();
        Poll::Ready(
            if since.is_some_and(|since| since.elapsed() < MIN_DURATION) {
                Some(Err(EndedTooSoon.into()))
            } else {
                frame
            },
        )
    }

    fn is_end_stream(&self) -> bool {
        // A caller that sees the end here would not poll, and so not receive the error.
        self.watched_since.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::body::Body;
    use futures::StreamExt;
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::{Api, Config};

    use super::*;
    use crate::watch::events;

    /// An API without objects that counts its watches and ends each after a time, cleanly or not. The
    /// embedded API cannot stand in: it ends a watch only with an event or after its own timeout.
    #[derive(Clone)]
    struct Ending {
        after: Duration,
        clean: bool,
        watches: Arc<AtomicUsize>,
    }

    impl Service<Request<kube::client::Body>> for Ending {
        type Response = Response<Body>;
        type Error = std::convert::Infallible;
        type Future = std::future::Ready<Result<Response<Body>, Self::Error>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, request: Request<kube::client::Body>) -> Self::Future {
            let list = r#"{"apiVersion":"v1","kind":"List","metadata":{"resourceVersion":"1"},"items":[]}"#;
            let body = if request
                .uri()
                .query()
                .unwrap_or_default()
                .contains("watch=true")
            {
                self.watches.fetch_add(1, Ordering::Relaxed);
                let Self { after, clean, .. } = *self;
                let ends = async move {
                    tokio::time::sleep(after).await;
                    let cut = std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
                    if clean { Ok(Bytes::new()) } else { Err(cut) }
                };
                Body::from_stream(futures::stream::once(ends))
            } else {
                Body::from(list)
            };
            std::future::ready(Ok(Response::new(body)))
        }
    }

    /// Returns the number of watches requested within a minute.
    async fn watches_per_minute(after: Duration, clean: bool) -> usize {
        let watches = Arc::new(AtomicUsize::new(0));
        let ending = Ending {
            after,
            clean,
            watches: Arc::clone(&watches),
        };
        let config = Config::new(http::Uri::from_static("http://api"));
        let client = super::super::with_service(ending, config, "test").unwrap();
        let watching =
            events::<ConfigMap>(Api::all(client), kube::runtime::watcher::Config::default());
        let mut watching = std::pin::pin!(watching);
        let minute = async { while watching.next().await.is_some() {} };
        tokio::time::timeout(Duration::from_mins(1), minute)
            .await
            .unwrap_err();
        watches.load(Ordering::Relaxed)
    }

    /// A watch that ends at once is requested again only after a pause.
    #[tokio::test(start_paused = true)]
    async fn short_watch_is_delayed() {
        for clean in [true, false] {
            let times = watches_per_minute(Duration::from_millis(10), clean).await;
            assert!((5..=125).contains(&times), "{times} times, clean: {clean}");
        }
    }

    /// A watch that lasted is requested again at once.
    #[tokio::test(start_paused = true)]
    async fn long_watch_resumes_at_once() {
        for clean in [true, false] {
            assert_eq!(watches_per_minute(Duration::from_secs(7), clean).await, 9);
        }
    }
}

//! The patience of a command with an API that asks for it, as one does that has just started. The loops of programs try again
//! by themselves.

use std::time::Duration;

use http::{Request, Response, StatusCode, header};
use kube::Client;
use kube::client::Body;
use kube::client::retry::RetryPolicy;
use tower::retry::{Policy, RetryLayer};
use tower::{BoxError, ServiceBuilder};

/// The pauses are between these two, unless the API asks for a longer one.
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(2));
/// The most attempts after the first one: within a minute an API has read its store.
const ATTEMPTS: u32 = 30;
/// The longest pause that is granted: whoever waits at a terminal is told of a longer one by the API's answer.
const LONGEST_PAUSE: u64 = 30;

/// Returns a client that sends a request again when the API asks for that with `Retry-After`, as kubectl does.
pub fn patient(client: Client) -> Client {
    let namespace = client.default_namespace().to_owned();
    let policy = RetryPolicy::new(PAUSES.0, PAUSES.1, ATTEMPTS, true).unwrap_or_default();
    let sending = ServiceBuilder::new()
        .layer(RetryLayer::new(WhenAsked(policy)))
        .map_err(BoxError::from)
        .service_fn(move |request| {
            let client = client.clone();
            async move { client.send(request).await }
        });
    Client::new(sending, namespace)
}

/// kube's policy, where the API asks for another attempt, and nowhere else. Like client-go (`rest/with_retry.go`), it takes any
/// 5xx for that, such as the 500 of an API whose etcd elects a leader.
#[derive(Clone)]
struct WhenAsked(RetryPolicy);

impl<B> Policy<Request<Body>, Response<B>, BoxError> for WhenAsked {
    type Future = tokio::time::Sleep;

    fn retry(
        &mut self,
        request: &mut Request<Body>,
        result: &mut Result<Response<B>, BoxError>,
    ) -> Option<Self::Future> {
        let response = result.as_ref().ok()?;
        let after = response.headers().get(header::RETRY_AFTER)?;
        if after.to_str().ok()?.parse::<u64>().ok()? > LONGEST_PAUSE {
            return None;
        }
        let status = response.status();
        if !status.is_server_error() && status != StatusCode::TOO_MANY_REQUESTS {
            return None;
        }
        // kube's policy looks at the status and at the header: it is shown one of those that it knows.
        let mut shown = Response::new(());
        *shown.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        shown
            .headers_mut()
            .insert(header::RETRY_AFTER, after.clone());
        self.0.retry(request, &mut Ok(shown))
    }

    fn clone_request(&mut self, request: &Request<Body>) -> Option<Request<Body>> {
        Policy::<_, Response<B>, _>::clone_request(&mut self.0, request)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use http::StatusCode;
    use tokio::time::Instant;

    use super::*;

    /// Returns a client of an API that answers `busy` to so many requests, and the number of those that it got.
    fn client(busy: Response<()>, times: u32) -> (Client, Arc<AtomicU32>) {
        let asked = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&asked);
        let answers = tower::service_fn(move |request: Request<Body>| {
            let is_busy = count.fetch_add(1, Ordering::SeqCst) < times;
            let (parts, ()) = busy.clone().into_parts();
            async move {
                let body = request.into_body();
                Ok::<_, Infallible>(if is_busy {
                    Response::from_parts(parts, Body::empty())
                } else {
                    Response::new(body)
                })
            }
        });
        (Client::new(answers, "default"), asked)
    }

    fn busy(status: StatusCode, after: Option<&str>) -> Response<()> {
        let mut response = Response::builder().status(status);
        if let Some(after) = after {
            response = response.header(header::RETRY_AFTER, after);
        }
        response.body(()).unwrap()
    }

    async fn write(client: &Client) -> (StatusCode, Vec<u8>) {
        let request = Request::post("/api/v1/namespaces");
        let request = request.body(Body::from(b"object".to_vec())).unwrap();
        let (parts, body) = client.send(request).await.unwrap().into_parts();
        (parts.status, body.collect_bytes().await.unwrap().to_vec())
    }

    /// An API answers 429 while it reads its store after a start, and 500 while etcd elects a leader. The write is made once it
    /// can be, with all of its body.
    #[tokio::test(start_paused = true)]
    async fn starting_api_is_waited_for() {
        for status in [
            StatusCode::TOO_MANY_REQUESTS,
            StatusCode::INTERNAL_SERVER_ERROR,
        ] {
            let (client, asked) = client(busy(status, Some("1")), 5);
            let began = Instant::now();
            let written = write(&patient(client)).await;
            assert_eq!(written, (StatusCode::OK, b"object".to_vec()));
            assert_eq!(asked.load(Ordering::SeqCst), 6);
            assert!(
                began.elapsed() >= Duration::from_secs(5),
                "{:?}",
                began.elapsed()
            );
        }
    }

    /// Nobody waits for an API that does not ask for it, or for ever.
    #[tokio::test(start_paused = true)]
    async fn patience_is_bounded() {
        for (response, times) in [
            (busy(StatusCode::SERVICE_UNAVAILABLE, None), 1),
            (busy(StatusCode::TOO_MANY_REQUESTS, None), 1),
            (busy(StatusCode::BAD_REQUEST, Some("1")), 1),
            (busy(StatusCode::TOO_MANY_REQUESTS, Some("1")), ATTEMPTS + 1),
        ] {
            let status = response.status();
            let (client, asked) = client(response, u32::MAX);
            assert_eq!(write(&patient(client)).await.0, status);
            assert_eq!(asked.load(Ordering::SeqCst), times, "{status}");
        }
    }
}

//! Calls of a webhook.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use karmada_runtime::client::Transport;
use karmada_runtime::error::{BoxError, Chain};
use tokio::time::{Instant, sleep};

use crate::error::WebhookError;

/// The size of the largest answer: above that of an object in an API server, even twice.
const LARGEST_ANSWER: usize = 4 << 20;
/// The part of a refusal that is shown, in characters.
const SHOWN: usize = 200;

type Connector = HttpsConnector<Transport>;

/// A connection to a webhook, or several.
#[derive(Debug)]
pub(crate) struct Connection {
    http: HttpClient<Connector, Full<Bytes>>,
    url: Uri,
    user_agent: HeaderValue,
    end: Instant,
}

impl Connection {
    pub(crate) fn new(
        connector: Connector,
        url: Uri,
        user_agent: HeaderValue,
        known_for: Duration,
    ) -> Self {
        let http = HttpClient::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .build(connector);
        Self {
            http,
            url,
            user_agent,
            end: Instant::now() + known_for,
        }
    }

    /// Returns `true` if the webhook may be somewhere else by now.
    pub(crate) fn is_old(&self) -> bool {
        self.end <= Instant::now()
    }

    /// Sends a request, again where the server asks for that and time is left, and returns the answer.
    pub(crate) async fn post(
        &self,
        body: &Bytes,
        deadline: Instant,
    ) -> Result<Bytes, WebhookError> {
        loop {
            let response = self.http.request(self.request(body.clone())?).await;
            let response = response.map_err(|error| unanswered(&error))?;
            let (status, pause) = (response.status(), pause(&response));
            let answer = read(response).await?;
            if status.is_success() {
                return Ok(answer);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match pause {
                Some(pause) if pause < left => sleep(pause).await,
                _ => return Err(refused(status, &answer)),
            }
        }
    }

    fn request(&self, body: Bytes) -> Result<Request<Full<Bytes>>, WebhookError> {
        let json = HeaderValue::from_static("application/json");
        let request = Request::builder()
            .method(Method::POST)
            .uri(self.url.clone())
            .header(CONTENT_TYPE, json.clone())
            .header(ACCEPT, json)
            .header(USER_AGENT, self.user_agent.clone())
            .body(Full::new(body));
        request.map_err(|error| WebhookError::Invalid(error.to_string()))
    }
}

/// Returns the time after which a server that is busy wants to be asked again.
fn pause<B>(response: &Response<B>) -> Option<Duration> {
    let status = response.status();
    let is_busy = status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error();
    let seconds = response.headers().get(RETRY_AFTER).filter(|_| is_busy)?;
    let seconds: u64 = seconds.to_str().ok()?.trim().parse().ok()?;
    // Zero would be a loop without a pause.
    Some(Duration::from_secs(seconds.max(1)))
}

async fn read(response: Response<hyper::body::Incoming>) -> Result<Bytes, WebhookError> {
    let body = Limited::new(response.into_body(), LARGEST_ANSWER)
        .collect()
        .await;
    let body = body.map_err(|error: BoxError| {
        if error.is::<LengthLimitError>() {
            let megabytes = LARGEST_ANSWER >> 20;
            return WebhookError::Invalid(format!("the answer is larger than {megabytes} MiB"));
        }
        unanswered(&*error)
    })?;
    Ok(body.to_bytes())
}

fn refused(status: StatusCode, answer: &Bytes) -> WebhookError {
    let text = String::from_utf8_lossy(answer);
    let words: Vec<&str> = text.split_whitespace().collect();
    let shown: String = words.join(" ").chars().take(SHOWN).collect();
    WebhookError::Invalid(format!("the server answered {status}: {shown}"))
}

fn unanswered(error: &(dyn std::error::Error + 'static)) -> WebhookError {
    WebhookError::Unanswered(Chain(error).to_string())
}

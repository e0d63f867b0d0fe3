//! The page, its events, and what its buttons do. It listens on this machine only, and does what a
//! page of its own asks for, not what another site's page in the same browser does.

use std::convert::Infallible;
use std::future::IntoFuture;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, post};
use futures::Stream;
use http::{HeaderMap, StatusCode, Uri, header};
use serde::Serialize;
use tokio::net::TcpListener;

use crate::record::Record;
use crate::world::{Action, World};

const PAGE: &str = include_str!("page/index.html");

/// Serves the page of a world for ever.
pub(crate) async fn serve(listener: TcpListener, world: Arc<World>) -> io::Result<()> {
    axum::serve(listener, routes(world)).into_future().await
}

/// Listens on a port of this machine, 0 being any free one.
///
/// # Errors
/// With one line that says what to do.
pub(crate) async fn listen(port: u16) -> anyhow::Result<TcpListener> {
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    TcpListener::bind(address).await.map_err(|error| {
        anyhow::anyhow!("cannot serve the page on {address}: {error}; name another --port, or none")
    })
}

fn routes(world: Arc<World>) -> Router {
    let record = world.record();
    Router::new()
        .route("/", get(async || Html(PAGE)))
        .route("/events", get(events).with_state(record))
        .route("/actions", post(act).with_state(world))
        .layer(middleware::from_fn(only_our_own))
}

/// Refuses what comes by another name than this machine's, or from another site's page.
async fn only_our_own(request: Request, next: Next) -> Response {
    if is_our_own(request.headers()) {
        next.run(request).await
    } else {
        let why = "only a page of this sandbox may ask, by an address of this machine\n";
        (StatusCode::FORBIDDEN, why).into_response()
    }
}

fn is_our_own(headers: &HeaderMap) -> bool {
    let text = |name| {
        headers
            .get(name)
            .map(|value| value.to_str().unwrap_or_default())
    };
    let Some(host) = text(header::HOST) else {
        return false;
    };
    let name = format!("http://{host}").parse::<Uri>().ok();
    let name = name.as_ref().and_then(Uri::host).unwrap_or_default();
    let is_loopback = matches!(name, "localhost" | "127.0.0.1" | "[::1]");
    let origin = text(header::ORIGIN);
    is_loopback && origin.is_none_or(|origin| origin == format!("http://{host}"))
}

async fn act(State(world): State<Arc<World>>, body: Bytes) -> Response {
    let refused = |why: String| (StatusCode::BAD_REQUEST, format!("{why}\n")).into_response();
    let action: Action = match serde_json::from_slice(&body) {
        Ok(action) => action,
        Err(error) => return refused(format!("no action: {error}")),
    };
    match world.act(action).await {
        Ok(()) => StatusCode::NO_CONTENT.into_response(),
        Err(error) => refused(format!("{error:#}").replace('\n', " ")),
    }
}

async fn events(
    State(record): State<Record>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let past = event("past", &*record.past.borrow());
    let begun = (Reader { record, seen: 0 }, vec![past]);
    let events = futures::stream::unfold(begun, async |(mut reader, mut queued)| {
        while queued.is_empty() {
            queued = reader.next().await?;
            queued.reverse();
        }
        let event = queued.pop()?;
        Some((Ok(event), (reader, queued)))
    });
    Sse::new(events).keep_alive(KeepAlive::default())
}

/// One reader of the events.
struct Reader {
    record: Record,
    /// The newest happening it was told of.
    seen: u64,
}

impl Reader {
    /// What is new; none once there is nothing to come.
    async fn next(&mut self) -> Option<Vec<Event>> {
        let Record { state, story, .. } = &mut self.record;
        tokio::select! {
            biased;
            changed = story.changed() => changed.ok()?,
            changed = state.changed() => changed.ok()?,
        }
        let mut events = vec![event("state", &*state.borrow_and_update().clone())];
        let story = story.borrow_and_update();
        for happened in story.iter().filter(|happened| happened.id > self.seen) {
            events.push(event("happened", happened));
        }
        self.seen = story.last().map_or(self.seen, |newest| newest.id);
        Some(events)
    }
}

fn event(name: &str, data: &impl Serialize) -> Event {
    let event = Event::default().event(name);
    event.json_data(data).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn only_our_own_page_by_an_address_of_this_machine_may_ask() {
        let cases: [(&str, Option<&str>, bool); 8] = [
            ("127.0.0.1:8000", None, true),
            ("localhost:8000", None, true),
            ("[::1]:8000", None, true),
            ("127.0.0.1:8000", Some("http://127.0.0.1:8000"), true),
            ("127.0.0.1:8000", Some("http://evil.example"), false),
            ("127.0.0.1:8000", Some("http://127.0.0.1:9000"), false),
            ("evil.example:8000", None, false),
            ("127.0.0.1:8000", Some("null"), false),
        ];
        for (host, origin, expected) in cases {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, HeaderValue::from_static(host));
            if let Some(origin) = origin {
                headers.insert(header::ORIGIN, HeaderValue::from_static(origin));
            }
            assert_eq!(is_our_own(&headers), expected, "{host} {origin:?}");
        }
        assert!(!is_our_own(&HeaderMap::new()));
    }
}

//! The HTTP server of the page, of its events and of the actions of its buttons. It listens on
//! loopback, and refuses requests that another site's page in the same browser makes.

use std::convert::Infallible;
use std::future::IntoFuture;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use futures::Stream;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use serde::Serialize;
use tokio::net::TcpListener;

use crate::new_remedy::NewRemedy;
use crate::origin;
use crate::plan::PlanState;
use crate::record::Record;
use crate::sandbox::{Action, Sandbox};

const PAGE: &str = include_str!("page/index.html");
/// The part of the page's script on Remedies.
const REMEDIES: &str = include_str!("page/remedies.js");
/// The part of the page's script on placements.
const PLACEMENTS: &str = include_str!("page/placements.js");

/// Serves the page of a sandbox and never returns but with an error.
pub(crate) async fn serve(listener: TcpListener, sandbox: Arc<Sandbox>) -> io::Result<()> {
    axum::serve(listener, routes(sandbox)).into_future().await
}

/// Listens on a port of loopback, on any free one for 0.
///
/// # Errors
/// Fails with a message of one line for the user.
pub(crate) async fn listen(port: u16) -> anyhow::Result<TcpListener> {
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    TcpListener::bind(address).await.map_err(|error| {
        anyhow::anyhow!("cannot serve the page on {address}: {error}; name another --port, or none")
    })
}

fn routes(sandbox: Arc<Sandbox>) -> Router {
    let record = sandbox.record();
    Router::new()
        .route("/", get(async || Html(PAGE)))
        .route("/remedies.js", get(async || script(REMEDIES)))
        .route("/placements.js", get(async || script(PLACEMENTS)))
        .route("/events", get(events).with_state(record))
        .route("/actions", post(act))
        .route("/plans", post(plan))
        .with_state(sandbox)
        .layer(middleware::from_fn(only_own_page))
}

/// Refuses requests of another site's page.
async fn only_own_page(request: Request, next: Next) -> Response {
    if origin::is_own(request.headers()) {
        next.run(request).await
    } else {
        let why = "only the page of this sandbox may send requests, by a loopback address\n";
        (StatusCode::FORBIDDEN, why).into_response()
    }
}

fn script(text: &'static str) -> impl IntoResponse {
    ([(CONTENT_TYPE, "text/javascript; charset=utf-8")], text)
}

async fn act(State(sandbox): State<Arc<Sandbox>>, body: Bytes) -> Response {
    let action: Action = match serde_json::from_slice(&body) {
        Ok(action) => action,
        Err(error) => return refused(&format!("not an action: {error}")),
    };
    match sandbox.act(action).await {
        Ok(()) => StatusCode::NO_CONTENT.into_response(),
        Err(error) => refused(&in_one_line(&error)),
    }
}

async fn plan(State(sandbox): State<Arc<Sandbox>>, body: Bytes) -> Response {
    let new: NewRemedy = match serde_json::from_slice(&body) {
        Ok(new) => new,
        Err(error) => return refused(&format!("not a Remedy: {error}")),
    };
    // A description that is not complete yet is the normal case while someone writes it.
    let plan = sandbox.plan(&new).await;
    let plan = plan.unwrap_or_else(|error| PlanState::Refused(in_one_line(&error)));
    Json(plan).into_response()
}

fn refused(why: &str) -> Response {
    (StatusCode::BAD_REQUEST, format!("{why}\n")).into_response()
}

fn in_one_line(error: &anyhow::Error) -> String {
    format!("{error:#}").replace('\n', " ")
}

async fn events(
    State(record): State<Record>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let past = event("past", &*record.past.borrow());
    let begun = (Reader { record, seen: 0 }, vec![past]);
    let events = futures::stream::unfold(begun, async |(mut reader, mut queued)| {
        while queued.is_empty() {
            // The oldest last, for pop.
            queued = reader.next().await?;
            queued.reverse();
        }
        let event = queued.pop()?;
        Some((Ok(event), (reader, queued)))
    });
    Sse::new(events).keep_alive(KeepAlive::default())
}

/// A page that reads the events.
struct Reader {
    record: Record,
    /// The id of the newest timeline entry that it received.
    seen: u64,
}

impl Reader {
    /// Waits for the next events; none once the sandbox ends.
    async fn next(&mut self) -> Option<Vec<Event>> {
        let Record {
            state, timeline, ..
        } = &mut self.record;
        tokio::select! {
            biased;
            changed = timeline.changed() => changed.ok()?,
            changed = state.changed() => changed.ok()?,
        }
        let mut events = vec![event("state", &*state.borrow_and_update().clone())];
        let timeline = timeline.borrow_and_update();
        for entry in timeline.iter().filter(|entry| entry.id > self.seen) {
            events.push(event("happened", entry));
        }
        self.seen = timeline.last().map_or(self.seen, |newest| newest.id);
        Some(events)
    }
}

fn event(name: &str, data: &impl Serialize) -> Event {
    let event = Event::default().event(name);
    event.json_data(data).unwrap_or_default()
}

//! `GET /v1/observation`: what this agent says of its node, and who has asked.

use std::sync::Arc;

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use karmada_rules::health::threshold::Vote;
use karmada_runtime::error::BoxError;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Asked, Own, PATH};
use crate::peers::observation::Observation;

/// What the route needs to know.
#[derive(Clone)]
pub(super) struct Served {
    own: Arc<Own>,
    said: watch::Receiver<Said>,
    asked: watch::Sender<Option<Asked>>,
}

/// A vote, and since when it is so.
#[derive(Clone, Copy, Debug)]
pub(super) struct Said {
    vote: Option<Vote>,
    since: Instant,
}

impl Said {
    fn new(vote: Option<Vote>) -> Self {
        Self {
            vote,
            since: Instant::now(),
        }
    }
}

/// Notes since when the vote is what it is, until the program stops. Another failure is the same vote.
pub(super) async fn note(
    mut votes: watch::Receiver<Option<Vote>>,
    said: watch::Sender<Said>,
    stopping: CancellationToken,
) -> Result<(), BoxError> {
    let kind = |vote: Option<Vote>| vote.map(|vote| std::mem::discriminant(&vote));
    let noting = async {
        loop {
            let vote = *votes.borrow_and_update();
            said.send_modify(|said| {
                if kind(said.vote) == kind(vote) {
                    said.vote = vote;
                } else {
                    *said = Said::new(vote);
                }
            });
            if votes.changed().await.is_err() {
                // The program is ending.
                std::future::pending::<()>().await;
            }
        }
    };
    tokio::select! {
        biased;
        () = stopping.cancelled() => Ok(()),
        () = noting => Ok(()),
    }
}

/// The vote of an agent that has seen nothing yet.
pub(super) fn nothing_said() -> (watch::Sender<Said>, watch::Receiver<Said>) {
    watch::channel(Said::new(None))
}

/// The route; an agent that says it leads is noted in `asked`.
pub(super) fn routes(
    own: Arc<Own>,
    said: watch::Receiver<Said>,
    asked: watch::Sender<Option<Asked>>,
) -> Router {
    Router::new()
        .route(PATH, get(observation))
        .with_state(Served { own, said, asked })
}

async fn observation(State(served): State<Served>, RawQuery(query): RawQuery) -> Response {
    let Served { own, said, asked } = served;
    if let Some(standby) = asked_by_another(query.as_deref().unwrap_or_default(), &own) {
        asked.send_replace(Some(Asked {
            at: Instant::now(),
            standby,
        }));
    }
    let Said { vote, since } = *said.borrow();
    let observation = Observation::new(&own.cluster, &own.node, vote, since.elapsed());
    match serde_json::to_string(&observation) {
        Ok(text) => ([(header::CONTENT_TYPE, "application/json")], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

/// Whether we are a standby, when the leader of our cluster asks from another node.
fn asked_by_another(query: &str, own: &Own) -> Option<bool> {
    let parameter = |wanted: &str| {
        form_urlencoded::parse(query.as_bytes())
            .find_map(|(name, value)| (name == wanted).then_some(value))
    };
    parameter("cluster").filter(|cluster| *cluster == own.cluster)?;
    parameter("leader").filter(|leader| *leader != own.node)?;
    Some(parameter("standby").is_some_and(|standby| standby == "true"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_leader_of_our_cluster_on_another_node_counts_as_having_asked() {
        let own = Own {
            cluster: "member1".to_owned(),
            node: "n1".to_owned(),
            port: 8080,
        };
        let cases = [
            ("", None),
            ("standby=true", None),
            ("cluster=member1&standby=true", None),
            ("leader=n2&standby=true", None),
            ("cluster=member2&leader=n2&standby=true", None),
            ("cluster=member1&leader=n1&standby=true", None),
            ("cluster=member1&leader=n2", Some(false)),
            ("cluster=member1&leader=n2&standby=false", Some(false)),
            ("cluster=member1&leader=n%32&standby=true", Some(true)),
            ("cluster=member1&leader=n%2631", Some(false)),
        ];
        for (query, expected) in cases {
            assert_eq!(asked_by_another(query, &own), expected, "{query}");
        }
    }
}

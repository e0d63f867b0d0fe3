//! `GET /v1/observation`: serves this node's votes and records the requests of leaders.

use std::sync::Arc;

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use karmada_rules::health::campaign::LeaderContact;
use karmada_rules::health::signal::PerSignal;
use karmada_runtime::error::BoxError;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Identity, OBSERVATION_PATH};
use crate::peers::vote_document::{DatedVote, VoteDocument};
use crate::vote::{Votes, kind};

/// The state of the route.
#[derive(Clone)]
pub(super) struct RouteState {
    own: Arc<Identity>,
    votes: watch::Receiver<PerSignal<DatedVote>>,
    contacts: watch::Sender<Option<LeaderContact>>,
}

/// Keeps `dated` at the newest of `votes` until the program stops. Another failure does not change the
/// date: the vote is still unhealthy.
pub(super) async fn date_votes(
    mut votes: watch::Receiver<Votes>,
    dated: watch::Sender<PerSignal<DatedVote>>,
    stopping: CancellationToken,
) -> Result<(), BoxError> {
    let dating = async {
        loop {
            let newest = dated_now(&votes.borrow_and_update());
            dated.send_modify(|before| {
                *before = newest.map(|signal, now| match before.get(signal) {
                    Some(before) if kind(before.vote) == kind(now.vote) => DatedVote {
                        since: before.since,
                        ..*now
                    },
                    _ => *now,
                });
            });
            if votes.changed().await.is_err() {
                // The vote's task has ended, so the program is stopping too.
                std::future::pending::<()>().await;
            }
        }
    };
    tokio::select! {
        biased;
        () = stopping.cancelled() => Ok(()),
        () = dating => Ok(()),
    }
}

/// Returns votes that change now.
pub(super) fn dated_now(votes: &Votes) -> PerSignal<DatedVote> {
    votes.map(|_, vote| DatedVote {
        vote: *vote,
        since: Instant::now(),
    })
}

/// Returns the route. Requests of leaders go to `contacts`.
pub(super) fn routes(
    own: Arc<Identity>,
    votes: watch::Receiver<PerSignal<DatedVote>>,
    contacts: watch::Sender<Option<LeaderContact>>,
) -> Router {
    let state = RouteState {
        own,
        votes,
        contacts,
    };
    Router::new()
        .route(OBSERVATION_PATH, get(vote_document))
        .with_state(state)
}

async fn vote_document(State(state): State<RouteState>, RawQuery(query): RawQuery) -> Response {
    let RouteState {
        own,
        votes,
        contacts,
    } = state;
    if let Some(standby) = standby(query.as_deref().unwrap_or_default(), &own) {
        contacts.send_replace(Some(LeaderContact {
            at: Instant::now().into_std(),
            standby,
        }));
    }
    let document = VoteDocument::new(&own, &votes.borrow());
    match serde_json::to_string(&document) {
        Ok(text) => ([(header::CONTENT_TYPE, "application/json")], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

/// Returns the value of `standby` if the request comes from another agent that leads this cluster. Any other reader (a person, a scraper, this agent itself) must not keep it from campaigning.
fn standby(query: &str, own: &Identity) -> Option<bool> {
    let parameter = |wanted: &str| {
        form_urlencoded::parse(query.as_bytes())
            .find_map(|(name, value)| (name == wanted).then_some(value))
    };
    parameter("cluster").filter(|cluster| *cluster == own.cluster)?;
    let leader = parameter("leader")?;
    let ourselves = match parameter("agent") {
        Some(id) => id == own.id.to_string(),
        // A leader of an older version names its node only.
        None => leader == own.node,
    };
    if ourselves {
        return None;
    }
    Some(parameter("standby").is_some_and(|standby| standby == "true"))
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn only_another_agent_that_leads_this_cluster_is_a_contact() {
        let own = Identity {
            cluster: "member1".to_owned(),
            node: "n1".to_owned(),
            id: Uuid::from_u128(1),
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
            assert_eq!(standby(query, &own), expected, "{query}");
        }
        // The identifier decides, not the name, which another agent may have by mistake.
        for (leader, id, expected) in [
            ("n1", 1, None),
            ("n2", 1, None),
            ("n1", 2, Some(true)),
            ("n2", 2, Some(true)),
        ] {
            let id = Uuid::from_u128(id);
            let query = format!("cluster=member1&leader={leader}&agent={id}&standby=true");
            assert_eq!(standby(&query, &own), expected, "{query}");
        }
    }
}

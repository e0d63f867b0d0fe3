//! `GET /v1/observation`: serves this node's votes and records the requests of leaders.

use std::borrow::Cow;
use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Router};
use health::campaign::LeaderContact;
use health::signal::PerTarget;
use karmada_runtime::admin::Caller;
use karmada_runtime::client::Addresses;
use karmada_runtime::error::BoxError;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::list::Directory;
use super::{Identity, OBSERVATION_PATH};
use crate::peers::vote_document::{DatedVote, VoteDocument};
use crate::vote::{Votes, kind};

/// The state of the route.
#[derive(Clone)]
pub(super) struct RouteState {
    own: Arc<Identity>,
    votes: watch::Receiver<PerTarget<DatedVote>>,
    contacts: watch::Sender<Option<LeaderContact>>,
    callers: Callers,
}

/// The agents whose requests count: those on the roster.
#[derive(Clone, Debug)]
pub(super) struct Callers {
    pub(super) directory: Arc<Directory>,
    /// The addresses of agents that are given by name.
    pub(super) addresses: Addresses,
}

impl Callers {
    /// Returns `true` for a caller on the roster, or on this host. Any other pod could keep this agent from
    /// campaigning.
    fn include(&self, caller: Caller) -> bool {
        let Caller { from, to } = caller;
        from.is_loopback() || to == Some(from) || self.directory.has(from, &self.addresses)
    }
}

/// Keeps `dated` at the newest of `votes` until the program stops. Another failure does not change the
/// date: the vote is still unhealthy.
pub(super) async fn date_votes(
    mut votes: watch::Receiver<Votes>,
    dated: watch::Sender<PerTarget<DatedVote>>,
    stopping: CancellationToken,
) -> Result<(), BoxError> {
    let dating = async {
        loop {
            let newest = dated_now(&votes.borrow_and_update());
            dated.send_modify(|before| {
                *before = newest.map(|target, now| match before.of(target) {
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
pub(super) fn dated_now(votes: &Votes) -> PerTarget<DatedVote> {
    votes.map(|_, vote| DatedVote {
        vote: *vote,
        since: Instant::now(),
    })
}

/// Returns the route. Requests of leaders go to `contacts`.
pub(super) fn routes(
    own: Arc<Identity>,
    votes: watch::Receiver<PerTarget<DatedVote>>,
    contacts: watch::Sender<Option<LeaderContact>>,
    callers: Callers,
) -> Router {
    let state = RouteState {
        own,
        votes,
        contacts,
        callers,
    };
    Router::new()
        .route(OBSERVATION_PATH, get(vote_document))
        .with_state(state)
}

async fn vote_document(
    State(state): State<RouteState>,
    caller: Option<Extension<Caller>>,
    RawQuery(query): RawQuery,
) -> Response {
    let RouteState {
        own,
        votes,
        contacts,
        callers,
    } = state;
    if let Some(standby) = standby(query.as_deref().unwrap_or_default(), &own)
        && let Some(Extension(caller)) = caller
    {
        if callers.include(caller) {
            contacts.send_replace(Some(LeaderContact {
                at: Instant::now().into_std(),
                standby,
            }));
        } else {
            // A leader that has moved is not on an old list.
            tracing::debug!(from = %caller.from, "A leader's request does not count: its address is not on the roster");
            callers.directory.doubt();
        }
    }
    let document = VoteDocument::new(&own, &votes.borrow());
    match serde_json::to_string(&document) {
        Ok(text) => ([(header::CONTENT_TYPE, "application/json")], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

/// Returns the value of `standby` if the request comes from another agent that leads this cluster. Any other reader (a person, a scraper, this agent itself) must not keep it from campaigning.
fn standby(query: &str, own: &Identity) -> Option<bool> {
    parameter(query, "cluster").filter(|cluster| *cluster == own.cluster)?;
    parameter(query, "agent").filter(|leader| *leader != own.id.to_string())?;
    Some(parameter(query, "standby").is_some_and(|standby| standby == "true"))
}

fn parameter<'a>(query: &'a str, wanted: &str) -> Option<Cow<'a, str>> {
    let mut parameters = form_urlencoded::parse(query.as_bytes());
    parameters.find_map(|(name, value)| (name == wanted).then_some(value))
}

#[cfg(test)]
mod tests {
    use health::dns::DNS;
    use karmada_runtime::metrics::Registry;
    use uuid::Uuid;

    use super::*;
    use crate::metrics::PeerMetrics;
    use crate::peers::Peer;

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
            ("agent=2&standby=true", None),
            ("cluster=member2&agent=2&standby=true", None),
            ("cluster=member1&agent=2", Some(false)),
            ("cluster=member1&agent=2&standby=false", Some(false)),
            ("cluster=member%31&agent=2&standby=true", Some(true)),
        ];
        for (query, expected) in cases {
            assert_eq!(standby(query, &own), expected, "{query}");
        }
        let ourselves = format!("cluster=member1&agent={}&standby=true", own.id);
        assert_eq!(standby(&ourselves, &own), None);
    }

    fn peer(addresses: &[&str]) -> Peer {
        Peer {
            node: None,
            addresses: addresses.iter().map(ToString::to_string).collect(),
        }
    }

    fn caller(from: &str, to: &str) -> Caller {
        Caller {
            from: from.parse().unwrap(),
            to: to.parse().ok(),
        }
    }

    /// A leader's request counts from an address of the roster, and from this host: any other pod that may reach the
    /// port could keep every agent from campaigning.
    #[test]
    fn strangers_do_not_count() {
        let own = Identity {
            cluster: "member1".to_owned(),
            node: "n1".to_owned(),
            id: Uuid::from_u128(1),
            port: 8080,
        };
        let votes = Votes::from_iter([(&DNS, None)]);
        let metrics = PeerMetrics::register(&mut Registry::default(), &votes);
        let callers = Callers {
            directory: Arc::new(Directory::new(&own, metrics)),
            addresses: Addresses::by_system(),
        };
        // Before there is a list, nobody is on it.
        assert!(!callers.include(caller("10.244.1.7", "10.244.2.7")));
        let list = [
            (
                "n2".to_owned(),
                peer(&["10.244.1.7:8080", "[fd00::7]:8080"]),
            ),
            ("n3".to_owned(), peer(&["agent.example:8080"])),
        ];
        callers.directory.set(list.into());
        for (from, to, expected) in [
            ("10.244.1.7", "10.244.2.7", true),
            ("fd00::7", "fd00::2", true),
            ("10.244.9.9", "10.244.2.7", false),
            ("fd00::9", "fd00::2", false),
            ("127.0.0.1", "127.0.0.1", true),
            ("10.244.2.7", "10.244.2.7", true),
        ] {
            assert_eq!(callers.include(caller(from, to)), expected, "{from}");
        }
    }
}

//! The response body of `GET /v1/observation`: the vote of one agent's node.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use karmada_rules::health::failure::{FailureClass, Server};
use karmada_rules::health::observation::{Failure, Family};
use karmada_rules::health::quorum::Ballot;
use karmada_rules::health::threshold::Vote;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

use super::Identity;

const HEALTHY: &str = "healthy";
const UNHEALTHY: &str = "unhealthy";
const FIRST_SUCCESS: &str = "first_success";
const NO_VOTE: &str = "no_vote";

/// A node's vote as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct VoteDocument {
    /// The cluster it belongs to.
    pub(crate) cluster: String,
    /// The node it votes for.
    pub(crate) node: String,
    /// The identifier of the agent's process, as in the holder of the lease. Absent from agents of older
    /// versions.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "write_identifier",
        deserialize_with = "read_identifier"
    )]
    pub(crate) agent: Option<Uuid>,
    vote: String,
    /// The time of the last change of the vote, by the agent's clock. Informational: no decision uses
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    since: Option<String>,
    /// The failure class of an unhealthy vote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    class: Option<String>,
    /// The server that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    server: Option<String>,
    /// The location of the fault, if direct checks found it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fault: Option<String>,
    /// The family whose queries get no response, of a healthy vote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    family: Option<String>,
}

impl VoteDocument {
    /// Creates the document of a vote that last changed `age` ago.
    pub(super) fn new(own: &Identity, vote: Option<Vote>, age: Duration) -> Self {
        let (word, failure, family) = match vote {
            None => (NO_VOTE, None, None),
            Some(Vote::FirstSuccess) => (FIRST_SUCCESS, None, None),
            Some(Vote::Healthy) => (HEALTHY, None, None),
            Some(Vote::Partial(family)) => (HEALTHY, None, Some(family)),
            Some(Vote::Unhealthy(failure)) => (UNHEALTHY, Some(failure), None),
        };
        Self {
            cluster: own.cluster.clone(),
            node: own.node.clone(),
            agent: Some(own.id),
            vote: word.to_owned(),
            since: since(age),
            class: failure.map(|failure| failure.class.as_str().to_owned()),
            server: failure.map(|failure| Server(failure.server).to_string()),
            fault: failure.and_then(|failure| Some(failure.diagnosis?.to_string())),
            family: family.map(|family: Family| family.to_string()),
        }
    }

    /// Returns the ballot, or `None` if the document does not hold a vote that this version knows.
    pub(super) fn ballot(&self) -> Option<Ballot> {
        let vote = match self.vote.as_str() {
            NO_VOTE => return Some(Ballot::NoVote),
            FIRST_SUCCESS => Vote::FirstSuccess,
            HEALTHY => {
                let family = self.family.as_deref().and_then(|name| name.parse().ok());
                family.map_or(Vote::Healthy, Vote::Partial)
            }
            UNHEALTHY => {
                let Server(server) = self.server.as_deref()?.parse().ok()?;
                // A newer agent may know further classes: its vote counts all the same.
                let class = self.class.as_deref()?.parse();
                let class = class.unwrap_or(FailureClass::Other);
                let mut failure = Failure::new(class, server);
                // A newer agent may know further locations: the vote counts without them.
                failure.diagnosis = self.fault.as_deref().and_then(|fault| fault.parse().ok());
                Vote::Unhealthy(failure)
            }
            _ => return None,
        };
        Some(Ballot::Vote(vote))
    }
}

#[expect(clippy::ref_option, reason = "serde passes a reference to the field")]
fn write_identifier<S: Serializer>(agent: &Option<Uuid>, serializer: S) -> Result<S::Ok, S::Error> {
    match agent {
        Some(agent) => serializer.collect_str(agent),
        None => serializer.serialize_none(),
    }
}

/// Reads an identifier. One of another kind, as a later version may write, is like none.
fn read_identifier<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Uuid>, D::Error> {
    let value = serde_json::Value::deserialize(deserializer)?;
    Ok(value.as_str().and_then(|text| text.parse().ok()))
}

/// Returns the time `age` ago, in whole seconds.
fn since(age: Duration) -> Option<String> {
    let age = SignedDuration::try_from(age).ok()?;
    let since = Timestamp::now().checked_sub(age).ok()?;
    Some(Timestamp::from_second(since.as_second()).ok()?.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use karmada_rules::health::diagnosis::{Diagnosis, Location, Transport};

    fn own() -> Identity {
        Identity {
            cluster: "member1".to_owned(),
            node: "n1".to_owned(),
            id: Uuid::from_u128(1),
            port: 8080,
        }
    }

    fn failure() -> Failure {
        Failure::new(FailureClass::ServFail, "[fd00::a]:53".parse().unwrap())
    }

    #[test]
    fn every_vote_is_read_as_it_was_written() {
        let votes = [
            None,
            Some(Vote::FirstSuccess),
            Some(Vote::Healthy),
            Some(Vote::Partial(Family::Aaaa)),
            Some(Vote::Unhealthy(failure())),
            Some(Vote::Unhealthy(Failure {
                diagnosis: Some(Diagnosis {
                    location: Location::NodeCache,
                    only: Some(Transport::Tcp),
                }),
                ..failure()
            })),
        ];
        for vote in votes {
            let document = VoteDocument::new(&own(), vote, Duration::ZERO);
            let text = serde_json::to_string(&document).unwrap();
            let read: VoteDocument = serde_json::from_str(&text).unwrap();
            assert_eq!(read, document);
            assert_eq!(
                read.ballot(),
                Some(vote.map_or(Ballot::NoVote, Ballot::Vote))
            );
        }
    }

    #[test]
    fn an_unhealthy_vote_has_its_class_server_and_time() {
        let vote = Some(Vote::Unhealthy(failure()));
        let document = VoteDocument::new(&own(), vote, Duration::from_secs(90));
        let json = serde_json::to_value(&document).unwrap();
        assert_eq!(json["vote"], "unhealthy");
        assert_eq!(json["class"], "servfail");
        assert_eq!(json["server"], "fd00::a");
        assert_eq!(json["agent"], own().id.to_string());
        let since: Timestamp = json["since"].as_str().unwrap().parse().unwrap();
        let age = Timestamp::now().duration_since(since).as_secs();
        assert!((90..100).contains(&age), "{age}");
    }

    #[test]
    fn a_document_that_no_agent_writes_has_no_ballot() {
        for text in [
            r#"{"cluster":"c","node":"n","vote":"maybe"}"#,
            r#"{"cluster":"c","node":"n","vote":"unhealthy"}"#,
            r#"{"cluster":"c","node":"n","vote":"unhealthy","class":"timeout","server":"elsewhere"}"#,
        ] {
            let document: VoteDocument = serde_json::from_str(text).unwrap();
            assert_eq!(document.ballot(), None, "{text}");
        }
    }

    /// The node of a newer agent is not silent.
    #[test]
    fn a_class_that_only_a_newer_agent_knows_is_unhealthy_of_class_other() {
        let text = r#"{"cluster":"c","node":"n","vote":"unhealthy","class":"tired","server":"10.0.0.1:53"}"#;
        let document: VoteDocument = serde_json::from_str(text).unwrap();
        let other = Failure::new(FailureClass::Other, "10.0.0.1:53".parse().unwrap());
        let unhealthy = Ballot::Vote(Vote::Unhealthy(other));
        assert_eq!(document.ballot(), Some(unhealthy));
        assert_eq!(other.to_string(), "other from 10.0.0.1");
    }

    #[test]
    fn a_document_without_an_identifier_of_this_kind_is_read() {
        for agent in ["", r#""agent":null,"#, r#""agent":7,"#, r#""agent":"n1","#] {
            let text = format!(r#"{{"cluster":"c","node":"n",{agent}"vote":"healthy"}}"#);
            let document: VoteDocument = serde_json::from_str(&text).unwrap();
            assert_eq!(document.agent, None, "{text}");
            let healthy = Ballot::Vote(Vote::Healthy);
            assert_eq!(document.ballot(), Some(healthy), "{text}");
        }
    }
}

//! The response body of `GET /v1/observation`: the votes of one agent's node.
//!
//! The vote on DNS is at the top. The votes on the other signals are in `signals`, by name. Those on other clusters than that of
//! the agents, which the agents of a gateway have, are in `clusters`, by the cluster and then by the signal.

use std::collections::BTreeMap;
use std::time::Duration;

use health::dns::DNS;
use health::failure::Server;
use health::observation::{Failure, Family, Impairment, Partial, Pods, Symptom};
use health::quorum::Ballot;
use health::resolver::Resolver;
use health::signal::{PerTarget, Signal};
use health::threshold::Vote;
use jiff::{SignedDuration, Timestamp};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use tokio::time::Instant;
use uuid::Uuid;

use super::Identity;

/// The path of the vote document.
pub(crate) const OBSERVATION_PATH: &str = "/v1/observation";

const HEALTHY: &str = "healthy";
const UNHEALTHY: &str = "unhealthy";
const FIRST_SUCCESS: &str = "first_success";
const NO_VOTE: &str = "no_vote";

/// A vote with the moment of its last change.
#[derive(Clone, Copy, Debug)]
pub(super) struct DatedVote {
    pub(super) vote: Option<Vote>,
    pub(super) since: Instant,
}

/// Values by name, `None` for those that cannot be read: they must not spoil the others.
type ByName<T> = BTreeMap<String, Option<T>>;

/// A node's votes as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct VoteDocument {
    /// The cluster it belongs to.
    pub(crate) cluster: String,
    /// The node it votes for.
    pub(crate) node: String,
    /// The identifier of the agent's process, as in the holder of the lease.
    #[serde(
        serialize_with = "write_identifier",
        deserialize_with = "read_identifier"
    )]
    pub(crate) agent: Uuid,
    /// The vote on DNS.
    #[serde(flatten)]
    dns: SignalVote,
    /// The votes on all other signals that the agent runs.
    #[serde(
        default,
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "read_each"
    )]
    signals: ByName<SignalVote>,
    /// The votes on other clusters.
    #[serde(
        default,
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "read_each"
    )]
    clusters: ByName<ClusterVotes>,
}

/// The votes on one other cluster, by signal, as JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
struct ClusterVotes(#[serde(deserialize_with = "read_each")] ByName<SignalVote>);

/// A vote on one signal as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct SignalVote {
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
    /// The resolver whose pods fail, if others do not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    resolver: Option<String>,
    /// The family whose queries get no response, of a healthy vote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    family: Option<String>,
    /// The troubles with lookups in pods, by resolver, of a healthy vote.
    #[serde(
        default,
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "read_each"
    )]
    pods: ByName<PodsLookup>,
}

/// The trouble with lookups by a resolver as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct PodsLookup {
    symptom: String,
    class: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    server: Option<String>,
}

impl PodsLookup {
    fn new(impairment: Impairment) -> Self {
        let failure = impairment.failure;
        Self {
            symptom: impairment.symptom.as_str().to_owned(),
            class: failure.class.as_str().to_owned(),
            server: failure.server.map(|server| Server(server).to_string()),
        }
    }

    fn impairment(&self, signal: &Signal) -> Option<Impairment> {
        let mut symptoms = Symptom::ALL.into_iter();
        let mut failure = Failure::without_server(signal.class(&self.class));
        if let Some(server) = &self.server {
            let Server(server) = server.parse().ok()?;
            failure.server = Some(server);
        }
        Some(Impairment {
            symptom: symptoms.find(|symptom| symptom.as_str() == self.symptom)?,
            failure,
        })
    }
}

impl VoteDocument {
    /// Creates the document of an agent's votes.
    pub(super) fn new(own: &Identity, votes: &PerTarget<DatedVote>) -> Self {
        let mut signals = ByName::new();
        let mut clusters: ByName<ClusterVotes> = ByName::new();
        for (target, vote) in votes.iter().filter(|(target, _)| target.signal != &DNS) {
            let of_cluster = match &target.cluster {
                None => &mut signals,
                Some(cluster) => {
                    let votes = clusters.entry(cluster.to_string()).or_default();
                    &mut votes.get_or_insert_default().0
                }
            };
            let vote = SignalVote::new(vote.vote, vote.since.elapsed());
            of_cluster.insert(target.signal.name.to_owned(), Some(vote));
        }
        let dns = votes.get(&DNS);
        Self {
            cluster: own.cluster.clone(),
            node: own.node.clone(),
            agent: own.id,
            dns: SignalVote::new(
                dns.and_then(|dns| dns.vote),
                dns.map_or(Duration::ZERO, |dns| dns.since.elapsed()),
            ),
            signals,
            clusters,
        }
    }

    /// Returns the ballots on the targets of `own`, or `None` if the document does not hold a vote on DNS
    /// that this version knows: then no agent wrote it.
    pub(super) fn ballots<T>(&self, own: &PerTarget<T>) -> Option<PerTarget<Ballot>> {
        let dns = self.dns.ballot(&DNS)?;
        Some(own.map(|target, _| {
            let signal = target.signal;
            if signal == &DNS {
                return dns;
            }
            let vote = match &target.cluster {
                None => self.signals.get(signal.name),
                Some(cluster) => {
                    let votes = self.clusters.get(&**cluster).and_then(Option::as_ref);
                    match votes.and_then(|votes| votes.0.get(signal.name)) {
                        // It knows no address of the cluster.
                        None => return Ballot::NoVote,
                        vote => vote,
                    }
                }
            };
            let Some(vote) = vote else {
                return Ballot::Absent;
            };
            let ballot = vote.as_ref().and_then(|vote| vote.ballot(signal));
            ballot.unwrap_or(Ballot::NoVote)
        }))
    }
}

impl SignalVote {
    /// Creates the JSON of a vote that last changed `age` ago.
    fn new(vote: Option<Vote>, age: Duration) -> Self {
        let fine = Partial::default();
        let (word, failure, partial) = match vote {
            None => (NO_VOTE, None, fine),
            Some(Vote::FirstSuccess) => (FIRST_SUCCESS, None, fine),
            Some(Vote::Healthy) => (HEALTHY, None, fine),
            Some(Vote::Partial(partial)) => (HEALTHY, None, partial),
            Some(Vote::Unhealthy(failure)) => (UNHEALTHY, Some(failure), fine),
        };
        let pods = partial.pods.iter().map(|(resolver, impairment)| {
            let lookup = PodsLookup::new(impairment);
            (resolver.as_str().to_owned(), Some(lookup))
        });
        Self {
            vote: word.to_owned(),
            since: since(age),
            class: failure.map(|failure| failure.class.as_str().to_owned()),
            server: failure.and_then(|failure| Some(Server(failure.server?).to_string())),
            fault: failure.and_then(|failure| Some(failure.diagnosis?.to_string())),
            resolver: failure.and_then(|failure| Some(failure.resolver?.as_str().to_owned())),
            family: partial.silent.map(|family: Family| family.to_string()),
            pods: pods.collect(),
        }
    }

    /// Returns the trouble that shows though the vote is healthy.
    fn partial(&self, signal: &Signal) -> Partial {
        let mut pods = Pods::default();
        for (resolver, lookup) in &self.pods {
            // A newer agent may know further resolvers and symptoms.
            if let Ok(resolver) = resolver.parse::<Resolver>()
                && let Some(lookup) = lookup
            {
                pods.set(resolver, lookup.impairment(signal));
            }
        }
        Partial {
            silent: self.family.as_deref().and_then(|name| name.parse().ok()),
            pods,
        }
    }

    /// Returns the ballot on `signal`, or `None` if it is not a vote that this version knows.
    fn ballot(&self, signal: &Signal) -> Option<Ballot> {
        let vote = match self.vote.as_str() {
            NO_VOTE => return Some(Ballot::NoVote),
            FIRST_SUCCESS => Vote::FirstSuccess,
            HEALTHY => match self.partial(signal) {
                partial if partial.is_nothing() => Vote::Healthy,
                partial => Vote::Partial(partial),
            },
            UNHEALTHY => {
                // A newer agent may know further classes and locations: its vote counts all the same.
                let mut failure = Failure::without_server(signal.class(self.class.as_deref()?));
                if let Some(server) = self.server.as_deref() {
                    let Server(server) = server.parse().ok()?;
                    failure.server = Some(server);
                }
                failure.diagnosis = self.fault.as_deref().and_then(|fault| fault.parse().ok());
                failure.resolver = self.resolver.as_deref().and_then(|name| name.parse().ok());
                Vote::Unhealthy(failure)
            }
            _ => return None,
        };
        Some(Ballot::Vote(vote))
    }
}

fn write_identifier<S: Serializer>(agent: &Uuid, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(agent)
}

fn read_identifier<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Uuid, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(D::Error::custom)
}

/// Reads values by name. Anything but an object is like none.
fn read_each<'de, D, T>(deserializer: D) -> Result<ByName<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let Value::Object(all) = Value::deserialize(deserializer)? else {
        return Ok(BTreeMap::new());
    };
    let each = all.into_iter();
    let read = each.map(|(name, value)| (name, T::deserialize(value).ok()));
    Ok(read.collect())
}

/// Returns the time `age` ago, in whole seconds.
fn since(age: Duration) -> Option<String> {
    let age = SignedDuration::try_from(age).ok()?;
    let since = Timestamp::now().checked_sub(age).ok()?;
    Some(Timestamp::from_second(since.as_second()).ok()?.to_string())
}

#[cfg(test)]
mod tests;

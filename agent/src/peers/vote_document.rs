//! The response body of `GET /v1/observation`: the votes of one agent's node.
//!
//! The vote on DNS is at the top, where agents of versions with no other signal have it and look for it. The
//! votes on the others are in `signals`, by name. Those on other clusters than that of the agents, which the agents of a
//! gateway have, are in `clusters`, by the cluster and then by the signal.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use karmada_rules::health::dns::DNS;
use karmada_rules::health::failure::Server;
use karmada_rules::health::observation::{Failure, Family, Impairment, Partial, Pods, Symptom};
use karmada_rules::health::quorum::Ballot;
use karmada_rules::health::resolver::Resolver;
use karmada_rules::health::signal::{PerSignal, Signal};
use karmada_rules::health::threshold::Vote;
use serde::de::DeserializeOwned;
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
    /// The identifier of the agent's process, as in the holder of the lease. Absent from agents of older
    /// versions.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "write_identifier",
        deserialize_with = "read_identifier"
    )]
    pub(crate) agent: Option<Uuid>,
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
    /// What is wrong with lookups in pods, by resolver, of a healthy vote.
    #[serde(
        default,
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "read_each"
    )]
    pods: ByName<PodsLookup>,
}

/// What is wrong with lookups by a resolver as JSON.
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
    pub(super) fn new(own: &Identity, votes: &PerSignal<DatedVote>) -> Self {
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
            agent: Some(own.id),
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
    pub(super) fn ballots<T>(&self, own: &PerSignal<T>) -> Option<PerSignal<Ballot>> {
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

    /// Returns what is wrong though the vote is healthy.
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

#[expect(clippy::ref_option, reason = "serde passes a reference to the field")]
fn write_identifier<S: Serializer>(agent: &Option<Uuid>, serializer: S) -> Result<S::Ok, S::Error> {
    match agent {
        Some(agent) => serializer.collect_str(agent),
        None => serializer.serialize_none(),
    }
}

/// Reads an identifier. One of another kind, as a later version may write, is like none.
fn read_identifier<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Uuid>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    Ok(value.as_str().and_then(|text| text.parse().ok()))
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
mod tests {
    use std::sync::Arc;

    use karmada_api::condition::REPORTER_READY;
    use karmada_rules::health::diagnosis::{Diagnosis, Location, Transport};
    use karmada_rules::health::dns::DnsClass;
    use karmada_rules::health::failure::FailureClass;
    use karmada_rules::health::reachability::{REACHABILITY, ReachabilityClass};

    use super::super::client::{LARGEST, LARGEST_ON_OTHERS};
    use super::*;
    use crate::vote::on_dns;

    const AGE: Duration = Duration::from_secs(90);

    fn own() -> Identity {
        Identity {
            cluster: "member1".to_owned(),
            node: "n1".to_owned(),
            id: Uuid::from_u128(1),
            port: 8080,
        }
    }

    fn failure() -> Failure {
        Failure::new(DnsClass::ServFail, "[fd00::a]:53".parse().unwrap())
    }

    /// Returns the document of an agent that runs DNS alone.
    fn document(vote: Option<Vote>) -> VoteDocument {
        VoteDocument::new(&own(), &on_dns(vote).map(|_, vote| dated(*vote)))
    }

    fn dated(vote: Option<Vote>) -> DatedVote {
        DatedVote {
            vote,
            since: Instant::now() - AGE,
        }
    }

    /// Returns the ballot of a document on DNS.
    fn ballot(document: &VoteDocument) -> Option<Ballot> {
        document.ballots(&on_dns(None))?.get(&DNS).copied()
    }

    #[test]
    fn every_vote_is_read_as_it_was_written() {
        let votes = [
            None,
            Some(Vote::FirstSuccess),
            Some(Vote::Healthy),
            Some(Vote::Partial(Partial {
                silent: Some(Family::Aaaa),
                pods: Pods::from([
                    None,
                    Some(Impairment {
                        symptom: Symptom::Fails,
                        failure: failure(),
                    }),
                    Some(Impairment {
                        symptom: Symptom::Waits,
                        failure: Failure::without_server(DnsClass::Timeout),
                    }),
                ]),
            })),
            Some(Vote::Unhealthy(failure())),
            Some(Vote::Unhealthy(Failure {
                diagnosis: Some(Diagnosis {
                    location: Location::NodeCache,
                    only: Some(Transport::Tcp),
                }),
                ..failure()
            })),
            Some(Vote::Unhealthy(Failure {
                resolver: Some(Resolver::Musl),
                ..failure()
            })),
        ];
        for vote in votes {
            let document = document(vote);
            let text = serde_json::to_string(&document).unwrap();
            let read: VoteDocument = serde_json::from_str(&text).unwrap();
            assert_eq!(read, document);
            assert_eq!(
                ballot(&read),
                Some(vote.map_or(Ballot::NoVote, Ballot::Vote))
            );
        }
    }

    #[test]
    fn an_unhealthy_vote_has_its_class_server_and_time() {
        let vote = Some(Vote::Unhealthy(failure()));
        let document = document(vote);
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
            assert_eq!(ballot(&document), None, "{text}");
        }
    }

    /// A newer agent may know resolvers and symptoms that this one does not.
    #[test]
    fn odd_pods_spoil_nothing() {
        for pods in [
            "7",
            r#"{"bionic":{"symptom":"fails","class":"timeout"}}"#,
            r#"{"musl":{"symptom":"sighs","class":"timeout"}}"#,
            r#"{"musl":{"symptom":"fails","class":"timeout","server":"x"}}"#,
            r#"{"musl":7}"#,
        ] {
            let text = format!(r#"{{"cluster":"c","node":"n","vote":"healthy","pods":{pods}}}"#);
            let document: VoteDocument = serde_json::from_str(&text).unwrap();
            let healthy = Ballot::Vote(Vote::Healthy);
            assert_eq!(ballot(&document), Some(healthy), "{text}");
        }
    }

    /// The node of a newer agent is not silent.
    #[test]
    fn a_class_that_only_a_newer_agent_knows_is_unhealthy_of_class_other() {
        let text = r#"{"cluster":"c","node":"n","vote":"unhealthy","class":"tired","server":"10.0.0.1:53"}"#;
        let document: VoteDocument = serde_json::from_str(text).unwrap();
        let other = Failure::new(FailureClass::OTHER, "10.0.0.1:53".parse().unwrap());
        let unhealthy = Ballot::Vote(Vote::Unhealthy(other));
        assert_eq!(ballot(&document), Some(unhealthy));
        assert_eq!(other.to_string(), "other from 10.0.0.1");
    }

    #[test]
    fn a_document_without_an_identifier_of_this_kind_is_read() {
        for agent in ["", r#""agent":null,"#, r#""agent":7,"#, r#""agent":"n1","#] {
            let text = format!(r#"{{"cluster":"c","node":"n",{agent}"vote":"healthy"}}"#);
            let document: VoteDocument = serde_json::from_str(&text).unwrap();
            assert_eq!(document.agent, None, "{text}");
            let healthy = Ballot::Vote(Vote::Healthy);
            assert_eq!(ballot(&document), Some(healthy), "{text}");
        }
    }

    /// The votes of a gateway's agent on as many members as a fleet has are read, also while it reaches none of them.
    #[test]
    fn votes_on_many_members_fit() {
        let failure = Failure::new(
            ReachabilityClass::Unreachable,
            "[2001:db8:1111:2222:3333:4444:5555:6666]:30080"
                .parse()
                .unwrap(),
        );
        let vote = DatedVote {
            vote: Some(Vote::Unhealthy(failure)),
            since: Instant::now(),
        };
        let votes = (0..10_000).flat_map(|n| {
            let name = format!("{n:048}");
            PerSignal::from_iter([(&REACHABILITY, vote)]).about(&Arc::from(&*name))
        });
        let votes: PerSignal<DatedVote> = votes.collect();
        let document = serde_json::to_vec(&VoteDocument::new(&own(), &votes)).unwrap();
        let size = document.len();
        assert!((LARGEST..LARGEST_ON_OTHERS).contains(&size), "{size}");
    }

    /// A second signal.
    static LAN: Signal = Signal {
        name: "lan",
        subject: "LAN",
        metric_prefix: "lan_",
        condition: "LanReady",
        ready_reason: "LanReady",
        failed_reason: "LanFailed",
        reporter: REPORTER_READY,
        works: "it works",
        unobserved: "it is unknown",
        classes: &[FailureClass::new(0, "cut")],
    };

    fn on_both(dns: Option<Vote>, lan: Option<Vote>) -> PerSignal<DatedVote> {
        PerSignal::from_iter([(&DNS, dated(dns)), (&LAN, dated(lan))])
    }

    fn both_ballots(text: &str) -> Option<[Ballot; 2]> {
        let document: VoteDocument = serde_json::from_str(text).unwrap();
        let ballots = document.ballots(&on_both(None, None))?;
        Some([&DNS, &LAN].map(|signal| *ballots.get(signal).unwrap()))
    }

    #[test]
    fn each_signal_has_its_vote() {
        let cut = Vote::Unhealthy(Failure::without_server(FailureClass::new(0, "cut")));
        for (dns, lan) in [
            (Some(Vote::Healthy), Some(cut)),
            (Some(Vote::Unhealthy(failure())), Some(Vote::FirstSuccess)),
            (None, Some(Vote::Healthy)),
            (Some(Vote::Healthy), None),
        ] {
            let document = VoteDocument::new(&own(), &on_both(dns, lan));
            let text = serde_json::to_string(&document).unwrap();
            let expected = [dns, lan].map(|vote| vote.map_or(Ballot::NoVote, Ballot::Vote));
            assert_eq!(both_ballots(&text), Some(expected), "{text}");
        }
    }

    /// The agents of a gateway vote on other clusters, beside whatever they vote of their own.
    #[test]
    fn each_cluster_has_its_vote() {
        let of = |cluster: &str, vote| {
            let signals = PerSignal::from_iter([(&LAN, dated(vote))]);
            signals.about(&Arc::from(cluster)).into_iter()
        };
        let cut = Vote::Unhealthy(Failure::without_server(FailureClass::new(0, "cut")));
        let own = on_both(None, Some(Vote::Healthy)).into_iter();
        let own = own.chain(of("m1", Some(cut))).chain(of("m2", None));
        let votes: PerSignal<DatedVote> = own.collect();
        let text = serde_json::to_string(&VoteDocument::new(&self::own(), &votes)).unwrap();
        let document: VoteDocument = serde_json::from_str(&text).unwrap();
        let known: PerSignal<()> = votes
            .into_iter()
            .map(|(target, _)| target)
            .chain(of("m3", None).map(|(target, _)| target))
            .map(|target| (target, ()))
            .collect();
        let ballots = document.ballots(&known).unwrap();
        let ballots: Vec<Ballot> = ballots.values().copied().collect();
        let expected = [
            Ballot::NoVote,
            Ballot::Vote(Vote::Healthy),
            Ballot::Vote(cut),
            Ballot::NoVote,
            Ballot::NoVote,
        ];
        assert_eq!(ballots, expected, "{text}");
        // A leader that knows no such vote reads the others.
        let expected = [Ballot::NoVote, Ballot::Vote(Vote::Healthy)];
        assert_eq!(both_ballots(&text), Some(expected));
    }

    /// Votes on one cluster that cannot be read spoil no others.
    #[test]
    fn odd_clusters_spoil_nothing() {
        let target = PerSignal::from_iter([(&LAN, ())]).about(&Arc::from("m1"));
        for (clusters, expected) in [
            ("7", Ballot::NoVote),
            (r#"{"m1":7,"m2":{}}"#, Ballot::NoVote),
            (r#"{"m1":{"lan":7}}"#, Ballot::NoVote),
            (r#"{"m1":{"lan":{"vote":"maybe"}}}"#, Ballot::NoVote),
            (
                r#"{"m0":null,"m1":{"lan":{"vote":"healthy"},"new":7}}"#,
                Ballot::Vote(Vote::Healthy),
            ),
        ] {
            let text =
                format!(r#"{{"cluster":"c","node":"n","vote":"no_vote","clusters":{clusters}}}"#);
            let document: VoteDocument = serde_json::from_str(&text).unwrap();
            let ballots = document.ballots(&target).unwrap();
            assert_eq!(ballots.values().collect::<Vec<_>>(), [&expected], "{text}");
        }
    }

    /// A document as agents of the version before write it: they count for DNS alone.
    #[test]
    fn old_agent_votes_on_dns() {
        let text = r#"{"cluster":"member1","node":"n4","agent":"0b1c1e0e-6c0a-4a53-9d0f-8a0d3a0c1f5e",
            "vote":"unhealthy","since":"2026-11-21T10:02:31Z","class":"timeout","server":"10.96.0.10"}"#;
        let timeout = Failure::new(DnsClass::Timeout, "10.96.0.10:53".parse().unwrap());
        let unhealthy = Ballot::Vote(Vote::Unhealthy(timeout));
        assert_eq!(both_ballots(text), Some([unhealthy, Ballot::Absent]));
    }

    /// Agents of the version before read a document so.
    #[test]
    fn old_leader_reads_dns() {
        #[derive(Debug, Deserialize)]
        struct Before {
            cluster: String,
            node: String,
            #[serde(default, deserialize_with = "read_identifier")]
            agent: Option<Uuid>,
            vote: String,
            #[serde(default)]
            since: Option<String>,
            #[serde(default)]
            class: Option<String>,
            #[serde(default)]
            server: Option<String>,
            #[serde(default)]
            fault: Option<String>,
            #[serde(default)]
            family: Option<String>,
        }
        let votes = on_both(Some(Vote::Unhealthy(failure())), Some(Vote::Healthy));
        let text = serde_json::to_string(&VoteDocument::new(&own(), &votes)).unwrap();
        let read: Before = serde_json::from_str(&text).unwrap();
        assert_eq!((read.cluster, read.node), (own().cluster, own().node));
        assert_eq!(
            (read.agent, read.vote.as_str()),
            (Some(own().id), UNHEALTHY)
        );
        assert_eq!(read.class.as_deref(), Some("servfail"));
        assert_eq!(read.server.as_deref(), Some("fd00::a"));
        assert!(read.since.is_some() && read.fault.is_none() && read.family.is_none());
        // An agent that does not run DNS has no vote on it.
        let votes = PerSignal::from_iter([(&LAN, dated(Some(Vote::Healthy)))]);
        let text = serde_json::to_string(&VoteDocument::new(&own(), &votes)).unwrap();
        let read: Before = serde_json::from_str(&text).unwrap();
        assert_eq!(read.vote, NO_VOTE);
    }

    /// An agent of DNS alone writes what the version before wrote.
    #[test]
    fn dns_alone_adds_no_field() {
        let document = serde_json::to_value(document(Some(Vote::Healthy))).unwrap();
        let fields: Vec<_> = document.as_object().unwrap().keys().collect();
        assert_eq!(fields, ["agent", "cluster", "node", "since", "vote"]);
    }

    /// A later version may write anything there.
    #[test]
    fn odd_signals_spoil_nothing() {
        let healthy = Ballot::Vote(Vote::Healthy);
        for (signals, lan) in [
            ("null", Ballot::Absent),
            ("7", Ballot::Absent),
            (r#"{"other":{}}"#, Ballot::Absent),
            (r#"{"lan":7}"#, Ballot::NoVote),
            (r#"{"lan":{}}"#, Ballot::NoVote),
            (r#"{"lan":{"vote":"maybe"}}"#, Ballot::NoVote),
            (r#"{"lan":{"vote":"unhealthy"}}"#, Ballot::NoVote),
            (
                r#"{"lan":{"vote":"unhealthy","class":"cut","server":"x"}}"#,
                Ballot::NoVote,
            ),
            (
                r#"{"lan":{"vote":"unhealthy","class":"new"}}"#,
                Ballot::Vote(Vote::Unhealthy(Failure::without_server(
                    FailureClass::OTHER,
                ))),
            ),
        ] {
            let text =
                format!(r#"{{"cluster":"c","node":"n","vote":"healthy","signals":{signals}}}"#);
            assert_eq!(both_ballots(&text), Some([healthy, lan]), "{signals}");
        }
    }
}

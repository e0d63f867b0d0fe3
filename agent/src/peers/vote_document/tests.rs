use std::sync::Arc;

use health::diagnosis::{Diagnosis, Location, Transport};
use health::dns::DnsClass;
use health::failure::FailureClass;
use health::reachability::{REACHABILITY, ReachabilityClass};
use health::signal::Voters;
use karmada_api::condition::REPORTER_READY;

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

/// Every vote is read as it was written.
#[test]
fn votes_survive_the_wire() {
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

/// An unhealthy vote has its class, its server and its time.
#[test]
fn unhealthy_vote_is_explained() {
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

/// A document that no agent writes is no vote.
#[test]
fn foreign_document_has_no_ballot() {
    for text in [
        r#"{"cluster":"c","node":"n","agent":"00000000-0000-0000-0000-000000000001","vote":"maybe"}"#,
        r#"{"cluster":"c","node":"n","agent":"00000000-0000-0000-0000-000000000001","vote":"unhealthy"}"#,
        r#"{"cluster":"c","node":"n","agent":"00000000-0000-0000-0000-000000000001","vote":"unhealthy","class":"timeout","server":"elsewhere"}"#,
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
        let text = format!(
            r#"{{"cluster":"c","node":"n","agent":"00000000-0000-0000-0000-000000000001","vote":"healthy","pods":{pods}}}"#
        );
        let document: VoteDocument = serde_json::from_str(&text).unwrap();
        let healthy = Ballot::Vote(Vote::Healthy);
        assert_eq!(ballot(&document), Some(healthy), "{text}");
    }
}

/// The node of a newer agent is not silent.
#[test]
fn newer_class_is_other() {
    let text = r#"{"cluster":"c","node":"n","agent":"00000000-0000-0000-0000-000000000001","vote":"unhealthy","class":"tired","server":"10.0.0.1:53"}"#;
    let document: VoteDocument = serde_json::from_str(text).unwrap();
    let other = Failure::new(FailureClass::OTHER, "10.0.0.1:53".parse().unwrap());
    let unhealthy = Ballot::Vote(Vote::Unhealthy(other));
    assert_eq!(ballot(&document), Some(unhealthy));
    assert_eq!(other.to_string(), "other from 10.0.0.1");
}

/// A document that does not say which process wrote it could be ours.
#[test]
fn document_has_an_identifier() {
    for agent in ["", r#""agent":null,"#, r#""agent":7,"#, r#""agent":"n1","#] {
        let text = format!(r#"{{"cluster":"c","node":"n",{agent}"vote":"healthy"}}"#);
        let read = serde_json::from_str::<VoteDocument>(&text);
        assert!(read.is_err(), "{text}");
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
        PerTarget::from_iter([(&REACHABILITY, vote)]).about(&Arc::from(&*name))
    });
    let votes: PerTarget<DatedVote> = votes.collect();
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
    voters: Voters::Nodes,
};

fn on_both(dns: Option<Vote>, lan: Option<Vote>) -> PerTarget<DatedVote> {
    PerTarget::from_iter([(&DNS, dated(dns)), (&LAN, dated(lan))])
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
        let signals = PerTarget::from_iter([(&LAN, dated(vote))]);
        signals.about(&Arc::from(cluster)).into_iter()
    };
    let cut = Vote::Unhealthy(Failure::without_server(FailureClass::new(0, "cut")));
    let own = on_both(None, Some(Vote::Healthy)).into_iter();
    let own = own.chain(of("m1", Some(cut))).chain(of("m2", None));
    let votes: PerTarget<DatedVote> = own.collect();
    let text = serde_json::to_string(&VoteDocument::new(&self::own(), &votes)).unwrap();
    let document: VoteDocument = serde_json::from_str(&text).unwrap();
    let known: PerTarget<()> = votes
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
    let target = PerTarget::from_iter([(&LAN, ())]).about(&Arc::from("m1"));
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
        let text = format!(
            r#"{{"cluster":"c","node":"n","agent":"00000000-0000-0000-0000-000000000001","vote":"no_vote","clusters":{clusters}}}"#
        );
        let document: VoteDocument = serde_json::from_str(&text).unwrap();
        let ballots = document.ballots(&target).unwrap();
        assert_eq!(ballots.values().collect::<Vec<_>>(), [&expected], "{text}");
    }
}

/// An agent of DNS alone writes nothing of other signals.
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
        let text = format!(
            r#"{{"cluster":"c","node":"n","agent":"00000000-0000-0000-0000-000000000001","vote":"healthy","signals":{signals}}}"#
        );
        assert_eq!(both_ballots(&text), Some([healthy, lan]), "{signals}");
    }
}

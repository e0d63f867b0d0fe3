use health::dns::{DNS, DnsClass};
use health::observation::Failure;
use health::signal::Signal;
use health::threshold::Vote;
use karmada_api::condition::{DECLARED_FAILED_REASON, DECLARED_READY_REASON, REPORTER_READY};

use super::*;
use crate::vote::on_dns;

const HEALTHY: Ballot = Ballot::Vote(Vote::Healthy);

fn unhealthy() -> Ballot {
    let server = "10.96.0.10:53".parse().unwrap();
    Ballot::Vote(Vote::Unhealthy(Failure::new(DnsClass::Timeout, server)))
}

/// Returns the ballots of an agent that runs DNS alone.
fn dns(ballot: Ballot) -> PerTarget<Ballot> {
    PerTarget::from_iter([(&DNS, ballot)])
}

/// On a signal that the leader alone probes, its vote is the only one, and those who do not ask are not silent.
#[test]
fn leaders_vote_stands_alone() {
    static ERRORS: Signal = Signal {
        name: "errors",
        subject: "errors",
        metric_prefix: "signal_",
        condition: "ErrorRateLow",
        ready_reason: DECLARED_READY_REASON,
        failed_reason: DECLARED_FAILED_REASON,
        reporter: REPORTER_READY,
        works: "it works",
        unobserved: "it is unknown",
        classes: &[],
        voters: Voters::Leader,
    };
    let mut roster = Roster::new(Arc::new(own()));
    roster.update(&list(&[("n1", Some("n1"), &["10.0.0.1:8080"])]));
    roster.record("n1", claim("n1"), dns(HEALTHY));
    let votes = [(&DNS, Some(Vote::Healthy)), (&ERRORS, Some(Vote::Healthy))];
    let tallies = roster.tallies(&votes.into_iter().collect());
    assert_eq!(tallies.get(&DNS).unwrap().known(), 2);
    let errors = tallies.get(&ERRORS).unwrap();
    assert_eq!((errors.healthy, errors.known()), (1, 1));
}

/// Returns the tally of a leader that runs DNS alone.
fn tally(roster: &Roster, own: Option<Vote>) -> Tally {
    let (_, tally) = roster.tallies(&on_dns(own)).into_iter().next().unwrap();
    tally
}

/// The leader on `n0`.
fn own() -> Identity {
    Identity {
        cluster: "member1".to_owned(),
        node: "n0".to_owned(),
        id: id("n0"),
        port: 8080,
    }
}

/// Returns the identifier of the process on a node.
fn id(node: &str) -> Uuid {
    let number = node.strip_prefix('n').unwrap();
    Uuid::from_u128(number.parse().unwrap())
}

/// Returns the claim of the only agent on a node.
fn claim(node: &str) -> Claim {
    Claim {
        node: node.to_owned(),
        agent: id(node),
    }
}

/// Returns peers by key, with the node that the member's API names and their addresses.
fn list(peers: &[(&str, Option<&str>, &[&str])]) -> PeerList {
    let peers = peers.iter().map(|(key, node, addresses)| {
        let peer = Peer {
            node: node.map(ToOwned::to_owned),
            addresses: addresses.iter().map(ToString::to_string).collect(),
        };
        ((*key).to_owned(), peer)
    });
    peers.collect()
}

fn roster(peers: &[(&str, Option<&str>, &[&str])]) -> Roster {
    let mut roster = Roster::new(Arc::new(own()));
    roster.update(&list(peers));
    roster
}

/// Returns a roster of peers of which only the address is known.
fn addressed(addresses: &[&str]) -> Roster {
    let peers = addresses.iter().map(|address| {
        let peer = Peer {
            node: None,
            addresses: vec![(*address).to_owned()],
        };
        ((*address).to_owned(), peer)
    });
    let mut roster = Roster::new(Arc::new(own()));
    roster.update(&peers.collect());
    roster
}

fn standbys(roster: &mut Roster) -> Vec<String> {
    let requests = roster.requests().into_iter();
    let standbys = requests.filter(|request| request.standby);
    standbys.map(|request| request.peer).collect()
}

#[test]
fn every_node_counts_once_and_our_own_with_our_vote() {
    let mut roster = addressed(&["a", "b", "c", "d"]);
    roster.record("a", claim("n1"), dns(unhealthy()));
    roster.record("b", claim("n1"), dns(HEALTHY));
    roster.record("c", claim("n0"), dns(unhealthy()));
    roster.record_silence("d");
    let counted = tally(&roster, Some(Vote::Healthy));
    assert_eq!(
        (counted.healthy, counted.failing.len(), counted.silent),
        (1, 1, 1)
    );
    assert_eq!(counted.failing.keys().collect::<Vec<_>>(), ["n1"]);
}

#[test]
fn the_node_in_the_api_takes_precedence_over_the_one_an_agent_claims() {
    let mut roster = roster(&[("n1", Some("n1"), &["a"]), ("n2", Some("n2"), &["b"])]);
    roster.record("n1", claim("n2"), dns(unhealthy()));
    roster.record("n2", claim("n2"), dns(HEALTHY));
    let counted = tally(&roster, None);
    assert_eq!((counted.healthy, counted.no_vote), (1, 1));
    assert_eq!(counted.failing.keys().collect::<Vec<_>>(), ["n1"]);
}

#[test]
fn an_agent_that_falls_silent_is_still_known_to_be_ourselves_or_another() {
    let mut roster = addressed(&["a", "b"]);
    roster.record("a", claim("n0"), dns(HEALTHY));
    roster.record("b", claim("n1"), dns(HEALTHY));
    assert_eq!(tally(&roster, None).known(), 2);
    roster.record_silence("a");
    roster.record_silence("b");
    let counted = tally(&roster, None);
    assert_eq!((counted.known(), counted.silent), (2, 1));
}

#[test]
fn one_address_of_a_node_that_responds_is_enough() {
    let mut roster = addressed(&["a", "b"]);
    for address in ["a", "b"] {
        roster.record(address, claim("n1"), dns(HEALTHY));
    }
    roster.record_silence("a");
    let counted = tally(&roster, None);
    assert_eq!((counted.healthy, counted.silent), (1, 0));
}

#[test]
fn an_agent_without_a_request_yet_is_silent() {
    let mut roster = addressed(&["a"]);
    roster.record("a", claim("n1"), dns(HEALTHY));
    let both = list(&[("a", None, &["a"]), ("b", None, &["b"])]);
    roster.update(&both);
    let counted = tally(&roster, None);
    assert_eq!((counted.healthy, counted.silent), (1, 1));
    assert_eq!(roster.silent_nodes().count(), 0);
}

#[test]
fn an_agent_that_leaves_the_list_is_not_counted_and_one_that_moves_keeps_its_ballot() {
    let mut roster = roster(&[("n1", Some("n1"), &["a"]), ("n2", Some("n2"), &["b"])]);
    roster.record("n1", claim("n1"), dns(unhealthy()));
    roster.record("n2", claim("n2"), dns(HEALTHY));
    roster.update(&list(&[("n1", Some("n1"), &["c"])]));
    let counted = tally(&roster, None);
    assert_eq!((counted.known(), counted.failing.len()), (2, 1));
    assert_eq!(roster.requests()[0].address, "c");
}

#[test]
fn the_request_after_silence_goes_to_another_address() {
    let mut roster = roster(&[("n1", Some("n1"), &["a", "b"])]);
    let mut addresses = Vec::new();
    for _ in 0..3 {
        addresses.extend(roster.requests().into_iter().map(|request| request.address));
        roster.record_silence("n1");
    }
    roster.record("n1", claim("n1"), dns(HEALTHY));
    addresses.extend(roster.requests().into_iter().map(|request| request.address));
    assert_eq!(addresses, ["a", "b", "a", "b"]);
}

#[test]
fn two_agents_stand_by_for_as_long_as_they_respond() {
    let mut roster = addressed(&["a", "b", "c", "d"]);
    assert_eq!(standbys(&mut roster), ["a", "b"]);
    for (peer, node) in [("b", "n2"), ("c", "n3"), ("d", "n4")] {
        roster.record(peer, claim(node), dns(HEALTHY));
    }
    roster.record_silence("a");
    assert_eq!(standbys(&mut roster), ["b", "c"]);
    roster.record("a", claim("n1"), dns(HEALTHY));
    assert_eq!(standbys(&mut roster), ["b", "c"]);
    for peer in ["b", "c", "d"] {
        roster.record_silence(peer);
    }
    assert_eq!(standbys(&mut roster), ["a"]);
}

#[test]
fn nobody_stands_by_for_itself() {
    let mut roster = addressed(&["a"]);
    roster.record("a", claim("n0"), dns(HEALTHY));
    assert_eq!(standbys(&mut roster), [""; 0]);
}

/// With one `--host-name` on all nodes, no peer is ourselves: the quorum would be one vote.
#[test]
fn agents_of_one_name_all_count_and_are_reported() {
    let mut roster = addressed(&["a", "b", "c", "d"]);
    assert!(roster.namesakes().is_empty());
    // A peer with our name, two with a common one, and ourselves by another address.
    for (peer, node, agent) in [
        ("a", "n0", 7),
        ("b", "n1", 8),
        ("c", "n1", 9),
        ("d", "n0", 0),
    ] {
        let claim = Claim {
            node: node.to_owned(),
            agent: Uuid::from_u128(agent),
        };
        roster.record(peer, claim, dns(unhealthy()));
    }
    let counted = tally(&roster, Some(Vote::Healthy));
    assert_eq!((counted.known(), counted.healthy), (4, 1));
    let failing: Vec<_> = counted.failing.keys().collect();
    assert_eq!(failing, ["n0 at a", "n1", "n1 at c"]);
    let expected = BTreeMap::from([("n0", vec!["a"]), ("n1", vec!["b", "c"])]);
    assert_eq!(roster.namesakes(), expected);
    // One that falls silent is still known, and no longer reported.
    roster.record_silence("c");
    assert_eq!(tally(&roster, None).silent, 1);
    assert_eq!(roster.namesakes(), BTreeMap::from([("n0", vec!["a"])]));
}

/// As the last one, with a name that the API has, too.
#[test]
fn the_agent_on_the_node_of_our_name_is_ourselves_unless_it_responds_as_another() {
    let mut roster = roster(&[("n0", Some("n0"), &["a"]), ("n1", Some("n1"), &["b"])]);
    roster.record("n1", claim("n1"), dns(HEALTHY));
    assert_eq!(tally(&roster, None).known(), 2);
    roster.record_silence("n0");
    assert_eq!(tally(&roster, None).known(), 2);
    let namesake = Claim {
        node: "n0".to_owned(),
        agent: Uuid::from_u128(7),
    };
    // We run on n1, and another agent on n0 whose name we have.
    roster.record("n1", claim("n0"), dns(HEALTHY));
    roster.record("n0", namesake, dns(unhealthy()));
    let counted = tally(&roster, Some(Vote::Healthy));
    assert_eq!((counted.known(), counted.healthy), (2, 1));
    assert_eq!(counted.failing.keys().collect::<Vec<_>>(), ["n0 at n0"]);
    assert_eq!(roster.namesakes(), BTreeMap::from([("n0", vec!["n0"])]));
}

#[test]
fn the_names_in_the_api_tell_namesakes_apart() {
    let mut roster = roster(&[("n1", Some("n1"), &["a"]), ("n2", Some("n2"), &["b"])]);
    for peer in ["n1", "n2"] {
        let claim = Claim {
            node: "n0".to_owned(),
            agent: id(peer),
        };
        roster.record(peer, claim, dns(unhealthy()));
    }
    let counted = tally(&roster, Some(Vote::Healthy));
    assert_eq!(counted.failing.keys().collect::<Vec<_>>(), ["n1", "n2"]);
    assert_eq!(roster.namesakes().len(), 1);
}

#[test]
fn a_restarted_agent_is_the_same_at_the_same_address() {
    let mut roster = addressed(&["a"]);
    for process in [5, 6] {
        let claim = Claim {
            node: "n1".to_owned(),
            agent: Uuid::from_u128(process),
        };
        roster.record("a", claim, dns(HEALTHY));
    }
    assert_eq!(tally(&roster, None).known(), 2);
    assert!(roster.namesakes().is_empty());
}

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proptest::prelude::*;

use super::*;

const LIMIT: Duration = Duration::from_secs(2);
const QUARTER: Duration = Duration::from_millis(500);
/// The delay of a server's response, unless a test sets another.
const PROMPT: Duration = Duration::from_millis(1);
/// The time in which all responses of a lookup come, one after the other, if each is prompt.
const PROMPTLY: Duration = Duration::from_millis(100);
const FAMILIES: [RecordType; 2] = [RecordType::A, RecordType::AAAA];

/// A server's reaction to a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reply {
    Address,
    Failure(DnsClass),
    Silence,
    CannotSend,
}

impl Reply {
    const NXDOMAIN: Self = Self::Failure(DnsClass::NxDomain);
    const SERVFAIL: Self = Self::Failure(DnsClass::ServFail);
}

/// Servers whose replies to each (candidate, server, family) are given by a function.
struct Scripted {
    replies: Box<dyn Fn(usize, usize, RecordType) -> Reply + Send + Sync>,
    delay: Duration,
    queries: Mutex<Vec<(usize, usize, RecordType)>>,
}

impl DnsClient for Scripted {
    async fn query(
        &self,
        server: SocketAddr,
        _transport: Transport,
        query: Query,
        deadline: Instant,
    ) -> io::Result<Response> {
        let name = query.name.to_string();
        let leg = (
            name.trim_end_matches('.')[1..].parse().unwrap(),
            usize::from(server.port()),
            query.query_type,
        );
        self.queries.lock().unwrap().push(leg);
        let reply = (self.replies)(leg.0, leg.1, leg.2);
        if reply == Reply::Silence {
            sleep_until(deadline).await;
            return Ok(Response::of(DnsClass::Timeout));
        }
        tokio::time::sleep(self.delay).await;
        match reply {
            Reply::Address => Ok(Response::known(query)),
            Reply::CannotSend => Err(io::Error::other("too many open files")),
            Reply::Failure(class) => Ok(Response::of(class)),
            Reply::Silence => unreachable!(),
        }
    }
}

/// The outcome of a lookup of `c0.`, `c1.`, … at servers on ports 0, 1, ….
#[derive(Debug)]
struct Outcome {
    result: Result<Query, ProbeError>,
    took: Duration,
    queries: Vec<(usize, usize, RecordType)>,
}

impl Outcome {
    fn class(&self) -> Option<DnsClass> {
        match &self.result {
            Err(ProbeError::Failed(failure)) => DnsClass::ALL
                .into_iter()
                .find(|class| failure.class == *class),
            _ => None,
        }
    }

    /// The legs in the order in which they were begun.
    fn legs(&self) -> Vec<(usize, usize)> {
        let queries = self.queries.iter();
        queries
            .filter(|(_, _, family)| *family == FAMILIES[0])
            .map(|(candidate, server, _)| (*candidate, *server))
            .collect()
    }
}

async fn slow_lookup(
    candidates: usize,
    servers: usize,
    delay: Duration,
    replies: impl Fn(usize, usize, RecordType) -> Reply + Send + Sync + 'static,
) -> Outcome {
    lookup_of(
        Expected::Addresses(&Right::Any),
        candidates,
        servers,
        delay,
        replies,
    )
    .await
}

async fn lookup_of(
    expected: Expected<'_>,
    candidates: usize,
    servers: usize,
    delay: Duration,
    replies: impl Fn(usize, usize, RecordType) -> Reply + Send + Sync + 'static,
) -> Outcome {
    let names: Vec<_> = (0..candidates)
        .map(|place| Name::from_ascii(format!("c{place}.")).unwrap())
        .collect();
    let servers: Vec<_> = (0..u16::try_from(servers).unwrap())
        .map(|port| SocketAddr::from(([127, 0, 0, 1], port)))
        .collect();
    let client = Scripted {
        replies: Box::new(replies),
        delay,
        queries: Mutex::default(),
    };
    let start = Instant::now();
    let lookup = Lookup {
        client: &client,
        servers: &servers,
        transport: Transport::Udp,
        families: &FAMILIES,
        patience: Duration::ZERO,
        expected,
        start,
        deadline: start + LIMIT,
    };
    let result = lookup.resolve(&names, None).await;
    Outcome {
        result: result
            .map(|found| found.query)
            .map_err(|not_found| not_found.error),
        took: start.elapsed(),
        queries: client.queries.into_inner().unwrap(),
    }
}

async fn lookup(
    candidates: usize,
    servers: usize,
    replies: impl Fn(usize, usize, RecordType) -> Reply + Send + Sync + 'static,
) -> Outcome {
    slow_lookup(candidates, servers, PROMPT, replies).await
}

#[tokio::test(start_paused = true)]
async fn a_failure_of_every_class_is_found_within_the_deadline_with_one_query_per_leg_and_family() {
    for class in DnsClass::ALL {
        for suffixes in [0, 1, 3, 4, 5, 6] {
            for servers in [1, 2, 3] {
                let candidates = suffixes + 1;
                let reply = match class {
                    DnsClass::Timeout => Reply::Silence,
                    class => Reply::Failure(class),
                };
                let outcome = lookup(candidates, servers, move |_, _, _| reply).await;
                let case = format!("{class}, {suffixes} suffixes, {servers} servers");
                assert_eq!(outcome.class(), Some(class), "{case}");
                assert_eq!(outcome.queries.len(), candidates * servers * 2, "{case}");
                if class == DnsClass::Timeout {
                    assert_eq!(outcome.took, LIMIT, "{case}");
                } else {
                    assert!(outcome.took < PROMPTLY, "{case}");
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_healthy_lookup_queries_one_server_for_each_candidate_up_to_the_right_one() {
    for right in 0..4 {
        let outcome = lookup(4, 3, move |candidate, _, _| {
            if candidate == right {
                Reply::Address
            } else {
                Reply::NXDOMAIN
            }
        })
        .await;
        assert!(outcome.result.is_ok());
        let expected: Vec<_> = (0..=right).map(|candidate| (candidate, 0)).collect();
        assert_eq!(outcome.legs(), expected);
        assert_eq!(outcome.queries.len(), 2 * (right + 1));
    }
}

#[tokio::test(start_paused = true)]
async fn an_address_of_either_family_suffices_whatever_becomes_of_the_other() {
    for good in FAMILIES {
        for other in [
            Reply::Failure(DnsClass::NoData),
            Reply::SERVFAIL,
            Reply::Silence,
        ] {
            let outcome = lookup(4, 2, move |_, _, family| {
                if family == good {
                    Reply::Address
                } else {
                    other
                }
            })
            .await;
            assert!(outcome.result.is_ok());
            assert!(outcome.took < PROMPTLY);
            assert_eq!(outcome.queries.len(), 2);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_fails_at_once_is_followed_by_the_next_for_the_same_candidate() {
    let outcome = lookup(3, 2, |candidate, server, _| match (candidate, server) {
        (_, 0) => Reply::SERVFAIL,
        (1, _) => Reply::Address,
        _ => Reply::NXDOMAIN,
    })
    .await;
    assert!(outcome.result.is_ok());
    assert!(outcome.took < PROMPTLY);
    assert_eq!(outcome.legs(), [(0, 0), (0, 1), (1, 0), (1, 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_denies_everything_does_not_hide_one_that_knows_the_name() {
    let outcome = lookup(2, 2, |candidate, server, _| match (candidate, server) {
        (1, 1) => Reply::Address,
        _ => Reply::NXDOMAIN,
    })
    .await;
    assert!(outcome.result.is_ok());
    assert_eq!(outcome.legs(), [(0, 0), (1, 0), (0, 1), (1, 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_holds_up_a_lookup_for_a_quarter_of_the_deadline() {
    for right in 0..6 {
        let outcome = lookup(6, 2, move |candidate, server, _| {
            match (candidate, server) {
                (_, 0) => Reply::Silence,
                (candidate, _) if candidate == right => Reply::Address,
                _ => Reply::NXDOMAIN,
            }
        })
        .await;
        assert!(outcome.result.is_ok());
        assert!(
            outcome.took < 2 * QUARTER + PROMPTLY,
            "{right}: {:?}",
            outcome.took
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_candidate_that_hangs_upstream_holds_up_a_lookup_for_a_quarter_of_the_deadline() {
    let outcome = lookup(4, 1, |candidate, _, _| match candidate {
        0 => Reply::Silence,
        1 => Reply::Address,
        _ => Reply::NXDOMAIN,
    })
    .await;
    assert!(outcome.result.is_ok());
    assert!(outcome.took < QUARTER + PROMPTLY);
    assert_eq!(outcome.legs(), [(0, 0), (1, 0)]);
}

#[tokio::test(start_paused = true)]
async fn a_slow_response_counts_although_other_legs_have_begun() {
    let late = QUARTER + Duration::from_millis(100);
    let outcome = slow_lookup(2, 1, late, |candidate, _, _| match candidate {
        0 => Reply::Address,
        _ => Reply::NXDOMAIN,
    })
    .await;
    assert!(outcome.result.is_ok());
    assert!(outcome.took < late + PROMPTLY);
}

#[tokio::test(start_paused = true)]
async fn the_worst_failure_is_returned_with_the_server_it_came_from() {
    let outcome = lookup(2, 3, |_, server, _| match server {
        0 => Reply::NXDOMAIN,
        1 => Reply::SERVFAIL,
        _ => Reply::Failure(DnsClass::Refused),
    })
    .await;
    let Err(ProbeError::Failed(failure)) = outcome.result else {
        panic!("no server had an address");
    };
    assert_eq!(failure.to_string(), "servfail from 127.0.0.1:1");
}

#[tokio::test(start_paused = true)]
async fn a_query_that_cannot_be_sent_leaves_a_failing_lookup_without_result() {
    let outcome = lookup(2, 2, |candidate, server, _| match (candidate, server) {
        (1, 1) => Reply::CannotSend,
        _ => Reply::SERVFAIL,
    })
    .await;
    assert!(matches!(outcome.result, Err(ProbeError::Internal(_))));
}

#[tokio::test(start_paused = true)]
async fn only_expected_addresses_count_when_there_are_any() {
    let right = IpAddr::from([10, 96, 0, 1]);
    let other = IpAddr::from([10, 96, 0, 2]);
    let cases: [(&[IpAddr], _); 4] = [
        (&[], None),
        (&[right], None),
        (&[other, right], None),
        (&[other], Some(DnsClass::Mismatch)),
    ];
    for (expected, class) in cases {
        let right = if expected.is_empty() {
            Right::Any
        } else {
            Right::Given(expected)
        };
        let outcome = lookup_of(Expected::Addresses(&right), 2, 2, PROMPT, |_, _, _| {
            Reply::Address
        })
        .await;
        assert_eq!(outcome.class(), class, "{expected:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_denies_a_name_that_must_not_exist_is_alive() {
    let nodata = Reply::Failure(DnsClass::NoData);
    let cases = [
        (Reply::NXDOMAIN, None),
        (nodata, None),
        (Reply::SERVFAIL, Some(DnsClass::ServFail)),
        (Reply::Address, Some(DnsClass::Mismatch)),
        (Reply::Silence, Some(DnsClass::Timeout)),
    ];
    for (reply, class) in cases {
        let outcome = lookup_of(Expected::Denial, 1, 2, PROMPT, move |_, _, _| reply).await;
        assert_eq!(outcome.class(), class, "{reply:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_server_there_is_no_result() {
    let outcome = lookup(2, 0, |_, _, _| Reply::Address).await;
    assert!(matches!(outcome.result, Err(ProbeError::Internal(_))));
}

/// Returns whether a short lookup of three candidates at a server with this response was complete, and
/// the number of its queries.
async fn short_lookup(delay: Duration, class: DnsClass) -> (bool, usize) {
    let names = ["c0.", "c1.", "c2."].map(|name| Name::from_ascii(name).unwrap());
    let servers = [SocketAddr::from(([127, 0, 0, 1], 0))];
    let client = Scripted {
        replies: Box::new(move |_, _, _| Reply::Failure(class)),
        delay,
        queries: Mutex::default(),
    };
    let start = Instant::now();
    let lookup = Lookup {
        client: &client,
        servers: &servers,
        transport: Transport::Udp,
        families: &FAMILIES,
        patience: Duration::ZERO,
        expected: Expected::Addresses(&Right::Any),
        start,
        deadline: start + LIMIT,
    };
    let first = Query::query(names[0].clone(), FAMILIES[0]);
    let not_found = lookup.resolve(&names, Some(&first)).await.unwrap_err();
    (
        not_found.complete,
        client.queries.into_inner().unwrap().len(),
    )
}

#[tokio::test(start_paused = true)]
async fn a_short_lookup_is_a_full_one_only_if_a_response_leaves_time_for_the_others() {
    let all = 3 * FAMILIES.len();
    let denied = DnsClass::NxDomain;
    assert_eq!(short_lookup(PROMPT, denied).await, (true, all));
    assert_eq!(short_lookup(QUARTER / 2, denied).await, (true, all));
    // The others may still be answered, but nobody can rely on it.
    assert_eq!(short_lookup(QUARTER + PROMPT, denied).await, (false, all));
    let slow = Duration::from_millis(1400);
    assert_eq!(short_lookup(slow, denied).await, (false, all));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_begun_at_the_deadline_or_after_it() {
    for class in [DnsClass::Mismatch, DnsClass::NxDomain] {
        for late in [Duration::ZERO, QUARTER] {
            assert_eq!(short_lookup(LIMIT + late, class).await, (false, 1));
        }
    }
}

/// Returns the number of legs a pod would begin if every response comes at once, and `true` if it
/// gets an address.
fn as_a_pod(
    candidates: usize,
    servers: usize,
    reply: impl Fn(usize, usize) -> Reply,
) -> (usize, bool) {
    let mut legs = 0;
    for candidate in 0..candidates {
        for server in 0..servers {
            legs += 1;
            match reply(candidate, server) {
                Reply::Address => return (legs, true),
                Reply::NXDOMAIN => break,
                _ => {}
            }
        }
    }
    (legs, false)
}

type Replies = Arc<HashMap<(usize, usize), Reply>>;

fn replies(silence: bool) -> impl Strategy<Value = (usize, usize, Replies)> {
    let weight = u32::from(silence) * 3;
    let reply = prop_oneof![
        2 => Just(Reply::Address),
        3 => Just(Reply::NXDOMAIN),
        3 => Just(Reply::SERVFAIL),
        weight => Just(Reply::Silence),
    ];
    (1_usize..8, 1_usize..4).prop_flat_map(move |(candidates, servers)| {
        let all = prop::collection::vec(reply.clone(), candidates * servers);
        all.prop_map(move |all| {
            let places = (0..candidates).flat_map(|c| (0..servers).map(move |s| (c, s)));
            (candidates, servers, Arc::new(places.zip(all).collect()))
        })
    })
}

fn play(candidates: usize, servers: usize, replies: &Replies) -> Outcome {
    let replies = Arc::clone(replies);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(lookup(candidates, servers, move |c, s, _| replies[&(c, s)]))
}

proptest! {
    #[test]
    fn whatever_is_silent_an_address_anywhere_is_found_with_a_quarter_to_spare((candidates, servers, replies) in replies(true)) {
        let outcome = play(candidates, servers, &replies);
        if replies.values().any(|reply| *reply == Reply::Address) {
            prop_assert!(outcome.result.is_ok());
            prop_assert!(outcome.took < 3 * QUARTER + PROMPTLY);
        } else {
            prop_assert!(outcome.class().is_some());
            prop_assert!(outcome.took <= LIMIT);
        }
    }

    #[test]
    fn no_leg_is_begun_twice((candidates, servers, replies) in replies(true)) {
        let mut queries = play(candidates, servers, &replies).queries;
        let all = queries.len();
        queries.sort_unstable();
        queries.dedup();
        prop_assert_eq!(queries.len(), all);
    }

    #[test]
    fn when_every_response_comes_at_once_no_more_queries_are_sent_than_by_a_pod((candidates, servers, replies) in replies(false)) {
        let (legs, resolved) = as_a_pod(candidates, servers, |c, s| replies[&(c, s)]);
        let outcome = play(candidates, servers, &replies);
        if resolved {
            prop_assert!(outcome.result.is_ok());
            prop_assert_eq!(outcome.legs().len(), legs);
        }
    }
}

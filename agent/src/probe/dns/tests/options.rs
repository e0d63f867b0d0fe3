//! The optional queries, on the wire.

use health::diagnosis::Diagnosis;

use super::*;

/// Returns the behaviour of a server that does not respond over one transport.
fn deaf(over: Transport) -> Behaviour {
    Behaviour::new(move |received| {
        if received.transport == over {
            Response::Close
        } else {
            knows(&received.query)
        }
    })
}

fn knows(query: &Query) -> Response {
    if query.name.to_string() == KUBERNETES {
        Response::Loopback
    } else {
        code(ResponseCode::NXDomain)
    }
}

#[tokio::test]
async fn only_expected_addresses_are_right() {
    let server = knowing(KUBERNETES).await;
    let loopback: [IpAddr; 2] = ["127.0.0.1".parse().unwrap(), "::1".parse().unwrap()];
    let cases: [(&[IpAddr], _); 2] = [
        (&loopback, Observation::Success),
        (
            &[[10, 96, 0, 1].into()],
            failed(DnsClass::Mismatch, server.address()),
        ),
    ];
    for (expected, observation) in cases {
        let mut place = Location::new(POD, &[server.address()], AMPLE);
        place.probe.expected = expected.to_vec();
        assert_eq!(place.observe().await, observation);
    }
}

/// Returns the names that exist on no server and were queried.
fn uncached(server: &DnsServer) -> BTreeSet<String> {
    let asked = server.received().into_iter();
    let names = asked.map(|asked| asked.query.name.to_string());
    names.filter(|name| name.starts_with("probe-")).collect()
}

#[tokio::test]
async fn an_uncached_query_is_one_more_beside_the_namespaces_and_never_the_same() {
    let server = knowing(KUBERNETES).await;
    let mut place = Location::new(POD, &[server.address()], AMPLE);
    place.probe.uncached = true;
    let mut prober = place.prober(DirectServers::default());
    for round in 1..=4 {
        assert_eq!(prober.round().await.observation(), Observation::Success);
        let names = uncached(&server);
        assert_eq!(names.len(), round);
        // Not below the first domain, where autopath would lead out of the cluster.
        assert!(
            names
                .iter()
                .all(|name| { name.ends_with(".svc.cluster.local.") && !name.contains(".shop.") })
        );
    }
    let asked = server.received();
    let besides = asked
        .iter()
        .filter(|asked| asked.query.name.to_string().starts_with("probe-"));
    assert_eq!(besides.count(), 4);
}

#[tokio::test]
async fn an_uncached_query_for_an_absolute_name_is_beside_it() {
    let server = knowing(KUBERNETES).await;
    let mut place = Location::new(POD, &[server.address()], AMPLE);
    place.probe.uncached = true;
    place.probe.names = vec![Name::from_ascii(KUBERNETES).unwrap()];
    assert_eq!(place.observe().await, Observation::Success);
    let names = uncached(&server);
    assert!(
        names
            .iter()
            .all(|name| name.ends_with(".svc.cluster.local.") && !name.contains(".default.")),
        "{names:?}"
    );
    assert_eq!(names.len(), 1);
}

#[tokio::test]
async fn a_cache_that_answers_for_a_dead_server_fails_the_uncached_query() {
    let cases = [
        (code(ResponseCode::ServFail), Some(DnsClass::ServFail)),
        (code(ResponseCode::Refused), Some(DnsClass::Refused)),
        (Response::Loopback, Some(DnsClass::Mismatch)),
        (Response::Drop, Some(DnsClass::Timeout)),
        (Response::NoData, None),
        (code(ResponseCode::NXDomain), None),
    ];
    for (reply, class) in cases {
        let uncached = reply.clone();
        let behaviour = Behaviour::new(move |received| {
            if received.query.name.to_string().starts_with("probe-") {
                uncached.clone()
            } else {
                knows(&received.query)
            }
        });
        let server = serving(behaviour).await;
        let limit = if matches!(reply, Response::Drop) {
            SHORT
        } else {
            AMPLE
        };
        let mut place = Location::new(POD, &[server.address()], limit);
        assert_eq!(place.observe().await, Observation::Success, "{reply:?}");
        place.probe.uncached = true;
        let expected = class.map_or(Observation::Success, |class| {
            failed(class, server.address())
        });
        assert_eq!(place.observe().await, expected, "{reply:?}");
    }
}

#[tokio::test]
async fn each_direct_check_sends_the_known_query_once_over_each_transport() {
    let server = knowing(KUBERNETES).await;
    let service = knowing(KUBERNETES).await;
    let pods = [knowing(KUBERNETES).await, knowing(KUBERNETES).await];
    let place = Location::new(POD, &[server.address()], AMPLE);
    let mut prober = place.prober(DirectServers {
        service: Some(service.address()),
        pods: pods.iter().map(DnsServer::address).collect(),
    });
    // Before a name has resolved, the checks send all that a pod would.
    assert_eq!(prober.round().await.diagnosis, None);
    for direct in [&service, &pods[0], &pods[1]] {
        let before = [direct.count(Transport::Udp), direct.count(Transport::Tcp)];
        assert_eq!(prober.round().await.diagnosis, None);
        let after = [direct.count(Transport::Udp), direct.count(Transport::Tcp)];
        assert_eq!(after, before.map(|count| count + 1));
    }
}

#[tokio::test]
async fn a_failure_shows_where_the_fault_is() {
    let dead = serving(Response::Drop).await;
    let good = knowing(KUBERNETES).await;
    let other = knowing(KUBERNETES).await;
    let cases = [
        (&good, vec![&good, &other], "node cache"),
        (&dead, vec![&good, &other], "Service path"),
    ];
    for (service, pods, expected) in cases {
        let cache = serving(Response::Drop).await;
        let place = Location::new(POD, &[cache.address()], SHORT);
        let mut prober = place.prober(DirectServers {
            service: Some(service.address()),
            pods: pods.iter().map(|pod| pod.address()).collect(),
        });
        let Observation::Failed(failure) = prober.round().await.observation() else {
            panic!("the cache does not answer");
        };
        let expected = format!("timeout from {} ({expected})", cache.address());
        assert_eq!(failure.to_string(), expected);
    }
}

#[tokio::test]
async fn a_dead_pod_is_named_although_the_names_resolve() {
    let server = knowing(KUBERNETES).await;
    let good = knowing(KUBERNETES).await;
    let closed = CLOSED;
    let no_tcp = serving(deaf(Transport::Tcp)).await;
    let no_udp = serving(deaf(Transport::Udp)).await;
    let cases = [
        (closed, Location::new(POD, &[server.address()], AMPLE), None),
        (
            no_tcp.address(),
            Location::new(POD, &[server.address()], AMPLE),
            Some(Transport::Tcp),
        ),
        (
            no_udp.address(),
            Location::new(POD, &[server.address()], SHORT),
            Some(Transport::Udp),
        ),
    ];
    for (bad, at, only) in cases {
        let round = at
            .prober(DirectServers {
                service: None,
                pods: vec![good.address(), bad],
            })
            .round()
            .await;
        assert_eq!(round.observation(), Observation::Success);
        let location = health::diagnosis::Location::Pod(bad);
        assert_eq!(round.diagnosis, Some(Diagnosis { location, only }));
    }
}

/// Returns the behaviour of a cluster whose zone is empty, or not, beside a company's wildcard.
fn beside_a_wildcard(cluster_is_dead: bool) -> Behaviour {
    Behaviour::new(move |received| {
        let name = received.query.name.to_string();
        if name.ends_with(".apps.example.net.") {
            Response::Ipv4([203, 0, 113, 7].into())
        } else if cluster_is_dead {
            code(ResponseCode::NXDomain)
        } else {
            knows(&received.query)
        }
    })
}

/// A wildcard in a fourth domain of the search list does not stand for a dead cluster.
#[tokio::test]
async fn wildcard_is_no_cluster() {
    let conf = "search shop.svc.cluster.local svc.cluster.local cluster.local apps.example.net\n\
                options ndots:5\n";
    for (dead, expected) in [(true, Some(DnsClass::Mismatch)), (false, None)] {
        let server = serving(beside_a_wildcard(dead)).await;
        let place = Location::new(conf, &[server.address()], AMPLE);
        let expected = expected.map_or(Observation::Success, |class| {
            failed(class, server.address())
        });
        assert_eq!(place.observe().await, expected);
    }
    // Before the cluster's own domains it gives every pod a stranger's address.
    let conf =
        "search apps.example.net shop.svc.cluster.local svc.cluster.local\noptions ndots:5\n";
    let server = serving(beside_a_wildcard(false)).await;
    let place = Location::new(conf, &[server.address()], AMPLE);
    let stranger = failed(DnsClass::Mismatch, server.address());
    assert_eq!(place.observe().await, stranger);
}

/// With REFUSED for the first domain, pods with Go resolve and all others do not.
#[tokio::test]
async fn judge_is_chosen() {
    use health::resolver::Resolver;
    let server = serving(Behaviour::new(|received| {
        if received.query.name.to_string().contains(".shop.") {
            code(ResponseCode::Refused)
        } else {
            knows(&received.query)
        }
    }))
    .await;
    let [glibc, musl, go] = Resolver::ALL;
    let mut place = Location::new(POD, &[server.address()], AMPLE);
    for (each, named) in [
        (vec![], None),
        (vec![go], None),
        (vec![musl, go], Some(musl)),
        (vec![glibc], Some(glibc)),
    ] {
        place.probe.judge.each = each;
        let failure = Failure {
            resolver: named,
            ..Failure::new(DnsClass::Refused, server.address())
        };
        let expected = named.map_or(Observation::Success, |_| Observation::Failed(failure));
        assert_eq!(place.observe().await, expected, "{named:?}");
    }
    // A trouble that lasts is told.
    place.probe.judge.each.clear();
    let mut prober = place.prober(DirectServers::default());
    for _ in 0..2 {
        assert_eq!(prober.round().await.observation(), Observation::Success);
    }
    let Observation::Partial(partial) = prober.round().await.observation() else {
        panic!("nothing is told");
    };
    let refused = format!("refused from {}", health::failure::Server(server.address()));
    assert_eq!(
        partial.sentences(),
        [format!("pods with glibc and musl fail ({refused})")]
    );
}

fn answers_aaaa(aaaa: Response) -> Behaviour {
    Behaviour::new(move |received| match knows(&received.query) {
        Response::Loopback if received.query.query_type == RecordType::AAAA => aaaa.clone(),
        response => response,
    })
}

/// A server comes back for A alone. The round that finds it asks for little, and is judged all the same.
#[tokio::test]
async fn first_round_back_is_judged() {
    use health::resolver::Resolver;
    for each in [vec![], vec![Resolver::Musl]] {
        let server = serving(answers_aaaa(Response::NoData)).await;
        let mut place = Location::new(POD, &[server.address()], SHORT);
        place.probe.judge.each = each;
        let mut prober = place.prober(DirectServers::default());
        assert_eq!(prober.round().await.observation(), Observation::Success);
        server.set(Response::Drop);
        let timeout = Failure::new(DnsClass::Timeout, server.address());
        assert_eq!(
            prober.round().await.observation(),
            Observation::Failed(timeout)
        );
        server.set(answers_aaaa(Response::Drop));
        let resolver = place.probe.judge.each.first().copied();
        let judged = Failure {
            resolver,
            ..timeout
        };
        let expected = resolver.map_or(Observation::Success, |_| Observation::Failed(judged));
        assert_eq!(prober.round().await.observation(), expected);
    }
}

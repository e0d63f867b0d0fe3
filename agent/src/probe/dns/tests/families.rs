//! A family whose queries get no response, while the other has addresses.

use health::observation::{Family, Symptom};

use super::*;

/// Returns the behaviour of a server that knows this name, but does not respond to queries of a type.
fn silent_on(query_type: RecordType) -> Behaviour {
    Behaviour::new(move |received| {
        let query = &received.query;
        match query.name.to_string().as_str() {
            KUBERNETES if query.query_type == query_type => Response::Drop,
            KUBERNETES => Response::Loopback,
            _ => code(ResponseCode::NXDomain),
        }
    })
}

#[tokio::test]
async fn a_family_that_never_answers_is_observed_until_it_does() {
    for (dropped, family) in [(RecordType::AAAA, Family::Aaaa), (RecordType::A, Family::A)] {
        let server = serving(silent_on(dropped)).await;
        let place = Location::new(POD, &[server.address()], SHORT);
        let mut prober = place.prober(DirectServers::default());
        let mut observations = Vec::new();
        for _ in 0..5 {
            observations.push(prober.round().await.observation());
        }
        let resolved = Observation::Success;
        let (before, after) = observations.split_at(3);
        assert_eq!(before, [resolved; 3]);
        for observation in after {
            let Observation::Partial(partial) = observation else {
                panic!("{observation:?}");
            };
            assert_eq!(partial.silent, Some(family));
            let symptoms: Vec<_> = partial.pods.iter().collect();
            let symptoms = symptoms.iter().map(|(_, impairment)| impairment.symptom);
            // glibc asks for A first, and gets no further.
            let glibc = if family == Family::A {
                Symptom::Fails
            } else {
                Symptom::Waits
            };
            let expected = [glibc, Symptom::Fails, Symptom::Waits];
            assert_eq!(symptoms.collect::<Vec<_>>(), expected);
        }
        // NODATA is a response: a resolver need not wait.
        server.set(Behaviour::new(move |received| {
            match received.query.name.to_string().as_str() {
                KUBERNETES if received.query.query_type == dropped => Response::NoData,
                KUBERNETES => Response::Loopback,
                _ => code(ResponseCode::NXDomain),
            }
        }));
        assert_eq!(prober.round().await.observation(), resolved);
    }
}

#[tokio::test]
async fn rounds_without_a_family_are_counted() {
    let server = serving(silent_on(RecordType::AAAA)).await;
    let place = Location::new(POD, &[server.address()], SHORT);
    let mut registry = Registry::default();
    let metrics = DnsMetrics::register(&mut registry);
    let (_changed, direct) = watch::channel(DirectServers::default());
    let random = Rng::with_seed(7);
    let mut prober = Prober::new(place.probe.clone(), Network, direct, metrics, random);
    for _ in 0..3 {
        prober.round().await;
    }
    let shown = registry.encode().unwrap();
    // The first round does not wait.
    for line in [
        "probe_silent_family_total{family=\"AAAA\"} 2",
        "probe_silent_family_total{family=\"A\"} 0",
    ] {
        assert!(shown.lines().any(|shown| shown == line), "{shown}");
    }
}

#[tokio::test]
async fn the_first_success_after_a_failure_does_not_wait_for_the_other_family() {
    let server = serving(silent_on(RecordType::AAAA)).await;
    let place = Location::new(POD, &[server.address()], AMPLE);
    let mut prober = place.prober(DirectServers::default());
    for _ in 0..2 {
        server.set(code(ResponseCode::ServFail));
        let down = failed(DnsClass::ServFail, server.address());
        assert_eq!(prober.round().await.observation(), down);
        server.set(silent_on(RecordType::AAAA));
        let started = Instant::now();
        assert_eq!(prober.round().await.observation(), Observation::Success);
        assert!(started.elapsed() < AMPLE / 2);
    }
}

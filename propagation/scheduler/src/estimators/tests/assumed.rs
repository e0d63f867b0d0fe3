//! The messages to estimators about Pods that no node has yet.

use karmada_api::ResourceBinding;
use propagation_rules::schedule::Assumptions;

use super::*;
use crate::estimators::question::Question;

/// Returns the assumptions once a binding with this spec has got its clusters.
fn placed(spec: &ResourceBindingSpec) -> Assumed {
    let [before, after] = [None, spec.clusters.clone()].map(|clusters| ResourceBinding {
        spec: ResourceBindingSpec {
            clusters,
            ..spec.clone()
        },
        ..ResourceBinding::default()
    });
    let now = jiff::Timestamp::UNIX_EPOCH;
    let assumptions = Assumptions::default();
    let assumptions = assumptions.after((&before).into(), (&after).into(), now);
    let mut assumed = Assumed::default();
    assumed.extend(assumptions.workloads());
    assumed
}

fn web() -> ResourceBindingSpec {
    let mut web = spec();
    web.resource.namespace = Some("shop".to_owned());
    web.clusters = from_value(json!([{ "name": "m1", "replicas": 2 }])).unwrap();
    web
}

/// Returns the bytes of the message about [`web`].
fn web_bytes() -> Vec<u8> {
    let component = [
        bytes(0x0a, b"web"),
        bytes(0x12, &needs_bytes()),
        vec![0x18, 2],
    ];
    let workload = [bytes(0x0a, b"shop"), bytes(0x12, &component.concat())];
    workload.concat()
}

/// Both questions have the assumed workloads, in the fields and bytes of Karmada 1.18. Case I98.
#[test]
fn request_has_karmadas_bytes() {
    let assumed = placed(&web());
    let in_m1 = assumed.workloads_in("m1");
    let asked = Question::about(&spec(), "m1", in_m1).unwrap();
    let Some(Question::Replicas(request)) = asked else {
        panic!("{asked:?}");
    };
    let written = prost::Message::encode_to_vec(&request);
    assert!(
        written.ends_with(&bytes(0x1a, &web_bytes())),
        "{written:x?}"
    );

    let mut job = spec();
    job.components = from_value(json!([{ "name": "manager", "replicas": 1 }])).unwrap();
    let asked = Question::about(&job, "m1", in_m1).unwrap();
    let Some(Question::Sets(request)) = asked else {
        panic!("{asked:?}");
    };
    let written = prost::Message::encode_to_vec(&request);
    assert!(
        written.ends_with(&bytes(0x22, &web_bytes())),
        "{written:x?}"
    );
}

/// Each estimator hears of its own cluster only, and of a workload whose needs cannot be read that it is there. Case I98.
#[tokio::test]
async fn clusters_hear_of_their_own() {
    let server = Server::start(Script::Pods(9)).await;
    let stage = Stage::new(&[], &[("m1", server.port), ("m2", server.port)]).await;
    let mut odd = web();
    odd.replica_requirements = Some(json!({ "resourceRequest": [] }));
    let assumed = placed(&odd);
    let clusters = ["m1", "m2"].map(cluster);
    let clusters: Vec<_> = clusters.iter().collect();
    let asking = spec();
    let asked = stage.estimators.ask(&asking, &clusters, Some(&assumed));
    assert_eq!(asked.await, estimates([("m1", 7), ("m2", 9)]));
    let without = stage.estimators.ask(&asking, &clusters, None);
    assert_eq!(without.await, estimates([("m1", 9), ("m2", 9)]));
}

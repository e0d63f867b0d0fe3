//! Questions about Pods that differ.

use super::*;
use crate::estimators::question::Question;

/// Returns the binding of a job with a manager and as many workers, on these clusters.
fn job(workers: i32, clusters: &Value) -> ResourceBindingSpec {
    from_value(json!({
        "resource": {
            "apiVersion": "flink.apache.org/v1beta1", "kind": "FlinkDeployment", "name": "words", "namespace": "shop",
        },
        "components": [
            { "name": "manager", "replicas": 1 },
            { "name": "worker", "replicas": workers, "replicaRequirements": requirements() },
        ],
        "clusters": clusters,
    }))
    .unwrap()
}

/// The questions are the bytes that Karmada's generated code writes. Case I86.
#[test]
fn request_has_karmadas_bytes() {
    let question = Question::about(&job(2, &json!([])), "m1", &[]).unwrap();
    let Some(Question::Sets(request)) = question else {
        panic!("{question:?}");
    };
    let worker = [
        bytes(0x0a, b"worker"),
        bytes(0x12, &needs_bytes()),
        vec![0x18, 2],
    ];
    let manager = [bytes(0x0a, b"manager"), vec![0x18, 1]];
    let expected = [
        bytes(0x0a, b"m1"),
        bytes(0x12, &manager.concat()),
        bytes(0x12, &worker.concat()),
        bytes(0x1a, b"shop"),
    ];
    assert_eq!(prost::Message::encode_to_vec(&request), expected.concat());
}

/// A cluster that has the job is asked about the sets that it lacks, and one that lacks none is not asked. Case I88.
#[tokio::test]
async fn only_what_lacks_is_asked() {
    let server = Server::start(Script::Room(3)).await;
    let stage = Stage::new(&[], &[("m1", server.port), ("m2", server.port)]).await;
    let has = |workers: i32| json!([{ "name": "manager", "replicas": 1 }, { "name": "worker", "replicas": workers }]);
    let at = |workers| json!([{ "name": "m1", "components": has(workers) }]);
    let asked = async |clusters: Value| {
        let spec = job(5, &clusters);
        stage.ask_about(&spec, &["m1", "m2"]).await;
        let asked = server.asked_for_sets();
        let mut about: BTreeMap<_, _> = asked
            .into_iter()
            .map(|request| {
                let parts = request.components.into_iter();
                let parts: Vec<_> = parts.map(|part| (part.name, part.replicas)).collect();
                (request.cluster, parts)
            })
            .collect();
        assert_eq!(about.remove("m2").unwrap().len(), 2);
        about.remove("m1")
    };
    assert_eq!(asked(at(5)).await, None);
    assert_eq!(asked(json!([{ "name": "m1" }])).await, None);
    let two_more = vec![("worker".to_owned(), 2)];
    assert_eq!(asked(at(3)).await, Some(two_more));
    assert!(server.asked().is_empty());
    assert_eq!(
        stage.ask_about(&job(1, &json!([])), &["m1"]).await,
        estimates([("m1", 3)])
    );
}

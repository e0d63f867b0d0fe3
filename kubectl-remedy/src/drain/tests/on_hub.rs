//! Drains on a hub, of which the placement-controller is the test.

use fleet_api::definitions;
use fleet_api::names::{IS_LATEST, PARENT_PLACEMENT, POLICY_INDEX};

use super::*;

const CLUSTERS: &str = "/apis/cluster.kubernetes-fleet.io/v1beta1/memberclusters";
const MEMBER: &str = "/apis/cluster.kubernetes-fleet.io/v1beta1/memberclusters/m1";
const API: &str = "/apis/placement.kubernetes-fleet.io/v1beta1";
const EVICTIONS: &str =
    "/apis/placement.kubernetes-fleet.io/v1beta1/clusterresourceplacementevictions";
const REMEDIES: &str = "/apis/remedy.karmada.io/v1alpha1/remedies";
const INGRESSES: &str = "/apis/networking.karmada.io/v1alpha1/multiclusteringresses";

/// Creates a hub with two members and a placement in the first, of this policy.
async fn hub(policy: &Value) -> Stage {
    let api = TestApi::with_kinds(definitions());
    let now = json!(Timestamp::from_second(Timestamp::now().as_second()).unwrap());
    let conditions = ["Joined", "Healthy"].map(|kind| {
        json!({ "type": kind, "status": "True", "reason": "r", "message": "", "lastTransitionTime": now })
    });
    for name in ["m1", "m2"] {
        let agent = json!({ "type": "MemberAgent", "conditions": conditions,
            "lastReceivedHeartbeat": now });
        api.create(&json!({
            "apiVersion": "cluster.kubernetes-fleet.io/v1beta1", "kind": "MemberCluster",
            "metadata": { "name": name },
            "spec": { "identity": { "kind": "User", "name": name },
                "taints": [{ "key": "gpu", "effect": "NoSchedule" }] },
            "status": { "agentStatus": [agent], "conditions": [] },
        }))
        .await;
    }
    let labels = json!({ PARENT_PLACEMENT: "shop", IS_LATEST: "true", POLICY_INDEX: "0" });
    let object = |kind: &str, name: &str, spec: Value| {
        json!({ "apiVersion": "placement.kubernetes-fleet.io/v1beta1", "kind": kind,
            "metadata": { "name": name, "labels": labels }, "spec": spec })
    };
    let selectors = json!([{ "group": "", "version": "v1", "kind": "Namespace", "name": "shop" }]);
    for new in [
        object(
            "ClusterResourcePlacement",
            "shop",
            json!({ "resourceSelectors": selectors, "policy": policy }),
        ),
        object(
            "ClusterSchedulingPolicySnapshot",
            "shop-0",
            json!({ "policy": policy, "policyHash": "" }),
        ),
        object(
            "ClusterResourceBinding",
            "shop-m1",
            json!({ "state": "Bound", "targetCluster": "m1", "resourceSnapshotName": "shop-0-snapshot",
                "schedulingPolicySnapshotName": "shop-0",
                "clusterDecision": { "clusterName": "m1", "selected": true, "reason": "r" } }),
        ),
    ] {
        api.create(&new).await;
    }
    Stage { api }
}

/// Returns the policy of a placement that has one cluster, and may have either.
fn either() -> Value {
    let tolerated = json!([{ "key": "gpu", "operator": "Exists" }]);
    json!({ "placementType": "PickN", "numberOfClusters": 1, "tolerations": tolerated })
}

/// Stands for the placement-controller: once there is an eviction, the placement leaves.
async fn evict(api: TestApi) {
    while api.get(EVICTIONS).await["items"]
        .as_array()
        .unwrap()
        .is_empty()
    {
        sleep(Duration::from_millis(100)).await;
    }
    let binding = format!("{API}/clusterresourcebindings/shop-m1");
    api.send("DELETE", &binding, &Value::Null).await;
}

/// A placement is evicted, and the writes of the drain go; the taints of others stay. Case T24.
#[tokio::test(start_paused = true)]
async fn evicted_placement_leaves() {
    let stage = hub(&either()).await;
    tokio::spawn(evict(stage.api.clone()));
    let answer = stage.drain("m1 --workloads --wait=10m").await.unwrap();
    assert_eq!(answer, Answer::Yes);
    let taints = stage.api.get(MEMBER).await["spec"]["taints"].clone();
    let ours = json!({ "key": "remedy.karmada-rs.io/drain", "effect": "NoSchedule" });
    assert_eq!(taints[1], ours);
    let made = stage.api.get(EVICTIONS).await["items"].clone();
    let spec = json!({ "placementName": "shop", "clusterName": "m1" });
    assert_eq!(made[0]["spec"], spec);

    assert_eq!(stage.uncordon("m1").await.unwrap(), Answer::Yes);
    let taints = stage.api.get(MEMBER).await["spec"]["taints"].clone();
    assert_eq!(taints, json!([{ "key": "gpu", "effect": "NoSchedule" }]));
    assert_eq!(stage.api.get(EVICTIONS).await["items"], json!([]));
    assert_eq!(stage.uncordon("m1").await.unwrap(), Answer::No);
}

/// Returns everything that a drain writes on a hub: taints, Remedies and evictions.
async fn written(stage: &Stage) -> [Value; 3] {
    let of = async |path: &str, pointer: &str| {
        let found = stage.api.get(path).await;
        found.pointer(pointer).cloned().unwrap_or_default()
    };
    [
        of(MEMBER, "/spec/taints").await,
        of(REMEDIES, "/items").await,
        of(EVICTIONS, "/items").await,
    ]
}

/// A drain that dies before any of its writes is taken back. Case T22.
#[tokio::test(start_paused = true)]
async fn any_write_may_be_last() {
    let start = async || {
        let stage = hub(&either()).await;
        stage.api.install(karmada_api::crd::installed().unwrap());
        tokio::spawn(evict(stage.api.clone()));
        stage
    };
    let writes = dies_at_each_write(start, written).await;
    // A taint, a Remedy and an eviction.
    assert_eq!(writes, 3);
}

/// While an ingress of the hub sends requests to the cluster, no placement has to leave. Case T24.
#[tokio::test(start_paused = true)]
async fn placements_wait_for_traffic() {
    let stage = hub(&either()).await;
    stage.api.install(karmada_api::crd::installed().unwrap());
    stage.api.create_namespace(NAMESPACE).await;
    stage.api.create(&ingress("shop", &["web"], None)).await;
    let served = json!([{ "name": "web", "clusters": ["m1", "m2"] }]);
    for (blocked, expected, evictions) in [(vec![], Answer::No, 0), (vec!["m1"], Answer::Yes, 1)] {
        let status = json!({ "serviceLocations": served, "trafficBlockClusters": blocked });
        let (path, status) = (format!("{INGRESS}/status"), json!({ "status": status }));
        stage.api.send("PATCH", &path, &status).await;
        let answer = stage.drain("m1 --workloads").await.unwrap();
        assert_eq!(answer, expected);
        let made = stage.api.get(EVICTIONS).await["items"].clone();
        assert_eq!(made.as_array().unwrap().len(), evictions);
    }
}

/// Ingresses that the user may not read may send requests to the cluster: nothing is evicted, unless the hub has no such kind. Case T24.
#[tokio::test(start_paused = true)]
async fn unreadable_traffic_is_not_none() {
    for (path, is_served, evictions) in [
        (REMEDIES, true, 0),
        (INGRESSES, true, 0),
        (REMEDIES, false, 1),
    ] {
        let stage = hub(&either()).await;
        if is_served {
            stage.api.install(karmada_api::crd::installed().unwrap());
        }
        let call = format!("GET {path}");
        stage.api.refuse(&call, 403, "Forbidden", "no right");
        let answer = stage.drain("m1 --workloads").await;
        assert_eq!(answer.is_err(), is_served, "{path}");
        let made = stage.api.get(EVICTIONS).await["items"].clone();
        assert_eq!(made.as_array().unwrap().len(), evictions, "{path}");
    }
}

/// A placement that finds no other cluster is not evicted, and one that names its clusters stays. Case T23.
#[tokio::test(start_paused = true)]
async fn placement_without_place_refuses() {
    let untolerated = json!({ "placementType": "PickN", "numberOfClusters": 1 });
    let stage = hub(&untolerated).await;
    let answer = stage.drain("m1 --workloads").await.unwrap();
    assert_eq!(answer, Answer::No);
    assert_eq!(stage.api.writes(), [""; 0]);

    let fixed = json!({ "placementType": "PickFixed", "clusterNames": ["m1"] });
    let stage = hub(&fixed).await;
    let answer = stage.drain("m1 --workloads --wait=1m").await.unwrap();
    assert_eq!(answer, Answer::Yes);
    assert_eq!(
        stage.api.writes(),
        [format!("PATCH {MEMBER}")],
        "nothing is evicted"
    );
}

/// The only other place of the placements of a drained cluster is not drained, too. Case T23.
#[tokio::test(start_paused = true)]
async fn last_place_is_kept() {
    let stage = hub(&either()).await;
    let first = stage.drain("m1 --workloads").await.unwrap();
    assert_eq!(first, Answer::Yes);
    stage.api.writes();
    for second in ["m2 --workloads", "m2"] {
        let answer = stage.drain(second).await.unwrap();
        assert_eq!(answer, Answer::No, "{second}");
    }
    assert_eq!(stage.api.writes(), [""; 0]);
}

/// Of two who drain these two at once, not both succeed, and who does not has written nothing that stays. Case T23.
#[tokio::test(start_paused = true)]
async fn rivals_do_not_both_drain() {
    for rival in ["m2 --workloads", "m2"] {
        let stage = hub(&either()).await;
        let (one, other) = tokio::join!(stage.drain("m1 --workloads"), stage.drain(rival));
        let succeeded = [one.unwrap(), other.unwrap()].map(|answer| answer == Answer::Yes);
        assert_ne!(succeeded, [true, true], "{rival}");
        for (name, succeeded) in ["m1", "m2"].into_iter().zip(succeeded) {
            let member = stage.api.get(&format!("{CLUSTERS}/{name}")).await;
            let taints = member["spec"]["taints"].as_array().unwrap();
            assert_eq!(taints.len(), 1 + usize::from(succeeded), "{name}, {rival}");
        }
    }
}

use karmada_api::condition::DNS_READY;
use proptest::prelude::*;
use serde_json::{Value, from_value, json};

use super::*;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn cluster(status: &str, actions: &[&str]) -> Cluster {
    from_value(json!({
        "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster",
        "metadata": { "name": "m1" }, "spec": {},
        "status": {
            "conditions": [{ "type": DNS_READY, "status": status, "reason": "R", "message": "",
                "lastTransitionTime": "2026-11-20T08:00:00Z" }],
            "remedyActions": actions,
        },
    }))
    .unwrap()
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "callers write the spec in place"
)]
fn remedy(spec: Value) -> Remedy {
    from_value(json!({
        "apiVersion": "remedy.karmada.io/v1alpha1", "kind": "Remedy",
        "metadata": { "name": "r" }, "spec": spec,
    }))
    .unwrap()
}

fn on_dns(action: &str) -> Remedy {
    let requirement =
        json!({ "conditionType": DNS_READY, "operator": "Equal", "conditionStatus": "False" });
    let matches = json!([{ "clusterConditionMatch": requirement }]);
    remedy(json!({ "decisionMatches": matches, "actions": [action] }))
}

fn maintenance() -> Remedy {
    remedy(json!({ "actions": [TRAFFIC_CONTROL] }))
}

/// A number or a percentage is read and anything else is not.
#[test]
fn number_or_percentage_is_read() {
    assert_eq!("3".parse(), Ok(MaxBlocked::Count(3)));
    assert_eq!("0".parse(), Ok(MaxBlocked::Count(0)));
    assert_eq!("50%".parse(), Ok(MaxBlocked::Percent(50)));
    for bad in ["", "%", "101%", "-1", "1.5", "50 %", "half"] {
        assert!(bad.parse::<MaxBlocked>().is_err(), "{bad}");
    }
}

/// A percentage is of all clusters and rounded down.
#[test]
fn percentage_is_rounded_down() {
    let limits = [(0, 0), (1, 0), (3, 1), (4, 2), (1000, 500)];
    for (clusters, limit) in limits {
        assert_eq!(MaxBlocked::Percent(50).limit(clusters), limit);
        assert_eq!(MaxBlocked::Percent(100).limit(clusters), clusters);
        assert_eq!(MaxBlocked::Count(2).limit(clusters), 2);
    }
}

/// A condition claims a block and a remedy without matches does not.
#[test]
fn only_conditions_claim_blocks() {
    let failed = cluster("False", &[]);
    let blocked = cluster("False", &[TRAFFIC_CONTROL]);
    let dns = on_dns(TRAFFIC_CONTROL);
    assert_eq!(Claim::of(&failed, [&dns], NOW), Claim::Wanted);
    assert_eq!(Claim::of(&blocked, [&dns], NOW), Claim::Held);
    assert_eq!(Claim::of(&cluster("True", &[]), [&dns], NOW), Claim::None);
    assert_eq!(Claim::of(&failed, [&on_dns("Alert")], NOW), Claim::None);
    for cluster in [&failed, &blocked] {
        assert_eq!(Claim::of(cluster, [&dns, &maintenance()], NOW), Claim::None);
        assert_eq!(Claim::of(cluster, [&maintenance(), &dns], NOW), Claim::None);
    }
    // It is blocked until the action is cleared, whoever requires it.
    assert_eq!(Claim::of(&blocked, [], NOW), Claim::Held);
}

fn leaving(actions: &[&str]) -> Cluster {
    let mut leaving = cluster("False", actions);
    let time = from_value(json!("2026-11-20T08:00:00Z")).unwrap();
    leaving.metadata.deletion_timestamp = Some(time);
    leaving
}

/// A cluster that is leaving claims nothing new.
#[test]
fn leaving_cluster_claims_nothing() {
    let dns = on_dns(TRAFFIC_CONTROL);
    assert_eq!(Claim::of(&leaving(&[]), [&dns], NOW), Claim::None);
    assert_eq!(
        Claim::of(&leaving(&[TRAFFIC_CONTROL]), [&dns], NOW),
        Claim::Held
    );
}

/// One that is freed makes room for the next by name.
#[test]
fn freed_place_goes_by_name() {
    let mut bound = BlockBound::new(MaxBlocked::Percent(50));
    bound.set_clusters(4);
    for name in ["d", "b", "a"] {
        bound.replace(name, Claim::Wanted);
    }
    assert_eq!(bound.admit(), ["a", "b"]);
    assert_eq!(
        bound.over("d").unwrap().to_string(),
        "TrafficControl not set: --max-blocked-clusters=50% lets conditions block 2 of 4 clusters, and that many are blocked"
    );
    assert_eq!(bound.over("a"), None);
    bound.replace("a", Claim::Held);
    // It recovered, but its block is still set.
    bound.replace("a", Claim::Held);
    assert!(bound.admit().is_empty());
    bound.replace("a", Claim::None);
    assert_eq!(bound.admit(), ["d"]);
    assert_eq!(bound.over("d"), None);
}

/// A cluster that joins raises a percentage and one that leaves lifts no block.
#[test]
fn leaving_cluster_lifts_no_block() {
    let mut bound = BlockBound::new(MaxBlocked::Percent(50));
    bound.set_clusters(2);
    for name in ["a", "b"] {
        bound.replace(name, Claim::Wanted);
    }
    assert_eq!(bound.admit(), ["a"]);
    bound.set_clusters(4);
    assert_eq!(bound.admit(), ["b"]);
    bound.replace("a", Claim::Held);
    bound.replace("b", Claim::Held);
    bound.set_clusters(2);
    assert!(bound.admit().is_empty());
    assert_eq!((bound.over("a"), bound.over("b")), (None, None));
}

proptest! {
    /// A new term decides from the objects and not from their order.
    /// A new term decides from the objects alone, whatever happened before.
    #[test]
    fn order_does_not_matter(
        claims in prop::collection::btree_map("[a-h]", prop::sample::select(vec![Claim::None, Claim::Wanted, Claim::Held]), 0..8),
        history in prop::collection::vec(("[a-h]", any::<bool>()), 0..20),
        max in 0_usize..8,
    ) {
        let fresh = |names: &mut dyn Iterator<Item = &String>| {
            let mut bound = BlockBound::new(MaxBlocked::Count(max));
            for name in names {
                bound.replace(name, claims[name]);
            }
            bound
        };
        let mut forward = fresh(&mut claims.keys());
        let mut backward = fresh(&mut claims.keys().rev());
        let mut lived = BlockBound::new(MaxBlocked::Count(max));
        for (name, wanted) in &history {
            lived.replace(name, if *wanted { Claim::Wanted } else { Claim::None });
            lived.admit();
        }
        for name in ["a", "b", "c", "d", "e", "f", "g", "h"] {
            lived.replace(name, claims.get(name).copied().unwrap_or(Claim::None));
        }
        for bound in [&mut forward, &mut backward, &mut lived] {
            bound.restart();
            bound.admit();
        }
        prop_assert_eq!(&forward.waiting, &backward.waiting);
        prop_assert_eq!(&forward.waiting, &lived.waiting);
        let set = claims.values().filter(|claim| **claim == Claim::Held).count();
        prop_assert!(forward.held.len() <= max.max(set));
        for (name, claim) in &claims {
            prop_assert!(*claim != Claim::Held || forward.over(name).is_none());
        }
    }
}

use objects::Metadata;

use super::room::{running, spread};
use super::*;

/// Returns the clusters and the condition of a binding that was decided on these answers of estimators.
fn decided(binding: &Value, clusters: &[ClusterView], answers: &[(&str, i32)]) -> (Value, Value) {
    let answers = answers.iter();
    let estimates = answers.map(|(name, replicas)| ((*name).to_owned(), *replicas));
    let estimates = estimates.collect();
    let pass = Pass {
        estimates: Some(&estimates),
        ..pass()
    };
    let mut after = binding.clone();
    apply_plan(&mut after, &planned(binding, clusters, pass), false);
    let reason = after["status"]["conditions"][0]["reason"].clone();
    (after["spec"]["clusters"].clone(), reason)
}

/// The least room that the status and the estimator leave counts; who does not know, or was not asked, takes none. Case
/// I95.
#[test]
fn least_room_counts() {
    let clusters = with_room(&[10, 10]);
    let binding = unscheduled(&by_room(false), 6);
    for (answers, expected) in [
        (&[][..], Ok([3, 3])),
        (&[("member1", 2), ("member2", 4)], Ok([2, 4])),
        (&[("member1", 0), ("member2", 6)], Ok([0, 6])),
        (&[("member1", -1), ("member2", 5)], Ok([4, 2])),
        (&[("member1", 99)], Ok([3, 3])),
        (&[("member1", 2), ("member2", 3)], Err("Unschedulable")),
    ] {
        let (clusters, reason) = decided(&binding, &clusters, answers);
        match expected {
            Ok(replicas) => {
                assert_eq!(clusters, running(&replicas), "{answers:?}");
                assert_eq!(reason, "Success");
            }
            Err(expected) => assert_eq!(reason, expected),
        }
    }
}

/// Running replicas need no room, whatever an estimator says. Case I95.
#[test]
fn what_runs_stays() {
    let clusters = with_room(&[10, 10]);
    let mut binding = settled(unscheduled(&by_room(false), 6), &clusters);
    binding["spec"]["replicas"] = json!(7);
    binding["metadata"]["generation"] = json!(9);
    let answers = [("member1", 0), ("member2", 1)];
    let (clusters, _) = decided(&binding, &clusters, &answers);
    assert_eq!(clusters, running(&[3, 4]));
}

fn asked(binding: &Value, clusters: &[ClusterView]) -> Vec<String> {
    let binding: ResourceBinding = from_value(binding.clone()).unwrap();
    let clusters: Vec<_> = clusters.iter().collect();
    let fleet = KnownClusters {
        clusters: &clusters,
        complete: true,
    };
    let asked = clusters_to_ask(&scheduler(), (&binding).into(), fleet, pass());
    let names = asked
        .iter()
        .map(|cluster| cluster.metadata.name().to_owned());
    names.collect::<Vec<_>>()
}

/// Estimators are asked of clusters that fit, while their room decides something. Case I95.
#[test]
fn only_what_matters_is_asked() {
    let mut clusters = with_room(&[10, 10, 10]);
    clusters[2].spec.taints =
        from_value(json!([{ "key": "full", "effect": "NoSchedule" }])).unwrap();
    let both = ["member1", "member2"];
    let by_cluster = spread(None, (1, 1));
    for (placement, replicas, expected) in [
        (by_room(false), 6, &both[..]),
        (by_room(true), 6, &both),
        (by_cluster, 6, &both),
        (by_room(false), 0, &[]),
        (json!({}), 6, &[]),
        (divided(&json!({})), 6, &[]),
    ] {
        let new = unscheduled(&placement, replicas);
        assert_eq!(asked(&new, &clusters), expected, "{placement}");
        let settled = settled(new, &clusters);
        assert_eq!(
            asked(&settled, &clusters),
            Vec::<String>::new(),
            "{placement}"
        );
    }
}

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, from_value, json};

use super::*;

fn placement(policy: &Value) -> Placement {
    from_value(json!({ "metadata": { "name": "shop" }, "spec": { "policy": policy } })).unwrap()
}

/// Returns a binding on a cluster, with the status of its conditions.
fn binding(cluster: &str, state: &str, conditions: &[(&str, &str)]) -> Binding {
    let conditions = conditions.iter().map(|(kind, status)| {
        json!({ "type": kind, "status": status, "reason": "Told", "observedGeneration": 2 })
    });
    let conditions: Vec<_> = conditions.collect();
    from_value(json!({
        "metadata": { "name": cluster, "uid": format!("uid-{cluster}"), "generation": 2 },
        "spec": { "targetCluster": cluster, "state": state },
        "status": { "conditions": conditions },
    }))
    .unwrap()
}

fn serving(cluster: &str) -> Binding {
    binding(
        cluster,
        "Bound",
        &[("Applied", "True"), ("Available", "True")],
    )
}

fn deleted(mut binding: Binding) -> Binding {
    binding.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
    binding
}

fn eviction(annotations: &Value) -> ClusterResourcePlacementEviction {
    from_value(
        json!({ "metadata": { "name": "e", "generation": 1, "annotations": annotations },
        "spec": { "placementName": "shop", "clusterName": "a" } }),
    )
    .unwrap()
}

fn budget(spec: &Value) -> ClusterResourcePlacementDisruptionBudget {
    from_value(json!({ "metadata": { "name": "shop" }, "spec": spec })).unwrap()
}

/// Returns the conditions that an eviction from the cluster `a` has then.
fn outcome(
    placement: Option<&Placement>,
    bindings: &[Binding],
    budget: Option<&ClusterResourcePlacementDisruptionBudget>,
) -> String {
    let eviction = eviction(&json!({}));
    let verdict = judge(&EvictionFacts {
        eviction: &eviction,
        placement,
        bindings,
        budget,
    });
    let told = told(&eviction, &verdict, Timestamp::UNIX_EPOCH);
    let last = told.last().unwrap();
    format!("{} {}: {}", last.type_, last.status, last.message)
}

/// A request that makes no sense is never executed, whatever comes later.
#[test]
fn senseless_eviction_is_invalid() {
    let pick_all = placement(&json!(null));
    let mut leaving = pick_all.clone();
    leaving.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
    let fixed = placement(&json!({ "placementType": "PickFixed", "clusterNames": ["a"] }));
    let there = [serving("a")];
    let twice = [serving("a"), serving("a")];
    for (placement, bindings, expected) in [
        (
            None,
            &there[..],
            "Failed to find ClusterResourcePlacement targeted by eviction",
        ),
        (
            Some(&leaving),
            &there[..],
            "Found deleting ClusterResourcePlacement targeted by eviction",
        ),
        (
            Some(&fixed),
            &there[..],
            "Found ClusterResourcePlacement with PickFixed placement type targeted by eviction",
        ),
        (
            Some(&pick_all),
            &[],
            "Failed to find scheduler decision for placement in cluster targeted by eviction",
        ),
        (
            Some(&pick_all),
            &twice[..],
            "Found more than one scheduler decision for placement in cluster targeted by eviction",
        ),
    ] {
        let expected = format!("Valid False: {expected}");
        assert_eq!(outcome(placement, bindings, None), expected);
    }
}

/// Without a budget any binding goes, and with one a binding that serves nobody.
#[test]
fn binding_decides_without_a_budget() {
    let pick_all = placement(&json!(null));
    let strict = budget(&json!({ "minAvailable": 9 }));
    let mut unscheduled = binding("a", "Unscheduled", &[]);
    let annotations = json!({ PREVIOUS_STATE: "Bound" });
    unscheduled.metadata.annotations = from_value(annotations).unwrap();
    // It serves the version before the Works were written.
    let mut unanswered = binding("a", "Bound", &[("Applied", "False")]);
    let status = unanswered.status.as_mut().unwrap();
    status.conditions[0].reason = APPLY_IN_PROGRESS.to_owned();
    for (binding, without, with) in [
        (unanswered, NO_BUDGET, "blocked by specified"),
        (deleted(serving("a")), BEING_REMOVED, BEING_REMOVED),
        (binding("a", "Scheduled", &[]), NOTHING_THERE, NOTHING_THERE),
        (
            binding("a", "Unscheduled", &[]),
            NOTHING_THERE,
            NOTHING_THERE,
        ),
        (
            binding("a", "Bound", &[("Applied", "False")]),
            HAS_FAILED,
            HAS_FAILED,
        ),
        (
            binding("a", "Bound", &[("DiffReported", "True")]),
            HAS_FAILED,
            HAS_FAILED,
        ),
        (serving("a"), NO_BUDGET, "blocked by specified"),
        (unscheduled, NO_BUDGET, "blocked by specified"),
    ] {
        let bindings = [binding];
        for (budget, expected) in [(None, without), (Some(&strict), with)] {
            let outcome = outcome(Some(&pick_all), &bindings, budget);
            assert!(outcome.contains(expected), "{outcome}, not {expected}");
        }
    }
}

/// A budget is kept: of four clusters, two of which are available, or three.
#[test]
fn budget_is_kept() {
    let pick_all = placement(&json!({ "placementType": "PickAll" }));
    let pick_four = placement(&json!({ "placementType": "PickN", "numberOfClusters": 4 }));
    let most = |bound: Value| budget(&json!({ "maxUnavailable": bound }));
    let least = |bound: Value| budget(&json!({ "minAvailable": bound }));
    let broken = |cluster| binding(cluster, "Bound", &[("Applied", "True")]);
    let two = [serving("a"), serving("b"), broken("c"), broken("d")];
    let three = [serving("a"), serving("b"), serving("c"), broken("d")];
    for (placement, budget, of_two, of_three) in [
        (&pick_four, most(json!(0)), false, false),
        (&pick_four, most(json!(2)), false, true),
        (&pick_four, most(json!("26%")), false, true),
        (&pick_four, most(json!("25%")), false, false),
        (&pick_four, most(json!(3)), true, true),
        (&pick_four, least(json!(0)), true, true),
        (&pick_four, least(json!(2)), false, true),
        (&pick_four, least(json!("50%")), false, true),
        (&pick_four, least(json!("51%")), false, false),
        (&pick_four, budget(&json!({})), false, false),
        (&pick_all, least(json!(2)), false, true),
    ] {
        for (bindings, available, allowed) in [(&two, 2, of_two), (&three, 3, of_three)] {
            let word = if allowed { "allowed" } else { "blocked" };
            let status = if allowed { "True" } else { "False" };
            let expected = format!(
                "Executed {status}: Eviction is {word} by specified ClusterResourcePlacementDisruptionBudget, availablePlacements: {available}, totalPlacements: 4"
            );
            let found = outcome(Some(placement), bindings, Some(&budget));
            assert_eq!(found, expected, "{:?}", budget.spec);
        }
    }
    for bad in [most(json!(1)), most(json!("50%")), least(json!("50%"))] {
        let found = outcome(Some(&pick_all), &three, Some(&bad));
        assert_eq!(found, format!("Executed False: {BAD_BUDGET}"));
    }
    let odd = outcome(Some(&pick_four), &three, Some(&most(json!("many"))));
    assert_eq!(odd, format!("Executed False: {BAD_BUDGET}"));
}

/// A program that died after it deleted the binding does not have its successor in the same cluster deleted, too.
#[test]
fn noted_binding_is_evicted_once() {
    let placement = placement(&json!(null));
    let eviction = eviction(&json!({ EVICTED_BINDING: "uid-a" }));
    let mut next = serving("a");
    next.metadata.uid = Some("uid-next".to_owned());
    for (bindings, is_over) in [
        (vec![serving("a")], false),
        (vec![deleted(serving("a"))], true),
        (vec![deleted(serving("a")), next.clone()], true),
        (vec![next], true),
        (vec![], true),
    ] {
        let verdict = judge(&EvictionFacts {
            eviction: &eviction,
            placement: Some(&placement),
            bindings: &bindings,
            budget: None,
        });
        assert_eq!(verdict == Verdict::Leaving, is_over, "{verdict:?}");
    }
}

/// A decision stays.
#[test]
fn decision_is_final() {
    for (conditions, expected) in [
        (json!([]), false),
        (json!([{ "type": "Valid", "status": "True" }]), false),
        (json!([{ "type": "Valid", "status": "False" }]), true),
        (json!([{ "type": "Executed", "status": "False" }]), true),
        (json!([{ "type": "Executed", "status": "True" }]), true),
    ] {
        let mut eviction = eviction(&json!({}));
        eviction.status = from_value(json!({ "conditions": conditions })).unwrap();
        assert_eq!(is_terminal(&eviction), expected, "{conditions}");
    }
}

/// Reports about an earlier generation of a binding count for nothing.
#[test]
fn stale_report_is_not_available() {
    let mut stale = serving("a");
    stale.metadata.generation = Some(3);
    assert_eq!(available(&[stale, serving("b"), deleted(serving("c"))]), 1);
}

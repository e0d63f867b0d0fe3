//! The annotation with conditions that a cluster must all meet.

use karmada_api::remedy::{EXPIRES_AT, OBSERVE_ONLY, WHEN};

use super::*;

const BOTH: &str = "HealthReporterReady=False,Ready!=True";

/// A Remedy with this annotation beside these matches.
fn annotated(when: &str, matches: &Value) -> Remedy {
    let spec = json!({ "decisionMatches": matches, "actions": [TRAFFIC_CONTROL] });
    let mut remedy = remedy("gone", spec);
    remedy.metadata.annotations = Some([(WHEN.to_owned(), when.to_owned())].into());
    remedy
}

fn effect(remedy: &Remedy, cluster: &Cluster) -> Option<Effect> {
    Effect::of(remedy, cluster, NOW)
}

/// All conditions must match; one that is not there never does.
#[test]
fn all_conditions_must_match() {
    for (conditions, acts) in [
        (&[][..], false),
        (&[("HealthReporterReady", "False")], false),
        (&[("Ready", "False")], false),
        (
            &[("HealthReporterReady", "False"), ("Ready", "True")],
            false,
        ),
        (
            &[("HealthReporterReady", "True"), ("Ready", "False")],
            false,
        ),
        (
            &[("HealthReporterReady", "False"), ("Ready", "False")],
            true,
        ),
        (
            &[("HealthReporterReady", "False"), ("Ready", "Unknown")],
            true,
        ),
    ] {
        let cluster = cluster("member1", conditions, None);
        let found = cause(&annotated(BOTH, &json!([])), &cluster, NOW);
        assert_eq!(found.is_some(), acts, "{conditions:?}");
    }
}

/// The cause names every condition.
#[test]
fn cause_names_every_condition() {
    let conditions = [("HealthReporterReady", "False"), ("Ready", "Unknown")];
    let cluster = cluster("member1", &conditions, None);
    let found = cause(&annotated(BOTH, &json!([])), &cluster, NOW).unwrap();
    let text = "HealthReporterReady is False and Ready is Unknown";
    assert_eq!(found.to_string(), text);
    // Conditions decide, and no person: the bound counts the block.
    let claim = Claim::of(&cluster, [&annotated(BOTH, &json!([]))], NOW);
    assert_eq!(claim, Claim::Wanted);
}

/// Conditions are read with white space around them, and a status only as it may be.
#[test]
fn conditions_are_read_strictly() {
    for (when, count) in [
        ("Ready!=True", 1),
        (" Ready = True , example.com/Disk != Unknown\n", 2),
        (BOTH, 2),
    ] {
        let remedy = annotated(when, &json!([]));
        let decision = Decision::of(&remedy);
        assert!(matches!(decision, Decision::All(_)), "{when:?}");
        assert_eq!(decision.requirements().count(), count, "{when:?}");
    }
    for when in [
        "",
        "Ready",
        "Ready=",
        "=True",
        "Ready==True",
        "Ready=true",
        "Ready!True",
        "Ready! =True",
        "Ready=True,",
        ",Ready=True",
        "Ready=True;Dns=True",
        "Ready to go=True",
        "Ready=True Dns=True",
    ] {
        let remedy = annotated(when, &json!([]));
        let decision = Decision::of(&remedy);
        let malformed = matches!(decision, Decision::Unreadable(WhenError::Malformed { .. }));
        assert!(malformed, "{when:?}: {decision:?}");
    }
}

/// An unreadable field, or one beside matches, sets no action and clears none.
#[test]
fn unreadable_annotation_changes_nothing() {
    for (when, matches) in [
        ("Ready", json!([])),
        (BOTH, json!(null)),
        (BOTH, json!([when("Equal", "False")])),
    ] {
        let remedy = annotated(when, &matches);
        for actions in [None, Some(&[TRAFFIC_CONTROL][..])] {
            let conditions = [(DNS_READY, "False"), ("Ready", "False")];
            let cluster = cluster("member1", &conditions, actions);
            assert_eq!(effect(&remedy, &cluster), Some(Effect::Unclear));
            let plan = plan(&cluster, [&remedy], NOW, FREE);
            assert_eq!(plan, Plan::default(), "{when} {actions:?}");
        }
    }
}

/// One that only observes, or has expired, does nothing, whatever cannot be read.
#[test]
fn other_annotations_go_first() {
    let cluster = cluster("member1", &[], None);
    for (name, value) in [(OBSERVE_ONLY, "true"), (EXPIRES_AT, "1969-12-31T00:00:00Z")] {
        let mut remedy = annotated("Ready", &json!([]));
        let annotations = remedy.metadata.annotations.get_or_insert_default();
        annotations.insert(name.to_owned(), value.to_owned());
        assert_eq!(effect(&remedy, &cluster), None, "{name}");
    }
}

/// A condition that cannot be read decides nothing, unless another one is not met.
#[test]
fn unreadable_condition_decides_nothing() {
    let odd = json!({ "type": "Ready", "status": 7 });
    for (reporter, expected) in [("False", Some(Effect::Unclear)), ("True", None)] {
        let reporter = json!({ "type": "HealthReporterReady", "status": reporter });
        let cluster: Cluster = from_value(json!({
            "metadata": { "name": "member1" },
            "status": { "conditions": [odd, reporter] },
        }))
        .unwrap();
        assert_eq!(effect(&annotated(BOTH, &json!([])), &cluster), expected);
    }
}

use karmada_api::PropagationPolicy;
use objects::Metadata;
use serde_json::{from_value, json};

use super::*;

fn policy(name: &str, spec: &Value) -> PropagationPolicy {
    let mut policy: PropagationPolicy = from_value(json!({
        "metadata": { "namespace": "shop", "name": name, "uid": name, "generation": 2,
            "labels": { names::POLICY_ID: name } },
    }))
    .unwrap();
    policy.spec = from_value(spec.clone()).unwrap();
    policy
}

fn lazy(name: &str) -> PropagationPolicy {
    policy(name, &json!({ "activationPreference": "Lazy" }))
}

fn template(replicas: u32) -> Value {
    json!({
        "kind": "Deployment",
        "metadata": { "generation": 5, "creationTimestamp": "2026-01-01T00:01:00Z" },
        "spec": { "replicas": replicas },
    })
}

/// Decides for a template with a binding.
fn bound(
    policy: &PropagationPolicy,
    template: &Value,
    record: Option<&Record>,
    claimed: &str,
    is_current: bool,
) -> Activation {
    let claim = Claim {
        id: claimed.to_owned(),
        namespace: Some("shop".to_owned()),
        name: claimed.to_owned(),
    };
    decide(&Facts {
        policy: &Candidate::from(policy),
        template,
        claimed: Some(&claim),
        bound: Some(Bound {
            record: record.cloned(),
            is_current,
            is_claimed: policy.metadata.name.as_deref() == Some(claimed),
        }),
        seen: Some(Seen::Bound),
        policy_changed: None,
    })
}

/// Decides about a template that the lazy policy `a` has claimed.
fn lazily(template: &Value, record: &Record) -> Activation {
    bound(&lazy("a"), template, Some(record), "a", false)
}

fn record_of(policy: &PropagationPolicy, template: &Value) -> Record {
    Record::new(&Candidate::from(policy), template)
}

/// An immediate policy is followed whatever is recorded. Cases P32 and P36.
#[test]
fn immediate_policy_is_followed() {
    let now = record_of(&policy("a", &json!({})), &template(1));
    for record in [None, Some(&now), Some(&Record::default())] {
        let activation = bound(&policy("a", &json!({})), &template(1), record, "b", false);
        assert_eq!(activation, Activation::Follows(now.clone()));
    }
}

/// A new default of the API is no edit once an immediate policy becomes Lazy.
#[test]
fn new_default_stays_no_edit() {
    let immediate = policy("a", &json!({}));
    let mut new = template(1);
    new["apiVersion"] = json!("apps/v1");
    let Activation::Follows(record) = bound(&immediate, &new, None, "a", false) else {
        panic!("an immediate policy is followed");
    };
    let mut upgraded = new;
    upgraded["metadata"]["generation"] = json!(6);
    upgraded["metadata"]["annotations"] =
        json!({ names::POLICY_NAMESPACE: "shop", names::POLICY_NAME: "a" });
    upgraded["spec"]["progressDeadlineSeconds"] = json!(600);
    assert!(matches!(lazily(&upgraded, &record), Activation::Keeps(_)));
    let now = bound(&immediate, &upgraded, Some(&record), "a", false);
    assert_eq!(now, Activation::Follows(record_of(&immediate, &upgraded)));
    upgraded["metadata"]["generation"] = json!(7);
    assert!(matches!(lazily(&upgraded, &record), Activation::Follows(_)));
}

/// A new default that comes with the claim of a Lazy policy is no edit.
#[test]
fn default_with_claim_waits() {
    let mut template = template(1);
    template["apiVersion"] = json!("apps/v1");
    let before = record_of(&policy("b", &json!({})), &template);
    let handed_over = bound(&lazy("a"), &template, Some(&before), "b", false);
    let Activation::Keeps(record) = handed_over else {
        panic!("a claim that changes hands activates nothing");
    };
    // The API was upgraded a while ago, and the write of the claim is the first to show it.
    template["metadata"]["generation"] = json!(6);
    template["spec"]["progressDeadlineSeconds"] = json!(600);
    assert!(matches!(lazily(&template, &record), Activation::Keeps(_)));
    template["metadata"]["generation"] = json!(7);
    assert!(matches!(lazily(&template, &record), Activation::Follows(_)));
}

/// A Lazy policy is followed with the next edit.
#[test]
fn lazy_policy_awaits_edit() {
    let record = Record {
        generation: 1,
        ..record_of(&lazy("a"), &template(1))
    };
    let kept = Activation::Keeps(record.clone());
    assert_eq!(lazily(&template(1), &record), kept);

    let mut edited = template(2);
    edited["metadata"]["generation"] = json!(6);
    let now = record_of(&lazy("a"), &edited);
    assert_eq!(lazily(&edited, &record), Activation::Follows(now));
    // A newer API shows a default.
    assert_eq!(lazily(&template(2), &record), kept);
    // A claim is another generation of a Deployment.
    let mut claimed = template(1);
    claimed["metadata"]["generation"] = json!(6);
    let later = Record {
        template_generation: Some(6),
        ..record.clone()
    };
    assert_eq!(lazily(&claimed, &record), Activation::Keeps(later));
}

/// A Lazy policy that changes nothing is followed without an edit.
#[test]
fn unchanged_lazy_policy_is_followed() {
    let old = Record {
        generation: 1,
        ..record_of(&lazy("a"), &template(1))
    };
    let now = record_of(&lazy("a"), &template(1));
    let activation = bound(&lazy("a"), &template(1), Some(&old), "a", true);
    assert_eq!(activation, Activation::Keeps(now));
}

/// An edit counts once the binding has changed hands.
#[test]
fn edit_counts_after_hand_over() {
    let (policy, record) = (lazy("a"), record_of(&lazy("b"), &template(1)));
    let [former, own] = ["b", "a"].map(|name| Claim {
        id: name.to_owned(),
        namespace: Some("shop".to_owned()),
        name: name.to_owned(),
    });
    let mut edited = template(2);
    edited["metadata"]["generation"] = json!(6);
    let follows = |claimed, template: &Value, is_claimed| {
        let activation = decide(&Facts {
            policy: &Candidate::from(&policy),
            template,
            claimed,
            bound: Some(Bound {
                record: Some(record.clone()),
                is_current: false,
                is_claimed,
            }),
            seen: None,
            policy_changed: None,
        });
        matches!(activation, Activation::Follows(_))
    };
    // No policy had it meanwhile, or only the claim on the template has been written.
    for claimed in [Some(&former), None, Some(&own)] {
        let is_earlier = "it may be of before the record";
        assert!(!follows(claimed, &edited, false), "{is_earlier}");
        assert!(!follows(claimed, &template(1), true));
        assert!(follows(claimed, &edited, true));
    }
}

/// A claim that changes hands activates nothing even with an edit. Case P37.
#[test]
fn hand_over_activates_nothing() {
    let record = record_of(&lazy("a"), &template(1));
    let activation = bound(&lazy("b"), &template(2), Some(&record), "a", false);
    let expected = Record {
        template: record_of(&lazy("b"), &template(2)).template,
        ..record
    };
    assert_eq!(activation, Activation::Keeps(expected.clone()));
    // The next edit does.
    let mut edited = template(3);
    edited["metadata"]["generation"] = json!(6);
    let activation = bound(&lazy("b"), &edited, Some(&expected), "b", false);
    assert!(matches!(activation, Activation::Follows(_)));
}

/// A binding without a record is kept and recorded.
#[test]
fn unrecorded_binding_is_recorded() {
    let now = record_of(&lazy("a"), &template(1));
    for (is_current, generation) in [(true, 2), (false, 0)] {
        let activation = bound(&lazy("a"), &template(1), None, "a", is_current);
        let expected = Record {
            generation,
            ..now.clone()
        };
        assert_eq!(activation, Activation::Keeps(expected));
    }
    let unknown = Record {
        template: "1:0:0".to_owned(),
        ..now.clone()
    };
    let activation = lazily(&template(1), &unknown);
    assert_eq!(activation, Activation::Keeps(now));
}

/// Decides for a template without a binding.
fn unbound(template: &Value, claimed: Option<&str>, seen: Option<Seen>, changed: &str) -> bool {
    let claim = claimed.map(|name| Claim {
        id: name.to_owned(),
        namespace: Some("shop".to_owned()),
        name: name.to_owned(),
    });
    let activation = decide(&Facts {
        policy: &Candidate::from(&lazy("a")),
        template,
        claimed: claim.as_ref(),
        bound: None,
        seen,
        policy_changed: changed.parse().ok(),
    });
    match activation {
        Activation::Follows(record) => record == record_of(&lazy("a"), template),
        other => {
            let held = other.held().unwrap();
            assert!(held.starts_with(&Fingerprint::of(template).to_string()));
            false
        }
    }
}

/// A template that is younger than its Lazy policy is propagated at once. Case P46.
#[test]
fn younger_template_is_propagated() {
    let (before, same, after) = (
        "2026-01-01T00:00:59Z",
        "2026-01-01T00:01:00Z",
        "2026-01-01T00:01:01Z",
    );
    let unmatched = Some(Seen::Unmatched);
    for (changed, seen, expected) in [
        (before, None, true),
        (before, unmatched.clone(), true),
        (same, None, true),
        (same, unmatched.clone(), false),
        (after, None, false),
        (after, Some(Seen::Bound), true),
        ("unknown", None, false),
    ] {
        assert_eq!(
            unbound(&template(1), None, seen.clone(), changed),
            expected,
            "{changed} {seen:?}"
        );
    }
}

/// A template that waits without a binding follows with its next edit.
#[test]
fn unbound_template_awaits_edit() {
    let late = "2026-01-01T00:02:00Z";
    let held = Fingerprint::of(&template(1)).to_string();
    let mut waits = template(1);
    waits["metadata"]["annotations"] = json!({ names::CLAIMED_FINGERPRINT: held });
    assert!(!unbound(&waits, Some("a"), None, late));
    let mut edited = waits.clone();
    edited["spec"]["replicas"] = json!(2);
    assert!(unbound(&edited, Some("a"), None, late));
    // Another policy's claim starts the wait anew.
    assert!(!unbound(&edited, Some("b"), None, late));
    // A PUT that wipes the annotation is an edit only if it changes something else.
    let seen = Some(Seen::Held(held));
    assert!(!unbound(&template(1), None, seen.clone(), late));
    assert!(unbound(&template(2), None, seen, late));
}

/// Returns the template after a claim, which is another generation of it, with its fingerprint.
fn claimed(mut template: Value) -> Value {
    let held = Held::claimed(&template).to_string();
    template["metadata"]["annotations"] = json!({ names::CLAIMED_FINGERPRINT: held,
        names::POLICY_NAMESPACE: "shop", names::POLICY_NAME: "a" });
    if template["kind"] == "Deployment" {
        template["metadata"]["generation"] = json!(6);
    }
    template
}

/// A new default of the API is no edit of a template that waits without a binding.
#[test]
fn unbound_template_ignores_default() {
    let late = "2026-01-01T00:02:00Z";
    let mut deployment = template(1);
    deployment["apiVersion"] = json!("apps/v1");
    let mut stateful = template(1);
    stateful["kind"] = json!("StatefulSet");
    for template in [deployment, stateful] {
        let waits = claimed(template);
        let mut upgraded = waits.clone();
        upgraded["spec"]["progressDeadlineSeconds"] = json!(600);
        assert!(!unbound(&upgraded, Some("a"), None, late), "{upgraded}");
        let mut edited = upgraded.clone();
        edited["metadata"]["generation"] = json!(7);
        assert!(unbound(&edited, Some("a"), None, late), "{edited}");
    }
}

/// The record of a template that waits stays as long as its content.
#[test]
fn held_record_follows_content() {
    let policy = lazy("a");
    let waits = claimed(template(1));
    let recorded = waits.annotation(names::CLAIMED_FINGERPRINT).unwrap();
    for generation in [5, 6, 7] {
        let mut now = waits.clone();
        now["metadata"]["generation"] = json!(generation);
        let activation = decide(&Facts {
            policy: &Candidate::from(&policy),
            template: &now,
            claimed: Claim::by(&Candidate::from(&policy)).as_ref(),
            bound: None,
            seen: None,
            policy_changed: None,
        });
        assert_eq!(activation, Activation::Holds(recorded.to_owned()));
    }
}

fn metadata(generation: i64) -> ObjectMeta {
    let entry = |manager: &str, minute: u8| {
        let time = format!("2026-01-01T00:0{minute}:00Z");
        json!({ "manager": manager, "time": time })
    };
    from_value(json!({
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "generation": generation,
        "managedFields": [entry("kubectl-edit", 2), entry("propagation-controller", 3),
            entry("karmada-controller-manager", 4), entry("kubectl", 1)],
    }))
    .unwrap()
}

/// The last change of a policy is that of somebody else.
#[test]
fn own_policy_writes_are_ignored() {
    let [created, edited] = [1, 2].map(|generation| changed_at(&metadata(generation)).unwrap());
    assert_eq!(created.to_string(), "2026-01-01T00:00:00Z");
    assert_eq!(edited.to_string(), "2026-01-01T00:02:00Z");
}

fn message(record: &Record, policy: &PropagationPolicy) -> Option<String> {
    let metadata = ObjectMeta {
        annotations: Some([(names::ACTIVATED.to_owned(), record.to_text())].into()),
        ..ObjectMeta::default()
    };
    waiting(&metadata, &Candidate::from(policy))
}

fn waits(policy: &str, follows: &str) -> String {
    format!(
        "Generation 2 of policy {policy} waits for the next edit of the template, which follows {follows}."
    )
}

/// A waiting binding names the waiting edit and the applied one.
#[test]
fn waiting_message_names_policies() {
    let record = record_of(&lazy("a"), &template(1));
    assert_eq!(message(&record, &lazy("a")), None);
    for (generation, policy, expected) in [
        (1, lazy("a"), Some(waits("shop/a", "generation 1"))),
        (0, lazy("a"), Some(waits("shop/a", "an earlier version"))),
        (
            2,
            lazy("b"),
            Some(waits("shop/b", "generation 2 of shop/a")),
        ),
        (1, policy("a", &json!({})), None),
    ] {
        let record = Record {
            generation,
            ..record.clone()
        };
        assert_eq!(message(&record, &policy), expected);
    }
}

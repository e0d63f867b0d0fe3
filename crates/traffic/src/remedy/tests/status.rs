//! The status of a remedy.

use karmada_api::remedy::{ACCEPTED, ACTIVE, EXPIRES_AT, OBSERVE_ONLY, WHEN};
use karmada_api::{RemedySpec, RemedyStatus};

use super::*;

const AT: &str = "2026-11-20T08:00:00.7Z";

fn now() -> Timestamp {
    AT.parse().unwrap()
}

fn annotated(spec: Value, annotations: &[(&str, &str)]) -> Remedy {
    let mut remedy = remedy("r", spec);
    let annotations = annotations.iter();
    let annotations = annotations.map(|&(name, value)| (name.to_owned(), value.to_owned()));
    remedy.metadata.annotations = Some(annotations.collect());
    remedy.metadata.generation = Some(3);
    remedy.metadata.resource_version = Some("7".to_owned());
    remedy
}

/// The problems in a fleet with the cluster `member1`, which has the condition of the verdict.
fn found(remedy: &Remedy) -> Vec<Problem> {
    let fleet = FleetLookup {
        has_cluster: &|name| name == "member1",
        has_condition: &|kind| kind == DNS_READY,
    };
    problems(remedy, fleet)
}

fn blocking() -> Value {
    json!({ "actions": [TRAFFIC_CONTROL] })
}

fn with(mut fields: Value) -> Remedy {
    if fields.get("actions").is_none() {
        fields["actions"] = json!([TRAFFIC_CONTROL]);
    }
    annotated(fields, &[])
}

/// A Remedy with one match, of which one field is replaced.
fn matching(field: &str, value: &Value) -> Remedy {
    let mut one = when("Equal", "False");
    one["clusterConditionMatch"][field] = value.clone();
    with(json!({ "decisionMatches": [one] }))
}

/// Remedies that are not carried out as they are written, with a reason and some words about it.
fn mistakes() -> [(Remedy, &'static str, &'static str); 10] {
    let mut never = blocking();
    never["decisionMatches"] = json!([]);
    [
        (
            annotated(never, &[(WHEN, "Ready")]),
            "InvalidWhen",
            "\"Ready\", so this Remedy sets no action and clears none: write conditions such as",
        ),
        (
            annotated(blocking(), &[(WHEN, "Ready!=True")]),
            "InvalidWhen",
            "write decisionMatches: []",
        ),
        (
            with(json!({ "clusterAffinity": {} })),
            "SelectsNoCluster",
            "leave clusterAffinity out",
        ),
        (
            with(json!({ "decisionMatches": [] })),
            "NeverMatches",
            "leave decisionMatches out",
        ),
        (with(json!({ "actions": [] })), "NoActions", "does nothing"),
        (
            with(json!({ "actions": null })),
            "NoActions",
            "does nothing",
        ),
        (
            with(json!({ "decisionMatches": [{}] })),
            "IncompleteMatch",
            "decisionMatches[0] matches nothing",
        ),
        (
            matching("operator", &Value::Null),
            "IncompleteMatch",
            "needs conditionType, operator",
        ),
        (
            annotated(blocking(), &[(EXPIRES_AT, "soon")]),
            "InvalidExpiry",
            "\"soon\" and is ignored",
        ),
        (
            annotated(blocking(), &[(OBSERVE_ONLY, "yes")]),
            "InvalidObserveOnly",
            "write true or false",
        ),
    ]
}

/// Remedies that may be a mistake.
fn doubts() -> [(Remedy, &'static str, &'static str); 5] {
    let names = json!({ "clusterNames": ["member1", "member9", "member8"] });
    let mut never = blocking();
    never["decisionMatches"] = json!([]);
    [
        (
            annotated(never, &[(WHEN, "DiskReady=False")]),
            "ConditionNotFound",
            "condition DiskReady",
        ),
        (
            matching("conditionStatus", &json!("false")),
            "UnknownStatus",
            "\"false\"",
        ),
        (
            with(json!({ "clusterAffinity": names })),
            "ClusterNotFound",
            "cluster member8, member9",
        ),
        (
            matching("conditionType", &json!("DnsReady")),
            "ConditionNotFound",
            "condition DnsReady",
        ),
        (
            with(json!({ "actions": ["Drain", TRAFFIC_CONTROL] })),
            "UnknownAction",
            "carries out Drain",
        ),
    ]
}

/// A remedy that may be a mistake names it, and says whether it acts all the same.
#[test]
fn mistakes_are_named() {
    let mistakes = mistakes().into_iter().map(|row| (row, true));
    let doubts = doubts().into_iter().map(|row| (row, false));
    for ((remedy, reason, words), is_mistake) in mistakes.chain(doubts) {
        let problems = found(&remedy);
        let [problem] = problems.as_slice() else {
            panic!("{reason}: {problems:?}");
        };
        assert_eq!(problem.reason(), reason);
        assert!(problem.to_string().contains(words), "{problem}");
        assert_eq!(problem.is_mistake(), is_mistake, "{reason}");
        let status = status(&remedy, &problems, &Reach::default(), now());
        let accepted = &status.conditions.unwrap()[0];
        assert_eq!(accepted.type_, ACCEPTED);
        assert_eq!(accepted.status == "True", !is_mistake, "{reason}");
        assert_eq!(accepted.reason, reason);
        assert_eq!(accepted.message, problem.to_string());
    }
}

/// A remedy as the documentation has it is accepted without a word.
#[test]
fn documented_remedy_is_accepted() {
    for spec in [
        blocking(),
        json!({ "clusterAffinity": { "clusterNames": ["member1"] }, "actions": [TRAFFIC_CONTROL] }),
        json!({ "decisionMatches": [when("NotEqual", "True")], "actions": [TRAFFIC_CONTROL] }),
    ] {
        let remedy = annotated(
            spec,
            &[
                (EXPIRES_AT, "2026-11-20T18:00:00Z"),
                (OBSERVE_ONLY, "false"),
            ],
        );
        assert_eq!(found(&remedy), []);
        let status = status(&remedy, &[], &Reach::default(), now());
        let accepted = &status.conditions.unwrap()[0];
        assert_eq!(
            (&*accepted.status, &*accepted.reason, &*accepted.message),
            ("True", "Accepted", "")
        );
        assert_eq!(accepted.observed_generation, Some(3));
    }
}

/// A message about many names shows the first and how many more.
#[test]
fn long_messages_are_shortened() {
    let names: Vec<String> = (0..120).map(|n| format!("m{n:03}")).collect();
    let spec =
        json!({ "clusterAffinity": { "clusterNames": names }, "actions": [TRAFFIC_CONTROL] });
    let message = found(&annotated(spec, &[]))[0].to_string();
    assert_eq!(
        message,
        "there is no cluster m000, m001, m002, m003, m004 and 115 more"
    );
    let incomplete =
        json!({ "decisionMatches": vec![json!({}); 50], "actions": [TRAFFIC_CONTROL] });
    let remedy = annotated(incomplete, &[]);
    let status = status(&remedy, &found(&remedy), &Reach::default(), now());
    assert!(
        status.conditions.unwrap()[0]
            .message
            .ends_with("; and 42 more")
    );
}

fn listed(count: usize) -> Listed {
    Listed {
        count,
        names: (1..=count.min(100)).map(|n| format!("m{n}")).collect(),
    }
}

fn reach(acting: usize, refused: usize, observing: usize) -> Reach {
    Reach {
        acting: listed(acting),
        refused: listed(refused),
        observing: listed(observing),
    }
}

/// Whether a remedy is active has a reason in every state.
#[test]
fn active_always_has_reason() {
    let past = (EXPIRES_AT, "2026-11-20T07:00:00Z");
    let trial = (OBSERVE_ONLY, "true");
    let active = |annotations: &[_], reach, says, state| {
        let remedy = annotated(blocking(), annotations);
        let problems = found(&remedy);
        let status = status(&remedy, &problems, &reach, now());
        assert_eq!(State::of(&remedy, &problems, &reach, now()), state);
        let condition = &status.conditions.as_ref().unwrap()[1];
        assert_eq!(condition.type_, ACTIVE);
        let said = format!(
            "{} {}: {}",
            condition.status, condition.reason, condition.message
        );
        assert_eq!(said, says);
        let mut told = remedy;
        assert_eq!(State::told_by(&told), None);
        told.status = Some(status);
        assert_eq!(has_expired(&told), state == State::Expired);
        assert_eq!(State::told_by(&told), Some(state));
        told.metadata.generation = Some(4);
        assert_eq!(State::told_by(&told), None, "it is about the spec before");
    };
    let says = "True ActionsRequired: acts on m1, m2";
    active(&[], reach(2, 0, 0), says, State::Active);
    let says = "False NoClusterMatches: acts on no cluster";
    active(&[], reach(0, 0, 0), says, State::Idle);
    let says = "True ActionsRequired: acts on m1; --max-blocked-clusters keeps unblocked: m1, m2";
    active(&[], reach(1, 2, 0), says, State::Active);
    let says = "False MaxBlockedClustersReached: acts on no cluster; --max-blocked-clusters keeps unblocked: m1";
    active(&[], reach(0, 1, 0), says, State::Idle);
    let says = "False ObserveOnly: would act on m1, m2, m3, m4, m5 and 2 more";
    active(&[trial], reach(0, 0, 7), says, State::ObserveOnly);
    let says = "False InvalidObserveOnly: it sets no action and clears none";
    let unreadable = (OBSERVE_ONLY, "yes");
    active(&[unreadable], reach(0, 0, 0), says, State::NotAccepted);
    let says = "False Expired: it expired at 2026-11-20T07:00:00Z";
    active(&[past], reach(0, 0, 0), says, State::Expired);
    active(&[past, trial], reach(0, 0, 0), says, State::Expired);
    let says = "True ActionsRequired: acts on m1";
    let unreadable = (EXPIRES_AT, "never");
    active(&[unreadable], reach(1, 0, 0), says, State::NotAccepted);
}

fn time(status: &RemedyStatus, nth: usize) -> Value {
    let condition = status.conditions.as_ref().unwrap()[nth].clone();
    json!(condition.last_transition_time)
}

/// A status that is up to date is not written and another only over the version it is based on.
#[test]
fn current_status_is_not_written() {
    let mut remedy = annotated(blocking(), &[]);
    let wanted = status(&remedy, &[], &reach(101, 0, 0), now());
    assert_eq!(wanted.active_clusters, Some(101));
    assert_eq!(
        wanted.active_cluster_names.as_ref().map(Vec::len),
        Some(100)
    );
    let patch = status_write(&remedy, &wanted).unwrap().guarded_body();
    assert_eq!(patch["metadata"], json!({ "resourceVersion": "7" }));
    assert_eq!(patch["status"]["refusedClusterNames"], Value::Null);
    assert_eq!(patch["status"]["observedGeneration"], 3);
    remedy.status = Some(wanted);
    let later = "2026-11-20T09:00:00Z".parse().unwrap();
    let again = status(&remedy, &[], &reach(101, 0, 0), later);
    assert_eq!(
        status_write(&remedy, &again),
        None,
        "the time alone is no change"
    );
    let other = status(&remedy, &[], &reach(0, 0, 0), later);
    assert_eq!(time(&other, 0), "2026-11-20T08:00:00Z", "in whole seconds");
    assert_eq!(time(&other, 1), "2026-11-20T09:00:00Z");
    assert!(status_write(&remedy, &other).is_some());
}

/// The conditions of other clients stay.
#[test]
fn foreign_conditions_stay() {
    let mut remedy = Remedy::new("r", RemedySpec::default());
    let foreign = json!({ "type": "Reviewed", "status": "True", "reason": "By", "message": "",
        "lastTransitionTime": "2026-11-20T08:00:00Z" });
    remedy.status = from_value(json!({ "conditions": [foreign] })).unwrap();
    let status = status(&remedy, &[], &Reach::default(), now());
    let kinds: Vec<_> = status
        .conditions
        .iter()
        .flatten()
        .map(|c| c.type_.as_str())
        .collect();
    assert_eq!(kinds, ["Reviewed", ACCEPTED, ACTIVE]);
}

/// The clusters of a remedy are those that have its action or are refused it.
#[test]
fn reach_counts_refused_clusters() {
    let mut index = ReachIndex::default();
    let mut named = remedy(
        "dns",
        json!({ "decisionMatches": [when("Equal", "False")], "actions": [TRAFFIC_CONTROL] }),
    );
    let [failing, acting] = [None, Some(&[TRAFFIC_CONTROL][..])]
        .map(|actions| cluster("m1", &[(DNS_READY, "False")], actions));
    let changed = index.replace("m1", Reached::of(&failing, [&named], NOW, true));
    assert!(changed.is_empty(), "it has no action yet");
    let changed = index.replace("m1", Reached::of(&failing, [&named], NOW, false));
    assert_eq!(changed, BTreeSet::from(["dns".to_owned()]));
    assert_eq!(index.of("dns").refused.names, ["m1"]);
    index.replace("m1", Reached::of(&acting, [&named], NOW, true));
    assert_eq!(
        (index.of("dns").acting.count, index.of("dns").refused.count),
        (1, 0)
    );
    let changed = index.replace("m1", Reached::of(&acting, [&named], NOW, true));
    assert!(changed.is_empty());
    named.metadata.annotations = Some([(OBSERVE_ONLY.to_owned(), "true".to_owned())].into());
    index.replace("m1", Reached::of(&failing, [&named], NOW, true));
    assert_eq!(
        (
            index.of("dns").acting.count,
            index.of("dns").observing.count
        ),
        (0, 1)
    );
    index.replace("m1", Reached::default());
    assert_eq!(index, ReachIndex::default(), "nothing is left behind");
}

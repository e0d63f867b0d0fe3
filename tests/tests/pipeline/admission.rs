//! Policies that contradict themselves are refused when they are written. On the real API only: the
//! embedded one evaluates no admission policies.
#![expect(clippy::unwrap_used, reason = "a test fails so")]

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use serde_json::Value;

/// Begins the refusal of a policy.
const DENIED: &str = "denied request: ";

/// Checks that the API has `refused` an object if and only if our rules find `problems` in it, and that a policy says one of
/// these; adds that to `seen`.
pub(crate) fn agrees(
    object: &Value,
    refused: Option<&str>,
    problems: &[String],
    seen: &mut BTreeSet<String>,
) -> Result<()> {
    ensure!(
        refused.is_some() != problems.is_empty(),
        "{object}: {refused:?} against {problems:?}"
    );
    // The schema refuses before the policies do, in words of its own.
    if let Some((_, message)) = refused.and_then(|text| text.split_once(DENIED)) {
        let is_known = problems.iter().any(|known| known == message);
        ensure!(is_known, "{object}: {message} is not of {problems:?}");
        seen.insert(message.to_owned());
    }
    Ok(())
}

/// Returns `true` if the answer is the expected one: a refusal with this text, or none.
pub(crate) fn is_refusal(refused: Option<&str>, expected: Option<&str>) -> bool {
    match (refused, expected) {
        (Some(refused), Some(expected)) => refused.contains(expected),
        (refused, expected) => refused == expected,
    }
}

mod real {
    use std::collections::{BTreeMap, BTreeSet};

    use anyhow::{Result, ensure};
    use k8s_openapi::{
        api::core::v1::{ConfigMap, Namespace},
        apimachinery::pkg::apis::meta::v1::ObjectMeta,
    };
    use karmada_api::{
        ClusterPropagationPolicy, OverridePolicy, PropagationPolicy, Remedy, TRAFFIC_CONTROL,
        remedy::WHEN,
    };
    use kube::{
        Api,
        api::{DeleteParams, PostParams},
        core::DynamicObject,
        discovery::ApiResource,
    };
    use pipeline_tests::{
        api::{merge, merge_refusal},
        control_plane::{ApiKind, ControlPlane},
        crds,
        fleet::{NAMESPACE, isolated},
        manifests, test_name,
        wait::until,
    };
    use propagation_rules::candidate::Candidate;
    use propagation_rules::problems::{Problem, problems};
    use serde_json::{Value, from_value, json};
    use traffic::remedy::{self, FleetLookup};

    use super::{agrees, is_refusal};

    /// Starts the API of a fleet, without admission policies.
    async fn start() -> Result<ControlPlane> {
        let karmada = ControlPlane::start("karmada", ApiKind::Real).await?;
        karmada.install_crds(&crds::karmada()).await?;
        karmada.namespace(NAMESPACE).await?;
        Ok(karmada)
    }

    /// Installs the admission policies and waits until they are in effect.
    async fn guard(karmada: &ControlPlane) -> Result<()> {
        let file = "admission/propagation-policies.yaml";
        manifests::apply(&karmada.client(), file).await?;
        let both = json!({ "placement": { "clusterAffinity": {}, "clusterAffinities": [{ "affinityName": "a" }] } });
        // The admission has a watch of its own: repeat until it has seen them.
        while refusal(karmada, true, &both).await?.is_none() {}
        Ok(())
    }

    fn policies(karmada: &ControlPlane, namespaced: bool) -> Api<DynamicObject> {
        let client = karmada.client();
        if namespaced {
            let kind = ApiResource::erase::<PropagationPolicy>(&());
            Api::namespaced_with(client, NAMESPACE, &kind)
        } else {
            Api::all_with(client, &ApiResource::erase::<ClusterPropagationPolicy>(&()))
        }
    }

    fn policy(namespaced: bool, fields: &Value) -> Value {
        let kind = if namespaced {
            "PropagationPolicy"
        } else {
            "ClusterPropagationPolicy"
        };
        let mut policy = json!({
            "apiVersion": "policy.karmada.io/v1alpha1", "kind": kind,
            "metadata": { "name": "web" },
            "spec": { "resourceSelectors": [{ "apiVersion": "v1", "kind": "Pod", "name": "a" }] },
        });
        if namespaced {
            policy["metadata"]["namespace"] = NAMESPACE.into();
        }
        for (field, value) in fields.as_object().unwrap() {
            policy["spec"][field] = value.clone();
        }
        policy
    }

    /// Returns the error of creating a policy with these fields, which is not stored.
    async fn refusal(
        karmada: &ControlPlane,
        namespaced: bool,
        fields: &Value,
    ) -> Result<Option<String>> {
        let object = from_value(policy(namespaced, fields))?;
        let try_only = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
        match policies(karmada, namespaced)
            .create(&try_only, &object)
            .await
        {
            Ok(_) => Ok(None),
            Err(kube::Error::Api(status)) => Ok(Some(status.message.clone())),
            Err(error) => Err(error.into()),
        }
    }

    fn placed(placement: &Value) -> Value {
        json!({ "placement": placement })
    }

    fn groups(names: &[&str]) -> Value {
        let groups = names.iter().map(|name| json!({ "affinityName": name }));
        placed(&json!({ "clusterAffinities": groups.collect::<Vec<_>>() }))
    }

    fn spread(constraints: &Value) -> Value {
        placed(&json!({ "spreadConstraints": constraints }))
    }

    fn fields(key: &str, operator: &str) -> Value {
        json!({ "fieldSelector": { "matchExpressions": [
            { "key": "region", "operator": "In", "values": ["a"] },
            { "key": key, "operator": operator, "values": ["a"] },
        ] } })
    }

    fn selecting(selector: &Value) -> Value {
        let mut all = json!({ "apiVersion": "v1", "kind": "Pod" });
        for (field, value) in selector.as_object().unwrap() {
            all[field] = value.clone();
        }
        json!([all])
    }

    fn pause(dispatching: bool, names: &[&str]) -> Value {
        json!({ "suspension": { "dispatching": dispatching,
            "dispatchingOnClusters": { "clusterNames": names } } })
    }

    /// Returns the fields of policies: those that a check refuses, and their neighbours that pass it.
    fn policies_of_checks() -> Vec<Value> {
        vec![
            json!({}),
            json!({ "placement": {} }),
            json!({ "resourceSelectors": [] }),
            json!({ "resourceSelectors": selecting(&json!({ "namespace": "other", "name": "a" })) }),
            json!({ "resourceSelectors": selecting(&json!({ "namespace": NAMESPACE, "name": "a" })) }),
            json!({ "resourceSelectors": selecting(&json!({ "namespace": "", "name": "a" })) }),
            json!({ "preemption": "Always", "resourceSelectors": selecting(&json!({})) }),
            json!({ "preemption": "Never", "resourceSelectors": selecting(&json!({})) }),
            json!({ "preemption": "Always" }),
            pause(true, &["member1"]),
            pause(true, &[]),
            pause(false, &["member1"]),
            json!({ "suspension": { "dispatching": true } }),
        ]
    }

    /// Returns the same of the checks of placements.
    fn placements_of_checks() -> Vec<Value> {
        let weighted = |selector: Value, weight: i64| {
            placed(
                &json!({ "replicaScheduling": { "replicaSchedulingType": "Divided",
                "replicaDivisionPreference": "Weighted", "weightPreference": {
                "staticWeightList": [{ "targetCluster": selector, "weight": weight }] } } }),
            )
        };
        let tolerating = |operator: &str| {
            placed(&json!({ "clusterTolerations": [{ "key": "a", "operator": operator }] }))
        };
        let mut group = fields("zone", "Exists");
        group["affinityName"] = json!("a");
        let by = |field: &str, min: i64, max: i64| json!({ "spreadByField": field, "minGroups": min, "maxGroups": max });
        vec![
            placed(
                &json!({ "clusterAffinity": {}, "clusterAffinities": [{ "affinityName": "a" }] }),
            ),
            placed(&json!({ "clusterAffinity": { "clusterNames": ["member1"] } })),
            groups(&["a", "b"]),
            groups(&["a", "a"]),
            groups(&["a/b.c_d-E", "x.io/a"]),
            groups(&["-a"]),
            groups(&[""]),
            groups(&["A/b"]),
            groups(&[&"x".repeat(32)]),
            groups(&[&"x".repeat(33)]),
            placed(&json!({ "clusterAffinity": fields("k", "In") })),
            placed(&json!({ "clusterAffinity": fields("provider", "NotIn") })),
            placed(&json!({ "clusterAffinities": [group] })),
            weighted(fields("name", "In"), 1),
            weighted(json!({}), 1),
            weighted(json!({}), 0),
            spread(&json!([{}])),
            spread(&json!([by("cluster", 1, 2)])),
            spread(&json!([by("cluster", 3, 0)])),
            spread(&json!([by("cluster", 3, 2)])),
            spread(&json!([by("cluster", -1, 0)])),
            spread(&json!([by("cluster", 0, -1)])),
            spread(&json!([{}, by("cluster", 1, 2)])),
            spread(&json!([by("region", 1, 2)])),
            spread(&json!([by("region", 1, 2), by("cluster", 1, 2)])),
            spread(&json!([{ "spreadByLabel": "a" }])),
            spread(&json!([{ "spreadByField": "cluster", "spreadByLabel": "a" }])),
            tolerating("Exists"),
            tolerating("Equal"),
            tolerating(""),
            tolerating("Gt"),
        ]
    }

    /// Returns the same of the checks of groups that overflow.
    fn overflows_of_checks() -> Vec<Value> {
        let dynamic = json!({ "weightPreference": { "dynamicWeight": "AvailableReplicas" } });
        let overflowing = |inline: &Value, tiers: Value, scheduling: &Value| {
            let mut term = inline.clone();
            term["affinityName"] = json!("a");
            term["overflowAffinities"] = tiers;
            placed(&json!({ "clusterAffinities": [term], "replicaScheduling": scheduling }))
        };
        let inline = json!({ "clusterNames": ["member1"] });
        let named = |name: &str| json!([{ "affinityName": name, "clusterNames": ["member2"] }]);
        let with = |mut tier: Value| {
            tier["affinityName"] = json!("b");
            overflowing(&inline, json!([tier]), &dynamic)
        };
        vec![
            overflowing(&inline, named("b"), &dynamic),
            overflowing(&inline, json!([]), &json!({})),
            overflowing(
                &inline,
                named("b"),
                &json!({ "replicaDivisionPreference": "Aggregated" }),
            ),
            overflowing(&inline, named("b"), &json!({})),
            overflowing(
                &inline,
                named("b"),
                &json!({ "replicaSchedulingType": "Duplicated" }),
            ),
            overflowing(&json!({}), named("b"), &dynamic),
            overflowing(&json!({ "exclude": ["member2"] }), named("b"), &dynamic),
            overflowing(&inline, named("a"), &dynamic),
            overflowing(&inline, json!([named("b")[0], named("b")[0]]), &dynamic),
            overflowing(&inline, json!([named("b")[0], named("c")[0]]), &dynamic),
            overflowing(&inline, named("-o"), &dynamic),
            with(fields("rack", "In")),
            with(fields("zone", "Is")),
            with(fields("zone", "NotIn")),
        ]
    }

    /// Returns the same of the checks of workloads that are to be together or apart.
    fn workload_affinities_of_checks() -> Vec<Value> {
        let by = |key: &str| json!({ "groupByLabelKey": key });
        let grouped = |affinity: Value| placed(&json!({ "workloadAffinity": affinity }));
        let both = |together: &str, apart: &str| {
            grouped(json!({ "affinity": by(together), "antiAffinity": by(apart) }))
        };
        vec![
            grouped(json!({})),
            grouped(json!({ "affinity": by("app") })),
            grouped(json!({ "antiAffinity": by("app.io/group_A") })),
            both("app", "tier"),
            both("app", "app"),
            both("app", "a b"),
        ]
    }

    /// The rule of the programs and the policies of the API refuse the same, in the same words.
    #[test]
    fn admission_agrees_with_the_rule() {
        isolated(test_name!(), async || {
            let karmada = start().await?;
            guard(&karmada).await?;
            let mut seen = BTreeSet::new();
            let table = [
                policies_of_checks(),
                placements_of_checks(),
                overflows_of_checks(),
                workload_affinities_of_checks(),
            ]
            .concat();
            let rows = table.iter().flat_map(|row| [(row, true), (row, false)]);
            for (fields, namespaced) in rows {
                let typed: PropagationPolicy = from_value(policy(namespaced, fields))?;
                let invalid: Vec<_> = problems(&Candidate::from(&typed))
                    .into_iter()
                    .filter_map(|problem| match problem {
                        Problem::Invalid(message) => Some(message),
                        Problem::Unsupported(_) => None,
                    })
                    .collect();
                let refused = refusal(&karmada, namespaced, fields).await?;
                agrees(fields, refused.as_deref(), &invalid, &mut seen)?;
            }
            // Each check has refused something.
            ensure!(seen.len() == 27, "{seen:#?}");
            Ok(())
        });
    }

    /// Case P26: a pause of every cluster and one of some contradict each other.
    #[test]
    fn contradictory_pause_is_refused() {
        isolated(test_name!(), async || {
            let karmada = start().await?;
            guard(&karmada).await?;
            for namespaced in [true, false] {
                let refused = refusal(&karmada, namespaced, &pause(true, &["member1"])).await?;
                ensure!(
                    refused.as_ref().is_some_and(|text| text.ends_with(
                        "suspension dispatching cannot co-exist with dispatchingOnClusters.clusterNames"
                    )),
                    "{refused:?}"
                );
            }
            Ok(())
        });
    }

    /// Case P59: groups beside an affinity, groups of one name, and names that are too long.
    #[test]
    fn contradictory_groups_are_refused() {
        isolated(test_name!(), async || {
            let karmada = start().await?;
            guard(&karmada).await?;
            let both =
                json!({ "clusterAffinity": {}, "clusterAffinities": [{ "affinityName": "a" }] });
            let long = "x".repeat(33);
            for (fields, message) in [
                (
                    placed(&both),
                    "clusterAffinities cannot co-exist with clusterAffinity".to_owned(),
                ),
                (
                    groups(&["a", "b", "a"]),
                    "each affinity term in a policy must have a unique name".to_owned(),
                ),
                (
                    groups(&[&long]),
                    format!(
                        "affinityName \"{long}\" must be a qualified name of 1 to 32 characters"
                    ),
                ),
            ] {
                let refused = refusal(&karmada, true, &fields).await?;
                ensure!(
                    refused
                        .as_ref()
                        .is_some_and(|text| text.ends_with(&message)),
                    "{fields}: {refused:?}"
                );
            }
            Ok(())
        });
    }

    /// A field that may be given once stays; and whatever a policy is, it can be deleted.
    #[test]
    fn immutable_fields_stay() {
        isolated(test_name!(), async || {
            let karmada = start().await?;
            for namespaced in [true, false] {
                // It was there before the checks were.
                let mut invalid = policy(namespaced, &pause(true, &["member1"]));
                invalid["metadata"]["name"] = json!("old");
                invalid["metadata"]["finalizers"] = json!(["x.io/wait"]);
                let (api, parameters) = (policies(&karmada, namespaced), PostParams::default());
                api.create(&parameters, &from_value(invalid)?).await?;
            }
            guard(&karmada).await?;
            for (namespaced, id) in [
                (true, "propagationpolicy.karmada.io/permanent-id"),
                (false, "clusterpropagationpolicy.karmada.io/permanent-id"),
            ] {
                let api = policies(&karmada, namespaced);
                api.create(
                    &PostParams::default(),
                    &from_value(policy(namespaced, &json!({})))?,
                )
                .await?;
                let label = |value: Value| json!({ "metadata": { "labels": { id: value } } });
                let denied = format!(
                    "label {id} is immutable, it can only be set by the system during creation"
                );
                let kept = "the schedulerName should not be updated";
                for (change, expected) in [
                    (label(json!("1")), None),
                    (label(json!("1")), None),
                    (label(json!("2")), Some(denied.as_str())),
                    (label(Value::Null), Some(denied.as_str())),
                    (
                        json!({ "spec": { "schedulerName": "default-scheduler" } }),
                        None,
                    ),
                    (json!({ "spec": { "schedulerName": "other" } }), Some(kept)),
                    (json!({ "spec": { "priority": 1 } }), None),
                ] {
                    let refused = merge_refusal(&api, "web", &change).await;
                    let is_expected = is_refusal(refused.as_deref(), expected);
                    ensure!(is_expected, "{change}: {refused:?}");
                }
                let touched = json!({ "metadata": { "labels": { "touched": "true" } } });
                let refused = merge_refusal(&api, "old", &touched).await;
                ensure!(refused.is_some(), "it is invalid");
                api.delete("old", &DeleteParams::default()).await?;
                let released = json!({ "metadata": { "finalizers": null } });
                merge(&api, "old", &released).await?;
                ensure!(api.get_opt("old").await?.is_none(), "it is still there");
            }
            Ok(())
        });
    }

    fn override_policy(fields: &Value) -> Value {
        let mut policy = json!({
            "apiVersion": "policy.karmada.io/v1alpha1", "kind": "OverridePolicy",
            "metadata": { "name": "web", "namespace": NAMESPACE }, "spec": {},
        });
        for (field, value) in fields.as_object().unwrap() {
            policy["spec"][field] = value.clone();
        }
        policy
    }

    /// Returns the fields of override policies, each with its refusal.
    fn override_policies() -> Vec<(Value, Option<&'static str>)> {
        let rules = |overriders: Value| json!({ "overrideRules": [{ "overriders": overriders }] });
        let target = |fields: Value| json!({ "overrideRules": [{ "targetCluster": fields, "overriders": {} }] });
        let adding = |field: &str, key: &str, value: &str| {
            rules(json!({ field: [{ "operator": "add", "value": { key: value } }] }))
        };
        let labels = |key: &str, value: &str| adding("labelsOverrider", key, value);
        let annotations = |key: &str| adding("annotationsOverrider", key, "a b");
        let change = json!([{ "subPath": "/a", "operator": "remove" }]);
        let of_json = json!({ "fieldPath": "/data/a", "json": change });
        let of_both = json!({ "fieldPath": "/data/a", "json": change, "yaml": change });
        let plaintext = json!([{ "path": "/spec/a", "operator": "remove" }]);
        let older = json!({ "targetCluster": {}, "overriders": { "plaintext": plaintext } });
        let (mut with_target, mut with_overriders) = (rules(json!({})), rules(json!({})));
        with_target["targetCluster"] = older["targetCluster"].clone();
        with_overriders["overriders"] = older["overriders"].clone();
        let no_label = "labelsOverrider has a key or a value that no label may have";
        let no_annotation = "annotationsOverrider has a key that no annotation may have";
        let no_key = "unsupported key \"regions\", must be provider, region, or zone";
        let no_operator = "unsupported operator \"Exists\", must be In or NotIn";
        let both = "FieldOverrider has both YAML and JSON set. Only one is allowed";
        let beside_target = "overrideRules and targetCluster can't co-exist";
        let beside_overriders = "overrideRules and overriders can't co-exist";
        vec![
            (rules(json!({})), None),
            (json!({ "overrideRules": [], "targetCluster": {} }), None),
            (older, None),
            (with_target, Some(beside_target)),
            (with_overriders, Some(beside_overriders)),
            (target(fields("zone", "NotIn")), None),
            (target(fields("regions", "In")), Some(no_key)),
            (target(fields("zone", "Exists")), Some(no_operator)),
            (labels("x.io/a", "b"), None),
            (labels("-a", "b"), Some(no_label)),
            (labels("a", "a b"), Some(no_label)),
            (annotations("X.io/a"), None),
            (annotations("a b"), Some(no_annotation)),
            (rules(json!({ "fieldOverrider": [of_json] })), None),
            (rules(json!({ "fieldOverrider": [of_both] })), Some(both)),
        ]
    }

    /// An override policy of which half would be ignored is refused in Karmada's words, and its neighbour is not.
    #[test]
    fn half_overrides_are_refused() {
        isolated(test_name!(), async || {
            let karmada = start().await?;
            let file = "admission/override-policies.yaml";
            manifests::apply(&karmada.client(), file).await?;
            let kind = ApiResource::erase::<OverridePolicy>(&());
            let api: Api<DynamicObject> = Api::namespaced_with(karmada.client(), NAMESPACE, &kind);
            let try_only = PostParams {
                dry_run: true,
                ..PostParams::default()
            };
            let refusal = async |fields: &Value| {
                let policy = from_value(override_policy(fields)).unwrap();
                api.create(&try_only, &policy).await.err()
            };
            // The admission has a watch of its own: repeat until it has seen the policy.
            let (wrong, _) = &override_policies()[3];
            while refusal(wrong).await.is_none() {}
            for (policy, expected) in override_policies() {
                let refused = refusal(&policy).await.map(|error| error.to_string());
                let is_expected = is_refusal(refused.as_deref(), expected);
                ensure!(is_expected, "{policy}: {refused:?}");
            }
            Ok(())
        });
    }

    /// An emptied list of matches is refused where no annotation says when the Remedy acts, and an annotation that
    /// cannot be read, in the words of the Remedy's status.
    #[test]
    fn unreadable_when_is_refused() {
        isolated(test_name!(), async || {
            let karmada = start().await?;
            manifests::apply(&karmada.client(), "admission/remedies.yaml").await?;
            let fleet = FleetLookup {
                has_cluster: &|_| true,
                has_condition: &|_| true,
            };
            let remedies: Api<Remedy> = Api::all(karmada.client());
            let try_only = PostParams {
                dry_run: true,
                ..PostParams::default()
            };
            let refusal = async |remedy: &Remedy| match remedies.create(&try_only, remedy).await {
                Ok(_) => Ok(None),
                Err(kube::Error::Api(status)) => Ok(Some(status.message.clone())),
                Err(error) => Err(error),
            };
            let one = json!([{ "clusterConditionMatch": {
                "conditionType": "Ready", "operator": "NotEqual", "conditionStatus": "True" } }]);
            let remedy = |when: Option<&str>, matches: &Value| -> Result<Remedy> {
                let annotations: BTreeMap<_, _> = when.iter().map(|when| (WHEN, when)).collect();
                Ok(from_value(json!({
                    "metadata": { "name": "gone", "annotations": annotations },
                    "spec": { "decisionMatches": matches, "actions": [TRAFFIC_CONTROL] },
                }))?)
            };
            // The admission has a watch of its own: repeat until it has seen the policy.
            while refusal(&remedy(None, &json!([]))?).await?.is_none() {}
            for (when, matches) in [
                (None, json!([])),
                (None, json!(null)),
                (None, one.clone()),
                (Some("HealthReporterReady=False,Ready!=True"), json!([])),
                (
                    Some(" example.com/Disk != Unknown , Ready = True "),
                    json!([]),
                ),
                (Some("Ready!=True"), json!(null)),
                (Some("Ready!=True"), one.clone()),
                (Some(""), json!([])),
                (Some("Ready"), json!([])),
                (Some("Ready==True"), json!([])),
                (Some("Ready=true"), json!([])),
                (Some("Ready=True,"), json!([])),
                (Some("-=True"), json!([])),
            ] {
                let remedy = remedy(when, &matches)?;
                let found = remedy::problems(&remedy, fleet);
                let expected = found.first().map(ToString::to_string);
                let refused = refusal(&remedy).await?;
                let is_expected = is_refusal(refused.as_deref(), expected.as_deref());
                ensure!(
                    is_expected,
                    "{when:?} {matches}: {refused:?} against {expected:?}"
                );
            }
            Ok(())
        });
    }

    /// All teams share the scheduler's queue: a policy of a namespace names the classes that its Namespace lists, and keeps the one that
    /// it has.
    #[test]
    fn unlisted_priority_is_refused() {
        isolated(test_name!(), async || {
            let karmada = start().await?;
            let of_class = |class: &str| {
                json!({ "schedulePriority": {
                    "priorityClassSource": "KubePriorityClass", "priorityClassName": class } })
            };
            let before = policy(true, &of_class("system-node-critical"));
            policies(&karmada, true)
                .create(&PostParams::default(), &from_value(before)?)
                .await?;
            manifests::apply(&karmada.client(), "admission/priorities.yaml").await?;
            let refusal = async |class: &str| {
                let mut policy = policy(true, &of_class(class));
                policy["metadata"]["name"] = json!("other");
                let try_only = PostParams {
                    dry_run: true,
                    ..PostParams::default()
                };
                let created = policies(&karmada, true)
                    .create(&try_only, &from_value(policy).unwrap())
                    .await;
                created.err().map(|error| error.to_string())
            };
            // The admission has a watch of its own: repeat until it has seen the policy.
            let refused = loop {
                if let Some(refused) = refusal("system-node-critical").await {
                    break refused;
                }
            };
            let none = "the PriorityClass system-node-critical is not allowed in the namespace shop, whose annotation karmada-rs.io/priority-classes allows none";
            ensure!(refused.contains(none), "{refused}");
            let kept = policies(&karmada, true);
            let edited = json!({ "spec": { "priority": 1 } });
            merge(&kept, "web", &edited).await?;

            let namespaces: Api<Namespace> = Api::all(karmada.client());
            let listing = json!({ "metadata": { "annotations": {
                "karmada-rs.io/priority-classes": "high, batch" } } });
            merge(&namespaces, NAMESPACE, &listing).await?;
            // So has it of Namespaces.
            while refusal("batch").await.is_some() {}
            ensure!(refusal("high").await.is_none(), "it is listed");
            let refused = refusal("system-node-critical").await;
            let listed = refused.is_some_and(|refused| refused.contains("allows high, batch"));
            ensure!(listed, "the list is not named");
            Ok(())
        });
    }

    /// Case P87: a protected object stays until its label is gone, by whomever it is deleted, and its Namespace with it.
    #[test]
    fn protected_objects_stay() {
        isolated(test_name!(), async || {
            let mut karmada = start().await?;
            karmada.start_controllers().await?;
            manifests::apply(&karmada.client(), "admission/deletion-protection.yaml").await?;
            karmada.namespace("kept").await?;
            let maps: Api<ConfigMap> = Api::namespaced(karmada.client(), "kept");
            let map = |name: &str| ConfigMap {
                metadata: ObjectMeta {
                    name: Some(name.to_owned()),
                    labels: (name == "protected").then(|| {
                        let label = "resourcetemplate.karmada.io/deletion-protected";
                        [(label.to_owned(), "Always".to_owned())].into()
                    }),
                    ..ObjectMeta::default()
                },
                ..ConfigMap::default()
            };
            for name in ["protected", "other"] {
                maps.create(&PostParams::default(), &map(name)).await?;
            }
            let try_only = DeleteParams {
                dry_run: true,
                ..DeleteParams::default()
            };
            // The admission has a watch of its own: repeat until it has seen the policy.
            let refused = loop {
                if let Err(error) = maps.delete("protected", &try_only).await {
                    break error.to_string();
                }
            };
            let denied = "please make sure to remove the label: resourcetemplate.karmada.io/deletion-protected";
            ensure!(refused.contains(denied), "{refused}");
            let namespaces: Api<Namespace> = Api::all(karmada.client());
            namespaces.delete("kept", &DeleteParams::default()).await?;
            until(&maps, "other", "gone", |map| map.is_none()).await?;
            ensure!(maps.get_opt("protected").await?.is_some(), "it is gone");
            let unlabelled = json!({ "metadata": { "labels": null } });
            merge(&maps, "protected", &unlabelled).await?;
            until(&namespaces, "kept", "gone", |namespace| namespace.is_none()).await?;
            Ok(())
        });
    }
}

//! Placements that contradict themselves, or ask for unserved kinds, are refused when they are written. On the real API
//! only: the embedded one evaluates no admission policies.

mod overrides;

mod real {
    use std::collections::BTreeSet;

    use anyhow::{Result, ensure};
    use fleet_api::{MemberCluster, Placement, PolicySnapshot, ResourceSnapshot};
    use kube::{
        Api,
        api::{DeleteParams, PostParams},
        core::DynamicObject,
        discovery::ApiResource,
    };
    use objects::Scope;
    use pipeline_tests::{
        api::{merge, merge_refusal},
        control_plane::{ApiKind, ControlPlane},
        fleet::isolated,
        manifests, test_name,
    };
    use placement_rules::refuse::{changes, problems};
    use serde_json::{Value, from_value, json};

    use crate::admission::{agrees, is_refusal};

    /// Starts a hub whose admission refuses placements.
    async fn start() -> Result<ControlPlane> {
        let hub = ControlPlane::start("hub", ApiKind::Real).await?;
        hub.install_crds(&[manifests::path("placement/crds")])
            .await?;
        Ok(hub)
    }

    /// Installs the admission policy and waits until it is in effect.
    async fn guard(hub: &ControlPlane) -> Result<()> {
        manifests::apply(&hub.client(), "placement/hub/placements.yaml").await?;
        let invalid = placement("invalid", &json!({ "policy": { "numberOfClusters": 2 } }));
        // The admission has a watch of its own: repeat until it has seen them.
        while refusal(hub, &invalid).await?.is_none() {}
        Ok(())
    }

    fn placements(hub: &ControlPlane) -> Api<DynamicObject> {
        let kind = ApiResource::erase::<Placement>(&Scope::Cluster);
        Api::all_with(hub.client(), &kind)
    }

    fn placement(name: &str, fields: &Value) -> Value {
        let mut placement = json!({
            "apiVersion": "placement.kubernetes-fleet.io/v1beta1", "kind": "ClusterResourcePlacement",
            "metadata": { "name": name },
            "spec": { "resourceSelectors": [{ "group": "", "version": "v1", "kind": "Namespace", "name": "shop" }] },
        });
        for (field, value) in fields.as_object().unwrap() {
            placement["spec"][field] = value.clone();
        }
        placement
    }

    /// Returns the error of creating a placement, which is not stored.
    async fn refusal(hub: &ControlPlane, placement: &Value) -> Result<Option<String>> {
        let try_only = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
        let object = from_value(placement.clone())?;
        match placements(hub).create(&try_only, &object).await {
            Ok(_) => Ok(None),
            Err(kube::Error::Api(status)) => Ok(Some(status.message.clone())),
            Err(error) => Err(error.into()),
        }
    }

    fn applying(field: &str, value: &Value) -> Value {
        json!({ "strategy": { "applyStrategy": { field: value } } })
    }

    fn policy(placement_type: &str, fields: &Value) -> Value {
        let mut policy = json!({ "placementType": placement_type });
        for (field, value) in fields.as_object().unwrap() {
            policy[field] = value.clone();
        }
        json!({ "policy": policy })
    }

    fn required(term: &Value) -> Value {
        json!({ "clusterAffinity": { "requiredDuringSchedulingIgnoredDuringExecution":
            { "clusterSelectorTerms": [{}, term] } } })
    }

    fn preferred(term: &Value) -> Value {
        json!({ "clusterAffinity": { "preferredDuringSchedulingIgnoredDuringExecution":
            [{ "weight": 1, "preference": term }] } })
    }

    /// Returns the strategies that the checks refuse, and their neighbours that pass.
    fn strategies() -> Vec<Value> {
        vec![
            json!({}),
            json!({ "statusReportingScope": "ClusterScopeOnly" }),
            json!({ "statusReportingScope": "NamespaceAccessible" }),
            json!({ "statusReportingScope": "NamespaceAccessible",
                "resourceSelectors": [{ "group": "", "version": "v1", "kind": "Namespace" }] }),
            json!({ "strategy": {} }),
            json!({ "strategy": { "type": "RollingUpdate" } }),
            json!({ "strategy": { "type": "External" } }),
            json!({ "strategy": { "type": "External", "rollingUpdate": {} } }),
            json!({ "strategy": { "rollingUpdate": { "maxUnavailable": 0, "maxSurge": 1 } } }),
            json!({ "strategy": { "rollingUpdate": { "maxUnavailable": "0" } } }),
            json!({ "strategy": { "rollingUpdate": { "maxUnavailable": -1 } } }),
            json!({ "strategy": { "rollingUpdate": { "maxSurge": -1 } } }),
            json!({ "strategy": { "deleteStrategy": { "propagationPolicy": "Delete" } } }),
            json!({ "strategy": { "deleteStrategy": { "propagationPolicy": "Abandon" } } }),
            json!({ "strategy": { "reportBackStrategy": { "type": "Disabled" } } }),
            json!({ "strategy": { "reportBackStrategy": { "type": "Mirror", "destination": "OriginalResource" } } }),
            applying("type", &json!("ClientSideApply")),
            applying("type", &json!("ReportDiff")),
            applying("serverSideApplyConfig", &json!({ "force": true })),
            json!({ "strategy": { "applyStrategy": { "type": "ServerSideApply",
                "serverSideApplyConfig": { "force": true } } } }),
        ]
    }

    /// Returns the same of policies.
    fn policies() -> Vec<Value> {
        let constraint = json!({ "topologySpreadConstraints": [{ "topologyKey": "region" }] });
        let sorter = json!({ "propertySorter": { "name": "a", "sortOrder": "Ascending" } });
        let selector = json!({ "propertySelector": { "matchExpressions": [] } });
        let two = json!({ "numberOfClusters": 2 });
        let of_two = |fields: Value| {
            let mut policy = policy("PickN", &fields);
            policy["policy"]["numberOfClusters"] = json!(2);
            policy
        };
        let named = |fields: Value| {
            let mut policy = policy("PickFixed", &fields);
            policy["policy"]["clusterNames"] = json!(["member1"]);
            policy
        };
        let labelled = |operator: &str, values: &[&str]| {
            let requirement = json!({ "key": "x.io/env", "operator": operator, "values": values });
            json!({ "labelSelector": { "matchExpressions": [requirement] } })
        };
        let tolerating =
            |value: &str| json!({ "key": "a", "value": value, "effect": "NoSchedule" });
        vec![
            policy("PickAll", &json!({})),
            policy("PickAll", &two),
            policy("PickAll", &json!({ "clusterNames": ["member1"] })),
            policy("PickAll", &constraint),
            policy("PickAll", &json!({ "affinity": preferred(&json!({})) })),
            policy("PickAll", &json!({ "affinity": required(&json!({})) })),
            policy("PickAll", &json!({ "affinity": required(&sorter) })),
            policy("PickFixed", &json!({})),
            policy("PickFixed", &json!({ "clusterNames": ["a", "b"] })),
            policy("PickFixed", &json!({ "clusterNames": ["a", "b", "a"] })),
            named(two),
            named(constraint.clone()),
            named(json!({ "affinity": required(&json!({})) })),
            named(json!({ "tolerations": [tolerating("b")] })),
            policy("PickN", &json!({})),
            of_two(json!({ "clusterNames": ["member1"] })),
            of_two(constraint),
            of_two(json!({ "affinity": preferred(&sorter) })),
            of_two(json!({ "affinity": preferred(&selector) })),
            of_two(json!({ "affinity": required(&selector) })),
            of_two(json!({ "affinity": preferred(&labelled("In", &["a"])) })),
            of_two(json!({ "affinity": preferred(&labelled("in", &["a"])) })),
            of_two(json!({ "affinity": required(&labelled("In", &[])) })),
            of_two(json!({ "affinity": required(&labelled("Exists", &["a"])) })),
            of_two(json!({ "affinity": required(&labelled("DoesNotExist", &[])) })),
            of_two(json!({ "affinity": required(&labelled("NotIn", &["-a"])) })),
            policy("PickFixed", &json!({ "clusterNames": ["A"] })),
            of_two(json!({ "tolerations": [tolerating("b"), tolerating("c")] })),
            of_two(json!({ "tolerations": [tolerating("b"), tolerating("c"), tolerating("b")] })),
        ]
    }

    /// Returns the same of properties of clusters.
    fn properties() -> Vec<Value> {
        const CPU: &str = "resources.kubernetes-fleet.io/total-cpu";
        let requiring = |requirements: &[(&str, &str, &str)]| {
            let expressions = requirements.iter().map(
                |(name, operator, value)| json!({ "name": name, "operator": operator, "values": [value] }),
            );
            let expressions: Vec<_> = expressions.collect();
            let selector = json!({ "propertySelector": { "matchExpressions": expressions } });
            policy("PickAll", &json!({ "affinity": required(&selector) }))
        };
        let sorting = |name: &str| {
            let sorter = json!({ "propertySorter": { "name": name, "sortOrder": "Ascending" } });
            let fields = json!({ "numberOfClusters": 2, "affinity": preferred(&sorter) });
            policy("PickN", &fields)
        };
        let names = [
            "kubernetes-fleet.io/node-count",
            "a b",
            "kubernetes.azure.com/vm-sizes/Standard_D8s_v3/count",
            "Standard_D8s_v3/count",
            "Standard_D8s_v3/count/$",
            "resources.kubernetes-fleet.io/total-no%^",
            "resources.kubernetes-fleet.io/cpu",
            "resources.kubernetes-fleet.io/free-cpu",
            "resources.kubernetes-fleet.io/available-nvidia.com/gpu",
        ];
        let values = ["1500m", "five"].map(|value| requiring(&[(CPU, "Gt", value)]));
        let pairs = [
            [("Eq", "1"), ("Eq", "1000m")],
            [("Eq", "1"), ("Eq", "2")],
            [("Ne", "1"), ("Eq", "1")],
            [("Ge", "1"), ("Le", "1")],
            [("Gt", "1"), ("Le", "1")],
            [("Lt", "1"), ("Ge", "1")],
            [("Ge", "2"), ("Le", "1")],
            [("Lt", "1"), ("Eq", "900m")],
            [("Lt", "1"), ("Eq", "1")],
            [("Gt", "1"), ("Gt", "2")],
        ];
        let pairs =
            pairs.map(|pair| requiring(&pair.map(|(operator, value)| (CPU, operator, value))));
        let of_names = names.map(|name| requiring(&[(name, "Ge", "5")]));
        [&of_names[..], &names.map(sorting), &values, &pairs].concat()
    }

    /// Case F59: the rule of the controller and the policy of the API refuse the same, in the same words.
    #[test]
    fn admission_agrees_with_the_rule() {
        isolated(test_name!(), async || {
            let hub = start().await?;
            guard(&hub).await?;
            let mut seen = BTreeSet::new();
            let specs = [strategies(), policies(), properties()].concat();
            let mut table: Vec<_> = specs.iter().map(|spec| placement("shop", spec)).collect();
            table.extend([63, 64].map(|length| placement(&"x".repeat(length), &json!({}))));
            for placement in table {
                let known: Vec<_> = problems(&from_value(placement.clone())?)
                    .iter()
                    .map(ToString::to_string)
                    .collect();
                let refused = refusal(&hub, &placement).await?;
                agrees(&placement, refused.as_deref(), &known, &mut seen)?;
            }
            // Each check has refused something.
            ensure!(seen.len() == 23, "{seen:#?}");
            Ok(())
        });
    }

    /// Case F25: a toleration that a placement has, it keeps, for nothing is taken away from where it is. And whatever a
    /// placement is, it can be deleted.
    #[test]
    fn tolerations_are_only_added() {
        isolated(test_name!(), async || {
            let hub = start().await?;
            let (api, parameters) = (placements(&hub), PostParams::default());
            // It was there before the checks were.
            let mut invalid = placement("old", &json!({ "policy": { "numberOfClusters": 2 } }));
            invalid["metadata"]["finalizers"] = json!(["x.io/wait"]);
            api.create(&parameters, &from_value(invalid)?).await?;
            guard(&hub).await?;

            let tolerating = |keys: &[&str]| {
                let keys = keys
                    .iter()
                    .map(|key| json!({ "key": key, "operator": "Exists" }));
                json!({ "policy": { "tolerations": keys.collect::<Vec<_>>() } })
            };
            let old = placement("shop", &tolerating(&["a", "b"]));
            api.create(&parameters, &from_value(old.clone())?).await?;
            let old = from_value(old)?;
            for keys in [&["b"][..], &["a"], &[], &["c"]] {
                let new = from_value(placement("shop", &tolerating(keys)))?;
                let known = changes(&old, &new);
                let patch = json!({ "spec": tolerating(keys) });
                let refused = merge_refusal(&api, "shop", &patch)
                    .await
                    .unwrap_or_default();
                ensure!(
                    known
                        .iter()
                        .any(|known| refused.contains(&known.to_string())),
                    "{keys:?}: {refused:?} against {known:?}"
                );
            }
            let more = json!({ "spec": tolerating(&["b", "c", "a"]) });
            merge(&api, "shop", &more).await?;
            for bad in [
                json!({ "operator": "Equal", "value": "x" }),
                json!({ "key": "d", "operator": "Exists", "value": "x" }),
                json!({ "key": "d ", "value": "x y" }),
            ] {
                let mut all = tolerating(&["a", "b", "c"]);
                let tolerations = all["policy"]["tolerations"].as_array_mut();
                tolerations.unwrap().push(bad);
                let patch = json!({ "spec": all });
                let refused = merge_refusal(&api, "shop", &patch)
                    .await
                    .unwrap_or_default();
                let is_told = refused.contains("has one without a key, or with Exists and a value")
                    || refused.contains("has a key or a value that no taint can have");
                ensure!(is_told, "{refused:?}");
            }

            let touched = json!({ "metadata": { "labels": { "touched": "true" } } });
            let refused = merge_refusal(&api, "old", &touched).await;
            ensure!(refused.is_some(), "it is invalid");
            api.delete("old", &DeleteParams::default()).await?;
            let released = json!({ "metadata": { "finalizers": null } });
            merge(&api, "old", &released).await?;
            ensure!(api.get_opt("old").await?.is_none(), "it is still there");
            Ok(())
        });
    }

    /// Without a policy all clusters are picked: the first one that names fewer would empty the others.
    #[test]
    fn first_policy_picks_all() {
        isolated(test_name!(), async || {
            let hub = start().await?;
            guard(&hub).await?;
            let (api, parameters) = (placements(&hub), PostParams::default());
            let plain = from_value(placement("plain", &json!({})))?;
            api.create(&parameters, &plain).await?;
            let one = json!({ "placementType": "PickFixed", "clusterNames": ["a"] });
            let one = json!({ "spec": { "policy": one } });
            let refused = merge_refusal(&api, "plain", &one).await.unwrap_or_default();
            let text = "the placement type is immutable";
            ensure!(refused.contains(text), "{refused:?}");
            let all = json!({ "spec": { "policy": { "placementType": "PickAll" } } });
            merge(&api, "plain", &all).await
        });
    }

    /// A taint that no toleration could name is refused, and one that is there already; in KubeFleet's words.
    #[test]
    fn taints_are_checked() {
        isolated(test_name!(), async || {
            let hub = start().await?;
            let members: Api<MemberCluster> = Api::all(hub.client());
            let try_only = PostParams {
                dry_run: true,
                ..PostParams::default()
            };
            let name = "taint key name segment must consist of alphanumeric characters";
            let prefix = "taint key prefix must be a lowercase DNS subdomain";
            let long = "x".repeat(64);
            let longer = format!("{}/a", ["x"; 128].join("."));
            for (taints, refusal) in [
                (&[("example.com/a", "x_1"), ("a", "")][..], None),
                (&[("a", "x"), ("a", "y")], None),
                (&[("a", "x"), ("a", "x")], Some("taints must be unique")),
                (&[("key@1:", "")], Some(name)),
                (&[("a/b/c", "")], Some(name)),
                (&[("a/", "")], Some(name)),
                (
                    &[(&long, "")],
                    Some("taint key name segment must be 63 characters or less"),
                ),
                (&[("A.b/c", "")], Some(prefix)),
                (&[("/c", "")], Some(prefix)),
                (
                    &[(&longer, "")],
                    Some("taint key prefix must be 253 characters or less"),
                ),
                (
                    &[("a", "x!")],
                    Some("taint value must be a valid label value"),
                ),
                (&[("a", &long)], Some("may not be more than 63")),
                (&[("", "")], Some("should be at least 1 chars long")),
            ] {
                let taints = taints.iter().map(
                    |(key, value)| json!({ "key": key, "value": value, "effect": "NoSchedule" }),
                );
                let member = json!({ "apiVersion": "cluster.kubernetes-fleet.io/v1beta1",
                    "kind": "MemberCluster", "metadata": { "name": "m1" }, "spec": {
                    "identity": { "kind": "User", "name": "agent" },
                    "taints": taints.collect::<Vec<_>>() } });
                let created = members
                    .create(&try_only, &from_value(member.clone())?)
                    .await;
                let refused = created.err().map(|error| error.to_string());
                let is_expected = is_refusal(refused.as_deref(), refusal);
                ensure!(is_expected, "{member}: {refused:?}");
            }
            Ok(())
        });
    }

    /// A placement that goes out by stages cannot go past them.
    #[test]
    fn external_stays() {
        isolated(test_name!(), async || {
            let hub = start().await?;
            let api = placements(&hub);
            let staged = placement("shop", &json!({ "strategy": { "type": "External" } }));
            api.create(&PostParams::default(), &from_value(staged)?)
                .await?;
            for strategy in [json!({ "type": "RollingUpdate" }), Value::Null] {
                let patch = json!({ "spec": { "strategy": strategy } });
                let refused = merge_refusal(&api, "shop", &patch)
                    .await
                    .unwrap_or_default();
                let text = "cannot change rollout strategy type from 'External' to other types";
                ensure!(refused.contains(text), "{strategy}: {refused:?}");
            }
            Ok(())
        });
    }

    /// Case F18: a decision or a selection stays as it was, whoever edits it: each cluster's version has a name.
    #[test]
    fn snapshots_cannot_be_edited() {
        isolated(test_name!(), async || {
            let hub = start().await?;
            for (kind, name, spec, edit) in [
                (
                    ApiResource::erase::<PolicySnapshot>(&Scope::Cluster),
                    "shop-0",
                    json!({ "policyHash": "YQ==" }),
                    json!({ "policyHash": "Yg==" }),
                ),
                (
                    ApiResource::erase::<ResourceSnapshot>(&Scope::Cluster),
                    "shop-0-snapshot",
                    json!({ "selectedResources": [] }),
                    json!({ "selectedResources": [{ "kind": "Namespace", "apiVersion": "v1" }] }),
                ),
            ] {
                let api: Api<DynamicObject> = Api::all_with(hub.client(), &kind);
                let object = DynamicObject::new(name, &kind).data(json!({ "spec": spec }));
                api.create(&PostParams::default(), &object).await?;
                let patch = json!({ "spec": edit });
                let refused = merge_refusal(&api, name, &patch).await.unwrap_or_default();
                let text = "spec is immutable";
                ensure!(refused.contains(text), "{name}: {refused:?}");
            }
            Ok(())
        });
    }
}

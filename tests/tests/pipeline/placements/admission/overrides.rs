//! Overrides that contradict themselves, or change the identity of an object, are refused when they are written. On the
//! real API only: the embedded one evaluates no admission policies.

mod real {
    use std::collections::BTreeSet;

    use anyhow::{Result, ensure};
    use fleet_api::overrides::OverrideSpec;
    use fleet_api::{ClusterResourceOverride, ResourceOverride};
    use kube::{Api, api::PostParams, core::DynamicObject, discovery::ApiResource};
    use pipeline_tests::{
        api::merge_refusal,
        control_plane::{ApiKind, ControlPlane},
        fleet::isolated,
        manifests, test_name,
    };
    use placement_rules::overrides::problems;
    use serde_json::{Value, from_value, json};

    use crate::admission::agrees;

    fn selector(name: &str) -> Value {
        json!({ "group": "", "version": "v1", "kind": "Namespace", "name": name })
    }

    fn all() -> Value {
        json!({ "clusterSelectorTerms": [] })
    }

    fn patches(path: &str) -> Value {
        json!([{ "op": "add", "path": path, "value": {} }])
    }

    fn spec(selectors: &str, selected: &Value, rule: &Value) -> Value {
        json!({ selectors: selected, "policy": { "overrideRules": [rule] } })
    }

    fn of_cluster(selected: &Value) -> Value {
        let rule = json!({ "clusterSelector": all(), "jsonPatchOverrides": patches("/data") });
        spec("clusterResourceSelectors", selected, &rule)
    }

    fn ruled(rule: &Value) -> Value {
        spec("clusterResourceSelectors", &json!([selector("shop")]), rule)
    }

    fn patching(patches: &Value) -> Value {
        ruled(&json!({ "clusterSelector": all(), "jsonPatchOverrides": patches }))
    }

    fn ruled_by_delete() -> Value {
        ruled(&json!({ "clusterSelector": all(), "overrideType": "Delete" }))
    }

    /// Paths that are refused, and their neighbours.
    const PATHS: [&str; 21] = [
        "",
        "/",
        "data",
        "/data",
        "/data/",
        "/data//a",
        "/a~1b",
        "/a~2b",
        "/a~",
        "/kind",
        "/kinds",
        "/apiVersion",
        "/status",
        "/status/a",
        "/metadata",
        "/metadata/name",
        "/metadata/labels",
        "/metadata/labels/a",
        "/metadata/labelsx",
        "/metadata/annotations/x.io~1a",
        "/spec/kind",
    ];

    /// Returns the overrides that the checks refuse, and their neighbours that pass.
    fn table() -> Vec<Value> {
        let with = |field: &str, value: Value| {
            let mut selector = selector("shop");
            selector[field] = value;
            of_cluster(&json!([selector]))
        };
        let selecting = |term: Value| {
            ruled(
                &json!({ "clusterSelector": { "clusterSelectorTerms": [term] },
                "jsonPatchOverrides": patches("/data") }),
            )
        };
        let twice = json!([selector("shop"), selector("shop")]);
        let rule = json!({ "clusterSelector": all(), "jsonPatchOverrides": patches("/data") });
        let mut both = rule.clone();
        both["overrideType"] = json!("Delete");
        let mut table = vec![
            of_cluster(&json!([selector("shop"), selector("other")])),
            of_cluster(&twice),
            with("name", json!("")),
            with("labelSelector", json!({ "matchLabels": { "a": "b" } })),
            with("selectionScope", json!("NamespaceOnly")),
            with("selectionScope", json!("NamespaceWithResources")),
            spec("resourceSelectors", &json!([selector("shop")]), &rule),
            spec("resourceSelectors", &twice, &rule),
            selecting(json!({ "labelSelector": { "matchLabels": { "a": "b" } } })),
            selecting(json!({ "labelSelector": {} })),
            selecting(json!({})),
            selecting(json!({ "propertySelector": { "matchExpressions": [] } })),
            selecting(json!({ "propertySorter": { "name": "a", "sortOrder": "Ascending" } })),
            ruled_by_delete(),
            ruled(&both),
            ruled(&json!({ "clusterSelector": all() })),
            ruled(&json!({ "jsonPatchOverrides": patches("/data") })),
            patching(&json!([{ "op": "remove", "path": "/data" }])),
            patching(&json!([{ "op": "remove", "path": "/data", "value": "a" }])),
        ];
        table.extend(PATHS.map(|path| patching(&patches(path))));
        table
    }

    /// Returns the error of creating an override, which is not stored.
    async fn refusal(hub: &ControlPlane, name: &str, spec: &Value) -> Result<Option<String>> {
        let (kind, api): (_, fn(_, &ApiResource) -> Api<DynamicObject>) =
            if spec.get("resourceSelectors").is_some() {
                let within = |client, kind: &_| Api::namespaced_with(client, "shop", kind);
                (ApiResource::erase::<ResourceOverride>(&()), within)
            } else {
                let all = |client, kind: &_| Api::all_with(client, kind);
                (ApiResource::erase::<ClusterResourceOverride>(&()), all)
            };
        let try_only = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
        let object = DynamicObject::new(name, &kind).data(json!({ "spec": spec }));
        match api(hub.client(), &kind).create(&try_only, &object).await {
            Ok(_) => Ok(None),
            Err(kube::Error::Api(status)) => Ok(Some(status.message.clone())),
            Err(error) => Err(error.into()),
        }
    }

    async fn start() -> Result<ControlPlane> {
        let hub = ControlPlane::start("hub", ApiKind::Real).await?;
        hub.install_crds(&[manifests::path("placement/crds")])
            .await?;
        hub.namespace("shop").await?;
        Ok(hub)
    }

    /// Case F61: the rule of the controller and the policy of the API refuse the same, in the same words.
    #[test]
    fn admission_agrees_with_the_rule() {
        isolated(test_name!(), async || {
            let hub = start().await?;
            manifests::apply(&hub.client(), "placement/hub/overrides.yaml").await?;
            let invalid = ruled(&json!({ "clusterSelector": all() }));
            // The admission has a watch of its own: repeat until it has seen them.
            while refusal(&hub, "one", &invalid).await?.is_none() {}
            let mut seen = BTreeSet::new();
            let named = [63, 64].map(|length| ("x".repeat(length), ruled_by_delete()));
            let table = table().into_iter().map(|spec| ("one".to_owned(), spec));
            for (name, spec) in table.chain(named) {
                let read: OverrideSpec = from_value(spec.clone())?;
                let known = problems(&name, &read);
                let known: Vec<_> = known.iter().map(ToString::to_string).collect();
                let refused = refusal(&hub, &name, &spec).await?;
                agrees(&spec, refused.as_deref(), &known, &mut seen)?;
            }
            // Each check has refused something.
            ensure!(seen.len() == 12, "{seen:#?}");
            Ok(())
        });
    }

    /// Case F61: which placement an override is about stays as it is, and a cluster-scoped one is for cluster-scoped ones.
    #[test]
    fn placement_is_immutable() {
        isolated(test_name!(), async || {
            let hub = start().await?;
            let overrides: Api<ClusterResourceOverride> = Api::all(hub.client());
            let one = |name: &str, placement: Value| -> Result<ClusterResourceOverride> {
                let mut spec = of_cluster(&json!([selector("shop")]));
                spec["placement"] = placement;
                Ok(from_value(json!({
                    "apiVersion": ClusterResourceOverride::API_VERSION,
                    "kind": ClusterResourceOverride::KIND,
                    "metadata": { "name": name }, "spec": spec,
                }))?)
            };
            let parameters = PostParams::default();
            let named = one("named", json!({ "name": "crp" }))?;
            overrides.create(&parameters, &named).await?;
            overrides
                .create(&parameters, &one("unnamed", Value::Null)?)
                .await?;
            for (name, placement) in [
                ("named", json!({ "name": "other" })),
                ("named", Value::Null),
                ("unnamed", json!({ "name": "crp" })),
            ] {
                let patch = json!({ "spec": { "placement": placement } });
                let refused = merge_refusal(&overrides, name, &patch).await;
                let refused = refused.unwrap_or_default();
                let text = "The placement field is immutable";
                ensure!(refused.contains(text), "{name}: {refused:?}");
            }
            let namespaced = one(
                "namespaced",
                json!({ "name": "crp", "scope": "Namespaced" }),
            )?;
            let refused = overrides.create(&parameters, &namespaced).await.err();
            let refused = refused.map(|error| error.to_string()).unwrap_or_default();
            let text = "cannot be Namespaced scope";
            ensure!(refused.contains(text), "{refused:?}");
            Ok(())
        });
    }
}

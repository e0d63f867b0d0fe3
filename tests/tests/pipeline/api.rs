//! Our CRDs and types against an API server.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails so")]

use std::collections::BTreeSet;

use anyhow::Result;
use karmada_api::{Cluster, MultiClusterIngress, Remedy, ResourceBinding};
use kube::{
    Api, ResourceExt,
    api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams},
};
use pipeline_tests::{
    api::{merge, merge_status},
    control_plane::{ApiKind, ControlPlane},
    crds, on_both,
};
use serde_json::{Value, json};

async fn karmada(server: ApiKind) -> Result<ControlPlane> {
    let karmada = ControlPlane::start("karmada", server).await?;
    karmada.install_crds(&crds::karmada()).await?;
    karmada.namespace("bench").await?;
    Ok(karmada)
}

fn fixture(name: &str) -> Value {
    let path = format!("{}/fixtures/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Returns the fields of `sent` that `kept` lacks or changes.
fn lost(sent: &Value, kept: &Value, path: &str) -> Vec<String> {
    match (sent, kept) {
        (Value::Object(sent), Value::Object(kept)) => sent
            .iter()
            .flat_map(|(key, value)| {
                lost(
                    value,
                    kept.get(key).unwrap_or(&Value::Null),
                    &format!("{path}.{key}"),
                )
            })
            .collect(),
        (Value::Array(sent), Value::Array(kept)) if sent.len() == kept.len() => sent
            .iter()
            .zip(kept)
            .flat_map(|(sent, kept)| lost(sent, kept, path))
            .collect(),
        _ if sent == kept => vec![],
        _ => vec![path.to_owned()],
    }
}

/// Creates an object with its status, and returns the fields that the API server lost.
async fn lost_on_the_way(
    karmada: &ControlPlane,
    resource: &ApiResource,
    object: &Value,
) -> Result<Vec<String>> {
    let mut sent = object.clone();
    let namespace = sent["metadata"]["namespace"]
        .as_str()
        .map(ToOwned::to_owned);
    let api: Api<DynamicObject> = match namespace {
        Some(namespace) => Api::namespaced_with(karmada.client(), &namespace, resource),
        None => Api::all_with(karmada.client(), resource),
    };
    for own in ["creationTimestamp", "generation", "resourceVersion", "uid"] {
        sent["metadata"].as_object_mut().unwrap().remove(own);
    }
    let created = serde_json::from_value(sent.clone())?;
    let name = api
        .create(&PostParams::default(), &created)
        .await?
        .name_any();
    if sent["status"].is_object() {
        merge_status(&api, &name, &sent["status"]).await?;
    }
    let kept = serde_json::to_value(api.get(&name).await?)?;
    Ok(lost(&sent, &kept, ""))
}

/// Objects of a real Karmada lose no field.
async fn real_objects_keep_their_fields(server: ApiKind) -> Result<()> {
    let karmada = karmada(server).await?;
    for (name, resource) in [
        ("cluster", ApiResource::erase::<Cluster>(&())),
        ("remedy", ApiResource::erase::<Remedy>(&())),
        (
            "multiclusteringress",
            ApiResource::erase::<MultiClusterIngress>(&()),
        ),
        (
            "resourcebinding",
            ApiResource::erase::<ResourceBinding>(&()),
        ),
    ] {
        let lost = lost_on_the_way(&karmada, &resource, &fixture(name)).await?;
        assert_eq!(lost, Vec::<String>::new(), "{name}");
    }
    let cluster: Cluster = Api::all(karmada.client()).get("member1").await?;
    assert_eq!(cluster.conditions().len(), 3);
    Ok(())
}

async fn refusal(karmada: &ControlPlane, spec: Value) -> String {
    let resource = ApiResource::erase::<Remedy>(&());
    let api: Api<DynamicObject> = Api::all_with(karmada.client(), &resource);
    let remedy = DynamicObject::new("bad", &resource).data(json!({ "spec": spec }));
    match api.create(&PostParams::default(), &remedy).await {
        Err(kube::Error::Api(status)) if status.code == 422 => status.message,
        other => panic!("not refused: {other:?}"),
    }
}

/// A Remedy with an unknown operator or without a required field is refused.
async fn invalid_remedy_is_refused(server: ApiKind) -> Result<()> {
    let karmada = karmada(server).await?;
    let matching = |requirement: Value| json!({ "decisionMatches": [{ "clusterConditionMatch": requirement }] });
    let unknown =
        matching(json!({ "conditionType": "A", "operator": "Similar", "conditionStatus": "True" }));
    let message = refusal(&karmada, unknown).await;
    assert!(
        message.contains(r#"Unsupported value: "Similar": supported values: "Equal", "NotEqual""#),
        "{message}"
    );
    let missing = matching(json!({ "conditionType": "A", "operator": "Equal" }));
    let message = refusal(&karmada, missing).await;
    assert!(
        message.contains("conditionStatus: Required value"),
        "{message}"
    );
    Ok(())
}

/// A Remedy with an empty list is refused with the field to leave out.
async fn empty_list_is_refused(server: ApiKind) -> Result<()> {
    let karmada = karmada(server).await?;
    for affinity in [json!({}), json!({ "clusterNames": [] })] {
        let message = refusal(&karmada, json!({ "clusterAffinity": affinity })).await;
        let hint = "spec.clusterAffinity: Invalid value: without clusterNames no cluster is selected; \
                    leave clusterAffinity out to select every cluster";
        assert!(message.contains(hint), "{message}");
    }
    // Absent is every cluster, and at once.
    let remedies: Api<Remedy> = Api::all(karmada.client());
    let open: Remedy =
        serde_json::from_value(json!({ "metadata": { "name": "all" }, "spec": {} }))?;
    remedies.create(&PostParams::default(), &open).await?;
    Ok(())
}

/// Returns conditions as other clients leave them, all of which a real Karmada takes.
fn careless_conditions() -> [Value; 6] {
    [
        json!({ "type": "A", "status": "True", "reason": null, "message": null, "lastTransitionTime": null }),
        json!({ "type": "B", "status": "False", "reason": "", "message": "" }),
        json!({ "type": "C", "status": null, "observedGeneration": null }),
        json!({ "type": "D", "status": "Unknown", "observedGeneration": 7 }),
        json!({ "type": null, "status": "True" }),
        json!({}),
    ]
}

/// A cluster is stored and read with conditions as careless clients leave them.
async fn careless_conditions_are_read(server: ApiKind) -> Result<()> {
    let karmada = karmada(server).await?;
    lost_on_the_way(
        &karmada,
        &ApiResource::erase::<Cluster>(&()),
        &fixture("cluster"),
    )
    .await?;
    let raw: Api<DynamicObject> =
        Api::all_with(karmada.client(), &ApiResource::erase::<Cluster>(&()));
    let mut cluster = raw.get("member1").await?;
    let conditions = cluster.data["status"]["conditions"].as_array_mut();
    conditions.unwrap().extend(careless_conditions());
    // Not by a merge patch, from whose lists kube-apiserver removes null.
    raw.replace_status("member1", &PostParams::default(), &cluster)
        .await?;
    let clusters: Api<Cluster> = Api::all(karmada.client());
    let stored = clusters.get("member1").await?;
    let read = |cluster: &Cluster, kind: &str| cluster.condition(kind).map(|c| c.status.clone());
    for (kind, status) in [
        ("Ready", "True"),
        ("A", "True"),
        ("B", "False"),
        ("C", ""),
        ("D", "Unknown"),
    ] {
        assert_eq!(read(&stored, kind).as_deref(), Some(status), "{kind}");
    }
    // The agent's patch tests a whole element: a null must have stayed one.
    let test = json!([
        { "op": "test", "path": "/status/conditions/3", "value": careless_conditions()[0] },
        { "op": "replace", "path": "/status/conditions/3/status", "value": "False" },
    ]);
    let patch: Patch<()> = Patch::Json(serde_json::from_value(test)?);
    let changed = clusters
        .patch_status("member1", &PatchParams::default(), &patch)
        .await?;
    assert_eq!(read(&changed, "A").as_deref(), Some("False"));
    Ok(())
}

/// An action unknown to us is kept.
async fn unknown_action_is_kept(server: ApiKind) -> Result<()> {
    let karmada = karmada(server).await?;
    let remedies: Api<Remedy> = Api::all(karmada.client());
    let remedy: Remedy = serde_json::from_value(json!({
        "apiVersion": "remedy.karmada.io/v1alpha1", "kind": "Remedy",
        "metadata": { "name": "drain" }, "spec": { "actions": ["Drain"] } }))?;
    remedies.create(&PostParams::default(), &remedy).await?;
    assert_eq!(
        remedies.get("drain").await?.spec.actions,
        Some(vec!["Drain".to_owned()])
    );
    Ok(())
}

/// Returns the column titles and the cells of the first row of a table, which `kubectl get` prints.
async fn table(karmada: &ControlPlane, path: &str) -> Result<(Vec<String>, Vec<Value>)> {
    let request = http::Request::get(path)
        .header("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
        .body(Vec::new())?;
    let table: Value = karmada.client().request(request).await?;
    let columns = table["columnDefinitions"].as_array().unwrap().iter();
    let titles = columns
        .map(|column| column["name"].as_str().unwrap().to_owned())
        .collect();
    Ok((
        titles,
        table["rows"][0]["cells"].as_array().unwrap().clone(),
    ))
}

/// Tables have the columns that matter.
async fn tables_have_our_columns(server: ApiKind) -> Result<()> {
    let karmada = karmada(server).await?;
    for (kind, resource) in [
        ("remedy", ApiResource::erase::<Remedy>(&())),
        (
            "multiclusteringress",
            ApiResource::erase::<MultiClusterIngress>(&()),
        ),
    ] {
        lost_on_the_way(&karmada, &resource, &fixture(kind)).await?;
    }
    let remedies: Api<Remedy> = Api::all(karmada.client());
    let expires = json!({ "remedy.karmada-rs.io/expires-at": "2026-11-20T18:00:00Z" });
    let expires = json!({ "metadata": { "annotations": expires } });
    merge(&remedies, "dns", &expires).await?;
    let accepted = json!({ "type": "Accepted", "status": "True", "reason": "Accepted",
        "message": "", "lastTransitionTime": "2026-11-20T08:00:00Z" });
    let status = json!({ "activeClusters": 2, "conditions": [accepted] });
    merge_status(&remedies, "dns", &status).await?;
    let (titles, cells) = table(&karmada, "/apis/remedy.karmada.io/v1alpha1/remedies").await?;
    assert_eq!(
        titles,
        ["Name", "Actions", "Active", "Accepted", "Expires", "Age"]
    );
    assert_eq!(
        cells[..5],
        [
            json!("dns"),
            json!(r#"["TrafficControl"]"#),
            json!(2),
            json!("True"),
            json!("2026-11-20T18:00:00Z")
        ]
    );
    let ingresses: Api<MultiClusterIngress> = Api::namespaced(karmada.client(), "bench");
    let blocked = json!({ "trafficBlockClusters": ["c00001"] });
    merge_status(&ingresses, "m00000", &blocked).await?;
    let path = "/apis/networking.karmada.io/v1alpha1/multiclusteringresses";
    let (titles, cells) = table(&karmada, path).await?;
    assert_eq!(
        titles,
        ["Name", "Class", "Hosts", "Blocked", "Address", "Age"]
    );
    assert_eq!(
        cells[1..5],
        ["fake", "h0.example.com", r#"["c00001"]"#, "1.2.3.5"]
    );
    Ok(())
}

/// Short names and categories are served.
async fn short_names_are_served(server: ApiKind) -> Result<()> {
    let karmada = karmada(server).await?;
    let mut categories = BTreeSet::new();
    for version in [
        "remedy.karmada.io/v1alpha1",
        "networking.karmada.io/v1alpha1",
    ] {
        let resources = karmada
            .client()
            .list_api_group_resources(version)
            .await?
            .resources;
        for resource in resources
            .into_iter()
            .filter(|resource| !resource.name.contains('/'))
        {
            for category in resource.categories.unwrap_or_default() {
                categories.insert((resource.name.clone(), category));
            }
            if resource.name == "multiclusteringresses" {
                assert_eq!(resource.short_names, Some(vec!["mci".to_owned()]));
            }
        }
    }
    let wanted = ["multiclusteringresses", "remedies"]
        .map(|name| (name.to_owned(), "karmada-io".to_owned()));
    assert_eq!(categories, BTreeSet::from(wanted));
    Ok(())
}

on_both!(
    real_objects_keep_their_fields,
    invalid_remedy_is_refused,
    empty_list_is_refused,
    careless_conditions_are_read,
    unknown_action_is_kept,
    tables_have_our_columns,
    short_names_are_served,
);

//! Override policies change what members get.

use anyhow::{Result, ensure};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
use karmada_api::{ClusterOverridePolicy, OverridePolicy};
use kube::Api;
use pipeline_tests::{
    control_plane::ApiKind,
    fleet::Member,
    on_both,
    propagation::{PropagationFleet, create, namespaced},
    wait::{until, until_event},
};
use serde_json::{Value, json};

use super::{WEB, deployments, maps};

/// Parts of images with an operator, a value, and what [`OF_ALL`] becomes.
const IMAGES: [[&str; 4]; 10] = [
    ["Registry", "add", ":5000", "r.example.com:5000/shop/web:1"],
    ["Registry", "replace", "m.io", "m.io/shop/web:1"],
    ["Registry", "remove", "", "shop/web:1"],
    ["Repository", "add", "-x", "r.example.com/shop/web-x:1"],
    ["Repository", "replace", "a/b", "r.example.com/a/b:1"],
    ["Repository", "remove", "", "r.example.com/:1"],
    ["Tag", "add", "-x", "r.example.com/shop/web:1-x"],
    ["Tag", "replace", "2", "r.example.com/shop/web:2"],
    ["Tag", "remove", "", "r.example.com/shop/web"],
    [
        "Tag",
        "replace",
        "sha256:e3b0c44298fc1c149afbf4c8996fb924",
        "r.example.com/shop/web@sha256:e3b0c44298fc1c149afbf4c8996fb924",
    ],
];

/// The container whose image shows the policies in the order in which they acted.
const ORDER: usize = IMAGES.len();

/// The container with a command and arguments, whose image is changed in two ways.
const WORDS: usize = ORDER + 1;

const CONTAINERS: usize = WORDS + 1;

/// The image of every container in the template.
const IN_TEMPLATE: &str = "shop/web:1";

/// The image of every container after the policy for the whole control plane, the first to act.
const OF_ALL: &str = "r.example.com/shop/web:1";

fn template() -> Value {
    let containers = (0..CONTAINERS).map(|number| {
        json!({ "name": format!("c{number}"), "image": IN_TEMPLATE,
            "command": ["run", "old"], "args": ["a", "old"] })
    });
    json!({
        "metadata": {
            "name": WEB,
            "labels": { "replaced": "1", "removed": "1" },
            "annotations": { "replaced": "1", "removed": "1" },
        },
        "spec": {
            "minReadySeconds": 5,
            "selector": { "matchLabels": { "app": WEB } },
            "template": {
                "metadata": { "labels": { "app": WEB } },
                "spec": {
                    "initContainers": [{ "name": "init", "image": IN_TEMPLATE }],
                    "containers": containers.collect::<Vec<_>>(),
                },
            },
        },
    })
}

fn image_path(container: usize) -> String {
    format!("/spec/template/spec/containers/{container}/image")
}

fn image_overrider(container: usize, component: &str, operator: &str, value: &str) -> Value {
    json!({ "predicate": { "path": image_path(container) },
        "component": component, "operator": operator, "value": value })
}

/// Returns the overrider by which a policy leaves a mark in the image [`ORDER`].
fn mark(mark: &str) -> Value {
    image_overrider(ORDER, "Tag", "add", mark)
}

/// Returns every operator of every overrider. Each kind changes something that those before it have made.
fn every_operator() -> Value {
    let images = IMAGES.iter().enumerate();
    let images = images.map(|(container, [component, operator, value, _])| {
        image_overrider(container, component, operator, value)
    });
    let images = images.chain([
        image_overrider(WORDS, "Tag", "add", "-image"),
        mark("-name"),
    ]);
    let name = format!("c{WORDS}");
    let words = |operator: &str, word: &str| json!({ "containerName": name, "operator": operator, "value": [word] });
    let entries = json!([
        { "operator": "add", "value": { "added": "{\"a\":1}" } },
        { "operator": "replace", "value": { "replaced": "2", "absent": "2" } },
        { "operator": "remove", "value": { "removed": "", "absent": "" } },
    ]);
    let mut labels = entries.clone();
    labels[0]["value"]["added"] = "1".into();
    let in_text = json!({ "subPath": "/a", "operator": "replace", "value": 2 });
    json!({
        "imageOverrider": images.collect::<Vec<_>>(),
        "commandOverrider": [words("add", "new"), words("remove", "old")],
        "argsOverrider": [words("remove", "old"), words("add", "new")],
        "labelsOverrider": labels,
        "annotationsOverrider": entries,
        "fieldOverrider": [{ "fieldPath": "/metadata/annotations/added", "json": [in_text] }],
        "plaintext": [
            { "path": "/metadata/annotations/plain", "operator": "add", "value": "1" },
            { "path": "/metadata/labels/added", "operator": "replace", "value": "plain" },
            { "path": image_path(WORDS), "operator": "replace", "value": "plain" },
            { "path": "/spec/minReadySeconds", "operator": "remove" },
        ],
    })
}

/// Returns a policy for what a selector selects, in the first member.
fn in_first(name: &str, selector: &Value, overriders: &Value) -> Value {
    let rule = json!({ "targetCluster": { "clusterNames": [Member(1).name()] },
        "overriders": overriders });
    json!({ "metadata": { "name": name },
        "spec": { "resourceSelectors": [selector], "overrideRules": [rule] } })
}

/// Creates the policies. Their names are in another order than their ranks.
async fn create_policies(fleet: &PropagationFleet) -> Result<()> {
    let of_all: Api<ClusterOverridePolicy> = Api::all(fleet.karmada.client());
    let registry =
        json!({ "component": "Registry", "operator": "replace", "value": "r.example.com" });
    // The older form, of one rule.
    let spec = json!({ "overriders": { "imageOverrider": [registry] } });
    create(
        &of_all,
        json!({ "metadata": { "name": "every-cluster" }, "spec": spec }),
    )
    .await?;

    let overrides: Api<OverridePolicy> = namespaced(fleet.karmada.client());
    let kind = json!({ "apiVersion": "apps/v1", "kind": "Deployment" });
    let mut named = kind.clone();
    named["name"] = WEB.into();
    for policy in [
        in_first("a", &named, &every_operator()),
        in_first("b-2", &kind, &json!({ "imageOverrider": [mark("-kind2")] })),
        in_first("b-1", &kind, &json!({ "imageOverrider": [mark("-kind1")] })),
        in_first("texts", &texts(), &every_operator_in_texts()),
    ] {
        create(&overrides, policy).await?;
    }
    Ok(())
}

/// Returns the selector of the `ConfigMap` with texts.
fn texts() -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": WEB })
}

/// Returns every operator within texts that are JSON and YAML.
fn every_operator_in_texts() -> Value {
    let patches = json!([
        { "subPath": "/added", "operator": "add", "value": { "b": [1] } },
        { "subPath": "/replaced", "operator": "replace", "value": 2 },
        { "subPath": "/list/0", "operator": "remove" },
    ]);
    json!({ "fieldOverrider": [
        { "fieldPath": "/data/json", "json": patches },
        { "fieldPath": "/data/yaml", "yaml": patches },
    ] })
}

fn images(copy: &Deployment) -> Vec<String> {
    let pod = copy
        .spec
        .as_ref()
        .and_then(|spec| spec.template.spec.as_ref());
    let containers = pod.map(|pod| pod.containers.as_slice()).unwrap_or_default();
    let images = containers.iter().map(|container| container.image.clone());
    images.flatten().collect()
}

/// Waits until the copy in a member has these images, and returns it.
async fn has_images(fleet: &PropagationFleet, member: Member, wanted: &[String]) -> Result<Value> {
    let copies = deployments(fleet.member(member));
    until(&copies, WEB, &format!("{wanted:?}"), |copy| {
        copy.is_some_and(|copy| images(copy) == wanted)
    })
    .await?;
    Ok(serde_json::to_value(copies.get(WEB).await?)?)
}

/// Returns the labels or annotations without those of Karmada.
fn of_user(entries: &Value) -> Value {
    let mut entries = entries.as_object().cloned().unwrap_or_default();
    entries
        .retain(|key, _| !key.contains("karmada.io/") && !key.starts_with("deployment.kubernetes"));
    entries.into()
}

/// Case P12: each operator of each overrider acts in the clusters of its rule, kind by kind; the policies act by
/// scope, rank and name.
async fn every_overrider_acts_in_order(server: ApiKind) -> Result<()> {
    let fleet = PropagationFleet::start(server, 2).await?;
    create(&deployments(&fleet.karmada), template()).await?;
    let text = json!({ "replaced": 1, "list": ["a", "b"] }).to_string();
    let yaml = "replaced: 1\nlist:\n- a\n- b\n";
    let settings = json!({ "metadata": { "name": WEB }, "data": { "json": text, "yaml": yaml } });
    create(&maps(&fleet.karmada), settings).await?;
    create_policies(&fleet).await?;
    let deployment = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": WEB });
    let spec = json!({ "resourceSelectors": [deployment, texts()], "placement": {} });
    fleet.create_policy(WEB, spec).await?;
    let _programs = fleet.run().await?;

    let mut expected: Vec<String> = IMAGES
        .iter()
        .map(|[.., image]| (*image).to_owned())
        .collect();
    expected.push(format!("{OF_ALL}-kind1-kind2-name"));
    expected.push("plain".to_owned());
    let first = has_images(&fleet, Member(1), &expected).await?;
    let pod = &first["spec"]["template"]["spec"];
    assert_eq!(pod["initContainers"][0]["image"], IN_TEMPLATE);
    assert_eq!(pod["containers"][WORDS]["command"], json!(["run", "new"]));
    assert_eq!(pod["containers"][WORDS]["args"], json!(["a", "new"]));
    assert_eq!(pod["containers"][0]["command"], json!(["run", "old"]));
    assert_eq!(pod["containers"][0]["args"], json!(["a", "old"]));
    assert_eq!(first["spec"].get("minReadySeconds"), None);
    assert_eq!(
        of_user(&first["metadata"]["labels"]),
        json!({ "added": "plain", "replaced": "2" })
    );
    assert_eq!(
        of_user(&first["metadata"]["annotations"]),
        json!({ "added": "{\"a\":2}", "plain": "1", "replaced": "2" })
    );

    let second = has_images(&fleet, Member(2), &vec![OF_ALL.to_owned(); CONTAINERS]).await?;
    let template = template();
    for field in ["labels", "annotations"] {
        assert_eq!(
            of_user(&second["metadata"][field]),
            template["metadata"][field]
        );
    }
    assert_eq!(second["spec"]["minReadySeconds"], 5);
    has_texts(
        &fleet,
        Member(1),
        &json!({ "added": { "b": [1] }, "replaced": 2, "list": ["b"] }),
    )
    .await?;
    has_texts(
        &fleet,
        Member(2),
        &json!({ "replaced": 1, "list": ["a", "b"] }),
    )
    .await
}

/// Waits until both texts in a member mean this.
async fn has_texts(fleet: &PropagationFleet, member: Member, wanted: &Value) -> Result<()> {
    let text = |copy: &ConfigMap, key: &str| copy.data.as_ref()?.get(key).cloned();
    let json = |copy: &ConfigMap| serde_json::from_str::<Value>(&text(copy, "json")?).ok();
    let yaml = |copy: &ConfigMap| serde_saphyr::from_str::<Value>(&text(copy, "yaml")?).ok();
    let copies = maps(fleet.member(member));
    until(&copies, WEB, &wanted.to_string(), |copy| {
        let both = copy.map(|copy| [json(copy), yaml(copy)]);
        both.is_some_and(|both| both.iter().all(|text| text.as_ref() == Some(wanted)))
    })
    .await?;
    Ok(())
}

/// Case P69: the rule of a namespace's policy that leads out of it is refused with an Event, and the copy stays.
async fn escape_is_refused(server: ApiKind) -> Result<()> {
    let fleet = PropagationFleet::start(server, 1).await?;
    let _programs = fleet.run().await?;
    let notes = json!({ "metadata": { "name": WEB }, "data": { "a": "b" } });
    create(&maps(&fleet.karmada), notes).await?;
    let selector = json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": WEB });
    let spec = json!({ "resourceSelectors": [selector],
        "placement": { "clusterAffinity": { "clusterNames": ["member1"] } } });
    fleet.create_policy(WEB, spec).await?;
    let copies = maps(fleet.member(Member(1)));
    until(&copies, WEB, "there", |copy| copy.is_some()).await?;

    let overriders = json!({ "plaintext": [
        { "path": "/metadata/namespace", "operator": "replace", "value": "kube-system" },
    ] });
    let policy = json!({ "metadata": { "name": WEB }, "spec": { "resourceSelectors": [selector],
        "overrideRules": [{ "overriders": overriders }] } });
    let policies: Api<OverridePolicy> = namespaced(fleet.karmada.client());
    create(&policies, policy).await?;
    let client = fleet.karmada.client();
    until_event(&client, "ConfigMap", WEB, "ApplyOverridePolicyFailed").await?;
    let member = fleet.member(Member(1)).client();
    let system: Api<ConfigMap> = Api::namespaced(member, "kube-system");
    ensure!(system.get_opt(WEB).await?.is_none(), "it is in kube-system");
    ensure!(copies.get_opt(WEB).await?.is_some(), "the copy is gone");
    Ok(())
}

on_both!(long: escape_is_refused, every_overrider_acts_in_order);

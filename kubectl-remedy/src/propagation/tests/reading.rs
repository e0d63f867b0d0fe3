//! The reads of an API, by every form of the argument.

use clap::Parser;
use embedded_apiserver::ApiServer;
use kube::api::{ApiResource, DynamicObject, PostParams};
use kube::{Api, Client};
use serde_json::{Value, from_value, json};

use super::recorded;
use crate::args::{Args, Command, FleetCommand, WhyArgs};
use crate::error::Error;
use crate::propagation::named::Named;
use crate::propagation::report::Report;
use crate::propagation::{gather, tests::parsed};

/// Returns the client of an API with one cluster and the Deployment `web`, as a whole Karmada left it.
async fn karmada() -> Client {
    let server = ApiServer::new();
    for definition in karmada_api::crd::fleet().unwrap() {
        server.install(&definition).unwrap();
    }
    let client = Client::new(server.service(), "default");
    for name in ["shop", "karmada-es-member1", "karmada-es-member2"] {
        let namespace =
            json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
        create(&client, "namespaces", namespace).await;
    }
    let template = create(&client, "deployments", recorded!("template-deployment")).await;
    create(
        &client,
        "propagationpolicies",
        recorded!("propagationpolicy"),
    )
    .await;
    let mut binding: Value = recorded!("resourcebinding-web-deployment");
    binding["metadata"]["ownerReferences"][0]["uid"] = json!(template.metadata.uid);
    create(&client, "resourcebindings", binding).await;
    let lists: [Vec<Value>; 2] = [recorded!("works-member1"), recorded!("works-member2")];
    for mut work in lists.into_iter().flatten() {
        // Their owners are not here, and an object without its owners is collected.
        work["metadata"]["ownerReferences"] = Value::Null;
        create(&client, "works", work).await;
    }
    for name in ["member1", "member2"] {
        let ready = json!({ "type": "Ready", "status": "True", "reason": "ClusterReady",
            "message": "", "lastTransitionTime": "2026-11-20T08:00:00Z" });
        let cluster = json!({ "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster",
            "metadata": { "name": name }, "spec": { "syncMode": "Push" },
            "status": { "conditions": [ready] } });
        create(&client, "clusters", cluster).await;
    }
    client
}

/// Creates an object with its status.
async fn create(client: &Client, plural: &str, mut object: Value) -> DynamicObject {
    let kind = objects::GroupVersionKind::of(&object);
    let resource = ApiResource {
        api_version: kind.api_version(),
        group: kind.group,
        version: kind.version,
        kind: kind.kind,
        plural: plural.to_owned(),
    };
    let metadata = object["metadata"].as_object_mut().unwrap();
    for own in [
        "resourceVersion",
        "uid",
        "managedFields",
        "creationTimestamp",
        "generation",
    ] {
        metadata.remove(own);
    }
    let object: DynamicObject = from_value(object).unwrap();
    let api: Api<DynamicObject> = match &object.metadata.namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let created = api.create(&PostParams::default(), &object).await.unwrap();
    if object.data.get("status").is_none() {
        return created;
    }
    let status = json!({ "status": object.data["status"] });
    let patch = kube::api::Patch::Merge(status);
    let name = created.metadata.name.clone().unwrap();
    api.patch_status(&name, &kube::api::PatchParams::default(), &patch)
        .await
        .unwrap()
}

fn args(subject: &str) -> WhyArgs {
    let args = Args::try_parse_from(["kubectl-remedy", "why", subject]).unwrap();
    match args.command {
        Command::Fleet(FleetCommand::Why(args)) => args,
        _ => unreachable!("the line has the command why"),
    }
}

async fn report(client: &Client, subject: &str, namespace: &str) -> Result<Report, Error> {
    let named = Named::parse(subject)?.unwrap();
    let facts = gather::read(&named, &args(subject), client, namespace).await?;
    Ok(Report::of(&facts))
}

/// Every name of the Deployment and of the objects made of it leads to the same report; that of a Work is about its cluster.
#[tokio::test]
async fn every_form_leads_there() {
    let client = karmada().await;
    let whole = report(&client, "deployment/web", "shop").await.unwrap();
    let sentence = "Deployment shop/web is applied in member1, and not healthy there (1 other cluster is in trouble, too).";
    assert_eq!(whole.summary, sentence);
    assert_eq!(whole.clusters.len(), 2);
    for subject in [
        "deploy/web",
        "deployments.apps/web",
        "rb/web-deployment",
        "resourcebindings.work.karmada.io/web-deployment",
    ] {
        assert_eq!(
            report(&client, subject, "shop").await.unwrap(),
            whole,
            "{subject}"
        );
    }
    let subject = "work/web-56d6c779bb";
    let of_work = report(&client, subject, "karmada-es-member2")
        .await
        .unwrap();
    let sentence = "Deployment shop/web is applied in member2, and not healthy there.";
    assert_eq!(of_work.summary, sentence);
    assert_eq!(of_work.clusters, [whole.clusters[1].clone()]);
    assert_eq!(of_work.binding, whole.binding);
}

/// A Namespace needs no policy, and a Work that nobody's template has made no template.
#[tokio::test]
async fn namespaces_need_no_policy() {
    let client = karmada().await;
    let namespace = report(&client, "ns/shop", "default").await.unwrap();
    assert_eq!(namespace.cause, "Nothing", "{}", namespace.summary);
    assert_eq!(namespace.clusters.len(), 2);
    let of_work = report(&client, "work/shop-55c4c4674c", "karmada-es-member1")
        .await
        .unwrap();
    assert_eq!(of_work.clusters, [namespace.clusters[0].clone()]);
    let mut by_hand: Vec<Value> = recorded!("works-member1");
    let mut by_hand = by_hand.remove(0);
    by_hand["metadata"]["name"] = json!("karmada-impersonator-7cbb6bd5c9");
    by_hand["metadata"]["ownerReferences"] = Value::Null;
    by_hand["spec"]["workload"]["manifests"] = json!([{ "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole", "metadata": { "name": "karmada-impersonator" } }]);
    create(&client, "works", by_hand).await;
    let own = "work/karmada-impersonator-7cbb6bd5c9";
    let own = report(&client, own, "karmada-es-member1").await.unwrap();
    let sentence =
        "Work karmada-es-member1/karmada-impersonator-7cbb6bd5c9 is in member1, as it is to be.";
    assert_eq!(own.summary, sentence);
}

/// An object that does not exist, is not served or is never propagated is told on one line.
#[tokio::test]
async fn unavailable_object_is_one_line() {
    let client = karmada().await;
    for (subject, problem) in [
        (
            "deploy/none",
            "there is no Deployment shop/none: `kubectl get deployments.apps -n shop` lists them",
        ),
        (
            "rb/none",
            "there is no ResourceBinding shop/none: `kubectl get resourcebindings.work.karmada.io -n shop` lists them",
        ),
        (
            "work/none",
            "there is no Work shop/none: `kubectl get works.work.karmada.io -n shop` lists them",
        ),
        (
            "shirt/one",
            "the API serves no shirt: `kubectl api-resources` lists what it serves",
        ),
        (
            "lease/one",
            "Lease shop/one is never propagated: it belongs to a control plane, or is made where it is",
        ),
        (
            "pp/web",
            "PropagationPolicy shop/web is never propagated: it belongs to a control plane, or is made where it is",
        ),
    ] {
        let error = report(&client, subject, "shop").await.unwrap_err();
        assert_eq!(error.to_string(), problem);
    }
}

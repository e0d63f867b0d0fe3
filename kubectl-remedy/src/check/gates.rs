//! The decisions before ours take over from a Karmada that has other features switched on.

use std::collections::BTreeMap;
use std::sync::Arc;

use karmada_api::{ClusterPropagationPolicy, PropagationPolicy, ResourceBinding, names};
use kube::api::ListParams;
use kube::{Api, Client};
use objects::{GroupVersionKind, Key, Metadata};
use propagation_rules::dependencies::{listed, references};
use serde_json::{Value, json};

use super::report::Finding;
use crate::error::Error;
use crate::interpret::customizations;
use crate::lists::{list, list_each};
use crate::propagation::{Served, served};

/// Returns the actions of ours that this Karmada may not take.
pub(super) async fn findings(client: &Client) -> Result<Vec<Finding>, Error> {
    let all = ListParams::default;
    let (bindings, policies, of_fleet) = futures::try_join!(
        list::<ResourceBinding>(Api::all(client.clone()), all()),
        list::<PropagationPolicy>(Api::all(client.clone()), all()),
        list::<ClusterPropagationPolicy>(Api::all(client.clone()), all()),
    )?;
    let bindings = bindings.iter().map(|(_, binding)| binding);
    let bindings: Vec<_> = bindings.filter(|binding| is_followed(binding)).collect();
    let policies = policies.iter().filter(|(_, policy)| policy.spec.preempts());
    let of_fleet = of_fleet.iter().filter(|(_, policy)| policy.spec.preempts());
    let preempting = policies.count() + of_fleet.count();
    Ok(told(left_alone(client, bindings).await?, preempting))
}

/// Returns `true` for a binding that the dependencies of its template should follow.
fn is_followed(binding: &ResourceBinding) -> bool {
    let spec = &binding.spec;
    let mut clusters = spec.clusters.iter().flatten();
    spec.propagate_deps == Some(true) && clusters.next().is_some()
}

/// Returns the number of those bindings that lack a dependency of their templates: none was ever listed, or the
/// list is from the time when the feature was on.
async fn left_alone(client: &Client, bindings: Vec<&Arc<ResourceBinding>>) -> Result<usize, Error> {
    // Who lets it follow notes the list, even if that is empty.
    let (with_list, without): (Vec<_>, Vec<_>) = bindings
        .into_iter()
        .partition(|binding| binding.metadata.annotation(names::DEPENDENCIES).is_some());
    let mut count = without.len();
    let mut by_kind = BTreeMap::<_, BTreeMap<_, _>>::new();
    for binding in with_list {
        let resource = &binding.spec.resource;
        let kind = GroupVersionKind::new(&resource.api_version, &resource.kind);
        // Of the core group nothing else refers to anything, and Secrets are not read.
        if !kind.group.is_empty() || kind.kind == "Pod" {
            let namespace = resource.namespace.as_deref().unwrap_or_default();
            let key = Key::new(namespace, &resource.name);
            by_kind.entry(kind).or_default().insert(key, binding);
        }
    }
    if by_kind.is_empty() {
        return Ok(count);
    }
    let (kinds, (interpreters, _)) =
        futures::try_join!(served(client), customizations::interpreters(client))?;
    for (kind, bindings) in by_kind {
        for template in templates(client, &kinds, &kind).await? {
            let Some(binding) = bindings.get(&Key::new(template.namespace(), template.name()))
            else {
                continue;
            };
            let wanted = match interpreters.dependencies(&template).await {
                None => references(&template),
                Some(Ok(wanted)) => wanted,
                // Ours would attach nothing either.
                Some(Err(_)) => continue,
            };
            count += usize::from(!wanted.is_subset(&listed(&binding.metadata)));
        }
    }
    Ok(count)
}

/// Reads the objects of a kind; none of one that is not served, or that the caller may not list.
async fn templates(
    client: &Client,
    kinds: &[Served],
    kind: &GroupVersionKind,
) -> Result<Vec<Value>, Error> {
    let mut kinds = kinds.iter();
    let served = kinds.find(|served| {
        let is_of = served.group == kind.group && served.kind == kind.kind;
        is_of && served.versions.contains(&kind.version)
    });
    let Some(served) = served else {
        return Ok(Vec::new());
    };
    let api = served.objects(client, &kind.version, "");
    let mut templates = Vec::new();
    let read = list_each(&api, ListParams::default(), |object| {
        let mut object = json!(object);
        // The elements of a list lack their kind.
        object["apiVersion"] = json!(kind.api_version());
        object["kind"] = json!(kind.kind);
        templates.push(object);
    });
    match read.await {
        Ok(()) => Ok(templates),
        Err(kube::Error::Api(status)) if status.code == 403 => Ok(Vec::new()),
        Err(source) => Err(Error::request(
            format!("list {}", served.full_name()),
            source,
        )),
    }
}

fn told(left_alone: usize, preempting: usize) -> Vec<Finding> {
    let mut findings = Vec::new();
    if left_alone > 0 {
        findings.push(Finding::doubtful(
            format!("bindings with propagateDeps that not everything follows, {left_alone} of them: PropagateDeps is off"),
            "start the propagation-controller with --feature-gates=PropagateDeps=false, or Secrets and ConfigMaps that stayed at home go to their clusters",
        ));
    }
    if preempting > 0 {
        findings.push(Finding::doubtful(
            format!("policies with preemption Always, {preempting} of them: a Karmada heeds it only with PropagationPolicyPreemption"),
            "start the propagation-controller with --feature-gates=PropagationPolicyPreemption=false, unless karmada-controller-manager has it on, or they take templates from other policies",
        ));
    }
    findings
}

#[cfg(test)]
mod tests {
    use lab_parts::test_api::TestApi;

    use super::*;

    fn lists(list: &str) -> Value {
        json!({ (names::DEPENDENCIES): list })
    }

    /// A dependency that was never listed has stayed at home, and so has one that a template names since the feature was switched off.
    #[tokio::test]
    async fn dependencies_at_home_are_found() {
        let api = TestApi::with_kinds(karmada_api::crd::fleet().unwrap());
        api.create_namespace("shop").await;
        let with_secret = json!({ "containers": [{ "name": "web", "image": "web:1",
            "envFrom": [{ "secretRef": { "name": "keys" } }] }] });
        let web = json!({ "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": { "name": "web", "namespace": "shop" },
            "spec": { "selector": { "matchLabels": { "app": "web" } }, "template": {
                "metadata": { "labels": { "app": "web" } }, "spec": with_secret } } });
        api.create(&web).await;
        let keys =
            json!([{ "apiVersion": "v1", "kind": "Secret", "namespace": "shop", "name": "keys" }]);
        let member = json!([{ "name": "member1" }]);
        for (clusters, annotations, expected) in [
            (&member, json!({}), 1),
            (&member, lists("null"), 1),
            (&member, lists(&keys.to_string()), 0),
            (&json!([]), json!({}), 0),
        ] {
            let of = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "web" });
            let binding = json!({ "apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding",
                "metadata": { "name": "web", "namespace": "shop", "annotations": annotations },
                "spec": { "resource": of, "propagateDeps": true, "clusters": clusters } });
            api.create(&binding).await;
            let found = findings(&api.user()).await.unwrap();
            assert_eq!(found.len(), expected, "{binding}");
            let path = "/apis/work.karmada.io/v1alpha2/namespaces/shop/resourcebindings/web";
            api.send("DELETE", path, &Value::Null).await;
        }
    }

    #[test]
    fn nothing_is_told_of_nothing() {
        assert!(told(0, 0).is_empty());
        assert_eq!(told(1, 2).len(), 2);
    }
}

//! The findings of a check about everything that is propagated.

use serde_json::{Value, from_value, json};

use super::{binding, cluster, deployments, facts, policy, works};
use crate::propagation::survey::{Remark, Survey};
use crate::propagation::templates::Templates;

/// Returns a fleet that propagates the Deployment `web`, with which all is well.
fn survey() -> Survey {
    let templates = Templates {
        kind: deployments(),
        version: "v1".to_owned(),
        objects: Some(facts().template.into_iter().collect()),
        refusal: None,
    };
    Survey {
        kinds: vec![deployments()],
        policies: vec![policy()],
        templates: vec![templates],
        bindings: vec![binding()],
        works: works(),
        clusters: facts().clusters,
        roles: None,
    }
}

fn remarks(survey: &Survey) -> Vec<Remark> {
    let mut all = survey.policies();
    all.extend(survey.kinds());
    all.extend(survey.without_policy());
    all.extend(survey.clone().bindings());
    all
}

/// Returns the only remark.
fn only(survey: &Survey) -> (String, String, bool) {
    let mut remarks = remarks(survey);
    assert_eq!(remarks.len(), 1, "{remarks:?}");
    let remark = remarks.remove(0);
    (remark.text, remark.next, remark.is_wrong)
}

fn expected(text: &str, next: &str, is_wrong: bool) -> (String, String, bool) {
    (text.to_owned(), next.to_owned(), is_wrong)
}

/// Where everything is as it is to be, nothing is said.
#[test]
fn propagated_fleet_is_well() {
    assert_eq!(remarks(&survey()), []);
}

/// A policy that selects nothing, and an object that none selects, may be intended.
#[test]
fn idle_policy_is_named() {
    let mut fleet = survey();
    let mut idle = policy();
    idle.metadata.name = Some("idle".to_owned());
    let selector = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": "none" });
    idle.spec.resource_selectors = vec![from_value(selector).unwrap()];
    fleet.policies.push(idle);
    let next = "kubectl edit propagationpolicy/idle -n shop";
    let text = "PropagationPolicy shop/idle selects nothing";
    assert_eq!(only(&fleet), expected(text, next, false));

    let mut fleet = survey();
    let objects = fleet.templates[0].objects.as_mut().unwrap();
    for (namespace, name) in [("shop", "api"), ("kube-system", "dns")] {
        objects.push(json!({ "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": { "namespace": namespace, "name": name } }));
    }
    let next = "kubectl remedy why deployments.apps/api -n shop";
    let text = "no policy selects Deployment shop/api";
    assert_eq!(only(&fleet), expected(text, next, false));
}

/// An obstacle of a whole kind is wrong; a kind that may not be listed is not judged.
#[test]
fn kind_that_stays_is_named() {
    let mut fleet = survey();
    fleet.templates[0].refusal = Some("a script cannot be read".to_owned());
    let next = "kubectl describe resourceinterpretercustomizations";
    let text = "deployments.apps are not propagated: a script cannot be read";
    assert_eq!(only(&fleet), expected(text, next, true));

    let mut fleet = survey();
    let role = json!({ "metadata": {}, "rules": [{ "apiGroups": [""],
        "resources": ["configmaps"], "verbs": ["*"] }] });
    fleet.roles = Some(vec![from_value(role).unwrap()]);
    let (text, next, is_wrong) = only(&fleet);
    assert_eq!(
        text,
        "the propagation-controller may not propagate deployments.apps"
    );
    assert!(
        next.starts_with("kubectl remedy rights apps/deployments"),
        "{next}"
    );
    assert!(is_wrong);

    let mut fleet = survey();
    fleet.templates[0].objects = None;
    let (text, _, is_wrong) = only(&fleet);
    let hidden = "you may not list deployments.apps: what policies select of them is not known";
    assert_eq!((&*text, is_wrong), (hidden, false));
}

/// A binding that is held up is told as `why` tells it; one that is merely on its way is not wrong.
#[test]
fn held_up_binding_is_named() {
    let next = "kubectl remedy why rb/web-deployment -n shop";
    let mut fleet = survey();
    let away = cluster("member2", "False", "ClusterNotReachable", "no route");
    fleet.clusters.extend([away]);
    let text = "Deployment shop/web was applied in member2, which is not ready now: ClusterNotReachable: no route.";
    assert_eq!(only(&fleet), expected(text, next, false));

    fleet.clusters.remove("member2");
    let text = "Deployment shop/web is to be in member2, which does not exist.";
    assert_eq!(only(&fleet), expected(text, next, true));

    let mut fleet = survey();
    let status: Value = json!({ "conditions": [{ "type": "Scheduled", "status": "False",
        "reason": "NoClusterFit", "message": "0/2 clusters are available" }] });
    fleet.bindings[0].status = from_value(status).unwrap();
    let text = "Deployment shop/web is not scheduled: 0/2 clusters are available.";
    assert_eq!(only(&fleet), expected(text, next, true));
    assert_eq!(fleet.counts(), (1, 1));
}

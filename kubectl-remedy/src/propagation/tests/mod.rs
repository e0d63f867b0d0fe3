//! A Deployment in two members, as a whole Karmada left it, and its possible obstacles.

mod causes;
mod reading;
mod shown;
mod surveyed;

use jiff::Timestamp;
use karmada_api::{ClusterView, PropagationPolicy, ResourceBinding, Work, names};
use objects::Key;
use propagation_rules::template::Skipped;
use serde::de::DeserializeOwned;
use serde_json::{Value, from_value, json};

use super::discovery::Served;
use super::facts::Facts;

/// The recorded file of the name.
macro_rules! recorded {
    ($name:literal) => {
        parsed(include_str!(concat!(
            "../../../../propagation/rules/src/fixtures/",
            $name,
            ".json"
        )))
    };
}
use recorded;

fn parsed<T: DeserializeOwned>(text: &str) -> T {
    serde_json::from_str(text).unwrap()
}

fn now() -> Timestamp {
    "2026-11-22T00:01:01Z".parse().unwrap()
}

fn policy() -> PropagationPolicy {
    recorded!("propagationpolicy")
}

fn binding() -> ResourceBinding {
    recorded!("resourcebinding-web-deployment")
}

/// Returns the Works of the Deployment, whose Pods have come up meanwhile.
fn works() -> Vec<Work> {
    let lists: [Vec<Work>; 2] = [recorded!("works-member1"), recorded!("works-member2")];
    let mut works: Vec<Work> = lists.into_iter().flatten().collect();
    works.retain(|work| {
        let annotations = work.metadata.annotations.as_ref();
        let name = annotations.and_then(|annotations| annotations.get(names::BINDING_NAME));
        name.is_some_and(|name| name == "web-deployment")
    });
    let written = json!([{ "manager": "karmada-controller-manager", "operation": "Update",
        "time": "2026-11-21T23:51:01Z", "fieldsV1": { "f:spec": { "f:workload": {} } } }]);
    for work in &mut works {
        set_health(work, "Healthy");
        work.metadata.managed_fields = from_value(written.clone()).unwrap();
    }
    works
}

fn set_health(work: &mut Work, health: &str) {
    let status = work.status.as_mut().unwrap();
    status.manifest_statuses[0].health = Some(health.to_owned());
}

fn cluster(name: &str, ready: &str, reason: &str, message: &str) -> (String, ClusterView) {
    let condition = json!({ "type": "Ready", "status": ready, "reason": reason,
        "message": message, "lastTransitionTime": "2026-11-21T23:59:00Z" });
    let cluster = json!({ "metadata": { "name": name }, "spec": {},
        "status": { "conditions": [condition] } });
    (name.to_owned(), from_value(cluster).unwrap())
}

fn deployments() -> Served {
    Served {
        group: "apps".to_owned(),
        kind: "Deployment".to_owned(),
        plural: "deployments".to_owned(),
        is_namespaced: true,
        versions: vec!["v1".to_owned()],
        ..Served::default()
    }
}

/// Returns the facts about the Deployment `web`, with which all is well.
fn facts() -> Facts {
    let ready = |name| cluster(name, "True", "ClusterReady", "cluster is healthy");
    Facts {
        kind: deployments(),
        key: Key::new("shop", "web"),
        template: Some(recorded!("template-deployment")),
        policies: vec![policy()],
        binding: Some(binding()),
        works: works(),
        clusters: ["member1", "member2"].map(ready).into(),
        skipped: Skipped {
            namespaces: vec!["kube-.*".parse().unwrap()],
            ..Skipped::default()
        },
        ..Facts::default()
    }
}

/// Returns the facts about the Deployment before a policy has made anything of it.
fn unbound() -> Facts {
    let mut facts = facts();
    facts.binding = None;
    facts.works.clear();
    facts.clusters.clear();
    let metadata = &mut facts.template.as_mut().unwrap()["metadata"];
    metadata["annotations"] = Value::Null;
    metadata["labels"] = json!({ "app": "web" });
    facts
}

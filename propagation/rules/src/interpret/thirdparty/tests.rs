use std::collections::BTreeSet;

use objects::health::Health;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::dependencies::references;
use crate::interpret::{
    MemberStatus, components, health, reflect, replicas, retain, revise, template_status,
};

mod kinds;
mod parts;
mod rules;

/// A template with the reports of its copies, and the expected results.
struct Recorded {
    name: &'static str,
    content: Value,
}

/// Returns a template of each kind.
fn recorded() -> Vec<Recorded> {
    macro_rules! fixtures {
        ($($name:literal),* $(,)?) => {
            vec![$(Recorded {
                name: $name,
                content: serde_json::from_str(include_str!(concat!("fixtures/", $name, ".json"))).unwrap(),
            }),*]
        };
    }
    fixtures![
        "advancedcronjob",
        "broadcastjob",
        "bucket",
        "cloneset",
        "clusterpolicy",
        "daemonset",
        "flinkdeployment",
        "gitrepository",
        "helmchart",
        "helmrelease",
        "helmrepository",
        "kustomization",
        "mpijob",
        "notebook",
        "ocirepository",
        "policy",
        "pytorchjob",
        "raycluster",
        "rayjob",
        "rayservice",
        "sidecarset",
        "sparkapplication",
        "statefulset",
        "tfjob",
        "uniteddeployment",
        "volcano-job",
        "workflow",
    ]
}

fn named(name: &str) -> Recorded {
    let mut all = recorded().into_iter();
    all.find(|one| one.name == name).unwrap()
}

impl Recorded {
    fn template(&self) -> &Value {
        &self.content["template"]
    }

    fn members(&self) -> &Vec<Value> {
        self.content["members"].as_array().unwrap()
    }

    /// Returns the template with other values at the pointers of `changes`.
    fn template_with(&self, changes: &Value) -> Value {
        let mut template = self.template().clone();
        for (pointer, value) in changes.as_object().into_iter().flatten() {
            let (part, field) = pointer.rsplit_once('/').unwrap();
            template.pointer_mut(part).unwrap()[field] = value.clone();
        }
        template
    }

    /// Returns the template's status if its members report `statuses`.
    fn status(&self, statuses: &[Value]) -> Value {
        let template = self.template();
        let members = named_members(template, statuses);
        let mut applied = template.clone();
        if let Some(patch) = template_status(template, &members, true) {
            json_patch::merge(&mut applied, &patch);
        }
        let again = template_status(&applied, &members, true);
        assert_eq!(again, None, "{} does not settle", self.name);
        applied["status"].clone()
    }
}

/// Returns the report of a member's object: all of its status, unless it is recorded that it is less or more.
fn reported(member: &Value) -> &Value {
    let status = &member["object"]["status"];
    member.get("reflected").unwrap_or(status)
}

/// Returns the members `member1`, `member2` and so on, whose manifests are made of the template as it is.
fn named_members<'a>(template: &Value, statuses: &'a [Value]) -> Vec<MemberStatus<'a>> {
    const NAMES: [&str; 4] = ["member1", "member2", "member3", "member4"];
    let members = NAMES.into_iter().zip(statuses);
    let members = members.map(|(cluster, status)| MemberStatus {
        cluster,
        status: Some(status).filter(|status| !status.is_null()),
        manifest_generation: template["metadata"]["generation"]
            .as_i64()
            .unwrap_or_default(),
    });
    members.collect()
}

/// Returns an object of a kind with this spec and status.
fn object(api_version: &str, kind: &str, content: &Value) -> Value {
    let mut object = json!({ "apiVersion": api_version, "kind": kind,
        "metadata": { "name": "web", "namespace": "shop", "generation": 1 } });
    json_patch::merge(&mut object, content);
    object
}

/// Returns the references of a template, as kinds and names.
fn referred(template: &Value) -> BTreeSet<String> {
    let references = references(template).into_iter();
    references
        .map(|one| format!("{} {}", one.kind, one.name))
        .collect()
}

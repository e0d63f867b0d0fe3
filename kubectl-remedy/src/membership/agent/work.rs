//! The Works that bring the agent into a member.
//!
//! The namespace has one of its own: others may use it, so that it stays when the agent leaves.

use karmada_api::names::{CONFLICT_RESOLUTION, MANAGED, WORK_FINALIZER, WORK_NAME, WORK_NAMESPACE};
use karmada_api::{Work, execution_namespace};
use objects::metadata;
use objects::patch::JsonPatch;
use objects::write::{Guard, ObjectRef, Write};
use serde_json::{Value, json};

use super::rights::ACCOUNT;
use crate::identity::NAME;
use crate::namespace::namespace;
use crate::secret::encoded;

/// The name of the Work of the agent.
pub(super) const AGENT: &str = "karmada-rs-agent";
/// The name of the Work of its namespace.
pub(super) const NAMESPACE: &str = "karmada-rs-namespace";

/// Returns the Work of the agent of `cluster`.
pub(super) fn of_agent(cluster: &str, objects: Vec<Value>) -> Value {
    work(cluster, AGENT, objects)
}

/// Returns the Work of its namespace.
pub(super) fn of_namespace(cluster: &str) -> Value {
    let mut work = work(cluster, NAMESPACE, vec![namespace()]);
    work["spec"]["preserveResourcesOnDeletion"] = true.into();
    work
}

/// Returns both Works of `cluster` without their contents, to read or delete them.
pub(super) fn names(cluster: &str) -> [Value; 2] {
    [of_agent(cluster, Vec::new()), of_namespace(cluster)]
}

fn work(cluster: &str, name: &str, mut objects: Vec<Value>) -> Value {
    let namespace = execution_namespace(cluster);
    for object in &mut objects {
        // By these an object in the member is of this Work. Where Karmada's webhook is, it adds them, too.
        metadata::edit(object, "labels", |labels| {
            labels.insert(MANAGED.to_owned(), "true".into());
        });
        metadata::edit(object, "annotations", |annotations| {
            annotations.insert(WORK_NAMESPACE.to_owned(), namespace.clone().into());
            annotations.insert(WORK_NAME.to_owned(), name.into());
            // The names are ours: an agent that was installed by hand is taken over.
            annotations.insert(CONFLICT_RESOLUTION.to_owned(), "overwrite".into());
        });
    }
    json!({
        "apiVersion": Work::API_VERSION,
        "kind": Work::KIND,
        "metadata": {
            "name": name,
            "namespace": namespace,
            // Whoever carries a Work out only takes it away: without it, the objects would stay in the member.
            "finalizers": [WORK_FINALIZER],
            "labels": {
                "app.kubernetes.io/managed-by": NAME,
                "app.kubernetes.io/part-of": "karmada-rs",
            },
        },
        "spec": { "workload": { "manifests": objects } },
    })
}

/// Returns the objects that a Work brings into its member.
pub(super) fn objects(work: &Value) -> impl Iterator<Item = &Value> {
    let manifests = work["spec"]["workload"]["manifests"].as_array();
    manifests.into_iter().flatten()
}

/// Returns the write that puts `new` in the place of the token in the Work of an agent.
pub(super) fn replace_token(work: &Work, new: &str) -> Option<Write> {
    let name = format!("{ACCOUNT}-karmada");
    let mut manifests = work.spec.workload.manifests.iter();
    let place = manifests.position(|m| m["kind"] == "Secret" && m["metadata"]["name"] == *name)?;
    let place = place.to_string();
    let token = ["spec", "workload", "manifests", &place, "data", "token"];
    let mut patch = JsonPatch::default();
    patch.replace(token, encoded(new).into());
    let write = Write::json("token", ObjectRef::of(work, &()), patch);
    Some(write.guarded(Guard::Version))
}

//! One propagation as a whole Karmada left it: a workload with its settings, a service
//! and a role, in three members.

use karmada_api::{ClusterResourceBinding, ClusterView, OverridePolicy, ResourceBinding, Work};
use serde::de::DeserializeOwned;
use serde_json::{Value, from_value, json};

fn parsed<T: DeserializeOwned>(text: &str) -> T {
    serde_json::from_str(text).unwrap()
}

/// The recorded file of the name.
macro_rules! recorded {
    ($name:literal) => {
        parsed(include_str!(concat!("fixtures/", $name, ".json")))
    };
}

/// Returns the templates with their bindings of namespace `shop`.
pub(super) fn bound() -> Vec<(Value, ResourceBinding)> {
    vec![
        (
            recorded!("template-deployment"),
            recorded!("resourcebinding-web-deployment"),
        ),
        (
            recorded!("template-service"),
            recorded!("resourcebinding-web-service"),
        ),
        (
            recorded!("template-configmap"),
            recorded!("resourcebinding-web-settings-configmap"),
        ),
    ]
}

/// Returns the Deployment and its binding.
pub(super) fn deployment() -> (Value, ResourceBinding) {
    bound().swap_remove(0)
}

/// Returns the role and its binding.
pub(super) fn role() -> (Value, ClusterResourceBinding) {
    (
        recorded!("template-clusterrole"),
        recorded!("clusterresourcebinding"),
    )
}

/// Returns the binding and the Work for `member2`, after a new image while dispatching there is suspended.
pub(super) fn paused() -> (ResourceBinding, Work) {
    (
        recorded!("paused-resourcebinding"),
        recorded!("paused-work"),
    )
}

/// Returns the override policy for `member2`.
pub(super) fn override_policy() -> OverridePolicy {
    recorded!("overridepolicy")
}

/// Returns every Work of bindings and Namespaces.
pub(super) fn works() -> Vec<Work> {
    let lists: [Vec<Work>; 3] = [
        recorded!("works-member1"),
        recorded!("works-member2"),
        recorded!("works-member3"),
    ];
    lists.into_iter().flatten().collect()
}

/// Returns the Work of the name for a member.
pub(super) fn work(member: &str, name: &str) -> Work {
    let namespace = karmada_api::execution_namespace(member);
    let mut works = works().into_iter();
    let found = works.find(|work| {
        let metadata = &work.metadata;
        metadata.namespace.as_ref() == Some(&namespace) && metadata.name.as_deref() == Some(name)
    });
    found.unwrap()
}

/// Returns a cluster with nothing but a name.
pub(super) fn cluster(name: &str) -> ClusterView {
    from_value(json!({ "metadata": { "name": name } })).unwrap()
}

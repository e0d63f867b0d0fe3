//! One propagation as a whole Karmada left it: a workload with its settings, a service
//! and a role, in three members. Beside it, values of any shape.

use karmada_api::{ClusterResourceBinding, ClusterView, OverridePolicy, ResourceBinding, Work};
use proptest::prelude::*;
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

/// Returns values of any shape. Some fields have names that the rules read, and values repeat, so that two often agree in
/// a part.
pub(super) fn json_values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..3_i64).prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        Just(json!(1e300)),
        "[a-c]".prop_map(Value::from),
        "[a-z0-9µ.]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let key = prop_oneof![
            Just("metadata".to_owned()),
            Just("managedFields".to_owned()),
            Just("fieldsV1".to_owned()),
            Just("labels".to_owned()),
            Just("spec".to_owned()),
            "[fkv]:[a-c{]",
            "[a-z]{1,3}",
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(key, inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

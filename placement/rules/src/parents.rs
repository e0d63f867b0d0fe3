//! The parents for which something on the hub, or in a member, was made.

use fleet_api::names::{PARENT_BINDING, PARENT_NAMESPACE, PARENT_PLACEMENT};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use objects::{Key, Metadata};

/// Returns the placement of a snapshot or a binding, which are in its namespace.
pub fn placement_of(made: &ObjectMeta) -> Option<Key> {
    let name = made.label(PARENT_PLACEMENT)?;
    Some(Key::new(made.namespace(), name))
}

/// Returns the placement of a Work, or of its owner in a member.
pub fn placement_of_work(work: &ObjectMeta) -> Option<Key> {
    in_parents_namespace(work, PARENT_PLACEMENT)
}

/// Returns the binding of a Work.
pub fn binding_of_work(work: &ObjectMeta) -> Option<Key> {
    in_parents_namespace(work, PARENT_BINDING)
}

fn in_parents_namespace(work: &ObjectMeta, label: &str) -> Option<Key> {
    let namespace = work.label(PARENT_NAMESPACE).unwrap_or_default();
    Some(Key::new(namespace, work.label(label)?))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;

    fn metadata(fields: Value) -> ObjectMeta {
        from_value(fields).unwrap()
    }

    /// A placement and one in a namespace may have the same name: the objects of one are not those of the other.
    #[test]
    fn namespace_tells_parents_apart() {
        let labels = json!({ PARENT_PLACEMENT: "web", PARENT_BINDING: "web-m1" });
        let work = metadata(json!({ "namespace": "fleet-member-m1", "labels": labels }));
        assert_eq!(placement_of_work(&work), Some(Key::cluster_scoped("web")));
        assert_eq!(binding_of_work(&work), Some(Key::cluster_scoped("web-m1")));
        let mut labels = labels;
        labels[PARENT_NAMESPACE] = json!("shop");
        let work = metadata(json!({ "namespace": "fleet-member-m1", "labels": labels }));
        assert_eq!(placement_of_work(&work), Some(Key::new("shop", "web")));
        assert_eq!(binding_of_work(&work), Some(Key::new("shop", "web-m1")));
        let binding = metadata(json!({ "namespace": "shop", "labels": labels }));
        assert_eq!(placement_of(&binding), Some(Key::new("shop", "web")));
        assert_eq!(placement_of(&ObjectMeta::default()), None);
    }
}

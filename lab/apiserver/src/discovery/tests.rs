use std::sync::Arc;

use serde_json::json;

use super::{core_versions, group, groups, priority};
use crate::{kinds::Kind, schema::Schema};

/// Returns a kind in version `v1` of a group, without namespace, status, columns and other names.
pub(crate) fn kind(group: &str, kind: &str, plural: &str) -> Kind {
    Kind {
        group: group.to_owned(),
        version: "v1".to_owned(),
        kind: kind.to_owned(),
        list_kind: format!("{kind}List"),
        plural: plural.to_owned(),
        singular: kind.to_lowercase(),
        short_names: vec![],
        categories: vec![],
        namespaced: false,
        has_status: false,
        columns: vec![],
        schema: Arc::new(Schema::new(json!({ "type": "object" })).unwrap()),
        custom: true,
        storage: crate::kinds::Storage::default(),
    }
}

fn kinds() -> Vec<Kind> {
    let beta = Kind {
        version: "v1beta1".to_owned(),
        ..kind("example.com", "Remedy", "remedies")
    };
    let stable = kind("example.com", "Remedy", "remedies");
    vec![beta, stable, kind("", "ConfigMap", "configmaps")]
}

/// The core group is apart from those with names.
#[test]
fn core_group_is_apart() {
    let kinds = kinds();
    let kinds: Vec<_> = kinds.iter().collect();
    assert_eq!(core_versions(&kinds)["versions"], json!(["v1"]));
    let groups = groups(&kinds);
    assert_eq!(groups["groups"].as_array().unwrap().len(), 1);
    assert_eq!(
        groups["groups"][0]["preferredVersion"]["groupVersion"],
        "example.com/v1"
    );
    assert_eq!(groups["groups"][0]["versions"][1]["version"], "v1beta1");
    assert_eq!(group(&kinds, "example.com").unwrap()["kind"], "APIGroup");
    assert_eq!(group(&kinds, "other.com"), None);
    assert_eq!(group(&kinds, ""), None);
}

#[test]
fn a_stable_version_is_preferred() {
    let mut versions = [
        "foo", "v1alpha1", "v1beta2", "v2", "v10", "v1beta10", "v2alpha1",
    ];
    versions.sort_by_key(|version| std::cmp::Reverse(priority(version)));
    assert_eq!(
        versions,
        [
            "v10", "v2", "v1beta10", "v1beta2", "v2alpha1", "v1alpha1", "foo"
        ]
    );
}

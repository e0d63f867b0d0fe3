use std::sync::Arc;

use serde_json::json;

use super::{aggregated, core_versions, group, groups, priority, resources};
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
    let stable = Kind {
        has_status: true,
        short_names: vec!["rem".to_owned()],
        categories: vec!["all-of-ours".to_owned()],
        ..kind("example.com", "Remedy", "remedies")
    };
    let core = Kind {
        namespaced: true,
        ..kind("", "ConfigMap", "configmaps")
    };
    vec![beta, stable, core]
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

/// A version names its resources and their status.
#[test]
fn version_lists_resources_and_status() {
    let kinds = kinds();
    let kinds: Vec<_> = kinds.iter().collect();
    let found = resources(&kinds, "example.com", "v1").unwrap();
    assert_eq!(found["groupVersion"], "example.com/v1");
    assert_eq!(found["resources"][0]["shortNames"], json!(["rem"]));
    assert_eq!(found["resources"][0]["categories"], json!(["all-of-ours"]));
    assert_eq!(found["resources"][1]["name"], "remedies/status");
    let core = resources(&kinds, "", "v1").unwrap();
    assert_eq!(core["groupVersion"], "v1");
    assert_eq!(core["resources"][0]["namespaced"], true);
    assert_eq!(core["resources"][0].get("shortNames"), None);
    assert_eq!(resources(&kinds, "example.com", "v2"), None);
}

#[test]
fn one_document_lists_everything() {
    let kinds = kinds();
    let kinds: Vec<_> = kinds.iter().collect();
    let named = aggregated(&kinds, false);
    assert_eq!(named["items"][0]["metadata"]["name"], "example.com");
    let stable = &named["items"][0]["versions"][0];
    assert_eq!(stable["version"], "v1");
    assert_eq!(
        stable["resources"][0]["subresources"][0]["subresource"],
        "status"
    );
    assert_eq!(stable["resources"][0]["scope"], "Cluster");
    let core = aggregated(&kinds, true);
    assert_eq!(
        core["items"][0]["versions"][0]["resources"][0]["resource"],
        "configmaps"
    );
    assert_eq!(core["items"].as_array().unwrap().len(), 1);
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

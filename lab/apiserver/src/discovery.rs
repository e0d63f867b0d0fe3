//! Discovery: the groups, versions and resources that are served.

use std::cmp::Reverse;

use serde_json::{Value, json};

use crate::kinds::Kind;

/// The media type of [`aggregated`], both in `Accept` and in `Content-Type`.
pub(crate) const AGGREGATED: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

const VERBS: [&str; 8] = [
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
];

const STATUS_VERBS: [&str; 3] = ["get", "patch", "update"];

/// Returns the document at `/version`.
pub(crate) fn version() -> Value {
    json!({
        "major": "1",
        "minor": "36",
        "gitVersion": "v1.36.0",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    })
}

/// Returns the document at `/api`: the versions of the core group.
pub(crate) fn core_versions(kinds: &[&Kind]) -> Value {
    json!({
        "kind": "APIVersions",
        "versions": versions(kinds, ""),
        "serverAddressByClientCIDRs": [],
    })
}

/// Returns the document at `/apis`: the named groups.
pub(crate) fn groups(kinds: &[&Kind]) -> Value {
    let groups = named_groups(kinds).into_iter();
    json!({
        "kind": "APIGroupList",
        "apiVersion": "v1",
        "groups": groups.map(|name| group_of(kinds, name)).collect::<Vec<_>>(),
    })
}

/// Returns the document at `/apis/<group>`, or `None` if there is no such group.
pub(crate) fn group(kinds: &[&Kind], name: &str) -> Option<Value> {
    if name.is_empty() || versions(kinds, name).is_empty() {
        return None;
    }
    let mut group = group_of(kinds, name);
    group["kind"] = json!("APIGroup");
    group["apiVersion"] = json!("v1");
    Some(group)
}

/// Returns the document at `/api/v1` or `/apis/<group>/<version>`, or `None` if there is no such
/// version.
pub(crate) fn resources(kinds: &[&Kind], group: &str, version: &str) -> Option<Value> {
    let mut resources = Vec::new();
    for kind in of_version(kinds, group, version) {
        let mut resource = json!({
            "name": kind.plural,
            "singularName": kind.singular,
            "namespaced": kind.namespaced,
            "kind": kind.kind,
            "verbs": VERBS,
        });
        add_names(&mut resource, kind);
        resources.push(resource);
        if kind.has_status {
            resources.push(json!({
                "name": format!("{}/status", kind.plural),
                "singularName": "",
                "namespaced": kind.namespaced,
                "kind": kind.kind,
                "verbs": STATUS_VERBS,
            }));
        }
    }
    (!resources.is_empty()).then(|| {
        json!({
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": group_version(group, version),
            "resources": resources,
        })
    })
}

/// Returns all resources at `/api` (`core`) or `/apis` in one document, for clients that accept
/// [`AGGREGATED`].
pub(crate) fn aggregated(kinds: &[&Kind], core: bool) -> Value {
    let groups = if core { vec![""] } else { named_groups(kinds) };
    let groups = groups
        .into_iter()
        .map(|group| aggregated_group(kinds, group));
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": groups.collect::<Vec<_>>(),
    })
}

fn aggregated_group(kinds: &[&Kind], group: &str) -> Value {
    let versions = versions(kinds, group).into_iter().map(|version| {
        let resources = of_version(kinds, group, version).map(aggregated_resource);
        json!({
            "version": version,
            "resources": resources.collect::<Vec<_>>(),
            "freshness": "Current",
        })
    });
    let metadata = match group {
        "" => json!({}),
        group => json!({ "name": group }),
    };
    json!({ "metadata": metadata, "versions": versions.collect::<Vec<_>>() })
}

/// Returns a group and version in the form of `apiVersion`.
pub(crate) fn group_version(group: &str, version: &str) -> String {
    if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    }
}

/// Returns every group and version once, in the order of the kinds.
pub(crate) fn group_versions<'a>(kinds: &[&'a Kind]) -> Vec<(&'a str, &'a str)> {
    let mut found = Vec::new();
    for kind in kinds {
        let one = (kind.group.as_str(), kind.version.as_str());
        if !found.contains(&one) {
            found.push(one);
        }
    }
    found
}

/// Returns the kinds of one version of a group.
pub(crate) fn of_version<'a>(
    kinds: &[&'a Kind],
    group: &str,
    version: &str,
) -> impl Iterator<Item = &'a Kind> {
    kinds
        .iter()
        .copied()
        .filter(move |kind| kind.group == group && kind.version == version)
}

fn aggregated_resource(kind: &Kind) -> Value {
    let response = json!({ "group": kind.group, "version": kind.version, "kind": kind.kind });
    let mut resource = json!({
        "resource": kind.plural,
        "responseKind": response,
        "scope": if kind.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": kind.singular,
        "verbs": VERBS,
    });
    add_names(&mut resource, kind);
    if kind.has_status {
        resource["subresources"] = json!([
            { "subresource": "status", "responseKind": response, "verbs": STATUS_VERBS }
        ]);
    }
    resource
}

fn add_names(resource: &mut Value, kind: &Kind) {
    for (field, names) in [
        ("shortNames", &kind.short_names),
        ("categories", &kind.categories),
    ] {
        if !names.is_empty() {
            resource[field] = json!(names);
        }
    }
}

fn group_of(kinds: &[&Kind], name: &str) -> Value {
    let versions = versions(kinds, name).into_iter();
    let versions: Vec<_> = versions
        .map(|version| json!({ "groupVersion": group_version(name, version), "version": version }))
        .collect();
    json!({ "name": name, "versions": versions, "preferredVersion": versions.first() })
}

/// Returns the named groups, in the order of the kinds.
fn named_groups<'a>(kinds: &[&'a Kind]) -> Vec<&'a str> {
    let mut groups: Vec<&str> = Vec::new();
    for kind in kinds {
        if !kind.group.is_empty() && !groups.contains(&kind.group.as_str()) {
            groups.push(&kind.group);
        }
    }
    groups
}

/// Returns the versions of a group, preferred first.
fn versions<'a>(kinds: &[&'a Kind], group: &str) -> Vec<&'a str> {
    let mut versions: Vec<_> = group_versions(kinds)
        .into_iter()
        .filter(|(of, _)| *of == group)
        .map(|(_, version)| version)
        .collect();
    versions.sort_by_key(|version| Reverse(priority(version)));
    versions
}

/// Returns the sort key of a version: stable above beta above alpha, then by number, with anything
/// else last (`CompareKubeAwareVersionStrings` of apimachinery).
fn priority(version: &str) -> (u8, u32, u32) {
    kubernetes_version(version).unwrap_or((0, 0, 0))
}

fn kubernetes_version(version: &str) -> Option<(u8, u32, u32)> {
    let rest = version.strip_prefix('v')?;
    let (stability, name) = match rest {
        _ if rest.contains("alpha") => (1, "alpha"),
        _ if rest.contains("beta") => (2, "beta"),
        _ => return Some((3, rest.parse().ok()?, 0)),
    };
    let (major, minor) = rest.split_once(name)?;
    Some((stability, major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
pub(crate) mod tests;

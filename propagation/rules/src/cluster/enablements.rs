//! The kinds that a cluster serves, in the form in which Karmada writes them.

use karmada_api::cluster_view::{ApiEnablement, EnabledKind};
use karmada_api::condition::{FALSE, TRUE};
use serde_json::Value;

use super::Report;

/// The kinds of one group and version, as the cluster's discovery has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedKinds {
    enabled: ApiEnablement,
    /// True if the server of the group does not answer, so that the list may be old or empty.
    stale: bool,
}

/// Returns the kinds in a document of aggregated discovery (`apidiscovery.k8s.io`), and `None` if it is no
/// such document.
pub fn served(document: &Value) -> Option<Vec<ServedKinds>> {
    if document.get("kind")?.as_str()? != "APIGroupDiscoveryList" {
        return None;
    }
    let mut served = Vec::new();
    for group in document.get("items")?.as_array()? {
        let name = group.pointer("/metadata/name").and_then(Value::as_str);
        for version in list(group, "versions") {
            let Some(number) = version.get("version").and_then(Value::as_str) else {
                continue;
            };
            let group_version = match name.unwrap_or_default() {
                "" => number.to_owned(),
                name => format!("{name}/{number}"),
            };
            let mut resources: Vec<_> = list(version, "resources").filter_map(kind).collect();
            resources.sort_by(|a, b| a.name.cmp(&b.name));
            served.push(ServedKinds {
                enabled: ApiEnablement {
                    group_version,
                    resources,
                },
                stale: version.get("freshness").and_then(Value::as_str) == Some("Stale"),
            });
        }
    }
    Some(served)
}

/// Returns the kind of a resource. One with subresources only has none.
fn kind(resource: &Value) -> Option<EnabledKind> {
    let name = resource.get("resource")?.as_str()?;
    let kind = resource.pointer("/responseKind/kind")?.as_str()?;
    (!name.is_empty() && !kind.is_empty()).then(|| EnabledKind {
        name: name.to_owned(),
        kind: kind.to_owned(),
    })
}

fn list<'a>(object: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    let list = object.get(field).and_then(Value::as_array);
    list.into_iter().flatten()
}

/// Returns the enablements of a cluster that serves this, sorted, and the condition of their list. A cluster
/// that cannot be read, or a group whose server does not answer, keeps those that were `published`: it has lost no
/// kind.
pub(super) fn enablements(
    served: &Result<Vec<ServedKinds>, String>,
    published: &[ApiEnablement],
) -> (Vec<ApiEnablement>, Report) {
    let served = match served {
        Ok(served) => served,
        Err(error) => {
            let message = format!("collected empty APIEnablements from the cluster: {error}");
            return (published.to_vec(), report(FALSE, "Empty", message));
        }
    };
    let (mut enabled, mut stale) = (Vec::new(), Vec::new());
    for version in served {
        let group_version = version.enabled.group_version.as_str();
        let mut known = &version.enabled;
        if version.stale {
            stale.push(group_version);
            let mut published = published.iter();
            let before = published.find(|before| before.group_version == group_version);
            known = before.unwrap_or(known);
        }
        if !known.resources.is_empty() {
            enabled.push(known.clone());
        }
    }
    enabled.sort_by(|a, b| a.group_version.cmp(&b.group_version));
    stale.sort_unstable();
    let complete = if stale.is_empty() {
        let message = "collected complete APIEnablements from the cluster";
        report(TRUE, "Complete", message.to_owned())
    } else {
        let stale = stale.join(", ");
        let message = format!(
            "collected partial APIEnablements from the cluster: no answer from the servers of {stale}"
        );
        report(FALSE, "Partial", message)
    };
    (enabled, complete)
}

fn report(status: &'static str, reason: &'static str, message: String) -> Report {
    Report {
        status,
        reason,
        message,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn resource(name: &str, kind: &str) -> Value {
        json!({ "resource": name, "responseKind": { "group": "", "version": "", "kind": kind },
            "scope": "Namespaced", "verbs": ["get"],
            "subresources": [{ "subresource": "status", "responseKind": { "kind": kind } }] })
    }

    fn document(group: &str, freshness: &str, resources: &[Value]) -> Value {
        json!({ "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2",
            "items": [{ "metadata": { "name": group }, "versions": [
                { "version": "v1", "freshness": freshness, "resources": resources },
            ] }] })
    }

    fn enabled(group_version: &str, resources: &[(&str, &str)]) -> ApiEnablement {
        let resources = resources.iter().map(|&(name, kind)| EnabledKind {
            name: name.to_owned(),
            kind: kind.to_owned(),
        });
        ApiEnablement {
            group_version: group_version.to_owned(),
            resources: resources.collect(),
        }
    }

    /// Enablements are sorted and have neither subresources nor resources without a kind.
    #[test]
    fn enablements_are_sorted_kinds() {
        let networking = [
            resource("networkpolicies", "NetworkPolicy"),
            resource("ingresses", "Ingress"),
            resource("ingressclasses", "IngressClass"),
            json!({ "resource": "odd", "responseKind": {} }),
            json!({ "resource": "odd" }),
            json!(7),
        ];
        let mut all = served(&document("networking.k8s.io", "Current", &networking)).unwrap();
        all.extend(served(&document("", "Current", &[resource("pods", "Pod")])).unwrap());
        all.extend(
            served(&document(
                "apps",
                "Current",
                &[resource("deployments", "Deployment")],
            ))
            .unwrap(),
        );
        let (list, complete) = enablements(&Ok(all), &[]);
        assert_eq!(
            list,
            [
                enabled("apps/v1", &[("deployments", "Deployment")]),
                enabled(
                    "networking.k8s.io/v1",
                    &[
                        ("ingressclasses", "IngressClass"),
                        ("ingresses", "Ingress"),
                        ("networkpolicies", "NetworkPolicy"),
                    ]
                ),
                enabled("v1", &[("pods", "Pod")]),
            ]
        );
        assert_eq!((complete.status, complete.reason), (TRUE, "Complete"));
    }

    /// A group whose server does not answer keeps its known kinds.
    #[test]
    fn silent_group_keeps_kinds() {
        let before = [enabled("metrics.k8s.io/v1", &[("pods", "PodMetrics")])];
        let gone = Ok(served(&document("metrics.k8s.io", "Stale", &[])).unwrap());
        let (list, partial) = enablements(&gone, &before);
        assert_eq!(list, before);
        assert_eq!((partial.status, partial.reason), (FALSE, "Partial"));
        assert!(
            partial
                .message
                .ends_with("the servers of metrics.k8s.io/v1"),
            "{}",
            partial.message
        );
        assert_eq!(enablements(&gone, &[]).0, []);
        let removed = Ok(served(&document("metrics.k8s.io", "Current", &[])).unwrap());
        assert_eq!(enablements(&removed, &before).0, []);
    }

    /// A cluster that cannot be read keeps its kinds.
    #[test]
    fn unreadable_cluster_keeps_kinds() {
        let before = [enabled("apps/v1", &[("deployments", "Deployment")])];
        let (list, empty) = enablements(&Err("no discovery".to_owned()), &before);
        assert_eq!(list, before);
        assert_eq!((empty.status, empty.reason), (FALSE, "Empty"));
    }

    /// An answer that is no discovery is refused.
    #[test]
    fn bad_discovery_is_refused() {
        for document in [
            json!(null),
            json!("<html>"),
            json!({ "items": [] }),
            json!({ "kind": "APIGroupList", "groups": [] }),
            json!({ "kind": "APIGroupDiscoveryList", "items": null }),
        ] {
            assert_eq!(served(&document), None, "{document}");
        }
        let odd = json!({ "kind": "APIGroupDiscoveryList", "items": [7, { "versions": [{}] }] });
        assert_eq!(served(&odd), Some(vec![]));
    }
}

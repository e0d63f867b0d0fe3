//! Resource templates: the users' objects in the control plane, of kinds known at run time only.

use std::error::Error;
use std::fmt;
use std::str::FromStr;

use karmada_api::cluster_of_execution_namespace;
use kube::core::Version;
use objects::{Metadata, api_version, group_kind};
use regex::Regex;
use serde_json::Value;

use objects::apis::Apis;

/// The namespaces whose objects are never propagated, unless a flag says otherwise.
pub const SKIPPED_NAMESPACES: &str = "kube-.*";

/// A regular expression of the whole names of namespaces.
#[derive(Clone, Debug)]
pub struct NamespacePattern(Regex);

impl NamespacePattern {
    /// Returns `true` if the namespace is one of these.
    pub fn is_match(&self, namespace: &str) -> bool {
        self.0.is_match(namespace)
    }
}

impl FromStr for NamespacePattern {
    type Err = NotAPattern;

    fn from_str(text: &str) -> Result<Self, NotAPattern> {
        let whole = Regex::new(&format!("^(?:{text})$"));
        whole.map(Self).map_err(|_| NotAPattern)
    }
}

/// The templates that the user has excluded from propagation.
#[derive(Clone, Debug, Default)]
pub struct Skipped {
    /// The namespaces whose objects are no templates.
    pub namespaces: Vec<NamespacePattern>,
    /// The kinds whose objects are none.
    pub apis: Apis,
}

impl Skipped {
    /// Returns `true` if the objects of the namespace are skipped, and it itself.
    pub fn has_namespace(&self, namespace: &str) -> bool {
        let mut patterns = self.namespaces.iter();
        patterns.any(|pattern| pattern.is_match(namespace))
    }
}

/// The error for a text that is no regular expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAPattern;

impl fmt::Display for NotAPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a regular expression")
    }
}

impl Error for NotAPattern {}

/// Returns the rank of a version of an API group: Kubernetes prefers the highest.
pub fn priority(version: &str) -> impl Ord + use<> {
    Version::parse(version).priority()
}

/// Returns `true` for a version that an API is to give up one day: an alpha or a beta.
pub fn is_preliminary(version: &str) -> bool {
    matches!(
        Version::parse(version),
        Version::Alpha(..) | Version::Beta(..)
    )
}

/// Returns `true` if an object is never a template, whatever a policy selects: it belongs to a control plane, or is of
/// a kind that is made where it is, or the user has excluded it.
pub fn is_excluded(object: &Value, skipped: &Skipped) -> bool {
    let (group, kind) = group_kind(object);
    let own_namespace = match (api_version(object), kind) {
        ("v1", "Namespace") => object.name(),
        _ => object.namespace(),
    };
    is_reserved_namespace(own_namespace)
        || (!own_namespace.is_empty() && skipped.has_namespace(own_namespace))
        || skipped.apis.contain(object)
        || is_reserved_group(group)
        || matches!(
            (group, kind),
            ("", "Event") | ("coordination.k8s.io", "Lease")
        )
        || (kind == "ConfigMap" && object.name() == "extension-apiserver-authentication")
        || object.label(CLAIMED_BY).is_some()
}

/// Returns `true` if the namespace belongs to a control plane of Karmada.
pub fn is_reserved_namespace(namespace: &str) -> bool {
    matches!(namespace, "karmada-system" | "karmada-cluster")
        || cluster_of_execution_namespace(namespace).is_some()
}

/// Returns `true` if no object of the group is ever a template.
pub fn is_reserved_group(group: &str) -> bool {
    RESERVED_GROUPS.contains(&group) || group == "events.k8s.io"
}

/// The groups of Karmada's own kinds. One of a user may end in `karmada.io`, too.
const RESERVED_GROUPS: [&str; 8] = [
    "apps.karmada.io",
    "autoscaling.karmada.io",
    "cluster.karmada.io",
    "config.karmada.io",
    "networking.karmada.io",
    "policy.karmada.io",
    "remedy.karmada.io",
    "work.karmada.io",
];

/// The label of an object whose content another control plane provides.
const CLAIMED_BY: &str = "resourcetemplate.karmada.io/claimed-by";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(api_version: &str, kind: &str, namespace: &str, name: &str) -> Value {
        json!({
            "apiVersion": api_version,
            "kind": kind,
            "metadata": { "namespace": namespace, "name": name },
        })
    }

    #[track_caller]
    fn expect(object: &Value, expected: bool) {
        let skipped = Skipped {
            namespaces: vec![SKIPPED_NAMESPACES.parse().unwrap()],
            apis: "batch/v1/Job".parse().unwrap(),
        };
        let found = is_excluded(object, &skipped);
        assert_eq!(found, expected, "{object}");
    }

    /// A version that Kubernetes prefers goes before those that it does not.
    #[test]
    fn stable_version_is_preferred() {
        let mut versions = ["v2alpha1", "v1beta1", "v1", "v1beta2"];
        versions.sort_by_cached_key(|version| priority(version));
        assert_eq!(versions, ["v2alpha1", "v1beta1", "v1beta2", "v1"]);
    }

    /// An object that a control plane needs itself is no template.
    #[test]
    fn control_plane_objects_are_none() {
        for namespace in [
            "karmada-system",
            "karmada-cluster",
            "karmada-es-m1",
            "kube-system",
        ] {
            expect(&object("v1", "ConfigMap", namespace, "a"), true);
            expect(&object("v1", "Namespace", "", namespace), true);
        }
        expect(&object("batch/v1", "Job", "shop", "a"), true);
        for namespace in ["shop", "karmada-shop"] {
            expect(&object("v1", "ConfigMap", namespace, "a"), false);
            expect(&object("v1", "Namespace", "", namespace), false);
        }
        let authentication = "extension-apiserver-authentication";
        expect(&object("v1", "ConfigMap", "shop", authentication), true);
        let mut claimed = object("v1", "ConfigMap", "shop", "a");
        claimed["metadata"]["labels"] = json!({ CLAIMED_BY: "x" });
        expect(&claimed, true);
        expect(&json!(null), false);
    }

    /// Kinds of control planes are no templates; those of other projects are.
    #[test]
    fn excluded_kinds_are_no_templates() {
        for (api_version, kind, expected) in [
            ("policy.karmada.io/v1alpha1", "PropagationPolicy", true),
            ("apps.karmada.io/v1alpha1", "WorkloadRebalancer", true),
            ("x.karmada.io/v1", "Toy", false),
            ("v1", "Event", true),
            ("events.k8s.io/v1", "Event", true),
            ("coordination.k8s.io/v1", "Lease", true),
            ("apps.kruise.io/v1alpha1", "CloneSet", false),
            ("argoproj.io/v1alpha1", "Workflow", false),
            ("argoproj.io/v1alpha1", "Application", false),
        ] {
            expect(&object(api_version, kind, "shop", "a"), expected);
        }
    }
}

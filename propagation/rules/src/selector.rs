//! The selection of templates by policies and override policies.

use karmada_api::ResourceSelector;
use objects::selector::selects;
use objects::{Metadata, api_version, group, kind};
use serde_json::Value;

/// The specificity of a match; the greatest is the most specific.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// Every template of a kind.
    All,
    /// Those with certain labels.
    Labels,
    /// The one with a certain name.
    Name,
}

/// The part of a template that a selector does not ask for; the greatest is the nearest miss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mismatch {
    /// Its kind.
    Kind,
    /// The version of its group.
    Version,
    /// Its namespace.
    Namespace,
    /// Its name.
    Name,
    /// Its labels.
    Labels,
}

/// Returns the rank at which `selector` matches the template.
///
/// A policy with a namespace, `policy_namespace`, selects templates of that namespace only.
///
/// # Errors
/// Fails with the first thing that does not match.
pub fn compare(
    selector: &ResourceSelector,
    policy_namespace: Option<&str>,
    template: &Value,
) -> Result<Rank, Mismatch> {
    let namespace = template.namespace();
    let version = api_version(template);
    if selector.kind != kind(template) || group(&selector.api_version) != group(version) {
        return Err(Mismatch::Kind);
    }
    if selector.api_version != version {
        return Err(Mismatch::Version);
    }
    if policy_namespace.is_some_and(|own| own != namespace)
        || given(selector.namespace.as_ref()).is_some_and(|wanted| wanted != namespace)
    {
        return Err(Mismatch::Namespace);
    }
    if let Some(name) = given(selector.name.as_ref()) {
        let is_named = name == template.name();
        return is_named.then_some(Rank::Name).ok_or(Mismatch::Name);
    }
    match &selector.label_selector {
        Some(labels) if selects(labels, template) => Ok(Rank::Labels),
        Some(_) => Err(Mismatch::Labels),
        None => Ok(Rank::All),
    }
}

/// Returns the rank of the most specific of several selectors, or `None` if none matches.
pub fn best_rank(
    selectors: &[ResourceSelector],
    policy_namespace: Option<&str>,
    template: &Value,
) -> Option<Rank> {
    let ranks = selectors.iter();
    ranks
        .filter_map(|selector| compare(selector, policy_namespace, template).ok())
        .max()
}

/// Returns the text, unless it is empty.
fn given(text: Option<&String>) -> Option<&str> {
    text.map(String::as_str).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn selector(fields: Value) -> ResourceSelector {
        let mut selector: ResourceSelector = serde_json::from_value(fields).unwrap();
        if selector.kind.is_empty() {
            selector.api_version = "apps/v1".to_owned();
            selector.kind = "Deployment".to_owned();
        }
        selector
    }

    fn rank(
        selector: &ResourceSelector,
        policy_namespace: Option<&str>,
        template: &Value,
    ) -> Option<Rank> {
        compare(selector, policy_namespace, template).ok()
    }

    fn web() -> Value {
        json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": { "namespace": "shop", "name": "web", "labels": { "app": "web" } },
        })
    }

    /// A selector matches by name by labels or all.
    #[test]
    fn name_or_labels_match() {
        let table = [
            (json!({}), Some(Rank::All)),
            (json!({ "namespace": "", "name": "" }), Some(Rank::All)),
            (json!({ "namespace": "shop" }), Some(Rank::All)),
            (json!({ "namespace": "other" }), None),
            (json!({ "name": "web" }), Some(Rank::Name)),
            (json!({ "name": "other" }), None),
            // A name makes the labels irrelevant.
            (
                json!({ "name": "web", "labelSelector": { "matchLabels": { "app": "x" } } }),
                Some(Rank::Name),
            ),
            (
                json!({ "name": "x", "labelSelector": { "matchLabels": { "app": "web" } } }),
                None,
            ),
            (json!({ "labelSelector": {} }), Some(Rank::Labels)),
            (
                json!({ "labelSelector": { "matchLabels": { "app": "web" } } }),
                Some(Rank::Labels),
            ),
            (
                json!({ "labelSelector": { "matchLabels": { "app": "x" } } }),
                None,
            ),
            (
                json!({ "labelSelector": { "matchExpressions": [{ "key": "tier", "operator": "NotIn", "values": ["a"] }] } }),
                Some(Rank::Labels),
            ),
            (
                json!({ "labelSelector": { "matchExpressions": [{ "key": "tier", "operator": "NotIn" }] } }),
                None,
            ),
            (
                json!({ "labelSelector": { "matchExpressions": [{ "key": "app", "operator": "Newer" }] } }),
                None,
            ),
            (
                json!({ "apiVersion": "apps/v1", "kind": "StatefulSet" }),
                None,
            ),
            (
                json!({ "apiVersion": "apps/v1beta1", "kind": "Deployment" }),
                None,
            ),
        ];
        for (fields, expected) in table {
            let found = rank(&selector(fields.clone()), Some("shop"), &web());
            assert_eq!(found, expected, "{fields}");
        }
    }

    /// Whoever asks why nothing has a template is told the first thing that is in the way.
    #[test]
    fn first_mismatch_is_told() {
        for (fields, expected) in [
            (
                json!({ "apiVersion": "v1", "kind": "Deployment" }),
                Mismatch::Kind,
            ),
            (
                json!({ "apiVersion": "apps/v2", "kind": "Deployment", "name": "x" }),
                Mismatch::Version,
            ),
            (
                json!({ "namespace": "other", "name": "x" }),
                Mismatch::Namespace,
            ),
            (json!({ "name": "x" }), Mismatch::Name),
            (
                json!({ "labelSelector": { "matchLabels": { "app": "x" } } }),
                Mismatch::Labels,
            ),
        ] {
            let found = compare(&selector(fields.clone()), Some("shop"), &web());
            assert_eq!(found, Err(expected), "{fields}");
        }
        assert!(Mismatch::Kind < Mismatch::Name && Mismatch::Name < Mismatch::Labels);
    }

    /// A policy with a namespace selects within it only.
    #[test]
    fn namespaced_policy_selects_within_it() {
        let all = selector(json!({}));
        assert_eq!(rank(&all, Some("other"), &web()), None);
        assert_eq!(rank(&all, None, &web()), Some(Rank::All));
        let elsewhere = selector(json!({ "namespace": "shop" }));
        assert_eq!(rank(&elsewhere, Some("other"), &web()), None);
    }

    /// A cluster scoped template is selected without namespaces only.
    #[test]
    fn cluster_scoped_needs_no_namespace() {
        let role = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "n" } });
        for (fields, namespace, expected) in [
            (json!({}), None, Some(Rank::All)),
            (json!({}), Some("shop"), None),
            (json!({ "namespace": "shop" }), None, None),
        ] {
            let mut selector = selector(fields);
            selector.api_version = "v1".to_owned();
            selector.kind = "Node".to_owned();
            assert_eq!(rank(&selector, namespace, &role), expected);
        }
    }

    /// The most specific selector gives the rank.
    #[test]
    fn most_specific_selector_ranks() {
        let selectors = [
            selector(json!({})),
            selector(json!({ "name": "web" })),
            selector(json!({ "labelSelector": {} })),
        ];
        assert_eq!(best_rank(&selectors, None, &web()), Some(Rank::Name));
        assert_eq!(best_rank(&[], None, &web()), None);
    }

    /// An object of any shape is read without harm.
    #[test]
    fn any_shape_is_read() {
        for template in [
            json!(null),
            json!([]),
            json!({ "metadata": 1 }),
            json!({ "metadata": { "labels": [], "name": {} } }),
        ] {
            assert_eq!(rank(&selector(json!({})), None, &template), None);
        }
        let mut odd = web();
        odd["metadata"]["labels"] = json!({ "app": 1, "tier": "a" });
        let by_tier = selector(json!({ "labelSelector": { "matchLabels": { "tier": "a" } } }));
        assert_eq!(rank(&by_tier, None, &odd), Some(Rank::Labels));
    }
}

//! The policies that may select a template, found without a look at every other.

use std::collections::BTreeSet;

use objects::reverse_index::ReverseIndex;
use objects::{GroupVersionKind, Key};
use propagation_rules::candidate::Candidate;

use super::stored::TemplateKey;

/// The policies of both scopes by the templates that their selectors name.
#[derive(Debug, Default)]
pub(super) struct Candidates(ReverseIndex<Key, Named>);

/// The templates that a selector names, whatever else it asks of them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Named {
    kind: GroupVersionKind,
    /// The namespace of the policy; empty for all.
    namespace: String,
    /// Empty for all.
    name: String,
}

impl Candidates {
    /// Replaces the selectors of the policy `key` by those of its new version, or removes them.
    pub(super) fn replace(&mut self, key: &Key, policy: Option<&Candidate<'_>>) {
        let selectors = policy.map(|policy| policy.spec.resource_selectors.as_slice());
        let named = selectors.unwrap_or_default().iter().map(|selector| Named {
            kind: GroupVersionKind::new(&selector.api_version, &selector.kind),
            namespace: key.namespace.clone(),
            name: selector.name.clone().unwrap_or_default(),
        });
        self.0.replace(key, named.collect());
    }

    /// Returns the keys of the policies that may select the template: every other selects another kind,
    /// namespace or name.
    pub(super) fn of(&self, TemplateKey { kind, key }: &TemplateKey) -> BTreeSet<&Key> {
        let mut policies = BTreeSet::new();
        for namespace in [&*key.namespace, ""] {
            for name in [&*key.name, ""] {
                let named = Named {
                    kind: kind.clone(),
                    namespace: namespace.to_owned(),
                    name: name.to_owned(),
                };
                policies.extend(self.0.sources(&named));
            }
        }
        policies
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use karmada_api::PropagationPolicy;
    use propagation_rules::selector::best_rank;
    use proptest::prelude::*;
    use proptest::sample::select;
    use serde_json::json;

    use super::*;

    const NAMESPACES: [&str; 3] = ["", "shop", "other"];
    const NAMES: [&str; 3] = ["", "web", "api"];
    const KINDS: [(&str, &str); 3] = [
        ("apps/v1", "Deployment"),
        ("apps/v2", "Deployment"),
        ("v1", "Service"),
    ];

    /// The version, kind and name that a selector asks for.
    type Asked = ((&'static str, &'static str), &'static str);

    fn policies() -> impl Strategy<Value = BTreeMap<Key, PropagationPolicy>> {
        let selector = (select(&KINDS[..]), select(&NAMES[..]));
        let selectors = prop::collection::vec(selector, 0..3);
        let key = (select(&NAMESPACES[..]), 0_u8..4);
        prop::collection::btree_map(key, selectors, 0..8).prop_map(|policies| {
            let policy = |((namespace, nth), selectors): ((&str, u8), Vec<Asked>)| {
                let selectors = selectors.into_iter().map(|((version, kind), name)| {
                    json!({ "apiVersion": version, "kind": kind, "name": name })
                });
                let policy = json!({
                    "metadata": { "name": nth.to_string(), "namespace": namespace },
                    "spec": { "resourceSelectors": selectors.collect::<Vec<_>>() },
                });
                let key = Key::new(namespace, nth.to_string());
                (key, serde_json::from_value(policy).unwrap())
            };
            policies.into_iter().map(policy).collect()
        })
    }

    proptest! {
        /// Every policy that selects a template is among its candidates.
        #[test]
        fn candidates_include_every_selecting_policy(
            former in policies(),
            current in policies(),
            (version, kind) in select(&KINDS[..]),
            namespace in select(&NAMESPACES[..]),
            name in select(&NAMES[1..]),
        ) {
            let mut candidates = Candidates::default();
            for (key, policy) in &former {
                candidates.replace(key, Some(&policy.into()));
            }
            for key in former.keys() {
                candidates.replace(key, current.get(key).map(Candidate::from).as_ref());
            }
            for (key, policy) in &current {
                candidates.replace(key, Some(&policy.into()));
            }
            let template = json!({ "apiVersion": version, "kind": kind,
                "metadata": { "namespace": namespace, "name": name } });
            let selecting = current.iter().filter(|(_, policy)| {
                let policy = Candidate::from(*policy);
                best_rank(&policy.spec.resource_selectors, policy.namespace(), &template).is_some()
            });
            let key = TemplateKey::new(&GroupVersionKind::new(version, kind), &Key::new(namespace, name));
            // Here nothing but kind, namespace and name decides: there are no others.
            prop_assert_eq!(candidates.of(&key), selecting.map(|(key, _)| key).collect());
        }
    }
}

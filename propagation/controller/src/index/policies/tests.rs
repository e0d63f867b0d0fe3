//! The policies that may select a template are found without a look at every other.

use std::collections::BTreeMap;

use karmada_api::PropagationPolicy;
use karmada_runtime::store::Store;
use karmada_runtime::watch::Decoded;
use kube::Resource;
use kube::runtime::watcher::Event;
use objects::GroupVersionKind;
use propagation_rules::selector::best_rank;
use proptest::prelude::*;
use proptest::sample::select;
use serde::de::DeserializeOwned;
use serde_json::{Value, from_value, json};

use super::*;

const NAMESPACES: [&str; 3] = ["", "shop", "other"];
const NAMES: [&str; 3] = ["", "web", "api"];
const KINDS: [(&str, &str); 3] = [
    ("apps/v1", "Deployment"),
    ("apps/v2", "Deployment"),
    ("v1", "Service"),
];

fn policies() -> impl Strategy<Value = BTreeMap<Key, Value>> {
    let selector = (select(&KINDS[..]), select(&NAMES[..]));
    let selectors = prop::collection::vec(selector, 0..3);
    let key = (select(&NAMESPACES[..]), 0_u8..4);
    prop::collection::btree_map(key, selectors, 0..8).prop_map(|policies| {
        let policies = policies.into_iter().map(|((namespace, nth), selectors)| {
            let selectors = selectors.into_iter().map(|((version, kind), name)| {
                json!({ "apiVersion": version, "kind": kind, "name": name })
            });
            let policy = json!({
                "metadata": { "name": nth.to_string(), "namespace": namespace },
                "spec": { "resourceSelectors": selectors.collect::<Vec<_>>() },
            });
            (Key::new(namespace, nth.to_string()), policy)
        });
        policies.collect()
    })
}

/// Has the watch of its kind show a policy, or that it is gone.
fn show(index: &mut Index, key: &Key, policy: &Value, is_there: bool) {
    if key.namespace.is_empty() {
        observe(&mut index.cluster_policies, policy, is_there);
    } else {
        observe(&mut index.policies, policy, is_there);
    }
}

fn observe<K>(store: &mut Store<K, TemplateKey>, policy: &Value, is_there: bool)
where
    K: Resource + Clone + Default + DeserializeOwned,
{
    let policy = Decoded::Valid(from_value(policy.clone()).unwrap());
    store.observe(if is_there {
        Event::Apply(policy)
    } else {
        Event::Delete(policy)
    });
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
        let mut index = Index::default();
        for (key, policy) in &former {
            show(&mut index, key, policy, true);
        }
        for (key, policy) in &former {
            if !current.contains_key(key) {
                show(&mut index, key, policy, false);
            }
        }
        for (key, policy) in &current {
            show(&mut index, key, policy, true);
        }
        let template = json!({ "apiVersion": version, "kind": kind,
            "metadata": { "namespace": namespace, "name": name } });
        let selecting = current.iter().filter(|(_, policy)| {
            let policy: PropagationPolicy = from_value((*policy).clone()).unwrap();
            let policy = Candidate::from(&policy);
            best_rank(&policy.spec.resource_selectors, policy.namespace(), &template).is_some()
        });
        let selecting: Vec<_> = selecting.map(|(key, _)| key.clone()).collect();
        let key = TemplateKey::new(&GroupVersionKind::new(version, kind), &Key::new(namespace, name));
        let found = index.policies_for(&key);
        let found: Vec<_> = found.iter().map(|policy| policy_key(&policy.candidate())).collect();
        // Here nothing but kind, namespace and name decides: there are no others.
        prop_assert_eq!(found, selecting);
    }
}

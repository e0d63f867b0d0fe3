//! Objects as people and kubectl name them.

use objects::Key;

use super::facts::Facts;

/// Returns the kind and name of a policy.
pub(super) fn policy_name(key: &Key) -> String {
    if key.namespace.is_empty() {
        format!("ClusterPropagationPolicy {key}")
    } else {
        format!("PropagationPolicy {key}")
    }
}

/// Returns a policy as kubectl names it.
pub(super) fn policy(key: &Key) -> String {
    let of = if key.namespace.is_empty() {
        "clusterpropagationpolicy"
    } else {
        "propagationpolicy"
    };
    named(of, key)
}

/// Returns the object as kubectl names it.
pub(super) fn object(facts: &Facts) -> String {
    named(&facts.kind.full_name(), &facts.key)
}

/// Returns the binding as kubectl names it, or the object where it has none.
pub(super) fn made(facts: &Facts) -> String {
    let Some(binding) = facts.binding() else {
        return object(facts);
    };
    let key = binding.key();
    let of = if key.namespace.is_empty() {
        "clusterresourcebinding"
    } else {
        "resourcebinding"
    };
    named(of, &key)
}

/// Returns an object as kubectl names it.
pub(super) fn named(resource: &str, key: &Key) -> String {
    format!("{resource}/{}{}", key.name, within(&key.namespace))
}

/// Returns the flag of a namespace, if there is one.
pub(super) fn within(namespace: &str) -> String {
    if namespace.is_empty() {
        String::new()
    } else {
        format!(" -n {namespace}")
    }
}

/// Returns a text that anyone wrote as a part of a line.
pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

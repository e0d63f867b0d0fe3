//! The objects of a member for its fleet: an account, its rights, and the Secret with which its tokens end.

use std::collections::{BTreeMap, BTreeSet};

use karmada_runtime::client::Claims;
use propagation_rules::rights::GroupResource;
use serde_json::{Value, json};

use crate::error::Error;
use crate::manifest;
use crate::namespace::{NAMESPACE, namespace};
use crate::token::Account;

/// The account.
const ACCOUNT: &str = "fleet";
/// The Secret with which its tokens end.
const SECRET: &str = "fleet-token";
/// Its role, and the binding of that.
const ROLE: &str = "karmada-rs:fleet";

const RBAC: &str = "rbac.authorization.k8s.io";

/// The groups of kinds that are worth more than a workload: whoever writes them has every right, or redefines other kinds.
const WITHHELD: [&str; 2] = [RBAC, "apiextensions.k8s.io"];

/// The kinds that the propagation-controller may propagate as shipped.
const WORKLOADS: &str = include_str!("../../../../manifests/propagation/workloads.yaml");

/// Returns the account, for its tokens.
pub(super) fn account() -> Account {
    Account {
        namespace: NAMESPACE.to_owned(),
        name: ACCOUNT.to_owned(),
        secret: SECRET.to_owned(),
    }
}

/// Returns `true` if a token is of the account of some member.
pub(super) fn has_issued(token: &str) -> bool {
    let claims = Claims::of(token);
    claims.is_some_and(|claims| claims.account() == Some((NAMESPACE, ACCOUNT)))
}

/// Returns the account and the Secret with which its tokens end: by their uids a token is known to be good.
pub(super) fn identity() -> [Value; 2] {
    [
        object("v1", "ServiceAccount", ACCOUNT),
        object("v1", "Secret", SECRET),
    ]
}

/// Returns the role by which it gets new tokens of its own, and the bindings of this and of [`role`].
pub(super) fn rights() -> [Value; 3] {
    let version = format!("{RBAC}/v1");
    let mut renewal = object(&version, "Role", ROLE);
    renewal["rules"] = json!([{
        "apiGroups": [""], "resources": ["serviceaccounts/token"],
        "resourceNames": [ACCOUNT], "verbs": ["create"],
    }]);
    let subjects = json!([{ "kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE }]);
    let mut within = object(&version, "RoleBinding", ROLE);
    within["roleRef"] = json!({ "apiGroup": RBAC, "kind": "Role", "name": ROLE });
    within["subjects"] = subjects.clone();
    let everywhere = json!({
        "apiVersion": version, "kind": "ClusterRoleBinding", "metadata": { "name": ROLE },
        "roleRef": { "apiGroup": RBAC, "kind": "ClusterRole", "name": ROLE }, "subjects": subjects,
    });
    [renewal, within, everywhere]
}

/// Returns the role that lets the fleet write these kinds, and read those that its programs read.
pub(super) fn role(kinds: &[GroupResource]) -> Value {
    let mut groups: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for kind in kinds {
        let group = groups.entry(&kind.group).or_default();
        group.insert(&kind.resource);
    }
    // Propagated objects are in namespaces, which come first.
    groups.entry("").or_default().insert("namespaces");
    let mut rules = Vec::new();
    for (group, resources) in &groups {
        let verbs = [
            "get", "list", "watch", "create", "update", "patch", "delete",
        ];
        rules.push(json!({ "apiGroups": [group], "resources": resources, "verbs": verbs }));
    }
    // The API server lets only those write a role, or bind it, who have its rights, or these.
    if groups.contains_key(RBAC) {
        rules.push(json!({
            "apiGroups": [RBAC], "resources": ["roles", "clusterroles"], "verbs": ["escalate", "bind"],
        }));
    }
    for (group, resources) in [
        ("", vec!["nodes", "pods"]),
        ("discovery.k8s.io", vec!["endpointslices"]),
    ] {
        let verbs = ["list", "watch"];
        rules.push(json!({ "apiGroups": [group], "resources": resources, "verbs": verbs }));
    }
    json!({
        "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole",
        "metadata": { "name": ROLE }, "rules": rules,
    })
}

/// Returns the usual kinds: those that may be propagated as shipped, without those that are worth more than a workload.
pub(super) fn usual_kinds() -> Result<Vec<GroupResource>, Error> {
    let mut kinds = Vec::new();
    for role in manifest::shipped(WORKLOADS)? {
        for rule in role["rules"].as_array().into_iter().flatten() {
            let group = rule["apiGroups"][0].as_str().unwrap_or_default();
            let resources = rule["resources"].as_array().into_iter().flatten();
            let whole = resources.filter_map(Value::as_str);
            let whole = whole.filter(|resource| !resource.contains('/'));
            if WITHHELD.contains(&group) {
                continue;
            }
            kinds.extend(whole.map(|resource| GroupResource {
                group: group.to_owned(),
                resource: resource.to_owned(),
            }));
        }
    }
    Ok(kinds)
}

/// Returns all of it, but for the namespace, to delete it: the account is the last, so that a run that was cut short finds it.
pub(super) fn everything() -> Vec<Value> {
    let [account, secret] = identity();
    let mut all = Vec::from(rights());
    all.reverse();
    all.extend([role(&[]), secret, account]);
    all
}

/// Returns the namespace, and the objects that are written in it before a token is asked for.
pub(super) fn first() -> [Value; 3] {
    let [account, secret] = identity();
    [namespace(), account, secret]
}

fn object(version: &str, kind: &str, name: &str) -> Value {
    json!({
        "apiVersion": version, "kind": kind,
        "metadata": { "name": name, "namespace": NAMESPACE },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<GroupResource> {
        text.split(',').map(|kind| kind.parse().unwrap()).collect()
    }

    fn granted(role: &Value, group: &str, resource: &str, verb: &str) -> bool {
        let rules = role["rules"].as_array().unwrap();
        let has = |list: &Value, wanted: &str| list.as_array().unwrap().contains(&wanted.into());
        rules.iter().any(|rule| {
            has(&rule["apiGroups"], group)
                && has(&rule["resources"], resource)
                && has(&rule["verbs"], verb)
        })
    }

    /// A role has the kinds, the namespaces that they are in, and those that the programs read; one that writes roles may
    /// write any.
    #[test]
    fn role_has_its_kinds() {
        let plain = role(&kinds("apps/deployments,configmaps"));
        for (group, resource, verb) in [
            ("apps", "deployments", "delete"),
            ("", "configmaps", "create"),
            ("", "namespaces", "create"),
            ("", "nodes", "list"),
            ("discovery.k8s.io", "endpointslices", "watch"),
        ] {
            assert!(granted(&plain, group, resource, verb), "{resource}");
        }
        assert!(!granted(&plain, "", "secrets", "get"));
        assert!(!granted(&plain, RBAC, "roles", "bind"));
        let of_roles = role(&kinds("rbac.authorization.k8s.io/rolebindings"));
        assert!(granted(&of_roles, RBAC, "clusterroles", "bind"));
    }

    /// The usual kinds are those that are shipped, but for those by which an account gets more rights than it has.
    #[test]
    fn usual_kinds_give_no_rights() {
        let usual = usual_kinds().unwrap();
        for kind in kinds("apps/deployments,secrets,batch/jobs") {
            assert!(usual.contains(&kind), "{kind}");
        }
        assert!(usual.iter().all(|kind| !WITHHELD.contains(&&*kind.group)));
    }

    fn name(object: &Value) -> String {
        format!("{} {}", object["kind"], object["metadata"])
    }

    /// Whatever is written is deleted, but for the namespace, which others may use.
    #[test]
    fn everything_is_deleted() {
        let mut written: Vec<String> = first()[1..].iter().map(name).collect();
        written.extend(rights().iter().map(name));
        written.push(name(&role(&[])));
        let mut deleted: Vec<String> = everything().iter().map(name).collect();
        assert!(deleted.last().unwrap().contains("ServiceAccount"));
        written.sort();
        deleted.sort();
        assert_eq!(written, deleted);
    }
}

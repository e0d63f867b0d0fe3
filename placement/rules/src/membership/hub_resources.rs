//! The objects that a cluster of the fleet has on the hub, all of them in a namespace of its own.

use fleet_api::member::{InternalMemberClusterSpec, JOIN};
use fleet_api::names::{IS_FLEET_RESOURCE, member_namespace, member_role, member_role_binding};
use fleet_api::{InternalMemberCluster, MemberCluster};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::rbac::v1::{PolicyRule, Role, RoleBinding, RoleRef, Subject};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use objects::Metadata;
use objects::write::{Guard, ObjectRef, Write};
use serde_json::json;

use super::facts::MembershipFacts;

/// The seconds between two heartbeats where a cluster does not say.
const HEARTBEAT_SECONDS: i32 = 60;

/// The API group of Roles, and of users and groups among the subjects.
const RBAC: &str = "rbac.authorization.k8s.io";

/// The objects that a cluster is to have, and has.
pub(super) struct HubResources<'a> {
    facts: &'a MembershipFacts<'a>,
    name: &'a str,
    owner: OwnerReference,
}

impl<'a> HubResources<'a> {
    pub(super) fn of(facts: &'a MembershipFacts<'a>) -> Self {
        let metadata = &facts.cluster.metadata;
        Self {
            facts,
            name: metadata.name(),
            owner: OwnerReference {
                api_version: MemberCluster::API_VERSION.to_owned(),
                kind: MemberCluster::KIND.to_owned(),
                name: metadata.name().to_owned(),
                uid: metadata.uid().to_owned(),
                controller: Some(true),
                block_owner_deletion: None,
            },
        }
    }

    /// Returns the writes after which the cluster has everything, the namespace first.
    pub(super) fn writes(&self) -> impl Iterator<Item = Write> {
        let first = [self.namespace(), self.role()];
        let then = [self.role_binding(), self.channel()];
        first.into_iter().chain(then).flatten()
    }

    fn metadata(&self, name: String) -> ObjectMeta {
        ObjectMeta {
            name: Some(name),
            namespace: Some(member_namespace(self.name)),
            owner_references: Some(vec![self.owner.clone()]),
            ..ObjectMeta::default()
        }
    }

    fn namespace(&self) -> Option<Write> {
        const TARGET: &str = "namespace";
        let label = (IS_FLEET_RESOURCE.to_owned(), "true".to_owned());
        let Some(current) = self.facts.namespace else {
            let new = Namespace {
                metadata: ObjectMeta {
                    namespace: None,
                    labels: Some([label].into()),
                    ..self.metadata(member_namespace(self.name))
                },
                ..Namespace::default()
            };
            return Some(Write::create(TARGET, &new, &()));
        };
        let mut owners = current.owner_references.clone().unwrap_or_default();
        let is_ours = owners.iter().any(|owner| owner.uid == self.owner.uid);
        if is_ours && current.label(IS_FLEET_RESOURCE) == Some("true") {
            return None;
        }
        if !is_ours {
            // An earlier cluster of the name is gone.
            owners.retain(|owner| owner.kind != self.owner.kind);
            owners.push(self.owner.clone());
        }
        let labels = json!({ IS_FLEET_RESOURCE: "true" });
        let metadata = json!({ "labels": labels, "ownerReferences": owners });
        let object = ObjectRef::of_metadata::<Namespace>(current, &());
        let write = Write::merge(TARGET, object, json!({ "metadata": metadata }));
        Some(write.guarded(Guard::Version))
    }

    fn role(&self) -> Option<Write> {
        let rules = rules();
        let Some(current) = self.facts.role else {
            let new = Role {
                metadata: self.metadata(member_role(self.name)),
                rules: Some(rules),
            };
            return Some(Write::create("role", &new, &()));
        };
        (current.rules.as_ref() != Some(&rules)).then(|| {
            let object = ObjectRef::of(current, &());
            Write::merge("role", object, json!({ "rules": rules }))
        })
    }

    fn role_binding(&self) -> Option<Write> {
        let subjects = vec![self.subject()];
        let Some(current) = self.facts.role_binding else {
            let new = RoleBinding {
                metadata: self.metadata(member_role_binding(self.name)),
                subjects: Some(subjects),
                role_ref: RoleRef {
                    api_group: Some(RBAC.to_owned()),
                    kind: "Role".to_owned(),
                    name: member_role(self.name),
                },
            };
            return Some(Write::create("rolebinding", &new, &()));
        };
        (current.subjects.as_ref() != Some(&subjects)).then(|| {
            let object = ObjectRef::of(current, &());
            Write::merge("rolebinding", object, json!({ "subjects": subjects }))
        })
    }

    /// Returns the cluster's agent as the API server stores a subject.
    fn subject(&self) -> Subject {
        let identity = &self.facts.cluster.spec.identity;
        let [api_group, namespace] = [&identity.api_group, &identity.namespace]
            .map(|text| Some(text.clone()).filter(|text| !text.is_empty()));
        let default = (identity.kind != "ServiceAccount").then(|| RBAC.to_owned());
        Subject {
            api_group: api_group.or(default),
            kind: identity.kind.clone(),
            name: identity.name.clone(),
            namespace,
        }
    }

    fn channel(&self) -> Option<Write> {
        let seconds = self.facts.cluster.spec.heartbeat_period_seconds;
        let spec = InternalMemberClusterSpec {
            state: JOIN.to_owned(),
            heartbeat_period_seconds: Some(seconds.unwrap_or(HEARTBEAT_SECONDS)),
        };
        let Some(current) = self.facts.channel else {
            let new = InternalMemberCluster {
                api_version: InternalMemberCluster::API_VERSION.to_owned(),
                kind: InternalMemberCluster::KIND.to_owned(),
                metadata: self.metadata(self.name.to_owned()),
                spec,
                status: None,
            };
            return Some(Write::create("internalmember", &new, &()));
        };
        (current.spec != spec).then(|| {
            let object = ObjectRef::of(current, &());
            Write::merge("internalmember", object, json!({ "spec": spec }))
        })
    }
}

fn rule(verbs: &[&str], group: &str, resource: &str) -> PolicyRule {
    PolicyRule {
        verbs: verbs.iter().map(|verb| (*verb).to_owned()).collect(),
        api_groups: Some(vec![group.to_owned()]),
        resources: Some(vec![resource.to_owned()]),
        ..PolicyRule::default()
    }
}

/// Returns the rights of an agent in the namespace of its cluster.
fn rules() -> Vec<PolicyRule> {
    vec![
        rule(&["*"], "cluster.kubernetes-fleet.io", "*"),
        rule(&["*"], "placement.kubernetes-fleet.io", "*"),
        rule(&["*"], "networking.fleet.azure.com", "*"),
        rule(
            &["get", "list", "update", "patch", "watch", "create"],
            "",
            "events",
        ),
    ]
}

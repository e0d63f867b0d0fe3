//! What a cluster of the fleet has on the hub, all of it in a namespace of its own.

use fleet_api::member::{InternalMemberClusterSpec, JOIN};
use fleet_api::names::{IS_FLEET_RESOURCE, member_namespace, member_role, member_role_binding};
use fleet_api::{InternalMemberCluster, MemberCluster};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::rbac::v1::{PolicyRule, Role, RoleBinding, RoleRef, Subject};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use objects::Metadata;
use objects::patch::guarded;
use serde_json::json;

use super::facts::MembershipFacts;
use super::writes::{Change, MembershipWrite};

/// The seconds between two heartbeats where a cluster does not say.
const HEARTBEAT_SECONDS: i32 = 60;

/// The API group of Roles, and of users and groups among the subjects.
const RBAC: &str = "rbac.authorization.k8s.io";

/// What a cluster is to have, and has.
pub(super) struct Belongings<'a> {
    facts: &'a MembershipFacts<'a>,
    name: &'a str,
    owner: OwnerReference,
}

impl<'a> Belongings<'a> {
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
    pub(super) fn writes(&self) -> impl Iterator<Item = MembershipWrite> {
        let namespace = self.namespace().map(MembershipWrite::Namespace);
        let role = self.role().map(MembershipWrite::Role);
        let role_binding = self.role_binding().map(MembershipWrite::RoleBinding);
        let channel = self.channel().map(MembershipWrite::Channel);
        [namespace, role, role_binding, channel]
            .into_iter()
            .flatten()
    }

    fn metadata(&self, name: String) -> ObjectMeta {
        ObjectMeta {
            name: Some(name),
            namespace: Some(member_namespace(self.name)),
            owner_references: Some(vec![self.owner.clone()]),
            ..ObjectMeta::default()
        }
    }

    fn namespace(&self) -> Option<Change<Namespace>> {
        let label = (IS_FLEET_RESOURCE.to_owned(), "true".to_owned());
        let Some(current) = self.facts.namespace else {
            return Some(Change::Create(Box::new(Namespace {
                metadata: ObjectMeta {
                    namespace: None,
                    labels: Some([label].into()),
                    ..self.metadata(member_namespace(self.name))
                },
                ..Namespace::default()
            })));
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
        let version = current.resource_version();
        Some(Change::Patch(guarded(
            Some(version),
            json!({ "metadata": metadata }),
        )))
    }

    fn role(&self) -> Option<Change<Role>> {
        let rules = rules();
        match self.facts.role {
            None => Some(Change::Create(Box::new(Role {
                metadata: self.metadata(member_role(self.name)),
                rules: Some(rules),
            }))),
            Some(current) if current.rules.as_ref() != Some(&rules) => {
                Some(Change::Patch(json!({ "rules": rules })))
            }
            Some(_) => None,
        }
    }

    fn role_binding(&self) -> Option<Change<RoleBinding>> {
        let subjects = vec![self.subject()];
        match self.facts.role_binding {
            None => Some(Change::Create(Box::new(RoleBinding {
                metadata: self.metadata(member_role_binding(self.name)),
                subjects: Some(subjects),
                role_ref: RoleRef {
                    api_group: Some(RBAC.to_owned()),
                    kind: "Role".to_owned(),
                    name: member_role(self.name),
                },
            }))),
            Some(current) if current.subjects.as_ref() != Some(&subjects) => {
                Some(Change::Patch(json!({ "subjects": subjects })))
            }
            Some(_) => None,
        }
    }

    /// Returns the cluster's agent as the API server stores a subject.
    fn subject(&self) -> Subject {
        let identity = &self.facts.cluster.spec.identity;
        let given = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let default = (identity.kind != "ServiceAccount").then(|| RBAC.to_owned());
        Subject {
            api_group: given(&identity.api_group).or(default),
            kind: identity.kind.clone(),
            name: identity.name.clone(),
            namespace: given(&identity.namespace),
        }
    }

    fn channel(&self) -> Option<Change<InternalMemberCluster>> {
        let seconds = self.facts.cluster.spec.heartbeat_period_seconds;
        let spec = InternalMemberClusterSpec {
            state: JOIN.to_owned(),
            heartbeat_period_seconds: Some(seconds.unwrap_or(HEARTBEAT_SECONDS)),
        };
        match self.facts.channel {
            None => Some(Change::Create(Box::new(InternalMemberCluster {
                api_version: InternalMemberCluster::API_VERSION.to_owned(),
                kind: InternalMemberCluster::KIND.to_owned(),
                metadata: self.metadata(self.name.to_owned()),
                spec,
                status: None,
            }))),
            Some(current) if current.spec != spec => Some(Change::Patch(json!({ "spec": spec }))),
            Some(_) => None,
        }
    }
}

/// Returns what an agent may do in the namespace of its cluster.
fn rules() -> Vec<PolicyRule> {
    let rule = |verbs: &[&str], group: &str, resource: &str| PolicyRule {
        verbs: verbs.iter().map(|verb| (*verb).to_owned()).collect(),
        api_groups: Some(vec![group.to_owned()]),
        resources: Some(vec![resource.to_owned()]),
        ..PolicyRule::default()
    };
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

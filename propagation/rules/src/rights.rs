//! The rights to propagate a kind, which the propagation-controller has for the kinds that users grant it.

use std::fmt;
use std::str::FromStr;

use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use objects::qualified_name::is_subdomain;

use super::template::is_reserved_group;

/// The label of the ClusterRoles whose rules the propagation-controller has, with the value `"true"`: the role
/// `karmada-rs:propagation-controller:templates` aggregates them.
pub const AGGREGATED: &str = "karmada-rs.io/aggregate-to-propagation";

/// The verbs that a watch of the templates needs, and the claim.
const ON_TEMPLATES: [&str; 3] = ["list", "watch", "patch"];
/// The verb that the sum of the statuses needs.
const ON_STATUS: [&str; 1] = ["patch"];
/// The verbs that a claim on a role needs, too: the API server lets only those change one who have its rights, or these.
const ON_ROLES: [&str; 2] = ["escalate", "bind"];

/// The group of roles.
const RBAC: &str = "rbac.authorization.k8s.io";

/// The resources of the core group that may be templates.
const CORE: [&str; 14] = [
    "configmaps",
    "endpoints",
    "limitranges",
    "namespaces",
    "nodes",
    "persistentvolumeclaims",
    "persistentvolumes",
    "pods",
    "podtemplates",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "serviceaccounts",
    "services",
];

/// The resource by which an API serves a kind: `GROUP/RESOURCE`, or `RESOURCE` of the core group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GroupResource {
    /// The group; empty for the core group.
    pub group: String,
    /// The name in the plural.
    pub resource: String,
}

impl fmt::Display for GroupResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.group.is_empty() {
            write!(f, "{}/", self.group)?;
        }
        f.write_str(&self.resource)
    }
}

impl FromStr for GroupResource {
    type Err = NotPropagated;

    /// Parses the output of [`fmt::Display`].
    fn from_str(text: &str) -> Result<Self, NotPropagated> {
        if text.contains('*') {
            return Err(NotPropagated::Wildcard);
        }
        let (group, resource) = text.split_once('/').unwrap_or(("", text));
        let is_group = group.is_empty() || is_subdomain(group);
        if !is_group || !is_subdomain(resource) || text.starts_with('/') {
            return Err(NotPropagated::Malformed);
        }
        match resource.split_once('.') {
            Some((resource, of)) if group.is_empty() => {
                return Err(NotPropagated::GroupLast(Self::new(of, resource)));
            }
            Some(_) => return Err(NotPropagated::Malformed),
            None => {}
        }
        if group.is_empty() && !CORE.contains(&resource) {
            return Err(NotPropagated::NotCore(resource.to_owned()));
        }
        if is_reserved_group(group) {
            return Err(NotPropagated::Reserved);
        }
        Ok(Self::new(group, resource))
    }
}

impl GroupResource {
    fn new(group: &str, resource: &str) -> Self {
        Self {
            group: group.to_owned(),
            resource: resource.to_owned(),
        }
    }

    /// Returns the ClusterRole that lets the propagation-controller propagate objects of this kind.
    pub fn cluster_role(&self) -> ClusterRole {
        let suffix = if self.group.is_empty() {
            self.resource.clone()
        } else {
            format!("{}.{}", self.resource, self.group)
        };
        ClusterRole {
            metadata: ObjectMeta {
                name: Some(format!("karmada-rs:propagation-controller:{suffix}")),
                labels: Some([(AGGREGATED.to_owned(), "true".to_owned())].into()),
                ..ObjectMeta::default()
            },
            rules: Some(self.rules()),
            ..ClusterRole::default()
        }
    }

    fn rules(&self) -> Vec<PolicyRule> {
        let mut rules = vec![
            self.rule("", &self.verbs()),
            self.rule("/status", &ON_STATUS),
        ];
        let bindings = ["rolebindings", "clusterrolebindings"];
        // The API server lets only those change a binding who have the rights of its role, or may bind it.
        if self.group == RBAC && bindings.contains(&&*self.resource) {
            let bound = ["roles", "clusterroles"].map(|role| Self::new(RBAC, role));
            rules.extend(bound.map(|role| role.rule("", &["bind"])));
        }
        rules
    }

    fn verbs(&self) -> Vec<&'static str> {
        let is_role = self.group == RBAC && ["roles", "clusterroles"].contains(&&*self.resource);
        let on_roles = ON_ROLES.into_iter().filter(|_| is_role);
        ON_TEMPLATES.into_iter().chain(on_roles).collect()
    }

    fn rule(&self, subresource: &str, verbs: &[&str]) -> PolicyRule {
        PolicyRule {
            api_groups: Some(vec![self.group.clone()]),
            resources: Some(vec![format!("{}{subresource}", self.resource)]),
            verbs: verbs.iter().map(ToString::to_string).collect(),
            ..PolicyRule::default()
        }
    }
}

/// Returns `true` if one of the roles `granting`, which are [`AGGREGATED`], lets the propagation-controller read objects of this
/// kind and claim them.
pub fn are_granted<'a>(
    kind: &GroupResource,
    granting: impl IntoIterator<Item = &'a ClusterRole>,
) -> bool {
    let rules: Vec<&PolicyRule> = granting
        .into_iter()
        .flat_map(|role| role.rules.iter().flatten())
        .filter(|rule| {
            has(rule.api_groups.as_ref(), &kind.group)
                && has(rule.resources.as_ref(), &kind.resource)
                && rule.resource_names.as_ref().is_none_or(Vec::is_empty)
        })
        .collect();
    let mut verbs = ON_TEMPLATES.iter();
    verbs.all(|verb| rules.iter().any(|rule| has(Some(&rule.verbs), verb)))
}

fn has(list: Option<&Vec<String>>, wanted: &str) -> bool {
    let mut list = list.into_iter().flatten();
    list.any(|one| one == "*" || one == wanted)
}

/// Returns the command that lets the propagation-controller propagate these kinds.
pub fn command(kinds: &[GroupResource]) -> String {
    let kinds: Vec<_> = kinds.iter().map(ToString::to_string).collect();
    format!(
        "kubectl remedy rights {} | kubectl apply -f -",
        kinds.join(" ")
    )
}

/// The error for a text that is not a kind whose objects can be propagated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotPropagated {
    /// It is not of the form of a kind.
    Malformed,
    /// It stands for more than one kind.
    Wildcard,
    /// The group is behind the resource, as kubectl has it.
    GroupLast(GroupResource),
    /// The core group has no such resource.
    NotCore(String),
    /// Its objects are never templates.
    Reserved,
}

impl fmt::Display for NotPropagated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed => f.write_str(
                "it must be GROUP/RESOURCE such as apps/deployments, or RESOURCE of the core group such as configmaps; \
                 `kubectl api-resources` has the names",
            ),
            Self::Wildcard => f.write_str(
                "name each kind; `kubectl apply -k manifests/propagation/everything` grants all of them",
            ),
            Self::GroupLast(kind) => write!(f, "the group comes first: {kind}"),
            Self::NotCore(resource) => write!(
                f,
                "the core group has no {resource} that can be propagated; that of another group is GROUP/{resource}"
            ),
            Self::Reserved => f.write_str("objects of this group are never propagated"),
        }
    }
}

impl std::error::Error for NotPropagated {}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kinds that are shipped have the rights that the command prints for them.
    #[test]
    fn shipped_rights_are_same() {
        let manifest = include_str!("../../../manifests/propagation/workloads.yaml");
        let shipped: ClusterRole = serde_saphyr::from_str(manifest).unwrap();
        let label = shipped.metadata.labels.unwrap().remove(AGGREGATED);
        assert_eq!(label.as_deref(), Some("true"));
        let mut granted = 0;
        for rule in shipped.rules.unwrap() {
            for group in rule.api_groups.unwrap() {
                for resource in rule.resources.iter().flatten() {
                    let (resource, of_status) = match resource.split_once('/') {
                        Some((resource, "status")) => (resource, true),
                        Some(_) => panic!("{resource}"),
                        None => (&**resource, false),
                    };
                    let kind = GroupResource::new(&group, resource);
                    assert_eq!(kind.to_string().parse(), Ok(kind.clone()), "{kind}");
                    let printed = kind.cluster_role().rules.unwrap();
                    let printed = &printed[usize::from(of_status)];
                    assert_eq!(rule.verbs, printed.verbs, "{kind}");
                    granted += 1;
                }
            }
        }
        assert!(granted > 40, "{granted}");
    }

    /// A kind is granted by its own role, by a wildcard, and by none that reads only.
    #[test]
    fn roles_grant_their_kinds() {
        let [shirts, endpoints] =
            ["example.com/shirts", "endpoints"].map(|kind| kind.parse::<GroupResource>().unwrap());
        let own = shirts.cluster_role();
        assert!(are_granted(&shirts, [&own]));
        assert!(!are_granted(&endpoints, [&own]));
        assert!(!are_granted(&shirts, []));
        let everything = include_str!("../../../manifests/propagation/everything/rights.yaml");
        let everything: ClusterRole = serde_saphyr::from_str(everything).unwrap();
        assert!(are_granted(&endpoints, [&everything]));
        let mut reader = shirts.cluster_role();
        for rule in reader.rules.iter_mut().flatten() {
            rule.verbs.retain(|verb| verb != "patch");
        }
        assert!(!are_granted(&shirts, [&reader]));
    }

    /// A claim on a binding needs more than those on other kinds, and the command grants that, too.
    #[test]
    fn bindings_come_with_their_roles() {
        let kind: GroupResource = format!("{RBAC}/rolebindings").parse().unwrap();
        let granted = kind.cluster_role().rules.unwrap();
        let bind = granted.iter().filter(|rule| rule.verbs == ["bind"]);
        let roles: Vec<_> = bind
            .flat_map(|rule| rule.resources.iter().flatten())
            .collect();
        assert_eq!(roles, ["roles", "clusterroles"]);
    }

    /// A refusal says the mistake in a kind, and the right form.
    #[test]
    fn wrong_kind_is_explained() {
        for (text, problem) in [
            ("", "it must be GROUP/RESOURCE"),
            ("/configmaps", "it must be GROUP/RESOURCE"),
            ("example.com/", "it must be GROUP/RESOURCE"),
            ("apps/v1/deployments", "it must be GROUP/RESOURCE"),
            ("apps/Deployment", "it must be GROUP/RESOURCE"),
            ("apps/deployments.v1", "it must be GROUP/RESOURCE"),
            ("*/*", "name each kind"),
            (
                "shirts.example.com",
                "the group comes first: example.com/shirts",
            ),
            ("deployments", "the core group has no deployments"),
            ("events", "the core group has no events"),
            ("work.karmada.io/works", "never propagated"),
        ] {
            let error = text.parse::<GroupResource>().unwrap_err().to_string();
            assert!(error.contains(problem), "{text}: {error}");
            assert_eq!(error.lines().count(), 1);
        }
    }

    /// Who is told the command can run it.
    #[test]
    fn command_names_its_kinds() {
        let kinds = ["example.com/shirts", "endpoints"].map(|kind| kind.parse().unwrap());
        assert_eq!(
            command(&kinds),
            "kubectl remedy rights example.com/shirts endpoints | kubectl apply -f -"
        );
    }
}

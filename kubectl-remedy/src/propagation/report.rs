//! The whole chain of an object, from its template to each member.

use objects::Metadata;
use serde::Serialize;

use super::binding::BindingLink;
use super::cause::Cause;
use super::cluster::{ClusterLink, links};
use super::facts::Facts;
use super::policy::PolicyLink;

/// The place where an object stands, and its obstacle.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    /// The cause in one sentence.
    pub(super) summary: String,
    /// The cause in one word.
    pub(super) cause: &'static str,
    /// The command to run next.
    pub(super) next: String,
    pub(super) template: TemplateLink,
    pub(super) policy: PolicyLink,
    pub(super) binding: Option<BindingLink>,
    pub(super) clusters: Vec<ClusterLink>,
}

/// The template.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TemplateLink {
    pub(super) api_version: String,
    pub(super) kind: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) exists: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) generation: Option<i64>,
}

impl Report {
    /// Returns the report of the facts.
    pub(super) fn of(facts: &Facts) -> Self {
        let clusters = links(facts);
        let cause = cause(facts, &clusters);
        let template = facts.template.as_ref();
        let version = template.map_or_else(
            || facts.kind.in_version(facts.kind.preferred()).api_version(),
            |template| objects::api_version(template).to_owned(),
        );
        Self {
            summary: cause.sentence(facts),
            cause: cause.word(),
            next: cause.next(facts),
            template: TemplateLink {
                api_version: version,
                kind: facts.kind.kind.clone(),
                namespace: facts.key.namespace.clone(),
                name: facts.key.name.clone(),
                // A Work without a binding is its own.
                exists: template.is_some() || facts.binding.is_none(),
                generation: template.and_then(Metadata::generation),
            },
            policy: PolicyLink::of(facts),
            binding: BindingLink::of(facts),
            clusters,
        }
    }
}

/// Returns the first link of the chain that does not hold.
fn cause(facts: &Facts, clusters: &[ClusterLink]) -> Cause {
    let cause = facts.policy_cause();
    if let Some(cause) = cause.or_else(|| delivery_cause(facts, clusters)) {
        return cause;
    }
    let leaving = clusters.iter().filter(|link| link.is_leaving());
    let leaving: Vec<String> = leaving.map(|link| link.name.clone()).collect();
    if !leaving.is_empty() {
        return Cause::Leaving(leaving);
    }
    if let Some((policy, waiting)) = facts.waiting() {
        return Cause::AwaitsEdit(policy, Some(waiting));
    }
    let needing = clusters.iter().filter(|link| link.is_needed());
    let needing: Vec<String> = needing.map(|link| link.name.clone()).collect();
    if needing.is_empty() {
        return Cause::NoCluster;
    }
    Cause::Nothing(needing)
}

/// Returns the reason why the binding has no clusters, or a cluster lacks something.
pub(super) fn delivery_cause(facts: &Facts, clusters: &[ClusterLink]) -> Option<Cause> {
    facts.binding_cause().or_else(|| {
        let troubles = clusters.iter();
        let mut troubles: Vec<_> = troubles
            .filter_map(|link| Some((link.trouble.as_ref()?, &link.name)))
            .collect();
        troubles.sort();
        let (trouble, name) = troubles.first()?;
        let others = troubles.len() - 1;
        Some(Cause::InTrouble(
            (*name).clone(),
            (*trouble).clone(),
            others,
        ))
    })
}

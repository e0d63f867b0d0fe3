//! The changes that override policies make to a manifest for one cluster.

mod operators;
#[cfg(test)]
mod tests;
mod text;

use std::fmt;

use karmada_api::overrides::Overriders;
use karmada_api::placement::ClusterSelector;
use karmada_api::{ClusterOverridePolicy, ClusterView, OverridePolicy, OverrideSpec};
use objects::{Metadata, api_version, kind};
use serde_json::{Value, json};

use super::selector::{self, Rank};
use crate::schedule::selects;
use objects::grant::Grant;

/// The override policies that may apply to a template: those of its namespace, and the cluster-scoped ones.
#[derive(Clone, Debug, Default)]
pub struct Overrides<'a> {
    /// The cluster-scoped policies, which apply first.
    pub cluster_policies: Vec<&'a ClusterOverridePolicy>,
    /// The policies of the template's namespace.
    pub policies: Vec<&'a OverridePolicy>,
}

/// The rules that were applied to a manifest, for the annotations of its Work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// The value of [`karmada_api::names::APPLIED_CLUSTER_OVERRIDES`]; `None` if nothing was applied.
    pub cluster_policies: Option<Value>,
    /// The value of [`karmada_api::names::APPLIED_OVERRIDES`]; `None` if nothing was applied.
    pub policies: Option<Value>,
}

/// The reason why a policy cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverrideError {
    /// The kind of the policy.
    pub kind: &'static str,
    /// Its name.
    pub policy: String,
    /// The overrider and its mistake.
    pub reason: String,
}

impl fmt::Display for OverrideError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kind,
            policy,
            reason,
        } = self;
        write!(f, "{kind} {policy} cannot be applied: {reason}")
    }
}

/// A policy of either scope.
#[derive(Clone, Copy)]
struct Policy<'a> {
    name: &'a str,
    namespace: Option<&'a str>,
    spec: &'a OverrideSpec,
}

impl Overrides<'_> {
    /// Applies to `manifest` every rule for the cluster, or returns an error and leaves the manifest in
    /// an unspecified state.
    ///
    /// # Errors
    ///
    /// Fails if a rule cannot be applied as it is written. The result would not be the one that its author
    /// wants in that cluster.
    pub fn apply(
        &self,
        manifest: &mut Value,
        cluster: &ClusterView,
    ) -> Result<Applied, OverrideError> {
        let cluster_policies = self.cluster_policies.iter().map(|policy| Policy {
            name: policy.metadata.name.as_deref().unwrap_or_default(),
            namespace: None,
            spec: &policy.spec,
        });
        let policies = self.policies.iter().map(|policy| Policy {
            name: policy.metadata.name.as_deref().unwrap_or_default(),
            namespace: policy.metadata.namespace.as_deref(),
            spec: &policy.spec,
        });
        Ok(Applied {
            cluster_policies: apply_scope(
                ClusterOverridePolicy::KIND,
                cluster_policies.collect(),
                manifest,
                cluster,
            )?,
            policies: apply_scope(OverridePolicy::KIND, policies.collect(), manifest, cluster)?,
        })
    }
}

fn apply_scope(
    kind: &'static str,
    policies: Vec<Policy<'_>>,
    manifest: &mut Value,
    cluster: &ClusterView,
) -> Result<Option<Value>, OverrideError> {
    let mut matching: Vec<(Rank, Policy<'_>)> = policies
        .into_iter()
        .filter_map(|policy| Some((rank(policy, manifest)?, policy)))
        .collect();
    // The most specific policy comes last, and so has the last word.
    matching.sort_by_key(|(rank, policy)| (*rank, policy.name));

    let mut applied: Vec<(&str, Value)> = Vec::new();
    for (_, policy) in matching {
        for (target, overriders) in rules(policy.spec) {
            if target.is_none_or(|target| selects(target, cluster)) {
                apply_rule(policy, overriders, manifest).map_err(|reason| OverrideError {
                    kind,
                    policy: policy.name.to_owned(),
                    reason,
                })?;
                let overriders = match overriders {
                    Value::Null => json!({}),
                    overriders => overriders.clone(),
                };
                let item = json!({ "policyName": policy.name, "overriders": overriders });
                applied.push((policy.name, item));
            }
        }
    }
    applied.sort_by_key(|(name, _)| *name);
    let items: Vec<Value> = applied.into_iter().map(|(_, item)| item).collect();
    Ok((!items.is_empty()).then(|| items.into()))
}

/// Applies the overriders of one rule, as far as its author may reach.
fn apply_rule(policy: Policy<'_>, overriders: &Value, manifest: &mut Value) -> Result<(), String> {
    let (before, grant) = (identity(manifest), Grant::of(manifest));
    apply_overriders(overriders, manifest)?;
    // Whoever writes policies for all namespaces may write everywhere.
    if policy.namespace.is_none() {
        return Ok(());
    }
    let after = identity(manifest);
    if after != before {
        return Err(format!("it would write {after} in place of {before}"));
    }
    grant.require_same(manifest)
}

/// Returns the identity of an object, as messages name it: the policies of a namespace change its content, and not
/// which object it is.
fn identity(object: &Value) -> String {
    let (api_version, kind) = (api_version(object), kind(object));
    let (namespace, name) = (object.namespace(), object.name());
    format!("{kind} of {api_version} {namespace}/{name}")
}

/// Returns the rank at which a policy selects the template; without selectors it selects all.
fn rank(policy: Policy<'_>, object: &Value) -> Option<Rank> {
    if policy.spec.resource_selectors.is_empty() {
        let in_scope = policy
            .namespace
            .is_none_or(|namespace| namespace == object.namespace());
        return in_scope.then_some(Rank::All);
    }
    selector::best_rank(&policy.spec.resource_selectors, policy.namespace, object)
}

/// The clusters of a rule, and its overriders.
type Rule<'a> = (Option<&'a ClusterSelector>, &'a Value);

/// Returns the rules of a policy. Those of the older form count only if there are no others.
fn rules(spec: &OverrideSpec) -> Vec<Rule<'_>> {
    if spec.override_rules.is_empty() {
        return vec![(spec.target_cluster.as_ref(), &spec.overriders)];
    }
    let rules = spec.override_rules.iter();
    rules
        .map(|rule| (rule.target_cluster.as_ref(), &rule.overriders))
        .collect()
}

/// Applies the overriders of one rule, kind by kind in Karmada's order.
fn apply_overriders(overriders: &Value, manifest: &mut Value) -> Result<(), String> {
    if overriders.is_null() {
        return Ok(());
    }
    let overriders: Overriders = serde_json::from_value(overriders.clone())
        .map_err(|error| format!("its overriders cannot be read: {error}"))?;
    for image in &overriders.image_overrider {
        operators::image(image, manifest)?;
    }
    for command in &overriders.command_overrider {
        operators::words("command", command, manifest)?;
    }
    for args in &overriders.args_overrider {
        operators::words("args", args, manifest)?;
    }
    for labels in &overriders.labels_overrider {
        operators::entries("labels", labels, manifest)?;
    }
    for annotations in &overriders.annotations_overrider {
        operators::entries("annotations", annotations, manifest)?;
    }
    for field in &overriders.field_overrider {
        operators::field(field, manifest)?;
    }
    operators::plaintext(&overriders.plaintext, manifest)
}

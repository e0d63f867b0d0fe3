//! The policy of a template, or why none has it.

use objects::{Key, Metadata};
use propagation_rules::activation::{self, Activation};
use propagation_rules::candidate::Candidate;
use propagation_rules::choice::Choice;
use propagation_rules::namespaces::{is_kept_out, is_propagated};
use propagation_rules::rights::are_granted;
use propagation_rules::template::{Skipped, is_excluded};
use serde::Serialize;
use serde_json::Value;

use super::cause::Cause;
use super::command::policy_name;
use super::facts::Facts;
use super::near_misses::{NearPolicy, key_of, texts};
use crate::table::listed;

/// The policy of a template.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PolicyLink {
    /// Its kind and name, if one has the template.
    pub(super) name: Option<String>,
    /// True if it is Lazy.
    pub(super) lazy: bool,
    /// The clusters to which it suspends dispatching, or `all`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) suspended: Option<String>,
    /// The policies that come near, if none has it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) nearest: Vec<NearPolicy>,
}

impl PolicyLink {
    pub(super) fn of(facts: &Facts) -> Self {
        let policy = match facts.choice() {
            Choice::None => {
                return Self {
                    nearest: facts.nearest(),
                    ..Self::default()
                };
            }
            Choice::Policy(policy)
            | Choice::Waits { policy, .. }
            | Choice::Unsupported { policy, .. } => policy,
        };
        let suspension = policy.spec.suspension.as_ref();
        let suspended = suspension.map(|suspension| match suspension.dispatching {
            Some(true) => "all".to_owned(),
            _ => listed(&suspension.clusters().collect::<Vec<_>>()),
        });
        Self {
            name: Some(policy_name(&key_of(&policy))),
            lazy: policy.spec.is_lazy(),
            suspended: suspended.filter(|clusters| !clusters.is_empty()),
            nearest: Vec::new(),
        }
    }
}

impl Facts {
    /// Returns the reason why the template has no binding that follows a policy.
    pub(super) fn policy_cause(&self) -> Option<Cause> {
        let Some(template) = &self.template else {
            return self.binding.is_some().then_some(Cause::Gone);
        };
        if template.is_deleting() {
            let names = template.finalizers();
            return Some(Cause::Deleting(names.map(ToOwned::to_owned).collect()));
        }
        if self.skipped.apis.contain(template) {
            // A Namespace goes to the members all the same: it needs no policy.
            return if self.is_namespace() {
                kept_out(template, &self.skipped)
            } else {
                Some(Cause::SkippedKind)
            };
        }
        if is_excluded(template, &self.skipped) {
            let namespace = if self.is_namespace() {
                template.name()
            } else {
                template.namespace()
            };
            return Some(Cause::SkippedNamespace(namespace.to_owned()));
        }
        match self.choice() {
            Choice::None if self.is_namespace() => kept_out(template, &self.skipped),
            // A template that others require needs no policy.
            Choice::None if !self.required_by().is_empty() => None,
            Choice::None => Some(self.no_policy()),
            Choice::Unsupported { policy, problems } => {
                Some(Cause::BadPolicy(key_of(&policy), texts(&problems)))
            }
            Choice::Waits { policy, missing } => {
                let missing = missing.into_iter().map(ToOwned::to_owned).collect();
                Some(Cause::AwaitsOverrides(key_of(&policy), missing))
            }
            Choice::Policy(policy) => self.hindrance(template, &policy),
        }
    }

    fn no_policy(&self) -> Cause {
        let nearest = self.nearest().into_iter().next();
        match nearest {
            Some(near) if near.selects() => Cause::BadPolicy(near.key, near.but),
            nearest => Cause::NoPolicy(nearest),
        }
    }

    /// Returns the reason why the template does not follow the policy that has it.
    fn hindrance(&self, template: &Value, policy: &Candidate<'_>) -> Option<Cause> {
        if let Some(reason) = &self.refusal {
            return Some(Cause::Uninterpreted(reason.clone()));
        }
        if self.bound().is_some() {
            return None;
        }
        let key = key_of(policy);
        // Without any such role, others propagate here.
        let roles = self.roles.as_deref().unwrap_or_default();
        if let Some(kind) = self.kind.group_resource()
            && !roles.is_empty()
            && !are_granted(&kind, roles)
        {
            return Some(Cause::NotGranted(key, kind));
        }
        let claimed = self.claimed();
        let activation = activation::decide(&activation::Facts {
            policy,
            template,
            claimed: claimed.as_ref(),
            bound: None,
            seen: None,
            policy_changed: activation::changed_at(policy.metadata),
        });
        match activation {
            Activation::Holds(_) => Some(Cause::AwaitsEdit(key, None)),
            Activation::Follows(_) | Activation::Keeps(_) => Some(Cause::NotBound(key)),
        }
    }

    /// Returns the policy that the binding does not follow yet, and the reason.
    pub(super) fn waiting(&self) -> Option<(Key, String)> {
        let Choice::Policy(policy) = self.choice() else {
            return None;
        };
        let waiting = activation::waiting(self.bound()?.metadata, &policy)?;
        Some((key_of(&policy), waiting))
    }
}

/// Returns why a Namespace stays out of the members, if it does.
fn kept_out(namespace: &Value, skipped: &Skipped) -> Option<Cause> {
    if is_propagated(namespace, skipped) {
        return None;
    }
    Some(if is_kept_out(namespace) {
        Cause::LabelledOut
    } else {
        Cause::OwnNamespace
    })
}

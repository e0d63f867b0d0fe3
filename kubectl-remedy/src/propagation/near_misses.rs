//! The policies that do not have a template, and the obstacle of each.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use karmada_api::ResourceSelector;
use objects::Key;
use propagation_rules::candidate::Candidate;
use propagation_rules::problems::{Problem, problems};
use propagation_rules::selector::{Mismatch, compare};
use serde::Serialize;
use serde_json::Value;

use super::command::policy_name;
use super::facts::Facts;

/// The number of policies that are shown of those that come near.
const NEAREST: usize = 3;

/// A policy that does not have the template, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct NearPolicy {
    /// Its kind and name.
    pub(super) policy: String,
    /// The obstacle.
    pub(super) but: String,
    #[serde(skip)]
    pub(super) key: Key,
    #[serde(skip)]
    nearness: Nearness,
}

/// How near a policy comes; the greatest is the nearest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Nearness {
    /// It selects something else.
    Misses(Mismatch),
    /// It selects the template, and is being deleted.
    Deleting,
    /// It selects the template, and is invalid.
    Invalid,
}

impl Facts {
    /// Returns the policies that come nearest to the template, the nearest first.
    pub(super) fn nearest(&self) -> Vec<NearPolicy> {
        let Some(template) = &self.template else {
            return Vec::new();
        };
        let candidates = self.candidates();
        let mut near: Vec<NearPolicy> = candidates
            .filter_map(|policy| NearPolicy::of(&policy, template))
            .collect();
        near.sort_by(|one, other| {
            let by_nearness = other.nearness.cmp(&one.nearness);
            by_nearness.then_with(|| one.key.cmp(&other.key))
        });
        near.truncate(NEAREST);
        near
    }
}

impl NearPolicy {
    /// Returns `true` if it selects the template, and something else is in the way.
    pub(super) fn selects(&self) -> bool {
        !matches!(self.nearness, Nearness::Misses(_))
    }

    /// Returns the obstacle of a policy that does not have the template; `None` if it is for other kinds.
    fn of(policy: &Candidate<'_>, template: &Value) -> Option<Self> {
        let selectors = policy.spec.resource_selectors.iter();
        let compared =
            selectors.map(|selector| (compare(selector, policy.namespace(), template), selector));
        let mut misses: Option<(Mismatch, &ResourceSelector)> = None;
        let mut is_selecting = false;
        for (compared, selector) in compared {
            match compared {
                Ok(_) => is_selecting = true,
                Err(miss) if misses.is_none_or(|(nearest, _)| miss > nearest) => {
                    misses = Some((miss, selector));
                }
                Err(_) => {}
            }
        }
        let (nearness, but) = if !is_selecting {
            let (miss, selector) = misses?;
            (Nearness::Misses(miss), missed(miss, selector)?)
        } else if policy.is_deleting() {
            (Nearness::Deleting, "it is being deleted".to_owned())
        } else {
            (Nearness::Invalid, texts(&problems(policy)))
        };
        let key = key_of(policy);
        Some(Self {
            policy: policy_name(&key),
            but,
            key,
            nearness,
        })
    }
}

/// Returns the part of a selector that the template does not match; `None` if that is the kind.
fn missed(miss: Mismatch, selector: &ResourceSelector) -> Option<String> {
    let name = selector.name.as_deref().unwrap_or_default();
    let namespace = selector.namespace.as_deref().unwrap_or_default();
    Some(match miss {
        Mismatch::Kind => return None,
        Mismatch::Version => format!("selects the version {}", selector.api_version),
        Mismatch::Namespace => format!("selects the namespace {namespace}"),
        Mismatch::Name => format!("selects the name {name}"),
        Mismatch::Labels => {
            let labels = selector.label_selector.as_ref().map(labels);
            format!("selects the labels {}", labels.unwrap_or_default())
        }
    })
}

/// Returns a label selector as kubectl's `-l` has it.
fn labels(selector: &LabelSelector) -> String {
    let equal = selector.match_labels.iter().flatten();
    let equal = equal.map(|(key, value)| format!("{key}={value}"));
    let expressions = selector.match_expressions.iter().flatten();
    let expressions = expressions.map(|wanted| {
        let values = wanted.values.as_deref().unwrap_or_default();
        let text = format!("{} {} ({})", wanted.key, wanted.operator, values.join(","));
        text.trim_end_matches(" ()").to_owned()
    });
    equal.chain(expressions).collect::<Vec<_>>().join(",")
}

/// Returns the key of a policy; one without a namespace is a `ClusterPropagationPolicy`.
pub(super) fn key_of(policy: &Candidate<'_>) -> Key {
    Key::new(policy.namespace().unwrap_or_default(), policy.name())
}

/// Returns the problems of a policy on one line.
pub(super) fn texts(problems: &[Problem]) -> String {
    let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
    texts.join("; ")
}

//! The taints that clusters have for their conditions.

use std::fmt;
use std::str::FromStr;

use crate::condition::{Condition, FALSE, TRUE};
use serde_json::{Value, json};

use crate::qualified_name::is_name;
use crate::taint::{NO_EXECUTE, NO_SCHEDULE};

/// The beginning of the keys of these taints. Every taint with such a key is ours.
pub const PREFIX: &str = "cluster.karmada-rs.io/";

/// A taint for a condition, written `TYPE=STATUS:EFFECT`: a cluster has the taint
/// `cluster.karmada-rs.io/TYPE=STATUS:EFFECT` while its condition `TYPE` is `STATUS`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionTaint {
    condition: String,
    status: String,
    effect: String,
}

/// The word of a cluster about one of its conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said<'a> {
    /// Its status; `None` without the condition.
    Status(Option<&'a str>),
    /// Something that cannot be read.
    Unclear,
}

impl<'a> From<Option<&'a Condition>> for Said<'a> {
    fn from(condition: Option<&'a Condition>) -> Self {
        match condition {
            Some(condition) if condition.unclear => Self::Unclear,
            _ => Self::Status(condition.map(|condition| &*condition.status)),
        }
    }
}

/// The error for a text that is no [`ConditionTaint`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidConditionTaint;

impl fmt::Display for InvalidConditionTaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "must be TYPE=STATUS:EFFECT such as ServiceDomainNameResolutionReady=False:NoExecute: a condition without a domain, True, False or Unknown, and NoSchedule or NoExecute",
        )
    }
}

impl std::error::Error for InvalidConditionTaint {}

impl FromStr for ConditionTaint {
    type Err = InvalidConditionTaint;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (condition, rest) = text.split_once('=').ok_or(InvalidConditionTaint)?;
        let (status, effect) = rest.split_once(':').ok_or(InvalidConditionTaint)?;
        if is_name(condition)
            && [TRUE, FALSE, "Unknown"].contains(&status)
            && [NO_SCHEDULE, NO_EXECUTE].contains(&effect)
        {
            Ok(Self {
                condition: condition.to_owned(),
                status: status.to_owned(),
                effect: effect.to_owned(),
            })
        } else {
            Err(InvalidConditionTaint)
        }
    }
}

impl ConditionTaint {
    /// Returns the effect of the taint.
    pub fn effect(&self) -> &str {
        &self.effect
    }

    fn key(&self) -> String {
        format!("{PREFIX}{}", self.condition)
    }

    /// Returns `true` if `taint` is this one, whenever it was added.
    fn is(&self, taint: &Value) -> bool {
        taint["key"] == self.key()
            && taint["value"] == self.status
            && taint["effect"] == self.effect
    }

    /// Returns `true` if the cluster is to have it, and `None` if the condition cannot be read.
    fn holds(&self, said: Said<'_>) -> Option<bool> {
        match said {
            Said::Status(status) => Some(status == Some(&*self.status)),
            Said::Unclear => None,
        }
    }
}

/// Returns the taints of a cluster with those that it must have for its conditions, and without those of ours that it
/// must not; `said` returns its status of the condition of a type. A taint whose condition cannot be read stays as it is.
pub fn desired_taints<'a>(
    taints: &[Value],
    wanted: &[ConditionTaint],
    said: impl Fn(&str) -> Said<'a>,
) -> Vec<Value> {
    let kept = taints.iter().filter(|taint| {
        let key = taint["key"].as_str();
        let is_ours = key.is_some_and(|key| key.starts_with(PREFIX));
        let mut same = wanted.iter().filter(|wanted| wanted.is(taint));
        !is_ours || same.any(|wanted| wanted.holds(said(&wanted.condition)) != Some(false))
    });
    let mut desired: Vec<_> = kept.cloned().collect();
    for wanted in wanted {
        let holds = wanted.holds(said(&wanted.condition)) == Some(true);
        if holds && !desired.iter().any(|taint| wanted.is(taint)) {
            desired.push(json!({
                "key": wanted.key(), "value": wanted.status, "effect": wanted.effect,
            }));
        }
    }
    desired
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A text that is no such taint is refused.
    #[test]
    fn bad_taint_is_refused() {
        for text in [
            "",
            "A",
            "A=False",
            "A:NoExecute",
            "=False:NoExecute",
            "A=No:NoExecute",
            "A=False:",
            "A=False:PreferNoSchedule",
            "example.com/A=False:NoExecute",
            "A B=False:NoExecute",
        ] {
            assert_eq!(
                text.parse::<ConditionTaint>(),
                Err(InvalidConditionTaint),
                "{text}"
            );
        }
    }
}

//! The choice of the policy that claims a template.

use std::cmp::Reverse;

use serde_json::Value;

use super::candidate::Candidate;
use super::claim::Claim;
use super::problems::{Problem, problems};
use super::selector::{Rank, best_rank};

/// The policy of a template.
#[derive(Clone, Debug)]
pub enum Choice<'a> {
    /// No policy selects it.
    None,
    /// This policy has it.
    Policy(Candidate<'a>),
    /// This policy has it, and waits for override policies that do not exist yet.
    Waits {
        /// The policy.
        policy: Candidate<'a>,
        /// The names of the override policies.
        missing: Vec<&'a str>,
    },
    /// This policy has it, and asks for something that karmada-rs does not do: the template and its binding are
    /// left as they are.
    Unsupported {
        /// The policy.
        policy: Candidate<'a>,
        /// The features.
        problems: Vec<Problem>,
    },
}

/// A candidate that may have the template, with the grounds of its precedence.
struct Match<'a> {
    policy: Candidate<'a>,
    rank: Rank,
    unsupported: Vec<Problem>,
}

impl<'a> Match<'a> {
    fn of(policy: Candidate<'a>, template: &Value) -> Option<Self> {
        if policy.is_deleting() {
            return None;
        }
        Some(Self {
            policy,
            rank: best_rank(
                &policy.spec.resource_selectors,
                policy.namespace(),
                template,
            )?,
            unsupported: unsupported(&policy)?,
        })
    }

    /// Returns the precedence among policies of one scope.
    fn precedence(&self) -> (i32, Rank, Reverse<&'a str>) {
        let priority = self.policy.spec.priority();
        (priority, self.rank, Reverse(self.policy.name()))
    }

    /// Returns `true` if the policy takes templates from `holder`.
    fn preempts(&self, holder: &Self) -> bool {
        let outranks = self.policy.spec.priority() > holder.policy.spec.priority();
        let (own, holders) = (self.policy.namespace(), holder.policy.namespace());
        self.policy.spec.preempts()
            && match (own, holders) {
                // A policy of the namespace goes before any of none.
                (Some(_), None) => true,
                (None, Some(_)) => false,
                (Some(_), Some(_)) | (None, None) => outranks,
            }
    }
}

/// Returns the features of the policy that karmada-rs does not have, or `None` if it is invalid.
fn unsupported(policy: &Candidate<'_>) -> Option<Vec<Problem>> {
    let problems = problems(policy);
    let is_valid = problems
        .iter()
        .all(|problem| matches!(problem, Problem::Unsupported(_)));
    is_valid.then_some(problems)
}

/// Whether policies take templates from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preemption {
    /// Those that say so do.
    Allowed,
    /// None does: a template stays with its policy.
    Off,
}

/// Chooses the policy of `template` among the policies of both scopes, in any order. `claimed` is the
/// claim on the template, or on its binding if the template has lost it. `has_override` returns `true`
/// if the override policy of that namespace, or of none, and name exists.
pub fn choose<'a>(
    template: &Value,
    claimed: Option<&Claim>,
    candidates: impl IntoIterator<Item = Candidate<'a>>,
    preemption: Preemption,
    has_override: impl Fn(Option<&str>, &str) -> bool,
) -> Choice<'a> {
    let mut matches: Vec<Match<'a>> = candidates
        .into_iter()
        .filter_map(|policy| Match::of(policy, template))
        .collect();
    // The best first; those of the template's namespace before those of none.
    matches.sort_by(|a, b| {
        let (first, second) = (a.policy.namespace(), b.policy.namespace());
        first
            .is_none()
            .cmp(&second.is_none())
            .then_with(|| b.precedence().cmp(&a.precedence()))
    });
    let holder = claimed.and_then(|claim| matches.iter().find(|m| claim.is_of(&m.policy)));
    let chosen = match holder {
        Some(holder) if preemption == Preemption::Off => Some(holder),
        Some(holder) => matches.iter().find(|m| m.preempts(holder)).or(Some(holder)),
        None => matches.first(),
    };
    let Some(chosen) = chosen else {
        return Choice::None;
    };
    let policy = chosen.policy;
    if !chosen.unsupported.is_empty() {
        let problems = chosen.unsupported.clone();
        return Choice::Unsupported { policy, problems };
    }
    let needed = policy.spec.dependent_overrides.iter().map(String::as_str);
    let missing: Vec<_> = needed
        .filter(|name| !has_override(policy.namespace(), name))
        .collect();
    if missing.is_empty() {
        Choice::Policy(policy)
    } else {
        Choice::Waits { policy, missing }
    }
}

#[cfg(test)]
mod tests {
    use karmada_api::{PropagationPolicy, names};
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn template() -> Value {
        json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": { "namespace": "shop", "name": "web", "labels": { "app": "web" } },
        })
    }

    /// Returns a policy, of namespace `shop` if it begins with `pp`.
    fn policy(name: &str, fields: &Value) -> PropagationPolicy {
        let mut selector = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": "web" });
        let mut spec = json!({});
        json_patch::merge(&mut spec, fields);
        if let Some(by) = fields.get("by") {
            selector.as_object_mut().unwrap().remove("name");
            json_patch::merge(&mut selector, by);
        }
        spec["resourceSelectors"] = json!([selector]);
        let is_cluster = name.starts_with("cpp");
        let label = if is_cluster {
            names::CLUSTER_POLICY_ID
        } else {
            names::POLICY_ID
        };
        let mut policy = json!({
            "metadata": { "name": name, "labels": { label: format!("id-{name}") } },
            "spec": spec,
        });
        if !is_cluster {
            policy["metadata"]["namespace"] = json!("shop");
        }
        if fields.get("deleting").is_some() {
            policy["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        serde_json::from_value(policy).unwrap()
    }

    fn claim_of(policies: &[PropagationPolicy], name: &str) -> Option<Claim> {
        let mut policies = policies.iter().map(Candidate::from);
        let policy = policies.find(|policy| policy.name() == name)?;
        Claim::by(&policy)
    }

    fn chosen(policies: &[(&str, Value)], claimed: &str) -> String {
        let policies: Vec<_> = policies.iter().map(|(name, f)| policy(name, f)).collect();
        let claim = claim_of(&policies, claimed);
        let candidates = policies.iter().map(Candidate::from);
        let allowed = Preemption::Allowed;
        match choose(
            &template(),
            claim.as_ref(),
            candidates,
            allowed,
            |_, name| name == "there",
        ) {
            Choice::None => "none".to_owned(),
            Choice::Policy(policy) => policy.name().to_owned(),
            Choice::Waits { policy, missing } => format!("{} waits {missing:?}", policy.name()),
            Choice::Unsupported { policy, .. } => format!("{} unsupported", policy.name()),
        }
    }

    /// Case P3: the best policy has an unclaimed template.
    #[test]
    fn best_policy_wins_unclaimed() {
        let by_label = json!({ "by": { "labelSelector": { "matchLabels": { "app": "web" } } } });
        let all = json!({ "by": {} });
        let table: [(&[(&str, Value)], &str); 9] = [
            (&[], "none"),
            (&[("pp-b", json!({})), ("pp-a", json!({}))], "pp-a"),
            (
                &[("pp-a", json!({})), ("pp-b", json!({ "priority": 1 }))],
                "pp-b",
            ),
            (
                &[("pp-a", json!({ "priority": -1 })), ("pp-b", json!({}))],
                "pp-b",
            ),
            (&[("pp-a", by_label.clone()), ("pp-b", json!({}))], "pp-b"),
            (&[("pp-a", all), ("pp-b", by_label)], "pp-b"),
            (
                &[("cpp", json!({ "priority": 9 })), ("pp", json!({}))],
                "pp",
            ),
            (
                &[("cpp", json!({})), ("pp", json!({ "deleting": true }))],
                "cpp",
            ),
            (&[("pp", json!({ "by": { "name": "other" } }))], "none"),
        ];
        for (policies, expected) in table {
            assert_eq!(chosen(policies, ""), expected, "{policies:?}");
        }
    }

    /// A claim holds against better policies until its policy lets go.
    #[test]
    fn claim_holds_against_better() {
        let better = ("pp-a", json!({ "priority": 9 }));
        let table = [
            (json!({}), "pp-z"),
            (json!({ "deleting": true }), "pp-a"),
            (json!({ "by": { "name": "other" } }), "pp-a"),
            (
                json!({ "suspension": { "dispatching": true, "dispatchingOnClusters": { "clusterNames": ["m"] } } }),
                "pp-a",
            ),
        ];
        for (held, expected) in table {
            let policies = [better.clone(), ("pp-z", held)];
            assert_eq!(chosen(&policies, "pp-z"), expected, "{policies:?}");
        }
        assert_eq!(chosen(&[better, ("cpp", json!({}))], "cpp"), "cpp");
    }

    /// A policy made again is another one.
    #[test]
    fn recreated_policy_is_another() {
        let policies = [policy("pp-a", &json!({})), policy("pp-z", &json!({}))];
        let mut claim = claim_of(&policies, "pp-z").unwrap();
        claim.id = "former".to_owned();
        let candidates = policies.iter().map(Candidate::from);
        let choice = choose(
            &template(),
            Some(&claim),
            candidates,
            Preemption::Off,
            |_, _| true,
        );
        assert!(matches!(choice, Choice::Policy(policy) if policy.name() == "pp-a"));
    }

    /// Preemption takes from lower priorities and from cluster policies.
    #[test]
    fn preemption_takes_lower_priorities() {
        let always = |priority: i32| json!({ "preemption": "Always", "priority": priority });
        let plain = |priority: i32| json!({ "priority": priority });
        let table: [(&str, Value, &str, Value, bool); 8] = [
            ("pp-a", always(1), "pp-z", plain(0), true),
            ("pp-a", always(0), "pp-z", plain(0), false),
            ("pp-a", plain(1), "pp-z", plain(0), false),
            ("pp-a", always(-1), "cpp", plain(5), true),
            ("pp-a", plain(9), "cpp", plain(5), false),
            ("cpp", always(9), "pp-z", plain(0), false),
            ("cpp-a", always(2), "cpp-z", plain(1), true),
            ("cpp-a", always(1), "cpp-z", plain(1), false),
        ];
        for (taker, of_taker, holder, of_holder, takes) in table {
            let policies = [(taker, of_taker), (holder, of_holder)];
            let expected = if takes { taker } else { holder };
            assert_eq!(chosen(&policies, holder), expected, "{policies:?}");
        }
    }

    /// With the feature off, a template leaves its policy only when that lets go.
    #[test]
    fn preemption_is_switched_off() {
        let always = policy("pp-a", &json!({ "preemption": "Always", "priority": 1 }));
        let choice = |holder: PropagationPolicy| {
            let claim = Claim::by(&(&holder).into());
            let policies = [always.clone(), holder];
            let candidates = policies.iter().map(Candidate::from);
            let template = template();
            match choose(
                &template,
                claim.as_ref(),
                candidates,
                Preemption::Off,
                |_, _| true,
            ) {
                Choice::Policy(policy) => policy.name().to_owned(),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(choice(policy("cpp", &json!({}))), "cpp");
        assert_eq!(choice(policy("cpp", &json!({ "deleting": true }))), "pp-a");
    }

    /// A policy waits for its overrides and an unsupported one keeps the template.
    #[test]
    fn policy_awaits_its_overrides() {
        let waits = json!({ "dependentOverrides": ["there", "gone"] });
        assert_eq!(chosen(&[("pp", waits)], ""), "pp waits [\"gone\"]");
        let ready = json!({ "dependentOverrides": ["there"] });
        assert_eq!(chosen(&[("pp", ready)], ""), "pp");
        let unsupported =
            json!({ "placement": { "replicaScheduling": { "replicaSchedulingType": "Newer" } } });
        assert_eq!(
            chosen(&[("pp", unsupported), ("cpp", json!({}))], ""),
            "pp unsupported"
        );
    }

    proptest! {
        /// The choice is settled and does not depend on the order.
        #[test]
        fn order_decides_nothing(
            policies in prop::collection::btree_map(0_usize..6, (any::<bool>(), any::<bool>(), -1_i32..3), 1..6),
            claimed in 0_usize..6,
        ) {
            let policies: Vec<_> = policies
                .into_iter()
                .map(|(n, (is_cluster, always, priority))| {
                    let preemption = if always { "Always" } else { "Never" };
                    let name = if is_cluster { format!("cpp-{n}") } else { format!("pp-{n}") };
                    policy(&name, &json!({ "preemption": preemption, "priority": priority }))
                })
                .collect();
            let name = |choice: &Choice<'_>| match choice {
                Choice::Policy(policy) => policy.name().to_owned(),
                other => panic!("{other:?}"),
            };
            let claim = policies.get(claimed).and_then(|p| Claim::by(&p.into()));
            let allowed = Preemption::Allowed;
            let forwards = choose(&template(), claim.as_ref(), policies.iter().map(Candidate::from), allowed, |_, _| true);
            let backwards = choose(&template(), claim.as_ref(), policies.iter().rev().map(Candidate::from), allowed, |_, _| true);
            prop_assert_eq!(name(&forwards), name(&backwards));
            // Made a claim of its own, the choice stands.
            let claim = claim_of(&policies, &name(&forwards));
            let again = choose(&template(), claim.as_ref(), policies.iter().map(Candidate::from), allowed, |_, _| true);
            prop_assert_eq!(name(&again), name(&forwards));
        }
    }
}

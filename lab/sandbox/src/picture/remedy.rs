//! The Remedies that exist, with the status of each, and the samples that could be created.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use karmada_api::remedy::{ACCEPTED, ACTIVE, REASON};
use karmada_api::{ClusterConditionRequirement, Operator, Remedy};
use kube::ResourceExt;
use tokio::time::Instant;
use traffic::remedy::{self, Decision, Expiry, Mode, Scope};

use super::state::{ConditionState, RemedyPhase, RemedyState};
use super::timeline::{Stage, Step, Timeline};
use crate::sample_remedy::SampleRemedy;

#[derive(Debug)]
pub(super) struct Remedies {
    members: Vec<String>,
    /// None before the first list.
    known: Option<BTreeMap<String, Arc<Remedy>>>,
    /// The names of those that the timeline has an end of.
    expired: BTreeSet<String>,
    samples: Vec<Remedy>,
}

impl Remedies {
    pub(super) fn new(members: &[String]) -> Self {
        let samples = SampleRemedy::ALL.into_iter();
        Self {
            members: members.to_vec(),
            known: None,
            expired: BTreeSet::new(),
            samples: samples.filter_map(|it| it.remedy().ok()).collect(),
        }
    }

    /// Returns those that exist.
    pub(super) fn existing(&self) -> impl Iterator<Item = &Arc<Remedy>> {
        self.known.iter().flat_map(BTreeMap::values)
    }

    /// Replaces those that exist.
    pub(super) fn replace(
        &mut self,
        at: Instant,
        remedies: Vec<Arc<Remedy>>,
        timeline: &mut Timeline,
    ) {
        let now: BTreeMap<_, _> = remedies.into_iter().map(|r| (r.name_any(), r)).collect();
        if let Some(before) = &self.known {
            let created = now.iter().filter(|(name, _)| !before.contains_key(*name));
            let deleted = before.iter().filter(|(name, _)| !now.contains_key(*name));
            for (_, remedy) in created {
                let step = Step(Stage::RemedyCreated, true);
                self.note(at, remedy, step, "created", timeline);
            }
            for (_, remedy) in deleted {
                let step = Step(Stage::RemedyDeleted, false);
                self.note(at, remedy, step, "deleted", timeline);
            }
        }
        self.known = Some(now);
    }

    /// Notes the ends that have passed. Whoever sees all updates so learns of an end before its effects.
    pub(super) fn expire(&mut self, at: Instant, timeline: &mut Timeline) {
        let now = Timestamp::now();
        let over: Vec<_> = (self.existing())
            .filter(|remedy| Mode::of(remedy, now) == Mode::Expired)
            .map(Arc::clone)
            .collect();
        for remedy in &over {
            if !self.expired.contains(&remedy.name_any()) {
                let step = Step(Stage::RemedyExpired, false);
                self.note(at, remedy, step, "expired", timeline);
            }
        }
        // The end of one may be moved to the future.
        self.expired = over.iter().map(|remedy| remedy.name_any()).collect();
    }

    /// Adds an entry on a Remedy, with which a sequence begins for the members that it covers.
    fn note(&self, at: Instant, remedy: &Remedy, step: Step, what: &str, timeline: &mut Timeline) {
        let scope = Scope::of(remedy);
        let covered = self.members.iter().filter(|name| scope.covers(name));
        let text = format!("Remedy {} {what}", remedy.name_any());
        timeline.add_for_all(at, covered, step, text);
    }

    /// Returns the samples, whether they exist or not, and then all others.
    pub(super) fn states(&self) -> Vec<RemedyState> {
        let samples = self.samples.iter().map(|sample| {
            let name = sample.name_any();
            let existing = self.existing().find(|remedy| remedy.name_any() == name);
            existing.map_or_else(|| RemedyState::absent(sample), |it| RemedyState::of(it))
        });
        let sample_names: Vec<String> = self.samples.iter().map(ResourceExt::name_any).collect();
        let others = (self.existing()).filter(|remedy| !sample_names.contains(&remedy.name_any()));
        samples
            .chain(others.map(|remedy| RemedyState::of(remedy)))
            .collect()
    }
}

impl RemedyState {
    /// Returns the state of a Remedy that exists.
    pub(super) fn of(remedy: &Remedy) -> Self {
        let status = remedy.status.clone().unwrap_or_default();
        let conditions = status.conditions.into_iter().flatten();
        let own = conditions.filter(|it| [ACCEPTED, ACTIVE].contains(&it.type_.as_str()));
        let conditions = own.map(|condition| ConditionState {
            since_ms: unix_ms(condition.last_transition_time.0),
            kind: condition.type_,
            status: condition.status,
            reason: condition.reason,
            message: condition.message,
        });
        Self {
            phase: remedy::State::told_by(remedy).into(),
            conditions: conditions.collect(),
            acting: status.active_cluster_names.unwrap_or_default(),
            refused: status.refused_cluster_names.unwrap_or_default(),
            expires_ms: match Expiry::of(remedy) {
                Expiry::At(end) => Some(unix_ms(end)),
                Expiry::Never | Expiry::Unreadable => None,
            },
            ..Self::absent(remedy)
        }
    }

    /// Returns the state of a Remedy that does not exist.
    pub(super) fn absent(remedy: &Remedy) -> Self {
        Self {
            name: remedy.name_any(),
            rule: rule(remedy),
            phase: RemedyPhase::Absent,
            conditions: Vec::new(),
            acting: Vec::new(),
            refused: Vec::new(),
            expires_ms: None,
            reason: remedy.annotations().get(REASON).cloned(),
        }
    }
}

impl From<Option<remedy::State>> for RemedyPhase {
    fn from(told: Option<remedy::State>) -> Self {
        match told {
            None => Self::NoStatus,
            Some(remedy::State::Expired) => Self::Expired,
            Some(remedy::State::NotAccepted) => Self::NotAccepted,
            Some(remedy::State::ObserveOnly) => Self::ObserveOnly,
            Some(remedy::State::Active) => Self::Active,
            Some(remedy::State::Idle) => Self::Idle,
        }
    }
}

/// Returns the rule that a Remedy sets, in words.
fn rule(remedy: &Remedy) -> String {
    let actions = remedy.spec.actions.as_deref().unwrap_or_default();
    let actions = match actions {
        [] => "No action".to_owned(),
        actions => actions.join(", "),
    };
    let clusters = match Scope::of(remedy) {
        Scope::Every => "every cluster".to_owned(),
        Scope::Named(names) if names.is_empty() => "no cluster".to_owned(),
        Scope::Named(names) => names.into_iter().collect::<Vec<_>>().join(", "),
    };
    let decision = Decision::of(remedy);
    let conditions: Vec<_> = decision.requirements().filter_map(condition).collect();
    let conditions = match &decision {
        Decision::AtOnce => return format!("{actions} on {clusters}, at once"),
        Decision::Unreadable(_) => return format!("{actions} on {clusters}, nobody can tell when"),
        Decision::Any(_) if conditions.is_empty() => {
            return format!("{actions} on {clusters}, never");
        }
        Decision::Any(_) => conditions.join(" or "),
        Decision::All(_) => conditions.join(" and "),
    };
    format!("{actions} on {clusters} where {conditions}")
}

fn condition(wanted: &ClusterConditionRequirement) -> Option<String> {
    let (kind, status) = (&wanted.condition_type, &wanted.condition_status);
    Some(match wanted.operator? {
        Operator::Equal => format!("{kind} is {status}"),
        Operator::NotEqual => format!("{kind} is not {status}"),
    })
}

fn unix_ms(time: Timestamp) -> u64 {
    u64::try_from(time.as_millisecond()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use karmada_api::remedy::{EXPIRES_AT, WHEN};
    use serde_json::{Value, json};

    use super::super::timeline::Clock;
    use super::*;

    fn remedy(name: &str, spec: &Value) -> Remedy {
        serde_json::from_value(json!({ "metadata": { "name": name }, "spec": spec })).unwrap()
    }

    /// A rule is told in words.
    #[test]
    fn rule_is_worded() {
        let when = |operator: &str, status: &str| {
            json!({ "clusterConditionMatch": { "conditionType": "Dns", "operator": operator,
                "conditionStatus": status } })
        };
        let named = json!({ "clusterNames": ["m2", "m1"] });
        for (spec, expected) in [
            (
                json!({ "actions": ["TrafficControl"] }),
                "TrafficControl on every cluster, at once",
            ),
            (
                json!({ "actions": ["A", "B"], "clusterAffinity": named }),
                "A, B on m1, m2, at once",
            ),
            (
                json!({ "actions": ["A"], "clusterAffinity": {}, "decisionMatches": [] }),
                "A on no cluster, never",
            ),
            (
                json!({ "decisionMatches": [{}, when("Equal", "False"), when("NotEqual", "True")] }),
                "No action on every cluster where Dns is False or Dns is not True",
            ),
        ] {
            assert_eq!(rule(&remedy("r", &spec)), expected, "{spec}");
        }
        for (when, expected) in [
            (
                "Ready!=True,Dns=False",
                "A on every cluster where Ready is not True and Dns is False",
            ),
            ("Ready", "A on every cluster, nobody can tell when"),
        ] {
            let mut remedy = remedy("r", &json!({ "actions": ["A"], "decisionMatches": [] }));
            let annotations = remedy.metadata.annotations.get_or_insert_default();
            annotations.insert(WHEN.to_owned(), when.to_owned());
            assert_eq!(rule(&remedy), expected, "{when}");
        }
    }

    /// A remedy shows its status and its end.
    #[test]
    fn remedy_shows_status_and_end() {
        let condition = |kind: &str, status: &str, reason: &str, message: &str| {
            json!({ "type": kind, "status": status, "reason": reason, "message": message,
                "lastTransitionTime": "1970-01-01T00:00:07Z" })
        };
        let accepted = condition("Accepted", "True", "Accepted", "");
        let mut made = remedy("r", &json!({ "actions": ["TrafficControl"] }));
        made.metadata.generation = Some(1);
        assert_eq!(RemedyState::of(&made).phase, RemedyPhase::NoStatus);
        let annotations = [(EXPIRES_AT, "1970-01-01T00:01:00Z"), (REASON, "new kernel")];
        let annotations = annotations.map(|(name, value)| (name.to_owned(), value.to_owned()));
        made.metadata.annotations = Some(annotations.into());
        let active = condition("Active", "True", "ActionsRequired", "acts on m1");
        let foreign = condition("Reviewed", "True", "By", "");
        let status = json!({ "observedGeneration": 1, "conditions": [foreign, accepted, active],
            "activeClusterNames": ["m1"], "refusedClusterNames": ["m2"] });
        made.status = serde_json::from_value(status).unwrap();
        let state = RemedyState::of(&made);
        assert_eq!(state.phase, RemedyPhase::Active);
        assert_eq!(
            (&*state.acting, &*state.refused),
            (&["m1".to_owned()][..], &["m2".to_owned()][..])
        );
        assert_eq!(state.expires_ms, Some(60_000));
        assert_eq!(state.reason.as_deref(), Some("new kernel"));
        let shown: Vec<_> = state
            .conditions
            .iter()
            .map(|c| (&*c.kind, &*c.message, c.since_ms))
            .collect();
        assert_eq!(
            shown,
            [("Accepted", "", 7000), ("Active", "acts on m1", 7000)]
        );
    }

    /// Samples come first whether they exist or not.
    #[test]
    fn samples_come_first() {
        let mut remedies = Remedies::new(&[]);
        let mut timeline = Timeline::new(Clock::new());
        let others = ["zeta", "dns", "alpha"].map(|name| Arc::new(remedy(name, &json!({}))));
        remedies.replace(Instant::now(), others.into(), &mut timeline);
        let states = remedies.states();
        let shown: Vec<_> = states.iter().map(|it| (&*it.name, it.phase)).collect();
        let (no_status, absent) = (RemedyPhase::NoStatus, RemedyPhase::Absent);
        let expected = [
            ("dns", no_status),
            ("unreachable", absent),
            ("maintenance-member1", absent),
            ("alpha", no_status),
            ("zeta", no_status),
        ];
        assert_eq!(shown, expected);
    }

    /// The end of a remedy is on the timeline once and again if it was moved.
    #[test]
    fn remedys_end_shows_once() {
        let mut remedies = Remedies::new(&["m1".to_owned()]);
        let mut timeline = Timeline::new(Clock::new());
        let mut note = |ends: &str| {
            let mut window = remedy("window", &json!({ "actions": ["TrafficControl"] }));
            window.metadata.annotations = Some([(EXPIRES_AT.to_owned(), ends.to_owned())].into());
            let now = Instant::now();
            remedies.replace(now, vec![Arc::new(window)], &mut timeline);
            remedies.expire(now, &mut timeline);
            let entries = timeline.take().into_iter();
            entries.map(|it| (it.stage, it.text)).collect::<Vec<_>>()
        };
        let expired = [(Stage::RemedyExpired, "Remedy window expired".to_owned())];
        let (past, future) = ("2020-01-01T00:00:00Z", "2999-01-01T00:00:00Z");
        assert_eq!(note(future), []);
        assert_eq!(note(past), expired);
        assert_eq!(note(past), []);
        assert_eq!(note(future), []);
        assert_eq!(note(past), expired);
    }
}

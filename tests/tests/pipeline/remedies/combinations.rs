//! Combinations of the fields and annotations of a Remedy, and what each must do.

use karmada_api::{
    Remedy,
    condition::DNS_READY,
    remedy::{EXPIRES_AT, OBSERVE_ONLY, WHEN},
};
use serde_json::{Value, json};

/// A time that has passed.
const PAST: &str = "2020-01-01T00:00:00Z";

/// One combination of fields and annotations.
pub(super) struct Combination {
    affinity: Value,
    matches: Value,
    /// Operator and status, where the matches have a requirement.
    required: Option<[&'static str; 2]>,
    annotation: Option<[&'static str; 2]>,
}

/// Returns every combination.
pub(super) fn combinations() -> Vec<Combination> {
    let all = json!(["member1", "member2", "member3", "member4", "unknown"]);
    let affinities = [
        Value::Null,
        json!({}),
        json!({ "clusterNames": [] }),
        json!({ "clusterNames": all }),
        json!({ "clusterNames": ["unknown"] }),
    ];
    let mut matches = vec![(Value::Null, None), (json!([]), None), (json!([{}]), None)];
    for operator in ["Equal", "NotEqual"] {
        for status in ["True", "False", "Unknown"] {
            let required = json!({ "clusterConditionMatch": {
                "conditionType": DNS_READY, "operator": operator, "conditionStatus": status } });
            let other = json!({ "clusterConditionMatch": {
                "conditionType": "Other", "operator": "NotEqual", "conditionStatus": "True" } });
            for list in [json!([required]), json!([{}, other, required])] {
                matches.push((list, Some([operator, status])));
            }
        }
    }
    let annotations = [
        None,
        Some([OBSERVE_ONLY, "true"]),
        Some([OBSERVE_ONLY, "false"]),
        Some([OBSERVE_ONLY, "yes"]),
        Some([EXPIRES_AT, PAST]),
        Some([EXPIRES_AT, "2120-01-01T00:00:00+01:00"]),
        Some([EXPIRES_AT, "tomorrow"]),
        Some([WHEN, "ServiceDomainNameResolutionReady=False"]),
    ];
    let mut combinations = Vec::new();
    for affinity in &affinities {
        for (matches, required) in &matches {
            combinations.extend(annotations.map(|annotation| Combination {
                affinity: affinity.clone(),
                matches: matches.clone(),
                required: *required,
                annotation,
            }));
        }
    }
    combinations
}

impl Combination {
    /// Returns the Remedy, which has this action.
    pub(super) fn remedy(&self, action: &str) -> Remedy {
        let spec = json!({ "clusterAffinity": self.affinity, "decisionMatches": self.matches,
            "actions": [action] });
        let spec = serde_json::from_value(spec).unwrap();
        let mut remedy = Remedy::new(&action.to_lowercase(), spec);
        let annotation = self.annotation.map(|set| set.map(str::to_owned).into());
        remedy.metadata.annotations = annotation.map(|set: (String, String)| [set].into());
        remedy
    }

    fn has_when(&self) -> bool {
        matches!(self.annotation, Some([WHEN, _]))
    }

    /// Returns `true` if the Remedy acts on a member whose condition has this status.
    pub(super) fn acts(&self, member: &str, status: Option<&str>) -> bool {
        let names = self.affinity["clusterNames"].as_array();
        let is_covered =
            self.affinity.is_null() || names.is_some_and(|names| names.contains(&json!(member)));
        let is_met = match (self.required, status) {
            // It counts beside an empty list alone.
            _ if self.has_when() => self.matches == json!([]) && status == Some("False"),
            (Some(["Equal", required]), Some(status)) => required == status,
            (Some([_, required]), Some(status)) => required != status,
            (Some(_), None) => false,
            (None, _) => self.matches.is_null(),
        };
        let in_force = match self.annotation {
            None | Some([WHEN, _]) => true,
            Some([OBSERVE_ONLY, value]) => value == "false",
            Some([_, end]) => end != PAST,
        };
        is_covered && is_met && in_force
    }
}

//! The conditions of a `Cluster`, and those of them that the agent owns: their types and reasons.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use objects::condition::AnyCondition;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::lenient::{self, Any};

/// The condition with the agent's verdict: True if the names of Services resolve inside the cluster.
pub const DNS_READY: &str = "ServiceDomainNameResolutionReady";
/// The reason of a True [`DNS_READY`].
pub const DNS_READY_REASON: &str = "ServiceDomainNameResolutionReady";
/// The reason of a False [`DNS_READY`].
pub const DNS_FAILED_REASON: &str = "ServiceDomainNameResolutionFailed";

/// The condition of the verdict's freshness: True while [`DNS_READY`] is up to date.
pub const REPORTER_READY: &str = "HealthReporterReady";
/// The reason of a True [`REPORTER_READY`].
pub const REPORTING_REASON: &str = "Reporting";
/// The reason of a False [`REPORTER_READY`] while too few nodes have a vote.
pub const INSUFFICIENT_OBSERVATIONS_REASON: &str = "InsufficientObservations";

/// The reason of a False [`REPORTER_READY`] while nobody renews the reporter's lease. The agents cannot
/// write it themselves: the remedy-controller does.
pub const REPORTER_SILENT_REASON: &str = "ReporterSilent";
/// The name of the lease of a cluster's reporter, in the cluster's execution namespace.
pub const REPORTER_LEASE: &str = "cluster-health-agent";

/// The types of the conditions that karmada-rs owns on a `Cluster`.
pub const OWNED: [&str; 2] = [DNS_READY, REPORTER_READY];

/// The status `True` on the wire.
pub const TRUE: &str = "True";
/// The status `False` on the wire.
pub const FALSE: &str = "False";

/// A condition, with the fields that karmada-rs uses. The API does not validate it: any client may leave
/// fields out, or write null for them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct Condition {
    /// The condition's type, unique among the conditions of an object.
    #[serde(rename = "type")]
    pub type_: String,
    /// `True`, `False` or `Unknown`; empty if the writer left it out.
    pub status: String,
    /// The reason of the last transition, one word; empty if the writer left it out.
    pub reason: String,
    /// The details.
    pub message: String,
    /// The time at which the status changed last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
    /// The generation of the object's spec that the condition is about. The conditions of a `Cluster` have
    /// none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub observed_generation: Option<i64>,
    /// Set if the status is of another type than text. Nothing may be decided on it.
    #[serde(skip)]
    pub unclear: bool,
}

impl AnyCondition for Condition {
    fn kind(&self) -> &str {
        &self.type_
    }

    fn status(&self) -> &str {
        &self.status
    }

    fn last_transition(&self) -> Option<Time> {
        self.last_transition_time.clone()
    }
}

impl<'de> Deserialize<'de> for Condition {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Wire {
            #[serde(default, deserialize_with = "lenient::nullable")]
            r#type: String,
            #[serde(default)]
            status: Option<Any<String>>,
            #[serde(default, deserialize_with = "lenient::or_default")]
            reason: String,
            #[serde(default, deserialize_with = "lenient::or_default")]
            message: String,
            #[serde(default, deserialize_with = "lenient::option")]
            last_transition_time: Option<Time>,
            #[serde(default, deserialize_with = "lenient::option")]
            observed_generation: Option<i64>,
        }
        let wire = Wire::deserialize(deserializer)?;
        Ok(Self {
            type_: wire.r#type,
            unclear: matches!(wire.status, Some(Any(None))),
            status: wire
                .status
                .and_then(|Any(status)| status)
                .unwrap_or_default(),
            reason: wire.reason,
            message: wire.message,
            last_transition_time: wire.last_transition_time,
            observed_generation: wire.observed_generation,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;

    #[test]
    fn a_condition_is_read_whatever_its_other_fields_are() {
        assert!(from_value::<Condition>(json!({ "type": 7 })).is_err());
        for nothing in [json!({}), json!({ "type": null })] {
            assert_eq!(
                from_value::<Condition>(nothing).unwrap(),
                Condition::default()
            );
        }
        let bare: Condition = from_value(json!({ "type": "A" })).unwrap();
        let empty = Condition {
            type_: "A".to_owned(),
            ..Condition::default()
        };
        assert_eq!(bare, empty);
        for odd in [Value::Null, json!(7), json!([]), json!({})] {
            let condition: Condition = from_value(json!({
                "type": "A", "status": "True", "reason": odd, "message": odd,
                "lastTransitionTime": odd, "observedGeneration": [odd],
            }))
            .unwrap();
            let status = "True".to_owned();
            assert_eq!(
                condition,
                Condition {
                    status,
                    ..empty.clone()
                }
            );
        }
    }

    #[test]
    fn a_status_that_is_no_text_is_unclear_and_an_absent_one_empty() {
        let unclear = |status| {
            let condition: Condition =
                from_value(json!({ "type": "A", "status": status })).unwrap();
            assert_eq!(condition.status, "");
            condition.unclear
        };
        assert!(unclear(json!(7)));
        assert!(unclear(json!(["True"])));
        assert!(!unclear(Value::Null));
        assert!(!unclear(json!("")));
    }
}

use kube::CustomResource;
use objects::condition::find;
use schemars::JsonSchema;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};

use crate::Condition;
use objects::lenient::Any;

/// The access to a member cluster, and what selects it.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[kube(
    group = "cluster.karmada.io",
    version = "v1alpha1",
    kind = "Cluster",
    plural = "clusters",
    category = "karmada-io",
    status = "ClusterStatus",
    derive = "Default",
    derive = "PartialEq",
    printcolumn = r#"{"name": "Version", "type": "string", "jsonPath": ".status.kubernetesVersion"}"#,
    printcolumn = r#"{"name": "Mode", "type": "string", "jsonPath": ".spec.syncMode"}"#,
    printcolumn = r#"{"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    doc = "A member cluster, with the fields karmada-rs uses. On a Karmada this kind is served by its aggregated API: install this definition on a plain API server only."
)]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct ClusterSpec {}

impl<'de> Deserialize<'de> for ClusterSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // An `Option`, because serde reads an absent field as none of those only.
        Option::<IgnoredAny>::deserialize(deserializer)?;
        Ok(Self {})
    }
}

/// The status of a member cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct ClusterStatus {
    /// Conditions of several clients, one of each type. The list is atomic: each client must patch its own element only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
    /// The actions that the matching remedies require, sorted and unique; absent rather than empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy_actions: Option<Vec<String>>,
    /// Set if the conditions, or one of them, cannot be read, so that any condition may be among them.
    /// `conditions` has the others.
    #[serde(skip)]
    pub unclear_conditions: bool,
    /// Set if some or all of the actions are of another type than text, so that any action may be among
    /// them. `remedy_actions` has the others, and is not absent.
    #[serde(skip)]
    pub unclear_actions: bool,
}

impl<'de> Deserialize<'de> for ClusterStatus {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Wire {
            #[serde(default)]
            conditions: Option<Any<Vec<Any<Option<Condition>>>>>,
            #[serde(default)]
            remedy_actions: Option<Any<Vec<Any<String>>>>,
        }
        let wire = Wire::deserialize(deserializer)?;
        let mut unclear_conditions = false;
        let conditions = wire.conditions.map(|Any(list)| {
            unclear_conditions = list.is_none();
            let read = list
                .unwrap_or_default()
                .into_iter()
                .filter_map(|Any(element)| {
                    unclear_conditions |= element.is_none();
                    element.flatten()
                });
            // Nobody can refer to a condition without a type.
            read.filter(|condition| !condition.type_.is_empty())
                .collect()
        });
        let mut unclear = false;
        let actions = wire.remedy_actions.map(|Any(list)| {
            unclear = list.is_none();
            let elements = list.unwrap_or_default().into_iter();
            elements
                .filter_map(|Any(action)| {
                    unclear |= action.is_none();
                    action
                })
                .collect()
        });
        Ok(Self {
            conditions,
            unclear_conditions,
            remedy_actions: actions,
            unclear_actions: unclear,
        })
    }
}

impl Cluster {
    /// Returns all conditions, of every client.
    pub fn conditions(&self) -> &[Condition] {
        self.status
            .as_ref()
            .and_then(|status| status.conditions.as_deref())
            .unwrap_or_default()
    }

    /// Returns the condition of type `kind`.
    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        find(self.conditions(), kind)
    }

    /// Returns `true` if the status of the condition of type `kind` cannot be read, or the condition may be
    /// one that cannot.
    pub fn is_unclear(&self, kind: &str) -> bool {
        match self.condition(kind) {
            Some(condition) => condition.unclear,
            None => self
                .status
                .as_ref()
                .is_some_and(|status| status.unclear_conditions),
        }
    }

    /// Returns `true` if the actions cannot all be read.
    pub fn has_unclear_actions(&self) -> bool {
        self.status
            .as_ref()
            .is_some_and(|status| status.unclear_actions)
    }

    /// Returns the actions that remedies require on this cluster.
    pub fn remedy_actions(&self) -> &[String] {
        self.status
            .as_ref()
            .and_then(|status| status.remedy_actions.as_deref())
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;

    fn status(status: Value) -> serde_json::Result<ClusterStatus> {
        from_value(status)
    }

    #[test]
    fn unreadable_condition_loses_no_other() {
        let read = status(json!({ "conditions": [7, null, {}, { "type": "A" }, { "type": 7 }] }));
        let read = read.unwrap();
        assert!(read.unclear_conditions);
        let conditions = read.conditions.unwrap();
        assert_eq!(conditions.len(), 1);
        assert_eq!(conditions[0].type_, "A");
        let typeless = status(json!({ "conditions": [null, {}, { "type": null }] })).unwrap();
        assert_eq!(typeless.conditions, Some(vec![]));
        assert!(!typeless.unclear_conditions);
        let odd = status(json!({ "conditions": 7 })).unwrap();
        assert!(odd.unclear_conditions);
        let absent = status(json!({ "conditions": null })).unwrap();
        assert_eq!(absent, ClusterStatus::default());
        assert!(status(json!(7)).is_err(), "any action may be there");
    }

    /// Unreadable actions are neither absent nor known.
    #[test]
    fn unreadable_actions_stay_unknown() {
        for (actions, known, unclear) in [
            (json!(null), None, false),
            (json!([]), Some(&[][..]), false),
            (json!(["A"]), Some(&["A"]), false),
            (json!(["A", 7]), Some(&["A"]), true),
            (json!([null]), Some(&[]), true),
            (json!("A"), Some(&[]), true),
            (json!({ "A": true }), Some(&[]), true),
        ] {
            let read = status(json!({ "remedyActions": actions })).unwrap();
            let known = known.map(|known| known.iter().map(|&a: &&str| a.to_owned()).collect());
            assert_eq!(
                (read.remedy_actions, read.unclear_actions),
                (known, unclear),
                "{actions}"
            );
        }
    }

    #[test]
    fn spec_may_be_absent() {
        for spec in [json!({}), json!({ "spec": null }), json!({ "spec": 7 })] {
            let mut cluster = spec;
            cluster["metadata"] = json!({});
            assert_eq!(from_value::<Cluster>(cluster).unwrap(), Cluster::default());
        }
    }
}

//! The cases to decide, and the decisions.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use serde_json::Value;

/// The annotation of a cluster with the answer of its estimator.
pub(super) const ESTIMATE: &str = "karmada-rs.io/estimate";

/// A binding that is to be scheduled to clusters.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Case {
    pub(super) clusters: Vec<Value>,
    pub(super) binding: Value,
    /// True with `--enable-empty-workload-propagation`.
    pub(super) keeps_empty: bool,
}

impl Case {
    /// Returns the placement of the binding.
    pub(super) fn placement(&mut self) -> &mut Value {
        &mut self.binding["spec"]["placement"]
    }

    /// Returns the names of the clusters in which the template is before the decision.
    pub(super) fn targets(&self) -> Vec<&str> {
        let targets = elements(&self.binding["spec"]["clusters"]);
        targets
            .filter_map(|target| target["name"].as_str())
            .collect()
    }
}

/// Iterates over the elements of a list; one that is not there has none.
pub(super) fn elements(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// The decision of a scheduler.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Decision {
    pub(super) clusters: BTreeMap<String, i64>,
    /// The group of clusters in use; none where the placement has no groups.
    pub(super) group: Option<String>,
    /// The reason of the condition.
    pub(super) reason: String,
    pub(super) message: String,
}

impl Decision {
    /// Reads the decision in the binding that a scheduler has written.
    pub(super) fn of(binding: &Value) -> Self {
        let (spec, status) = (&binding["spec"], &binding["status"]);
        let clusters = elements(&spec["clusters"]).map(|target| {
            let replicas = target["replicas"].as_i64().unwrap_or_default();
            (text(&target["name"]), replicas)
        });
        let mut conditions = elements(&status["conditions"]);
        let condition = conditions.find(|condition| condition["type"] == "Scheduled");
        let of_condition = |key: &str| condition.map(|condition| text(&condition[key]));
        let has_groups = elements(&spec["placement"]["clusterAffinities"]).next();
        let group = has_groups.map(|_| text(&status["schedulerObservingAffinityName"]));
        Self {
            clusters: clusters.collect(),
            group,
            reason: of_condition("reason").unwrap_or_default(),
            message: of_condition("message").unwrap_or_default(),
        }
    }

    /// Returns `true` if the binding was scheduled.
    pub(super) fn succeeds(&self) -> bool {
        self.reason == "Success"
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            clusters,
            group,
            reason,
            message,
        } = self;
        for (name, replicas) in clusters {
            write!(f, "{name} {replicas}, ")?;
        }
        if let Some(group) = group {
            write!(f, "group '{group}', ")?;
        }
        write!(f, "{reason}: {message}")
    }
}

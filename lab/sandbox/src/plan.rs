//! The plan of a Remedy before it exists, as `kubectl remedy plan` tells it.

use anyhow::{Error, Result};
use clap::Parser;
use jiff::Timestamp;
use karmada_api::Remedy;
use kube::Client;
use kubectl_remedy::{ControllerArgs, FleetSnapshot, Plan};
use serde::Serialize;
use traffic::ingress::BackendChange;

/// The difference that a Remedy would make, as the page receives it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PlanState {
    /// The Remedy cannot be created, for a reason of one line.
    Refused(String),
    /// It can be created, and would change this.
    Accepted {
        clusters: Vec<ClusterChange>,
        backends: Vec<BackendState>,
        /// Likely mistakes, in words.
        warnings: Vec<String>,
    },
}

/// A change of a cluster's actions, or one that is not made for a reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct ClusterChange {
    cluster: String,
    kind: ChangeKind,
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum ChangeKind {
    /// It gets an action.
    Set,
    /// It loses one.
    Cleared,
    /// The bound keeps it from getting one.
    OverBound,
    /// It would get one if the Remedy did not only observe.
    Observed,
}

/// A change of the clusters that serve a backend of an ingress.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct BackendState {
    ingress: String,
    service: String,
    lost: Vec<String>,
    gained: Vec<String>,
    left: Vec<String>,
    cut_off: bool,
}

/// The flags of the controllers, which run with their defaults here.
#[derive(Debug, Parser)]
struct Flags {
    #[command(flatten)]
    controllers: ControllerArgs,
}

/// Returns the difference that `remedy` would make to the fleet now.
pub(crate) async fn plan(client: &Client, remedy: Remedy, now: Timestamp) -> Result<PlanState> {
    let Flags { controllers } = Flags::try_parse_from([kubectl_remedy::NAME])?;
    let fleet = FleetSnapshot::read(client, None, now)
        .await
        .map_err(Error::msg)?;
    Ok(Plan::of(fleet, vec![remedy], &controllers).into())
}

impl From<Plan> for PlanState {
    fn from(plan: Plan) -> Self {
        let clusters = plan.clusters.into_iter();
        Self::Accepted {
            clusters: clusters.flat_map(ClusterChange::all_of).collect(),
            backends: plan.backends.into_iter().map(BackendState::of).collect(),
            warnings: plan.warnings,
        }
    }
}

impl ClusterChange {
    fn all_of(known: kubectl_remedy::ClusterChange) -> impl Iterator<Item = Self> {
        let changes = known.changes.into_iter();
        changes.map(move |change| Self {
            cluster: known.name.clone(),
            kind: change.kind.into(),
            text: change.message,
        })
    }
}

impl From<kubectl_remedy::ChangeKind> for ChangeKind {
    fn from(kind: kubectl_remedy::ChangeKind) -> Self {
        use kubectl_remedy::ChangeKind as Kind;
        match kind {
            Kind::Set => Self::Set,
            Kind::Cleared => Self::Cleared,
            Kind::Refused => Self::OverBound,
            Kind::WouldSet => Self::Observed,
        }
    }
}

impl BackendState {
    fn of(change: BackendChange) -> Self {
        Self {
            ingress: format!("{}/{}", change.namespace, change.ingress),
            service: change.service,
            lost: change.lost,
            gained: change.gained,
            left: change.left.iter().map(ToString::to_string).collect(),
            cut_off: change.is_cut_off,
        }
    }
}

#[cfg(test)]
mod tests {
    use kubectl_remedy::Change;
    use serde_json::json;
    use traffic::remedy::{ActionChange, Cause, ObservedActions};

    use super::*;

    /// The page gets each change with its kind and the words of kubectl.
    #[test]
    fn plan_has_kubectls_words() {
        let set = ActionChange::Set {
            action: "TrafficControl".to_owned(),
            remedy: "r".to_owned(),
            cause: Cause::Unconditional,
        };
        let observed = ObservedActions {
            remedy: "r".to_owned(),
            actions: vec!["TrafficControl".to_owned()],
            cause: Cause::Unconditional,
        };
        let known = |name: &str, change| kubectl_remedy::ClusterChange {
            name: name.to_owned(),
            actions: Vec::new(),
            changes: vec![change],
        };
        let backend = BackendChange {
            namespace: "shop".to_owned(),
            ingress: "shop".to_owned(),
            service: "web".to_owned(),
            lost: vec!["member1".to_owned()],
            gained: Vec::new(),
            left: Vec::new(),
            is_cut_off: true,
        };
        let plan = Plan {
            clusters: vec![
                known("member1", Change::from(&set)),
                known("member2", Change::from(&observed)),
            ],
            backends: vec![backend],
            warnings: vec!["Remedy r: odd".to_owned()],
        };
        let would =
            "TrafficControl would be set by Remedy r, which only observes: it names no condition";
        let expected = json!({ "accepted": {
            "clusters": [
                { "cluster": "member1", "kind": "set",
                    "text": "TrafficControl set by Remedy r: it names no condition" },
                { "cluster": "member2", "kind": "observed", "text": would },
            ],
            "backends": [{ "ingress": "shop/shop", "service": "web", "lost": ["member1"],
                "gained": [], "left": [], "cut_off": true }],
            "warnings": ["Remedy r: odd"],
        } });
        assert_eq!(json!(PlanState::from(plan)), expected);
    }
}

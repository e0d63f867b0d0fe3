//! The plan of a Remedy before it exists, as `kubectl remedy plan` tells it.

use anyhow::{Error, Result};
use clap::Parser;
use jiff::Timestamp;
use karmada_api::Remedy;
use karmada_rules::ingress::BackendChange;
use karmada_rules::remedy::{ActionChange, Forecast, Observed};
use kube::{Client, ResourceExt};
use kubectl_remedy::{ControllerArgs, Fleet, Plan};
use serde::Serialize;

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
        /// What may be a mistake.
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
    let fleet = Fleet::read(client, None, now).await.map_err(Error::msg)?;
    Ok(Plan::of(fleet, vec![remedy], &controllers).into())
}

impl From<Plan> for PlanState {
    fn from(plan: Plan) -> Self {
        let changed = plan.clusters.iter().flat_map(ClusterChange::of);
        let observed = plan.observing.iter().map(ClusterChange::observed);
        Self::Accepted {
            clusters: changed.chain(observed).collect(),
            backends: plan.backends.into_iter().map(BackendState::of).collect(),
            warnings: plan.warnings,
        }
    }
}

impl ClusterChange {
    fn of(known: &Forecast) -> impl Iterator<Item = Self> {
        let cluster = known.cluster.name_any();
        let changes = known.changes.iter().map(|change| {
            let kind = match change {
                ActionChange::Set { .. } => ChangeKind::Set,
                ActionChange::Cleared { .. } => ChangeKind::Cleared,
            };
            (kind, change.to_string())
        });
        let over = known.over_bound.iter();
        let over = over.map(|over| (ChangeKind::OverBound, over.to_string()));
        changes.chain(over).map(move |(kind, text)| Self {
            cluster: cluster.clone(),
            kind,
            text,
        })
    }

    fn observed((cluster, observed): &(String, Observed)) -> Self {
        Self {
            cluster: cluster.clone(),
            kind: ChangeKind::Observed,
            text: observed.to_string(),
        }
    }
}

impl BackendState {
    fn of(change: BackendChange) -> Self {
        Self {
            ingress: change.ingress.to_string(),
            service: change.service,
            lost: change.lost,
            gained: change.gained,
            left: change.left,
            cut_off: change.is_cut_off,
        }
    }
}

#[cfg(test)]
mod tests {
    use karmada_api::{Cluster, Key};
    use karmada_rules::remedy::Cause;
    use kube::api::ObjectMeta;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_page_gets_each_change_with_its_kind_and_the_words_of_kubectl() {
        let name = Some("member1".to_owned());
        let metadata = ObjectMeta {
            name,
            ..ObjectMeta::default()
        };
        let set = ActionChange::Set {
            action: "TrafficControl".to_owned(),
            remedy: "r".to_owned(),
            cause: Cause::Unconditional,
        };
        let forecast = Forecast {
            cluster: Cluster {
                metadata,
                ..Cluster::default()
            },
            changes: vec![set],
            over_bound: None,
        };
        let observed = Observed {
            remedy: "r".to_owned(),
            actions: vec!["TrafficControl".to_owned()],
            cause: Cause::Unconditional,
        };
        let backend = BackendChange {
            ingress: Key::new("shop", "shop"),
            service: "web".to_owned(),
            lost: vec!["member1".to_owned()],
            gained: Vec::new(),
            left: Vec::new(),
            is_cut_off: true,
        };
        let plan = Plan {
            clusters: vec![forecast],
            observing: vec![("member2".to_owned(), observed)],
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

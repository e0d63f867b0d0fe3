//! Changes of a cluster's actions, as they are written.

use karmada_api::TRAFFIC_CONTROL;
use serde::Serialize;
use traffic::remedy::{ActionChange, Forecast, ObservedActions, OverBound};

/// A change of the actions of a cluster, or one that only a flag or an annotation holds back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The kind of the change.
    #[serde(rename = "type")]
    pub kind: ChangeKind,
    /// Those that change.
    pub actions: Vec<String>,
    /// The Remedy that asks for it, if one does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// The change and its reason, in words.
    pub message: String,
}

/// The kinds of changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum ChangeKind {
    /// A Remedy asks for the actions.
    Set,
    /// No Remedy asks for them any more.
    Cleared,
    /// A Remedy asks for them, and `--max-blocked-clusters` forbids it.
    Refused,
    /// A Remedy that only observes would ask for them.
    WouldSet,
}

impl Change {
    /// Returns the changes of a forecast, and then those that the bound refuses.
    pub(crate) fn all_of(forecast: &Forecast) -> impl Iterator<Item = Self> {
        let changes = forecast.changes.iter().map(Self::from);
        changes.chain(forecast.over_bound.iter().map(Self::from))
    }

    /// Returns `true` if the bound refuses it.
    pub(crate) fn is_refused(&self) -> bool {
        self.kind == ChangeKind::Refused
    }
}

impl From<&ActionChange> for Change {
    fn from(change: &ActionChange) -> Self {
        let (kind, action, remedy) = match change {
            ActionChange::Set { action, remedy, .. } => {
                (ChangeKind::Set, action, Some(remedy.clone()))
            }
            ActionChange::Cleared { action } => (ChangeKind::Cleared, action, None),
        };
        Self {
            kind,
            actions: vec![action.clone()],
            remedy,
            message: change.to_string(),
        }
    }
}

impl From<&OverBound> for Change {
    fn from(over_bound: &OverBound) -> Self {
        Self {
            kind: ChangeKind::Refused,
            actions: vec![TRAFFIC_CONTROL.to_owned()],
            remedy: None,
            message: over_bound.to_string(),
        }
    }
}

impl From<&ObservedActions> for Change {
    fn from(observed: &ObservedActions) -> Self {
        Self {
            kind: ChangeKind::WouldSet,
            actions: observed.actions.clone(),
            remedy: Some(observed.remedy.clone()),
            message: observed.to_string(),
        }
    }
}

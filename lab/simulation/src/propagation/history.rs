//! The past of a fleet, which no program remembers.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::objects::Template;

/// The past of a fleet, as far as its settled state may depend on it.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// Every content that each template ever had.
    pub(crate) contents: BTreeMap<Template, Vec<Value>>,
    /// The copies that somebody else changed or deleted at any time.
    pub(crate) disturbed: BTreeSet<(String, Template)>,
    /// Set once a cluster joined, left, was relabelled or tainted, or got other room.
    pub(crate) clusters_changed: bool,
    /// Set once a policy has bounded the number of clusters, for which a group may not fit.
    pub(crate) is_bounded: bool,
    /// Set if the scheduler returns workloads to earlier groups of clusters.
    pub(crate) fails_back: bool,
}

impl History {
    /// Returns `true` if a template once had this content.
    pub(crate) fn had(&self, template: Template, content: &Value) -> bool {
        let contents = self.contents.get(&template);
        contents.is_some_and(|contents| contents.contains(content))
    }
}

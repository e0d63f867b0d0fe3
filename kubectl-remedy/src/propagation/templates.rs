//! The objects of the kinds that policies select.

use std::collections::BTreeSet;

use interpreters::Interpreters;
use karmada_api::PropagationPolicy;
use objects::GroupVersionKind;
use propagation_rules::candidate::Candidate;
use serde_json::Value;

use super::discovery::Served;
use super::requests::Reader;
use crate::error::Error;

/// The objects of a kind that policies select.
#[derive(Clone, Debug)]
pub(super) struct Templates {
    pub(super) kind: Served,
    pub(super) version: String,
    /// Their metadata, each as an object; `None` if they may not be listed.
    pub(super) objects: Option<Vec<Value>>,
    /// The reason why nobody can be asked about their meaning.
    pub(super) refusal: Option<String>,
}

impl Templates {
    /// Reads the objects of the kinds that policies select.
    pub(super) async fn selected(
        policies: &[PropagationPolicy],
        reader: &Reader<'_>,
        interpreters: &Interpreters,
        namespace: Option<&str>,
    ) -> Result<Vec<Self>, Error> {
        let selectors = policies
            .iter()
            .flat_map(|policy| &policy.spec.resource_selectors);
        let selected: BTreeSet<GroupVersionKind> = selectors
            .map(|selector| GroupVersionKind::new(&selector.api_version, &selector.kind))
            .collect();
        let mut found = Vec::new();
        for wanted in &selected {
            let mut kinds = reader.kinds.iter();
            let served = kinds.find(|kind| {
                kind.group == wanted.group
                    && kind.kind == wanted.kind
                    && kind.versions.contains(&wanted.version)
            });
            let Some(kind) = served else {
                continue;
            };
            found.push(Self {
                objects: reader.metadata(kind, &wanted.version, namespace).await?,
                refusal: interpreters.refusal(wanted),
                version: wanted.version.clone(),
                kind: kind.clone(),
            });
        }
        Ok(found)
    }

    /// Returns `true` if the policy names the kind.
    pub(super) fn is_named_by(&self, policy: &Candidate<'_>) -> bool {
        let kind = self.kind.in_version(&self.version);
        let mut selectors = policy.spec.resource_selectors.iter();
        selectors
            .any(|selector| GroupVersionKind::new(&selector.api_version, &selector.kind) == kind)
    }
}

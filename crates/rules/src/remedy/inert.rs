//! Remedies that can never act, because a list in their spec is empty.

use std::fmt;

use karmada_api::Remedy;

/// The reason why a remedy never acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inert {
    /// Its affinity names no cluster.
    SelectsNoCluster,
    /// Its list of matches is empty.
    NeverMatches,
}

/// Returns the reasons why `remedy` never acts on any cluster. Our definition of the kind does not accept
/// such a remedy, but Karmada's does.
pub fn inert(remedy: &Remedy) -> Vec<Inert> {
    let spec = &remedy.spec;
    let affinity = spec.cluster_affinity.as_ref();
    let names = affinity.map(|affinity| affinity.cluster_names.as_deref().unwrap_or_default());
    let matches = spec.decision_matches.as_deref();
    let no_cluster = names.is_some_and(<[_]>::is_empty);
    let no_match = matches.is_some_and(<[_]>::is_empty);
    [
        no_cluster.then_some(Inert::SelectsNoCluster),
        no_match.then_some(Inert::NeverMatches),
    ]
    .into_iter()
    .flatten()
    .collect()
}

impl Inert {
    /// Returns the reason of the Event about it.
    pub fn reason(self) -> &'static str {
        match self {
            Self::SelectsNoCluster => "SelectsNoCluster",
            Self::NeverMatches => "NeverMatches",
        }
    }
}

impl fmt::Display for Inert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SelectsNoCluster => {
                "clusterAffinity has no clusterNames, so this Remedy selects no cluster: leave clusterAffinity out to select every cluster"
            }
            Self::NeverMatches => {
                "decisionMatches is empty, so this Remedy never acts: leave decisionMatches out to act at once"
            }
        })
    }
}

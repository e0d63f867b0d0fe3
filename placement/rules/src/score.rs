//! The scores by which one cluster is better than another.

use fleet_api::MemberCluster;
use fleet_api::policy::{PlacementPolicy, PreferredTerm};
use objects::quantity::Quantity;

use super::filter::{affinity, matches};
use super::property::property;

/// The preferences of a policy.
#[derive(Debug)]
pub(super) struct Preferences<'p> {
    terms: Vec<Preference<'p>>,
}

#[derive(Debug)]
struct Preference<'p> {
    term: &'p PreferredTerm,
    /// The least and the greatest value of its property among all clusters.
    range: Option<(Quantity, Quantity)>,
}

impl<'p> Preferences<'p> {
    /// Returns the preferences of a policy among clusters.
    pub(super) fn of(policy: &'p PlacementPolicy, fleet: &[&MemberCluster]) -> Self {
        let preferred = affinity(policy).map_or(&[][..], |affinity| &affinity.preferred);
        let terms = preferred.iter().map(|term| {
            let sorter = term.preference.property_sorter.as_ref();
            let range = sorter.and_then(|sorter| {
                let values = fleet.iter();
                let values = values.filter_map(|cluster| property(cluster, &sorter.name));
                Some((values.clone().min()?, values.max()?))
            });
            Preference { term, range }
        });
        Self {
            terms: terms.collect(),
        }
    }

    /// Returns the affinity score of a cluster: the sum of the weights of the terms that it meets.
    pub(super) fn score(&self, cluster: &MemberCluster) -> i32 {
        let scores = self
            .terms
            .iter()
            .map(|preference| preference.score(cluster));
        scores.fold(0, i32::saturating_add)
    }
}

impl Preference<'_> {
    fn score(&self, cluster: &MemberCluster) -> i32 {
        let PreferredTerm { weight, preference } = self.term;
        if !matches(preference, cluster) {
            return 0;
        }
        let Some(sorter) = &preference.property_sorter else {
            return *weight;
        };
        let (Some((least, greatest)), Some(value)) = (self.range, property(cluster, &sorter.name))
        else {
            return 0;
        };
        let above = match &*sorter.sort_order {
            "Ascending" => greatest - value,
            _ => value - least,
        };
        above.part_of(greatest - least, *weight)
    }
}

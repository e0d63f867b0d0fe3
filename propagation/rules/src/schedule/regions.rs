//! The regions that a template is spread over.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use karmada_api::placement::SpreadConstraint;

use super::capacity::Candidate;

/// The clusters of a region, the best first.
#[derive(Debug)]
struct Region<'a> {
    name: &'a str,
    score: i64,
    clusters: Vec<Candidate<'a>>,
}

/// The numbers of regions, and of clusters in all of them, that are wanted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) min_regions: usize,
    pub(super) max_regions: usize,
    pub(super) min_clusters: usize,
    pub(super) max_clusters: usize,
}

impl Bounds {
    pub(super) fn of(region: &SpreadConstraint, cluster: Option<&SpreadConstraint>) -> Self {
        Self {
            min_regions: bound(region.min_groups).max(1),
            max_regions: most(region.max_groups),
            min_clusters: bound(cluster.and_then(|cluster| cluster.min_groups)),
            max_clusters: cluster.map_or(0, |cluster| most(cluster.max_groups)),
        }
    }

    /// Returns `true` if `used` are as many of the candidates as the regions that they are in may have.
    pub(super) fn allow(self, used: &[Candidate<'_>], candidates: &[Candidate<'_>]) -> bool {
        let regions = names(used);
        let offered = candidates.iter().map(region);
        let offered = offered.filter(|name| regions.contains(name)).count();
        (self.min_regions..=self.max_regions).contains(&regions.len())
            && offered >= self.min_clusters
            && used.len() == offered.min(self.max_clusters).max(regions.len())
    }
}

/// Returns the most groups that there may be: where none are named, any number.
pub(super) fn most(groups: Option<i64>) -> usize {
    match bound(groups) {
        0 => usize::MAX,
        most => most,
    }
}

/// Returns a bound; one that is absent or negative is 0.
pub(super) fn bound(groups: Option<i64>) -> usize {
    usize::try_from(groups.unwrap_or_default()).unwrap_or(0)
}

/// Returns the regions of clusters.
pub(super) fn names<'a>(candidates: &[Candidate<'a>]) -> BTreeSet<&'a str> {
    candidates.iter().map(region).collect()
}

fn region<'a>(candidate: &Candidate<'a>) -> &'a str {
    &candidate.cluster.spec.region
}

/// The replicas by which regions are compared.
#[derive(Clone, Copy, Debug)]
pub(super) enum Demand {
    /// All of them in each cluster.
    Each(i32),
    /// All of them together.
    Together(i32),
}

/// Returns the clusters of the regions to use, by region, each with its best cluster first. `candidates` are
/// in their order of preference. It is empty if the regions do not have enough clusters.
pub(super) fn select<'a>(
    candidates: &[Candidate<'a>],
    bounds: Bounds,
    demand: Demand,
) -> Vec<Vec<Candidate<'a>>> {
    let mut regions: BTreeMap<&str, Vec<Candidate<'_>>> = BTreeMap::new();
    for candidate in candidates {
        regions
            .entry(region(candidate))
            .or_default()
            .push(*candidate);
    }
    let mut regions: Vec<_> = regions
        .into_iter()
        .map(|(name, clusters)| Region {
            name,
            score: score(&clusters, bounds, demand),
            clusters,
        })
        .collect();
    // The order in which Karmada tries them, which decides between combinations that are equal otherwise.
    regions.sort_by_key(|region| (region.clusters.len(), -region.score, region.name));
    let chosen = choose(&regions, bounds).into_iter();
    chosen
        .filter_map(|index| Some(regions.get(index)?.clusters.clone()))
        .collect()
}

/// Returns the indices of the regions to use, by score.
fn choose(regions: &[Region<'_>], bounds: Bounds) -> Vec<usize> {
    let mut search = Search {
        regions,
        bounds,
        known: HashMap::new(),
    };
    let best = search.best_from(State::default());
    let mut chosen = best.unwrap_or_default().regions;
    chosen.sort_by_key(|index| by_score(regions, *index));
    // A part of the combination that suffices by itself is used instead.
    let enough =
        (1..chosen.len()).find(|length| search.is_tried(chosen.get(..*length).unwrap_or_default()));
    chosen.truncate(enough.unwrap_or(chosen.len()));
    chosen
}

fn by_score<'a>(regions: &[Region<'a>], index: usize) -> (i64, &'a str) {
    let region = regions.get(index);
    region.map_or((0, ""), |region| (-region.score, region.name))
}

/// Returns the score of a region with these clusters, which are in their order of preference.
fn score(clusters: &[Candidate<'_>], bounds: Bounds, demand: Demand) -> i64 {
    const REPLICA: i64 = 1000;
    match demand {
        Demand::Each(replicas) => {
            let valid: Vec<_> = clusters
                .iter()
                .filter(|candidate| candidate.capacity() >= i64::from(replicas))
                .copied()
                .collect();
            REPLICA * as_i64(valid.len()) + percent_in_use(&valid)
        }
        Demand::Together(replicas) => {
            let parts = as_i64(bounds.min_regions.max(1));
            let target = (i64::from(replicas.max(0)) + parts - 1) / parts;
            let wanted = bounds.min_regions.max(bounds.min_clusters);
            let mut sum = 0_i64;
            for (index, candidate) in clusters.iter().enumerate() {
                sum = sum.saturating_add(candidate.capacity());
                if index + 1 >= wanted && sum >= target {
                    let walked = clusters.get(..=index).unwrap_or(clusters);
                    return REPLICA * target + percent_in_use(walked);
                }
            }
            REPLICA * sum.min(target) + percent_in_use(clusters)
        }
    }
}

/// Returns the percentage of the clusters that have the template.
fn percent_in_use(clusters: &[Candidate<'_>]) -> i64 {
    let targets = clusters.iter().filter(|candidate| candidate.is_target());
    let sum = 100 * as_i64(targets.count());
    sum.checked_div(as_i64(clusters.len())).unwrap_or(0)
}

fn as_i64(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// The regions chosen so far, of those before `next`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct State {
    next: usize,
    regions: usize,
    clusters: usize,
}

/// The best way to complete a choice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Completion {
    score: i64,
    clusters: usize,
    regions: Vec<usize>,
}

/// The search for the combination of regions with the highest score. Each state is looked at once: the
/// number of combinations would be that of all subsets.
struct Search<'a> {
    regions: &'a [Region<'a>],
    bounds: Bounds,
    known: HashMap<State, Option<Completion>>,
}

impl Search<'_> {
    fn is_enough(&self, regions: usize, clusters: usize) -> bool {
        (self.bounds.min_regions..=self.bounds.max_regions).contains(&regions)
            && clusters >= self.bounds.min_clusters
    }

    /// Returns the best completion: that of the highest score, then of the most clusters, then the first.
    fn best_from(&mut self, state: State) -> Option<Completion> {
        // A combination that suffices is not extended.
        if self.is_enough(state.regions, state.clusters) {
            return Some(Completion::default());
        }
        if state.regions >= self.bounds.max_regions {
            return None;
        }
        // More clusters than are wanted make no difference to the regions that follow.
        let state = State {
            clusters: state.clusters.min(self.bounds.min_clusters),
            ..state
        };
        if let Some(known) = self.known.get(&state) {
            return known.clone();
        }
        let mut best: Option<Completion> = None;
        for (index, region) in self.regions.iter().enumerate().skip(state.next) {
            let count = region.clusters.len();
            let after = State {
                next: index + 1,
                regions: state.regions + 1,
                clusters: state.clusters + count,
            };
            let Some(mut completion) = self.best_from(after) else {
                continue;
            };
            completion.score += region.score;
            completion.clusters += count;
            completion.regions.insert(0, index);
            let is_better = best.as_ref().is_none_or(|best| {
                (completion.score, completion.clusters) > (best.score, best.clusters)
            });
            if is_better {
                best = Some(completion);
            }
        }
        self.known.insert(state, best.clone());
        best
    }

    /// Returns `true` if the combination is one that the search tries: it suffices, and does so only with its
    /// last region.
    fn is_tried(&self, chosen: &[usize]) -> bool {
        let mut chosen = chosen.to_vec();
        chosen.sort_unstable();
        let rest = chosen.split_last().map_or(&[][..], |(_, rest)| rest);
        self.suffices(&chosen) && !self.suffices(rest)
    }

    fn suffices(&self, chosen: &[usize]) -> bool {
        let regions = chosen.iter().filter_map(|index| self.regions.get(*index));
        self.is_enough(
            chosen.len(),
            regions.map(|region| region.clusters.len()).sum(),
        )
    }
}

#[cfg(test)]
mod tests;

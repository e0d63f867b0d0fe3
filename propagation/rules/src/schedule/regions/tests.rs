use karmada_api::ClusterView;
use proptest::prelude::*;

use super::*;

const NAMES: [&str; 7] = ["a", "b", "c", "d", "e", "f", "g"];

/// Returns regions of these scores and numbers of clusters, in the order of the search.
fn regions<'a>(sizes: &[(i64, usize)], cluster: &'a ClusterView) -> Vec<Region<'a>> {
    let candidate = Candidate {
        cluster,
        name: "m",
        tier: 0,
        place: None,
        assigned: 0,
        available: 0,
        is_closed: false,
    };
    let mut regions: Vec<_> = sizes
        .iter()
        .zip(NAMES)
        .map(|(&(score, count), name)| Region {
            name,
            score,
            clusters: vec![candidate; count],
        })
        .collect();
    regions.sort_by_key(|region| (region.clusters.len(), -region.score, region.name));
    regions
}

fn bounds(min_regions: usize, max_regions: usize, min_clusters: usize) -> Bounds {
    Bounds {
        min_regions,
        max_regions,
        min_clusters,
        max_clusters: 0,
    }
}

fn chosen(sizes: &[(i64, usize)], bounds: Bounds) -> Vec<&'static str> {
    let cluster = ClusterView::default();
    let regions = regions(sizes, &cluster);
    let names = choose(&regions, bounds).into_iter();
    let names = names.map(|index| NAMES.into_iter().find(|name| *name == regions[index].name));
    names.map(Option::unwrap).collect()
}

/// The best regions that have enough clusters are chosen.
#[test]
fn best_sufficient_regions_are_chosen() {
    let four = [(40, 3), (30, 1), (20, 3), (10, 3)];
    let cases: [(&str, Bounds, &[&str]); 6] = [
        ("the two best", bounds(2, 2, 0), &["a", "b"]),
        (
            "the best two with six clusters",
            bounds(2, 2, 6),
            &["a", "c"],
        ),
        (
            "a third only for the clusters",
            bounds(2, 3, 7),
            &["a", "b", "c"],
        ),
        ("no more than are needed", bounds(1, 4, 3), &["a"]),
        ("too few clusters", bounds(1, 2, 7), &[]),
        ("no region allowed", bounds(1, 0, 0), &[]),
    ];
    for (sentence, bounds, expected) in cases {
        assert_eq!(chosen(&four, bounds), expected, "{sentence}");
    }
}

/// The number of combinations is that of all subsets: each state is looked at once.
#[test]
fn many_regions_are_searched() {
    let cluster = ClusterView::default();
    let many = (0..60_usize).map(|number| Region {
        name: "r",
        score: i64::try_from(number % 7).unwrap(),
        clusters: regions(&[(0, 1 + number % 3)], &cluster).remove(0).clusters,
    });
    let mut many: Vec<_> = many.collect();
    many.sort_by_key(|region| (region.clusters.len(), -region.score));
    assert_eq!(choose(&many, bounds(30, 30, 50)).len(), 30);
}

/// Chooses as the definition does: of all combinations.
fn of_all(regions: &[Region<'_>], bounds: Bounds) -> Vec<usize> {
    let count = |path: &[usize]| {
        path.iter()
            .map(|i| regions[*i].clusters.len())
            .sum::<usize>()
    };
    let mut tried: Vec<Vec<usize>> = Vec::new();
    let mut open: Vec<Vec<usize>> = vec![Vec::new()];
    while let Some(path) = open.pop() {
        if path.len() >= bounds.min_regions
            && path.len() <= bounds.max_regions
            && count(&path) >= bounds.min_clusters
        {
            tried.push(path);
        } else {
            let next = path.last().map_or(0, |last| last + 1);
            // The first is taken from the end first.
            open.extend((next..regions.len()).rev().map(|i| [&*path, &[i]].concat()));
        }
    }
    tried.sort_by_key(|path| {
        let score: i64 = path.iter().map(|i| regions[*i].score).sum();
        (-score, std::cmp::Reverse(count(path)))
    });
    for path in &mut tried {
        path.sort_by_key(|i| (-regions[*i].score, regions[*i].name));
    }
    let best = tried.first().cloned().unwrap_or_default();
    let parts = tried.iter().filter(|path| best.starts_with(path));
    parts
        .min_by_key(|path| path.len())
        .cloned()
        .unwrap_or_default()
}

proptest! {
    /// The choice is that of the definition, which compares all combinations.
    #[test]
    fn choice_matches_all_combinations(
        sizes in prop::collection::vec((0..4_i64, 1..4_usize), 0..=7),
        min in 1..4_usize, max in 0..6_usize, clusters in 0..9_usize,
    ) {
        let cluster = ClusterView::default();
        let regions = regions(&sizes, &cluster);
        let bounds = bounds(min, max, clusters);
        prop_assert_eq!(choose(&regions, bounds), of_all(&regions, bounds));
    }
}

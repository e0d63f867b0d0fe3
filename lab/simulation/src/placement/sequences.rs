//! The random sequences of steps.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::objects::{APPS, MAPS, OF_NAMESPACE};
use super::programs::Role;
use super::step::{Apply, Change, PlacementShape, Policy, Scope, Step};
use crate::harness::clusters::CLUSTERS;
use crate::harness::{About, Api, draw};

/// The most steps of a sequence.
const LONGEST: usize = 20;

/// Returns the strategy that generates sequences, and shrinks them to fewer and simpler steps.
pub(crate) fn sequences() -> impl Strategy<Value = Vec<Step>> {
    vec(step(), 1..=LONGEST)
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => wait(),
        2 => Just(Step::Settle),
        6 => about_maps(),
        7 => about_placements(),
        6 => about_clusters(),
        4 => by_hand(),
        5 => draw::of_programs::<Change, _, _>(program, 3, 6),
        10 => fault(),
        1 => Just(Step::Repair),
    ]
}

/// Generates waits, the longest of which make a silent agent count as gone.
fn wait() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => 1_u32..=20,
        3 => 20_u32..=1_000,
        2 => 1_000_u32..=10_000,
        1 => 10_000_u32..=90_000,
        1 => 300_000_u32..=420_000,
    ]
    .prop_map(|millis| Step::Wait { millis })
}

fn about_maps() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..=OF_NAMESPACE, 0..MAPS, 0_u8..10)
            .prop_map(|(app, map, value)| Change::PutMap { app, map, value }),
        2 => (0..=OF_NAMESPACE, 0..MAPS).prop_map(|(app, map)| Change::DeleteMap { app, map }),
        1 => (0..APPS).prop_map(|app| Change::DeleteNamespace { app }),
    ]
    .prop_map(Step::Change)
}

fn about_placements() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => (0..=OF_NAMESPACE, shape())
            .prop_map(|(app, shape)| Change::PutPlacement { app, shape }),
        1 => (0..=OF_NAMESPACE).prop_map(|app| Change::DeletePlacement { app }),
    ]
    .prop_map(Step::Change)
}

fn shape() -> impl Strategy<Value = PlacementShape> {
    let policy = prop_oneof![
        2 => Just(Policy::All),
        2 => (1_u8..1 << CLUSTERS).prop_map(Policy::Named),
        3 => (0..=CLUSTERS, any::<bool>())
            .prop_map(|(clusters, spreads)| Policy::Number { clusters, spreads }),
    ];
    let region = prop::option::weighted(0.3, 0_u8..2);
    let scope = prop_oneof![
        3 => Just(Scope::Whole),
        1 => Just(Scope::Alone),
        2 => Just(Scope::Labelled),
    ];
    let apply = prop_oneof![
        3 => Just(Apply::ClientSide),
        1 => Just(Apply::ServerSide),
        1 => Just(Apply::ReportDiff),
    ];
    let parts = (policy, region, prop::bool::weighted(0.2), scope, apply);
    parts.prop_map(|(policy, region, tolerates, scope, apply)| PlacementShape {
        policy,
        region,
        tolerates,
        scope,
        apply,
    })
}

fn about_clusters() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..CLUSTERS, 0_u8..2).prop_map(|(cluster, region)| Change::Join { cluster, region }),
        2 => (0..CLUSTERS).prop_map(|cluster| Change::Leave { cluster }),
        3 => (0..CLUSTERS, any::<bool>())
            .prop_map(|(cluster, is_tainted)| Change::Taint { cluster, is_tainted }),
    ]
    .prop_map(Step::Change)
}

fn by_hand() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..CLUSTERS, prop::bool::weighted(0.7)).prop_map(|(cluster, is_there)| {
            Change::MemberNamespace { cluster, is_there }
        }),
        4 => (0..CLUSTERS, 0..APPS, 0..MAPS, any::<bool>())
            .prop_map(|(cluster, app, map, deletes)| Change::Drift { cluster, app, map, deletes }),
        1 => (0..CLUSTERS, 0..APPS)
            .prop_map(|(cluster, app)| Change::DeleteBinding { cluster, app }),
        1 => (0..CLUSTERS, 0..APPS).prop_map(|(cluster, app)| Change::DeleteWork { cluster, app }),
        1 => (0..APPS).prop_map(|app| Change::DeleteSnapshots { app }),
    ]
    .prop_map(Step::Change)
}

fn program() -> impl Strategy<Value = Role> {
    prop_oneof![1 => Just(Role::Controller), 1 => (0..CLUSTERS).prop_map(Role::Agent)]
}

/// Generates faults that can happen: each program reads and writes kinds of its own, and a member's API is its agent's
/// alone.
fn fault() -> impl Strategy<Value = Step> {
    let on_hub = [
        "configmaps",
        "namespaces",
        "memberclusters",
        "internalmemberclusters",
        "clusterresourceplacements",
        "clusterschedulingpolicysnapshots",
        "clusterresourcesnapshots",
        "clusterresourcebindings",
        "works",
    ];
    let kind = prop::option::weighted(0.3, select(on_hub.to_vec()));
    let hub = (prop::option::weighted(0.6, program()), kind)
        .prop_map(|(program, kind)| (Api::Hub, program, kind));
    let kind = prop::option::weighted(
        0.3,
        select(vec!["configmaps", "namespaces", "appliedworks"]),
    );
    let member = (0..CLUSTERS, kind).prop_map(|(cluster, kind)| (Api::Member(cluster), None, kind));
    // The longest are those of a member that counts as unhealthy.
    let seconds = prop_oneof![6 => 1_u16..=40, 1 => 300_u16..=500];
    (
        prop_oneof![2 => hub, 1 => member],
        draw::api_fault(3, [3, 2, 2, 3]),
        seconds,
    )
        .prop_map(|((api, program, kind), fault, seconds)| Step::Fault {
            api,
            program,
            about: kind.map(About::kind),
            fault,
            seconds,
        })
}

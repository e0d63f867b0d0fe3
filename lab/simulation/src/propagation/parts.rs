//! The random steps and their parts.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::objects::Template;
use super::programs::Role;
use super::step::{
    Affinity, By, Change, Division, Pause, PolicyShape, Purge, Spread, Step, TaintEffect,
    Toleration,
};
use crate::harness::clusters::CLUSTERS;
use crate::harness::{About, Api, Part, draw};

pub(super) fn wait() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => 1_u32..=20,
        3 => 20_u32..=1_000,
        2 => 1_000_u32..=10_000,
        1 => 10_000_u32..=90_000,
    ]
    .prop_map(|millis| Step::Wait { millis })
}

pub(super) fn template() -> impl Strategy<Value = Template> {
    select(Template::ALL.to_vec())
}

pub(super) fn about_templates() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => (template(), 0_u8..20, prop::bool::weighted(0.3))
            .prop_map(|(template, version, wipes)| Change::PutTemplate { template, version, wipes }),
        1 => template().prop_map(|template| Change::DeleteTemplate { template }),
    ]
    .prop_map(Step::Change)
}

fn pause() -> impl Strategy<Value = Pause> {
    prop_oneof![
        3 => Just(Pause::No),
        2 => Just(Pause::Whole),
        1 => (1_u8..1 << CLUSTERS).prop_map(Pause::On),
    ]
}

pub(super) fn about_policies(policies: &'static [u8], lazy: f64) -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (select(policies), shape(lazy))
            .prop_map(|(policy, shape)| Change::PutPolicy { policy, shape }),
        4 => (select(policies), pause()).prop_map(|(policy, pause)| Change::Pause { policy, pause }),
        1 => select(policies).prop_map(|policy| Change::DeletePolicy { policy }),
    ]
    .prop_map(Step::Change)
}

pub(super) fn shape(lazy: f64) -> impl Strategy<Value = PolicyShape> {
    let by = prop_oneof![2 => Just(By::Name), 1 => Just(By::Label), 2 => Just(By::Kind)];
    let affinity = prop_oneof![
        2 => Just(Affinity::All),
        2 => (1_u8..1 << CLUSTERS).prop_map(Affinity::Names),
        1 => (0_u8..2).prop_map(Affinity::Region),
        2 => [1_u8..1 << CLUSTERS, 1_u8..1 << CLUSTERS].prop_map(Affinity::Groups),
    ];
    let policy = (
        vec((template(), by), 1..=2),
        0_u8..3,
        prop::bool::weighted(0.3),
        pause(),
        prop::bool::weighted(lazy),
    );
    let purge = prop_oneof![4 => Just(Purge::Gracefully), 1 => Just(Purge::Directly)];
    let rest = (
        affinity,
        spread(),
        division(),
        toleration(),
        purge,
        prop::bool::weighted(0.3),
    );
    (policy, rest).prop_map(
        |(
            (mut selects, priority, preempts, pause, is_lazy),
            (affinity, spread, division, tolerates, purge, has_dependencies),
        )| {
            if preempts {
                for (_, by) in &mut selects {
                    *by = By::Name;
                }
            }
            PolicyShape {
                selects,
                priority,
                preempts,
                affinity,
                spread,
                division,
                tolerates,
                purge,
                has_dependencies,
                pause,
                is_lazy,
            }
        },
    )
}

fn spread() -> impl Strategy<Value = Spread> {
    prop_oneof![
        4 => Just(Spread::No),
        1 => bounds().prop_map(Spread::Clusters),
        2 => (bounds(), bounds()).prop_map(|(regions, clusters)| Spread::Regions(regions, clusters)),
    ]
}

fn bounds() -> impl Strategy<Value = [u8; 2]> {
    (1_u8..=2, 0_u8..=2).prop_map(|(least, more)| [least, least + more])
}

fn division() -> impl Strategy<Value = Division> {
    prop_oneof![
        4 => Just(Division::None),
        3 => [0_u8..4, 0_u8..4, 0_u8..4].prop_map(Division::Weights),
        2 => any::<bool>().prop_map(|aggregated| Division::Room { aggregated }),
    ]
}

fn toleration() -> impl Strategy<Value = Toleration> {
    prop_oneof![
        5 => Just(Toleration::No),
        2 => (1_u8..=120).prop_map(Toleration::Seconds),
        1 => Just(Toleration::Forever),
    ]
}

pub(super) fn about_overrides() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => put_override(),
        1 => any::<bool>()
            .prop_map(|of_cluster| Step::Change(Change::DeleteOverride { of_cluster })),
    ]
}

pub(super) fn put_override() -> impl Strategy<Value = Step> {
    let parts = (any::<bool>(), template(), 1_u8..1 << CLUSTERS, 0_u8..4);
    parts.prop_map(|(of_cluster, template, clusters, value)| {
        Step::Change(Change::PutOverride {
            of_cluster,
            template,
            clusters,
            value,
        })
    })
}

pub(super) fn about_clusters() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => (0..CLUSTERS, 0_u8..2).prop_map(|(cluster, region)| Change::Join { cluster, region }),
        1 => (0..CLUSTERS).prop_map(|cluster| Change::Leave { cluster }),
        3 => tainting(),
        2 => (0..CLUSTERS, 0_u8..4).prop_map(|(cluster, pods)| Change::Room { cluster, pods }),
    ]
    .prop_map(Step::Change)
}

pub(super) fn taint() -> impl Strategy<Value = Step> {
    tainting().prop_map(Step::Change)
}

fn tainting() -> impl Strategy<Value = Change> {
    (0..CLUSTERS, effect()).prop_map(|(cluster, effect)| Change::Taint { cluster, effect })
}

fn effect() -> impl Strategy<Value = Option<TaintEffect>> {
    let effects = select(vec![
        TaintEffect::NoSchedule,
        TaintEffect::NoExecute,
        TaintEffect::NoExecute,
    ]);
    prop::option::weighted(0.7, effects)
}

pub(super) fn by_hand() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..CLUSTERS, template(), any::<bool>())
            .prop_map(|(cluster, template, deletes)| Change::ChangeCopy { cluster, template, deletes }),
        1 => (0..CLUSTERS, template())
            .prop_map(|(cluster, template)| Change::DeleteWork { cluster, template }),
        1 => template().prop_map(|template| Change::DeleteBinding { template }),
    ]
    .prop_map(Step::Change)
}

pub(super) fn about_programs() -> impl Strategy<Value = Step> {
    draw::of_programs::<Change, _, _>(|| select(Role::ALL.to_vec()), 2, 4)
}

/// Generates faults that can happen: each program reads and writes kinds of its own, and only the
/// execution-controller reaches members.
pub(super) fn fault() -> impl Strategy<Value = Step> {
    let kinds = [
        "propagationpolicies",
        "clusterpropagationpolicies",
        "overridepolicies",
        "configmaps",
        "deployments",
        "clusterroles",
        "resourcebindings",
        "clusterresourcebindings",
        "works",
        "clusters",
    ];
    let part = prop::option::weighted(0.3, select(vec![Part::Spec, Part::Status]));
    let about = (select(kinds.to_vec()), part).prop_map(|(plural, part)| About { plural, part });
    let about = prop::option::weighted(0.4, about);
    let program = prop::option::weighted(0.6, select(Role::ALL.to_vec()));
    let fleet = (program, about).prop_map(|(program, about)| (Api::Hub, program, about));
    let copies = ["configmaps", "deployments"].map(About::kind);
    let copies = prop::option::weighted(0.4, select(copies.to_vec()));
    let member = (0..CLUSTERS, copies).prop_map(|(nth, about)| (Api::Member(nth), None, about));
    (
        prop_oneof![3 => fleet, 1 => member],
        draw::api_fault(4, [1, 1, 1, 1]),
        1_u8..=40,
    )
        .prop_map(|((api, program, about), fault, seconds)| Step::Fault {
            api,
            program,
            about,
            fault,
            seconds: seconds.into(),
        })
}

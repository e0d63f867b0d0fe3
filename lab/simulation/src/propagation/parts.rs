//! The random steps and their parts.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::objects::Template;
use super::role::Role;
use super::step::{
    About, Affinity, By, CLUSTERS, Division, Part, Pause, PolicyShape, Purge, Spread, Step,
    TaintEffect, Toleration,
};
use crate::harness::ApiFault;

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
            .prop_map(|(template, version, wipes)| Step::PutTemplate { template, version, wipes }),
        1 => template().prop_map(|template| Step::DeleteTemplate { template }),
    ]
}

fn pause() -> impl Strategy<Value = Pause> {
    prop_oneof![
        3 => Just(Pause::No),
        2 => Just(Pause::Whole),
        1 => (1_u8..1 << CLUSTERS).prop_map(Pause::On),
    ]
}

pub(super) fn about_policies(policies: &'static [u8], lazy: f64) -> impl Strategy<Value = Step> {
    let policy = || select(policies);
    prop_oneof![
        4 => (policy(), shape(lazy)).prop_map(|(policy, shape)| Step::PutPolicy { policy, shape }),
        4 => (policy(), pause()).prop_map(|(policy, pause)| Step::Pause { policy, pause }),
        1 => policy().prop_map(|policy| Step::DeletePolicy { policy }),
    ]
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
    let bounds = || (1_u8..=2, 0_u8..=2).prop_map(|(least, more)| [least, least + more]);
    prop_oneof![
        4 => Just(Spread::No),
        1 => bounds().prop_map(Spread::Clusters),
        2 => (bounds(), bounds()).prop_map(|(regions, clusters)| Spread::Regions(regions, clusters)),
    ]
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
        1 => any::<bool>().prop_map(|of_cluster| Step::DeleteOverride { of_cluster }),
    ]
}

pub(super) fn put_override() -> impl Strategy<Value = Step> {
    let parts = (any::<bool>(), template(), 1_u8..1 << CLUSTERS, 0_u8..4);
    parts.prop_map(
        |(of_cluster, template, clusters, value)| Step::PutOverride {
            of_cluster,
            template,
            clusters,
            value,
        },
    )
}

pub(super) fn about_clusters() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => (0..CLUSTERS, 0_u8..2).prop_map(|(cluster, region)| Step::Join { cluster, region }),
        1 => (0..CLUSTERS).prop_map(|cluster| Step::Leave { cluster }),
        3 => taint(),
        2 => (0..CLUSTERS, 0_u8..4).prop_map(|(cluster, pods)| Step::Room { cluster, pods }),
    ]
}

pub(super) fn taint() -> impl Strategy<Value = Step> {
    (0..CLUSTERS, effect()).prop_map(|(cluster, effect)| Step::Taint { cluster, effect })
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
            .prop_map(|(cluster, template, deletes)| Step::ChangeCopy { cluster, template, deletes }),
        1 => (0..CLUSTERS, template())
            .prop_map(|(cluster, template)| Step::DeleteWork { cluster, template }),
        1 => template().prop_map(|template| Step::DeleteBinding { template }),
    ]
}

pub(super) fn about_programs() -> impl Strategy<Value = Step> {
    let program = || select(Role::ALL.to_vec());
    prop_oneof![
        2 => (program(), 0_u8..4, any::<bool>())
            .prop_map(|(program, write, stored)| Step::Crash { program, write, stored }),
        1 => program().prop_map(|program| Step::Kill { program }),
        3 => program().prop_map(|program| Step::Start { program }),
    ]
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
    let fleet = (program, about).prop_map(|(program, about)| (None, program, about));
    let part = None;
    let copies = ["configmaps", "deployments"].map(|plural| About { plural, part });
    let copies = prop::option::weighted(0.4, select(copies.to_vec()));
    let member = (0..CLUSTERS, copies).prop_map(|(member, about)| (Some(member), None, about));
    (prop_oneof![3 => fleet, 1 => member], api_fault(), 1_u8..=40).prop_map(
        |((member, program, about), fault, seconds)| Step::Fault {
            member,
            program,
            about,
            fault,
            seconds,
        },
    )
}

fn api_fault() -> impl Strategy<Value = ApiFault> {
    let every = || 1_u8..4;
    prop_oneof![
        4 => every().prop_map(|every| ApiFault::Conflicts { every }),
        1 => Just(ApiFault::TooManyRequests { seconds: 2 }),
        1 => Just(ApiFault::Unauthorized),
        1 => Just(ApiFault::Forbidden),
        2 => every().prop_map(|every| ApiFault::InternalErrors { every }),
        1 => Just(ApiFault::Unavailable),
        2 => (1_u16..=20_000).prop_map(|millis| ApiFault::Slow { millis }),
        4 => every().prop_map(|every| ApiFault::LoseResponses { every }),
        2 => Just(ApiFault::Outage),
        1 => Just(ApiFault::Silence),
        1 => Just(ApiFault::CutWatches { inside_line: true }),
        1 => Just(ApiFault::ExpireWatches),
        1 => Just(ApiFault::FailWatches),
        3 => (1_u16..=8_000, any::<bool>())
            .prop_map(|(millis, coalesce)| ApiFault::DelayEvents { millis, coalesce }),
        1 => (1_u8..40).prop_map(|versions| ApiFault::StaleLists { versions }),
    ]
}

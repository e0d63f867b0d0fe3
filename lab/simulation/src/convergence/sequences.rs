//! The random sequences of steps.

use proptest::collection::vec;
use proptest::prelude::*;

use super::kinds::Side;
use super::program::Role;
use super::step::{
    Backends, CLASSES, Change, Class, ConditionState, Corrupted, Expires, INGRESSES, Match,
    REMEDIES, RemedyShape, SERVICES, Step,
};
use crate::harness::clusters::CLUSTERS;
use crate::harness::{About, ApiFault, Role as _};

/// The most steps of a sequence, without the waits for bookmarks.
const LONGEST: usize = 24;

/// The seconds in which every open watch has a bookmark due.
const BOOKMARKS: u16 = 60;

/// Returns the strategy that generates sequences, and shrinks them to fewer and simpler steps.
pub(crate) fn sequences() -> impl Strategy<Value = Vec<Step>> {
    vec(step().prop_map(and_wait), 1..=LONGEST).prop_map(|steps| steps.concat())
}

/// Adds a wait to a step that withholds bookmarks: most sequences are over before one is due.
fn and_wait(step: Step) -> Vec<Step> {
    match step {
        Step::Fault {
            fault: ApiFault::WithholdBookmarks,
            ..
        } => {
            let millis = u32::from(BOOKMARKS) * 1_000;
            vec![step, Step::Wait { millis }]
        }
        step => vec![step],
    }
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => wait(),
        9 => about_clusters(),
        4 => about_remedies(),
        6 => about_ingresses(),
        6 => about_backends(),
        5 => about_programs(),
        5 => fault(),
        1 => corrupt(),
        1 => Just(Step::Repair),
    ]
}

fn wait() -> impl Strategy<Value = Step> {
    prop_oneof![
        1 => 1_u32..=20,
        3 => 20_u32..=1_000,
        3 => 1_000_u32..=10_000,
        1 => 10_000_u32..=40_000,
    ]
    .prop_map(|millis| Step::Wait { millis })
}

fn about_clusters() -> impl Strategy<Value = Step> {
    let cluster = 0..CLUSTERS;
    prop_oneof![
        1 => cluster.clone().prop_map(|cluster| Change::Join { cluster }),
        1 => cluster.clone().prop_map(|cluster| Change::Leave { cluster }),
        1 => cluster.clone().prop_map(|cluster| Change::RemoveFinalizer { cluster }),
        4 => (cluster.clone(), prop::bool::weighted(0.25), prop::option::weighted(0.9, verdict()))
            .prop_map(|(cluster, reporter, status)| Change::Condition { cluster, reporter, status }),
        2 => (cluster, 0_u8..4).prop_map(|(cluster, age)| Change::RewriteStatus { cluster, age }),
    ]
    .prop_map(Step::Change)
}

fn verdict() -> impl Strategy<Value = ConditionState> {
    prop_oneof![
        3 => Just(ConditionState::Healthy),
        3 => Just(ConditionState::Unhealthy),
        1 => Just(ConditionState::Unknown),
    ]
}

fn about_remedies() -> impl Strategy<Value = Step> {
    let remedy = 0..REMEDIES;
    prop_oneof![
        2 => (remedy.clone(), spec()).prop_map(|(remedy, spec)| Change::PutRemedy { remedy, spec }),
        1 => remedy.prop_map(|remedy| Change::DeleteRemedy { remedy }),
    ]
    .prop_map(Step::Change)
}

fn spec() -> impl Strategy<Value = RemedyShape> {
    let one = (prop::bool::weighted(0.2), any::<bool>(), verdict()).prop_map(
        |(reporter, equal, status)| Match {
            reporter,
            equal,
            status,
        },
    );
    let clusters = prop::option::weighted(0.6, 0_u8..(1 << CLUSTERS));
    let actions = prop_oneof![6 => Just(1_u8), 1 => Just(3), 1 => Just(2), 1 => Just(0)];
    let matches = prop::option::weighted(0.7, vec(one, 0..3));
    let observe_only = prop_oneof![
        12 => Just(None),
        1 => Just(Some("false")),
        2 => Just(Some("true")),
        2 => Just(Some("yes")),
    ];
    // Each has passed before a fleet counts as settled.
    let expires = prop_oneof![
        8 => Just(None),
        3 => (0_u8..=20).prop_map(|seconds| Some(Expires::After(seconds))),
        1 => Just(Some(Expires::Unreadable)),
    ];
    (clusters, matches, actions, observe_only, expires).prop_map(
        |(clusters, matches, actions, observe_only, expires)| RemedyShape {
            clusters,
            matches,
            actions,
            observe_only,
            expires,
        },
    )
}

fn about_ingresses() -> impl Strategy<Value = Step> {
    let ingress = 0..INGRESSES;
    let class = prop_oneof![
        5 => Just(Class::Named(0)),
        2 => Just(Class::Named(1)),
        2 => Just(Class::None),
    ];
    let backends = prop_oneof![
        (0..SERVICES).prop_map(Backends::Rule),
        (0..SERVICES).prop_map(Backends::Default),
        Just(Backends::Both),
    ];
    prop_oneof![
        5 => (ingress.clone(), class, backends)
            .prop_map(|(ingress, class, backends)| Change::PutIngress { ingress, class, backends }),
        2 => ingress.clone().prop_map(|ingress| Change::DeleteIngress { ingress }),
        1 => (ingress, any::<bool>())
            .prop_map(|(ingress, held)| Change::HoldIngress { ingress, held }),
        2 => (0..CLASSES, prop::bool::weighted(0.6), prop::bool::weighted(0.4))
            .prop_map(|(class, ours, default)| Change::PutClass { class, ours, default }),
        1 => (0..CLASSES).prop_map(|class| Change::DeleteClass { class }),
    ]
    .prop_map(Step::Change)
}

fn about_backends() -> impl Strategy<Value = Step> {
    let (service, cluster, bits) = (0..SERVICES, 0..CLUSTERS, 0_u8..(1 << CLUSTERS));
    let applied = prop_oneof![3 => Just(0_u8), 1 => bits.clone()];
    prop_oneof![
        3 => (service.clone(), bits, applied)
            .prop_map(|(service, to, applied)| Change::Bind { service, to, applied }),
        1 => service.clone().prop_map(|service| Change::Unbind { service }),
        2 => (service.clone(), prop::option::weighted(0.8, 0_u8..3))
            .prop_map(|(service, ports)| Change::Template { service, ports }),
        3 => (service, cluster, prop::option::weighted(0.8, 0_u8..3))
            .prop_map(|(service, cluster, endpoints)| Change::Collect { service, cluster, endpoints }),
        1 => (0..INGRESSES, any::<bool>())
            .prop_map(|(ingress, served)| Change::Address { ingress, served }),
        1 => (0_u8..8).prop_map(|nth| Change::DeleteFromGateway { nth }),
    ]
    .prop_map(Step::Change)
}

fn program() -> impl Strategy<Value = Role> {
    prop_oneof![Just(Role::Remedy), Just(Role::Ingress)]
}

fn about_programs() -> impl Strategy<Value = Step> {
    let replica = || (program(), 0..Role::REPLICAS);
    prop_oneof![
        3 => replica().prop_map(|(program, replica)| Step::Kill { program, replica }),
        1 => replica().prop_map(|(program, replica)| Step::Stop { program, replica }),
        4 => replica().prop_map(|(program, replica)| Step::Start { program, replica }),
        1 => program().prop_map(|program| Step::Change(Change::StealLease { program })),
        1 => program().prop_map(|program| Step::Change(Change::DeleteLease { program })),
    ]
}

fn corrupt() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..REMEDIES).prop_map(|nth| (Corrupted::Remedy, nth)),
        (0..INGRESSES).prop_map(|nth| (Corrupted::Ingress, nth)),
        (0..SERVICES).prop_map(|nth| (Corrupted::Binding, nth)),
    ]
    .prop_map(|(corrupted, nth)| Step::Change(Change::Corrupt { corrupted, nth }))
}

/// Generates faults that can happen: each API has its clients, each client its kinds, and only writes
/// conflict, lose their response, or come late.
fn fault() -> impl Strategy<Value = Step> {
    let client = prop_oneof![
        3 => Just((Side::Karmada, Some(Role::Remedy))),
        3 => Just((Side::Karmada, Some(Role::Ingress))),
        5 => Just((Side::Karmada, None)),
        4 => Just((Side::Gateway, Some(Role::Ingress))),
    ];
    (client, api_fault(), 1_u8..=40).prop_flat_map(|((side, program), fault, seconds)| {
        let written = matches!(
            fault,
            ApiFault::Conflicts { .. } | ApiFault::LoseResponses { .. }
        );
        let kinds = about(side, program, written);
        let about = prop::option::weighted(0.5, prop::sample::select(kinds));
        about.prop_map(move |about| Step::Fault {
            api: side.into(),
            program,
            // A late write is of any kind.
            about: about
                .filter(|_| !matches!(fault, ApiFault::Late { .. }))
                .map(About::kind),
            fault,
            seconds: match fault {
                ApiFault::WithholdBookmarks => BOOKMARKS + u16::from(seconds),
                _ => seconds.into(),
            },
        })
    })
}

/// A program at an API.
type Client = (Side, Role);

const REMEDY: Client = (Side::Karmada, Role::Remedy);
const INGRESS: Client = (Side::Karmada, Role::Ingress);
const GATEWAY: Client = (Side::Gateway, Role::Ingress);

/// The kinds, each with the clients that read and that write it.
const KINDS: [(&str, &[Client], &[Client]); 9] = [
    ("clusters", &[REMEDY, INGRESS], &[REMEDY]),
    ("remedies", &[REMEDY, INGRESS], &[REMEDY]),
    ("multiclusteringresses", &[INGRESS], &[INGRESS]),
    ("ingressclasses", &[INGRESS], &[]),
    ("resourcebindings", &[INGRESS], &[]),
    ("services", &[INGRESS, GATEWAY], &[GATEWAY]),
    ("endpointslices", &[INGRESS, GATEWAY], &[GATEWAY]),
    ("ingresses", &[GATEWAY], &[GATEWAY]),
    ("leases", &[REMEDY, INGRESS], &[REMEDY, INGRESS]),
];

/// Returns the kinds that a program, or any, reads from an API or writes to it.
fn about(side: Side, program: Option<Role>, written: bool) -> Vec<&'static str> {
    let concerned = KINDS.into_iter().filter(|(_, readers, writers)| {
        let clients = if written { writers } else { readers };
        let mut clients = clients.iter().filter(|(of, _)| *of == side);
        clients.any(|(_, role)| program.is_none_or(|program| program == *role))
    });
    concerned.map(|(plural, ..)| plural).collect()
}

fn api_fault() -> impl Strategy<Value = ApiFault> {
    let every = 1_u8..4;
    prop_oneof![
        every
            .clone()
            .prop_map(|every| ApiFault::Conflicts { every }),
        (1_u8..4).prop_map(|seconds| ApiFault::TooManyRequests { seconds }),
        Just(ApiFault::Unauthorized),
        Just(ApiFault::Forbidden),
        every
            .clone()
            .prop_map(|every| ApiFault::InternalErrors { every }),
        Just(ApiFault::Unavailable),
        (1_u16..=20_000).prop_map(|millis| ApiFault::Slow { millis }),
        every.prop_map(|every| ApiFault::LoseResponses { every }),
        Just(ApiFault::Outage),
        Just(ApiFault::Silence),
        any::<bool>().prop_map(|inside_line| ApiFault::CutWatches { inside_line }),
        Just(ApiFault::ExpireWatches),
        Just(ApiFault::FailWatches),
        Just(ApiFault::WithholdBookmarks),
        (1_u16..=8_000, any::<bool>())
            .prop_map(|(millis, coalesce)| ApiFault::DelayEvents { millis, coalesce }),
        (1_u8..40).prop_map(|versions| ApiFault::StaleLists { versions }),
        (1_u16..=20_000).prop_map(|millis| ApiFault::Late { millis }),
    ]
}

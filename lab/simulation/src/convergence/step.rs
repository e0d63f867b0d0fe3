//! What may happen: to the objects, to the programs, to the APIs.

use std::fmt;

use proptest::collection::vec;
use proptest::prelude::*;

use super::program::Program;

/// One thing that happens.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants say what their fields are")]
pub enum Step {
    /// A cluster joins, with a finalizer of Karmada's.
    Join { cluster: u8 },
    /// A cluster is deleted; it stays until it is let go.
    Leave { cluster: u8 },
    /// Karmada removes its finalizer from a cluster.
    LetGo { cluster: u8 },
    /// An agent reports a condition; none: somebody removes it.
    Condition {
        cluster: u8,
        reporter: bool,
        status: Option<Verdict>,
    },
    /// Another writer replaces a cluster's status by what it was some of its versions ago
    /// (karmada#5030).
    RewriteStatus { cluster: u8, age: u8 },
    /// A Remedy is created or changed.
    PutRemedy { remedy: u8, spec: RemedySpec },
    /// A Remedy is deleted.
    DeleteRemedy { remedy: u8 },
    /// A `MultiClusterIngress` is created, or gets another class and other backends.
    PutIngress {
        ingress: u8,
        class: Class,
        backends: Backends,
    },
    /// Somebody else holds a `MultiClusterIngress` with a finalizer, or lets it go.
    HoldIngress { ingress: u8, held: bool },
    /// A `MultiClusterIngress` is deleted.
    DeleteIngress { ingress: u8 },
    /// An `IngressClass` is made anew.
    PutClass {
        class: u8,
        ours: bool,
        default: bool,
    },
    /// An `IngressClass` is deleted.
    DeleteClass { class: u8 },
    /// A Service is bound to clusters, and still runs in others. Bits name the clusters.
    Bind { service: u8, to: u8, applied: u8 },
    /// A Service's binding is deleted.
    Unbind { service: u8 },
    /// A Service's template gets other ports; none: it is deleted.
    Template { service: u8, ports: Option<u8> },
    /// Other endpoints of a Service are collected from a cluster; none: the slice is deleted.
    Collect {
        service: u8,
        cluster: u8,
        endpoints: Option<u8>,
    },
    /// The gateway's own ingress controller says where it serves an ingress, or no longer.
    Address { ingress: u8, served: bool },
    /// Somebody deletes an object of ours in the gateway.
    Drift { nth: u8 },
    /// A replica dies.
    Kill { program: Program, replica: u8 },
    /// A replica is told to stop.
    Stop { program: Program, replica: u8 },
    /// A replica starts, if it does not run.
    Start { program: Program, replica: u8 },
    /// Somebody takes the lease of a program and never renews it.
    StealLease { program: Program },
    /// The lease of a program is deleted.
    DeleteLease { program: Program },
    /// An API ails for some seconds, for one program or both.
    Fault {
        gateway: bool,
        program: Option<Program>,
        about: Option<About>,
        trouble: Trouble,
        seconds: u8,
    },
    /// All that ails the APIs ends.
    Mend,
    /// Nothing else happens for so many milliseconds.
    Wait { millis: u32 },
}

/// The status of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// `True`.
    Healthy,
    /// `False`.
    Unhealthy,
    /// `Unknown`.
    Unknown,
}

/// What a Remedy says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemedySpec {
    /// The clusters it names, as bits; none: every cluster.
    pub clusters: Option<u8>,
    /// Its matches; none: it acts at once.
    pub matches: Option<Vec<Match>>,
    /// `TrafficControl`, another action, both, or none, as bits.
    pub actions: u8,
}

/// One `clusterConditionMatch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Match {
    /// Whether it looks at the reporter's condition in place of the verdict's.
    pub reporter: bool,
    /// `Equal` or `NotEqual`.
    pub equal: bool,
    /// The status it compares with.
    pub status: Verdict,
}

/// The class of an ingress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// It names one that may exist.
    Named(u8),
    /// It names none.
    None,
}

/// What an ingress routes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backends {
    /// One Service, in a rule.
    Rule(u8),
    /// One Service, as default backend.
    Default(u8),
    /// Both Services.
    Both,
}

/// The kind that a fault is limited to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is a kind")]
pub enum About {
    Clusters,
    Remedies,
    MultiClusterIngresses,
    IngressClasses,
    ResourceBindings,
    Services,
    EndpointSlices,
    Ingresses,
    Leases,
}

impl About {
    /// The kind's name in paths.
    pub(crate) fn plural(self) -> &'static str {
        match self {
            Self::Clusters => "clusters",
            Self::Remedies => "remedies",
            Self::MultiClusterIngresses => "multiclusteringresses",
            Self::IngressClasses => "ingressclasses",
            Self::ResourceBindings => "resourcebindings",
            Self::Services => "services",
            Self::EndpointSlices => "endpointslices",
            Self::Ingresses => "ingresses",
            Self::Leases => "leases",
        }
    }
}

/// What ails an API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "each is a fault of the embedded server of that name, but for `Late`"
)]
pub enum Trouble {
    Conflicts {
        every: u8,
    },
    TooManyRequests {
        seconds: u8,
    },
    InternalErrors {
        every: u8,
    },
    Unavailable,
    Slow {
        millis: u16,
    },
    LoseAnswers {
        every: u8,
    },
    Outage,
    Silence,
    CutWatches {
        inside_line: bool,
    },
    ExpireWatches,
    WithholdBookmarks,
    DelayEvents {
        millis: u16,
        coalesce: bool,
    },
    StaleLists {
        versions: u8,
    },
    /// A write is under way so long, and then stored even if nobody waits for the answer any more.
    Late {
        millis: u16,
    },
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Healthy => "True",
            Self::Unhealthy => "False",
            Self::Unknown => "Unknown",
        })
    }
}

/// How many there are of each kind.
pub(crate) const CLUSTERS: u8 = 3;
pub(crate) const SERVICES: u8 = 2;
pub(crate) const INGRESSES: u8 = 3;
const REMEDIES: u8 = 3;
const CLASSES: u8 = 2;
pub(crate) const REPLICAS: u8 = 2;

/// The longest sequence.
const LONGEST: usize = 24;

/// Sequences, shrinking to shorter ones of simpler steps.
pub fn sequences() -> impl Strategy<Value = Vec<Step>> {
    vec(step(), 1..=LONGEST)
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
        1 => Just(Step::Mend),
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
        1 => cluster.clone().prop_map(|cluster| Step::Join { cluster }),
        1 => cluster.clone().prop_map(|cluster| Step::Leave { cluster }),
        1 => cluster.clone().prop_map(|cluster| Step::LetGo { cluster }),
        4 => (cluster.clone(), prop::bool::weighted(0.25), prop::option::weighted(0.9, verdict()))
            .prop_map(|(cluster, reporter, status)| Step::Condition { cluster, reporter, status }),
        2 => (cluster, 0_u8..4).prop_map(|(cluster, age)| Step::RewriteStatus { cluster, age }),
    ]
}

fn verdict() -> impl Strategy<Value = Verdict> {
    prop_oneof![
        3 => Just(Verdict::Healthy),
        3 => Just(Verdict::Unhealthy),
        1 => Just(Verdict::Unknown),
    ]
}

fn about_remedies() -> impl Strategy<Value = Step> {
    let remedy = 0..REMEDIES;
    prop_oneof![
        2 => (remedy.clone(), spec()).prop_map(|(remedy, spec)| Step::PutRemedy { remedy, spec }),
        1 => remedy.prop_map(|remedy| Step::DeleteRemedy { remedy }),
    ]
}

fn spec() -> impl Strategy<Value = RemedySpec> {
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
    (clusters, matches, actions).prop_map(|(clusters, matches, actions)| RemedySpec {
        clusters,
        matches,
        actions,
    })
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
            .prop_map(|(ingress, class, backends)| Step::PutIngress { ingress, class, backends }),
        2 => ingress.clone().prop_map(|ingress| Step::DeleteIngress { ingress }),
        1 => (ingress, any::<bool>())
            .prop_map(|(ingress, held)| Step::HoldIngress { ingress, held }),
        2 => (0..CLASSES, prop::bool::weighted(0.6), prop::bool::weighted(0.4))
            .prop_map(|(class, ours, default)| Step::PutClass { class, ours, default }),
        1 => (0..CLASSES).prop_map(|class| Step::DeleteClass { class }),
    ]
}

fn about_backends() -> impl Strategy<Value = Step> {
    let (service, cluster, bits) = (0..SERVICES, 0..CLUSTERS, 0_u8..(1 << CLUSTERS));
    let applied = prop_oneof![3 => Just(0_u8), 1 => bits.clone()];
    prop_oneof![
        3 => (service.clone(), bits, applied)
            .prop_map(|(service, to, applied)| Step::Bind { service, to, applied }),
        1 => service.clone().prop_map(|service| Step::Unbind { service }),
        2 => (service.clone(), prop::option::weighted(0.8, 0_u8..3))
            .prop_map(|(service, ports)| Step::Template { service, ports }),
        3 => (service, cluster, prop::option::weighted(0.8, 0_u8..3))
            .prop_map(|(service, cluster, endpoints)| Step::Collect { service, cluster, endpoints }),
        1 => (0..INGRESSES, any::<bool>())
            .prop_map(|(ingress, served)| Step::Address { ingress, served }),
        1 => (0_u8..8).prop_map(|nth| Step::Drift { nth }),
    ]
}

fn program() -> impl Strategy<Value = Program> {
    prop_oneof![Just(Program::Remedy), Just(Program::Ingress)]
}

fn about_programs() -> impl Strategy<Value = Step> {
    let replica = || (program(), 0..REPLICAS);
    prop_oneof![
        3 => replica().prop_map(|(program, replica)| Step::Kill { program, replica }),
        1 => replica().prop_map(|(program, replica)| Step::Stop { program, replica }),
        4 => replica().prop_map(|(program, replica)| Step::Start { program, replica }),
        1 => program().prop_map(|program| Step::StealLease { program }),
        1 => program().prop_map(|program| Step::DeleteLease { program }),
    ]
}

fn fault() -> impl Strategy<Value = Step> {
    (
        prop::bool::weighted(0.3),
        prop::option::weighted(0.5, program()),
        prop::option::weighted(0.5, about()),
        trouble(),
        1_u8..=40,
    )
        .prop_map(|(gateway, program, about, trouble, seconds)| Step::Fault {
            gateway,
            program,
            about,
            trouble,
            seconds,
        })
}

fn about() -> impl Strategy<Value = About> {
    prop::sample::select(vec![
        About::Clusters,
        About::Remedies,
        About::MultiClusterIngresses,
        About::IngressClasses,
        About::ResourceBindings,
        About::Services,
        About::EndpointSlices,
        About::Ingresses,
        About::Leases,
    ])
}

fn trouble() -> impl Strategy<Value = Trouble> {
    let every = 1_u8..4;
    prop_oneof![
        every.clone().prop_map(|every| Trouble::Conflicts { every }),
        (1_u8..4).prop_map(|seconds| Trouble::TooManyRequests { seconds }),
        every
            .clone()
            .prop_map(|every| Trouble::InternalErrors { every }),
        Just(Trouble::Unavailable),
        (1_u16..=20_000).prop_map(|millis| Trouble::Slow { millis }),
        every.prop_map(|every| Trouble::LoseAnswers { every }),
        Just(Trouble::Outage),
        Just(Trouble::Silence),
        any::<bool>().prop_map(|inside_line| Trouble::CutWatches { inside_line }),
        Just(Trouble::ExpireWatches),
        Just(Trouble::WithholdBookmarks),
        (1_u16..=8_000, any::<bool>())
            .prop_map(|(millis, coalesce)| Trouble::DelayEvents { millis, coalesce }),
        (1_u8..40).prop_map(|versions| Trouble::StaleLists { versions }),
        (1_u16..=20_000).prop_map(|millis| Trouble::Late { millis }),
    ]
}

//! The steps of a sequence: changes to objects, members, programs and APIs.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::objects::{POLICIES, Template};
use super::programs::Role;

/// A step of a sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants explain their fields")]
pub enum Step {
    /// A template is created or changed; a change may take away the labels and annotations of others.
    PutTemplate {
        template: Template,
        version: u8,
        wipes: bool,
    },
    /// A template is deleted.
    DeleteTemplate { template: Template },
    /// A policy is created or replaced.
    PutPolicy { policy: u8, shape: PolicyShape },
    /// Only the suspension of a policy changes.
    Pause { policy: u8, pause: Pause },
    /// A policy is deleted.
    DeletePolicy { policy: u8 },
    /// An override policy labels the copies of one template in some clusters, as bits.
    PutOverride {
        of_cluster: bool,
        template: Template,
        clusters: u8,
        value: u8,
    },
    /// An override policy is deleted.
    DeleteOverride { of_cluster: bool },
    /// A cluster joins with an empty member, or gets another label.
    Join { cluster: u8, region: u8 },
    /// A Cluster is deleted.
    Leave { cluster: u8 },
    /// Somebody in a member changes or deletes a copy.
    Drift {
        cluster: u8,
        template: Template,
        deletes: bool,
    },
    /// Somebody deletes the Work of a template in a cluster.
    DeleteWork { cluster: u8, template: Template },
    /// Somebody deletes the binding of a template.
    DeleteBinding { template: Template },
    /// A program dies at one of its next writes, after it was stored or before.
    Crash {
        program: Role,
        write: u8,
        stored: bool,
    },
    /// A program is killed.
    Kill { program: Role },
    /// A program starts unless it runs already.
    Start { program: Role },
    /// An API, of a member or of the fleet, has a fault for some seconds.
    Fault {
        member: Option<u8>,
        program: Option<Role>,
        about: Option<About>,
        fault: ApiFault,
        seconds: u8,
    },
    /// Every fault ends.
    Mend,
    /// Time passes.
    Wait { millis: u32 },
}

/// The spec of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyShape {
    /// The templates, each with the way in which it is selected.
    pub selects: Vec<(Template, By)>,
    /// The priority.
    pub priority: u8,
    /// Set if it takes templates of other policies. It selects by name then, as the API demands.
    pub preempts: bool,
    /// The clusters.
    pub affinity: Affinity,
    /// The weights of the clusters between which replicas are divided; without, each has all.
    pub weights: Option<[u8; 3]>,
    /// The pause.
    pub pause: Pause,
}

/// The way in which a policy selects templates of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is a field of a selector, or none")]
pub enum By {
    Name,
    Label,
    Kind,
}

/// The clusters of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Affinity {
    /// Every cluster.
    All,
    /// Some by their names, as bits.
    Names(u8),
    /// Those of a region, by a label.
    Region(u8),
}

/// The suspension of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// None.
    No,
    /// On every cluster.
    Whole,
    /// On some clusters, as bits.
    On(u8),
}

/// The kind to which a fault is limited, by its plural name.
pub type About = &'static str;

/// A fault of an API, as the embedded server names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are faults of the embedded server")]
pub enum ApiFault {
    Conflicts { every: u8 },
    TooManyRequests,
    Unauthorized,
    Forbidden,
    InternalErrors { every: u8 },
    Unavailable,
    Slow { millis: u16 },
    LoseResponses { every: u8 },
    Outage,
    Silence,
    CutWatches,
    ExpireWatches,
    FailWatches,
    DelayEvents { millis: u16, coalesce: bool },
    StaleLists { versions: u8 },
}

/// The number of clusters.
pub(crate) const CLUSTERS: u8 = 3;

/// The most steps of a sequence.
const LONGEST: usize = 24;

/// Returns the strategy that generates sequences, and shrinks them to fewer and simpler steps.
pub fn sequences() -> impl Strategy<Value = Vec<Step>> {
    vec(step(), 1..=LONGEST)
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => wait(),
        5 => about_templates(),
        7 => about_policies(),
        2 => about_overrides(),
        3 => about_clusters(),
        3 => by_hand(),
        4 => about_programs(),
        8 => fault(),
        1 => Just(Step::Mend),
    ]
}

fn wait() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => 1_u32..=20,
        3 => 20_u32..=1_000,
        2 => 1_000_u32..=10_000,
        1 => 10_000_u32..=90_000,
    ]
    .prop_map(|millis| Step::Wait { millis })
}

fn template() -> impl Strategy<Value = Template> {
    select(Template::ALL.to_vec())
}

fn about_templates() -> impl Strategy<Value = Step> {
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

fn about_policies() -> impl Strategy<Value = Step> {
    let policy = || 0..POLICIES;
    prop_oneof![
        4 => (policy(), shape()).prop_map(|(policy, shape)| Step::PutPolicy { policy, shape }),
        4 => (policy(), pause()).prop_map(|(policy, pause)| Step::Pause { policy, pause }),
        1 => policy().prop_map(|policy| Step::DeletePolicy { policy }),
    ]
}

fn shape() -> impl Strategy<Value = PolicyShape> {
    let by = prop_oneof![2 => Just(By::Name), 1 => Just(By::Label), 2 => Just(By::Kind)];
    let affinity = prop_oneof![
        2 => Just(Affinity::All),
        2 => (1_u8..1 << CLUSTERS).prop_map(Affinity::Names),
        1 => (0_u8..2).prop_map(Affinity::Region),
    ];
    let weights = prop::option::weighted(0.4, [0_u8..4, 0_u8..4, 0_u8..4]);
    (
        vec((template(), by), 1..=2),
        0_u8..3,
        prop::bool::weighted(0.3),
        affinity,
        weights,
        pause(),
    )
        .prop_map(
            |(mut selects, priority, preempts, affinity, weights, pause)| {
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
                    weights,
                    pause,
                }
            },
        )
}

fn about_overrides() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (any::<bool>(), template(), 1_u8..1 << CLUSTERS, 0_u8..4).prop_map(
            |(of_cluster, template, clusters, value)| Step::PutOverride {
                of_cluster, template, clusters, value,
            },
        ),
        1 => any::<bool>().prop_map(|of_cluster| Step::DeleteOverride { of_cluster }),
    ]
}

fn about_clusters() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => (0..CLUSTERS, 0_u8..2).prop_map(|(cluster, region)| Step::Join { cluster, region }),
        1 => (0..CLUSTERS).prop_map(|cluster| Step::Leave { cluster }),
    ]
}

fn by_hand() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..CLUSTERS, template(), any::<bool>())
            .prop_map(|(cluster, template, deletes)| Step::Drift { cluster, template, deletes }),
        1 => (0..CLUSTERS, template())
            .prop_map(|(cluster, template)| Step::DeleteWork { cluster, template }),
        1 => template().prop_map(|template| Step::DeleteBinding { template }),
    ]
}

fn about_programs() -> impl Strategy<Value = Step> {
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
fn fault() -> impl Strategy<Value = Step> {
    let kinds: &[About] = &[
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
    let about = prop::option::weighted(0.4, select(kinds));
    let program = prop::option::weighted(0.6, select(Role::ALL.to_vec()));
    let fleet = (program, about).prop_map(|(program, about)| (None, program, about));
    let copies = prop::option::weighted(0.4, select(vec!["configmaps", "deployments"]));
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
        1 => Just(ApiFault::TooManyRequests),
        1 => Just(ApiFault::Unauthorized),
        1 => Just(ApiFault::Forbidden),
        2 => every().prop_map(|every| ApiFault::InternalErrors { every }),
        1 => Just(ApiFault::Unavailable),
        2 => (1_u16..=20_000).prop_map(|millis| ApiFault::Slow { millis }),
        4 => every().prop_map(|every| ApiFault::LoseResponses { every }),
        2 => Just(ApiFault::Outage),
        1 => Just(ApiFault::Silence),
        1 => Just(ApiFault::CutWatches),
        1 => Just(ApiFault::ExpireWatches),
        1 => Just(ApiFault::FailWatches),
        3 => (1_u16..=8_000, any::<bool>())
            .prop_map(|(millis, coalesce)| ApiFault::DelayEvents { millis, coalesce }),
        1 => (1_u8..40).prop_map(|versions| ApiFault::StaleLists { versions }),
    ]
}

//! Steps in an order that finds the programs between two of their writes.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::objects::Template;
use super::parts::{
    about_policies, about_programs, about_templates, by_hand, fault, put_override, shape, taint,
    template, wait,
};
use super::programs::Role;
use super::step::{Affinity, By, Change, Division, Pause, PolicyShape, Step, TaintEffect};
use crate::harness::clusters::CLUSTERS;
use crate::harness::{About, Api, ApiFault, Part};

/// Generates one of the scenes.
pub(super) fn scene() -> impl Strategy<Value = Vec<Step>> {
    prop_oneof![
        refused_pause(),
        lost_report(),
        hasty_pause(),
        death_between_writes(),
        eviction(),
        shortage(),
        recovery(),
        dependencies(),
    ]
}

fn pausing(policy: u8, pause: Pause) -> Step {
    Step::Change(Change::Pause { policy, pause })
}

pub(super) fn fail_back(is_on: bool) -> Step {
    Step::Change(Change::FailBack { is_on })
}

/// Returns an edit of a template that takes nothing of others away.
pub(super) fn put(template: Template, version: u8) -> Step {
    Step::Change(Change::PutTemplate {
        template,
        version,
        wipes: false,
    })
}

/// Returns the policy that has namespaced templates in the beginning.
fn put_policy(shape: PolicyShape) -> Step {
    let policy = 0;
    Step::Change(Change::PutPolicy { policy, shape })
}

fn waiting(millis: impl Strategy<Value = u32>) -> impl Strategy<Value = Step> {
    millis.prop_map(|millis| Step::Wait { millis })
}

/// Generates a pause whose writes to bindings are refused until it is over, while something else wakes their
/// Works.
fn refused_pause() -> impl Strategy<Value = Vec<Step>> {
    let fault = prop_oneof![
        Just(ApiFault::Conflicts { every: 1 }),
        Just(ApiFault::InternalErrors { every: 1 }),
    ];
    let part = prop::option::weighted(0.7, Just(Part::Spec));
    let deed = prop_oneof![2 => put_override().boxed(), 1 => by_hand().boxed()];
    let waits = [1_u32..=300, 1..=4_000].map(waiting);
    (fault, part, deed, waits).prop_map(|(fault, part, deed, [before, after])| {
        let plural = "resourcebindings";
        let refusal = Step::Fault {
            api: Api::Hub,
            program: Some(Role::Propagation),
            about: Some(About { plural, part }),
            fault,
            seconds: 5,
        };
        vec![
            refusal,
            pausing(0, Pause::Whole),
            before,
            deed,
            after,
            pausing(0, Pause::No),
        ]
    })
}

/// Generates a pause that overtakes the report of applied copies, or comes after that was lost.
fn lost_report() -> impl Strategy<Value = Vec<Step>> {
    let fault = prop_oneof![
        2 => (100_u16..=5_000).prop_map(|millis| ApiFault::Slow { millis }),
        1 => Just(ApiFault::InternalErrors { every: 1 }),
        1 => Just(ApiFault::LoseResponses { every: 1 }),
    ];
    let refusal = (0..CLUSTERS, 1_u8..=5).prop_map(|(member, seconds)| Step::Fault {
        api: Api::Member(member),
        program: None,
        about: None,
        fault: ApiFault::TooManyRequests { seconds: 2 },
        seconds: seconds.into(),
    });
    let edits = [0_u8..20, 0..20];
    let waits = [1_u32..=3_000, 1..=3_000, 1..=300].map(waiting);
    let parts = (refusal, fault, template(), edits, any::<bool>(), waits);
    parts.prop_map(|(refusal, fault, template, versions, again, waits)| {
        let slow = Step::Fault {
            api: Api::Hub,
            program: Some(Role::Execution),
            about: Some(About {
                plural: "works",
                part: Some(Part::Status),
            }),
            fault,
            seconds: 10,
        };
        let [first, second] = versions.map(|version| put(template, version));
        let [refused, applied, edited] = waits;
        let policy = if template.is_namespaced() { 0 } else { 3 };
        let mut steps = vec![refusal, first, refused, slow, applied];
        if again {
            steps.extend([second, edited]);
        }
        steps.push(pausing(policy, Pause::Whole));
        steps
    })
}

/// Generates a pause that comes while a slow member gets a first copy.
fn hasty_pause() -> impl Strategy<Value = Vec<Step>> {
    let parts = (
        0..CLUSTERS,
        template(),
        100_u16..=5_000,
        waiting(1_u32..=2_000),
    );
    parts.prop_map(|(cluster, template, millis, wait)| {
        let slow = Step::Fault {
            api: Api::Member(cluster),
            program: None,
            about: None,
            fault: ApiFault::Slow { millis },
            seconds: 20,
        };
        let policy = if template.is_namespaced() { 0 } else { 3 };
        vec![slow, put(template, 2), wait, pausing(policy, Pause::Whole)]
    })
}

/// Generates a taint for which settled workloads leave a cluster, and the steps that may come in between.
fn eviction() -> impl Strategy<Value = Vec<Step>> {
    let between = prop_oneof![
        Just(Step::Settle),
        taint(),
        about_templates(),
        about_policies(&[0, 3], 0.2),
        about_programs(),
        fault(),
    ];
    let parts = (0..CLUSTERS, wait(), between, wait(), any::<bool>());
    parts.prop_map(|(cluster, before, between, after, ends)| {
        let taint = |effect| Step::Change(Change::Taint { cluster, effect });
        let mut steps = vec![
            Step::Settle,
            taint(Some(TaintEffect::NoExecute)),
            before,
            between,
            after,
        ];
        steps.extend(ends.then(|| taint(None)));
        steps
    })
}

fn room() -> impl Strategy<Value = Step> {
    (0..CLUSTERS, 0_u8..5).prop_map(|(cluster, pods)| Step::Change(Change::Room { cluster, pods }))
}

/// Generates a lack of room for a Deployment, and then room elsewhere.
fn shortage() -> impl Strategy<Value = Vec<Step>> {
    let shape = (deployments(), any::<bool>()).prop_map(|(shape, aggregated)| PolicyShape {
        division: Division::Room { aggregated },
        ..shape
    });
    let between = prop_oneof![
        Just(Step::Settle),
        taint(),
        room(),
        about_programs(),
        fault()
    ];
    let parts = (shape, 0_u8..20, vec(room(), 2..=4), between, wait(), room());
    parts.prop_map(|(shape, version, lacks, between, wait, room)| {
        let mut steps = lacks;
        steps.extend([
            put_policy(shape),
            put(Template::Deployment, version),
            between,
            wait,
            room,
        ]);
        steps
    })
}

/// Generates a first group of clusters that is lost and fits again, under a scheduler that returns workloads to it
/// or does not.
fn recovery() -> impl Strategy<Value = Vec<Step>> {
    let groups = [1_u8..1 << CLUSTERS, 1_u8..1 << CLUSTERS];
    let between = prop_oneof![
        2 => Just(Step::Settle).boxed(),
        1 => about_templates().boxed(),
        1 => about_programs().boxed(),
        1 => fault().boxed(),
    ];
    let parts = (
        deployments(),
        groups,
        any::<[bool; 2]>(),
        between,
        [wait(), wait()],
    );
    parts.prop_map(|(shape, groups, [before, after], between, waits)| {
        let shape = PolicyShape {
            affinity: Affinity::Groups(groups),
            ..shape
        };
        let taints = |effect| {
            let of_first = (0..CLUSTERS).filter(move |nth| groups[0] & (1 << nth) != 0);
            of_first.map(move |cluster| Step::Change(Change::Taint { cluster, effect }))
        };
        let [lost, back] = waits;
        let mut steps = vec![
            fail_back(before),
            put_policy(shape),
            put(Template::Deployment, 3),
            Step::Settle,
        ];
        steps.extend(taints(Some(TaintEffect::NoExecute)));
        steps.extend([lost, between]);
        steps.extend(taints(None));
        steps.extend([back, fail_back(after)]);
        steps
    })
}

/// Generates a Deployment that refers to one object and then to another, whatever comes in between.
fn dependencies() -> impl Strategy<Value = Vec<Step>> {
    let shape = deployments().prop_map(|shape| PolicyShape {
        has_dependencies: true,
        ..shape
    });
    let between = || {
        prop_oneof![
            Just(Step::Settle),
            about_templates(),
            about_policies(&[0, 1], 0.2),
            by_hand(),
            about_programs(),
            fault(),
        ]
    };
    let versions = [0_u8..20, 0..20, 0..20];
    let parts = (shape, versions, [between(), between()], [wait(), wait()]);
    parts.prop_map(|(shape, versions, between, waits)| {
        let ([first, other, second], [before, after]) = (versions, waits);
        let [one, two] = between;
        vec![
            put(Template::ConfigMapB, other),
            put_policy(shape),
            put(Template::Deployment, first),
            before,
            one,
            put(Template::Deployment, second),
            after,
            two,
        ]
    })
}

/// Generates immediate policies of Deployments that are not paused.
fn deployments() -> impl Strategy<Value = PolicyShape> {
    shape(0.0).prop_map(|shape| PolicyShape {
        selects: vec![(Template::Deployment, By::Name)],
        pause: Pause::No,
        ..shape
    })
}

/// Generates the death of a program at one of the writes that follow a change.
fn death_between_writes() -> impl Strategy<Value = Vec<Step>> {
    let program = select(Role::ALL.to_vec());
    let change = prop_oneof![
        about_templates().boxed(),
        about_policies(&[0, 3], 0.2).boxed()
    ];
    let pause = select(vec![0_u8, 3]).prop_map(|policy| pausing(policy, Pause::Whole));
    let parts = (
        program,
        0_u8..4,
        any::<bool>(),
        change,
        waiting(1_u32..=2_000),
        pause,
    );
    parts.prop_map(|(program, write, stored, change, wait, pause)| {
        let replica = 0;
        let crash = Step::Crash {
            program,
            replica,
            write,
            stored,
        };
        vec![crash, change, wait, pause, Step::Start { program, replica }]
    })
}

//! The random sequences of steps.

use proptest::collection::vec;
use proptest::prelude::*;

use super::objects::Template;
use super::parts::{
    about_clusters, about_overrides, about_policies, about_programs, about_templates, by_hand,
    fault, template, wait,
};
use super::scenes::{fail_back, put, scene};
use super::step::{Change, PolicyShape, Step};

/// The most steps of a sequence.
const LONGEST: usize = 20;

/// Returns the strategy that generates sequences, and shrinks them to fewer and simpler steps.
pub(crate) fn sequences() -> impl Strategy<Value = Vec<Step>> {
    let one = step().prop_map(|step| vec![step]);
    let steps = vec(prop_oneof![10 => one, 1 => scene()], 1..=LONGEST);
    steps.prop_map(|steps| steps.concat())
}

/// The most steps of a history of Lazy policies.
const LONGEST_LAZY: usize = 12;

/// Returns the strategy that generates short histories of Lazy policies, with calm between their steps: then
/// the reason of each move is certain.
pub(crate) fn lazy_sequences() -> impl Strategy<Value = Vec<Step>> {
    let steps = vec(lazy_step(), 1..=LONGEST_LAZY);
    (lazy_beginning(), steps).prop_map(|(beginning, steps)| [beginning, steps].concat())
}

/// Generates the policies of the fleet at the beginning: immediate, Lazy, or none, with a template that
/// nothing propagates.
fn lazy_beginning() -> impl Strategy<Value = Vec<Step>> {
    let template = Template::Deployment;
    prop_oneof![
        Just(Vec::new()),
        Just(vec![
            lazy(0, &[Template::ConfigMapA, template]),
            lazy(3, &[Template::ClusterRole]),
            Step::Settle,
        ]),
        Just(vec![
            Step::Change(Change::DeletePolicy { policy: 0 }),
            Step::Change(Change::DeleteTemplate { template }),
            Step::Settle,
            put(template, 1),
            Step::Settle,
        ]),
    ]
}

fn lazy(policy: u8, templates: &[Template]) -> Step {
    let shape = PolicyShape {
        is_lazy: true,
        ..PolicyShape::of_kinds(templates)
    };
    Step::Change(Change::PutPolicy { policy, shape })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => wait(),
        5 => about_templates(),
        7 => about_policies(&[0, 1, 2, 3, 4], 0.2),
        1 => about_activation(),
        2 => about_overrides(),
        4 => about_clusters(),
        3 => by_hand(),
        4 => about_programs(),
        8 => fault(),
        1 => Just(Step::Repair),
    ]
}

fn lazy_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => Just(Step::Settle),
        3 => wait(),
        6 => about_templates(),
        10 => about_policies(&[0, 1, 3], 0.8),
        3 => about_activation(),
        1 => about_overrides(),
        1 => about_clusters(),
        1 => by_hand(),
        4 => about_programs(),
        3 => fault(),
    ]
}

/// Generates the reasons other than an edit for which a workload moves, or seems edited.
fn about_activation() -> impl Strategy<Value = Step> {
    prop_oneof![
        1 => Just(Step::Settle),
        1 => any::<bool>().prop_map(fail_back),
        1 => Just(Step::Change(Change::Upgrade)),
        1 => template().prop_map(|template| Step::Change(Change::Reschedule { template })),
    ]
}

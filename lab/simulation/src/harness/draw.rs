//! The strategies that draw steps which any world may take.

use proptest::prelude::*;

use super::fault::ApiFault;
use super::message::Role;
use super::step::Step;

/// Draws steps of a program of one replica: that it dies at one of its next writes, of which there are `writes`,
/// is killed, or starts.
pub(crate) fn of_programs<C, R, S>(
    program: impl Fn() -> S,
    dies: u32,
    writes: u8,
) -> impl Strategy<Value = Step<C, R>>
where
    C: std::fmt::Debug,
    R: Role,
    S: Strategy<Value = R>,
{
    let replica = 0;
    prop_oneof![
        dies => (program(), 0..writes, any::<bool>()).prop_map(move |(program, write, stored)| {
            Step::Crash { program, replica, write, stored }
        }),
        1 => program().prop_map(move |program| Step::Kill { program, replica }),
        3 => program().prop_map(move |program| Step::Start { program, replica }),
    ]
}

/// Draws faults of an API. Those that end watches, and lists of former versions, have weights of their own.
pub(crate) fn api_fault(
    conflicts: u32,
    [cut, expire, fail, stale]: [u32; 4],
) -> impl Strategy<Value = ApiFault> {
    prop_oneof![
        conflicts => (1_u8..4).prop_map(|every| ApiFault::Conflicts { every }),
        1 => Just(ApiFault::TooManyRequests { seconds: 2 }),
        1 => Just(ApiFault::Unauthorized),
        1 => Just(ApiFault::Forbidden),
        2 => (1_u8..4).prop_map(|every| ApiFault::InternalErrors { every }),
        1 => Just(ApiFault::Unavailable),
        2 => (1_u16..=20_000).prop_map(|millis| ApiFault::Slow { millis }),
        4 => (1_u8..4).prop_map(|every| ApiFault::LoseResponses { every }),
        2 => Just(ApiFault::Outage),
        1 => Just(ApiFault::Silence),
        cut => Just(ApiFault::CutWatches { inside_line: true }),
        expire => Just(ApiFault::ExpireWatches),
        fail => Just(ApiFault::FailWatches),
        3 => (1_u16..=8_000, any::<bool>())
            .prop_map(|(millis, coalesce)| ApiFault::DelayEvents { millis, coalesce }),
        stale => (1_u8..40).prop_map(|versions| ApiFault::StaleLists { versions }),
    ]
}

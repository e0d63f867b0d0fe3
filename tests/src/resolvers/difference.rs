//! Where the agent and a real resolver differ, and why that may be.

use std::fmt;
use std::time::Duration;

use hickory_proto::rr::RecordType;
use karmada_rules::health::resolver::Resolver;
use lab_parts::dns::KUBERNETES;

use super::play::{Seen, of};
use super::world::{Kind, World};

/// A lookup of at least that length waited for something: the resolvers' timeout is a second.
const WAITED: Duration = Duration::from_millis(900);

/// What differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum What {
    /// The vote is unhealthy, and pods resolve.
    UnhealthyForNobody,
    /// The vote is healthy, and says nothing of pods that fail or that get another's address.
    Unsaid,
    /// Nothing is said of pods that wait.
    WaitUnsaid,
    /// Pods fail by the agent's word, and resolve.
    FalselySaid,
    /// Pods wait by the agent's word, and do not.
    WaitFalselySaid,
    /// The vote is healthy, and no pod resolves.
    HealthyForNobody,
    /// There is no vote.
    NoVote,
}

/// The reason why the agent says something else on purpose. Each has a row in `docs/probe.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reason {
    /// Responses come later than the probe waits.
    Late,
    /// musl before 1.2.4 does not repeat a truncated query over TCP.
    OldMusl,
    /// musl does not know `use-vc`: its queries are datagrams.
    UseVc,
    /// musl and Go do not know `no-aaaa`: they send the queries that the probe leaves out.
    NoAaaa,
    /// Another server answers for the cluster's own name.
    OwnName,
    /// Of several servers, those that the probe did not ask disagree.
    NotAsked,
    /// With `rotate`, the servers that a lookup begins with are not those of the next.
    Rotate,
}

impl Reason {
    /// Returns what the row in `docs/probe.md` begins with.
    pub(super) fn row(self) -> &'static str {
        match self {
            Self::Late => "Responses come later than the probe waits",
            Self::OldMusl => "Truncated responses, with musl before 1.2.4",
            Self::UseVc => "`options use-vc`, with musl",
            Self::NoAaaa => "`options no-aaaa`, with musl and Go",
            Self::OwnName => "A stranger answers for the cluster's own name",
            Self::NotAsked => "Servers disagree, and the probe did not ask all of them",
            Self::Rotate => "`options rotate`",
        }
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UnhealthyForNobody => "unhealthy, and pods resolve",
            Self::Unsaid => "healthy without a word, and pods fail",
            Self::WaitUnsaid => "healthy without a word, and pods wait",
            Self::FalselySaid => "said to fail, and pods resolve",
            Self::WaitFalselySaid => "said to wait, and pods do not",
            Self::HealthyForNobody => "healthy, and no pod resolves",
            Self::NoVote => "no vote",
        })
    }
}

/// Returns where the agent and the pods with a resolver differ.
pub(super) fn between(seen: &Seen, resolver: Resolver) -> Option<What> {
    let real = of(seen, resolver);
    let symptom = seen.vote["pods"][resolver.as_str()]["symptom"].as_str();
    let is_clean = real.is_right() && !real.has_stranger();
    let waited = real.took >= WAITED;
    match (seen.vote["vote"].as_str(), symptom) {
        (Some("unhealthy"), _) => real.is_right().then_some(What::UnhealthyForNobody),
        (Some("healthy"), _) if !Resolver::ALL.iter().any(|one| of(seen, *one).is_right()) => {
            Some(What::HealthyForNobody)
        }
        (Some("healthy"), None | Some("waits")) if !is_clean => Some(What::Unsaid),
        (Some("healthy"), None) => waited.then_some(What::WaitUnsaid),
        (Some("healthy"), Some("fails")) => real.is_right().then_some(What::FalselySaid),
        (Some("healthy"), Some("waits")) => (!waited).then_some(What::WaitFalselySaid),
        (Some("healthy"), Some(_)) => None,
        _ => Some(What::NoVote),
    }
}

/// Returns the reason for a difference, if one is known.
pub(super) fn reason(world: &World, resolver: Resolver, what: What) -> Option<Reason> {
    let has = |kinds: &dyn Fn(Kind) -> bool| world.kinds().any(kinds);
    let is_musl = resolver == Resolver::Musl;
    let faults = world.servers.iter().flat_map(|server| &server.faults);
    let mut own = faults.filter(|fault| {
        let name = fault.name.as_ref();
        name.is_none_or(|name| name == KUBERNETES) && fault.family != Some(RecordType::AAAA)
    });
    let says_less = [What::Unsaid, What::WaitUnsaid].contains(&what);
    if what == What::NoVote {
        return None;
    }
    if has(&|kind| matches!(kind, Kind::Late(_))) {
        Some(Reason::Late)
    } else if is_musl && says_less && has(&|kind| kind == Kind::Truncated) {
        Some(Reason::OldMusl)
    } else if is_musl && says_less && world.has("use-vc") {
        Some(Reason::UseVc)
    } else if world.has("no-aaaa") && resolver != Resolver::Glibc && says_less {
        Some(Reason::NoAaaa)
    } else if says_less && own.any(|fault| fault.kind == Kind::Stranger) {
        Some(Reason::OwnName)
    } else if world.servers.len() > 1 && says_less {
        Some(Reason::NotAsked)
    } else if world.servers.len() > 1 && world.has("rotate") {
        Some(Reason::Rotate)
    } else {
        None
    }
}

//! Where the agent and a real resolver differ, and why that may be.
//!
//! A reason is accepted only if it explains both sides: by the rules of `health::resolvers`, all answers of
//! the world, seen as the agent sees them, lead to what it says, and seen as they really are, to what the resolver does.

use std::fmt;
use std::time::Duration;

use health::dns::DnsClass;
use health::observation::{Family, Symptom};
use health::resolver::Resolver;
use health::resolvers::{Answer, Answers, Lookup, pods};

use super::play::{Real, Said};
use super::world::{Kind, LATENESSES, TIMEOUT, View, World, address};

/// A lookup of at least that length waited for a response that did not come.
const WAITED: Duration = TIMEOUT.saturating_sub(Duration::from_millis(150));

/// A difference.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Difference {
    pub(super) what: What,
    /// Why it is one on purpose; none if it is a mistake.
    pub(super) reasons: Vec<Reason>,
    pub(super) resolver: Resolver,
}

/// The part that differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum What {
    /// Nothing is said of pods that fail or that get another's address.
    Unsaid,
    /// Nothing is said of pods that wait.
    WaitUnsaid,
    /// Pods fail by the agent's word, and resolve.
    FalselySaid,
    /// Pods wait by the agent's word, and do not.
    WaitFalselySaid,
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
    /// Nothing tells the probe the API's address of the other family.
    OtherFamily,
    /// Of several servers, those that the probe did not ask disagree.
    NotAsked,
    /// With `rotate`, the servers that a lookup begins with are not those of the next.
    Rotate,
    /// musl goes on where AAAA is denied, to a name that the probe has no reason to ask for.
    LaterName,
}

impl Reason {
    const ALL: [Self; 9] = [
        Self::Late,
        Self::OldMusl,
        Self::UseVc,
        Self::NoAaaa,
        Self::OwnName,
        Self::OtherFamily,
        Self::NotAsked,
        Self::Rotate,
        Self::LaterName,
    ];

    /// Returns the start of the row in `docs/probe.md`.
    pub(super) fn row(self) -> &'static str {
        match self {
            Self::Late => "Responses come later than the probe waits",
            Self::OldMusl => "Truncated responses, with musl before 1.2.4",
            Self::UseVc => "`options use-vc`, with musl",
            Self::NoAaaa => "`options no-aaaa`, with musl and Go",
            Self::OwnName => "A stranger answers for the cluster's own name",
            Self::OtherFamily => "The API has an address of each family under a name of its own",
            Self::NotAsked => "Servers disagree, and the probe did not ask all of them",
            Self::Rotate => "`options rotate`",
            Self::LaterName => "AAAA is denied, and a later name of the search list exists",
        }
    }

    /// Returns `true` if it may matter in a world.
    fn may_matter(self, world: &World, resolver: Resolver) -> bool {
        let is_musl = resolver == Resolver::Musl;
        let are_several = world.servers.len() > 1;
        match self {
            Self::Late => world.has_fault(|kind| matches!(kind, Kind::Late(_))),
            Self::OldMusl => {
                let truncated = [
                    Kind::Truncated,
                    Kind::TruncatedSilent,
                    Kind::TruncatedClosed,
                ];
                is_musl && world.has_fault(|kind| truncated.contains(&kind))
            }
            Self::UseVc => is_musl && world.has("use-vc"),
            Self::NoAaaa => resolver != Resolver::Glibc && world.has("no-aaaa"),
            Self::OwnName => world.has_fault(|kind| kind == Kind::Foreign),
            Self::OtherFamily => world.has_both_families(),
            Self::NotAsked => are_several,
            Self::Rotate => are_several && !is_musl && world.has("rotate"),
            Self::LaterName => is_musl && world.candidates().len() > 1,
        }
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unsaid => "not said to fail, and does",
            Self::WaitUnsaid => "not said to wait, and does",
            Self::FalselySaid => "said to fail, and resolves",
            Self::WaitFalselySaid => "said to wait, and does not",
            Self::NoVote => "no vote",
        })
    }
}

/// Returns where the agent and the pods with a resolver differ.
pub(super) fn between(
    world: &World,
    resolver: Resolver,
    said: Said,
    real: Real,
) -> Option<Difference> {
    let of = |what, reasons| Difference {
        what,
        reasons,
        resolver,
    };
    let said = match said {
        Said::OfOthers => return None,
        Said::NoVote => return Some(of(What::NoVote, Vec::new())),
        Said::Pods(symptom) => symptom,
    };
    let seen = predicted(world, resolver, &[]);
    // That the servers disagree must be true.
    let is_at_times = seen == Some(Symptom::FailsAtTimes);
    if agree(said, real) && (said != Some(Symptom::FailsAtTimes) || real.is_mixed() || is_at_times)
    {
        return None;
    }
    let what = match said {
        None | Some(Symptom::Waits) if !real.is_clean() => What::Unsaid,
        None => What::WaitUnsaid,
        Some(Symptom::Waits) => What::WaitFalselySaid,
        Some(_) => What::FalselySaid,
    };
    let candidates: Vec<_> = Reason::ALL
        .into_iter()
        .filter(|reason| reason.may_matter(world, resolver))
        .collect();
    let mut sets = subsets(&candidates);
    sets.sort_by_key(Vec::len);
    let mut sets = sets.into_iter();
    let reasons = sets.find(|reasons| explains(world, resolver, reasons, (said, real)));
    Some(of(what, reasons.unwrap_or_default()))
}

/// Returns `true` if pods do as they are said to.
fn agree(said: Option<Symptom>, real: Real) -> bool {
    match said {
        None => real.is_clean() && !has_waited(real),
        Some(Symptom::Waits) => real.is_clean() && has_waited(real),
        Some(Symptom::FailsAtTimes) => true,
        Some(Symptom::Fails) => !real.is_right,
    }
}

fn has_waited(real: Real) -> bool {
    real.took >= WAITED
}

fn subsets(of: &[Reason]) -> Vec<Vec<Reason>> {
    let mut all = vec![Vec::new()];
    for reason in of {
        let with = all.iter().map(|set| [set.as_slice(), &[*reason]].concat());
        let with: Vec<_> = with.collect();
        all.extend(with);
    }
    // Without a reason nothing is explained.
    all.retain(|set| !set.is_empty());
    all
}

/// Returns `true` if these reasons explain both the agent's word and reality.
fn explains(
    world: &World,
    resolver: Resolver,
    reasons: &[Reason],
    (said, real): (Option<Symptom>, Real),
) -> bool {
    let has = |reason: Reason| reasons.contains(&reason);
    let truth = predicted(world, resolver, reasons);
    // Several late responses take as long as one that does not come, and with `rotate` it depends on the server.
    let is_real = if (has(Reason::Late) || has(Reason::Rotate))
        && truth.is_none_or(|truth| truth == Symptom::Waits)
    {
        real.is_clean()
    } else {
        agree(truth, real)
    };
    let not_asked = has(Reason::NotAsked);
    let is_said = seen(world, resolver, reasons, Servers::All).any(|seen| {
        // A name that the probe did not ask for counts in the pods' favour.
        seen == said || not_asked && said < seen
    });
    let is_said_by_first =
        || not_asked && seen(world, resolver, reasons, Servers::First).any(|seen| seen == said);
    is_real && (is_said || is_said_by_first())
}

/// The servers whose answers the agent knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Servers {
    All,
    /// The first alone, which has an address, and denies each name before the one that has it.
    First,
}

/// Returns the verdicts that the agent may give if it has asked these servers for everything, or where it stops at the first name with an
/// address. It is empty if the agent asks more servers than these.
fn seen(
    world: &World,
    resolver: Resolver,
    reasons: &[Reason],
    servers: Servers,
) -> impl Iterator<Item = Option<Symptom>> {
    let has = |reason: Reason| reasons.contains(&reason);
    let too_late = if has(Reason::Late) {
        0..=LATENESSES
    } else {
        1..=1
    };
    let stops = has(Reason::LaterName);
    too_late.filter_map(move |too_late| {
        let view = View {
            too_late,
            ..view(world, &[])
        };
        let names = world.candidates();
        let answers = |name: &String| {
            Family::ALL.map(|family| world.answer(name, &world.servers[0], family, &view))
        };
        let is_found = |name: &String| answers(name).contains(&Answer::Right);
        let is_denied = |name: &String| answers(name).into_iter().all(is_denial);
        let first = names.iter().position(is_found);
        let suffices = first.is_some_and(|first| names.iter().take(first).all(is_denied));
        if servers == Servers::First && !suffices {
            return None;
        }
        let asked = Asked {
            names: first
                .filter(|_| stops)
                .map_or(names.len(), |first| first + 1),
            servers,
        };
        let no_aaaa = world.has("no-aaaa");
        Some(by_rules(world, resolver, no_aaaa, &view, asked))
    })
}

/// Returns `true` if the probe goes on to the next name, and does not ask another server for this one first.
fn is_denial(answer: Answer) -> bool {
    matches!(answer.class(), Some(DnsClass::NxDomain | DnsClass::NoData))
}

/// Returns the verdict of the rules on pods with a resolver if all answers are known, and seen as they really are where one of the
/// reasons keeps the agent from that.
fn predicted(world: &World, resolver: Resolver, reasons: &[Reason]) -> Option<Symptom> {
    let no_aaaa = world.has("no-aaaa") && !reasons.contains(&Reason::NoAaaa);
    let asked = Asked {
        names: world.candidates().len(),
        servers: Servers::All,
    };
    by_rules(world, resolver, no_aaaa, &view(world, reasons), asked)
}

fn view(world: &World, reasons: &[Reason]) -> View {
    let has = |reason: Reason| reasons.contains(&reason);
    View {
        knows_strangers: has(Reason::OwnName),
        knows_families: has(Reason::OtherFamily),
        ignores_truncation: has(Reason::OldMusl),
        over_tcp: world.has("use-vc") && !has(Reason::UseVc),
        too_late: if has(Reason::Late) { LATENESSES } else { 1 },
    }
}

/// The names that were asked for.
#[derive(Clone, Copy, Debug)]
struct Asked {
    /// The number of names, from the first on.
    names: usize,
    servers: Servers,
}

/// Returns the verdict of the rules if so much was asked.
fn by_rules(
    world: &World,
    resolver: Resolver,
    no_aaaa: bool,
    view: &View,
    asked: Asked,
) -> Option<Symptom> {
    let names = world.candidates();
    let servers = match asked.servers {
        Servers::All => world.servers.len(),
        Servers::First => 1,
    };
    let mut answers = Answers::default();
    for (candidate, name) in names.iter().enumerate().take(asked.names) {
        for (place, server) in world.servers.iter().enumerate().take(servers) {
            for family in Family::ALL {
                let answer = world.answer(name, server, family, view);
                answers.record(candidate, place, family, answer);
            }
        }
    }
    let servers = 0..world.servers.len();
    let servers: Vec<_> = servers.map(|place| (address(place), 53).into()).collect();
    let lookup = Lookup {
        candidates: names.len(),
        as_it_is_first: world.as_it_is_first(),
        servers: &servers,
        rotate: world.has("rotate"),
        over_tcp: view.over_tcp,
        no_aaaa,
    };
    let impairment = pods(&lookup, &answers).get(resolver);
    impairment.map(|impairment| impairment.symptom)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a world that meets a condition.
    fn world(is_met: impl Fn(&World) -> bool) -> World {
        (0..1_000_000).map(World::draw).find(is_met).unwrap()
    }

    fn real(is_right: bool) -> Real {
        Real {
            is_right,
            has_stranger: false,
            took: Duration::ZERO,
        }
    }

    /// A world may have late responses, several servers and whatever else: that excuses nothing that does not come from it.
    #[test]
    fn reasons_must_explain() {
        let resolver = Resolver::Musl;
        let world = world(|world: &World| {
            let reasons: Vec<_> = Reason::ALL
                .into_iter()
                .filter(|reason| reason.may_matter(world, resolver))
                .collect();
            reasons.len() > 2
                && predicted(world, resolver, &[]).is_none()
                && subsets(&reasons).iter().all(|set| {
                    let seen = |servers| seen(world, resolver, set, servers);
                    predicted(world, resolver, set).is_none()
                        && seen(Servers::All)
                            .chain(seen(Servers::First))
                            .all(|seen| seen.is_none())
                })
        });
        for (said, real, expected) in [
            (None, real(true), None),
            (None, real(false), Some(What::Unsaid)),
            (Some(Symptom::Fails), real(true), Some(What::FalselySaid)),
            (
                Some(Symptom::Waits),
                real(true),
                Some(What::WaitFalselySaid),
            ),
            (
                Some(Symptom::FailsAtTimes),
                real(true),
                Some(What::FalselySaid),
            ),
        ] {
            let difference = between(&world, resolver, Said::Pods(said), real);
            let expected = expected.map(|what| Difference {
                what,
                reasons: Vec::new(),
                resolver,
            });
            assert_eq!(difference, expected, "{said:?} {real:?}\n{world}");
        }
    }

    /// musl ignores an option, and fails for the queries that the agent leaves out.
    #[test]
    fn reasons_explain_both_sides() {
        let resolver = Resolver::Musl;
        let reasons = vec![Reason::NoAaaa];
        let world = world(|world| {
            Reason::ALL
                .into_iter()
                .filter(|reason: &Reason| reason.may_matter(world, resolver))
                .eq([Reason::NoAaaa, Reason::LaterName])
                && predicted(world, resolver, &[]).is_none()
                && predicted(world, resolver, &reasons) == Some(Symptom::Fails)
        });
        let between = |said| between(&world, resolver, Said::Pods(said), real(false));
        let expected = Difference {
            what: What::Unsaid,
            reasons: reasons.clone(),
            resolver,
        };
        assert_eq!(between(None), Some(expected));
        // By no rule would the agent say so.
        let unexplained = between(Some(Symptom::Waits)).unwrap();
        assert_eq!(unexplained.reasons, []);
    }

    /// The agent hears that AAAA is denied from the only server that it asks, and musl gets another's word first. That excuses
    /// nothing where the agent has to ask the other server as well.
    #[test]
    fn unasked_servers_may_resolve() {
        let resolver = Resolver::Musl;
        let fails = Some(Symptom::Fails);
        let excused = |does_first_suffice: bool| {
            let world = world(|world| {
                let may_matter = |reason: &Reason| reason.may_matter(world, resolver);
                let mut by_first = seen(world, resolver, &[], Servers::First);
                let mut by_all = seen(world, resolver, &[Reason::LaterName], Servers::All);
                Reason::ALL
                    .into_iter()
                    .filter(may_matter)
                    .eq([Reason::NotAsked, Reason::LaterName])
                    && predicted(world, resolver, &[]) == Some(Symptom::FailsAtTimes)
                    && by_first.next() == does_first_suffice.then_some(fails)
                    && by_all.all(|seen| seen != fails)
            });
            between(&world, resolver, Said::Pods(fails), real(true)).unwrap()
        };
        let expected = |reasons| Difference {
            what: What::FalselySaid,
            reasons,
            resolver,
        };
        assert_eq!(excused(true), expected(vec![Reason::NotAsked]));
        assert_eq!(excused(false), expected(Vec::new()));
    }
}

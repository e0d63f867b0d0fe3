use proptest::prelude::*;

use super::*;
use crate::dns::DnsClass;
use crate::observation::Family;

const PERIOD: u64 = 5_000;
const LATENCY: u64 = 10;
const THRESHOLDS: Thresholds = Thresholds {
    period: Duration::from_millis(PERIOD),
    failure: Duration::from_secs(30),
    success: Duration::from_secs(20),
    silence: Duration::from_secs(30),
    max_hold: Duration::from_secs(150),
};

/// The longest time that a round covers.
const REACH: Duration = Duration::from_millis(2 * PERIOD);

fn failure(class: DnsClass) -> Failure {
    Failure::new(class, "10.96.0.10:53".parse().unwrap())
}

/// A threshold fed with one round each period: `.` resolved, `4` resolved without AAAA, `x` timeout, `s` servfail,
/// `?` internal, `-` no round at all.
struct Fed {
    start: Instant,
    state: Threshold,
}

impl Fed {
    fn rounds(rounds: &str) -> Self {
        let mut fed = Self {
            start: Instant::now(),
            state: Threshold::new(THRESHOLDS),
        };
        for (index, symbol) in (0..).zip(rounds.chars()) {
            let observation = match symbol {
                '.' => Observation::Success,
                '4' => Observation::Partial(Partial {
                    silent: Some(Family::Aaaa),
                    ..Partial::default()
                }),
                'x' => Observation::Failed(failure(DnsClass::Timeout)),
                's' => Observation::Failed(failure(DnsClass::ServFail)),
                '?' => Observation::Internal,
                _ => continue,
            };
            fed.state.observe(&Round {
                scheduled: fed.at(index * PERIOD),
                finished: fed.at(index * PERIOD + LATENCY),
                observation,
            });
        }
        fed
    }

    fn at(&self, millis: u64) -> Instant {
        self.start + Duration::from_millis(millis)
    }

    fn vote_at(mut self, now: Instant) -> Option<Vote> {
        self.state.advance(now);
        self.state.vote()
    }

    fn next_change(&self) -> Option<u64> {
        let at = self.state.next_change()?;
        u64::try_from((at - self.start).as_millis()).ok()
    }
}

/// Rounds, seconds since the first was due, the vote then, and why.
const VOTES: &str = "
                    |  0     | none     | no observation is no vote
    .               |  0.1   | first    | a first success is not a settled vote
    ....            | 19.999 | first    | successes do not settle before a whole threshold
    ....            | 20     | healthy  | they settle by time, without one more round
    .....           | 20.01  | healthy  | and stay settled with one more
    x               |  0.1   | none     | a first failure is no vote
    xxxxxx          | 29.999 | none     | failures do not settle early
    xxxxxx          | 30.249 | none     | a round due when the streak is old enough gets a moment
    xxxxxx          | 30.25  | timeout  | then they settle by time, without waiting for its end
    xxxxxxx         | 30.01  | timeout  | they settle at once when it fails too
    xxxxxx.         | 31     | first    | and not at all when it succeeds
    .....x          | 26     | healthy  | one failure does not overturn a healthy vote
    .....xxxxxx     | 54.999 | healthy  | a streak of failures is counted from its own first round
    .....xxxxxx     | 55.25  | timeout  | a whole streak of failures overturns a healthy vote
    .....xxxxx.x    | 60     | healthy  | a success in between starts the failures anew
    xxxxxxx....     | 54.999 | timeout  | recovery takes the success threshold
    xxxxxxx....     | 55     | healthy  | then it is settled
    xxxxxxx...x     | 54     | timeout  | a relapse during recovery keeps the vote
    xxxxxxxs        | 36     | servfail | an unhealthy vote shows its newest failure
    xxxxxxxs..      | 46     | servfail | a recovering node still shows its last failure
    xsxsxs          | 30.25  | servfail | failures of different classes are one streak
    xx?xxxx         | 30.01  | timeout  | an internal round does not break a streak
    xxxxx?          | 31     | none     | nor does it bring a streak to its threshold
    xxxxxx?x        | 35.01  | timeout  | the next round with queries does
    .....?????      | 49     | healthy  | internal rounds keep a settled vote for a while
    ....??????      | 45.01  | none     | internal rounds are silence in the end
    .....           | 50.009 | healthy  | a short silence keeps the vote
    .....           | 50.01  | none     | a node that fell silent has no vote
    .....------xxxxx  | 84.999 | none    | after silence a streak starts anew
    .....------xxxxxx | 85.25  | timeout | and takes a whole threshold
    .x.x.x.x.x.x.x.   | 70.1   | first   | alternating outcomes never settle
    .x.x.x.x.x.x.x.x  | 75.1   | none    | and may leave no vote
    ...44           | 20.01  | partial  | a family without responses does not break a streak of successes
    .....4          | 25.01  | partial  | a healthy vote shows its newest family
    .....4.         | 30.01  | healthy  | and none once all respond
    ....44xxxxxxx   | 60.01  | timeout  | such a vote falls as any healthy one
    xxxxxxx444      | 54     | timeout  | and takes as long to return
    xxxxxxx4444     | 55     | partial  | from an unhealthy one
    xxxxx             | 31      | none    | a stall is not covered by the rounds before it
    xxxxx---x         | 40.02   | none    | one round after a stall adds one period
    xxxxx---x         | 45.25   | timeout | and then the streak goes on
    xx-x-xx           | 30.01   | timeout | a single missing round is bridged
    .--.              | 20      | first   | two successes around a stall do not settle
    .....x----x       | 56      | healthy | a stall between two failures is no outage
    xxxxxxx.---.      | 56      | timeout | nor is one between two successes a recovery
";

#[test]
fn a_vote_follows_from_the_rounds_and_the_time() {
    for case in VOTES.trim().lines() {
        let columns: Vec<_> = case.split('|').map(str::trim).collect();
        let [rounds, seconds, expected, sentence] = columns[..] else {
            panic!("four columns: {case}");
        };
        let fed = Fed::rounds(rounds);
        let now = fed.start + Duration::from_secs_f64(seconds.parse().unwrap());
        let shown = match fed.vote_at(now) {
            None => "none",
            Some(Vote::FirstSuccess) => "first",
            Some(Vote::Healthy) => "healthy",
            Some(Vote::Partial(_)) => "partial",
            Some(Vote::Unhealthy(failure)) => failure.class.as_str(),
        };
        assert_eq!(shown, expected, "{sentence}: {case}");
    }
}

/// The first round after a stall was due before it, and would be as old as the threshold at once.
#[test]
fn a_round_that_a_stall_delays_or_interrupts_turns_no_vote() {
    for stalled in [26_000, 31_000, 60_000, 3_600_000] {
        let mut fed = Fed::rounds(".....");
        let round = |scheduled, finished| Round {
            scheduled,
            finished,
            observation: Observation::Failed(failure(DnsClass::Timeout)),
        };
        // Due at 25 s, just before the process stalls.
        let resumed = 25_000 + stalled;
        fed.state
            .observe(&round(fed.at(25_000), fed.at(resumed + LATENCY)));
        let unhealthy = |vote| matches!(vote, Some(Vote::Unhealthy(_)));
        assert!(!unhealthy(fed.state.vote()), "{stalled}");
        // Rounds go on, and take a whole threshold.
        let first = resumed + PERIOD;
        for number in 0..6 {
            let scheduled = fed.at(first + number * PERIOD);
            let finished = scheduled + Duration::from_millis(LATENCY);
            fed.state.observe(&round(scheduled, finished));
            assert!(!unhealthy(fed.state.vote()), "{stalled} {number}");
        }
        let settled = fed.at(first + 30_250);
        assert!(unhealthy(fed.vote_at(settled)), "{stalled}");
    }
}

#[test]
fn next_change_is_when_the_vote_changes_by_itself() {
    let cases = [
        ("no observation, nothing to wait for", "", None),
        ("a streak settles", "xxxxxx", Some(30_250)),
        (
            "not without the rounds until then",
            "xx",
            Some(5_000 + LATENCY + 30_000),
        ),
        (
            "one observation is too old by then",
            "x",
            Some(LATENCY + 30_000),
        ),
        (
            "a settled vote falls silent",
            ".....",
            Some(20_000 + LATENCY + 30_000),
        ),
        (
            "a contrary streak settles first",
            ".....xxxxxx",
            Some(55_250),
        ),
        (
            "an internal round leaves only silence",
            "xx?",
            Some(5_000 + LATENCY + 30_000),
        ),
    ];
    for (sentence, rounds, expected) in cases {
        assert_eq!(Fed::rounds(rounds).next_change(), expected, "{sentence}");
    }
}

#[test]
fn a_threshold_beyond_the_clock_is_never_reached() {
    let never = Thresholds {
        period: Duration::MAX,
        failure: Duration::MAX,
        success: Duration::MAX,
        silence: Duration::MAX,
        max_hold: Duration::MAX,
    };
    let start = Instant::now();
    let mut state = Threshold::new(never);
    state.observe(&Round {
        scheduled: start,
        finished: start,
        observation: Observation::Success,
    });
    assert_eq!(state.next_change(), None);
    assert_eq!(state.vote(), Some(Vote::FirstSuccess));
}

/// A node whose DNS flaps, with rounds one period apart.
struct Flapping {
    state: Threshold,
    now: Instant,
}

impl Flapping {
    const STEP: Duration = Duration::from_millis(PERIOD);

    fn new(thresholds: Thresholds) -> Self {
        let mut flapping = Self {
            state: Threshold::new(thresholds),
            now: Instant::now(),
        };
        flapping.until(Observation::Success, |vote| vote == Some(Vote::Healthy));
        flapping
    }

    /// Observes `observation` in every round until the vote is as `wanted`, and returns the time that took.
    fn until(
        &mut self,
        observation: Observation,
        wanted: impl Fn(Option<Vote>) -> bool,
    ) -> Duration {
        let since = self.now;
        loop {
            let round = Round {
                scheduled: self.now,
                finished: self.now,
                observation,
            };
            self.state.observe(&round);
            let next = self.now + Self::STEP;
            let change = self.state.next_change().filter(|change| *change < next);
            let seen = change.unwrap_or(self.now);
            self.state.advance(seen);
            self.now = next;
            if wanted(self.state.vote()) {
                return seen - since;
            }
        }
    }

    fn falls(&mut self) {
        let failed = Observation::Failed(failure(DnsClass::Timeout));
        let taken = self.until(failed, |vote| matches!(vote, Some(Vote::Unhealthy(_))));
        assert_eq!(taken, THRESHOLDS.failure);
    }

    fn recovers(&mut self) -> u64 {
        let taken = self.until(Observation::Success, |vote| vote == Some(Vote::Healthy));
        taken.as_secs()
    }

    fn stays_healthy(&mut self, time: Duration) {
        let until = self.now + time;
        while self.now < until {
            self.state.observe(&Round {
                scheduled: self.now,
                finished: self.now,
                observation: Observation::Success,
            });
            self.now += Self::STEP;
        }
    }
}

#[test]
fn each_fall_doubles_the_wait_for_recovery_up_to_the_longest_hold() {
    let mut flapping = Flapping::new(THRESHOLDS);
    for wait in [20, 40, 80, 150, 150, 150] {
        flapping.falls();
        assert_eq!(flapping.state.hold(), Duration::from_secs(wait));
        assert_eq!(flapping.recovers(), wait);
    }
}

#[test]
fn a_fall_is_forgotten_after_ten_minutes() {
    let mut flapping = Flapping::new(THRESHOLDS);
    for _ in 0..2 {
        flapping.falls();
        flapping.recovers();
    }
    assert_eq!(flapping.state.hold(), Duration::from_secs(40));
    flapping.stays_healthy(FALL_MEMORY);
    assert_eq!(flapping.state.hold(), Duration::from_secs(20));
    flapping.falls();
    assert_eq!(flapping.recovers(), 20);
}

#[test]
fn a_hold_ends_when_the_falls_are_forgotten() {
    let mut flapping = Flapping::new(Thresholds {
        max_hold: Duration::from_hours(5),
        ..THRESHOLDS
    });
    for _ in 0..5 {
        flapping.falls();
        flapping.recovers();
    }
    flapping.falls();
    assert_eq!(flapping.state.hold(), Duration::from_secs(640));
    // The fall came one period before the first success.
    assert_eq!(flapping.recovers(), 600 - PERIOD / 1_000);
}

#[test]
fn a_longest_hold_below_the_success_threshold_has_no_effect() {
    let mut flapping = Flapping::new(Thresholds {
        max_hold: Duration::from_secs(1),
        ..THRESHOLDS
    });
    for _ in 0..5 {
        flapping.falls();
        assert_eq!(flapping.recovers(), 20);
    }
}

#[test]
fn a_fall_is_remembered_through_silence() {
    let mut flapping = Flapping::new(THRESHOLDS);
    for _ in 0..2 {
        flapping.falls();
        flapping.recovers();
    }
    flapping.now += 2 * THRESHOLDS.silence;
    assert_eq!(flapping.recovers(), 40);
}

/// A step in the life of a threshold: a round that takes some time, or a look at the clock.
#[derive(Clone, Debug)]
enum Step {
    Round { after: u64, takes: u64, seen: u8 },
    Look { after: u64 },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0_u64..12_000, 0_u64..2_000, 0_u8..8)
            .prop_map(|(after, takes, seen)| Step::Round { after, takes, seen }),
        1 => (0_u64..20_000).prop_map(|after| Step::Look { after }),
    ];
    prop::collection::vec(step, 0..60)
}

/// Rounds as in [`steps`], with stalls between them and within them.
fn stalled_steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (4_000_u64..6_000, 0_u64..2_000, 0_u8..8)
            .prop_map(|(after, takes, seen)| Step::Round { after, takes, seen }),
        1 => (0_u64..100_000, 0_u64..100_000, 0_u8..8)
            .prop_map(|(after, takes, seen)| Step::Round { after, takes, seen }),
        1 => (0_u64..100_000).prop_map(|after| Step::Look { after }),
    ];
    prop::collection::vec(step, 0..60)
}

fn observation(seen: u8) -> Observation {
    match seen {
        0..=2 => Observation::Success,
        3..=6 => Observation::Failed(failure(DnsClass::Timeout)),
        _ => Observation::Internal,
    }
}

/// Plays `steps` and calls `each` with the state and the time after every step.
fn play(steps: &[Step], look: bool, each: impl FnMut(&Threshold, Instant, Option<&Round>)) {
    play_with(THRESHOLDS, steps, look, each);
}

fn play_with(
    thresholds: Thresholds,
    steps: &[Step],
    look: bool,
    mut each: impl FnMut(&Threshold, Instant, Option<&Round>),
) {
    let mut now = Instant::now();
    let mut state = Threshold::new(thresholds);
    for step in steps {
        match *step {
            Step::Round { after, takes, seen } => {
                let scheduled = now + Duration::from_millis(after);
                now = scheduled + Duration::from_millis(takes);
                let round = Round {
                    scheduled,
                    finished: now,
                    observation: observation(seen),
                };
                state.observe(&round);
                each(&state, now, Some(&round));
            }
            Step::Look { after } => {
                now += Duration::from_millis(after);
                if look {
                    state.advance(now);
                    each(&state, now, None);
                }
            }
        }
    }
}

/// Returns when the newest run of equal outcomes was due to start, and the outcome.
fn newest_streak(outcomes: &[(Instant, bool)]) -> Option<(Instant, bool)> {
    let (_, newest) = outcomes.last()?;
    outcomes
        .iter()
        .rev()
        .take_while(|(_, good)| good == newest)
        .last()
        .copied()
}

proptest! {
    #[test]
    fn a_hold_is_never_shorter_than_the_threshold_nor_longer_than_the_longest(
        steps in steps(),
        max_hold in 0_u64..100,
    ) {
        let thresholds = Thresholds {
            failure: Duration::from_secs(3),
            success: Duration::from_secs(3),
            max_hold: Duration::from_secs(max_hold),
            ..THRESHOLDS
        };
        let most = thresholds.max_hold.max(thresholds.success);
        play_with(thresholds, &steps, true, |state, _, _| {
            assert!((thresholds.success..=most).contains(&state.hold()));
        });
    }

    #[test]
    fn a_vote_never_changes_before_a_whole_threshold_of_equal_outcomes(steps in steps()) {
        let mut outcomes = Vec::new();
        let mut before = None;
        play(&steps, true, |state, now, round| {
            // The vote may have changed just before this round finished, or because of it.
            let earlier = newest_streak(&outcomes);
            match round {
                Some(Round { scheduled, observation: Observation::Success, .. }) => outcomes.push((*scheduled, true)),
                Some(Round { scheduled, observation: Observation::Failed(_), .. }) => outcomes.push((*scheduled, false)),
                _ => {}
            }
            let settled = match state.vote() {
                Some(Vote::Healthy | Vote::Partial(_)) => Some((true, THRESHOLDS.success)),
                Some(Vote::Unhealthy(_)) => Some((false, THRESHOLDS.failure)),
                Some(Vote::FirstSuccess) | None => None,
            };
            if let Some((good, threshold)) = settled && settled != before {
                let mut streaks = [earlier, newest_streak(&outcomes)].into_iter().flatten();
                assert!(streaks.any(|(since, of)| of == good && now - since >= threshold));
            }
            before = settled;
        });
    }

    /// After a stall, too, one round turns no vote.
    #[test]
    fn a_vote_takes_as_many_rounds_as_cover_its_threshold(steps in stalled_steps()) {
        let mut outcomes = Vec::new();
        let mut before = None;
        play(&steps, true, |state, _, round| {
            let run = |outcomes: &[bool], good| outcomes.iter().rev().take_while(|of| **of == good).count();
            let earlier = outcomes.clone();
            match round {
                Some(Round { scheduled, finished, .. }) if *finished - *scheduled > REACH => {}
                Some(Round { observation: Observation::Success, .. }) => outcomes.push(true),
                Some(Round { observation: Observation::Failed(_), .. }) => outcomes.push(false),
                _ => {}
            }
            let settled = match state.vote() {
                Some(Vote::Healthy | Vote::Partial(_)) => Some((true, THRESHOLDS.success)),
                Some(Vote::Unhealthy(_)) => Some((false, THRESHOLDS.failure)),
                Some(Vote::FirstSuccess) | None => None,
            };
            if let Some((good, threshold)) = settled && settled != before {
                let rounds = run(&earlier, good).max(run(&outcomes, good));
                let covered = REACH * u32::try_from(rounds).unwrap();
                assert!(covered >= threshold, "{rounds} rounds");
            }
            before = settled;
        });
    }

    #[test]
    fn looking_at_the_clock_in_between_changes_no_later_vote(steps in steps()) {
        let mut looked = Vec::new();
        play(&steps, true, |state, now, round| {
            if round.is_some() { looked.push((state.vote(), state.next_change().map(|at| at.saturating_duration_since(now)))); }
        });
        let mut not_looked = Vec::new();
        play(&steps, false, |state, now, _| {
            not_looked.push((state.vote(), state.next_change().map(|at| at.saturating_duration_since(now))));
        });
        prop_assert_eq!(looked, not_looked);
    }

    #[test]
    fn advancing_twice_changes_nothing(steps in steps(), later in 0_u64..60_000) {
        play(&steps, true, |state, now, _| {
            let now = now + Duration::from_millis(later);
            let mut once = state.clone();
            once.advance(now);
            let mut twice = once.clone();
            twice.advance(now);
            assert_eq!(once, twice);
        });
    }

    #[test]
    fn a_vote_remains_until_next_change_and_next_change_lies_ahead(steps in steps()) {
        play(&steps, true, |state, now, _| {
            let Some(next) = state.next_change() else {
                return;
            };
            assert!(next > now);
            let mut just_before = state.clone();
            just_before.advance(next.checked_sub(Duration::from_nanos(1)).unwrap());
            assert_eq!(&just_before, state);
            let mut then = state.clone();
            then.advance(next);
            assert_ne!(&then, state);
        });
    }
}

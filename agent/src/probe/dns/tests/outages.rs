//! Outages of every class, from the responses of servers to a node's vote, in virtual time.

use std::fmt;

use health::threshold::{Threshold, Thresholds, Vote};
use tokio::time::sleep_until;

use super::*;

/// The period of the probe, and the threshold of the vote.
#[derive(Clone, Copy, Debug)]
struct Profile {
    period: Duration,
    threshold: Duration,
}

const DEFAULT: Profile = Profile {
    period: Duration::from_secs(5),
    threshold: Duration::from_secs(30),
};
const FAST: Profile = Profile {
    period: Duration::from_secs(2),
    threshold: Duration::from_secs(6),
};

/// The time a server takes to respond.
const PROMPT: Duration = Duration::from_millis(2);
/// The oldest observation that a vote may still be cast on.
const SIGHT: Duration = Duration::from_secs(2);
const SECOND: Duration = Duration::from_secs(1);

/// The state of DNS at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weather {
    Good,
    Bad(DnsClass),
}

/// All servers, seen through a network that loses a share of all datagrams.
struct Sky<W> {
    weather: W,
    lost: f64,
    random: Mutex<Rng>,
}

impl<W: Fn(Instant) -> Weather + Sync> Sky<W> {
    /// Returns `true` if neither a query nor its response is lost.
    fn passes(&self) -> bool {
        let mut random = self.random.lock().unwrap();
        random.f64() >= self.lost && random.f64() >= self.lost
    }

    fn response(&self, query: &Query) -> Result<exchange::Response, DnsClass> {
        let known = query.name.to_string() == "kubernetes.default.s0.local.";
        match (self.weather)(Instant::now()) {
            Weather::Bad(class) => Err(class),
            Weather::Good if !known => Err(DnsClass::NxDomain),
            Weather::Good if query.query_type == RecordType::A => {
                Ok(exchange::Response::known(query.clone()))
            }
            Weather::Good => Err(DnsClass::NoData),
        }
    }
}

impl<W: Fn(Instant) -> Weather + Sync> DnsClient for Sky<W> {
    async fn query(
        &self,
        _server: SocketAddr,
        _transport: Transport,
        query: Query,
        deadline: Instant,
    ) -> io::Result<exchange::Response> {
        let resend = (deadline - Instant::now()) / 3;
        for wait in [resend, 2 * resend] {
            let sent = Instant::now();
            let response = self.response(&query);
            if self.passes() && response != Err(DnsClass::Timeout) {
                tokio::time::sleep(PROMPT).await;
                return Ok(response.unwrap_or_else(exchange::Response::of));
            }
            sleep_until((sent + wait).min(deadline)).await;
        }
        sleep_until(deadline).await;
        Ok(exchange::Response::of(DnsClass::Timeout))
    }
}

/// The votes of a node, with the time since its start at which it cast each.
struct Votes {
    cast: Vec<(Duration, Option<Vote>)>,
    /// The number of rounds that failed.
    failed: usize,
}

impl Votes {
    /// Returns the votes of a node until `end` under `weather`, a function of the time since the start.
    async fn cast(
        profile: Profile,
        (suffixes, servers): (usize, u8),
        lost: f64,
        weather: impl Fn(Duration) -> Weather + Sync,
        end: Duration,
    ) -> Self {
        let suffixes = (0..suffixes).rev();
        let search: Vec<_> = suffixes.map(|place| format!("s{place}.local")).collect();
        let conf = format!("options ndots:5\nsearch {}\n", search.join(" "));
        let servers: Vec<_> = (1..=servers)
            .map(|last| ([10, 96, 0, last], 53).into())
            .collect();
        let timeout = SIGHT.min(profile.period * 2 / 5);
        let mut place = Location::new(&conf, &servers, timeout);
        place.period = profile.period;

        let start = Instant::now();
        let sky = Sky {
            weather: move |now: Instant| weather(now - start),
            lost,
            random: Mutex::new(Rng::with_seed(11)),
        };
        let prober = place.prober_with(sky, DirectServers::default());
        let mut threshold = Threshold::new(Thresholds {
            period: profile.period,
            failure: profile.threshold,
            success: profile.threshold,
            silence: profile.threshold,
            max_hold: Duration::from_mins(5),
        });
        let mut votes = vec![(Duration::ZERO, None)];
        let mut failed = 0;
        let (finished, mut rounds) = mpsc::channel(1);
        let program = Program::new(crate::identity::IDENTITY, ([127, 0, 0, 1], 0).into());
        let gate = program.readiness.gate("probe");
        let schedule = Schedule::new(place.period, Duration::ZERO, finished, gate);
        let voting = async {
            loop {
                let change = threshold.next_change().map(Instant::from_std);
                tokio::select! {
                    biased;
                    () = sleep_until(start + end) => return,
                    Some(round) = rounds.recv() => {
                        failed += usize::from(matches!(round.observation, Observation::Failed(_)));
                        threshold.observe(&round);
                    }
                    () = sleep_until(change.unwrap_or(start)), if change.is_some() => {
                        threshold.advance(Instant::now().into_std());
                    }
                }
                let vote = threshold.vote();
                if votes.last().map(|(_, vote)| *vote) != Some(vote) {
                    votes.push((start.elapsed(), vote));
                }
            }
        };
        tokio::select! {
            biased;
            () = voting => {}
            () = prober.run(schedule) => {}
        }
        Self {
            cast: votes,
            failed,
        }
    }

    /// Returns when it was first unhealthy.
    fn unhealthy(&self) -> Option<(Duration, Failure)> {
        self.cast.iter().find_map(|(at, vote)| match vote {
            Some(Vote::Unhealthy(failure)) => Some((*at, *failure)),
            _ => None,
        })
    }

    /// Returns when it became healthy again for good.
    fn healthy(&self) -> Option<Duration> {
        let last = self
            .cast
            .last()
            .filter(|(_, vote)| *vote == Some(Vote::Healthy));
        last.map(|(at, _)| *at)
    }
}

impl fmt::Display for Votes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, vote) in &self.cast {
            writeln!(f, "{at:?} {vote:?}")?;
        }
        Ok(())
    }
}

/// Returns weather that is bad between the two times.
fn outage(class: DnsClass, from: Duration, to: Duration) -> impl Fn(Duration) -> Weather + Sync {
    move |now| {
        if from <= now && now < to {
            Weather::Bad(class)
        } else {
            Weather::Good
        }
    }
}

/// Returns moments within a period, among them right before and right after a round's queries.
fn phases(period: Duration) -> [Duration; 3] {
    [Duration::ZERO, 10 * PROMPT, period / 2]
}

#[tokio::test(start_paused = true)]
async fn an_outage_of_every_class_is_voted_on_in_time_for_any_number_of_suffixes_and_servers() {
    for profile in [FAST, DEFAULT] {
        let begun = 2 * profile.threshold;
        let bound = profile.threshold + profile.period + SECOND;
        for class in DnsClass::ALL {
            for shape in
                (1..=6).flat_map(|suffixes| (1..=3).map(move |servers| (suffixes, servers)))
            {
                for phase in phases(profile.period) {
                    let from = begun + phase;
                    let end = from + bound + SECOND;
                    let weather = outage(class, from, end);
                    let votes = Votes::cast(profile, shape, 0.0, weather, end).await;
                    let case = format!("{profile:?} {class} {shape:?} {phase:?}:\n{votes}");
                    let (at, failure) = votes.unhealthy().unwrap_or_else(|| panic!("{case}"));
                    assert!(from <= at && at <= from + bound, "{case}");
                    assert_eq!(failure.class, class, "{case}");
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn no_vote_turns_unhealthy_after_recovery_and_it_is_healthy_again_after_the_threshold() {
    for profile in [FAST, DEFAULT] {
        for class in DnsClass::ALL {
            for phase in phases(profile.period) {
                let from = 2 * profile.threshold + phase;
                for step in 0..40 {
                    let shortest = profile.threshold.saturating_sub(profile.period);
                    let to = from + shortest + profile.period * step / 20;
                    let end = to + profile.period + profile.threshold + 2 * SIGHT;
                    let weather = outage(class, from, to);
                    let votes = Votes::cast(profile, (3, 1), 0.0, weather, end).await;
                    let case = format!("{profile:?} {class} {from:?} to {to:?}:\n{votes}");
                    if let Some((at, _)) = votes.unhealthy() {
                        assert!(at <= to + SIGHT, "{case}");
                        let again = votes.healthy().unwrap_or_else(|| panic!("{case}"));
                        assert!(again + profile.period >= to + profile.threshold, "{case}");
                    } else {
                        assert!(votes.healthy().is_some(), "{case}");
                    }
                }
            }
        }
    }
}

const DAY: Duration = Duration::from_hours(24);

/// Case S10.
#[tokio::test(start_paused = true)]
#[ignore = "long"]
async fn a_day_of_one_percent_loss_turns_no_vote() {
    for shape in [(3, 1), (6, 3)] {
        let votes = Votes::cast(DEFAULT, shape, 0.01, |_| Weather::Good, DAY).await;
        assert!(votes.healthy() == Some(DEFAULT.threshold), "{votes}");
    }
}

/// Returns weather with silence through so many rounds of every minute but the first.
fn stalls(profile: Profile, rounds: u32) -> impl Fn(Duration) -> Weather + Sync {
    move |now| {
        let minute = Duration::from_secs(now.as_secs() / 60 * 60);
        let silent = SECOND * 20..SECOND * 20 + profile.period * rounds;
        if minute > Duration::ZERO && silent.contains(&now.saturating_sub(minute)) {
            Weather::Bad(DnsClass::Timeout)
        } else {
            Weather::Good
        }
    }
}

#[tokio::test(start_paused = true)]
#[ignore = "long"]
async fn a_day_with_a_stalled_round_every_minute_turns_no_vote() {
    for profile in [FAST, DEFAULT] {
        let votes = Votes::cast(profile, (3, 1), 0.01, stalls(profile, 1), DAY).await;
        assert!(votes.unhealthy().is_none(), "{votes}");
        assert!(votes.healthy() == Some(profile.threshold), "{votes}");
        // One a minute stalls, and some lose both copies of a query that they need.
        assert!((1_439..1_600).contains(&votes.failed), "{}", votes.failed);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stall_longer_than_the_threshold_does_turn_it() {
    for profile in [FAST, DEFAULT] {
        let stalls = stalls(profile, 7);
        let votes = Votes::cast(profile, (3, 1), 0.01, stalls, Duration::from_mins(3)).await;
        assert!(votes.unhealthy().is_some(), "{votes}");
    }
}

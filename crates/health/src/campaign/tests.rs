use proptest::prelude::*;

use super::*;

const LEASE: Duration = Duration::from_secs(15);
const PERIOD: Duration = Duration::from_secs(5);

fn seconds(s: u64) -> Duration {
    Duration::from_secs(s)
}

/// The view of an agent that started at `now` and is one of `known`.
fn fresh(now: Instant, known: Option<usize>) -> ElectionView {
    ElectionView {
        started: now,
        contact: None,
        known,
        abstains_until: None,
    }
}

#[test]
fn an_agent_without_a_contact_waits_for_its_turn() {
    let now = Instant::now();
    let cases = [
        (1, 0.0, 0),
        (3, 1.0, 2_000),
        (1_000, 0.5, 333_333),
        (1_000, 7.0, 666_667),
    ];
    for (known, share, millis) in cases {
        let Candidacy::From(at) = fresh(now, Some(known)).candidacy(now, LEASE, share) else {
            panic!("it never campaigns");
        };
        let difference = (at - now).abs_diff(Duration::from_millis(millis));
        assert!(difference < Duration::from_millis(1), "{known} {share}");
    }
}

#[test]
fn an_agent_without_a_list_never_campaigns() {
    let now = Instant::now();
    assert_eq!(
        fresh(now, None).candidacy(now, LEASE, 0.0),
        Candidacy::Never
    );
}

#[test]
fn an_agent_with_a_contact_leaves_the_lease_alone_for_as_long_as_it_lasts() {
    let now = Instant::now();
    let contacted = ElectionView {
        contact: Some(LeaderContact {
            at: now + seconds(60),
            standby: false,
        }),
        ..fresh(now, Some(3))
    };
    for (share, wait) in [(0.0, 75), (1.0, 77)] {
        let candidacy = contacted.candidacy(now, LEASE, share);
        assert_eq!(candidacy, Candidacy::From(now + seconds(wait)));
    }
}

#[test]
fn a_standby_campaigns_at_once_until_its_leader_has_been_silent_for_two_leases() {
    let now = Instant::now();
    let standby = ElectionView {
        contact: Some(LeaderContact {
            at: now,
            standby: true,
        }),
        ..fresh(now, Some(1_000))
    };
    let relieved = Candidacy::StandBy(now + seconds(30));
    for (seconds_later, expected) in [
        (0, relieved),
        (16, relieved),
        (29, relieved),
        // From then on it has a turn like all others.
        (30, Candidacy::From(now + seconds(35))),
    ] {
        let candidacy = standby.candidacy(now + seconds(seconds_later), LEASE, 0.03);
        assert_eq!(candidacy, expected, "{seconds_later}");
    }
}

#[test]
fn an_agent_that_abstains_does_not_even_stand_by() {
    let now = Instant::now();
    let until = now + abstention(LEASE);
    for standby in [None, Some(true), Some(false)] {
        let contact = standby.map(|standby| LeaderContact { at: until, standby });
        let abstaining = ElectionView {
            contact,
            abstains_until: Some(until),
            ..fresh(now, Some(3))
        };
        let before = abstaining.candidacy(now + seconds(29), LEASE, 0.0);
        assert_eq!(before, Candidacy::Abstain(until));
        let afterwards = match contact {
            None => Candidacy::From(now),
            Some(LeaderContact { standby: true, .. }) => Candidacy::StandBy(until + 2 * LEASE),
            Some(_) => Candidacy::From(until + LEASE),
        };
        assert_eq!(abstaining.candidacy(until, LEASE, 0.0), afterwards);
    }
}

#[test]
fn every_other_agent_campaigns_before_an_abstention_ends_and_no_reporter_seems_silent() {
    let abstention = abstention(LEASE);
    for known in [2, 3, 10] {
        assert!(LEASE + spread(known) < abstention, "{known}");
    }
    // Of more agents, the first ones.
    assert!(LEASE + spread(1_000).mul_f64(0.02) < abstention);
    // The remedy-controller's default patience.
    let silent = LEASE + Duration::from_mins(1);
    assert!(abstention < silent);
}

#[test]
fn a_leader_with_too_few_votes_stays_longer_from_term_to_term_and_alone_for_ever() {
    let mut tenure = Tenure::new(seconds(40));
    let now = Instant::now();
    for lasts in [40, 80, 160, 320, 600, 600] {
        assert_eq!(tenure.ends_at(2, now), Some(now + seconds(lasts)));
        assert_eq!(tenure.ends_at(1, now), None);
        tenure.resigned();
    }
    tenure.heard_enough();
    assert_eq!(tenure.ends_at(1_000, now), Some(now + seconds(40)));
    let hour = Tenure::new(Duration::from_hours(1));
    assert_eq!(
        hour.ends_at(2, now),
        Some(now + Duration::from_hours(1)),
        "no term is shorter than the patience"
    );
}

/// Agents that start at the same time, and the number of their attempts to get the lease. An attempt that
/// finds a leader is three requests, see `a_lease_driver` in `karmada_runtime::lease`. The leader's
/// renewals are not counted.
struct Crowd {
    shares: Vec<f64>,
    contact: Vec<Option<LeaderContact>>,
    campaigning: Vec<bool>,
    attempts: usize,
    leader: Option<usize>,
}

impl Crowd {
    const STEP: Duration = Duration::from_millis(100);

    /// Creates agents whose shares come from a fixed sequence of pseudo-random numbers.
    fn of(agents: usize) -> Self {
        let mut state = 1_u64;
        let shares = (0..agents).map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            f64::from(u32::try_from(state >> 32).unwrap()) / f64::from(u32::MAX)
        });
        Self {
            shares: shares.collect(),
            contact: vec![None; agents],
            campaigning: vec![false; agents],
            attempts: 0,
            leader: None,
        }
    }

    /// Lets `life` pass. An agent that campaigns while there is no leader leads if `reached` returns `true`
    /// for that moment, and polls all others once a period.
    fn live(&mut self, life: Duration, reached: impl Fn(Duration) -> bool) {
        let started = Instant::now();
        let mut poll_at = Duration::MAX;
        let mut now = Duration::ZERO;
        while now < life {
            for agent in 0..self.shares.len() {
                let view = ElectionView {
                    started,
                    contact: self.contact[agent],
                    known: Some(self.shares.len()),
                    abstains_until: None,
                };
                let campaigns = match view.candidacy(started + now, LEASE, self.shares[agent]) {
                    Candidacy::Never | Candidacy::Abstain(_) => false,
                    Candidacy::From(at) => at <= started + now,
                    Candidacy::StandBy(_) => true,
                };
                let begins = campaigns && !self.campaigning[agent] && self.leader != Some(agent);
                self.campaigning[agent] = campaigns;
                self.attempts += usize::from(begins);
                if begins && self.leader.is_none() && reached(now) {
                    (self.leader, poll_at) = (Some(agent), now);
                }
            }
            if let Some(leader) = self.leader
                && poll_at <= now
            {
                for agent in (0..self.contact.len()).filter(|agent| *agent != leader) {
                    let standby = (agent + self.contact.len() - leader) % self.contact.len() <= 2;
                    self.contact[agent] = Some(LeaderContact {
                        at: started + now,
                        standby,
                    });
                }
                poll_at = now + PERIOD;
            }
            now += Self::STEP;
        }
    }
}

#[test]
fn a_thousand_agents_that_start_at_once_make_a_handful_of_attempts() {
    let mut crowd = Crowd::of(1_000);
    crowd.live(seconds(1_000), |_| true);
    assert!(crowd.leader.is_some());
    assert!(crowd.attempts <= 10, "{}", crowd.attempts);
    let campaigning = crowd.campaigning.iter().filter(|agent| **agent).count();
    assert!(campaigning <= 3, "{campaigning}");
}

#[test]
fn a_thousand_agents_try_an_api_that_is_away_at_most_twice_a_second() {
    let mut crowd = Crowd::of(1_000);
    crowd.live(seconds(100), |_| false);
    assert!((100..200).contains(&crowd.attempts), "{}", crowd.attempts);
}

proptest! {
    #[test]
    fn a_turn_is_never_longer_than_the_spread(known in 0_usize..100_000, share in 0.0..=1.0) {
        let now = Instant::now();
        let Candidacy::From(at) = fresh(now, Some(known)).candidacy(now, LEASE, share) else {
            panic!("it never campaigns");
        };
        prop_assert!(at - now <= spread(known) + Duration::from_nanos(1));
        prop_assert!(at >= now);
    }
}

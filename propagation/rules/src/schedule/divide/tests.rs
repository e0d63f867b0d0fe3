use proptest::prelude::*;

use super::*;

fn divided(seats: i32, votes: &[(&'static str, i64)], uid: &str) -> Vec<(&'static str, i32)> {
    let votes = votes.iter().copied().collect();
    webster(seats, &votes, uid).into_iter().collect()
}

/// Returns a uid whose hash is odd, or even.
fn uid(odd: bool) -> String {
    let mut uids = (0..=u8::MAX).map(|number| number.to_string());
    uids.find(|uid| (names::fnv1a_32(uid.as_bytes()) % 2 == 1) == odd)
        .unwrap()
}

/// Seats follow the votes, and ties the uid.
#[test]
fn seats_follow_votes() {
    let cases: [(i32, &[_], &[_]); 7] = [
        (4, &[("m1", 1), ("m2", 1)], &[("m1", 2), ("m2", 2)]),
        (7, &[("m1", 2), ("m2", 1)], &[("m1", 5), ("m2", 2)]),
        (
            10,
            &[("m1", 53), ("m2", 24), ("m3", 23)],
            &[("m1", 6), ("m2", 2), ("m3", 2)],
        ),
        // A tie of quotients that differ in seats goes to the party with fewer.
        (2, &[("m1", 3), ("m2", 1)], &[("m1", 1), ("m2", 1)]),
        (3, &[("m1", 0), ("m2", 1)], &[("m1", 0), ("m2", 3)]),
        (3, &[("m1", 0), ("m2", -1)], &[("m1", 0), ("m2", 0)]),
        (-3, &[("m1", 1)], &[("m1", 0)]),
    ];
    for (seats, votes, expected) in cases {
        for odd in [false, true] {
            assert_eq!(
                divided(seats, votes, &uid(odd)),
                expected,
                "{seats} {votes:?}"
            );
        }
    }
    let tied = [("m1", 1), ("m2", 1)];
    assert_eq!(divided(1, &tied, &uid(false)), [("m1", 1), ("m2", 0)]);
    assert_eq!(divided(1, &tied, &uid(true)), [("m1", 0), ("m2", 1)]);
}

/// The loop is bounded by the number of parties, not of seats.
#[test]
fn greatest_numbers_divide() {
    let votes = [("m1", i64::MAX), ("m2", i64::MAX), ("m3", 1)];
    let all: i64 = divided(i32::MAX, &votes, "")
        .iter()
        .map(|(_, seats)| i64::from(*seats))
        .sum();
    assert_eq!(all, i64::from(i32::MAX));
}

/// Divides as the definition does: one seat after the other.
fn one_by_one(
    seats: i32,
    votes: &BTreeMap<&'static str, i64>,
    uid: &str,
) -> BTreeMap<&'static str, i32> {
    let last_wins_ties = names::fnv1a_32(uid.as_bytes()) % 2 == 1;
    let mut claims: Vec<Claim<'_>> = votes
        .iter()
        .map(|(name, votes)| Claim {
            votes: *votes,
            seats: 0,
            name,
            last_wins_ties,
        })
        .collect();
    for _ in 0..seats {
        claims.iter_mut().max().unwrap().seats += 1;
    }
    votes
        .keys()
        .map(|name| {
            let claim = claims.iter().find(|claim| claim.name == *name).unwrap();
            (*name, i32::try_from(claim.seats).unwrap())
        })
        .collect()
}

const PARTIES: [&str; 6] = ["m1", "m2", "m3", "m4", "m5", "m6"];

fn votes() -> impl Strategy<Value = BTreeMap<&'static str, i64>> {
    prop::collection::btree_map(prop::sample::select(&PARTIES[..]), 1..12_i64, 1..=6)
}

proptest! {
    /// The division is that of one seat after the other.
    #[test]
    fn division_matches_definition(
        seats in 0..60, votes in votes(), uid in "[a-f]{0,3}",
    ) {
        prop_assert_eq!(webster(seats, &votes, &uid), one_by_one(seats, &votes, &uid));
    }

    /// Every seat is given, and one more takes none away.
    #[test]
    fn more_seats_take_none_away(
        seats in 0..10_000, votes in votes(), uid in "[a-f]{0,3}",
    ) {
        let fewer = webster(seats, &votes, &uid);
        let more = webster(seats + 1, &votes, &uid);
        prop_assert_eq!(fewer.values().sum::<i32>(), seats);
        prop_assert_eq!(more.values().sum::<i32>(), seats + 1);
        for (name, seats) in &fewer {
            prop_assert!(more[name] >= *seats);
        }
    }
}

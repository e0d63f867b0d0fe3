use super::*;
use crate::observation::Family;

/// The servers of a pod.
const SERVERS: [([u8; 4], u16); 2] = [([10, 96, 0, 10], 53), ([10, 96, 0, 11], 53)];

/// Reads the answers of servers to the queries for candidates: `A/AAAA` of each, candidates apart by spaces,
/// servers by `|`. `-` was not asked.
fn answers(text: &str) -> (Answers, usize, usize) {
    let mut answers = Answers::default();
    let servers: Vec<_> = text.split('|').collect();
    let mut candidates = 0;
    for (server, text) in servers.iter().enumerate() {
        for (candidate, both) in text.split_whitespace().enumerate() {
            candidates = candidates.max(candidate + 1);
            let (a, aaaa) = both.split_once('/').unwrap_or((both, both));
            for (family, word) in Family::ALL.into_iter().zip([a, aaaa]) {
                if let Some(answer) = answer(word) {
                    answers.record(candidate, server, family, answer);
                }
            }
        }
    }
    (answers, candidates, servers.len())
}

fn answer(word: &str) -> Option<Answer> {
    Some(match word {
        "-" => return None,
        "ok" => Answer::Right,
        "alien" => Answer::Stranger,
        "alias" => Answer::Alias,
        "nodata" => Answer::NoData,
        "lame" => Answer::Lame,
        "nx" => Answer::NxDomain,
        "fail" => Answer::ServFail,
        "refused" => Answer::Refused,
        "formerr" => Answer::Rejected,
        "cut" => Answer::Truncated { silent: true },
        "short" => Answer::Truncated { silent: false },
        "silent" => Answer::Silence,
        "closed" => Answer::Unreachable,
        other => panic!("{other}"),
    })
}

/// Returns the trouble of pods with glibc, musl and Go, in a word each.
fn seen(text: &str, options: &str) -> [&'static str; 3] {
    let (answers, candidates, servers) = answers(text);
    let servers: Vec<_> = SERVERS.map(Into::into).into_iter().take(servers).collect();
    let lookup = Lookup {
        candidates,
        as_it_is_first: options.contains("first"),
        servers: &servers,
        rotate: options.contains("rotate"),
        over_tcp: options.contains("tcp"),
        no_aaaa: options.contains("no-aaaa"),
    };
    let pods = pods(&lookup, &answers);
    Resolver::ALL.map(|resolver| match pods.get(resolver) {
        None => "ok",
        Some(impairment) => impairment.symptom.as_str(),
    })
}

/// As real resolvers do: `cargo xtask simulate resolvers` compares them with these rules.
#[test]
fn each_resolver_ends_in_its_own_way() {
    const WAITS: &str = "waits";
    const FAILS: &str = "fails";
    const TIMES: &str = "fails_at_times";
    const OK: &str = "ok";
    for (text, options, expected) in [
        ("nx ok/nodata -", "", [OK; 3]),
        // The other family of the right name.
        ("nx ok/silent -", "", [WAITS, FAILS, WAITS]),
        ("nx ok/nx -", "", [OK, FAILS, OK]),
        ("nx ok/fail -", "", [OK, FAILS, OK]),
        ("nx ok/refused -", "", [OK, FAILS, OK]),
        ("nx ok/- -", "", [OK; 3]),
        ("nx silent/ok -", "", [FAILS, FAILS, WAITS]),
        // A candidate before the right one.
        ("refused ok/nodata nx", "", [FAILS, FAILS, OK]),
        ("formerr ok/nodata nx", "", [FAILS, FAILS, OK]),
        ("fail ok/nodata nx", "", [OK, FAILS, OK]),
        ("nodata ok/nodata nx", "", [OK, FAILS, OK]),
        ("lame ok/nodata nx", "", [FAILS, FAILS, OK]),
        ("alias ok/nodata nx", "", [FAILS, FAILS, OK]),
        ("silent ok/nodata nx", "", [FAILS, FAILS, WAITS]),
        ("cut ok/nodata nx", "", [FAILS, FAILS, WAITS]),
        ("short ok/nodata nx", "", [FAILS, FAILS, OK]),
        ("cut fail fail | nx ok/nodata nx", "", [FAILS, OK, WAITS]),
        ("short fail fail | nx ok/nodata nx", "", [OK; 3]),
        ("nx/silent ok/nodata nx", "", [WAITS, WAITS, WAITS]),
        ("nx/refused ok/nodata nx", "", [OK, WAITS, OK]),
        ("alien ok/nodata nx", "", [FAILS; 3]),
        ("nx ok/alien -", "", [TIMES; 3]),
        // Not searched by musl.
        ("nx nx ok/nodata", "first", [OK, FAILS, OK]),
        ("refused nx ok/nodata", "first", [OK, FAILS, OK]),
        ("ok/nodata - -", "first", [OK; 3]),
        // After an error glibc tries the name itself.
        ("refused - ok/nodata", "", [OK, FAILS, OK]),
        // Two servers.
        ("nx ok/nodata - | - - -", "", [OK; 3]),
        ("closed closed closed | nx ok/nodata -", "", [OK; 3]),
        ("silent silent - | nx ok/nodata -", "", [WAITS, OK, WAITS]),
        ("fail fail fail | nx ok/nodata -", "", [OK; 3]),
        ("nx nx nx | nx ok/nodata nx", "", [FAILS, TIMES, FAILS]),
        (
            "nx nx nx | nx ok/nodata nx",
            "rotate",
            [TIMES, TIMES, TIMES],
        ),
        ("nx fail/nodata nx | nx ok/nodata nx", "", [FAILS, OK, OK]),
        // Over TCP an error is an answer.
        ("fail fail fail | nx ok/nodata -", "tcp", [FAILS, OK, OK]),
        ("nx ok/silent -", "tcp", [FAILS, FAILS, WAITS]),
        ("nx ok -", "no-aaaa", [OK; 3]),
        ("nx/refused ok/nodata nx", "no-aaaa", [OK; 3]),
    ] {
        assert_eq!(seen(text, options), expected, "{text} ({options})");
    }
}

#[test]
fn judges_differ() {
    let [glibc, musl, go] = Resolver::ALL;
    for (text, each, expected) in [
        ("nx ok/nodata", &[][..], None),
        ("refused ok/nodata nx", &[], None),
        (
            "refused ok/nodata nx",
            &[go, musl],
            Some("refused from 10.96.0.10 for pods with musl"),
        ),
        ("refused ok/nodata nx", &[go], None),
        ("nx ok/silent", &[glibc], None),
        (
            "nx ok/silent",
            &[musl],
            Some("timeout from 10.96.0.10 for pods with musl"),
        ),
        // Nobody gets a right address.
        ("alien ok", &[], Some("mismatch from 10.96.0.10")),
    ] {
        let (answers, candidates, servers) = answers(text);
        let servers: Vec<_> = SERVERS.map(Into::into).into_iter().take(servers).collect();
        let lookup = Lookup {
            candidates,
            as_it_is_first: false,
            servers: &servers,
            rotate: false,
            over_tcp: false,
            no_aaaa: false,
        };
        let judge = Judge {
            each: each.to_vec(),
        };
        let failure = judge.failure(&pods(&lookup, &answers));
        let failure = failure.map(|failure| failure.to_string());
        assert_eq!(failure.as_deref(), expected, "{text} {each:?}");
    }
}

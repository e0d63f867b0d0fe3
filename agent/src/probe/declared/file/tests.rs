use super::*;

fn defaults() -> Defaults {
    Defaults {
        thresholds: Thresholds {
            period: Duration::from_secs(5),
            failure: Duration::from_secs(30),
            success: Duration::from_secs(30),
            silence: Duration::from_secs(30),
            max_hold: Duration::from_mins(5),
        },
        timeout: Duration::from_secs(2),
        quorum: Quorum {
            min_answering: 50,
            failure: 80,
        },
    }
}

fn parsed(text: &str) -> Result<Vec<Declaration>, Vec<String>> {
    parse(text.as_bytes(), Some([10, 0, 0, 7].into()), &defaults())
}

/// Returns a file with one signal that has this line besides.
fn with(line: &str) -> String {
    format!(
        "signals:\n- name: ingress\n  condition: IngressReady\n  probe: {{tcp: {{address: \"a:1\"}}}}\n  {line}\n"
    )
}

/// Every kind, as the documentation shows it.
#[test]
fn documented_file_is_good() {
    let page = include_str!("../../../../../docs/signals.md");
    let (_, text) = page.split_once("```yaml\n").unwrap();
    let (text, _) = text.split_once("```").unwrap();
    let declared = parsed(text).unwrap();
    let names: Vec<_> = declared.iter().map(|one| &*one.name).collect();
    assert_eq!(
        names,
        [
            "registry",
            "ingress",
            "payments",
            "upstream-dns",
            "errors",
            "nodes"
        ]
    );
    assert_eq!(declared[0].thresholds.failure, Duration::from_mins(1));
}

/// A field that a declaration leaves out is as for DNS, and the timeout of a shorter period is shorter.
#[test]
fn defaults_are_those_of_dns() {
    let declared = parsed(&with("")).unwrap();
    assert_eq!(declared[0].thresholds, defaults().thresholds);
    assert_eq!(declared[0].quorum, defaults().quorum);
    assert_eq!(declared[0].timeout, Duration::from_secs(2));
    let declared = parsed(&with("period: 1s")).unwrap();
    assert_eq!(declared[0].timeout, Duration::from_millis(400));
    assert_eq!(declared[0].terms().patience, Duration::from_secs(32));
}

/// With a long period no single round decides, unless the file says so.
#[test]
fn long_period_has_longer_thresholds() {
    let declared = parsed(&with("period: 1m")).unwrap();
    let Thresholds {
        failure, success, ..
    } = declared[0].thresholds;
    assert_eq!([failure, success], [Duration::from_mins(2); 2]);
    let declared = parsed(&with("period: 1m\n  failureThreshold: 30s")).unwrap();
    assert_eq!(declared[0].thresholds.failure, Duration::from_secs(30));
}

#[test]
fn empty_files_declare_nothing() {
    for text in ["", "# nothing yet\n", "signals: []", "signals:"] {
        assert_eq!(parsed(text), Ok(Vec::new()), "{text:?}");
    }
}

/// Each mistake is one line that tells how to mend it.
#[test]
fn mistakes_have_one_line() {
    let probe =
        |probe: &str| format!("signals: [{{name: a, condition: AReady, probe: {{{probe}}}}}]");
    for (text, part) in [
        ("signals".to_owned(), "invalid type"),
        ("signals: [".to_owned(), "line "),
        ("signal: []".to_owned(), "unknown field `signal`"),
        (
            with("periode: 5s"),
            "signal 1, ingress: unknown field `periode`",
        ),
        (with("period: 5"), "invalid type"),
        (with("period: 0s"), "period: must be longer than 0s"),
        (with("period: 10ms"), "shorter than 1s"),
        (with("failureThreshold: 25h"), "longer than a day"),
        (with("timeout: 5s"), "not shorter than the period"),
        (with("failureQuorum: 50"), "between 51 and 100"),
        (with("minAnswering: 0"), "between 1 and 100"),
        (
            with("").replace("ingress", "service-network"),
            "the agent's own",
        ),
        (with("").replace("IngressReady", "Ready"), "Karmada"),
        (
            with("").replace("IngressReady", "HealthReporterReady"),
            "the agent's own",
        ),
        (
            with("").replace("IngressReady", "TrafficControl"),
            "the action of Remedies",
        ),
        (
            with("").replace("IngressReady", "a b"),
            "type of a condition",
        ),
        (probe("ftp: {url: x}"), "unknown variant `ftp`"),
        (probe("http: {}"), "missing field `url`"),
        (probe("http: {url: registry}"), "http://"),
        (probe("http: {url: 'http://r/', ca: /ca}"), "not of https"),
        (probe("http: {url: 'http://u:p@r/'}"), "credentials"),
        (probe("http: {url: 'http://r/', token: /t}"), "plaintext"),
        (
            probe("http: {url: 'https://r/', ca: ca.crt}"),
            "ca is no absolute path",
        ),
        (
            probe("http: {url: 'http://169.254.169.254/'}"),
            "metadata service",
        ),
        (probe("http: {url: 'http://r/', status: [99]}"), "status 99"),
        (probe("http: {url: 'http://r:99999/'}"), "port of the url"),
        (probe("http: {url: 'https://r:admin/'}"), "port of the url"),
        (probe("tcp: {address: r}"), "HOST:PORT"),
        (probe("tcp: {address: 'r:admin'}"), "HOST:PORT"),
        (probe("tcp: {address: 'r:0'}"), "port is 0"),
        (probe("tcp: {address: 'fd00::5:6'}"), "without brackets"),
        (probe("grpc: {address: 'A:1'}"), "lower case"),
        (probe("dns: {name: ''}"), "name is empty"),
        (probe("dns: {name: a..b}"), "no name in DNS"),
        (probe("dns: {name: a, servers: [x]}"), "servers"),
        (
            probe("prometheus: {url: 'http://p', query: up, holds: often}"),
            "holds",
        ),
        (probe("nodes: {readyShare: 70}"), "readyShare"),
    ] {
        let problems = parsed(&text).unwrap_err();
        let [problem] = problems.as_slice() else {
            panic!("{text}: {problems:?}");
        };
        assert!(problem.contains(part), "{text}: {problem}");
        assert_eq!(problem.lines().count(), 1, "{problem}");
    }
}

/// All of them are told at once, and names and conditions are there once.
#[test]
fn every_mistake_is_told() {
    let text = "signals:
- {name: a, condition: AReady, probe: {tcp: {address: 'a:1'}}}
- {name: a, condition: BReady, probe: {tcp: {address: 'a:1'}}}
- {name: b, condition: AReady, probe: {tcp: {address: 'a:1'}}}
- {name: c, condition: CReady, probe: {tcp: {address: a}}}
";
    let problems = parsed(text).unwrap_err();
    let begins: Vec<_> = problems.iter().map(|one| &one[..11]).collect();
    assert_eq!(begins, ["signal 2, a", "signal 3, b", "signal 4, c"]);
}

/// A credential that is put where a path or a URL belongs is in no message.
#[test]
fn credentials_are_not_quoted() {
    const SECRET: &str = "not-a-real-token-4711";
    for field in [
        "http: {url: 'https://user:SECRET@r/', ca: /ca}",
        "http: {url: 'https://r/', ca: /ca, token: SECRET}",
        "http: {url: 'https://r/', ca: /ca, token: [SECRET]}",
        "http: {url: 'https://r/', ca: /ca, status: SECRET}",
    ] {
        let probe = field.replace("SECRET", SECRET);
        let text = format!("signals: [{{name: a, condition: AReady, probe: {{{probe}}}}}]");
        let problems = parsed(&text).unwrap_err();
        assert!(!problems.concat().contains(SECRET), "{problems:?}");
    }
}

/// An address of the node stands where one belongs, whichever family it is of.
#[test]
fn node_has_its_address() {
    let text = "signals:
- {name: a, condition: AReady, probe: {tcp: {address: \"$(NODE_IP):443\"}}}
- {name: b, condition: BReady, probe: {dns: {name: a, servers: [\"$(NODE_IP)\", \"$(NODE_IP):54\"]}}}
";
    parsed(text).unwrap();
    let six = Some("fd00::7".parse().unwrap());
    parse(text.as_bytes(), six, &defaults()).unwrap();
    let problems = parse(text.as_bytes(), None, &defaults()).unwrap_err();
    assert!(problems[0].contains("--node-ip"), "{problems:?}");
}

/// A `ConfigMap` holds more than an agent should vote on.
#[test]
fn size_is_bounded() {
    let signals = (0..=MOST).map(|n| {
        format!("- {{name: s{n}, condition: S{n}, probe: {{tcp: {{address: 'a:1'}}}}}}\n")
    });
    let many = format!("signals:\n{}", signals.collect::<String>());
    assert_eq!(parsed(&many).unwrap_err(), ["33 signals are more than 32"]);
    let large = format!("# {}", "x".repeat(LARGEST));
    assert!(parsed(&large).unwrap_err()[0].contains("larger"));
}

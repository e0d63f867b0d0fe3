//! Which addresses, or which name, a host leads to.

use super::*;

/// Returns the records of the host of Service `s`, and their problems.
fn of(clusters: &[(&str, Value)]) -> (Vec<String>, Vec<String>) {
    let mut fixture = fixture(&[("s", clusters)]);
    for (name, ip) in [
        ("a.example.net", "192.0.2.11"),
        ("b.example.net", "2001:db8::12"),
    ] {
        fixture
            .hosts
            .insert(name.to_owned(), vec![ip.parse().unwrap()]);
    }
    let unknown = "unknown.example.net".to_owned();
    fixture.hosts.insert(unknown, Vec::new());
    let wanted = publisher().wanted(&wanted_of(&fixture, &["s"]), &[]);
    (records(&wanted.endpoints), texts(&wanted.problems))
}

/// DNS tells no port, so that no name leads to the nodes of a Service with node ports.
#[test]
fn nodes_are_no_targets() {
    let mut fixture = fixture(&[("s", &[("m1", ips(&[])), ("m2", ips(&["192.0.2.2"]))])]);
    let template = fixture.templates.get_mut("s").unwrap();
    let spec = template.spec.as_mut().unwrap();
    spec.type_ = Some("NodePort".to_owned());
    spec.ports.as_mut().unwrap()[0].node_port = Some(30_080);
    let nodes = json!({ "metadata": { "name": "nodes" }, "addressType": "IPv4",
        "endpoints": [{ "addresses": ["10.0.0.1"], "nodeName": "n1" }] });
    let nodes = Arc::new(serde_json::from_value(nodes).unwrap());
    fixture.nodes = [("m1".to_owned(), vec![nodes])].into();
    let wanted = publisher().wanted(&wanted_of(&fixture, &["s"]), &[]);
    assert_eq!(records(&wanted.endpoints), ["A example.com 192.0.2.2"]);
    let told = "host example.com does not lead to 10.0.0.1 of cluster m1: it is an address of a node, and DNS tells no port";
    assert_eq!(texts(&wanted.problems), [told]);
}

/// One address of the wrong kind would remove the whole record: each goes where it belongs, and names are looked up where
/// they stand beside anything else.
#[test]
fn targets_are_of_one_kind() {
    for (clusters, expected) in [
        (
            vec![
                ("m1", ips(&["192.0.2.1"])),
                ("m2", ips(&["192.0.2.2", "2001:db8::2"])),
            ],
            &[
                "A example.com 192.0.2.1,192.0.2.2",
                "AAAA example.com 2001:db8::2",
            ][..],
        ),
        (
            vec![("m1", names(&["A.Example.Net."]))],
            &["CNAME example.com a.example.net"],
        ),
        (
            vec![
                ("m1", names(&["a.example.net"])),
                ("m2", names(&["a.example.net"])),
            ],
            &["CNAME example.com a.example.net"],
        ),
        (
            vec![
                ("m1", names(&["a.example.net"])),
                ("m2", names(&["b.example.net"])),
            ],
            &["A example.com 192.0.2.11", "AAAA example.com 2001:db8::12"],
        ),
        (
            vec![
                ("m1", names(&["a.example.net"])),
                ("m2", ips(&["192.0.2.2"])),
            ],
            &["A example.com 192.0.2.11,192.0.2.2"],
        ),
        (
            vec![("m1", names(&["unknown.example.net"]))],
            &["CNAME example.com unknown.example.net"],
        ),
        (vec![("m1", ips(&[]))], &[]),
    ] {
        let (records, problems) = of(&clusters);
        assert_eq!(records, expected, "{clusters:?}");
        assert_eq!(problems, [""; 0], "{clusters:?}");
    }
}

/// A name that does not resolve is left out beside others, and said.
#[test]
fn unresolved_name_is_left_out() {
    let (records, problems) = of(&[
        ("m1", names(&["unknown.example.net"])),
        ("m2", ips(&["192.0.2.2", "127.0.0.1", "nonsense"])),
    ]);
    assert_eq!(records, ["A example.com 192.0.2.2"]);
    assert_eq!(
        problems,
        [
            "host example.com does not lead to unknown.example.net of cluster m1: it does not resolve to an address"
        ]
    );
}

/// A name of which DNS has told nothing, as after a start, keeps its published records.
#[test]
fn untold_name_keeps_addresses() {
    let clusters = [
        ("m1", names(&["a.example.net"])),
        ("m2", ips(&["192.0.2.2"])),
    ];
    let mut fixture = fixture(&[("s", &clusters)]);
    let addresses = vec!["192.0.2.11".parse().unwrap()];
    fixture.hosts.insert("a.example.net".to_owned(), addresses);
    let before = publisher().wanted(&wanted_of(&fixture, &["s"]), &[]);
    fixture.hosts.clear();
    let mut untold = wanted_of(&fixture, &["s"]);
    untold.keep_untold(&["m1".to_owned()].into());
    let after = publisher().wanted(&untold, &arcs(&before.endpoints));
    assert_eq!(
        records(&after.endpoints),
        ["A example.com 192.0.2.11,192.0.2.2"]
    );
    assert_eq!(texts(&after.problems), [""; 0]);
}

/// A blocked cluster leaves the record, and with it no other that has the same address.
#[test]
fn blocked_cluster_leaves() {
    let clusters = [
        ("m1", ips(&["192.0.2.1", "192.0.2.9"])),
        ("m2", ips(&["192.0.2.2", "192.0.2.9"])),
    ];
    let fixture = fixture(&[("s", &clusters)]).with_cluster(blocked("m1"));
    let wanted = publisher().wanted(&wanted_of(&fixture, &["s"]), &[]);
    assert_eq!(
        records(&wanted.endpoints),
        ["A example.com 192.0.2.2,192.0.2.9"]
    );
}

/// A record is never emptied: while all are blocked they stay, unless the user wants it otherwise, or a person blocked them.
/// Then the object goes, as an empty one would be an update to nothing.
#[test]
fn fail_open_decides_of_the_last() {
    let clusters = [("m1", ips(&["192.0.2.1"]))];
    let blocked = fixture(&[("s", &clusters)]).with_cluster(blocked("m1"));
    let mut decided = blocked.clone();
    decided.decided = ["m1".to_owned()].into();
    let ingress = ingress("i", &["s"], None);
    for (fixture, when_all_blocked, expected) in [
        (
            &blocked,
            WhenAllBlocked::FailOpen,
            &["A example.com 192.0.2.1"][..],
        ),
        (&blocked, WhenAllBlocked::FailClosed, &[]),
        (&decided, WhenAllBlocked::FailOpen, &[]),
    ] {
        let desired = desired_of(fixture, &ingress, when_all_blocked);
        let wanted = publisher().wanted(&desired, &[]);
        assert_eq!(records(&wanted.endpoints), expected);
    }
}

/// A cluster that may serve and reports no address for a while keeps its record, if there would be none otherwise.
#[test]
fn last_addresses_stay() {
    let before = fixture(&[(
        "s",
        &[("m1", ips(&["192.0.2.1"])), ("m2", ips(&["192.0.2.2"]))],
    )]);
    let held = arcs(
        &publisher()
            .wanted(&wanted_of(&before, &["s"]), &[])
            .endpoints,
    );
    let silent = |second| fixture(&[("s", &[("m1", ips(&[])), ("m2", second)])]);
    let ingress = ingress("i", &["s"], None);
    for (after, when_all_blocked, expected) in [
        (
            silent(ips(&["192.0.2.2"])),
            WhenAllBlocked::FailOpen,
            &["A example.com 192.0.2.2"][..],
        ),
        (
            silent(ips(&[])),
            WhenAllBlocked::FailOpen,
            &["A example.com 192.0.2.1,192.0.2.2"],
        ),
        (
            silent(ips(&[])).with_cluster(blocked("m1")),
            WhenAllBlocked::FailOpen,
            &["A example.com 192.0.2.2"],
        ),
        (silent(ips(&[])), WhenAllBlocked::FailClosed, &[]),
    ] {
        let desired = desired_of(&after, &ingress, when_all_blocked);
        let wanted = publisher().wanted(&desired, &held);
        assert_eq!(records(&wanted.endpoints), expected);
    }
}

/// A status that cannot be read keeps its addresses, but for a cluster that must get no request.
#[test]
fn unread_status_keeps_addresses() {
    let fixture = fixture(&[(
        "s",
        &[("m1", ips(&["192.0.2.1"])), ("m2", ips(&["192.0.2.2"]))],
    )]);
    let before = wanted_of(&fixture, &["s"]);
    let held = arcs(&publisher().wanted(&before, &[]).endpoints);
    let mut unread = before.clone();
    unread.unread_slices = ["status/s".to_owned()].into();
    for cluster in &mut unread.backends[0].clusters {
        cluster.slices.clear();
    }
    unread.when_all_blocked = WhenAllBlocked::FailClosed;
    let kept = publisher().wanted(&unread, &held);
    assert_eq!(
        records(&kept.endpoints),
        ["A example.com 192.0.2.1,192.0.2.2"]
    );
    unread.backends[0].clusters[0].admission = crate::ingress::Admission::Blocked;
    let kept = publisher().wanted(&unread, &held);
    assert_eq!(records(&kept.endpoints), ["A example.com 192.0.2.2"]);
}

/// DNS does not choose by path: a host leads to the clusters that serve all of its Services, or else, rather than nowhere, to
/// all, and says so.
#[test]
fn host_of_two_services_leads_to_both() {
    let shared = [("m1", ips(&["192.0.2.1"])), ("m2", ips(&["192.0.2.2"]))];
    for (second, expected, is_apart) in [
        (
            vec![("m1", ips(&["192.0.2.1"]))],
            "A example.com 192.0.2.1",
            false,
        ),
        (
            vec![("m1", ips(&["192.0.2.7"]))],
            "A example.com 192.0.2.1,192.0.2.2,192.0.2.7",
            true,
        ),
        (
            vec![("m1", ips(&[]))],
            "A example.com 192.0.2.1,192.0.2.2",
            false,
        ),
    ] {
        let fixture = fixture(&[("s", &shared), ("t", &second)]);
        let wanted = publisher().wanted(&wanted_of(&fixture, &["s", "t"]), &[]);
        assert_eq!(records(&wanted.endpoints), [expected]);
        let services = BTreeSet::from(["s".to_owned(), "t".to_owned()]);
        let host = HOST.to_owned();
        let apart = DnsProblem::Apart { host, services };
        assert_eq!(wanted.problems.contains(&apart), is_apart);
    }
}

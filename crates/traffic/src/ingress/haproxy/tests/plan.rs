use super::*;
use crate::ingress::ServedClusters;
use crate::ingress::fixtures::{blocked, deleting};

const S: &str = "ns_i_s_80";

fn without(fixture: Fixture, cluster: &str) -> Fixture {
    let clusters: Vec<&str> = ["m1", "m2"].into_iter().filter(|c| *c != cluster).collect();
    fixture.with_binding("s", binding("s", &clusters))
}

/// A server is added, checked and made ready in one line, and then nothing is written.
#[test]
fn servers_are_added() {
    let mut haproxy = Model::started(&[S]);
    let sent = haproxy.ensure(&desired(&fixture(), &["s"]));
    let expected = "add server ns_i_s_80/m1_10.0.0.1_8080 10.0.0.1:8080 check; \
        enable health ns_i_s_80/m1_10.0.0.1_8080; \
        set server ns_i_s_80/m1_10.0.0.1_8080 state ready; \
        add server ns_i_s_80/m2_10.0.0.2_8080 10.0.0.2:8080 check; \
        enable health ns_i_s_80/m2_10.0.0.2_8080; \
        set server ns_i_s_80/m2_10.0.0.2_8080 state ready";
    assert_eq!(sent, [expected]);
    assert_eq!(haproxy.served(S), set(&["10.0.0.1:8080", "10.0.0.2:8080"]));
}

/// A backend that the configuration lacks is named, and the others are served.
#[test]
fn missing_backend_is_named() {
    let mut haproxy = Model::started(&["ns_i_t_80"]);
    let desired = desired(&fixture(), &["s", "t"]);
    haproxy.ensure(&desired);
    assert_eq!(haproxy.plan(&desired).missing, set(&[S]));
    assert_eq!(haproxy.served("ns_i_t_80"), set(&["10.0.0.3:8080"]));
}

/// A blocked cluster is drained first, after the grace put into maintenance, and removed without connections.
#[test]
fn blocked_cluster_leaves_in_steps() {
    let mut haproxy = Model::converged(&desired(&fixture(), &["s"]));
    let without_m1 = desired(&fixture().with_cluster(blocked("m1")), &["s"]);
    haproxy.server("ns_i_s_80/m1_10.0.0.1_8080").connections = 1;
    let sent = haproxy.ensure(&without_m1);
    assert_eq!(sent, ["set server ns_i_s_80/m1_10.0.0.1_8080 state drain"]);
    assert_eq!(haproxy.served(S), set(&["10.0.0.2:8080"]));
    assert_eq!(haproxy.plan(&without_m1).next, Some(GRACE));
    haproxy.pass(Duration::from_secs(29));
    let plan = haproxy.plan(&without_m1);
    assert_eq!(
        (plan.lines.len(), plan.next),
        (0, Some(Duration::from_secs(1)))
    );
    haproxy.pass(Duration::from_secs(1));
    let sent = haproxy.ensure(&without_m1);
    assert_eq!(sent, ["set server ns_i_s_80/m1_10.0.0.1_8080 state maint"]);
    assert!(haproxy.plan(&without_m1).open.is_empty());
    haproxy.pass(GRACE);
    let plan = haproxy.plan(&without_m1);
    assert_eq!((plan.lines.len(), plan.open.len()), (0, 1));
    haproxy.server("ns_i_s_80/m1_10.0.0.1_8080").connections = 0;
    let sent = haproxy.ensure(&without_m1);
    assert_eq!(sent, ["del server ns_i_s_80/m1_10.0.0.1_8080"]);
    assert_eq!(haproxy.plan(&without_m1), HaproxyPlan::default());
}

/// A cluster that comes back within the grace is made ready again, and later added.
#[test]
fn released_cluster_comes_back() {
    let open = desired(&fixture(), &["s"]);
    let without_m1 = desired(&fixture().with_cluster(blocked("m1")), &["s"]);
    let mut haproxy = Model::converged(&open);
    haproxy.ensure(&without_m1);
    assert_eq!(
        haproxy.ensure(&open),
        ["set server ns_i_s_80/m1_10.0.0.1_8080 state ready"]
    );
    haproxy.ensure(&without_m1);
    haproxy.pass(GRACE);
    haproxy.ensure(&without_m1);
    assert_eq!(haproxy.state.backends[S].len(), 1);
    haproxy.ensure(&open);
    assert_eq!(haproxy.served(S), set(&["10.0.0.1:8080", "10.0.0.2:8080"]));
}

/// When every cluster is blocked, one that is readmitted is ready before the last goes out, in one line.
#[test]
fn readmitted_cluster_comes_first() {
    let both = desired(&fixture(), &["s"]);
    let mut haproxy = Model::converged(&both);
    haproxy.ensure(&desired(&fixture().with_cluster(blocked("m1")), &["s"]));
    // m1 is back in the moment in which m2 goes.
    let swapped = desired(&fixture().with_cluster(blocked("m2")), &["s"]);
    let plan = haproxy.plan(&swapped);
    let expected = "set server ns_i_s_80/m1_10.0.0.1_8080 state ready; set server ns_i_s_80/m2_10.0.0.2_8080 state drain";
    assert_eq!(haproxy.follow(&plan), [expected]);
    let neither = fixture()
        .with_cluster(blocked("m1"))
        .with_cluster(blocked("m2"));
    haproxy.ensure(&desired(&neither, &["s"]));
    assert_eq!(haproxy.served(S), set(&["10.0.0.1:8080", "10.0.0.2:8080"]));
}

/// A server that nobody blocked goes only after its successor is seen to serve.
#[test]
fn stale_server_waits_for_successor() {
    let mut haproxy = Model::converged(&desired(&fixture(), &["s"]));
    let mut moved = without(fixture(), "m1").with_slices(&[slice("s", "m2", "x", &["10.0.0.9"])]);
    moved.slices.retain(|s| {
        s.endpoints
            .iter()
            .flatten()
            .all(|e| e.addresses != ["10.0.0.2"])
    });
    let desired = desired(&moved, &["s"]);
    let first = haproxy.plan(&desired);
    assert!(haproxy.follow(&first)[0].starts_with("add server"));
    let drained = "set server ns_i_s_80/m1_10.0.0.1_8080 state drain; set server ns_i_s_80/m2_10.0.0.2_8080 state drain";
    assert_eq!(haproxy.ensure(&desired), [drained]);
}

/// A cluster that leaves or is unknown goes first, also for a Service that the routes no longer name.
#[test]
fn leaving_cluster_goes_first() {
    let haproxy = Model::converged(&desired(&fixture(), &["s", "t"]));
    let mut gone = fixture();
    gone.clusters.remove("m1");
    for fixture in [gone, fixture().with_cluster(deleting(cluster("m1")))] {
        let mut only_s = desired(&fixture, &["s"]);
        only_s.excluded = ["m1".to_owned()].into();
        let mut after = haproxy.clone();
        let plan = haproxy.plan(&only_s);
        let sent = after.follow(&plan);
        assert_eq!(
            sent,
            [
                "set server ns_i_s_80/m1_10.0.0.1_8080 state drain",
                "set server ns_i_t_80/m1_10.0.0.3_8080 state drain",
            ]
        );
    }
}

/// Changes by others are undone: state, weight and checks, and a server at another address goes and comes anew.
#[test]
fn changes_of_others_are_undone() {
    type Change = fn(&mut Server);
    let desired = desired(&fixture(), &["s"]);
    let converged = Model::converged(&desired);
    let m1 = "ns_i_s_80/m1_10.0.0.1_8080";
    let changes: [(Change, &str); 4] = [
        (
            |server| server.admin = 1,
            "set server ns_i_s_80/m1_10.0.0.1_8080 state ready",
        ),
        (
            |server| server.admin = 8,
            "set server ns_i_s_80/m1_10.0.0.1_8080 state ready",
        ),
        (
            |server| server.weight = 0,
            "set server ns_i_s_80/m1_10.0.0.1_8080 weight 100%",
        ),
        (
            |server| server.checks = 2,
            "enable health ns_i_s_80/m1_10.0.0.1_8080",
        ),
    ];
    for (change, command) in changes {
        let mut haproxy = converged.clone();
        change(haproxy.server(m1));
        assert_eq!(
            settings().changed(&converged.state, &haproxy.state),
            [key()].into()
        );
        assert_eq!(haproxy.ensure(&desired), [command]);
        assert_eq!(
            settings().changed(&converged.state, &haproxy.state),
            [].into()
        );
    }
    let mut haproxy = converged.clone();
    let server = haproxy.server(m1);
    server.address = Some("127.0.0.1:80".parse().unwrap());
    server.connections = 1;
    assert_eq!(
        haproxy.ensure(&desired),
        ["set server ns_i_s_80/m1_10.0.0.1_8080 state maint"]
    );
    // A connection in use would return to the server and be used again, whatever its address is by then.
    haproxy.server(m1).connections = 0;
    haproxy.ensure(&desired);
    assert_eq!(haproxy.served(S), converged.served(S));
}

/// Servers of others are neither counted nor touched.
#[test]
fn others_stay() {
    let desired = desired(&fixture(), &["s"]);
    let mut haproxy = Model::converged(&desired);
    let theirs = [
        ("ns_i_s_80", "web1"),
        ("ns_i_s_80", "example.com_theirs_m1_10.0.0.1_8080"),
        ("theirs", "x"),
    ];
    for (backend, name) in theirs {
        let servers = haproxy.state.backends.get_mut(backend).unwrap();
        servers.insert(name.to_owned(), Server::default());
    }
    assert_eq!(haproxy.plan(&desired), HaproxyPlan::default());
    for _ in 0..2 {
        let plan = settings().removal(&key(), &BTreeSet::new(), &haproxy.state);
        haproxy.follow(&plan);
    }
    assert!(settings().ingresses(&haproxy.state).is_empty());
    for (backend, name) in theirs {
        assert!(haproxy.state.backends[backend].contains_key(name), "{name}");
    }
}

/// A removal ends unused servers at once, and gives the rest the grace; excluded clusters go first.
#[test]
fn removal_spares_connections() {
    let mut haproxy = Model::converged(&desired(&fixture(), &["s"]));
    haproxy.server("ns_i_s_80/m2_10.0.0.2_8080").connections = 1;
    let excluded = ["m2".to_owned()].into();
    let plan = settings().removal(&key(), &excluded, &haproxy.state);
    let expected = "set server ns_i_s_80/m2_10.0.0.2_8080 state drain; set server ns_i_s_80/m1_10.0.0.1_8080 state maint";
    assert_eq!(
        (haproxy.follow(&plan), plan.next),
        (vec![expected.to_owned()], Some(GRACE))
    );
    let plan = settings().removal(&key(), &excluded, &haproxy.state);
    assert_eq!(
        haproxy.follow(&plan),
        ["del server ns_i_s_80/m1_10.0.0.1_8080"]
    );
    haproxy.pass(GRACE);
    let plan = settings().removal(&key(), &excluded, &haproxy.state);
    assert_eq!(
        haproxy.follow(&plan),
        ["set server ns_i_s_80/m2_10.0.0.2_8080 state maint"]
    );
}

/// With the flag, connections that are open after the grace are ended.
#[test]
fn connections_end_by_flag() {
    let mut haproxy = Model::converged(&desired(&fixture(), &["s"]));
    let without_m1 = desired(&fixture().with_cluster(blocked("m1")), &["s"]);
    haproxy.ensure(&without_m1);
    haproxy.server("ns_i_s_80/m1_10.0.0.1_8080").connections = 3;
    haproxy.pass(GRACE);
    let ending = ServerSettings {
        ends_connections: true,
        ..settings()
    };
    let plan = ending.plan(&without_m1, &Wanted::new(&without_m1), &haproxy.state);
    let expected = "set server ns_i_s_80/m1_10.0.0.1_8080 state maint; shutdown sessions server ns_i_s_80/m1_10.0.0.1_8080";
    assert_eq!(haproxy.follow(&plan), [expected]);
}

/// Only servers that get requests are held, and a cut drains only these.
#[test]
fn cut_drains_what_is_held() {
    let mut haproxy = Model::converged(&desired(&fixture(), &["s"]));
    let held = settings().held(&key(), &haproxy.state);
    assert_eq!(held, [(S.to_owned(), set(&["m1", "m2"]))].into());
    let cut: ServedClusters = [(S.to_owned(), set(&["m1"]))].into();
    let plan = settings().cutting(&key(), &cut, &haproxy.state);
    assert_eq!(
        haproxy.follow(&plan),
        ["set server ns_i_s_80/m1_10.0.0.1_8080 state drain"]
    );
    let held = settings().held(&key(), &haproxy.state);
    assert_eq!(held, [(S.to_owned(), set(&["m2"]))].into());
    let plan = settings().cutting(&key(), &cut, &haproxy.state);
    assert_eq!(plan, HaproxyPlan::default());
}

/// Servers stay while their sources cannot be read, but for a blocked cluster.
#[test]
fn unread_sources_keep_servers() {
    let mut haproxy = Model::converged(&desired(&fixture(), &["s"]));
    let mut unread = fixture();
    unread.unread_templates = ["s".to_owned()].into();
    unread.templates.remove("s");
    assert_eq!(
        haproxy.plan(&desired(&unread, &["s"])),
        HaproxyPlan::default()
    );
    let mut unread = fixture().with_cluster(blocked("m1"));
    unread.slices.clear();
    unread.unread_slices = ["m1-s-x", "m2-s-x"].map(str::to_owned).into();
    let sent = haproxy.ensure(&desired(&unread, &["s"]));
    assert_eq!(sent, ["set server ns_i_s_80/m1_10.0.0.1_8080 state drain"]);
}

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use embedded_apiserver::{ApiServer, Fault, Verb};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::PostParams;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client};
use serde_json::{from_value, json};
use tokio::time::{Instant, sleep, timeout};

use crate::args::LeaderElectionArgs;
use crate::lease::{Leadership, leadership};
use crate::program::{Identity, Program};
use crate::watch::Decoded;
use crate::watch_health::UNABLE_AFTER;

const LONG: Duration = Duration::from_hours(1);
/// Ample for a retry, a list and the request of a free lease.
const SOON: Duration = Duration::from_secs(15);

/// An API with the namespace of the leases.
async fn server() -> ApiServer {
    let server = ApiServer::new();
    let namespaces: Api<Namespace> = Api::all(Client::new(server.service(), "default"));
    let namespace = Identity::for_tests().lease_namespace;
    let namespace = from_value(json!({ "metadata": { "name": namespace } })).unwrap();
    let parameters = PostParams::default();
    namespaces.create(&parameters, &namespace).await.unwrap();
    server
}

async fn lease(server: &ApiServer) -> Option<Lease> {
    let client = Client::new(server.service(), "default");
    let Identity {
        name,
        lease_namespace,
        ..
    } = Identity::for_tests();
    let leases = Api::namespaced(client, lease_namespace);
    leases.get_opt(name).await.unwrap()
}

/// A replica of a program that watches `configmaps`.
struct Replica {
    program: Program,
    leadership: Leadership,
}

impl Replica {
    /// Starts the replica whose requests have this user agent.
    fn start(server: &ApiServer, user_agent: &str) -> Self {
        let config = kube::Config::new(http::Uri::from_static("http://api"));
        let client = crate::client::with_service(server.service(), config, user_agent).unwrap();
        let mut program = Program::new(
            Identity::for_tests(),
            SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        );
        let args = LeaderElectionArgs {
            leader_elect: true,
            leader_elect_resource_namespace: None,
        };
        let leadership = leadership(&mut program, client.clone(), &args);
        let (maps, all) = (Api::all(client), watcher::Config::default());
        program.watch("configmaps", maps, all, |_: Event<Decoded<ConfigMap>>| {});
        Self {
            program,
            leadership,
        }
    }

    fn leads(&self) -> bool {
        self.leadership.held_until().is_some()
    }

    fn metrics(&self) -> String {
        self.program.registry.encode().unwrap()
    }

    fn transitions(&self) -> u32 {
        let prefix = "acme_test_program_lease_transitions_total ";
        let metrics = self.metrics();
        let line = metrics.lines().find_map(|line| line.strip_prefix(prefix));
        line.unwrap().parse().unwrap()
    }
}

/// Where Karmada is installed in another namespace, the lease is there, too.
#[tokio::test(start_paused = true)]
async fn lease_is_where_asked() {
    let server = server().await;
    let client = Client::new(server.service(), "default");
    let mut program = Program::new(
        Identity::for_tests(),
        SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
    );
    let args = LeaderElectionArgs {
        leader_elect: true,
        leader_elect_resource_namespace: Some("default".to_owned()),
    };
    let leadership = leadership(&mut program, client.clone(), &args);
    sleep(SOON).await;
    assert!(leadership.held_until().is_some());
    assert_eq!(lease(&server).await, None);
    let leases: Api<Lease> = Api::namespaced(client, "default");
    let name = Identity::for_tests().name;
    assert!(leases.get_opt(name).await.unwrap().is_some());
}

/// A replica that cannot list does not seek the lease.
#[tokio::test(start_paused = true)]
async fn unlisted_replica_does_not_campaign() {
    let server = server().await;
    let refused = Fault::Unavailable.kind("configmaps").client("blind");
    let refused = server.faults().inject(refused);
    let blind = Replica::start(&server, "blind");
    sleep(LONG).await;
    assert!(!blind.leads());
    assert_eq!(lease(&server).await, None, "the lease is left alone");
    let able = Replica::start(&server, "able");
    sleep(SOON).await;
    assert!(able.leads() && !blind.leads());
    server.faults().remove(refused);
    drop(able);
    sleep(SOON + 2 * crate::lease::DURATION).await;
    assert!(blind.leads(), "it campaigns once it has listed");
}

/// A replica leads while another API has not answered since its start.
#[tokio::test(start_paused = true)]
async fn other_api_does_not_matter() {
    let (server, elsewhere) = (server().await, ApiServer::new());
    let silence = Fault::Silence.kind("configmaps");
    elsewhere.faults().inject(silence);
    let mut replica = Replica::start(&server, "replica");
    let api = Api::all(Client::new(elsewhere.service(), "default"));
    let (program, all) = (&mut replica.program, watcher::Config::default());
    program.watch_elsewhere("elsewhere", api, all, |_: Event<Decoded<ConfigMap>>| {});
    sleep(LONG).await;
    assert!(replica.leads());
    let program = &replica.program;
    assert_eq!(program.readiness.closed(), [""; 0], "shown by /readyz");
    assert_eq!(program.elsewhere.closed(), ["elsewhere"]);
}

/// A leader that cannot read for a while hands over and stands by until it can.
#[tokio::test(start_paused = true)]
async fn blind_leader_hands_over() {
    // Of these only the first ends open watches at once.
    for fault in [Fault::Disconnect, Fault::Unavailable, Fault::Silence] {
        let server = server().await;
        let first = Replica::start(&server, "first");
        first.leadership.acquired().await;
        let second = Replica::start(&server, "second");
        sleep(LONG).await;
        let started = Instant::now();
        let injected = fault.clone().kind("configmaps").client("first");
        let injected = server.faults().inject(injected);
        let acquired = timeout(LONG, second.leadership.acquired()).await;
        assert!(acquired.is_ok() && !first.leads(), "{fault:?}");
        let handed_over = started.elapsed();
        assert!(handed_over >= UNABLE_AFTER, "{fault:?}: {handed_over:?}");
        assert!(handed_over < Duration::from_mins(10), "{handed_over:?}");
        if fault == Fault::Disconnect {
            assert!(handed_over < UNABLE_AFTER + SOON, "{handed_over:?}");
        }
        let failing = "acme_test_program_failing_watches{watch=\"configmaps\"} 1";
        assert!(first.metrics().contains(failing), "{}", first.metrics());
        sleep(LONG).await;
        assert!(second.leads() && second.transitions() == 1, "{fault:?}");
        server.faults().remove(injected);
        sleep(Duration::from_mins(1)).await;
        drop(second);
        first.leadership.acquired().await;
    }
}

/// A short trouble in reading changes nothing.
#[tokio::test(start_paused = true)]
async fn short_trouble_changes_nothing() {
    let server = server().await;
    let leader = Replica::start(&server, "leader");
    leader.leadership.acquired().await;
    let _standby = Replica::start(&server, "standby");
    for _ in 0..20 {
        let short = UNABLE_AFTER / 2;
        let trouble = Fault::Disconnect.kind("configmaps").client("leader");
        server.faults().inject(trouble.lasting(short));
        sleep(2 * short).await;
    }
    assert!(leader.leads() && leader.transitions() == 1);
}

/// An outage of the whole API ends in one leader and no flapping.
#[tokio::test(start_paused = true)]
async fn outage_ends_with_one_leader() {
    for outage in [20, 90, 3600].map(Duration::from_secs) {
        let server = server().await;
        let replicas = ["a", "b"].map(|name| Replica::start(&server, name));
        sleep(LONG).await;
        let before: u32 = replicas.iter().map(Replica::transitions).sum();
        server.faults().inject(Fault::Disconnect.lasting(outage));
        sleep(outage + SOON).await;
        let leaders = replicas.iter().filter(|replica| replica.leads()).count();
        assert_eq!(leaders, 1, "after {outage:?}");
        sleep(LONG).await;
        let after: u32 = replicas.iter().map(Replica::transitions).sum();
        // The old leader lost the lease, and a new one has it.
        assert_eq!(after - before, 2, "after {outage:?}");
    }
}

/// While no replica can read none leads and the lease rests.
#[tokio::test(start_paused = true)]
async fn blind_replicas_leave_lease_free() {
    let server = server().await;
    let replicas = ["a", "b"].map(|name| Replica::start(&server, name));
    sleep(LONG).await;
    let away = server.faults().inject(Fault::Disconnect.kind("configmaps"));
    sleep(2 * UNABLE_AFTER + SOON).await;
    let rests = lease(&server).await.unwrap();
    sleep(LONG).await;
    assert_eq!(replicas.iter().filter(|replica| replica.leads()).count(), 0);
    assert_eq!(lease(&server).await, Some(rests));
    server.faults().remove(away);
    sleep(SOON).await;
    assert_eq!(replicas.iter().filter(|replica| replica.leads()).count(), 1);
}

/// A replica that may list and not watch does not come and go.
#[tokio::test(start_paused = true)]
async fn refused_watch_does_not_flap() {
    let server = server().await;
    let refused = Fault::Unavailable.kind("configmaps").verbs([Verb::Watch]);
    server.faults().inject(refused);
    let replica = Replica::start(&server, "a");
    sleep(LONG).await;
    assert!(!replica.leads());
    // Until it counted as unable.
    assert_eq!(replica.transitions(), 2);
}

use std::time::Duration;

use embedded_apiserver::{ApiServer, Fault};
use futures::future::try_join_all;
use http_body_util::BodyExt;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use lab_parts::connect_proxy::{Answer, ConnectProxy};
use lab_parts::served::ServedApi;
use lab_parts::tls::Authority;
use tokio::net::TcpListener;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep};

use super::*;
use crate::client::{Addresses, Proxy, reach};
use crate::error::Chain;

const HOST: &str = "127.0.0.1";
const HTTP2: &[&str] = &["h2", "http/1.1"];

/// An API over TLS and its client, which metrics know by a name of its own.
struct Stage {
    api: ServedApi,
    authority: Authority,
    client: Client,
    name: &'static str,
}

impl Stage {
    fn new(name: &'static str, protocols: &[&str], streams: u32) -> Self {
        let authority = Authority::generate();
        let tls = authority.acceptor(&[HOST], protocols);
        let api = ServedApi::start_tls(ApiServer::new(), tls, streams);
        let client = client(api.address().port(), &authority, name);
        Self {
            api,
            authority,
            client,
            name,
        }
    }

    /// Opens so many watches at once, and returns them once each has begun.
    async fn watch(&self, number: usize) -> Vec<Response<Body>> {
        let watches = (0..number).map(|_| {
            let request = Request::get("/api/v1/configmaps?watch=true&resourceVersion=0");
            self.client.send(request.body(Body::empty()).unwrap())
        });
        try_join_all(watches).await.unwrap()
    }

    /// Creates a lease and another object.
    async fn write(&self, name: &str) {
        let metadata = ObjectMeta {
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        };
        let leases: Api<Lease> = Api::default_namespaced(self.client.clone());
        let lease = Lease {
            metadata: metadata.clone(),
            ..Lease::default()
        };
        leases.create(&PostParams::default(), &lease).await.unwrap();
        let maps: Api<ConfigMap> = Api::default_namespaced(self.client.clone());
        let map = ConfigMap {
            metadata,
            ..ConfigMap::default()
        };
        maps.create(&PostParams::default(), &map).await.unwrap();
    }

    /// Returns the open streams and the connections of a purpose.
    fn open(&self, purpose: Purpose) -> (i64, i64) {
        CONNECTIONS.open(self.name, purpose)
    }
}

fn client(port: u16, authority: &Authority, name: &'static str) -> Client {
    client_by(port, authority, name, None)
}

fn client_by(
    port: u16,
    authority: &Authority,
    name: &'static str,
    proxy: Option<&Proxy>,
) -> Client {
    let mut config = Config::new(format!("https://{HOST}:{port}").parse().unwrap());
    config.root_cert = Some(vec![authority.der()]);
    reach(config, (Addresses::by_system(), proxy), None, "test", name).unwrap()
}

/// A program watches more kinds than a connection has streams, holds its lease, and writes. Whether a server allows few
/// streams or many, none waits for another, and there are no more connections than that takes. Case P83.
#[tokio::test]
async fn watches_delay_no_lease() {
    for (name, allowed, watches, connections) in [
        ("of one", 1, 3, 3),
        ("of ten", 10, 30, 5),
        ("of a hundred", 100, 150, 2),
        ("of a thousand", 1000, 150, 2),
    ] {
        let stage = Stage::new(name, HTTP2, allowed);
        let watching = stage.watch(watches).await;
        assert_eq!(
            stage.open(Purpose::Watches),
            (i64::try_from(watches).unwrap(), connections)
        );
        stage.write("a").await;
        assert_eq!(stage.open(Purpose::Lease), (0, 1));
        assert_eq!(stage.open(Purpose::Requests), (0, 1));
        for watch in watching {
            let event = watch.into_body().frame().await.unwrap().unwrap();
            let event = event.into_data().unwrap();
            assert!(String::from_utf8_lossy(&event).contains("ADDED"));
        }
        assert_eq!(stage.open(Purpose::Watches), (0, connections));
        // The streams of those that ended are free.
        stage.watch(watches).await;
        assert_eq!(stage.open(Purpose::Watches), (0, connections));
    }
}

/// A server is restarted: every watch ends, and the next requests find new connections. Those from before are gone.
#[tokio::test]
async fn dead_connections_are_replaced() {
    let mut stage = Stage::new("restarted", HTTP2, 100);
    let watching = stage.watch(150).await;
    stage.write("a").await;
    stage.api.stop().await;
    for watch in watching {
        watch.into_body().collect().await.unwrap_err();
    }
    for purpose in Purpose::ALL {
        while stage.open(purpose) != (0, 0) {
            yield_now().await;
        }
    }
    stage.api.restart();
    let _watching = stage.watch(10).await;
    stage.write("b").await;
    for (purpose, open) in Purpose::ALL.into_iter().zip([(0, 1), (0, 1), (10, 1)]) {
        assert_eq!(stage.open(purpose), open);
    }
}

/// A server, or a proxy before it, speaks HTTP/1.1 only, and is replaced by one that speaks HTTP/2 as well.
#[tokio::test]
async fn older_servers_are_served() {
    let mut stage = Stage::new("older", &["http/1.1"], 1);
    let watching = stage.watch(30).await;
    stage.write("a").await;
    assert_eq!(stage.open(Purpose::Watches), (30, 0));
    stage.api.stop().await;
    drop(watching);
    stage.client.apiserver_version().await.unwrap_err();
    let newer = stage.authority.acceptor(&[HOST], HTTP2);
    stage.api.restart_tls(newer, 100);
    stage.write("b").await;
    let _watching = stage.watch(30).await;
    assert_eq!(stage.open(Purpose::Watches), (30, 1));
}

/// Connections that nobody uses any more are closed: of many watches those that a few need stay.
#[tokio::test(start_paused = true)]
async fn idle_connections_are_closed() {
    let stage = Stage::new("idle", HTTP2, 10);
    let mut watching = stage.watch(30).await;
    stage.write("a").await;
    watching.truncate(3);
    sleep(Duration::from_mins(4)).await;
    for (purpose, open) in Purpose::ALL.into_iter().zip([(0, 0), (0, 0), (3, 1)]) {
        assert_eq!(stage.open(purpose), open);
    }
    stage.write("b").await;
}

/// A renewal has no answer in its time: the next one goes over another connection, since that one may be silent. Who gives up
/// a request of another kind says nothing of its connection.
#[tokio::test]
async fn unanswered_lease_changes_connections() {
    let stage = Stage::new("unanswered", HTTP2, 100);
    let way = ConnectProxy::start(Answer::Leads(stage.api.address()))
        .await
        .unwrap();
    let proxy = Proxy::parse(&format!("http://{}", way.address()), "the proxy").unwrap();
    let port = stage.api.address().port();
    let client = client_by(port, &stage.authority, stage.name, Some(&proxy));
    let leases: Api<Lease> = Api::default_namespaced(client.clone());
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    for (purpose, connections) in [(Purpose::Lease, 2), (Purpose::Requests, 1)] {
        let read = async || match purpose {
            Purpose::Lease => drop(leases.get_opt("a").await.unwrap()),
            _ => drop(maps.get_opt("a").await.unwrap()),
        };
        let before = way.asked().len();
        read().await;
        let silence = stage.api.server.faults().inject(Fault::Silence);
        let is_sent = async {
            while stage.open(purpose).0 == 0 {
                yield_now().await;
            }
        };
        tokio::select! {
            biased;
            () = read() => panic!("answered"),
            () = is_sent => {}
        }
        stage.api.server.faults().remove(silence);
        read().await;
        assert_eq!(way.asked().len() - before, connections, "{purpose:?}");
    }
}

/// A server takes connections and then says nothing. All who wait for one hear so within the time of one attempt.
#[tokio::test(start_paused = true)]
async fn silent_server_delays_all_once() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let client = client(port, &Authority::generate(), "silent");
    let begun = Instant::now();
    let versions = (0..100).map(|_| client.apiserver_version());
    for failed in futures::future::join_all(versions).await {
        let error = Chain(&failed.unwrap_err()).to_string();
        assert!(error.contains("cannot connect in time"), "{error}");
    }
    assert!(begun.elapsed() < Duration::from_secs(25));
    assert_eq!(CONNECTIONS.open("silent", Purpose::Requests), (0, 0));
}

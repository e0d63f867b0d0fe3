use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use health::observation::{Failure, Observation};
use health::service_network::ServiceNetworkClass;
use karmada_runtime::metrics::Registry;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::address::{Address, AddressSource};
use super::*;
use crate::peers::OBSERVATION_PATH;

/// Long enough for a connection on a busy machine.
const AMPLE: Duration = Duration::from_secs(5);
/// The deadline of a round that is to miss it.
const SHORT: Duration = Duration::from_millis(200);

fn prober(address: Address, timeout: Duration) -> Prober {
    Prober {
        address: watch::channel(address).1,
        cluster: "member1".to_owned(),
        timeout,
        metrics: metrics(&mut Registry::default()),
    }
}

async fn observe(server: SocketAddr, timeout: Duration) -> Observation {
    prober(Address::Known(server), timeout).round().await
}

fn failed(class: ServiceNetworkClass, server: SocketAddr) -> Observation {
    Observation::Failed(Failure::new(class, server))
}

async fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// Starts a server that does this with the connection of each number.
async fn server<F>(serve: impl Fn(usize, TcpStream) -> F + Send + 'static) -> SocketAddr
where
    F: Future<Output = ()> + Send + 'static,
{
    let (listener, address) = listener().await;
    tokio::spawn(async move {
        for number in 0.. {
            let (connection, _) = listener.accept().await.unwrap();
            tokio::spawn(serve(number, connection));
        }
    });
    address
}

/// Starts a server that always responds with `text`, as an agent does.
async fn agent(text: &str) -> SocketAddr {
    let text = text.to_owned();
    let respond = get(move || std::future::ready(text.clone()));
    let router = Router::new().route(OBSERVATION_PATH, respond);
    let (listener, address) = listener().await;
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

const DOCUMENT: &str = r#"{"cluster":"member1","node":"n2","agent":"00000000-0000-0000-0000-000000000002","vote":"no_vote"}"#;

/// Closes a connection whose request it has not read, so that the client's kernel gets a reset.
async fn reset(connection: TcpStream) {
    connection.readable().await.unwrap();
}

/// Reads the request and closes the connection in peace.
async fn close(mut connection: TcpStream) {
    let mut request = [0; 1024];
    assert!(connection.read(&mut request).await.unwrap() > 0);
}

/// Keeps the connection open and says nothing.
async fn hang(connection: TcpStream) {
    std::future::pending::<()>().await;
    drop(connection);
}

#[tokio::test]
async fn agent_of_cluster_answers() {
    let address = agent(DOCUMENT).await;
    assert_eq!(observe(address, AMPLE).await, Observation::Success);
}

/// Whoever else accepts the connection is no success: a relay, a mesh, another cluster's agent.
#[tokio::test]
async fn other_answers_are_resets() {
    for address in [
        agent("hello").await,
        agent(&DOCUMENT.replace("member1", "member2")).await,
        agent("{}").await,
        server(|_, connection| close(connection)).await,
        server(|_, connection| reset(connection)).await,
    ] {
        let expected = failed(ServiceNetworkClass::Reset, address);
        assert_eq!(observe(address, AMPLE).await, expected);
    }
}

#[tokio::test]
async fn nobody_listening_is_refused() {
    let (listener, address) = listener().await;
    drop(listener);
    let expected = failed(ServiceNetworkClass::Refused, address);
    assert_eq!(observe(address, SHORT).await, expected);
}

#[tokio::test]
async fn silence_is_timeout() {
    let address = server(|_, connection| hang(connection)).await;
    let expected = failed(ServiceNetworkClass::Timeout, address);
    assert_eq!(observe(address, SHORT).await, expected);
}

/// A cluster IP that the API does not know yet is no fault of the network.
#[tokio::test]
async fn unknown_address_observes_nothing() {
    let unknown = prober(Address::Unknown, SHORT).round().await;
    assert_eq!(unknown, Observation::Internal);
    let none = prober(Address::None, SHORT).round().await;
    let failure = Failure::without_server(ServiceNetworkClass::NoAddress);
    assert_eq!(none, Observation::Failed(failure));
}

/// Relays every second connection to `endpoint`, and is silent on the others.
async fn half_of(endpoint: SocketAddr, number: usize, mut connection: TcpStream) {
    if number.is_multiple_of(2) {
        hang(connection).await;
        return;
    }
    let mut endpoint = TcpStream::connect(endpoint).await.unwrap();
    // Fails when either side is done.
    drop(tokio::io::copy_bidirectional(&mut connection, &mut endpoint).await);
}

/// One endpoint of several is dead, and the others answer.
#[tokio::test]
async fn dead_endpoint_fails_no_round() {
    let alive = agent(DOCUMENT).await;
    let address = server(move |number, connection| half_of(alive, number, connection)).await;
    assert_eq!(observe(address, AMPLE).await, Observation::Success);
}

#[tokio::test]
async fn worst_connection_names_round() {
    let address = server(async |number, connection| match number {
        0 => close(connection).await,
        1 => hang(connection).await,
        _ => reset(connection).await,
    })
    .await;
    let expected = failed(ServiceNetworkClass::Timeout, address);
    assert_eq!(observe(address, SHORT).await, expected);
}

/// A kept connection would go on through conntrack without the rule that made it.
#[tokio::test]
async fn each_round_connects_anew() {
    let connections = Arc::<AtomicUsize>::default();
    let count = Arc::clone(&connections);
    let (listener, address) = listener().await;
    let listener = axum::serve::ListenerExt::tap_io(listener, move |_| {
        count.fetch_add(1, Ordering::Relaxed);
    });
    let router = Router::new().route(OBSERVATION_PATH, get(async || DOCUMENT));
    tokio::spawn(async move { axum::serve(listener, router).await });
    let prober = prober(Address::Known(address), AMPLE);
    for _ in 0..3 {
        assert_eq!(prober.round().await, Observation::Success);
    }
    assert_eq!(connections.load(Ordering::Relaxed), 3);
}

mod addresses {
    use embedded_apiserver::{ApiServer, Fault};
    use k8s_openapi::api::core::v1;
    use kube::Api;
    use kube::api::{DeleteParams, PostParams};
    use serde_json::{Value, json};
    use tokio::time::sleep;

    use super::super::address;
    use super::*;
    use crate::peers::Service;

    const NAME: &str = "agents";

    fn service(spec: &Value) -> v1::Service {
        let service = json!({ "metadata": { "name": NAME }, "spec": spec });
        serde_json::from_value(service).unwrap()
    }

    /// Time passes at once, so the agent reads the Service as soon as it wants to.
    #[tokio::test(start_paused = true)]
    async fn address_survives_the_api() {
        let server = ApiServer::new();
        let client = Client::new(server.service(), "default");
        let mut program = Program::new(crate::IDENTITY, ([127, 0, 0, 1], 0).into());
        let source = AddressSource::Service(Service {
            namespace: None,
            name: NAME.to_owned(),
        });
        let away = server.faults().inject(Fault::Unavailable);
        let address = address::start(&mut program, &source, Some(client.clone())).unwrap();
        sleep(Duration::from_mins(2)).await;
        assert_eq!(*address.borrow(), Address::Unknown);

        server.faults().remove(away);
        sleep(Duration::from_mins(2)).await;
        assert_eq!(*address.borrow(), Address::None);
        let services: Api<v1::Service> = Api::default_namespaced(client);
        let ports = json!([
            { "name": "dns", "port": 53, "protocol": "UDP" },
            { "name": "admin", "port": 80 },
        ]);
        let spec = json!({ "clusterIP": "10.96.0.20", "ports": ports });
        let parameters = PostParams::default();
        services.create(&parameters, &service(&spec)).await.unwrap();
        sleep(Duration::from_mins(2)).await;
        let known = Address::Known("10.96.0.20:80".parse().unwrap());
        assert_eq!(*address.borrow(), known);

        let away = server.faults().inject(Fault::Unavailable);
        sleep(Duration::from_hours(1)).await;
        assert_eq!(*address.borrow(), known);
        server.faults().remove(away);
        services
            .delete(NAME, &DeleteParams::default())
            .await
            .unwrap();
        sleep(Duration::from_mins(15)).await;
        assert_eq!(*address.borrow(), Address::None);
    }

    #[test]
    fn only_cluster_ips_are_addresses() {
        let port = json!([{ "port": 80 }]);
        for (spec, expected) in [
            (
                json!({ "clusterIP": "10.96.0.20", "ports": port }),
                Some("10.96.0.20:80"),
            ),
            (
                json!({ "clusterIP": "fd00::20", "ports": port }),
                Some("[fd00::20]:80"),
            ),
            (json!({ "clusterIP": "None", "ports": port }), None),
            (json!({ "clusterIP": "", "ports": port }), None),
            (json!({ "clusterIP": "10.96.0.20" }), None),
            (json!({ "ports": port }), None),
        ] {
            let address = address::cluster_address(&service(&spec));
            assert_eq!(
                address.map(|address| address.to_string()).as_deref(),
                expected,
                "{spec}"
            );
        }
    }
}

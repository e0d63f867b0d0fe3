//! Connections to real sockets on this host.

use std::net::SocketAddr;
use std::time::Duration;

use health::observation::{Failure, Observation};
use health::reachability::ReachabilityClass;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use karmada_runtime::metrics::Registry;
use karmada_runtime::watch::Decoded;
use kube::runtime::watcher::Event;
use serde_json::{from_value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket};

use super::addresses::{Addresses, Known, Slices};
use super::exchange::HttpRequest;
use super::*;

const TIMEOUT: Duration = Duration::from_millis(400);

/// Returns the observation of a round about a cluster with these addresses.
async fn observed(addresses: &[SocketAddr], request: Option<&str>) -> Observation {
    let known: Addresses = [("m1".into(), addresses.iter().copied().collect())].into();
    let request = request.map(|text| text.parse::<HttpRequest>().unwrap());
    let prober = Prober {
        addresses: Known::Given(known),
        request,
        timeout: TIMEOUT,
        metrics: metrics(&mut Registry::default()),
    };
    prober.round().await["m1"]
}

fn failed(class: ReachabilityClass, address: SocketAddr) -> Observation {
    Observation::Failed(Failure::new(class, address))
}

/// Returns an address at which nobody listens, and the socket that keeps others from it.
fn refusing() -> (TcpSocket, SocketAddr) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

/// Starts a server that answers each connection with this text.
async fn answering(text: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 512];
            let length = stream.read(&mut request).await.unwrap();
            let request = String::from_utf8_lossy(&request[..length]).into_owned();
            assert!(request.starts_with("GET /healthz HTTP/1.1\r\nHost: shop.example.com\r\n"));
            stream.write_all(text.as_bytes()).await.unwrap();
        }
    });
    address
}

/// A cluster is there if something accepts a connection, or refuses it.
#[tokio::test]
async fn refusal_means_reached() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let open = listener.local_addr().unwrap();
    assert_eq!(observed(&[open], None).await, Observation::Success);
    let (_socket, refusing) = refusing();
    assert_eq!(observed(&[refusing], None).await, Observation::Success);
}

/// A probe that asks for a response takes nothing less: a load balancer accepts connections for backends that are gone.
#[tokio::test]
async fn response_decides_where_asked() {
    const HTTP: Option<&str> = Some("shop.example.com/healthz");
    for text in [
        "HTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.0 404 Not Found\r\n\r\n",
        "HTTP/1.1 499",
    ] {
        let address = answering(text).await;
        assert_eq!(
            observed(&[address], HTTP).await,
            Observation::Success,
            "{text}"
        );
    }
    for (text, class) in [
        (
            "HTTP/1.1 503 Unavailable\r\n\r\n",
            ReachabilityClass::ServerError,
        ),
        ("SSH-2.0-OpenSSH_9.2\r\n", ReachabilityClass::Reset),
        ("HTTP/1.1 ", ReachabilityClass::Reset),
        ("", ReachabilityClass::Reset),
    ] {
        let address = answering(text).await;
        assert_eq!(
            observed(&[address], HTTP).await,
            failed(class, address),
            "{text}"
        );
    }
    let (_socket, refusing) = refusing();
    let refused = failed(ReachabilityClass::Refused, refusing);
    assert_eq!(observed(&[refusing], HTTP).await, refused);
    // It accepts, and says nothing.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = listener.local_addr().unwrap();
    let late = failed(ReachabilityClass::Timeout, silent);
    assert_eq!(observed(&[silent], HTTP).await, late);
    // One that responds is enough.
    let well = answering("HTTP/1.1 200 OK\r\n\r\n").await;
    assert_eq!(
        observed(&[silent, refusing, well], HTTP).await,
        Observation::Success
    );
}

fn slice(name: &str, cluster: &str, addresses: &[&str]) -> EndpointSlice {
    let endpoints = addresses
        .iter()
        .map(|address| json!({ "addresses": [address] }));
    let endpoints: Vec<_> = endpoints.collect();
    from_value(json!({
        "metadata": { "namespace": "shop", "name": name, "labels": { "karmada-rs.io/cluster": cluster } },
        "addressType": "IPv4", "endpoints": endpoints, "ports": [{ "port": 80 }],
    }))
    .unwrap()
}

fn shown(slices: &Slices) -> Vec<(String, usize)> {
    let all = slices.by_cluster().into_iter();
    all.map(|(cluster, addresses)| (cluster.to_string(), addresses.len()))
        .collect()
}

fn one(name: &str, count: usize) -> (String, usize) {
    (name.to_owned(), count)
}

fn valid(name: &str, cluster: &str, addresses: &[&str]) -> Decoded<EndpointSlice> {
    Decoded::Valid(slice(name, cluster, addresses))
}

/// The slices of the gateway tell the addresses of each cluster, and a list that is cut off takes none away.
#[test]
fn slices_tell_addresses() {
    let mut slices = Slices::default();
    slices.observe(Event::Init);
    slices.observe(Event::InitApply(valid(
        "a",
        "m1",
        &["10.0.0.1", "10.0.0.2"],
    )));
    slices.observe(Event::InitApply(valid("b", "m2", &[])));
    assert!(shown(&slices).is_empty());
    slices.observe(Event::InitDone);
    assert_eq!(shown(&slices), [one("m1", 2)]);
    slices.observe(Event::Apply(valid("b", "m2", &["10.0.0.3"])));
    slices.observe(Event::Apply(valid("c", "m1", &["10.0.0.2", "10.0.0.4"])));
    assert_eq!(shown(&slices), [one("m1", 3), one("m2", 1)]);
    slices.observe(Event::Init);
    assert_eq!(shown(&slices), [one("m1", 3), one("m2", 1)]);
    slices.observe(Event::Delete(valid("a", "m1", &[])));
    assert_eq!(shown(&slices), [one("m1", 2), one("m2", 1)]);
    let odd = Decoded::Invalid {
        metadata: Box::new(slice("c", "m1", &[]).metadata),
        error: "odd".to_owned(),
    };
    slices.observe(Event::Apply(odd));
    assert_eq!(shown(&slices), [one("m1", 2), one("m2", 1)]);
}

use lab_parts::dns::{self, DnsServer, KUBERNETES};
use serde_json::json;

use super::*;

fn query(name: &str, servers: &[SocketAddr]) -> Value {
    let servers: Vec<_> = servers.iter().map(ToString::to_string).collect();
    json!({ "dns": { "name": name, "servers": servers } })
}

/// A name is asked for as it is, and one server that knows it is enough.
#[tokio::test]
async fn known_name_succeeds() {
    let server = DnsServer::start(dns::cluster()).await.unwrap();
    let address = server.address();
    let dead = SocketAddr::from(([127, 99, 99, 99], 1));
    for servers in [&[address][..], &[dead, address]] {
        let outcome = observe(query(KUBERNETES, servers)).await;
        assert_eq!(outcome, Ok(()), "{servers:?}");
    }
    // With or without the dot at its end.
    let bare = KUBERNETES.trim_end_matches('.');
    assert_eq!(observe(query(bare, &[address])).await, Ok(()));
}

/// The classes are those of the agent's own DNS probe.
#[tokio::test]
async fn answers_have_their_class() {
    let server = DnsServer::start(dns::cluster()).await.unwrap();
    let address = server.address();
    let outcome = observe(query("nobody.example", &[address])).await;
    assert_failed(&outcome, "nxdomain", address);
    server.stop().await.unwrap();
    let outcome = observe(query(KUBERNETES, &[address])).await;
    assert_failed(&outcome, "unreachable", address);
}

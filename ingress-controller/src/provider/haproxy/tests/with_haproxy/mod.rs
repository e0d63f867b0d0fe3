//! An HAProxy, its servers, and its visitors.

mod keeps_contract;
mod obstacles;
mod process;
mod traffic;
mod visitor;

use std::net::SocketAddr;
use std::sync::Arc;

use k8s_openapi::api::discovery::v1::EndpointSlice;
use karmada_runtime::lease::Leadership;

use self::process::Process;
use super::*;
use crate::fixtures::writer;
use crate::provider::contract;

/// The backend of Service `s` of the ingress `i`.
const BACKEND: &str = "ns_i_s_80";

fn key() -> Key {
    contract::key("i")
}

/// Returns a provider that adds servers without checks, with this grace.
fn provider(socket: Socket, grace: Duration, ends_connections: bool) -> Haproxy {
    let controller = "example.com/ours".parse().unwrap();
    let parameters = "pool-max-conn 100 pool-purge-delay 5s".parse().unwrap();
    let settings = ServerSettings::new(&controller, parameters, grace, ends_connections);
    Haproxy::new(socket, &writer(), settings)
}

/// Returns an ingress with these addresses of its Service `s`, one in each of the clusters m1, m2, ….
fn served_at(addresses: &[SocketAddr]) -> Desired {
    let names: Vec<String> = (1..=addresses.len()).map(|n| format!("m{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut desired = contract::desired("i", &["s"], &names);
    for (cluster, address) in desired.backends[0].clusters.iter_mut().zip(addresses) {
        for slice in &mut cluster.slices {
            let slice: &mut EndpointSlice = Arc::make_mut(slice);
            for endpoint in slice.endpoints.iter_mut().flatten() {
                endpoint.addresses = vec![address.ip().to_string()];
            }
            for port in slice.ports.iter_mut().flatten() {
                port.port = Some(address.port().into());
            }
        }
    }
    desired
}

impl Haproxy {
    /// Ensures the desired state, and returns the obstacles.
    async fn ensured(&self, desired: &Desired) -> Vec<String> {
        let ensured = self.ensure(desired).await.unwrap();
        ensured.obstacles.iter().map(Obstacle::to_string).collect()
    }
}

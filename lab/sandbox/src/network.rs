//! The addresses of the members' pods, and where on this machine they are. An API server takes no
//! loopback address into an EndpointSlice, so the API knows pods by addresses that exist nowhere.

use std::collections::BTreeMap;
use std::net::SocketAddr;

/// A pod of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pod {
    /// The member.
    pub(crate) cluster: String,
    /// Where it listens.
    pub(crate) socket: SocketAddr,
}

/// The pods by the addresses that the API knows.
pub(crate) type Network = BTreeMap<SocketAddr, Pod>;

/// The address that the API knows of the pod of the `nth` member, the first being 1.
pub(crate) fn address(nth: u8) -> SocketAddr {
    SocketAddr::from(([10, 244, nth, 10], 8080))
}

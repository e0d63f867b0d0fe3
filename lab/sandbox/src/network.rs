//! The addresses of the members' pods. An API server accepts no loopback address in an
//! `EndpointSlice`, so the API knows each pod by an address that exists nowhere, and the balancer
//! translates it.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use crate::site::Site;

/// The path of a pod's health check.
pub(crate) const HEALTHZ: &str = "/healthz";

/// A pod of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pod {
    pub(crate) cluster: String,
    /// The address at which the pod listens on this machine.
    pub(crate) socket: SocketAddr,
}

/// The pods by the addresses in the API.
pub(crate) type Network = BTreeMap<SocketAddr, Pod>;

/// Returns the address in the API of the pod of a website in the `nth` member, counted from 1.
pub(crate) fn address(nth: u8, site: Site) -> SocketAddr {
    let host = match site {
        Site::Shop => 10,
        Site::Store => 20,
    };
    SocketAddr::from(([10, 244, nth, host], 8080))
}

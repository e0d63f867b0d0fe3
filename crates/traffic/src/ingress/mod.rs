//! The ingress controller's decisions on one `MultiClusterIngress`, from the objects that [`Facts`] answers for.
//!
//! - `facts`: the questions that a decision may ask.
//! - `class`: is the ingress ours?
//! - `locations`: where do its Services run, by their bindings? `placed`: and on a hub, by their placements?
//! - `admission`: which of those clusters may get requests?
//! - `decision`: from these, [`decide`]: serve it, release it, or leave it; `plan` has the writes to its
//!   status.
//! - `desired`: the desired state of the load balancer, Service by Service and cluster by cluster. `addresses` has those that
//!   members report in place of endpoints, and `node_ports` the nodes of members at which a Service is served.
//! - `fail_open`: and if every cluster of a Service is blocked? `decided` tells which blocks a person decided, which are
//!   never lifted.
//! - `together`: and if a cluster serves only some of the Services of a host?
//! - [`http_route`]: an `HTTPRoute` of the fleet's API, read as such an ingress; `route_key`: under which key?
//! - `choice`: the choices of a flag for all ingresses, and of an annotation for one.
//! - [`kubernetes`]: which objects of a gateway cluster are that, and which writes lead there? [`gateway_api`]: and where
//!   its routes are those of a Gateway?
//! - [`haproxy`]: which servers of an HAProxy, and which commands?
//! - [`dns`]: which records lead to the clusters that may serve, and do names resolve to them?
//! - [`webhook`]: the requests to a load balancer's own program.
//! - `problem`: the mistakes that a user must correct.
//! - `export`: which exports does Karmada need to collect the endpoints of the Services?
//! - `change`: the effect of another set of Remedies, for `kubectl remedy plan`.

mod addresses;
mod admission;
mod change;
mod choice;
mod class;
mod decided;
mod decision;
mod desired;
pub mod dns;
mod export;
mod facts;
mod fail_open;
#[cfg(test)]
mod fixtures;
pub mod gateway_api;
pub mod haproxy;
pub mod http_route;
pub mod kubernetes;
mod locations;
mod node_ports;
mod placed;
mod plan;
mod problem;
mod route_key;
mod together;
pub mod webhook;
mod withheld;

pub use addresses::{Unusable, same_reports};
pub use admission::Admission;
pub use admission::admission_of;
pub use change::{BackendChange, ServingCluster, ServingState, backend_changes};
pub use choice::{
    BACKEND_ADDRESSES_ANNOTATION, BackendAddresses, InvalidAnnotation, InvalidChoice,
    PossibleAddresses, SERVE_ANNOTATION, Serving, WHEN_ALL_BLOCKED_ANNOTATION, WhenAllBlocked,
};
pub use class::{ControllerName, InvalidControllerName, Ownership, ownership};
pub use decided::{DecidedBlocks, decided_scope};
pub use decision::{
    Decision, Release, Serve, Settings, backend_addresses, cut_of_left, decide, decide_owned,
    desired,
};
pub use desired::{Backend, ClusterEndpoints, Desired, ServedClusters, TlsSecret, excluded};
pub use export::{ExportFacts, Exporter, Need};
pub use facts::{ClusterFacts, Facts};
pub use fail_open::has_taker;
pub use fail_open::{Candidate, readmitted};
pub use locations::{
    binding_names, binding_of, bound_clusters, bound_ingress, bound_service, secrets,
    service_clusters, service_locations, services,
};
pub use node_ports::{NodeObstacle, has_node_ports, needs_local_endpoints, only_family};
pub use placed::{keep_placed, placed_services};
pub use plan::{BlockChange, StatusPatch, load_balancer};
pub use problem::Problem;
pub use withheld::Withheld;

pub use crate::cached::Cached;

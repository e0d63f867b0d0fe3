//! Parts for tests, started on one machine in a network namespace of the test's own: Kubernetes
//! APIs, real (etcd and kube-apiserver) or embedded, and beside them CoreDNS, Traefik, HAProxy, ExternalDNS,
//! Prometheus, a health service of gRPC, HTTP backends, traffic, and our programs.
//!
//! ```no_run
//! use anyhow::Result;
//! use pipeline_tests::{
//!     control_plane::{ApiKind, ControlPlane},
//!     on_both,
//! };
//!
//! async fn the_api_answers(server: ApiKind) -> Result<()> {
//!     let karmada = ControlPlane::start("karmada", server).await?;
//!     karmada.namespace("shop").await
//! }
//!
//! on_both!(the_api_answers);
//! # fn main() {}
//! ```

pub mod agents;
pub mod aggregation;
pub mod api;
pub mod api_proxy;
pub mod backend;
pub mod bench;
pub mod both;
pub mod certs;
#[cfg(feature = "browser")]
pub mod chromium;
pub mod control_plane;
pub mod coredns;
pub mod crds;
pub mod external_dns;
pub mod fleet;
pub mod grpc_health;
pub mod haproxy;
pub mod kinds;
pub mod kube_proxy;
pub mod kubectl;
pub mod manifests;
pub mod netns;
pub mod outage;
pub mod own_members;
pub mod placement;
pub mod process;
pub mod programs;
pub mod prometheus;
pub mod propagation;
pub mod resolvers;
pub mod rights;
pub mod sandbox;
pub mod scheduling;
#[cfg(feature = "browser")]
pub mod screenshots;
pub mod served;
pub mod service_outage;
pub mod soak;
pub mod traefik;
pub mod traffic;
pub mod upgrade;
pub mod wait;
pub mod writes;

mod inside;
mod kubeconfig;
mod scratch;

pub use lab_parts::relay;

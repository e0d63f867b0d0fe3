//! Real parts for tests: etcd and kube-apiserver, CoreDNS, Traefik, HTTP backends and traffic,
//! started on one machine in a network namespace of the test's own.
//!
//! Nothing here knows our programs: a test starts them with [`process::Process`] like any other.
//!
//! ```no_run
//! use pipeline_tests::{control_plane::{ControlPlane, Options}, netns::isolated, test_name};
//!
//! # /*
//! #[test]
//! # */
//! fn the_api_answers() {
//!     isolated(test_name!(), async || {
//!         let karmada = ControlPlane::start(Options::named("karmada")).await?;
//!         karmada.namespace("shop").await?;
//!         Ok(())
//!     });
//! }
//! ```

pub mod agents;
pub mod backend;
pub mod certs;
pub mod chromium;
pub mod control_plane;
pub mod coredns;
pub mod crds;
pub mod fleet;
pub mod kubectl;
pub mod manifests;
pub mod netns;
pub mod outage;
pub mod process;
pub mod programs;
pub mod sandbox;
pub mod screenshots;
pub mod served;
pub mod tools;
pub mod traefik;
pub mod traffic;
pub mod wait;
pub mod writes;

mod kubeconfig;
mod scratch;

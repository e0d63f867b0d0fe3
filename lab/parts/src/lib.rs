//! The parts that the tests, the sandbox, the simulation and the benchmarks share.
//!
//! No program depends on this crate, and it depends on no program.

pub mod agent_rights;
pub mod connect_proxy;
pub mod dns;
pub mod flags;
pub mod grpc;
pub mod interrupt;
pub mod kube_proxy;
pub mod kubeconfig;
pub mod memory;
pub mod mutations;
pub mod port;
pub mod relay;
pub mod served;
pub mod test_api;
pub mod thresholds;
pub mod tls;
pub mod webhook;

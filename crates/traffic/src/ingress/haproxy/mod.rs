//! The servers of an HAProxy that serve a `MultiClusterIngress`, and the commands of its Runtime API that lead there.
//! Frontends, routing and backends are the configuration's.
//!
//! - `names`: which backend is it, and which servers in it are ours?
//! - `state`: the answers of the Runtime API.
//! - `wanted`: which addresses should get requests, backend by backend?
//! - `plan`: from these, the next state of each server; `steps` has the commands, in lines that take nothing away before its
//!   successor serves.
//! - `settings`: the flags that concern every server.

mod names;
mod plan;
mod settings;
mod state;
mod steps;
#[cfg(test)]
mod tests;
mod wanted;

pub use names::{BackendName, Target};
pub use settings::{InvalidParameters, ServerParameters, ServerSettings};
pub use state::{Server, State, refusal};
pub use steps::{HaproxyPlan, Line, OpenConnections};
pub use wanted::Wanted;

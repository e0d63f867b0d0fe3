//! The way of a resource template to its clusters and back, as pure functions: no client, no async runtime, no clock
//! (`now` is a parameter), no logging.
//!
//! ```text
//! template + policies → choice → claim → binding → schedule → works → execution in the member
//!                                                  status ← reports of the Works ←─┘
//! ```
//!
//! - Which policy has a template: `choice`, among `candidate`s, of which `problems` refuses some, by their `selector`s.
//! - How that is written down: `claim`, on the template and on its binding.
//! - When an edit of a policy reaches its templates: `activation`, which compares `fingerprint`s.
//! - The content of the binding: `binding`. The objects that follow its template: `dependencies`.
//! - Which Works there are, and their manifests: `works`, with `manifest` and `overrides`; those of a Namespace:
//!   `namespaces`.
//! - The meaning of a kind (replicas, requirements, health, its status over all clusters): `interpret`; which kinds
//!   somebody else interprets: `customization`.
//! - Which kinds the propagation-controller may read, and how it gets another: `rights`.
//! - The status that users read: `status`.
//! - The parts that both scopes of bindings have: `binding_ref`. Which clusters one goes to: `schedule`, and anew when a person
//!   asks: `rebalance`.
//! - The work of a Work in its member: `execution`.
//! - The upkeep of a `Cluster` in a fleet without Karmada: `cluster`.
//! - The features of a Karmada that a flag switches: `feature_gates`.

pub mod activation;
pub mod binding;
pub mod binding_ref;
pub mod candidate;
pub mod choice;
pub mod claim;
pub mod cluster;
pub mod customization;
pub mod dependencies;
pub mod execution;
pub mod feature_gates;
pub mod fingerprint;
#[cfg(test)]
mod fixtures;
pub mod interpret;
pub mod manifest;
pub mod namespaces;
pub mod overrides;
pub mod problems;
pub mod rebalance;
pub mod rights;
pub mod schedule;
pub mod selector;
pub mod status;
pub mod template;
pub mod works;

//! The objects in a gateway cluster that serve a `MultiClusterIngress`: one Service without selector for
//! each backend, its `EndpointSlice`s for each admitted cluster, and the routes to them; and the writes that
//! bring the existing objects to that state.
//!
//! - `managed_by`, `names`: which objects are ours, and how are they named?
//! - `objects`: the Services and slices, whatever the kind of the routes.
//! - `ingresses`: routes as one Ingress. `routes` and `scheme` write the same desire so that proxies which read an
//!   Ingress differently serve it alike. Those of a Gateway are in [`super::gateway_api`].
//! - `drift`, `plan`: which fields of an object are ours, and the writes.
//! - `probed`: the addresses at which the agents on the gateway's nodes try each member.

mod drift;
mod ingresses;
mod managed_by;
mod names;
mod objects;
mod plan;
mod probed;
mod routes;
mod scheme;
#[cfg(test)]
mod tests;

pub(super) use drift::{edit, edits_of_metadata};
pub(super) use managed_by::{MANAGED_BY_LABEL, add_recorded};
pub(super) use names::{hash, hashed, limited, managed_by, object_name, service_name};
pub(super) use objects::{backend_objects, empty_slices};
pub(super) use plan::{compare, cut, stale, update};
pub(super) use routes::all_rules;

pub use drift::Managed;
pub use ingresses::Ingresses;
pub use managed_by::{ManagedBy, ingress_of};
pub use objects::{CLUSTER_LABEL, Objects};
pub use plan::{Clash, Existing, KubernetesPlan, cutting, removal, slice_origin};
pub use probed::{blocked_slices, probed};

//! The objects in a gateway cluster that serve a `MultiClusterIngress`: one Service without selector for
//! each backend, its `EndpointSlice`s for each admitted cluster, and the routes to them; and the writes that
//! bring the existing objects to that state.
//!
//! - `managed_by`, `names`: which objects are ours, and what they are called.
//! - `objects`: the Services and slices, whatever the kind of the routes.
//! - `ingresses`: routes as one Ingress. `routes` and `scheme` write the same desire so that proxies which read an
//!   Ingress differently serve it alike. Those of a Gateway are in [`super::gateway_api`].
//! - `drift`, `plan`: what of an object is ours, and the writes.
//! - `probed`: what the agents on the gateway's nodes find in the slices: where to try each member.

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
pub(super) use plan::compare;
pub(super) use routes::all_rules;

pub use drift::Managed;
pub use ingresses::Ingresses;
pub use managed_by::{ManagedBy, ingress_of};
pub use objects::{CLUSTER_LABEL, Objects};
pub use plan::{Clash, Existing, KubernetesPlan, Update, Write, cutting, removal, slice_origin};
pub use probed::{blocked_slices, probed};

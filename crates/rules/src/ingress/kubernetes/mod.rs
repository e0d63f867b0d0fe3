//! The objects in a gateway cluster that serve a `MultiClusterIngress`: one Service without selector for
//! each backend, its `EndpointSlice`s for each admitted cluster, and one Ingress; and the writes that
//! bring the existing objects to that state. `routes` and `scheme` write the same desire so that proxies which read an
//! Ingress differently serve it alike. `probed` is for the
//! agents on the gateway's nodes: they find in the slices where to try each member.

mod drift;
mod names;
mod objects;
mod plan;
mod probed;
mod routes;
mod scheme;
#[cfg(test)]
mod tests;

pub(super) use names::{limited, managed_by};
pub(super) use objects::MANAGED_BY_LABEL;

pub use drift::Managed;
pub use objects::{Gateway, Objects, ingress_of};
pub use plan::{Clash, Existing, KubernetesPlan, Update, Write, cutting, removal, slice_origin};
pub use probed::{CLUSTER_LABEL, probed};

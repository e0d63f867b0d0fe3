//! The objects in a gateway cluster that serve a `MultiClusterIngress`: one Service without selector for
//! each backend, its `EndpointSlice`s for each admitted cluster, and one Ingress; and the writes that
//! bring the existing objects to that state. `routes` and `scheme` write the same desire so that proxies which read an
//! Ingress differently serve it alike.

mod drift;
mod names;
mod objects;
mod plan;
mod routes;
mod scheme;
#[cfg(test)]
mod tests;

pub(super) use drift::{edit, edits_of_metadata};
pub(super) use names::{hashed, limited, managed_by};
pub(super) use objects::{INGRESS_ANNOTATION, MANAGED_BY_LABEL};
pub(super) use plan::compare;
pub(super) use routes::all_routes;

pub use drift::Managed;
pub use objects::{Gateway, Objects, ingress_of};
pub use plan::{Clash, Existing, KubernetesPlan, Update, Write, cutting, removal, slice_origin};

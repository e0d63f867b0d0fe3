//! The objects of a gateway cluster that serve a `MultiClusterIngress` there: for each backend one
//! Service without selector, for each admitted cluster `EndpointSlice`s, and one Ingress; and how to
//! come to them from those that are there.

mod drift;
mod names;
mod objects;
mod plan;
#[cfg(test)]
mod tests;

pub use drift::{Edit, Managed};
pub use objects::{Gateway, Objects, ingress_of};
pub use plan::{Clash, Existing, KubernetesPlan, Update, Write, removal};

//! The routes of a `MultiClusterIngress` as `HTTPRoute`s of the Gateway API, attached to one Gateway. The Services and slices
//! behind them are those of [`super::kubernetes`], one Service for all clusters: a reference for each cluster would keep its
//! share of the requests when that cluster has nothing left.
//!
//! - `path`: the paths of a rule that can be had, and those that two routes have in common.
//! - `routes`: the `HTTPRoute`s, as many as the limits of the API take.
//! - `claims`: which host and path is somebody else's?
//! - `parent`: does the Gateway accept our routes, and where does it serve?
//! - `problem`: the mistakes that a user must correct.
//! - `drift`: which fields of an `HTTPRoute` are ours?

mod claims;
mod drift;
mod parent;
mod path;
mod problem;
mod routes;
#[cfg(test)]
mod tests;

pub(in crate::ingress) use parent::is_host_within;
pub(in crate::ingress) use path::RoutePath;

pub use claims::{Claims, hosts};
pub use parent::{addresses, gateway_problems, route_problems};
pub use problem::RouteProblem;
pub use routes::{HttpRoutes, Routed};

//! The records in DNS that lead to the clusters that may serve a `MultiClusterIngress`, as `ExternalDNS` is told of them: one
//! `DNSEndpoint` for each host, in one namespace.
//!
//! ```text
//! Desired → hosts → targets of each host → DNSEndpoint → plan        acknowledgement ← answers of resolvers
//! ```
//!
//! - `hosts`: which names does an ingress have, and which Services are behind each?
//! - `targets`: which addresses of these Services may a name lead to, or which other name?
//! - `records`: which objects say so?
//! - `plan`: which writes lead there? Which of them take a cluster out of records that are left as they are?
//! - `acknowledgement`: does the name resolve to that?
//! - `problem`: the mistakes that a user must correct.

mod acknowledgement;
mod hosts;
mod plan;
mod problem;
mod records;
mod targets;
#[cfg(test)]
mod tests;

pub use acknowledgement::{INTERVAL, Lookup, is_due, is_served};
pub use plan::{clusters, cutting, plan, removal};
pub use problem::DnsProblem;
pub use records::{Publisher, Wanted, alias_of, host_of, targets_of};

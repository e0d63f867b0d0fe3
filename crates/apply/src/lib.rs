//! The engine that applies the manifests of Works to one member cluster and watches what it applied.
//!
//! `requests` speaks to the member's API, and `member` brings its objects to their manifests with one call of
//! `karmada_rules::execution` for each.

mod error;
mod known;
mod member;
mod requests;
mod result;
mod wake;

#[cfg(test)]
mod tests;

pub use error::MemberError;
pub use member::MemberCluster;
pub use result::{ObservedObject, SyncResult, Synced};
pub use wake::Wake;

//! The request of the provider `webhook` for a `MultiClusterIngress`: one document with its routes, its backends and the
//! addresses of the clusters that may serve; and the same document without some of these clusters.

mod cut;
mod document;
#[cfg(test)]
mod tests;

pub use cut::{clusters, is_excluded, without};
pub use document::document;

//! The way of a resource template to its clusters: the policy that claims it, its binding, and its Works.

pub mod activation;
pub mod binding;
pub mod choice;
pub mod claim;
pub mod customization;
pub mod dependencies;
pub mod fingerprint;
#[cfg(test)]
mod fixtures;
pub mod interpret;
pub mod manifest;
pub mod namespaces;
pub mod overrides;
pub mod problems;
pub mod selector;
pub mod status;
pub mod template;
pub mod works;

//! What decides about the Works of a binding.

use karmada_api::fleet::{ClusterResourceBinding, ClusterResourceSnapshot, Work};

/// The Works of a binding and what decides about them.
#[derive(Clone, Copy, Debug)]
pub struct WorksFacts<'a> {
    /// The name of the placement.
    pub placement: &'a str,
    /// The binding.
    pub binding: &'a ClusterResourceBinding,
    /// The group of snapshots that it names, the master first; empty while one of them cannot be found.
    pub snapshots: &'a [&'a ClusterResourceSnapshot],
    /// True if a `ConfigMap` that is annotated as an envelope is opened.
    pub opens_config_maps: bool,
    /// The Works that are labelled as its own.
    pub works: &'a [&'a Work],
}

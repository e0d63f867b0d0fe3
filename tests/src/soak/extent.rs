//! How much is soaked.

use std::{path::PathBuf, time::Duration};

use crate::{control_plane::ApiKind, programs::Profile};

/// The extent of a soak.
#[derive(Clone, Debug)]
pub struct Soak {
    /// The time that it takes, after the start.
    pub length: Duration,
    /// The number of members, whose APIs are embedded.
    pub clusters: u8,
    /// The number of Deployments, and of `ConfigMap`s.
    pub templates: u16,
    /// The API of the fleet.
    pub server: ApiKind,
    /// The purpose for which the programs were built.
    pub profile: Profile,
    /// Where the plot of their memory and descriptors goes.
    pub plot: Option<PathBuf>,
}

//! The programs of a fleet under one fault after the other.

use std::time::Duration;

use anyhow::{Context, Result};
use pipeline_tests::{
    control_plane::ApiKind,
    on_embedded,
    programs::Profile,
    soak::{Soak, soak},
};

/// Three minutes of the hour of `cargo xtask soak`: nothing is stuck, no Event is lost, nothing grows.
async fn faults_leave_nothing_behind(server: ApiKind) -> Result<()> {
    let extent = Soak {
        length: Duration::from_mins(3),
        clusters: 3,
        templates: 10,
        server,
        profile: Profile::Debug,
        plot: None,
    };
    let mut played = String::new();
    let soaked = soak(&extent, |line| {
        played.push_str(line);
        played.push('\n');
    });
    soaked.await.context(played)
}

on_embedded!(long: faults_leave_nothing_behind);

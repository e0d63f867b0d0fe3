//! `soak`: holds the programs of a fleet up by faults for a long time.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use pipeline_tests::control_plane::ApiKind;
use pipeline_tests::netns::{inside, isolated_command};
use pipeline_tests::programs::{self, Profile};
use pipeline_tests::soak::{Soak, soak};
use tools::Tool;

/// The extent of the soak.
#[derive(Debug, Args)]
pub(crate) struct Extent {
    /// The time that it takes, after the start
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(3..=1440))]
    minutes: u64,
    /// The number of members
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u8).range(2..=100))]
    clusters: u8,
    /// The number of Deployments, and of `ConfigMap`s
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    templates: u16,
    /// A file for the plot of memory and descriptors, in SVG
    #[arg(long)]
    plot: Option<PathBuf>,
}

/// Runs the soak.
pub(crate) fn run(extent: &Extent) -> anyhow::Result<()> {
    let soaked = Soak {
        length: Duration::from_mins(extent.minutes),
        clusters: extent.clusters,
        templates: extent.templates,
        server: ApiKind::Real,
        profile: Profile::Dist,
        plot: extent.plot.clone(),
    };
    if !inside() {
        tools::build(&Tool::CONTROL_PLANE)?;
        programs::build_fleet()?;
    }
    // The start and the last fault come on top.
    let limit = soaked.length + Duration::from_mins(15);
    isolated_command(limit, async || {
        soak(&soaked, |line| println!("{line}")).await
    })
}

//! `upgrade`: two versions of the programs side by side.

use clap::Args;
use pipeline_tests::netns::{COMMAND_LIMIT, inside, isolated_command};
use pipeline_tests::programs;
use pipeline_tests::upgrade::side_by_side;
use tools::Tool;

/// The earlier version.
#[derive(Debug, Args)]
pub(crate) struct Earlier {
    /// Its tag, or any commit
    #[arg(long, value_name = "COMMIT")]
    from: String,
}

/// Builds both versions, and hands a fleet over from one to the other and back.
pub(crate) fn run(earlier: &Earlier) -> anyhow::Result<()> {
    if !inside() {
        tools::build(&[Tool::Etcd, Tool::KubeApiserver])?;
        programs::build_for_tests()?;
        programs::build_earlier(&earlier.from)?;
    }
    isolated_command(COMMAND_LIMIT, async || {
        side_by_side(|line| println!("{line}")).await
    })
}

//! The flags.

use karmada_runtime::args::{ClientArgs, CommonArgs, LeaderElectionArgs};

/// Compares the conditions of every cluster with the Remedy objects and writes the required actions to Cluster.status.remedyActions.
#[derive(clap::Parser, Debug)]
#[command(name = crate::NAME, version)]
pub struct Args {
    #[command(flatten)]
    pub(crate) client: ClientArgs,
    #[command(flatten)]
    pub(crate) leader_election: LeaderElectionArgs,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

impl AsRef<CommonArgs> for Args {
    fn as_ref(&self) -> &CommonArgs {
        &self.common
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_flags_are_well_formed() {
        super::Args::command().debug_assert();
    }
}

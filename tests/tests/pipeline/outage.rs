//! DNS of a member cluster dies and its traffic goes elsewhere; DNS recovers and the traffic returns.

use anyhow::Result;
use lab_parts::thresholds::Thresholds;
use pipeline_tests::{
    control_plane::Server,
    outage::{Fault, play},
    programs::Profile,
};

#[expect(clippy::print_stdout, reason = "libtest captures it")]
async fn happens(server: Server, fault: Fault, thresholds: Thresholds) -> Result<()> {
    let timeline = play(server, Profile::Debug, fault, thresholds).await?;
    println!("{timeline}");
    timeline.check()
}

async fn traffic_leaves_and_returns_when_queries_are_refused(server: Server) -> Result<()> {
    happens(server, Fault::Refused, Thresholds::SHORT).await
}

async fn traffic_leaves_and_returns_when_queries_are_dropped(server: Server) -> Result<()> {
    happens(server, Fault::Dropped, Thresholds::SHORT).await
}

mod with_tools {
    use pipeline_tests::{both, on_both, test_name};

    use super::*;

    on_both!(
        traffic_leaves_and_returns_when_queries_are_refused,
        traffic_leaves_and_returns_when_queries_are_dropped,
    );

    // On one API only: these thresholds take more than a minute, most of it waiting.
    #[test]
    fn traffic_leaves_and_returns_with_default_thresholds() {
        both::run(test_name!(), Server::Real, async |server| {
            happens(server, Fault::Refused, Thresholds::DEFAULT).await
        });
    }
}

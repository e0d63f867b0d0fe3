//! DNS dies in a member cluster, its traffic goes elsewhere; DNS returns, and so does the traffic.

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
    happens(server, Fault::Refused, Thresholds::DEFAULT).await
}

async fn traffic_leaves_and_returns_with_short_thresholds(server: Server) -> Result<()> {
    happens(server, Fault::Refused, Thresholds::SHORT).await
}

async fn traffic_leaves_and_returns_when_queries_are_dropped(server: Server) -> Result<()> {
    happens(server, Fault::Dropped, Thresholds::SHORT).await
}

mod with_tools {
    use pipeline_tests::on_both;

    use super::{
        traffic_leaves_and_returns_when_queries_are_dropped,
        traffic_leaves_and_returns_when_queries_are_refused,
        traffic_leaves_and_returns_with_short_thresholds,
    };

    on_both!(
        traffic_leaves_and_returns_when_queries_are_refused,
        traffic_leaves_and_returns_with_short_thresholds,
        traffic_leaves_and_returns_when_queries_are_dropped,
    );
}

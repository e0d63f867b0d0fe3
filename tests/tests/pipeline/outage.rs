//! DNS of a member cluster dies and its traffic goes elsewhere; DNS recovers and the traffic returns.

use anyhow::Result;
use lab_parts::thresholds::ProbeTiming;
use pipeline_tests::{
    control_plane::ApiKind,
    outage::{DnsOutage, play},
    programs::Profile,
};

#[expect(clippy::print_stdout, reason = "libtest captures it")]
async fn happens(server: ApiKind, fault: DnsOutage, thresholds: ProbeTiming) -> Result<()> {
    let timeline = play(server, Profile::Debug, fault, thresholds).await?;
    println!("{timeline}");
    timeline.check()
}

async fn traffic_leaves_and_returns_when_queries_are_refused(server: ApiKind) -> Result<()> {
    happens(server, DnsOutage::Refused, ProbeTiming::SHORT).await
}

async fn traffic_leaves_and_returns_when_queries_are_dropped(server: ApiKind) -> Result<()> {
    happens(server, DnsOutage::Dropped, ProbeTiming::SHORT).await
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
        both::run(test_name!(), ApiKind::Real, async |server| {
            happens(server, DnsOutage::Refused, ProbeTiming::DEFAULT).await
        });
    }
}

//! DNS of a member cluster dies and its traffic goes elsewhere; DNS recovers and the traffic returns.

use anyhow::Result;
use lab_parts::thresholds::ProbeTiming;
use pipeline_tests::{
    control_plane::ApiKind,
    outage::{DnsOutage, Home, play},
    programs::Profile,
};

#[expect(clippy::print_stdout, reason = "libtest captures it")]
async fn happens(
    server: ApiKind,
    home: Home,
    fault: DnsOutage,
    thresholds: ProbeTiming,
) -> Result<()> {
    let timeline = play(server, Profile::Debug, home, fault, thresholds).await?;
    println!("{timeline}");
    timeline.check()
}

/// Traffic leaves and returns when queries are refused.
async fn refused_queries_move_traffic(server: ApiKind) -> Result<()> {
    happens(
        server,
        Home::Karmada,
        DnsOutage::Refused,
        ProbeTiming::SHORT,
    )
    .await
}

/// Case P76: in a fleet without Karmada, our programs propagate a Deployment and an exported Service and collect its
/// endpoints, and traffic leaves and returns all the same.
async fn own_fleet_moves_traffic(server: ApiKind) -> Result<()> {
    happens(server, Home::Own, DnsOutage::Refused, ProbeTiming::SHORT).await
}

mod with_tools {
    use pipeline_tests::{both, on_both, test_name};

    use super::*;

    on_both!(refused_queries_move_traffic, own_fleet_moves_traffic,);

    // On one API only: these thresholds take more than a minute, most of it waiting.
    /// Traffic leaves and returns with default thresholds.
    #[test]
    #[ignore = "long"]
    fn default_thresholds_move_traffic() {
        both::run(test_name!(), ApiKind::Real, async |server| {
            happens(
                server,
                Home::Karmada,
                DnsOutage::Refused,
                ProbeTiming::DEFAULT,
            )
            .await
        });
    }
}

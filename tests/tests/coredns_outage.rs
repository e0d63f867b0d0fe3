//! DNS dies in a member cluster, its traffic goes elsewhere; DNS returns, and so does the traffic.

use pipeline_tests::{
    fleet::isolated,
    outage::{Fault, Thresholds, play},
    programs::Profile,
    test_name,
};

#[test]
fn traffic_leaves_and_returns_when_queries_are_refused() {
    isolated(test_name!(), async || {
        let timeline = play(Profile::Debug, Fault::Refused, Thresholds::DEFAULT).await?;
        println!("{timeline}");
        timeline.check()
    });
}

#[test]
fn traffic_leaves_and_returns_with_short_thresholds() {
    isolated(test_name!(), async || {
        let timeline = play(Profile::Debug, Fault::Refused, Thresholds::SHORT).await?;
        println!("{timeline}");
        timeline.check()
    });
}

#[test]
fn traffic_leaves_and_returns_when_queries_are_dropped() {
    isolated(test_name!(), async || {
        let timeline = play(Profile::Debug, Fault::Dropped, Thresholds::SHORT).await?;
        println!("{timeline}");
        timeline.check()
    });
}

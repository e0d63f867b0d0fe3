//! A hub of more kinds than a connection carries watches.

use anyhow::{Result, ensure};
use pipeline_tests::{
    control_plane::ApiKind,
    fleet::Member,
    kinds::{Kinds, keeps_its_lease},
    placement::PlacementFleet,
    programs::Profile,
};
use serde_json::json;

use super::Stage;

const MEMBER: Member = Member(1);
const NAME: &str = "many";

/// A namespace with an object of each of so many kinds is placed, edits of them too, and no program loses its lease.
async fn place(kinds: [ApiKind; 2], number: u16) -> Result<()> {
    let fleet = PlacementFleet::start_for(kinds, 1, Profile::Debug).await?;
    fleet.register(MEMBER, json!({})).await?;
    let kinds = Kinds::of(number, NAME);
    let (hub, member) = (&fleet.hub, fleet.member(MEMBER));
    for api in [hub, member] {
        kinds.install(api).await?;
    }
    kinds.allow_placement(hub).await?;
    let programs = fleet.run().await?;
    let stage = Stage { fleet, programs };
    let (hub, member) = (&stage.fleet.hub, stage.fleet.member(MEMBER));
    stage.until_joined(MEMBER).await?;
    stage.fill(NAME).await?;
    kinds.write(hub, 0).await?;
    stage
        .place(NAME, json!({ "placementType": "PickAll" }))
        .await?;
    stage.until_complete(NAME).await?;
    kinds.write(hub, 1).await?;
    kinds.arrive(member, 1).await?;
    let (controller, agent) = (&stage.programs.controller, &stage.programs.agents[0]);
    for (program, name, place, api) in [
        (controller, "placement-controller", "hub", hub),
        (agent, "placement-agent", "member", member),
    ] {
        let prefix = format!("karmada_{}", name.replace('-', "_"));
        keeps_its_lease(program, &prefix, api, ["fleet-system", name]).await?;
        let watches = format!("{prefix}_api_streams{{api=\"{place}\",purpose=\"watches\"}}");
        let watches = program.metric(&watches).await?;
        ensure!(watches >= f64::from(number), "{name} has {watches} watches");
    }
    stage.programs.stop().await
}

mod embedded {
    use pipeline_tests::{both, control_plane::ApiKind, test_name};

    /// Case F87: 110 kinds.
    #[test]
    fn hundred_kinds_are_placed() {
        both::run(test_name!(), ApiKind::EmbeddedByTls, async |server| {
            super::place([server, server], 110).await
        });
    }
}

mod real {
    use pipeline_tests::{both, control_plane::ApiKind, test_name};

    /// Case F87: 150 kinds on a hub that is a kube-apiserver.
    #[test]
    #[ignore = "long"]
    fn many_kinds_are_placed() {
        both::run(test_name!(), ApiKind::Real, async |server| {
            super::place([server, ApiKind::EmbeddedByTls], 150).await
        });
    }
}

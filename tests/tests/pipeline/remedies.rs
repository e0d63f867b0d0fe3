//! docs/remedy.md, followed by a reader.

mod with_tools {
    use anyhow::Result;
    use karmada_api::TRAFFIC_CONTROL;
    use pipeline_tests::{
        agents::MEMBER, control_plane::ApiKind, fleet::Fleet, on_both, programs::Profile,
    };

    use crate::install::page::{Page, Reader};

    /// A condition that somebody's own tool writes takes the traffic away, as ours does.
    async fn own_condition_blocks(server: ApiKind) -> Result<()> {
        let fleet = Fleet::start(server, Profile::Debug).await?;
        fleet.join(MEMBER).await?;
        let controller = fleet.remedy_controller().await?;
        let reader = Reader::of(&[("karmada", &fleet.karmada)], server)?;
        for step in reader.steps(Page::Remedy, "Act on a condition of your own") {
            reader.run(&step).await?;
        }
        fleet.has_actions(MEMBER, &[TRAFFIC_CONTROL]).await?;
        controller.stop().await
    }

    on_both!(long: own_condition_blocks);
}

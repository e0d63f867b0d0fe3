//! docs/placement.md, followed by a reader.

use anyhow::{Context, Result};
use pipeline_tests::{
    both,
    control_plane::ApiKind,
    fleet::Member,
    placement::PlacementFleet,
    programs::{Binary, Profile, Running},
    test_name,
};

use super::namespaces;
use crate::install::page::{Page, Reader};
use crate::install::renewal::{OwnToken, renews};

const MEMBER: Member = Member(1);

/// Who follows the page from nothing has a hub, a member and a placement, and the member may leave again with its objects.
async fn page_makes_a_fleet(server: ApiKind) -> Result<()> {
    make(server, Way::Kubectl).await
}

/// The same with Helm.
async fn charts_make_a_fleet(server: ApiKind) -> Result<()> {
    make(server, Way::Helm).await
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Kubectl,
    Helm,
}

async fn make(server: ApiKind, way: Way) -> Result<()> {
    let mut fleet = PlacementFleet::before_us(server, 1).await?;
    fleet.start_controllers().await?;
    let member = fleet.member(MEMBER);
    let name = MEMBER.name();
    let contexts = [("hub", &fleet.hub), ("host", &fleet.hub), (&*name, member)];
    let reader = Reader::of(&contexts, server)?;
    reader.learn_functions().await?;
    let with_helm = reader.steps(Page::Placement, "With Helm");
    let [hub_with_helm, member_with_helm] = &with_helm[..] else {
        anyhow::bail!("the page has other steps: {with_helm:?}");
    };
    match way {
        Way::Kubectl => follow(&reader, "Install the hub").await?,
        Way::Helm => drop(reader.run(hub_with_helm).await?),
    }
    let kubeconfig = |flag: &str, folder: &str| {
        let path = reader.path(&format!("access/{folder}/kubeconfig"));
        format!("--{flag}={}", path.display())
    };
    let flags = [kubeconfig("kubeconfig", "placement-controller")];
    let controller = Running::start(Binary::PlacementController, Profile::Debug, flags).await?;

    let steps = reader.steps(Page::Placement, "Join a cluster");
    let [on_hub, in_member, wait] = &steps[..] else {
        anyhow::bail!("the page has other steps: {steps:?}");
    };
    reader.run(on_hub).await?;
    reader
        .run(match way {
            Way::Kubectl => in_member,
            Way::Helm => member_with_helm,
        })
        .await?;
    // In place of the pod, whose rights the last step makes.
    let own = member.account_kubeconfig("fleet-system", "placement-agent")?;
    let flags = [
        format!("--kubeconfig={}", own.display()),
        kubeconfig("hub-kubeconfig", &name),
        format!("--cluster-name={name}"),
    ];
    let agent = Running::start_unready(Binary::PlacementAgent, Profile::Debug, flags).await?;
    reader.run(wait).await?;
    if way == Way::Kubectl {
        renew(&fleet, &reader).await?;
    }

    let steps = reader.steps(Page::Placement, "Place a namespace");
    reader.run(steps.first().context("no step")?).await?;
    let leave = reader.steps(Page::Placement, "Leave");
    let leave = leave.first().context("no step")?;
    reader.run(leave).await?;
    assert!(namespaces(member).get_opt("shop").await?.is_some());
    agent.stop().await?;
    controller.stop().await
}

/// Follows the page until the agent's token renews itself.
async fn renew(fleet: &PlacementFleet, reader: &Reader) -> Result<()> {
    let name = MEMBER.name();
    let token = OwnToken {
        api: "hub",
        account: &format!("fleet-system:{name}"),
        member: &name,
        secret: "fleet-system/placement-agent-hub",
    };
    let commands = reader.steps(Page::Placement, "Have tokens renewed");
    renews(reader, fleet.member(MEMBER), token, &commands).await
}

async fn follow(reader: &Reader, section: &str) -> Result<()> {
    for step in reader.steps(Page::Placement, section) {
        reader.run(&step).await?;
    }
    Ok(())
}

// On the real API only: the embedded one has no tokens.
mod real {
    use super::*;

    #[test]
    fn page_makes_a_fleet() {
        both::run(test_name!(), ApiKind::Real, super::page_makes_a_fleet);
    }

    #[test]
    fn charts_make_a_fleet() {
        both::run(test_name!(), ApiKind::Real, super::charts_make_a_fleet);
    }
}

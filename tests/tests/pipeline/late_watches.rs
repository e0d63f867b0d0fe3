//! Watches show nothing for longer than a program waits for its writes, and it dies before any of these is answered and
//! starts again: nothing is written twice, and nothing waits for ever.
//!
//! [`survives`] is the one story. Each program has a world of its own in which it has something to write.

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Result, bail};
use k8s_openapi::api::core::v1::ConfigMap;
use karmada_api::{ClusterView, TRAFFIC_CONTROL, names};
use karmada_runtime::expectations::EXPECTATION_TIMEOUT;
use kube::Api;
use pipeline_tests::{
    api::create,
    api_proxy::{ApiProxy, Held, StoredWrite},
    control_plane::ApiKind,
    fleet::{Fleet, INGRESS, Member},
    manifests, on_both,
    placement::PlacementPrograms,
    programs::{Binary, Profile, Running},
    propagation::{PropagationFleet, namespaced},
    wait::until,
};
use serde_json::json;
use tokio::time::timeout;

use crate::{clusters::is_ready, placements::Stage, propagation::is_fully_applied};

/// The time in which a program decides again without the watch.
const LATE: Duration = EXPECTATION_TIMEOUT.saturating_add(Duration::from_secs(5));

/// The objects of each kind that a program has to write.
const NAMES: [&str; 2] = ["one", "other"];

const MEMBER: Member = Member(1);

/// The flag of a program that need not wait until the lease of a dead one has run out.
const ALONE: &str = "--leader-elect=false";

/// Starts a program, kills it once a write is stored and before that is answered, and starts it again. The watches flow only
/// once the second one waits for them no longer. Each object gets one write of the kinds `once`.
async fn survives(
    proxy: &ApiProxy,
    once: &[&str],
    start: impl AsyncFn() -> Result<Running>,
    converged: impl Future<Output = Result<()>>,
) -> Result<()> {
    proxy.hold(Held::WatchesAndWrites);
    let first = start().await?;
    proxy.until_stored().await?;
    first.kill().await?;

    proxy.hold(Held::Watches);
    let second = start().await?;
    let repeated = timeout(LATE, proxy.until_repeated()).await;
    assert!(repeated.is_err(), "before the watches: {repeated:?}");

    proxy.hold(Held::Nothing);
    tokio::select! {
        converged = converged => converged?,
        repeated = proxy.until_repeated() => bail!("after the watches: {repeated:?}"),
    }
    let stored = proxy.stored();
    for kind in once {
        assert_once(&stored, kind);
    }
    second.stop().await
}

/// Fails unless each object was written once in this way, and there are as many as the world has.
#[track_caller]
fn assert_once(stored: &[StoredWrite], kind: &str) {
    let mut objects: BTreeMap<&str, usize> = BTreeMap::new();
    for write in stored {
        if write.kind.to_string() == kind {
            *objects.entry(&write.object).or_default() += 1;
        }
    }
    let are_once = objects.values().all(|count| *count == 1);
    assert!(
        are_once && objects.len() >= NAMES.len(),
        "{kind}: {objects:?} of {stored:#?}"
    );
}

/// Case P117: a Remedy blocks every cluster, and says so.
async fn remedy_controller(server: ApiKind) -> Result<()> {
    let mut fleet = Fleet::start(server, Profile::Debug).await?;
    for member in members() {
        fleet.join(member).await?;
    }
    let spec = json!({ "actions": [TRAFFIC_CONTROL] });
    fleet.create_remedy("maintenance", spec).await?;
    let proxy = ApiProxy::default();
    fleet.karmada.interpose(&proxy)?;
    let converged = async {
        until(&fleet.remedies(), "maintenance", "active", |remedy| {
            let status = remedy.and_then(|remedy| remedy.status.as_ref());
            status.and_then(|status| status.active_clusters) == i64::try_from(NAMES.len()).ok()
        })
        .await?;
        anyhow::Ok(())
    };
    let once = ["PATCH clusters.cluster.karmada.io/status"];
    let start = async || fleet.remedy_controller_with(&[ALONE]).await;
    survives(&proxy, &once, start, converged).await
}

/// Case P117: ingresses are served, and then one that is made once the watches flow.
async fn ingress_controller(server: ApiKind) -> Result<()> {
    let members: Vec<Member> = members().collect();
    let mut fleet = Fleet::with_members(server, Profile::Debug, &members).await?;
    let class = "karmada-rs";
    let host = "other.example.com";
    fleet.create_ingress_for("other", class, host).await?;
    let proxy = ApiProxy::default();
    fleet.karmada.interpose(&proxy)?;
    fleet.gateway.interpose(&proxy)?;
    let converged = async {
        let host = "late.example.com";
        fleet.create_ingress_for("late", class, host).await?;
        for name in [INGRESS, "other", "late"] {
            until(&fleet.ingresses(), name, "located", |ingress| {
                let status = ingress.and_then(|ingress| ingress.status.as_ref());
                status.is_some_and(|status| status.service_locations.is_some())
            })
            .await?;
        }
        fleet.serves(&members).await
    };
    let once = [
        "PATCH multiclusteringresses.networking.karmada.io",
        "PATCH multiclusteringresses.networking.karmada.io/status",
        "POST ingresses.networking.k8s.io",
    ];
    let start = async || fleet.ingress_controller_with(&[ALONE]).await;
    survives(&proxy, &once, start, converged).await
}

/// Case P117: placements reach a member that has joined.
async fn placement_controller(server: ApiKind) -> Result<()> {
    let Stage { fleet, programs } = Stage::start(server, 1).await?;
    let PlacementPrograms { controller, agents } = programs;
    controller.stop().await?;
    let mut stage = Stage {
        fleet,
        programs: agents,
    };
    place(&stage).await?;
    let proxy = ApiProxy::default();
    stage.fleet.hub.interpose(&proxy)?;
    let once = [
        "POST clusterschedulingpolicysnapshots.placement.kubernetes-fleet.io",
        "POST clusterresourcesnapshots.placement.kubernetes-fleet.io",
        "POST clusterresourcebindings.placement.kubernetes-fleet.io",
        "POST works.placement.kubernetes-fleet.io",
    ];
    let start = async || stage.fleet.run_controller(&[ALONE]).await;
    survives(&proxy, &once, start, are_placed(&stage)).await
}

/// Case P117: Works that wait on the hub become objects of the member, whose watches are late, too.
async fn placement_agent(server: ApiKind) -> Result<()> {
    let Stage { fleet, programs } = Stage::start(server, 1).await?;
    let PlacementPrograms { controller, agents } = programs;
    for agent in agents {
        agent.stop().await?;
    }
    let mut stage = Stage {
        fleet,
        programs: controller,
    };
    place(&stage).await?;
    for name in NAMES {
        let (works, name) = (stage.fleet.works(MEMBER), format!("{name}-work"));
        until(&works, &name, "made", |work| work.is_some()).await?;
    }
    let proxy = ApiProxy::default();
    stage.fleet.hub.interpose(&proxy)?;
    stage.fleet.member_mut(MEMBER).interpose(&proxy)?;
    let once = [
        "POST appliedworks.placement.kubernetes-fleet.io",
        "APPLY configmaps",
    ];
    let start = async || stage.fleet.run_agent_with(MEMBER, &[ALONE]).await;
    survives(&proxy, &once, start, are_placed(&stage)).await
}

async fn place<Programs>(stage: &Stage<Programs>) -> Result<()> {
    for name in NAMES {
        stage.fill(name).await?;
        let policy = json!({ "placementType": "PickAll" });
        stage.place(name, policy).await?;
    }
    Ok(())
}

async fn are_placed<Programs>(stage: &Stage<Programs>) -> Result<()> {
    for name in NAMES {
        stage.until_complete(name).await?;
    }
    Ok(())
}

/// Case P117: templates get bindings, and these get Works.
async fn propagation_controller(server: ApiKind) -> Result<()> {
    let mut fleet = PropagationFleet::start(server, 1).await?;
    create_templates(&fleet).await?;
    let _others = [
        fleet.start_program(Binary::Scheduler, &[]).await?,
        fleet
            .start_program(Binary::ExecutionController, &[])
            .await?,
    ];
    let proxy = ApiProxy::default();
    fleet.karmada.interpose(&proxy)?;
    let once = [
        "POST resourcebindings.work.karmada.io",
        "POST works.work.karmada.io",
    ];
    let program = Binary::PropagationController;
    let start = async || fleet.start_program(program, &[ALONE]).await;
    survives(&proxy, &once, start, are_applied(&fleet)).await
}

/// Case P117: bindings get clusters.
async fn scheduler(server: ApiKind) -> Result<()> {
    let mut fleet = PropagationFleet::start(server, 1).await?;
    create_templates(&fleet).await?;
    let _others = [
        fleet
            .start_program(Binary::PropagationController, &[])
            .await?,
        fleet
            .start_program(Binary::ExecutionController, &[])
            .await?,
    ];
    for name in NAMES {
        let binding = names::binding("ConfigMap", name);
        until(&fleet.bindings(), &binding, "made", |found| found.is_some()).await?;
    }
    let proxy = ApiProxy::default();
    fleet.karmada.interpose(&proxy)?;
    let once = ["PATCH resourcebindings.work.karmada.io"];
    let start = async || fleet.start_program(Binary::Scheduler, &[ALONE]).await;
    survives(&proxy, &once, start, are_applied(&fleet)).await
}

/// Case P117: Works become objects of the member, whose watches are late, too.
async fn execution_controller(server: ApiKind) -> Result<()> {
    let profile = Profile::Debug;
    let mut fleet = PropagationFleet::start_unjoined([server; 2], 1, profile).await?;
    let proxy = ApiProxy::default();
    fleet.member_mut(MEMBER).interpose(&proxy)?;
    fleet.join(MEMBER).await?;
    create_templates(&fleet).await?;
    let _others = [
        fleet
            .start_program(Binary::PropagationController, &[])
            .await?,
        fleet.start_program(Binary::Scheduler, &[]).await?,
    ];
    for name in NAMES {
        let work = PropagationFleet::work_name("ConfigMap", name);
        until(&fleet.works(MEMBER), &work, "made", |work| work.is_some()).await?;
    }
    fleet.karmada.interpose(&proxy)?;
    let program = Binary::ExecutionController;
    let start = async || fleet.start_program(program, &[ALONE]).await;
    survives(&proxy, &["POST configmaps"], start, are_applied(&fleet)).await
}

/// Creates templates and a policy that sends them to every cluster.
async fn create_templates(fleet: &PropagationFleet) -> Result<()> {
    let maps: Api<ConfigMap> = namespaced(fleet.karmada.client());
    for name in NAMES {
        let map = json!({ "metadata": { "name": name }, "data": { "a": "b" } });
        create(&maps, map).await?;
    }
    let selectors =
        NAMES.map(|name| json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": name }));
    let spec = json!({ "resourceSelectors": selectors, "placement": {} });
    fleet.create_policy("all", spec).await
}

async fn are_applied(fleet: &PropagationFleet) -> Result<()> {
    for name in NAMES {
        is_fully_applied(fleet, &names::binding("ConfigMap", name)).await?;
    }
    Ok(())
}

/// Case P117: clusters join a fleet.
async fn cluster_controller(server: ApiKind) -> Result<()> {
    let count = u8::try_from(NAMES.len())?;
    let mut fleet = PropagationFleet::start_unjoined([server; 2], count, Profile::Debug).await?;
    fleet.karmada.start_controllers().await?;
    let rights = "propagation/cluster/cluster-controller.yaml";
    manifests::apply(&fleet.karmada.client(), rights).await?;
    fleet.karmada.guard(["admission/clusters.yaml"]).await?;
    let proxy = ApiProxy::default();
    for member in members() {
        fleet.member_mut(member).interpose(&proxy)?;
        fleet.register(member).await?;
    }
    fleet.karmada.interpose(&proxy)?;
    let converged = async {
        let clusters: Api<ClusterView> = Api::all(fleet.karmada.client());
        for member in members() {
            until(&clusters, &member.name(), "usable", |cluster| {
                cluster.is_some_and(|cluster| is_ready(cluster) && cluster.spec.taints.is_empty())
            })
            .await?;
        }
        anyhow::Ok(())
    };
    let program = Binary::ClusterController;
    let start = async || fleet.start_program(program, &[ALONE]).await;
    survives(&proxy, &["POST namespaces"], start, converged).await
}

/// Returns as many members as there are [`NAMES`].
fn members() -> impl Iterator<Item = Member> {
    (1..).take(NAMES.len()).map(Member)
}

on_both!(
    long: remedy_controller,
    ingress_controller,
    placement_controller,
    placement_agent,
    propagation_controller,
    scheduler,
    execution_controller,
    cluster_controller,
);

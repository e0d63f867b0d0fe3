//! Two versions of the programs that propagate side by side, as during a rollout: under one lease, in both orders.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, Ordering},
};

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, ResourceExt};
use serde_json::json;
use tokio::time::Instant;

use crate::{
    api::{create, merge},
    control_plane::ApiKind,
    fleet::NAMESPACE,
    programs::Profile,
    propagation::{PropagationFleet, namespaced},
    wait::until,
};

const MEMBERS: u8 = 3;
/// The templates that are edited meanwhile, and as many that nobody touches.
const TEMPLATES: u16 = 20;
const EDITED: &str = "edited";
const STILL: &str = "still";
const KEY: &str = "turn";

/// Hands a fleet over from the earlier version to this one and back, while templates are edited, and passes a line of each
/// handover to `print`.
///
/// # Errors
/// An edit does not reach every member, or anything is written that belongs to a template which nobody touched.
pub async fn side_by_side(mut print: impl FnMut(&str)) -> Result<()> {
    let kinds = [ApiKind::Real, ApiKind::Real];
    let fleet = PropagationFleet::start_on(kinds, MEMBERS, Profile::Debug).await?;
    let maps: Api<ConfigMap> = namespaced(fleet.karmada.client());
    for name in names(EDITED).chain(names(STILL)) {
        let map = json!({ "metadata": { "name": name }, "data": { KEY: "0" } });
        create(&maps, map).await?;
    }
    let selector = json!({ "apiVersion": "v1", "kind": "ConfigMap", "namespace": NAMESPACE });
    let policy = json!({ "resourceSelectors": [selector], "placement": {} });
    fleet.create_policy("all", policy).await?;

    let mut leading = fleet.run_of(Profile::Earlier).await?;
    have(&fleet, EDITED, 0).await?;
    have(&fleet, STILL, 0).await?;
    leading.rest().await?;
    let mut turn = 0;
    for (next, order) in [
        (Profile::Debug, "from the earlier version to this one"),
        (Profile::Earlier, "from this version to the earlier one"),
    ] {
        let before = versions(&fleet).await?;
        let standby = fleet.run_of(next).await?;
        let (began, stopped) = (Instant::now(), AtomicBool::new(false));
        let stopping = async {
            let done = leading.stop().await;
            stopped.store(true, Ordering::Relaxed);
            done
        };
        let (done, edited) = tokio::join!(stopping, edit(&maps, turn, &stopped));
        done?;
        turn = edited?;
        have(&fleet, EDITED, turn).await?;
        let took = began.elapsed();
        standby.rest().await?;
        let after = versions(&fleet).await?;
        ensure!(after == before, "{before:?}\n{after:?}");
        print(&format!(
            "{order}: {turn} edits of each of {TEMPLATES} templates are in {MEMBERS} members after {took:.1?}; nothing else was written",
        ));
        leading = standby;
    }
    leading.stop().await
}

fn names(prefix: &str) -> impl Iterator<Item = String> {
    (1..=TEMPLATES).map(move |nth| format!("{prefix}{nth}"))
}

/// Edits the templates again and again until `stopped`, and once more. Returns the number of the last turn.
async fn edit(maps: &Api<ConfigMap>, mut turn: u32, stopped: &AtomicBool) -> Result<u32> {
    loop {
        let is_last = stopped.load(Ordering::Relaxed);
        turn += 1;
        for name in names(EDITED) {
            let patch = json!({ "data": { KEY: turn.to_string() } });
            merge(maps, &name, &patch).await?;
        }
        if is_last {
            return Ok(turn);
        }
    }
}

/// Waits until every member has the templates of these names as they were in `turn`.
async fn have(fleet: &PropagationFleet, prefix: &str, turn: u32) -> Result<()> {
    let turn = turn.to_string();
    for member in fleet.members() {
        let copies: Api<ConfigMap> = namespaced(fleet.member(member).client());
        for name in names(prefix) {
            until(&copies, &name, "edited", |copy: Option<&ConfigMap>| {
                let data = copy.and_then(|copy| copy.data.as_ref());
                data.is_some_and(|data| data.get(KEY) == Some(&turn))
            })
            .await?;
        }
    }
    Ok(())
}

/// Returns the versions of the templates that nobody touches, and of all that is made of them.
async fn versions(fleet: &PropagationFleet) -> Result<BTreeMap<String, Option<String>>> {
    let mut versions = BTreeMap::new();
    let maps: Api<ConfigMap> = namespaced(fleet.karmada.client());
    for name in names(STILL) {
        let mut note = |what: &str, version| versions.insert(format!("{what} of {name}"), version);
        note("template", maps.get(&name).await?.resource_version());
        let binding = fleet.bindings().get(&format!("{name}-configmap")).await?;
        note("binding", binding.resource_version());
        for member in fleet.members() {
            let work = PropagationFleet::work_name("ConfigMap", &name);
            let work = fleet.works(member).get(&work).await?;
            note(
                &format!("Work in {}", member.name()),
                work.resource_version(),
            );
            let copies: Api<ConfigMap> = namespaced(fleet.member(member).client());
            let copy = copies.get(&name).await?;
            note(
                &format!("copy in {}", member.name()),
                copy.resource_version(),
            );
        }
    }
    Ok(versions)
}

//! The remedy-controller with many clusters.

use std::time::Duration;

use anyhow::Result;
use karmada_api::{Cluster, TRAFFIC_CONTROL, condition::DNS_READY};
use kube::{Api, api::ApiResource};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{AT_ONCE, Seen, all, leads, memory};
use crate::{
    control_plane::ApiKind,
    fleet::{Fleet, on_dns},
    programs::Profile,
};

/// The number of measurements from a condition to the actions.
const TIMES: usize = 101;

/// Runs the benchmark with `clusters` clusters and passes each line of its results to `print`.
///
/// # Errors
/// A part does not start, or a change is not seen within five minutes.
pub async fn bench(clusters: u16, mut print: impl FnMut(&str)) -> Result<()> {
    let fleet = Fleet::start(ApiKind::Real, Profile::Dist).await?;
    let names: Vec<String> = (1..=clusters).map(|nth| format!("member{nth}")).collect();
    let count = names.len();
    print(&format!("creating {count} clusters"));
    all(names.iter().map(|name| fleet.create_cluster(name))).await?;
    let resource = ApiResource::erase::<Cluster>(&());
    let mut seen = Seen::watch(Api::all_with(fleet.karmada.client(), &resource)).await?;

    print("measuring the limits");
    let blocked = json!({ "remedyActions": [TRAFFIC_CONTROL] });
    let free = json!({ "remedyActions": null });
    let one = &names[0];
    let limit_applied = seen.patch_all(&names, &blocked, count).await?;
    let limit_lifted = seen.patch_all(&names, &free, 0).await?;
    // The condition's patch and its event, then the actions' patch and its event.
    let limit_followed = 2 * p50(&mut seen, one, [&blocked, &free]).await?;

    print("measuring the controller");
    let controller = fleet.remedy_controller().await?;
    leads(&controller, "karmada_remedy_controller_lease_holder").await?;
    let began = Instant::now();
    let to_all = json!({ "actions": [TRAFFIC_CONTROL] });
    fleet.create_remedy("all", to_all).await?;
    let applied = seen.until_count(count).await? - began;
    let began = Instant::now();
    fleet.delete_remedy("all").await?;
    let lifted = seen.until_count(0).await? - began;
    fleet.create_remedy("dns", on_dns()).await?;
    let [dead, well] = ["False", "True"].map(|status| {
        json!({ "conditions": [{
            "type": DNS_READY, "status": status, "reason": "Bench", "message": "",
            "lastTransitionTime": "2026-11-20T08:00:00Z",
        }] })
    });
    let followed = p50(&mut seen, one, [&dead, &well]).await?;

    print(&format!(
        "{count} clusters; in parentheses the limit: the same patches by a bare client, {AT_ONCE} at a time"
    ));
    print(&format!(
        "a Remedy for all clusters applied: {applied:.2?} ({limit_applied:.2?})"
    ));
    print(&format!(
        "and deleted again: {lifted:.2?} ({limit_lifted:.2?})"
    ));
    print(&format!(
        "from a condition to the actions, p50 of {TIMES}: {followed:.1?} ({limit_followed:.1?})"
    ));
    print(&memory(&controller)?);
    controller.stop().await
}

/// Patches a cluster's status repeatedly so that its actions are set and cleared, and returns the median
/// time until the watch shows the change.
async fn p50(seen: &mut Seen, name: &str, [giving, taking]: [&Value; 2]) -> Result<Duration> {
    let mut times = Vec::new();
    for nth in 0..TIMES {
        let gives = nth % 2 == 0;
        let began = Instant::now();
        seen.patch(name, if gives { giving } else { taking })
            .await?;
        let acted = seen
            .until(|acted_on| acted_on.contains(name) == gives)
            .await?;
        times.push(acted - began);
    }
    // An odd number of patches leaves the actions set.
    seen.patch(name, taking).await?;
    seen.until(|acted_on| !acted_on.contains(name)).await?;
    times.sort_unstable();
    Ok(times[TIMES / 2])
}

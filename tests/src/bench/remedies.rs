//! The remedy-controller with many clusters.

use std::time::Duration;

use anyhow::Result;
use karmada_api::{Cluster, TRAFFIC_CONTROL, condition::DNS_READY};
use kube::Api;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    AT_ONCE, Glance, Pairs, ROUNDS, Seen, all, beside_a_watch, leads, memory, patch, rests,
};
use crate::{
    control_plane::ApiKind,
    fleet::{Fleet, on_dns},
    programs::{Profile, Running},
};

/// The prefix of the controller's metrics.
const METRICS: &str = "karmada_remedy_controller";
/// The number of measurements from a condition to the actions.
const TIMES: usize = 101;

/// The number of clusters that a Remedy beside the measured ones names.
const NAMED: usize = 10;

/// Runs the benchmark with `clusters` clusters and `remedies` Remedies beside the measured ones, and passes
/// each line of its results to `print`.
///
/// # Errors
/// A part does not start, or a change is not seen within five minutes.
pub async fn bench(clusters: u16, remedies: u16, mut print: impl FnMut(&str)) -> Result<()> {
    let fleet = Fleet::start(ApiKind::Real, Profile::Dist).await?;
    let names: Vec<String> = (1..=clusters).map(|nth| format!("member{nth}")).collect();
    let count = names.len();
    print(&format!("creating {count} clusters"));
    all(names.iter().map(|name| fleet.create_cluster(name))).await?;
    let beside = (0..remedies).map(|nth| beside(&fleet, &names, nth));
    all(beside).await?;
    let mut seen =
        Seen::actions::<Cluster>(|resource| Api::all_with(fleet.karmada.client(), resource))
            .await?;
    let mut pairs = [const { Pairs(Vec::new()) }; 3];
    let mut resident = String::new();
    for _ in 0..ROUNDS {
        let limits = limits(&mut seen, &names).await?;
        let controller = fleet.remedy_controller().await?;
        leads(&controller, METRICS).await?;
        let times = times(&fleet, &controller, &mut seen, &names).await?;
        resident = memory(&controller)?;
        controller.stop().await?;
        for ((pair, time), limit) in pairs.iter_mut().zip(times).zip(limits) {
            pair.add(time, limit);
        }
    }
    let [applied, lifted, followed] = pairs;
    print(&format!(
        "{count} clusters, {remedies} Remedies beside; in parentheses the limit: the same patches by a bare client, {AT_ONCE} at a time"
    ));
    print(&format!("a Remedy for all clusters applied: {applied}"));
    print(&format!("and deleted again: {lifted}"));
    print(&format!(
        "from a condition to the actions, p50 of {TIMES}: {followed}"
    ));
    print(&resident);
    Ok(())
}

/// Creates a Remedy about the DNS of some clusters.
async fn beside(fleet: &Fleet, names: &[String], nth: u16) -> Result<()> {
    let from = usize::from(nth) * NAMED % names.len();
    let some: Vec<&String> = names.iter().cycle().skip(from).take(NAMED).collect();
    let mut spec = on_dns();
    spec["clusterAffinity"] = json!({ "clusterNames": some });
    fleet.create_remedy(&format!("beside{nth}"), spec).await
}

/// Makes the controller's patches, and returns the times until they have been seen.
async fn limits(seen: &mut Seen<Glance>, names: &[String]) -> Result<[Duration; 3]> {
    let blocked = json!({ "remedyActions": [TRAFFIC_CONTROL] });
    let free = json!({ "remedyActions": null });
    let idle = seen.objects.clone();
    beside_a_watch(idle, async {
        let applied = seen.patch_all(names, &blocked, names.len()).await?;
        let lifted = seen.patch_all(names, &free, 0).await?;
        // The condition's patch and its event, then the actions' patch and its event.
        let followed = 2 * p50(seen, &names[0], [&blocked, &free]).await?;
        Ok([applied, lifted, followed])
    })
    .await
}

/// Returns the times until the running controller has made its patches.
async fn times(
    fleet: &Fleet,
    controller: &Running,
    seen: &mut Seen<Glance>,
    names: &[String],
) -> Result<[Duration; 3]> {
    rests(controller, METRICS).await?;
    let began = Instant::now();
    let to_all = json!({ "actions": [TRAFFIC_CONTROL] });
    fleet.create_remedy("all", to_all).await?;
    let applied = seen.until_count(names.len()).await? - began;
    rests(controller, METRICS).await?;
    let began = Instant::now();
    fleet.delete_remedy("all").await?;
    let lifted = seen.until_count(0).await? - began;
    fleet.create_remedy("dns", on_dns()).await?;
    rests(controller, METRICS).await?;
    let [dead, well] = ["False", "True"].map(|status| {
        json!({ "conditions": [{
            "type": DNS_READY, "status": status, "reason": "Bench", "message": "",
            "lastTransitionTime": "2026-11-20T08:00:00Z",
        }] })
    });
    let followed = p50(seen, &names[0], [&dead, &well]).await?;
    fleet.delete_remedy("dns").await?;
    Ok([applied, lifted, followed])
}

/// Patches a cluster's status repeatedly so that its actions are set and cleared, and returns the median
/// time until the watch shows the change.
async fn p50(
    seen: &mut Seen<Glance>,
    name: &str,
    [giving, taking]: [&Value; 2],
) -> Result<Duration> {
    let mut times = Vec::new();
    for nth in 0..TIMES {
        let gives = nth % 2 == 0;
        let began = Instant::now();
        patch(&seen.objects, name, if gives { giving } else { taking }).await?;
        let acted = seen
            .until(|acted_on| acted_on.contains(name) == gives)
            .await?;
        times.push(acted - began);
    }
    // An odd number of patches leaves the actions set.
    patch(&seen.objects, name, taking).await?;
    seen.until(|acted_on| !acted_on.contains(name)).await?;
    times.sort_unstable();
    Ok(times[TIMES / 2])
}

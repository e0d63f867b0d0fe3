//! The remedy-controller with many clusters.

use std::{cell::RefCell, collections::HashMap, time::Duration};

use anyhow::{Context, Result};
use futures::{StreamExt, TryStreamExt, channel::mpsc, stream};
use karmada_api::{Cluster, TRAFFIC_CONTROL, condition::DNS_READY};
use kube::Api;
use serde_json::{Value, json};
use tokio::time::{Instant, interval, timeout};

use super::{
    AT_ONCE, Glance, Pairs, ROUNDS, SEEN_WITHIN, Seen, all, beside_a_watch, leads, memory, patch,
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

/// The time for which conditions flip, of one cluster in [`OF`] each second.
const FLIPPING: Duration = Duration::from_mins(1);
const OF: u64 = 100;
/// The number of measurements of a round.
const MEASURED: usize = 5;

/// The Remedy that blocks every cluster.
const ALL: &str = "all";
/// The number of clusters that a Remedy beside the measured ones names.
const NAMED: usize = 10;

/// Runs the benchmark with `clusters` clusters and `remedies` Remedies beside the measured ones, and passes
/// each line of its results to `print`.
///
/// # Errors
/// A part does not start, or no change is seen for five minutes.
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
    let mut pairs = [const { Pairs(Vec::new()) }; MEASURED];
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
    let restarted = restart(&fleet, &mut seen, names.len()).await?;
    let [applied, lifted, followed, flipped, last] = pairs;
    print(&format!(
        "{count} clusters, {remedies} Remedies beside; in parentheses the limit: the same patches by a bare client, {AT_ONCE} at a time"
    ));
    print(&format!("a Remedy for all clusters applied: {applied}"));
    print(&format!("and deleted again: {lifted}"));
    print(&format!(
        "from a condition to the actions, p50 of {TIMES}: {followed}"
    ));
    print(&format!(
        "the same while 1 of {OF} conditions flips each second for a minute, p50: {flipped}"
    ));
    print(&format!("and p99: {last}"));
    print(&restarted);
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

/// Returns the status of a cluster that has the actions, or none.
fn actions(are_set: bool) -> Value {
    json!({ "remedyActions": are_set.then_some([TRAFFIC_CONTROL]) })
}

/// Returns the status of a cluster whose DNS condition is this.
fn verdict(status: &str) -> Value {
    json!({ "conditions": [{
        "type": DNS_READY, "status": status, "reason": "Bench", "message": "",
        "lastTransitionTime": "2026-11-20T08:00:00Z",
    }] })
}

/// Makes the controller's patches, and returns the times until they have been seen.
async fn limits(seen: &mut Seen<Glance>, names: &[String]) -> Result<[Duration; MEASURED]> {
    let [blocked, free] = [true, false].map(actions);
    let idle = seen.objects.clone();
    beside_a_watch(idle, async {
        let applied = seen.patch_all(names, &blocked, names.len()).await?;
        let lifted = seen.patch_all(names, &free, 0).await?;
        // The condition's patch and its event, then the actions' patch and its event.
        let followed = 2 * p50(seen, &names[0], [&blocked, &free]).await?;
        let [dead, well] = ["False", "True"].map(verdict);
        let steps = [(&dead, Some(&blocked)), (&well, Some(&free))];
        let [flipped, last] = flips(seen, names, steps).await?;
        Ok([applied, lifted, followed, flipped, last])
    })
    .await
}

/// Returns the times until the running controller has made its patches.
async fn times(
    fleet: &Fleet,
    controller: &Running,
    seen: &mut Seen<Glance>,
    names: &[String],
) -> Result<[Duration; MEASURED]> {
    controller.rests(METRICS).await?;
    let began = Instant::now();
    block_all(fleet).await?;
    let applied = seen.until_count(names.len()).await? - began;
    controller.rests(METRICS).await?;
    let began = Instant::now();
    fleet.delete_remedy(ALL).await?;
    let lifted = seen.until_count(0).await? - began;
    fleet.create_remedy("dns", on_dns()).await?;
    controller.rests(METRICS).await?;
    let [dead, well] = ["False", "True"].map(verdict);
    let followed = p50(seen, &names[0], [&dead, &well]).await?;
    let [flipped, last] = flips(seen, names, [(&dead, None), (&well, None)]).await?;
    fleet.delete_remedy("dns").await?;
    Ok([applied, lifted, followed, flipped, last])
}

async fn block_all(fleet: &Fleet) -> Result<()> {
    let to_all = json!({ "actions": [TRAFFIC_CONTROL] });
    fleet.create_remedy(ALL, to_all).await
}

/// Restarts the controller once all clusters have their actions, and returns its writes.
async fn restart(fleet: &Fleet, seen: &mut Seen<Glance>, clusters: usize) -> Result<String> {
    let controller = fleet.remedy_controller().await?;
    block_all(fleet).await?;
    seen.until_count(clusters).await?;
    controller.rests(METRICS).await?;
    controller.stop().await?;
    let before = fleet.karmada.successful_writes().await?;
    let began = Instant::now();
    let controller = fleet.remedy_controller().await?;
    leads(&controller, METRICS).await?;
    controller.rests(METRICS).await?;
    let at_rest = began.elapsed();
    let writes = fleet.karmada.successful_writes().await?.since(&before);
    controller.stop().await?;
    Ok(format!(
        "restarted with every cluster blocked: {writes}, at rest after {at_rest:.1?}"
    ))
}

/// Patches the statuses of some clusters so that their actions are set, one of [`OF`] clusters each second
/// for half of [`FLIPPING`], and then so that they are cleared: first with the condition and then, where it
/// is given and as a controller would, with the actions. Returns the median and the 99th percentile of the
/// times until the watch shows the change.
async fn flips(
    seen: &mut Seen<Glance>,
    names: &[String],
    patches: [(&Value, Option<&Value>); 2],
) -> Result<[Duration; 2]> {
    let pause = Duration::from_secs(OF) / u32::try_from(names.len())?;
    let flipping = (FLIPPING / 2).as_millis().div_ceil(pause.as_millis());
    let flipping = &names[..usize::try_from(flipping)?];
    let objects = seen.objects.clone();
    let mut times = Vec::new();
    for ((condition, actions), are_set) in patches.into_iter().zip([true, false]) {
        let began = RefCell::new(HashMap::new());
        let ticks = stream::unfold(interval(pause), async |mut pace| {
            pace.tick().await;
            Some(((), pace))
        });
        let paced = stream::iter(flipping).zip(ticks);
        let (flipped, following) = mpsc::unbounded();
        let patching = paced.map(|(name, ())| anyhow::Ok(name));
        let patching = patching.try_for_each_concurrent(AT_ONCE, async |name| {
            began.borrow_mut().insert(name, Instant::now());
            patch(&objects, name, condition).await?;
            let sent = flipped.unbounded_send(name);
            sent.map_err(mpsc::TrySendError::into_send_error)?;
            Ok(())
        });
        // Beside the conditions, as a controller's writes are.
        let following = following.take(flipping.len()).map(anyhow::Ok);
        let following = following.try_for_each_concurrent(AT_ONCE, async |name| match actions {
            Some(actions) => patch(&objects, name, actions).await,
            None => Ok(()),
        });
        let watching = async {
            let until = times.len() + flipping.len();
            while times.len() < until {
                seen.next().await?;
                began.borrow_mut().retain(|name, at| {
                    let is_done = seen.of_interest.contains(*name) == are_set;
                    if is_done {
                        times.push(at.elapsed());
                    }
                    !is_done
                });
            }
            Ok(())
        };
        let all = timeout(SEEN_WITHIN, async {
            tokio::try_join!(patching, following, watching)
        });
        all.await.context("not seen in time")??;
    }
    times.sort_unstable();
    Ok([times[times.len() / 2], times[times.len() * 99 / 100]])
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

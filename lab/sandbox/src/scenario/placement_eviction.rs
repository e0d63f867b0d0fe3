use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::script::{MEMBER, Script};
use crate::fault::DnsFault;
use crate::hub::STORE;
use crate::picture::{PlacedPhase, State};
use crate::sandbox::Action;

/// The time that a change takes to reach a cluster, and its pods to become ready.
const MOVED: Duration = Duration::from_secs(10);

pub(super) async fn play(script: &Script<'_>) -> Result<()> {
    let first = has_store(&script.state());
    let cluster = first.first().context("nobody has the store")?.clone();
    ensure!(
        !first.iter().any(|name| name == MEMBER),
        "expected: {MEMBER} does not have the store; observed: {first:?} have it"
    );

    let line = format!("cordoning {cluster}: it gets nothing new");
    let cordon = Action::Cordon {
        cluster: cluster.clone(),
    };
    script.act(&line, cordon).await?;
    move_between(script, &cluster, MEMBER).await?;
    let uncordon = Action::Uncordon {
        cluster: cluster.clone(),
    };
    let line = format!("uncordoning {cluster}, which has the store no longer");
    script.act(&line, uncordon).await?;

    script.dns(DnsFault::Stop).await?;
    let verdict = script.thresholds.threshold + 2 * script.thresholds.period;
    let sick = script
        .reach("the cluster is tainted", verdict, is_sick)
        .await?;
    ensure!(
        has_store(&sick).iter().any(|name| name == MEMBER),
        "expected: what is in {MEMBER} stays; observed: {:?} have the store",
        has_store(&sick)
    );
    move_between(script, MEMBER, &cluster).await?;

    script.dns(DnsFault::None).await?;
    script
        .reach("the cluster has no taint", verdict, |state| !is_sick(state))
        .await?;
    ensure!(
        has_store(&script.state()) == first,
        "expected: the store stays; observed: {:?} have it",
        has_store(&script.state())
    );
    Ok(())
}

/// Evicts the store from one cluster, and waits until it runs in the other.
async fn move_between(script: &Script<'_>, from: &str, to: &str) -> Result<()> {
    let line = format!("evicting the store from {from}");
    let evict = Action::Evict {
        cluster: from.to_owned(),
    };
    script.act(&line, evict).await?;
    let wanted = script.state().placements.wanted;
    let what = format!("the store runs in {to} in place of {from}");
    script
        .reach(&what, MOVED, |state| {
            let clusters = [from, to].map(|name| state.placements.cluster(name));
            let [from, to] = clusters.map(|cluster| cluster.map(|it| &it.runs));
            from == Some(&None) && to == Some(&wanted)
        })
        .await?;
    Ok(())
}

/// Returns `true` if the member has the taint of a cluster with dead DNS.
fn is_sick(state: &State) -> bool {
    let member = state.placements.cluster(MEMBER);
    member.is_some_and(|member| member.sick)
}

/// Returns the clusters that have the store.
fn has_store(state: &State) -> Vec<String> {
    let store = state.placements.named(STORE);
    let clusters = store.into_iter().flat_map(|store| &store.clusters);
    let picked = clusters.filter(|it| it.phase != PlacedPhase::NotPicked);
    picked.map(|it| it.name.clone()).collect()
}

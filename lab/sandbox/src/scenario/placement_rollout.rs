use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::print::stamp;
use super::script::Script;
use crate::hub::STORE;
use crate::picture::{PlacedPhase, PlacementPhase, PlacementState, State};
use crate::sandbox::Action;
use crate::terminal::print;

/// The time that a change takes to reach a cluster, and its pods to become ready, or to be given up.
const ROLLED_OUT: Duration = Duration::from_secs(10);
/// The requests to the store that must all succeed while a rollout is stuck.
const WHILE_STUCK: u64 = 100;

pub(super) async fn play(script: &Script<'_>) -> Result<()> {
    let before = script.state();
    let [first, second] = picked(&before)?;
    let old = before.placements.wanted.clone();

    let line = "giving the store a version whose pods never become ready";
    script.act(line, Action::Break {}).await?;
    let stuck = script
        .reach("the first wave is stuck", ROLLED_OUT, |state| {
            of_store(state).is_some_and(|it| it.phase == PlacementPhase::Stuck)
        })
        .await?;
    stops_at_first_wave(&stuck)?;
    let enough =
        |state: &State| state.placements.requests() >= stuck.placements.requests() + WHILE_STUCK;
    let later = script
        .reach("requests that continue", ROLLED_OUT, enough)
        .await?;
    stops_at_first_wave(&later)?;
    none_failed(&before, &later)?;
    for cluster in [&first, &second] {
        let [then, now] = [&stuck, &later].map(|state| state.placements.cluster(cluster));
        let (then, now) = then.zip(now).context("a cluster is gone")?;
        ensure!(
            now.runs == old && now.requests > then.requests,
            "expected: the pods of {old:?} go on serving in {cluster}; observed: {now:?} after {then:?}"
        );
    }

    let line = "mending it: giving the store the next version";
    script.act(line, Action::RollOut {}).await?;
    let complete = script
        .reach("every picked cluster runs it", ROLLED_OUT, |state| {
            let wanted = &state.placements.wanted;
            let picked = [&first, &second].map(|cluster| state.placements.cluster(cluster));
            *wanted != later.placements.wanted
                && (picked.iter()).all(|cluster| cluster.is_some_and(|it| it.runs == *wanted))
                && state.placements.is_complete()
        })
        .await?;
    let waves = waves(&complete);
    ensure!(
        waves == [1, 2],
        "expected: one cluster gets it after the other; observed: waves {waves:?}"
    );
    none_failed(&before, &complete)?;
    let served = complete.placements.requests() - before.placements.requests();
    print(&format!(
        "{}  {served} requests to the store meanwhile, and none failed",
        stamp(script.began.elapsed())
    ));
    Ok(())
}

/// Checks that one cluster has the latest, and that the other waits for it.
fn stops_at_first_wave(state: &State) -> Result<()> {
    let store = of_store(state).context("the placement is gone")?;
    let mut phases: Vec<_> = store.clusters.iter().map(|it| it.phase).collect();
    phases.sort_unstable();
    ensure!(
        phases
            == [
                PlacedPhase::NotPicked,
                PlacedPhase::Waiting,
                PlacedPhase::Stuck
            ],
        "expected: the version is stuck in one cluster, and another waits; observed: {store:?}"
    );
    Ok(())
}

fn none_failed(before: &State, now: &State) -> Result<()> {
    let failed = now.placements.errors() - before.placements.errors();
    ensure!(
        failed == 0,
        "expected: no request to the store fails; observed: {failed} failed"
    );
    Ok(())
}

fn of_store(state: &State) -> Option<&PlacementState> {
    state.placements.named(STORE)
}

/// Returns the two clusters that the placement of the store picks.
fn picked(state: &State) -> Result<[String; 2]> {
    let clusters = of_store(state).map(|store| &store.clusters);
    let clusters = clusters.into_iter().flatten();
    let picked = clusters.filter(|it| it.phase != PlacedPhase::NotPicked);
    let names: Vec<_> = picked.map(|it| it.name.clone()).collect();
    let found = names.try_into();
    found.map_err(|names| anyhow::anyhow!("expected: two clusters are picked; observed: {names:?}"))
}

fn waves(state: &State) -> Vec<usize> {
    let clusters = of_store(state).map(|store| &store.clusters);
    let mut waves: Vec<_> = clusters
        .into_iter()
        .flatten()
        .filter_map(|it| it.wave)
        .collect();
    waves.sort_unstable();
    waves
}

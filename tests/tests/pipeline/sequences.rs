//! A few of the simulation's sequences on real API servers, in real time.

use std::time::Duration;

use anyhow::{Context, Result};
use pipeline_tests::{
    control_plane::{ApiKind, ControlPlane},
    crds, netns, test_name,
};
use simulation::convergence::{Convergence, OnRealApis, Remote};
use simulation::harness::{FIRST_SEED, sequence_of};

/// Sequences of each test.
const SEQUENCES: u64 = 5;
/// The time in which no write may follow. A failed reconcile is requeued sooner unless it has failed
/// often.
const QUIET: Duration = Duration::from_secs(6);

fn remote(plane: &ControlPlane) -> Remote {
    Remote {
        client: plane.client(),
        kubeconfig: plane.kubeconfig_path().to_owned(),
    }
}

async fn converges(karmada: &ControlPlane, gateway: &ControlPlane, seed: u64) -> Result<usize> {
    let steps = sequence_of::<Convergence>(seed);
    let fleet = OnRealApis::play(remote(karmada), remote(gateway), &steps).await?;
    fleet.settled().await?;
    let before = [
        karmada.successful_writes().await?,
        gateway.successful_writes().await?,
    ];
    tokio::time::sleep(QUIET).await;
    for (plane, before) in [karmada, gateway].into_iter().zip(before) {
        let written = plane.successful_writes().await?.since(&before);
        assert_eq!(written.to_string(), "no writes", "seed {seed}");
    }
    fleet.settled().await?;
    fleet.end().await?;
    Ok(steps.len())
}

/// Plays [`SEQUENCES`] sequences from this seed on, on one pair of servers.
#[expect(clippy::print_stdout, reason = "libtest captures it")]
async fn converge_from(first: u64) -> Result<()> {
    let (karmada, gateway) = tokio::try_join!(
        ControlPlane::start("karmada", ApiKind::Real),
        ControlPlane::start("gateway", ApiKind::Real),
    )?;
    // Sequences have remedies with empty lists, too.
    crds::install_without_rules(&karmada.client()).await?;
    let mut steps = 0;
    for seed in first..first + SEQUENCES {
        let played = converges(&karmada, &gateway, seed).await;
        steps += played.with_context(|| {
            format!("seed {seed}: cargo xtask simulate convergence --seed {seed} --sequences 1 shows the steps")
        })?;
    }
    println!("converged on real API servers: {SEQUENCES} sequences, {steps} steps, seed {first}");
    Ok(())
}

// Two tests, because libtest can run them side by side: together they take longer than any other.
mod real {
    use super::*;

    #[test]
    #[ignore = "long"]
    fn random_sequences_converge() {
        netns::isolated(test_name!(), async || converge_from(FIRST_SEED).await);
    }

    #[test]
    #[ignore = "long"]
    fn more_random_sequences_converge() {
        netns::isolated(test_name!(), async || {
            converge_from(FIRST_SEED + SEQUENCES).await
        });
    }
}

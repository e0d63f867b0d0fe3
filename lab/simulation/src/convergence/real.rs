//! The same sequences on real API servers, in real time: without faults, which these do not have on
//! demand, and with the final state alone looked at.

use std::time::Duration;

use anyhow::{Result, bail, ensure};
use http::Method;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::apis::{Apis, LEASES, Remote};
use super::kinds::{Kind, Side};
use super::program::Program;
use super::record::Record;
use super::settled;
use super::step::{REPLICAS, Step};
use super::world::World;

/// A lease that nobody gave back runs out in 15 s, and a reconcile that failed comes back later.
const SETTLES_WITHIN: Duration = Duration::from_secs(90);
const POLL: Duration = Duration::from_millis(500);
/// How many looks in a row must find everything as it must be.
const LOOKS: u32 = 4;
/// The longest wait between two steps.
const LONGEST_WAIT: u32 = 3_000;

/// A small fleet on two real API servers, with two replicas of each program.
#[derive(Debug)]
pub struct OnRealApis {
    world: World,
}

impl OnRealApis {
    /// Plays a sequence. The first server has the kinds of Karmada.
    ///
    /// # Errors
    /// When a step cannot be taken, or a program ends by itself.
    pub async fn play(karmada: Remote, gateway: Remote, steps: &[Step]) -> Result<Self> {
        let apis = Apis::real(karmada, gateway);
        let mut world = World::new(apis, Record::default()).await?;
        world.start_all().await?;
        for step in steps {
            world.take(&shortened(step)).await?;
            if let Some(ended) = world.replicas.ended() {
                bail!(ended);
            }
        }
        world.replicas.start_missing(&world.apis).await?;
        Ok(Self { world })
    }

    /// Waits until everything is as it must be.
    ///
    /// # Errors
    /// With what is not.
    pub async fn settled(&self) -> Result<()> {
        let (begun, mut looks) = (Instant::now(), 0);
        while looks < LOOKS {
            sleep(POLL).await;
            let differences = settled::differences(&self.world.apis.objects().await?);
            looks = if differences.is_empty() { looks + 1 } else { 0 };
            ensure!(
                begun.elapsed() < SETTLES_WITHIN,
                "not settled after {SETTLES_WITHIN:?}: {}",
                differences.join("; ")
            );
        }
        Ok(())
    }

    /// Ends the programs and removes everything that the sequence made.
    ///
    /// # Errors
    /// When something cannot be removed.
    pub async fn end(mut self) -> Result<()> {
        for program in Program::ALL {
            for replica in 0..REPLICAS {
                self.world.replicas.kill(program, replica).await;
            }
            let lease = format!("{LEASES}/{}", program.name());
            let karmada = self.world.apis.access(Side::Karmada);
            karmada.write(Method::DELETE, &lease, None).await?;
        }
        for (kind, name) in self.world.apis.objects().await?.into_keys() {
            if matches!(kind, Kind::Cluster | Kind::MultiClusterIngress) {
                let body = json!({ "metadata": { "finalizers": null } });
                let access = self.world.apis.access(kind.side());
                access
                    .write(Method::PATCH, &kind.path(&name), Some(&body))
                    .await?;
            }
            self.world.apis.delete(kind, &name).await?;
        }
        ensure!(
            self.world.apis.objects().await?.is_empty(),
            "something stays"
        );
        Ok(())
    }
}

fn shortened(step: &Step) -> Step {
    match step {
        Step::Wait { millis } => Step::Wait {
            millis: (millis / 10).min(LONGEST_WAIT),
        },
        step => step.clone(),
    }
}

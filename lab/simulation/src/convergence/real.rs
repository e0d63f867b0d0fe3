//! The same sequences on real API servers, in real time. Real servers inject no faults, and only the
//! final state is checked.

use std::time::Duration;

use anyhow::{Result, bail, ensure};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::apis::{Apis, Remote, lease};
use super::fleet::Controllers;
use super::kinds::{Kind, Side};
use super::program::Role;
use super::step::Step;
use crate::harness::access::Access;
use crate::harness::{Record, Role as _, Session, World};

/// The timeout until the fleet has settled: an abandoned lease expires after 15 s, and a failed
/// reconcile may be requeued later than that.
const SETTLES_WITHIN: Duration = Duration::from_secs(90);
const POLL: Duration = Duration::from_millis(500);
/// The number of successive looks at which the objects must match the model.
const LOOKS: u32 = 4;
/// The longest wait between two steps, in milliseconds.
const LONGEST_WAIT: u32 = 3_000;

/// A small fleet on two real API servers, with two replicas of each program.
#[derive(Debug)]
pub struct OnRealApis {
    session: Session<Controllers>,
}

impl OnRealApis {
    /// Plays a sequence. The server `karmada` must have Karmada's kinds.
    ///
    /// # Errors
    /// A step cannot be applied, or a program ends by itself.
    pub async fn play(karmada: Remote, gateway: Remote, steps: &[Step]) -> Result<Self> {
        let record = Record::default();
        let world = Controllers::on(Apis::real(karmada, gateway), record.clone()).await?;
        let mut session = Session::new(world, record);
        session.start_all().await?;
        for step in steps {
            session.apply(&shortened(step)).await?;
            session.world.remember().await?;
            if let Some(ended) = session.programs.ended() {
                bail!(ended);
            }
        }
        session.revive().await?;
        Ok(Self { session })
    }

    /// Waits until the objects match the model.
    ///
    /// # Errors
    /// The differences that remain at the timeout.
    pub async fn settled(&self) -> Result<()> {
        let (begun, mut looks) = (Instant::now(), 0);
        while looks < LOOKS {
            sleep(POLL).await;
            let differences = self.session.world.differences().await?;
            looks = if differences.is_empty() { looks + 1 } else { 0 };
            ensure!(
                begun.elapsed() < SETTLES_WITHIN,
                "not settled after {SETTLES_WITHIN:?}: {}",
                differences.join("; ")
            );
        }
        Ok(())
    }

    /// Kills the programs and removes every object that the sequence created.
    ///
    /// # Errors
    /// An object cannot be removed.
    pub async fn end(mut self) -> Result<()> {
        self.session.kill_all().await;
        let apis = &self.session.world.apis;
        for program in Role::all() {
            apis.access(Side::Karmada).delete(&lease(program)).await?;
        }
        for (kind, name) in apis.objects().await?.into_keys() {
            // No controller is left that would remove these finalizers.
            if matches!(kind, Kind::Cluster | Kind::MultiClusterIngress) {
                let body = json!({ "metadata": { "finalizers": null } });
                let access = apis.access(kind.side());
                access.patch(&kind.path(&name), &body).await?;
            }
            apis.delete(kind, &name).await?;
        }
        ensure!(apis.objects().await?.is_empty(), "objects remain");
        Ok(())
    }
}

/// Returns a step with a shorter wait, because real time passes.
fn shortened(step: &Step) -> Step {
    match step {
        Step::Wait { millis } => Step::Wait {
            millis: (millis / 10).min(LONGEST_WAIT),
        },
        step => step.clone(),
    }
}

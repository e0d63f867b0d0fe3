//! The replicas of the controllers, any of which may be killed at any time.

use anyhow::Result;
use clap::Parser;
use ingress_controller::provider::{Kubernetes, NamedBalancer};
use karmada_runtime::program::Program;
use karmada_runtime::write::Writer;
use traffic::ingress::kubernetes::Ingresses;

use super::apis::Apis;
use super::kinds::Side;
use super::program::{CONTROLLER, Process, Role};
use super::record::Record;
use super::step::REPLICAS;
use crate::harness::process::{self, Running};

/// One replica, running or not.
#[derive(Debug)]
struct Slot {
    program: Role,
    replica: u8,
    /// The number of starts.
    lives: u16,
    running: Option<Running>,
}

/// The replicas of both controllers.
#[derive(Debug)]
pub(crate) struct Replicas {
    slots: Vec<Slot>,
    pub(crate) record: Record,
}

impl Replicas {
    /// Creates the replicas. None of them runs yet.
    pub(crate) fn new(record: Record) -> Self {
        let programs = Role::ALL.into_iter();
        let slots =
            programs.flat_map(|program| (0..REPLICAS).map(move |replica| (program, replica)));
        Self {
            slots: slots
                .map(|(program, replica)| Slot {
                    program,
                    replica,
                    lives: 0,
                    running: None,
                })
                .collect(),
            record,
        }
    }

    fn slot(&mut self, program: Role, replica: u8) -> Option<&mut Slot> {
        self.slots
            .iter_mut()
            .find(|slot| (slot.program, slot.replica) == (program, replica))
    }

    /// Starts a replica unless it runs already. One that is stopping is killed first.
    pub(crate) async fn start(&mut self, apis: &Apis, program: Role, replica: u8) -> Result<()> {
        let record = self.record.clone();
        let Some(slot) = self.slot(program, replica) else {
            return Ok(());
        };
        if slot.running.as_ref().is_some_and(Running::is_wanted) {
            return Ok(());
        }
        slot.kill().await;
        let process = Process {
            program,
            replica,
            life: slot.lives,
        };
        slot.lives += 1;
        let assembled = assemble(apis, &record, process).await?;
        slot.running = Some(Running::start(assembled));
        Ok(())
    }

    /// Kills a replica.
    pub(crate) async fn kill(&mut self, program: Role, replica: u8) {
        if let Some(slot) = self.slot(program, replica) {
            slot.kill().await;
        }
    }

    /// Stops a replica as SIGTERM does.
    pub(crate) fn stop(&mut self, program: Role, replica: u8) {
        if let Some(running) = self
            .slot(program, replica)
            .and_then(|slot| slot.running.as_mut())
        {
            running.stop();
        }
    }

    /// Starts one replica of each program that has none.
    pub(crate) async fn start_missing(&mut self, apis: &Apis) -> Result<()> {
        for program in Role::ALL {
            let runs = |slot: &Slot| slot.running.as_ref().is_some_and(Running::is_wanted);
            if !self
                .slots
                .iter()
                .any(|slot| slot.program == program && runs(slot))
            {
                self.start(apis, program, 0).await?;
            }
        }
        Ok(())
    }

    /// Returns `true` if a process runs and is not stopping.
    pub(crate) fn runs(&self, process: Process) -> bool {
        self.slots.iter().any(|slot| {
            // `lives` counts the running process too, and `life` only those before it.
            (slot.program, slot.replica, slot.lives)
                == (process.program, process.replica, process.life + 1)
                && slot.running.as_ref().is_some_and(Running::is_wanted)
        })
    }

    /// Returns a replica that ended by itself.
    pub(crate) fn ended(&self) -> Option<String> {
        let ended = |slot: &&Slot| slot.running.as_ref().is_some_and(Running::has_ended);
        let slot = self.slots.iter().find(ended)?;
        Some(format!(
            "replica {} of {} ended by itself",
            slot.replica,
            slot.program.name()
        ))
    }
}

impl Slot {
    async fn kill(&mut self) {
        if let Some(running) = self.running.take() {
            running.kill().await;
        }
    }
}

async fn assemble(apis: &Apis, record: &Record, identity: Process) -> Result<Program> {
    let name = identity.program.name();
    let mut program = process::program(identity.program.identity());
    let karmada = apis.client(Side::Karmada, identity, record).await?;
    match identity.program {
        Role::Remedy => {
            let args = remedy_controller::Args::try_parse_from([name])?;
            remedy_controller::assemble(&args, karmada, &mut program);
        }
        Role::Ingress => {
            let args = ingress_controller::Args::try_parse_from([name])?;
            let routing = Ingresses::new(&CONTROLLER.parse().map_err(anyhow::Error::msg)?, None);
            let client = apis.client(Side::Gateway, identity, record).await?;
            let balancers =
                |writer: &Writer| NamedBalancer::only(Kubernetes::new(client, writer, routing));
            ingress_controller::assemble(args, karmada, balancers, &mut program);
        }
    }
    Ok(program)
}

//! The replicas of the controllers, each of which may die at any time.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Result;
use clap::Parser;
use ingress_controller::provider::Kubernetes;
use karmada_rules::ingress::kubernetes::Gateway;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::apis::Apis;
use super::kinds::Side;
use super::program::{CONTROLLER, Process, Program};
use super::record::Record;
use super::step::REPLICAS;

/// The admin server is not served: nothing listens here.
const NOWHERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

/// One place in which a replica may run.
#[derive(Debug)]
struct Slot {
    program: Program,
    replica: u8,
    lives: u16,
    running: Option<Running>,
}

#[derive(Debug)]
struct Running {
    task: JoinHandle<bool>,
    stop: Arc<Notify>,
    is_told: bool,
}

/// Every replica.
#[derive(Debug)]
pub(crate) struct Replicas {
    slots: Vec<Slot>,
    pub(crate) record: Record,
}

impl Replicas {
    /// None runs yet.
    pub(crate) fn new(record: Record) -> Self {
        let programs = Program::ALL.into_iter();
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

    fn slot(&mut self, program: Program, replica: u8) -> Option<&mut Slot> {
        self.slots
            .iter_mut()
            .find(|slot| (slot.program, slot.replica) == (program, replica))
    }

    /// Starts a replica, unless it runs. One that is stopping dies first.
    pub(crate) async fn start(&mut self, apis: &Apis, program: Program, replica: u8) -> Result<()> {
        let record = self.record.clone();
        let Some(slot) = self.slot(program, replica) else {
            return Ok(());
        };
        if slot
            .running
            .as_ref()
            .is_some_and(|running| !running.is_told)
        {
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
        let stop = Arc::new(Notify::new());
        let told = Arc::clone(&stop);
        let task = tokio::spawn(assembled.run_until(async move || told.notified().await));
        slot.running = Some(Running {
            task,
            stop,
            is_told: false,
        });
        Ok(())
    }

    /// Ends a replica as a crash does.
    pub(crate) async fn kill(&mut self, program: Program, replica: u8) {
        if let Some(slot) = self.slot(program, replica) {
            slot.kill().await;
        }
    }

    /// Tells a replica to stop, as a signal does.
    pub(crate) fn stop(&mut self, program: Program, replica: u8) {
        if let Some(running) = self
            .slot(program, replica)
            .and_then(|slot| slot.running.as_mut())
        {
            running.stop.notify_one();
            running.is_told = true;
        }
    }

    /// Starts one replica of each program of which none runs.
    pub(crate) async fn start_missing(&mut self, apis: &Apis) -> Result<()> {
        for program in Program::ALL {
            let runs = |slot: &Slot| slot.running.as_ref().is_some_and(|r| !r.is_told);
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

    /// Whether a process still runs and was not told to stop.
    pub(crate) fn runs(&self, process: Process) -> bool {
        self.slots.iter().any(|slot| {
            (slot.program, slot.replica, slot.lives)
                == (process.program, process.replica, process.life + 1)
                && slot
                    .running
                    .as_ref()
                    .is_some_and(|running| !running.is_told)
        })
    }

    /// A replica that ended without having been told to.
    pub(crate) fn ended(&self) -> Option<String> {
        let ended = |slot: &&Slot| {
            slot.running
                .as_ref()
                .is_some_and(|r| !r.is_told && r.task.is_finished())
        };
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
            running.task.abort();
            // Its end is what was asked for.
            drop(running.task.await);
        }
    }
}

async fn assemble(
    apis: &Apis,
    record: &Record,
    process: Process,
) -> Result<karmada_runtime::program::Program> {
    let name = process.program.name();
    let mut program = karmada_runtime::program::Program::new(name, NOWHERE);
    let karmada = apis.client(Side::Karmada, process, record).await?;
    match process.program {
        Program::Remedy => {
            let args = remedy_controller::Args::try_parse_from([name])?;
            remedy_controller::assemble(&args, karmada, &mut program);
        }
        Program::Ingress => {
            let args = ingress_controller::Args::try_parse_from([name])?;
            let gateway = Gateway::new(&CONTROLLER.parse().map_err(anyhow::Error::msg)?, None);
            let client = apis.client(Side::Gateway, process, record).await?;
            let balancer = Arc::new(Kubernetes::new(client, gateway));
            ingress_controller::assemble(args, karmada, balancer, &mut program);
        }
    }
    Ok(program)
}

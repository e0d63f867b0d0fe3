//! The programs, one process of each, any of which may die at any time.

use std::sync::Arc;

use anyhow::Result;
use clap::Parser;
use karmada_runtime::program::Program;

use super::apis::Apis;
use super::clusters::{self, CLUSTERS};
use super::role::Role;
use crate::harness::connection::{Connection, SharedFate, client};
use crate::harness::process::{self, Running};
use crate::harness::traffic::Traffic;

/// A process, and whether it will die at a write.
#[derive(Debug)]
struct Process {
    running: Running,
    fate: SharedFate,
}

/// The processes.
#[derive(Debug)]
pub(crate) struct Programs {
    running: [Option<Process>; 1 + CLUSTERS as usize],
    traffic: Traffic,
}

fn place(program: Role) -> usize {
    match program {
        Role::Controller => 0,
        Role::Agent(cluster) => 1 + usize::from(cluster),
    }
}

impl Programs {
    pub(crate) fn new(traffic: Traffic) -> Self {
        Self {
            running: [const { None }; 1 + CLUSTERS as usize],
            traffic,
        }
    }

    /// Starts a program unless it runs already.
    pub(crate) async fn start(&mut self, apis: &Apis, program: Role) -> Result<()> {
        let running = &self.running[place(program)];
        if running.as_ref().is_some_and(|r| !r.fate.lock().is_dead()) {
            return Ok(());
        }
        self.kill(program).await;
        let fate = SharedFate::default();
        let running = Running::start(assemble(apis, program, &fate, &self.traffic)?);
        self.running[place(program)] = Some(Process { running, fate });
        Ok(())
    }

    /// Starts every program that does not run, and lets all of them live on.
    pub(crate) async fn revive(&mut self, apis: &Apis) -> Result<()> {
        for running in self.running.iter().flatten() {
            running.fate.lock().spare();
        }
        for program in Role::all() {
            self.start(apis, program).await?;
        }
        Ok(())
    }

    pub(crate) async fn kill(&mut self, program: Role) {
        if let Some(process) = self.running[place(program)].take() {
            process.running.kill().await;
        }
    }

    /// Lets a program die at one of its next writes.
    pub(crate) fn crash(&self, program: Role, write: u8, stored: bool) {
        if let Some(running) = &self.running[place(program)] {
            running.fate.lock().crash(write, stored);
        }
    }

    /// Returns a program that ended by itself.
    pub(crate) fn ended(&self) -> Option<Role> {
        Role::all().find(|program| {
            let process = self.running[place(*program)].as_ref();
            process.is_some_and(|process| process.running.has_ended())
        })
    }
}

/// The flags of every program: the election of a leader is a property of its own.
const ALONE: &str = "--leader-elect=false";

fn assemble(apis: &Apis, role: Role, fate: &SharedFate, traffic: &Traffic) -> Result<Program> {
    let mut program = process::program(role.identity());
    let connect = |api: &str, service| {
        let connection = Connection {
            service,
            api: api.to_owned(),
            program: role.process(),
            fate: Arc::clone(fate),
            traffic: traffic.clone(),
        };
        client(connection, &role.process())
    };
    let hub = connect("hub", apis.hub.service())?;
    match role {
        Role::Controller => {
            let flags = [role.name(), ALONE, "--force-leave-after=5m"];
            let args = placement_controller::Args::try_parse_from(flags)?;
            placement_controller::assemble(&args, hub, &mut program);
        }
        Role::Agent(cluster) => {
            let name = clusters::cluster(cluster);
            let member = connect(&name, apis.member(cluster).service())?;
            let flags = [role.name(), ALONE, "--cluster-name", &name];
            let args = placement_agent::Args::try_parse_from(flags)?;
            placement_agent::assemble(&args, hub, member, &mut program);
        }
    }
    Ok(program)
}

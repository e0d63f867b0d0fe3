//! The programs, one process of each, any of which may die at any time.

use std::sync::Arc;

use anyhow::Result;
use clap::Parser;
use karmada_runtime::members::{AccessError, Connect};
use karmada_runtime::program::Program;

use super::apis::Apis;
use super::connection::ToFleet;
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
    running: [Option<Process>; 3],
    traffic: Traffic,
    /// Set if the scheduler returns workloads to earlier groups of clusters.
    fails_back: bool,
}

impl Programs {
    pub(crate) fn new(traffic: Traffic) -> Self {
        Self {
            running: [const { None }; 3],
            traffic,
            fails_back: false,
        }
    }

    /// Starts a program unless it runs already.
    pub(crate) async fn start(&mut self, apis: &Apis, program: Role) -> Result<()> {
        let running = &self.running[program as usize];
        if running.as_ref().is_some_and(|r| !r.fate.lock().is_dead()) {
            return Ok(());
        }
        self.kill(program).await;
        let fate = SharedFate::default();
        let assembled = assemble(apis, program, self.flags(program), &fate, &self.traffic)?;
        let running = Running::start(assembled);
        self.running[program as usize] = Some(Process { running, fate });
        Ok(())
    }

    /// Starts the scheduler again with its flag to fail back or without.
    pub(crate) async fn fail_back(&mut self, apis: &Apis, is_on: bool) -> Result<()> {
        self.kill(Role::Scheduler).await;
        self.fails_back = is_on;
        self.start(apis, Role::Scheduler).await
    }

    fn flags(&self, program: Role) -> Vec<&'static str> {
        // The election of a leader is a property of its own.
        let mut flags = vec![program.name(), "--leader-elect=false"];
        if program == Role::Scheduler {
            flags.push("--evict-untolerated");
            flags.extend(self.fails_back.then_some("--affinity-fail-back"));
        }
        flags
    }

    /// Starts every program that does not run, and lets all of them live on.
    pub(crate) async fn revive(&mut self, apis: &Apis) -> Result<()> {
        for running in self.running.iter().flatten() {
            running.fate.lock().spare();
        }
        for program in Role::ALL {
            self.start(apis, program).await?;
        }
        Ok(())
    }

    pub(crate) async fn kill(&mut self, program: Role) {
        if let Some(process) = self.running[program as usize].take() {
            process.running.kill().await;
        }
    }

    /// Lets a program die at one of its next writes.
    pub(crate) fn crash(&self, program: Role, write: u8, stored: bool) {
        if let Some(running) = &self.running[program as usize] {
            running.fate.lock().crash(write, stored);
        }
    }

    /// Returns a program that ended by itself.
    pub(crate) fn ended(&self) -> Option<Role> {
        Role::ALL.into_iter().find(|program| {
            let process = self.running[*program as usize].as_ref();
            process.is_some_and(|process| process.running.has_ended())
        })
    }
}

fn assemble(
    apis: &Apis,
    role: Role,
    flags: Vec<&str>,
    fate: &SharedFate,
    traffic: &Traffic,
) -> Result<Program> {
    let mut program = process::program(role.identity());
    let (fate, traffic) = (Arc::clone(fate), traffic.clone());
    let connection = move |api: &str, service| Connection {
        service,
        api: api.to_owned(),
        program: role.name().to_owned(),
        fate: Arc::clone(&fate),
        traffic: traffic.clone(),
    };
    let to_fleet = ToFleet {
        connection: connection("fleet", apis.fleet.service()),
        is_upgraded: Arc::clone(&apis.is_upgraded),
    };
    let fleet = client(to_fleet, role.name())?;
    match role {
        Role::Propagation => {
            let args = propagation_controller::Args::try_parse_from(flags)?;
            propagation_controller::assemble(&args, fleet, &mut program);
        }
        Role::Scheduler => {
            let args = scheduler::Args::try_parse_from(flags)?;
            scheduler::assemble(&args, fleet, &mut program);
        }
        Role::Execution => {
            let members = Arc::clone(&apis.members);
            let connect: Connect = Box::new(move |access, _| {
                let endpoint = access.endpoint();
                let member = members
                    .lock()
                    .get(endpoint)
                    .map(embedded_apiserver::ApiServer::service);
                let member = member.ok_or_else(|| AccessError::Endpoint(endpoint.to_owned()))?;
                Ok(client(connection(endpoint, member), role.name())?)
            });
            let args = execution_controller::Args::try_parse_from(flags)?;
            execution_controller::assemble(&args, fleet, connect, &mut program);
        }
    }
    Ok(program)
}

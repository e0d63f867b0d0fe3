//! The world of the controllers of health and traffic.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use clap::Parser;
use embedded_apiserver::ApiServer;
use ingress_controller::provider::{Kubernetes, NamedBalancer};
use jiff::Timestamp;
use karmada_runtime::program::Program;
use karmada_runtime::write::Writer;
use proptest::strategy::{BoxedStrategy, Strategy};
use traffic::ingress::kubernetes::Ingresses;

use super::agent::Agent;
use super::apis::Apis;
use super::fleet::Controllers;
use super::kinds::Side;
use super::late::Delays;
use super::program::{CONTROLLER, Role};
use super::sequences::sequences;
use super::settled;
use super::step::{Change, Step};
use crate::harness::{Api, Connections, Property, Record, Role as _, Timing, World, programs};

/// The property that the fleet converges.
#[derive(Clone, Copy, Debug)]
pub struct Convergence;

impl Property for Convergence {
    type World = Controllers;
    const NAME: &'static str = "convergence";
    const FAILED_ONCE: &'static str = include_str!("../../seeds.txt");
    const SEEDS: &'static str = "lab/simulation/seeds.txt";
    // It exceeds the longest backoff, 30 s.
    const QUIET: Duration = Duration::from_secs(40);

    fn sequences() -> BoxedStrategy<Vec<Step>> {
        sequences().boxed()
    }
}

impl World for Controllers {
    type Change = Change;
    type Role = Role;
    const BEGINNING: Timestamp = Timestamp::UNIX_EPOCH;
    const TIMING: Timing = Timing {
        look: Duration::from_secs(6),
        // An event may be delayed by 8 s, a failed watch starts again after 5 s, and the Event of a Service without
        // endpoints waits for 15 s.
        calm_looks: 5,
        // The longest chain is: a stolen lease expires after 15 s, a failed reconcile is requeued after 30 s, a watch
        // starts again after 5 s, a slow response arrives after 20 s, and then no request may be made for some looks.
        settles_within: Duration::from_mins(2),
        after_restart: None,
    };

    async fn new(record: &Record<Role>) -> Result<Self> {
        Self::on(Apis::embedded()?, record.clone()).await
    }

    async fn assemble(&self, connections: Connections<Role>) -> Result<Program> {
        let role = connections.process.program;
        let mut program = programs::program(role.identity());
        let karmada = self.apis.client(Side::Karmada, &connections).await?;
        match role {
            Role::Remedy => {
                let args = remedy_controller::Args::try_parse_from([role.name()])?;
                remedy_controller::assemble(&args, karmada, &mut program);
            }
            Role::Ingress => {
                let args = ingress_controller::Args::try_parse_from([role.name()])?;
                let name = CONTROLLER.parse().map_err(anyhow::Error::msg)?;
                let routing = Ingresses::new(&name, None);
                let client = self.apis.client(Side::Gateway, &connections).await?;
                let balancers =
                    |writer: &Writer| NamedBalancer::only(Kubernetes::new(client, writer, routing));
                ingress_controller::assemble(args, karmada, balancers, &mut program);
            }
        }
        Ok(program)
    }

    async fn apply(&mut self, change: &Change) -> Result<()> {
        self.change(change).await
    }

    fn servers(&self) -> Vec<ApiServer> {
        let sides = [Side::Karmada, Side::Gateway].into_iter();
        sides
            .filter_map(|side| self.apis.embedded_server(side))
            .collect()
    }

    async fn server(&self, api: Api) -> Result<Option<ApiServer>> {
        Ok(self.apis.embedded_server(api.into()))
    }

    fn delay(&self, api: Api, program: Option<Role>, by: Duration) -> Result<()> {
        for one in program.map_or_else(Role::all, |program| vec![program]) {
            self.apis.delays(api.into(), one).add(by);
        }
        Ok(())
    }

    async fn repair(&mut self) -> Result<()> {
        self.apis.all_delays().for_each(Delays::clear);
        self.make_readable().await
    }

    async fn observe(&mut self, step: Option<&Step>, _is_changed: bool) -> Result<Vec<String>> {
        if step.is_some() {
            self.remember().await?;
        }
        let has_ended = self.agents.values().any(Agent::has_ended);
        let found = has_ended.then(|| "an agent ended by itself".to_owned());
        Ok(found.into_iter().collect())
    }

    fn unrest(&self) -> Option<String> {
        let is_waiting = self.record.is_waiting() || self.apis.all_delays().any(Delays::is_waiting);
        is_waiting.then(|| "programs wait for a response".to_owned())
    }

    async fn differences(&self) -> Result<Vec<String>> {
        Ok(settled::differences(&self.apis.objects().await?))
    }

    fn faults(&self) -> BTreeMap<&'static str, u64> {
        let late: u64 = self.apis.all_delays().map(Delays::hits).sum();
        let counts = [
            ("Late", late),
            ("Corrupt", self.corruptions),
            ("ForeignValue", self.mutated),
        ];
        counts.into()
    }
}

//! The fleet, its programs, and their faults.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use futures::future::try_join_all;
use karmada_api::{
    Cluster, ClusterPropagationPolicy,
    condition::{DNS_READY, FALSE, TRUE},
};
use kube::Api;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::{
    extent::Soak,
    fault::Fault,
    templates::{POLICY, Templates, policy},
};
use crate::{
    api::merge,
    control_plane::ApiKind,
    fleet::{Member, set_condition},
    manifests,
    programs::{Binary, Running},
    propagation::PropagationFleet,
    wait::until,
};

/// The time for which something is away.
const AWAY: Duration = Duration::from_secs(5);
/// The limit until everything is as it must be after a fault.
const MENDED_WITHIN: Duration = Duration::from_mins(5);
const POLL: Duration = Duration::from_millis(200);

/// The programs, with the prefix of their metrics after `karmada_`.
const PROGRAMS: [(Binary, &str); 5] = [
    (Binary::PropagationController, "propagation_controller"),
    (Binary::Scheduler, "scheduler"),
    (Binary::ExecutionController, "execution_controller"),
    (Binary::ClusterController, "cluster_controller"),
    (Binary::RemedyController, "remedy_controller"),
];

/// Events beyond the budget are dropped by intention; here none is beyond it.
const FLAGS: [&str; 2] = ["--events-burst=100000", "--events-per-second=10000"];

/// A fleet without Karmada, with all that it runs.
pub(super) struct Stage {
    fleet: PropagationFleet,
    clusters: u8,
    templates: Templates,
    /// The programs.
    pub(super) programs: Vec<(Binary, Running)>,
}

impl Stage {
    /// Starts the fleet, and waits until the templates are in all members.
    pub(super) async fn start(extent: &Soak) -> Result<Self> {
        let kinds = [extent.server, ApiKind::Embedded];
        let starting = PropagationFleet::start_unjoined(kinds, extent.clusters, extent.profile);
        let mut fleet = starting.await?;
        fleet.karmada.start_controllers().await?;
        for file in [
            "propagation/cluster/cluster-controller.yaml",
            "karmada/remedy-controller.yaml",
            "samples/remedy-dns.yaml",
        ] {
            manifests::apply(&fleet.karmada.client(), file).await?;
        }
        let mut programs = Vec::new();
        for (program, _) in PROGRAMS {
            programs.push((program, fleet.start_program(program, &FLAGS).await?));
        }
        for member in fleet.members() {
            fleet.register(member).await?;
        }
        fleet.create_cluster_policy(POLICY, policy()).await?;
        let templates = Templates::create(&fleet.karmada, extent.templates).await?;
        let stage = Self {
            fleet,
            clusters: extent.clusters,
            templates,
            programs,
        };
        stage.is_mended().await?;
        Ok(stage)
    }

    /// Edits templates while something befalls the fleet, and waits until all is as it must be.
    pub(super) async fn play(&mut self, fault: Fault, turn: usize) -> Result<()> {
        match fault {
            Fault::None => self.edit(turn).await?,
            Fault::MemberAway(member) => {
                self.fleet.member_mut(member).stop_api().await?;
                self.edit(turn).await?;
                sleep(AWAY).await;
                self.fleet.member_mut(member).start_api().await?;
            }
            Fault::FleetAway => {
                self.fleet.karmada.stop_api().await?;
                self.meddle().await?;
                sleep(AWAY).await;
                self.fleet.karmada.start_api().await?;
                self.edit(turn).await?;
            }
            Fault::Drift => {
                self.meddle().await?;
                self.edit(turn).await?;
            }
            Fault::Paused => {
                self.suspend(true).await?;
                self.edit(turn).await?;
                self.suspend(false).await?;
            }
            Fault::DnsFails(member) => {
                self.report_dns(member, false).await?;
                self.edit(turn).await?;
                self.report_dns(member, true).await?;
            }
            Fault::Frozen(program) => {
                self.program(program)?.pause()?;
                self.edit(turn).await?;
                sleep(AWAY).await;
                self.program(program)?.resume()?;
            }
            Fault::Killed(program) => {
                let place = self
                    .programs
                    .iter()
                    .position(|(found, _)| *found == program);
                let (_, running) = self.programs.swap_remove(place.context("it does not run")?);
                running.kill().await?;
                self.edit(turn).await?;
                let started = self.fleet.start_program(program, &FLAGS).await?;
                self.programs.push((program, started));
            }
        }
        self.is_mended().await
    }

    /// Checks that each Event was written.
    pub(super) async fn lost_no_event(&self) -> Result<()> {
        for (program, prefix) in PROGRAMS {
            let metric = format!("karmada_{prefix}_events_dropped_total");
            let lost = self.program(program)?.metric(&metric).await?;
            ensure!(lost == 0.0, "{metric} is {lost}");
        }
        Ok(())
    }

    fn program(&self, program: Binary) -> Result<&Running> {
        let found = self.programs.iter().find(|(found, _)| *found == program);
        let (_, running) = found.context("it does not run")?;
        Ok(running)
    }

    async fn edit(&mut self, turn: usize) -> Result<()> {
        self.templates.edit(&self.fleet.karmada, turn).await
    }

    async fn meddle(&self) -> Result<()> {
        let members = self.fleet.members().map(|member| self.fleet.member(member));
        try_join_all(members.map(|member| self.templates.meddle(member))).await?;
        Ok(())
    }

    async fn suspend(&self, dispatching: bool) -> Result<()> {
        let policies: Api<ClusterPropagationPolicy> = Api::all(self.fleet.karmada.client());
        let suspension = json!({ "suspension": { "dispatching": dispatching } });
        let patch = json!({ "spec": suspension });
        merge(&policies, POLICY, &patch).await
    }

    /// Writes the verdict on DNS in place of a member's agents, and waits until the Remedy acts on it, or no longer.
    async fn report_dns(&self, member: Member, works: bool) -> Result<()> {
        let clusters: Api<Cluster> = Api::all(self.fleet.karmada.client());
        let (status, what) = if works {
            (TRUE, "in service")
        } else {
            (FALSE, "acted on")
        };
        set_condition(&clusters, member, DNS_READY, status).await?;
        until(&clusters, &member.name(), what, |cluster| {
            let actions =
                cluster.and_then(|cluster| cluster.status.as_ref()?.remedy_actions.as_ref());
            actions.is_none_or(Vec::is_empty) == works
        })
        .await?;
        Ok(())
    }

    /// Waits until every template is in all members and reported, and no program has anything left to do.
    async fn is_mended(&self) -> Result<()> {
        let began = Instant::now();
        while let Some(missing) = self.missing().await? {
            if began.elapsed() > MENDED_WITHIN {
                bail!("after {MENDED_WITHIN:?} {missing}");
            }
            sleep(POLL).await;
        }
        for (program, prefix) in PROGRAMS {
            let (running, prefix) = (self.program(program)?, format!("karmada_{prefix}"));
            // This one has the next look at each cluster in its queue.
            if program == Binary::ClusterController {
                let events = format!("{prefix}_events_waiting");
                running.until_metric(&events, |left| left == 0.0).await?;
            } else {
                running.rests(&prefix).await?;
            }
        }
        Ok(())
    }

    /// Returns the first difference that is left.
    async fn missing(&self) -> Result<Option<String>> {
        for member in self.fleet.members() {
            let api = self.fleet.member(member);
            if let Some(missing) = self.templates.missing(api).await? {
                return Ok(Some(format!("{} lacks {missing}", member.name())));
            }
            self.templates.run(api).await?;
        }
        let unreported = self
            .templates
            .unreported(&self.fleet.karmada, self.clusters);
        let unreported = unreported.await?;
        Ok(unreported.map(|template| format!("{template} reports less than all members")))
    }
}

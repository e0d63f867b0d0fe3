//! The fleet that is measured, and its measurements.

use std::{fmt::Debug, time::Duration};

use anyhow::{Context, Result};
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api, Resource,
    api::{ApiResource, DynamicObject},
    runtime::watcher::Config,
};
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use super::{
    clients::{bindings, untyped},
    objects::{Binding, Deployed, is_reported},
};
use crate::{
    bench::{Seen, leads},
    control_plane::ControlPlane,
    fleet::NAMESPACE,
    propagation::{PropagationFleet, PropagationPrograms},
    writes::WriteCounts,
};

/// The rows of the result that have a limit.
pub(super) const ROWS: [&str; 6] = [
    "created, until all are in all members",
    "and until every binding reports it",
    "an edited template, until it is in all members, p50 of 101",
    "the same beside the writes of the template and its Works alone",
    "a cluster lost, until all are scheduled again (the scheduler alone)",
    "deleted, until all are gone in all members",
];

pub(super) type Times = [Duration; ROWS.len()];

/// The number of edits whose median is taken.
pub(super) const EDITS: usize = 101;
pub(super) struct Bench {
    pub(super) fleet: PropagationFleet,
    pub(super) names: Vec<String>,
    /// The copies in each member.
    pub(super) copies: Vec<Seen<Deployed>>,
    /// The bindings that report all of their copies.
    pub(super) reported: Seen<Binding>,
}

impl Bench {
    pub(super) async fn new(fleet: PropagationFleet, names: Vec<String>) -> Result<Self> {
        let reported = Seen::watch(bindings(&fleet), Config::default(), is_reported);
        let mut bench = Self {
            reported: reported.await?,
            copies: Vec::new(),
            fleet,
            names,
        };
        bench.copies = bench.watch_copies(|_| true).await?;
        Ok(bench)
    }

    pub(super) async fn watch_copies(
        &self,
        is_of_interest: fn(&Deployed) -> bool,
    ) -> Result<Vec<Seen<Deployed>>> {
        let deployments = ApiResource::erase::<Deployment>(&());
        let watches = self.fleet.members().map(|member| {
            let client = self.fleet.member(member).client();
            let copies = Api::namespaced_with(client, NAMESPACE, &deployments);
            Seen::watch(copies, Config::default(), is_of_interest)
        });
        futures::future::try_join_all(watches).await
    }

    pub(super) fn templates(&self) -> Api<DynamicObject> {
        untyped::<Deployment>(&self.fleet)
    }

    pub(super) async fn start(&self) -> Result<PropagationPrograms> {
        let programs = self.fleet.run().await?;
        for (program, name) in programs.all() {
            leads(program, &format!("karmada_{name}")).await?;
        }
        programs.rest().await?;
        Ok(programs)
    }

    /// Returns the writes to every API so far: first that of the fleet.
    pub(super) async fn writes(&self) -> Result<Vec<WriteCounts>> {
        let members = self.fleet.members().map(|member| self.fleet.member(member));
        let apis = std::iter::once(&self.fleet.karmada).chain(members);
        futures::future::try_join_all(apis.map(ControlPlane::successful_writes)).await
    }

    pub(super) async fn written(&self, before: &[WriteCounts]) -> Result<String> {
        let since = self.writes().await?.into_iter().zip(before);
        let mut since = since.map(|(now, before)| now.since(before));
        let fleet = since.next().context("no API")?;
        let members: u64 = since.map(|writes| writes.total()).sum();
        Ok(format!("{fleet}; in the members {members}"))
    }

    /// Returns the number of single objects that were read in the members.
    pub(super) async fn reads(&self) -> Result<u64> {
        let members = self.fleet.members().map(|member| self.fleet.member(member));
        let reads = futures::future::try_join_all(members.map(ControlPlane::reads)).await?;
        Ok(reads.into_iter().sum())
    }

    /// Returns the template of each edit, and if the edit pauses or resumes it. They take turns: a user
    /// does not edit one a hundred times a second.
    pub(super) fn edits(&self) -> impl Iterator<Item = (&String, bool)> {
        let turns = [true, false].into_iter().cycle();
        let edits = turns.flat_map(|edit| self.names.iter().map(move |name| (name, edit)));
        edits.take(EDITS)
    }
}

pub(super) async fn until_count(copies: &mut [Seen<Deployed>], count: usize) -> Result<Instant> {
    let counts = copies.iter_mut().map(|copies| copies.until_count(count));
    let seen = futures::future::try_join_all(counts).await?;
    seen.into_iter().max().context("no members")
}

/// Waits until the object of the name in each watch is of interest, or is no longer.
pub(super) async fn until_edited<K>(
    copies: &mut [Seen<K>],
    name: &str,
    edit: bool,
) -> Result<Instant>
where
    K: Resource<DynamicType: Clone> + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let edited = copies
        .iter_mut()
        .map(|copies| copies.until(|paused| paused.contains(name) == edit));
    let seen = futures::future::try_join_all(edited).await?;
    seen.into_iter().max().context("no members")
}

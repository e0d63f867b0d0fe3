//! Placements into three real members, as a KubeFleet of this size was measured.

use std::time::Duration;

use anyhow::{Context, Result};
use fleet_api::{MemberCluster, Placement};
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{Api, Client, runtime::watcher::Config};
use serde_json::json;
use tokio::time::Instant;

use super::{
    limit::{self, Chain},
    objects::{
        everywhere, is_applied, is_available, is_edited, is_joined, is_placed, map, told, untyped,
    },
};
use crate::{
    api::merge,
    bench::{
        AT_ONCE, Pairs, ROUNDS, Seen, all, mebibytes, median,
        requests::{create, delete},
    },
    control_plane::ApiKind,
    fleet::Member,
    placement::{PlacementFleet, PlacementPrograms},
    programs::Profile,
};

/// The number of members.
const MEMBERS: u8 = 3;
/// The number of maps in the first placement.
const MAPS: usize = 20;
/// The number of maps of the first placement when the memory of an agent is taken.
const MANY_MAPS: usize = 500;
/// The number of edits whose median is taken.
const EDITS: usize = 21;
/// The number of placements that are made at once.
const MANY: usize = 30;
/// The namespace of the first placement, and its name.
const APP: &str = "app";
/// The flags with which every change makes a snapshot at once.
const NO_QUIET: [&str; 2] = ["--snapshot-quiet=0", "--snapshot-interval=0"];

/// Measures both programs with real members.
pub(super) async fn bench(print: &mut impl FnMut(&str)) -> Result<()> {
    let fleet = PlacementFleet::start_for([ApiKind::Real; 2], MEMBERS, Profile::Dist).await?;
    for member in fleet.members() {
        fleet.register(member, json!({})).await?;
    }
    let programs = fleet.run().await?;
    let clusters = told::<MemberCluster>(fleet.hub.client());
    let mut joined = Seen::watch(clusters, Config::default(), is_joined).await?;
    joined.until_count(MEMBERS.into()).await?;
    let mut members = Members {
        placements: Vec::new(),
        fleet,
    };
    print(&format!("one hub and {MEMBERS} members, each a real API"));
    members.place_one(print).await?;
    let edited = members.edit().await?;
    print(&format!(
        "an edited map, until it is in all members, p50 of {EDITS}: {edited:.3?}"
    ));
    programs.settled().await?;
    programs.stop().await?;
    let limit = members.edit_limit().await?;
    print(&format!("the same writes by a bare client: {limit:.3?}"));
    let programs = members.fleet.run_with(&NO_QUIET).await?;
    programs.settled().await?;
    let edited = members.edit().await?;
    print(&format!(
        "the same with {}: {edited:.3?}",
        NO_QUIET.join(" ")
    ));
    programs.settled().await?;
    programs.stop().await?;
    members.grow(print).await?;
    members.place_many(print).await
}

struct Members {
    fleet: PlacementFleet,
    /// The names of the many placements, which are those of their namespaces.
    placements: Vec<String>,
}

impl Members {
    fn hub(&self) -> Client {
        self.fleet.hub.client()
    }

    fn apis(&self) -> impl Iterator<Item = Client> {
        self.fleet
            .members()
            .map(|member: Member| self.fleet.member(member).client())
    }

    async fn watch_maps(
        &self,
        is_of_interest: fn(&ConfigMap) -> bool,
    ) -> Result<Vec<Seen<ConfigMap>>> {
        let watches = self.apis().map(|member| {
            Seen::watch(
                Api::namespaced(member, APP),
                Config::default(),
                is_of_interest,
            )
        });
        try_join_all(watches).await
    }

    /// Places a namespace with its maps.
    async fn place_one(&self, print: &mut impl FnMut(&str)) -> Result<()> {
        self.fleet.hub.namespace(APP).await?;
        let maps = untyped::<ConfigMap>(self.hub(), APP);
        all((0..MAPS).map(async |nth| create(&maps, &map(nth)).await)).await?;
        let mut copies = self.watch_maps(is_placed).await?;
        let placements = told::<Placement>(self.hub());
        let mut available = Seen::watch(placements, Config::default(), is_available).await?;
        let began = Instant::now();
        self.fleet.place(APP, everywhere(APP)).await?;
        let there = copies.iter_mut().map(|copies| copies.until_count(MAPS));
        let (there, told) = tokio::try_join!(try_join_all(there), available.until_count(1))?;
        let there = there.into_iter().max().context("no members")?;
        print(&format!(
            "a placement of {MAPS} maps, until all are in all members: {:.3?}, and until it says that they are available: {:.3?}",
            there - began,
            told - began
        ));
        Ok(())
    }

    /// Edits a map again and again. Returns the median time until all members have the edit.
    async fn edit(&self) -> Result<Duration> {
        let mut copies = self.watch_maps(is_edited).await?;
        let maps = untyped::<ConfigMap>(self.hub(), APP);
        let mut times = Vec::new();
        for nth in 0..2 * EDITS {
            let is_on = nth % 2 == 0;
            let name = format!("map-{}", nth / 2 % MAPS);
            let began = Instant::now();
            let edit = if is_on { "on" } else { "off" };
            merge(&maps, &name, &json!({ "data": { "edit": edit } })).await?;
            let seen = copies
                .iter_mut()
                .map(|copies| copies.until(|edited| edited.contains(&name) == is_on));
            let seen = try_join_all(seen).await?;
            let seen = seen.into_iter().max().context("no members")?;
            times.push(seen - began);
            // The consequences of one edit must not meet the next.
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        Ok(median(times))
    }

    /// Makes the writes of these edits by a bare client. Returns their median time.
    async fn edit_limit(&self) -> Result<Duration> {
        let (hub, members) = (self.hub(), self.apis().collect::<Vec<_>>());
        let mut chains = limit::chains(&hub).await?;
        let chain = chains.pop().context("no placement")?;
        let mut times = Vec::new();
        for nth in 0..2 * EDITS {
            let name = format!("map-{}", nth / 2 % MAPS);
            let edit = if nth % 2 == 0 { "on" } else { "off" };
            let began = Instant::now();
            chain.edit(&hub, &members, &name, edit).await?;
            times.push(began.elapsed());
            chain.forget_edit(&hub).await?;
        }
        Ok(median(times))
    }

    /// Adds maps to the first placement.
    async fn grow(&self, print: &mut impl FnMut(&str)) -> Result<()> {
        let programs = self.fleet.run().await?;
        let maps = untyped::<ConfigMap>(self.hub(), APP);
        let mut copies = self.watch_maps(is_placed).await?;
        all((MAPS..MANY_MAPS).map(async |nth| create(&maps, &map(nth)).await)).await?;
        let there = copies.iter_mut();
        try_join_all(there.map(|copies| copies.until_count(MANY_MAPS))).await?;
        programs.settled().await?;
        print(&format!("with {MANY_MAPS} maps in a placement:"));
        for note in &memory(&programs)? {
            print(note);
        }
        programs.stop().await
    }

    /// Creates and deletes many placements, each round beside its limit.
    async fn place_many(&mut self, print: &mut impl FnMut(&str)) -> Result<()> {
        self.placements = (0..MANY).map(|nth| format!("many-{nth}")).collect();
        delete(&untyped::<Placement>(self.hub(), ""), APP).await?;
        all(self.placements.iter().map(async |name| {
            self.fleet.hub.namespace(name).await?;
            create(&untyped::<ConfigMap>(self.hub(), name), &map(0)).await
        }))
        .await?;
        let (mut applied, mut deleted) = (Pairs::default(), Pairs::default());
        let mut notes = Vec::new();
        for _ in 0..ROUNDS {
            let programs = self.fleet.run().await?;
            self.until_left(0).await?;
            programs.settled().await?;
            let ([create, delete], chains, of_round) = self.round(&programs).await?;
            notes = memory(&programs)?;
            notes.extend(of_round);
            programs.stop().await?;
            let limits = self.limits(&chains).await?;
            applied.add(create, limits[0]);
            deleted.add(delete, limits[1]);
        }
        print(&format!(
            "{MANY} placements in {MEMBERS} members; in parentheses the limit: the same writes by a bare client, {AT_ONCE} placements at a time"
        ));
        print(&format!(
            "created, until all say that they are applied: {applied}"
        ));
        print(&format!("deleted, until no placement is left: {deleted}"));
        for note in &notes {
            print(note);
        }
        Ok(())
    }

    async fn until_left(&self, count: usize) -> Result<Instant> {
        let placements = told::<Placement>(self.hub());
        let mut left = Seen::watch(placements, Config::default(), |_| true).await?;
        left.until_count(count).await
    }

    /// Measures both programs. Returns the times, the objects that they made, and their requests to the hub.
    async fn round(
        &self,
        programs: &PlacementPrograms,
    ) -> Result<([Duration; 2], Vec<Chain>, Vec<String>)> {
        let before = self.fleet.hub.successful_writes().await?;
        let placements = told::<Placement>(self.hub());
        let mut applied = Seen::watch(placements, Config::default(), is_applied).await?;
        let names = || self.placements.iter();
        let began = Instant::now();
        let placing = all(names().map(|name| self.fleet.place(name, everywhere(name))));
        let ((), seen) = tokio::try_join!(placing, applied.until_count(MANY))?;
        let created = seen - began;
        programs.settled().await?;
        let written = self.fleet.hub.successful_writes().await?.since(&before);
        let mut notes = vec![format!("writes to the hub until applied: {written}")];
        let chains = limit::chains(&self.hub()).await?;
        let before = self.fleet.hub.successful_writes().await?;
        let began = Instant::now();
        let objects = untyped::<Placement>(self.hub(), "");
        let deleting = all(names().map(|name| delete(&objects, name)));
        let ((), gone) = tokio::try_join!(deleting, self.until_left(0))?;
        programs.settled().await?;
        let written = self.fleet.hub.successful_writes().await?.since(&before);
        notes.push(format!("writes to the hub until gone: {written}"));
        Ok(([created, gone - began], chains, notes))
    }

    /// Measures a bare client.
    async fn limits(&self, chains: &[Chain]) -> Result<[Duration; 2]> {
        let hub = self.hub();
        let members: Vec<_> = self.apis().collect();
        let began = Instant::now();
        all(chains.iter().map(async |chain| {
            chain.create(&hub).await?;
            let applying = members.iter().enumerate();
            let applying = applying.map(|(nth, member)| chain.apply(&hub, nth, member));
            try_join_all(applying).await.map(drop)
        }))
        .await?;
        let created = began.elapsed();
        let began = Instant::now();
        all(chains.iter().map(async |chain| {
            let withdrawing = members.iter().enumerate();
            let withdrawing = withdrawing.map(|(nth, member)| chain.withdraw(&hub, nth, member));
            try_join_all(withdrawing).await?;
            chain.delete(&hub).await
        }))
        .await?;
        // As an agent does, it waits until everything is gone.
        for member in members {
            let spaces: Api<Namespace> = Api::all(member);
            let mut left = Seen::watch(spaces, Config::default(), |space| {
                let name = space.metadata.name.as_deref();
                name.is_some_and(|name| name.starts_with("many-"))
            })
            .await?;
            left.until_count(0).await?;
        }
        Ok([created, began.elapsed()])
    }
}

/// Formats the resident memory of the programs.
fn memory(programs: &PlacementPrograms) -> Result<Vec<String>> {
    let of_agents = programs.agents.iter().map(mebibytes);
    let of_agents = of_agents.collect::<Result<Vec<_>>>()?;
    Ok(vec![
        format!(
            "resident memory of the controller: {:.1} MiB",
            mebibytes(&programs.controller)?
        ),
        format!("resident memory of an agent: {:.1} MiB", median(of_agents)),
    ])
}

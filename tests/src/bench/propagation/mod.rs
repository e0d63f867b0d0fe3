//! The three programs that propagate, with many templates and a policy for each.

mod clients;
mod interpreted;
mod lazy;
mod limit;
mod objects;
mod stand;

use std::time::Duration;

use anyhow::Result;
use karmada_api::{ClusterView, ResourceBinding};
use kube::{
    api::{DeleteParams, Patch, PatchParams},
    runtime::watcher::Config,
};
use serde_json::json;
use tokio::time::Instant;

use self::{
    clients::{binding_name, bindings, untyped},
    limit::Chain,
    objects::{Binding, LOST, is_moved, is_paused, policy, template},
    stand::{Bench, ROWS, Times, until_count, until_edited},
};
use super::{
    AT_ONCE, Pairs, ROUNDS, Seen, all, leads, mebibytes, median,
    requests::{bare, create, delete},
};
use crate::{
    api::merge,
    control_plane::ApiKind,
    programs::{Binary, Profile},
    propagation::{PropagationFleet, PropagationPrograms},
};

/// The extent of the benchmark.
#[derive(Clone, Copy, Debug)]
pub struct PropagationBench {
    /// The number of templates with a policy of their own.
    pub templates: u16,
    /// The number of templates of one Lazy policy.
    pub lazy_templates: u16,
    /// The number of members.
    pub clusters: u8,
    /// Whether a customization of the templates' kind is measured, beside the native knowledge of it.
    pub interpreted: bool,
}

/// Runs the benchmark and passes each line of its results to `print`. The API of the fleet is a real one,
/// those of the members are embedded.
///
/// # Errors
/// A part does not start, no change is seen for five minutes, or a workload that waits is written.
pub async fn bench(extent: PropagationBench, mut print: impl FnMut(&str)) -> Result<()> {
    let PropagationBench {
        templates,
        lazy_templates,
        clusters,
        interpreted,
    } = extent;
    let kinds = [ApiKind::Real, ApiKind::Embedded];
    let fleet = PropagationFleet::start_on(kinds, clusters, Profile::Dist).await?;
    let names: Vec<String> = (1..=templates).map(|nth| format!("web{nth}")).collect();
    print(&format!(
        "creating {templates} policies, one for each template"
    ));
    all(names
        .iter()
        .map(|name| fleet.create_policy(name, policy(name))))
    .await?;
    let mut bench = Bench::new(fleet, names).await?;
    if interpreted {
        return interpreted::compare(&mut bench, print).await;
    }
    let mut pairs = [const { Pairs(Vec::new()) }; ROWS.len()];
    let mut notes = Vec::new();
    for _ in 0..ROUNDS {
        let (times, chains, of_round) = bench.round().await?;
        let limits = bench.limits(&chains).await?;
        for ((pair, time), limit) in pairs.iter_mut().zip(times).zip(limits) {
            pair.add(time, limit);
        }
        notes = of_round;
    }
    print(&format!(
        "{templates} templates in {clusters} clusters; in parentheses the limit: the same writes by a bare client, {AT_ONCE} templates at a time"
    ));
    for (row, pair) in ROWS.iter().zip(&pairs) {
        print(&format!("{row}: {pair}"));
    }
    for note in notes {
        print(&note);
    }
    print(&bench.edit_a_lazy_policy(lazy_templates).await?);
    Ok(())
}

impl Bench {
    /// Measures the programs. Returns the times, the objects that they made, and further notes.
    async fn round(&mut self) -> Result<(Times, Vec<Chain>, Vec<String>)> {
        let programs = self.start().await?;
        let (before, read_before) = (self.writes().await?, self.reads().await?);
        let [created, reported] = self.create_all().await?;
        programs.rest().await?;
        let mut notes = vec![format!(
            "writes until there: {}; single objects read there: {}",
            self.written(&before).await?,
            self.reads().await? - read_before,
        )];
        notes.extend(costs(&programs).await?);
        let chains = limit::chains(&self.fleet, &self.names).await?;
        let edited = self.edit(&programs).await?;
        programs.rest().await?;
        programs.stop().await?;

        let rescheduled = self.lose_a_cluster().await?;
        let before = self.writes().await?;
        let began = Instant::now();
        let programs = self.fleet.run().await?;
        let ready = began.elapsed();
        programs.settled().await?;
        programs.rest().await?;
        let (settled, written) = (began.elapsed(), self.written(&before).await?);
        notes.push(format!(
            "started again: ready after {ready:.2?}, settled after {settled:.2?}, {written}"
        ));
        let deleted = self.delete_all().await?;
        programs.rest().await?;
        programs.stop().await?;
        let times = [created, reported, edited, edited, rescheduled, deleted];
        Ok((times, chains, notes))
    }

    /// Creates the templates. Returns the time until every member has every copy, and the time until
    /// every binding reports that.
    async fn create_all(&mut self) -> Result<[Duration; 2]> {
        let templates = self.templates();
        let creating = all(self
            .names
            .iter()
            .map(async |name| create(&templates, &template(name)).await));
        let began = Instant::now();
        let count = self.names.len();
        let ((), there, reported) = tokio::try_join!(
            creating,
            until_count(&mut self.copies, count),
            self.reported.until_count(count),
        )?;
        Ok([there - began, reported - began])
    }

    /// Edits one template after the other. Returns the median time until all members have the edit.
    async fn edit(&self, programs: &PropagationPrograms) -> Result<Duration> {
        let mut copies = self.watch_copies(is_paused).await?;
        let templates = self.templates();
        let mut times = Vec::new();
        for (name, edit) in self.edits() {
            // The consequences of the former edit must not meet this one.
            programs.settled().await?;
            let began = Instant::now();
            merge(&templates, name, &json!({ "spec": { "paused": edit } })).await?;
            let seen = until_edited(&mut copies, name, edit).await?;
            times.push(seen - began);
        }
        Ok(median(times))
    }

    /// Deletes a cluster while only the scheduler runs, and creates it again. Returns the time until all
    /// bindings are scheduled to the others.
    async fn lose_a_cluster(&self) -> Result<Duration> {
        let scheduler = self.fleet.start_program(Binary::Scheduler, &[]).await?;
        leads(&scheduler, "karmada_scheduler").await?;
        scheduler.rests("karmada_scheduler").await?;
        let mut moved = self.watch_moved().await?;
        let clusters = untyped::<ClusterView>(&self.fleet);
        let cluster = clusters.get(&LOST.name()).await?;
        let began = Instant::now();
        let parameters = DeleteParams::default();
        clusters.delete(&LOST.name(), &parameters).await?;
        let seen = moved.until_count(self.names.len()).await?;
        scheduler.rests("karmada_scheduler").await?;
        let cluster = serde_json::to_value(&cluster)?;
        create(&clusters, &bare(&cluster)).await?;
        let status = Patch::Merge(json!({ "status": cluster["status"] }));
        clusters
            .patch_status(&LOST.name(), &PatchParams::default(), &status)
            .await?;
        moved.until_count(0).await?;
        scheduler.rests("karmada_scheduler").await?;
        scheduler.stop().await?;
        Ok(seen - began)
    }

    async fn watch_moved(&self) -> Result<Seen<Binding>> {
        Seen::watch(bindings(&self.fleet), Config::default(), is_moved).await
    }

    /// Deletes the templates, and in the place of a garbage collector their bindings. Returns the time
    /// until no member has a copy.
    async fn delete_all(&mut self) -> Result<Duration> {
        let templates = self.templates();
        let bindings = untyped::<ResourceBinding>(&self.fleet);
        let deleting = all(self.names.iter().map(async |name| {
            delete(&templates, name).await?;
            delete(&bindings, &binding_name(name)).await
        }));
        let began = Instant::now();
        let ((), gone, _) = tokio::try_join!(
            deleting,
            until_count(&mut self.copies, 0),
            self.reported.until_count(0),
        )?;
        Ok(gone - began)
    }
}

/// Formats the resident memory of the programs, and the processor time since they started.
async fn costs(programs: &PropagationPrograms) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    let (mut memory, mut time) = (0.0, 0.0);
    for (program, name) in programs.all() {
        let mebibytes = mebibytes(program)?;
        let seconds = program.metric("process_cpu_seconds_total").await?;
        memory += mebibytes;
        time += seconds;
        lines.push(format!(
            "{name}: {mebibytes:.1} MiB resident, {seconds:.2} s of a core"
        ));
    }
    lines.push(format!(
        "the three: {memory:.1} MiB resident, {time:.2} s of a core"
    ));
    Ok(lines)
}

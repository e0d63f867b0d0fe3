//! The three programs that propagate, with many templates and a policy for each.

mod lazy;
mod limit;
mod objects;

use std::{fmt::Debug, time::Duration};

use anyhow::{Context, Result};
use k8s_openapi::api::apps::v1::Deployment;
use karmada_api::{ClusterView, ResourceBinding, names};
use kube::{
    Api, Resource,
    api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
    runtime::watcher::Config,
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::time::Instant;

use self::{
    limit::Chain,
    objects::{Binding, Deployed, bare, is_moved, is_paused, is_reported, policy, template},
};
use super::{AT_ONCE, Pairs, ROUNDS, Seen, all, leads, mebibytes, median, rests};
use crate::{
    control_plane::{ApiKind, ControlPlane},
    fleet::{Member, NAMESPACE},
    programs::{Binary, Profile},
    propagation::{PropagationFleet, PropagationPrograms},
    writes::WriteCounts,
};

/// The number of edits whose median is taken.
const EDITS: usize = 101;
/// The cluster that is lost.
const LOST: Member = Member(1);

/// The extent of the benchmark.
#[derive(Clone, Copy, Debug)]
pub struct PropagationBench {
    /// The number of templates with a policy of their own.
    pub templates: u16,
    /// The number of templates of one Lazy policy.
    pub lazy_templates: u16,
    /// The number of members.
    pub clusters: u8,
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

/// The rows of the result that have a limit.
const ROWS: [&str; 6] = [
    "created, until all are in all members",
    "and until every binding reports it",
    "an edited template, until it is in all members, p50 of 101",
    "the same beside the writes of the template and its Works alone",
    "a cluster lost, until all are scheduled again (the scheduler alone)",
    "deleted, until all are gone in all members",
];

type Times = [Duration; ROWS.len()];

struct Bench {
    fleet: PropagationFleet,
    names: Vec<String>,
    /// The copies in each member.
    copies: Vec<Seen<Deployed>>,
    /// The bindings that report all of their copies.
    reported: Seen<Binding>,
}

impl Bench {
    async fn new(fleet: PropagationFleet, names: Vec<String>) -> Result<Self> {
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

    async fn watch_copies(
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

    fn templates(&self) -> Api<DynamicObject> {
        untyped::<Deployment>(&self.fleet)
    }

    /// Measures the programs. Returns the times, the objects that they made, and what else is of note.
    async fn round(&mut self) -> Result<(Times, Vec<Chain>, Vec<String>)> {
        let programs = self.start().await?;
        let before = self.writes().await?;
        let [created, reported] = self.create_all().await?;
        programs.rest().await?;
        let mut notes = vec![format!(
            "writes until there: {}",
            self.written(&before).await?
        )];
        notes.extend(memory(&programs)?);
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

    async fn start(&self) -> Result<PropagationPrograms> {
        let programs = self.fleet.run().await?;
        for (program, name) in programs.all() {
            leads(program, &format!("karmada_{name}")).await?;
        }
        programs.rest().await?;
        Ok(programs)
    }

    /// Returns the writes to every API so far: first that of the fleet.
    async fn writes(&self) -> Result<Vec<WriteCounts>> {
        let members = self.fleet.members().map(|member| self.fleet.member(member));
        let apis = std::iter::once(&self.fleet.karmada).chain(members);
        futures::future::try_join_all(apis.map(ControlPlane::successful_writes)).await
    }

    async fn written(&self, before: &[WriteCounts]) -> Result<String> {
        let since = self.writes().await?.into_iter().zip(before);
        let mut since = since.map(|(now, before)| now.since(before));
        let fleet = since.next().context("no API")?;
        let members: u64 = since.map(|writes| writes.total()).sum();
        Ok(format!("{fleet}; in the members {members}"))
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
            // What follows from the former edit must not meet this one.
            programs.settled().await?;
            let began = Instant::now();
            merge(&templates, name, &json!({ "spec": { "paused": edit } })).await?;
            let seen = until_edited(&mut copies, name, edit).await?;
            times.push(seen - began);
        }
        Ok(median(times))
    }

    /// Returns the template of each edit, and if the edit pauses or resumes it. They take turns: a user
    /// does not edit one a hundred times a second.
    fn edits(&self) -> impl Iterator<Item = (&String, bool)> {
        let turns = [true, false].into_iter().cycle();
        let edits = turns.flat_map(|edit| self.names.iter().map(move |name| (name, edit)));
        edits.take(EDITS)
    }

    /// Deletes a cluster while only the scheduler runs, and creates it again. Returns the time until all
    /// bindings are scheduled to the others.
    async fn lose_a_cluster(&self) -> Result<Duration> {
        let scheduler = self.fleet.start_program(Binary::Scheduler, &[]).await?;
        leads(&scheduler, "karmada_scheduler").await?;
        rests(&scheduler, "karmada_scheduler").await?;
        let mut moved = self.watch_moved().await?;
        let clusters = untyped::<ClusterView>(&self.fleet);
        let cluster = clusters.get(&LOST.name()).await?;
        let began = Instant::now();
        let parameters = DeleteParams::default();
        clusters.delete(&LOST.name(), &parameters).await?;
        let seen = moved.until_count(self.names.len()).await?;
        rests(&scheduler, "karmada_scheduler").await?;
        let cluster = serde_json::to_value(&cluster)?;
        create(&clusters, &bare(&cluster)).await?;
        let status = Patch::Merge(json!({ "status": cluster["status"] }));
        clusters
            .patch_status(&LOST.name(), &PatchParams::default(), &status)
            .await?;
        moved.until_count(0).await?;
        rests(&scheduler, "karmada_scheduler").await?;
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

fn binding_name(template: &str) -> String {
    names::binding("Deployment", template)
}

fn bindings(fleet: &PropagationFleet) -> Api<Binding> {
    let resource = ApiResource::erase::<ResourceBinding>(&());
    Api::namespaced_with(fleet.karmada.client(), NAMESPACE, &resource)
}

/// Returns the objects of a kind in the API of the fleet, in [`NAMESPACE`] if they have one.
fn untyped<K: Resource<DynamicType = ()>>(fleet: &PropagationFleet) -> Api<DynamicObject> {
    let resource = ApiResource::erase::<K>(&());
    if K::kind(&()) == "Cluster" {
        return Api::all_with(fleet.karmada.client(), &resource);
    }
    Api::namespaced_with(fleet.karmada.client(), NAMESPACE, &resource)
}

async fn create(objects: &Api<DynamicObject>, object: &Value) -> Result<()> {
    let object = DynamicObject::deserialize(object)?;
    objects.create(&PostParams::default(), &object).await?;
    Ok(())
}

async fn merge(objects: &Api<DynamicObject>, name: &str, patch: &Value) -> Result<()> {
    let patch = Patch::Merge(patch);
    objects.patch(name, &PatchParams::default(), &patch).await?;
    Ok(())
}

async fn merge_status(objects: &Api<DynamicObject>, name: &str, status: &Value) -> Result<()> {
    let patch = Patch::Merge(json!({ "status": status }));
    let parameters = PatchParams::default();
    objects.patch_status(name, &parameters, &patch).await?;
    Ok(())
}

async fn delete(objects: &Api<DynamicObject>, name: &str) -> Result<()> {
    objects.delete(name, &DeleteParams::default()).await?;
    Ok(())
}

async fn until_count(copies: &mut [Seen<Deployed>], count: usize) -> Result<Instant> {
    let counts = copies.iter_mut().map(|copies| copies.until_count(count));
    let seen = futures::future::try_join_all(counts).await?;
    seen.into_iter().max().context("no members")
}

/// Waits until the object of the name in each watch is of interest, or is no longer.
async fn until_edited<K>(copies: &mut [Seen<K>], name: &str, edit: bool) -> Result<Instant>
where
    K: Resource<DynamicType: Clone> + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let edited = copies
        .iter_mut()
        .map(|copies| copies.until(|paused| paused.contains(name) == edit));
    let seen = futures::future::try_join_all(edited).await?;
    seen.into_iter().max().context("no members")
}

/// Formats the resident memory of the programs.
fn memory(programs: &PropagationPrograms) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    let mut sum = 0.0;
    for (program, name) in programs.all() {
        let mebibytes = mebibytes(program)?;
        sum += mebibytes;
        lines.push(format!("resident memory of the {name}: {mebibytes:.1} MiB"));
    }
    lines.push(format!("resident memory of the three: {sum:.1} MiB"));
    Ok(lines)
}

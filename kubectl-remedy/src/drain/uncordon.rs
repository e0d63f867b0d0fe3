//! `kubectl remedy uncordon`: takes back the writes of `drain`, and nothing else.

use std::collections::BTreeMap;

use jiff::Timestamp;
use karmada_api::{ClusterResourceBinding, Remedy, ResourceBinding};
use karmada_runtime::store::Store;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};
use objects::Key;
use objects::write::Write;
use propagation_rules::binding_ref::BindingRef;
use propagation_rules::schedule::drain::{Return, forget, next_return};
use tokio::time::timeout;
use traffic::ClusterKind;

use super::bindings::write_all;
use super::hub;
use super::observed::{Observed, State, template};
use super::progress::{Left, Progress, report};
use super::remedy::name;
use super::target::{Target, absent};
use crate::answer::Answer;
use crate::args::{DryRun, UncordonArgs};
use crate::block::is_ours;
use crate::error::Error;
use crate::fleet::FleetSnapshot;
use crate::lists::{if_served, list};
use crate::{terminal, unblock};

/// Takes a drain back.
pub(crate) async fn run(args: &UncordonArgs, client: &Client) -> Result<Answer, Error> {
    let (cluster, dry_run) = (&*args.cluster, args.dry_run.dry_run);
    let target = Target::find(cluster, client).await?;
    let block = block(cluster, target.as_ref(), client).await?;
    let mut was_drained = block.is_some();
    if let Some(target) = &target {
        was_drained |= target.untaint(dry_run).await?;
    } else {
        was_drained |= forget_all(cluster, client, dry_run).await?;
        if !was_drained {
            return Err(absent(cluster));
        }
    }
    if let Some(block) = &block {
        unblock::delete(client, block, dry_run).await?;
        let (name, suffix) = (block.name_any(), dry_run.suffix());
        terminal::print(&format!(
            "remedy.remedy.karmada.io/{name} deleted{suffix}\n"
        ));
    }
    let answer = match target.map(|target| target.kind) {
        Some(ClusterKind::Cluster) => {
            let fleet = FleetSnapshot::read_remedies(client, Timestamp::now()).await?;
            let ended = block.as_ref().and_then(ResourceExt::uid);
            unblock::tell_others(&fleet, cluster, ended.as_deref(), client).await?;
            let (answer, found) = bring_back(args, client).await?;
            was_drained |= found > 0;
            answer
        }
        Some(ClusterKind::MemberCluster) => {
            was_drained |= hub::take_back(cluster, client, dry_run).await?;
            Answer::Yes
        }
        None => Answer::Yes,
    };
    if !was_drained {
        terminal::print_error(&format!(
            "{cluster} is not drained by `kubectl remedy drain`"
        ));
        return Ok(Answer::No);
    }
    Ok(answer)
}

/// Returns the Remedy of the drain of a cluster, where there is one.
async fn block(
    cluster: &str,
    target: Option<&Target>,
    client: &Client,
) -> Result<Option<Remedy>, Error> {
    let remedies: Api<Remedy> = Api::all(client.clone());
    let name = name(cluster);
    let found = remedies.get_opt(&name).await;
    let mut found = found.map_err(|source| Error::request(format!("get Remedy {name}"), source));
    if target.is_none_or(|target| target.kind == ClusterKind::MemberCluster) {
        // As for the drain: a hub need not have the kind.
        found = if_served::<Remedy, _>(client, found)
            .await
            .map(Option::flatten);
    }
    Ok(found?.filter(|found| found.name_any() == name && is_ours(found)))
}

/// Takes the notes about a cluster away that is gone. Returns `true` if there were any.
async fn forget_all(cluster: &str, client: &Client, dry_run: DryRun) -> Result<bool, Error> {
    let all = ListParams::default;
    let namespaced = list::<ResourceBinding>(Api::all(client.clone()), all()).await;
    let namespaced = if_served::<ResourceBinding, _>(client, namespaced).await?;
    let others = list::<ClusterResourceBinding>(Api::all(client.clone()), all()).await;
    let others = if_served::<ClusterResourceBinding, _>(client, others).await?;
    let namespaced = namespaced.iter().flat_map(Store::iter);
    let namespaced = namespaced.map(|(_, binding)| BindingRef::from(&**binding));
    let others = others.iter().flat_map(Store::iter);
    let others = others.map(|(_, binding)| BindingRef::from(&**binding));
    let notes = namespaced
        .chain(others)
        .filter_map(|binding| forget(binding, cluster));
    let notes: Vec<_> = notes.collect();
    let is_noted = !notes.is_empty();
    write_all(client, notes, "released", dry_run).await?;
    Ok(is_noted)
}

/// Brings the workloads back that have a note. Returns how many had one, too.
async fn bring_back(args: &UncordonArgs, client: &Client) -> Result<(Answer, usize), Error> {
    let cluster = &*args.cluster;
    let mut returning = Returning {
        cluster,
        client,
        dry_run: args.dry_run.dry_run,
        requested: BTreeMap::new(),
        left: Vec::new(),
        found: 0,
    };
    let mut observed = Observed::new(client).await?;
    let mut progress = Progress::new();
    let watching = async {
        loop {
            if observed.is_complete() {
                if returning.step(&mut observed.state).await? {
                    progress.restart();
                }
                if returning.found > 0 {
                    progress.show(&returning.shown());
                }
                if returning.left.is_empty() || args.dry_run.dry_run != DryRun::None {
                    return Ok::<_, Error>(());
                }
            }
            observed.changed().await?;
        }
    };
    let ended = timeout(args.wait, watching).await;
    match ended {
        Ok(ended) => ended?,
        Err(_) if returning.left.is_empty() => {
            let problem = "the API has not shown in time what is there; try again";
            return Err(Error::Unusable(problem.to_owned()));
        }
        Err(_) => terminal::print_error(&format!(
            "`kubectl remedy uncordon {cluster}` goes on with what is left:"
        )),
    }
    let answer = match args.dry_run.dry_run {
        DryRun::None => report(cluster, &returning.shown()),
        DryRun::Client | DryRun::Server => Answer::Yes,
    };
    Ok((answer, returning.found))
}

/// The workloads on their way back.
struct Returning<'a> {
    cluster: &'a str,
    client: &'a Client,
    dry_run: DryRun,
    /// The requests to schedule each anew.
    requested: BTreeMap<Key, usize>,
    left: Vec<String>,
    found: usize,
}

impl Returning<'_> {
    fn shown(&self) -> [Left; 1] {
        [Left {
            step: "workloads",
            items: self.left.clone(),
        }]
    }

    /// Takes the next step of each workload. Returns `true` if it has printed something.
    async fn step(&mut self, state: &mut State) -> Result<bool, Error> {
        let now = Timestamp::now();
        let (mut requests, mut ends) = (Vec::new(), Vec::new());
        self.left.clear();
        for binding in state.all_bindings() {
            let requested = self
                .requested
                .get(&binding.key())
                .copied()
                .unwrap_or_default();
            let Some(next) = next_return(binding, self.cluster, requested, now) else {
                continue;
            };
            let template = template(binding);
            self.left.extend(match next {
                Return::Leaving => Some(format!("{template} is still leaving the cluster")),
                Return::Scheduling => Some(format!("{template} waits for the scheduler")),
                Return::Reschedule(write) => {
                    requests.push(write);
                    Some(format!("{template} is asked back"))
                }
                Return::Settled { write, is_back } => {
                    if !is_back {
                        terminal::print_error(&format!(
                            "{template} does not come back: its scheduler decides otherwise by now"
                        ));
                    }
                    ends.push(write);
                    None
                }
            });
        }
        self.found = self.found.max(self.left.len() + ends.len());
        let has_writes = !(requests.is_empty() && ends.is_empty());
        self.write(requests, ends, state).await?;
        Ok(has_writes)
    }

    async fn write(
        &mut self,
        requests: Vec<Write>,
        ends: Vec<Write>,
        state: &mut State,
    ) -> Result<(), Error> {
        let all = ends.len();
        let done = write_all(self.client, ends, "released", self.dry_run).await?;
        let missed = all - done.len();
        if missed > 0 && self.dry_run == DryRun::None {
            // The watch has still to show them.
            let item = format!("{missed} bindings were written by others at the same time");
            self.left.push(item);
        }
        let asked = write_all(self.client, requests, "asked back", self.dry_run).await?;
        for binding in &asked {
            *self.requested.entry(Key::of(binding)).or_default() += 1;
        }
        if self.dry_run == DryRun::None {
            done.into_iter()
                .chain(asked)
                .for_each(|binding| state.observe(binding));
        }
        Ok(())
    }
}

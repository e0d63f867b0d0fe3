//! Whether a fleet can do without a cluster: the rest of its backends, and of its room.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use karmada_api::remedy::DRAIN;
use karmada_api::{ClusterResourceBinding, ClusterView, Remedy};
use karmada_runtime::store::Store;
use kube::api::ListParams;
use kube::{Api, Client};
use objects::Key;
use propagation_rules::binding_ref::BindingRef;
use propagation_rules::schedule::drain::{Shortage, shortage, shortage_without};

use super::remedy::{name, remedy};
use crate::answer::Answer;
use crate::args::DrainArgs;
use crate::block::own;
use crate::error::Error;
use crate::fleet::FleetSnapshot;
use crate::lists::list;
use crate::plan::Plan;
use crate::table::Table;
use crate::terminal;

/// The effect of a drain on the rest of a fleet.
#[derive(Debug)]
pub(super) struct Survey {
    /// The Remedy of an earlier drain of the cluster.
    pub(super) known: Option<Arc<Remedy>>,
    plan: Plan,
    /// `None` if all workloads stay.
    shortage: Option<Shortage>,
}

impl Survey {
    /// Reads the fleet, and tells the rest of it without the cluster until `end`, and without those that others drain.
    pub(super) async fn read(
        args: &DrainArgs,
        end: Timestamp,
        client: &Client,
        now: Timestamp,
    ) -> Result<Self, Error> {
        let fleet = FleetSnapshot::read(client, None, now).await?;
        fleet.require(&args.cluster)?;
        let known = own(&fleet, &name(&args.cluster))?;
        let clusters: Store<ClusterView> =
            list(Api::all(client.clone()), ListParams::default()).await?;
        let mut drained = drained(&clusters);
        drained.insert(args.cluster.clone());
        // Even if workloads stay, the cluster is no room for those that leave others.
        let shortage = if args.workloads || drained.len() > 1 {
            Some(homeless(args, &fleet, &clusters, &drained, client).await?)
        } else {
            None
        };
        let starting = drained.iter().filter(|cluster| {
            // Whoever has tainted a cluster is about to block it.
            let key = Key::cluster_scoped(name(cluster));
            **cluster == args.cluster || fleet.remedies.get(&key).is_none()
        });
        let remedies = starting.map(|cluster| remedy(cluster, end, args.reason.as_deref()));
        let remedies: Vec<Remedy> = remedies.collect();
        Ok(Self {
            known,
            plan: Plan::of(fleet, remedies, &args.controllers),
            shortage,
        })
    }

    /// Returns `true` if the rest of the fleet lacks something.
    pub(super) fn lacks(&self) -> bool {
        let shortage = self.shortage.as_ref();
        self.plan.cuts_off() || shortage.is_some_and(|shortage| !shortage.homeless.is_empty())
    }

    /// Prints it for the person who drains.
    pub(super) fn print(&self) {
        self.plan.warn();
        terminal::print_error(self.to_string().trim_end());
    }
}

/// Returns the clusters that somebody drains.
fn drained(clusters: &Store<ClusterView>) -> BTreeSet<String> {
    let drained = clusters.iter().filter(|(_, cluster)| {
        let mut taints = cluster.spec.taints.iter();
        taints.any(|taint| taint.key == DRAIN)
    });
    drained.map(|(key, _)| key.name.clone()).collect()
}

/// Returns the room that the other clusters lack for the workloads of those that are drained.
async fn homeless(
    args: &DrainArgs,
    fleet: &FleetSnapshot,
    clusters: &Store<ClusterView>,
    drained: &BTreeSet<String>,
    client: &Client,
) -> Result<Shortage, Error> {
    let without_namespace: Store<ClusterResourceBinding> =
        list(Api::all(client.clone()), ListParams::default()).await?;
    let bindings = fleet.bindings.iter();
    let bindings = bindings.map(|(_, binding)| BindingRef::from(&**binding));
    let others = without_namespace.iter();
    let others = others.map(|(_, binding)| BindingRef::from(&**binding));
    let bindings: Vec<BindingRef<'_>> = bindings.chain(others).collect();
    let views: Vec<&ClusterView> = clusters.iter().map(|(_, cluster)| &**cluster).collect();
    let found = if args.workloads {
        shortage(bindings, &views, drained, fleet.now)
    } else {
        let mut others = drained.clone();
        others.remove(&args.cluster);
        shortage_without(&args.cluster, &bindings, &views, &others, fleet.now)
    };
    let unread = fleet.bindings.unread().len() + without_namespace.unread().len();
    if unread > 0 {
        terminal::print_error(&format!(
            "warning: {unread} bindings cannot be read, and are not considered"
        ));
    }
    Ok(found)
}

/// Says that a cluster is not drained, for the reason that stands above.
pub(super) fn refuse(cluster: &str) -> Answer {
    terminal::print_error(&format!(
        "{cluster} not drained: the other clusters cannot do without it; --force drains it all the same"
    ));
    Answer::No
}

impl fmt::Display for Survey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.plan.fmt(f)?;
        let Some(Shortage {
            homeless,
            needed,
            free,
        }) = &self.shortage
        else {
            return Ok(());
        };
        if !homeless.is_empty() {
            let mut table = Table::new(["NAMESPACE", "WORKLOAD", "REPLICAS", "NO OTHER PLACE"]);
            for one in homeless {
                table.push(vec![
                    one.binding.namespace.clone(),
                    one.template.clone(),
                    one.replicas.to_string(),
                    one.reason.clone(),
                ]);
            }
            write!(f, "\n{table}")?;
        }
        if !needed.is_empty() {
            let sums = needed.iter().map(|(resource, needed)| {
                let free = free.get(resource).map_or("0", String::as_str);
                format!("{resource} {needed} of {free}")
            });
            let sums: Vec<String> = sums.collect();
            let sums = sums.join(", ");
            writeln!(
                f,
                "\nWhat is divided needs, of what the other clusters have left: {sums}."
            )?;
        }
        Ok(())
    }
}

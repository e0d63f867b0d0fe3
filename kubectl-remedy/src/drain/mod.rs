//! `kubectl remedy drain` and `uncordon`: a cluster that is emptied for a while, and its return.
//!
//! ```text
//! survey → taint NoSchedule → survey again → Remedy → traffic has left → notes → taint NoExecute → workloads have left
//!          undo: both taints, the Remedy, then each note: its workload is scheduled anew
//! ```
//!
//! Each write can be the last: `uncordon` looks for each on its own, and takes back nothing else. Of two who drain two
//! clusters at once, each writes its taint before it looks for the last time, so that one of them sees the other's; and each
//! looks at what leaves any of the two.
//!
//! - `target`: the cluster, in whichever API it is, and its taints. `survey`: the shortages of the rest.
//! - `remedy`: the Remedy that takes its traffic away.
//! - `fleet` and `hub`: the steps on a Karmada or in a fleet of its own, and on a hub of placements.
//! - `observed`, `progress`: the rest, and how that is shown. `bindings`: the writes to them.

mod bindings;
mod fleet;
mod hub;
mod observed;
mod progress;
mod remedy;
mod survey;
mod target;
#[cfg(test)]
mod tests;
mod uncordon;

use jiff::Timestamp;
use kube::Client;
use traffic::ClusterKind;

use self::target::Target;
pub(crate) use self::uncordon::run as uncordon;
use crate::answer::Answer;
use crate::args::DrainArgs;
use crate::error::Error;

/// Drains a cluster, or tells the effect of that.
pub(crate) async fn run(
    args: &DrainArgs,
    client: &Client,
    now: Timestamp,
) -> Result<Answer, Error> {
    let cluster = &*args.cluster;
    let target = Target::find(cluster, client).await?;
    let target = target.ok_or_else(|| target::absent(cluster))?;
    if target.is_deleting {
        let problem = format!("cluster {cluster} is being deleted");
        return Err(Error::Unusable(problem));
    }
    match target.kind {
        ClusterKind::Cluster => fleet::drain(args, &target, client, now).await,
        ClusterKind::MemberCluster => hub::drain(args, &target, client, now).await,
    }
}

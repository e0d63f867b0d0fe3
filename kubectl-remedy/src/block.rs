//! `kubectl remedy block`: a Remedy without conditions that ends by itself.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use karmada_api::remedy::{EXPIRES_AT, REASON};
use karmada_api::{ClusterAffinity, Remedy, RemedySpec, TRAFFIC_CONTROL};
use kube::{Client, Resource, ResourceExt};

use crate::answer::Answer;
use crate::args::{BlockArgs, DryRun};
use crate::error::Error;
use crate::fleet::FleetSnapshot;
use crate::identity::NAME;
use crate::plan::Plan;
use crate::send::apply;
use crate::{manifest, terminal};

/// The label by which blocks of ours are known, with [`NAME`] as its value.
const MANAGED_BY: &str = "app.kubernetes.io/managed-by";

/// Blocks a cluster, or tells the effect of that.
pub(crate) async fn run(
    args: &BlockArgs,
    client: &Client,
    namespace: Option<&str>,
    now: Timestamp,
) -> Result<Answer, Error> {
    let fleet = FleetSnapshot::read(client, namespace, now).await?;
    fleet.require(&args.cluster)?;
    let end = expiry(now, args.length)?;
    let remedy = blocking(
        &name(&args.cluster),
        &args.cluster,
        end,
        args.reason.as_deref(),
    );
    let known = own(&fleet, &remedy.name_any())?;
    let plan = Plan::of(fleet, vec![remedy.clone()], &args.controllers);
    plan.warn();
    terminal::print_error(plan.to_string().trim_end());
    if plan.cuts_off() && !args.force {
        terminal::print_error(&format!(
            "{} not blocked: nothing would serve a backend any more; --force blocks it all the same",
            args.cluster
        ));
        return Ok(Answer::No);
    }
    let dry_run = args.dry_run.dry_run;
    let written = write(client, &remedy, dry_run).await?;
    if dry_run == DryRun::None {
        terminal::print_error(&format!(
            "The block ends at {end}, or with `kubectl remedy unblock {}`.",
            args.cluster
        ));
    }
    if let Some(format) = args.output {
        terminal::print(&manifest::text(&written, format)?);
    } else {
        tell(&remedy.name_any(), known.is_some(), dry_run);
    }
    Ok(Answer::Yes)
}

/// Returns the Remedy of this name, if it exists.
///
/// # Errors
/// Fails if somebody else has made it, or that cannot be read.
pub(crate) fn own(fleet: &FleetSnapshot, name: &str) -> Result<Option<Arc<Remedy>>, Error> {
    let key = objects::Key::cluster_scoped(name);
    let known = fleet.remedies.get(&key).cloned();
    if known.as_ref().is_some_and(|known| !is_ours(known)) || fleet.remedies.unread().contains(&key)
    {
        return Err(Error::Unusable(format!(
            "Remedy {name} exists and is not of `kubectl remedy`: rename it, or delete it"
        )));
    }
    Ok(known)
}

/// Prints that a Remedy was written.
pub(crate) fn tell(name: &str, is_known: bool, dry_run: DryRun) {
    let done = if is_known { "configured" } else { "created" };
    let suffix = dry_run.suffix();
    terminal::print(&format!("remedy.remedy.karmada.io/{name} {done}{suffix}\n"));
}

/// Writes a Remedy, unless nothing is to be sent, and returns it as it is then.
pub(crate) async fn write(
    client: &Client,
    remedy: &Remedy,
    dry_run: DryRun,
) -> Result<Remedy, Error> {
    if dry_run == DryRun::Client {
        return Ok(remedy.clone());
    }
    let name = remedy.name_any();
    // A block that exists is ours, and this one replaces it whoever has edited it.
    let path = Remedy::url_path(&(), None);
    let written = apply(client, &path, &name, remedy, dry_run).await;
    written.map_err(|source| Error::request(format!("write Remedy {name}"), source))
}

/// Returns the moment `length` after `now`, in whole seconds.
pub(crate) fn expiry(now: Timestamp, length: Duration) -> Result<Timestamp, Error> {
    let length = SignedDuration::try_from(length).ok();
    let end = length.and_then(|length| now.checked_add(length).ok());
    let end = end.and_then(|end| Timestamp::from_second(end.as_second()).ok());
    end.ok_or_else(|| Error::Unusable("--for is longer than time is counted".to_owned()))
}

/// Returns the Remedy that blocks `cluster` until `end`.
pub(crate) fn blocking(name: &str, cluster: &str, end: Timestamp, reason: Option<&str>) -> Remedy {
    let spec = RemedySpec {
        cluster_affinity: Some(ClusterAffinity {
            cluster_names: Some(vec![cluster.to_owned()]),
        }),
        decision_matches: None,
        actions: Some(vec![TRAFFIC_CONTROL.to_owned()]),
    };
    let mut remedy = Remedy::new(name, spec);
    let labels = remedy.labels_mut();
    labels.insert(MANAGED_BY.to_owned(), NAME.to_owned());
    let annotations = remedy.annotations_mut();
    annotations.insert(EXPIRES_AT.to_owned(), end.to_string());
    if let Some(reason) = reason {
        annotations.insert(REASON.to_owned(), reason.to_owned());
    }
    remedy
}

/// Returns the name of the Remedy by which `cluster` is blocked.
pub(crate) fn name(cluster: &str) -> String {
    format!("block-{cluster}")
}

/// Returns `true` if `remedy` was made by a command of this program.
pub(crate) fn is_ours(remedy: &Remedy) -> bool {
    remedy.labels().get(MANAGED_BY).is_some_and(|by| by == NAME)
}

#[cfg(test)]
mod tests {
    use traffic::ingress::decided_scope;

    use super::*;

    /// A block is a decision about one cluster with its end and its reason.
    #[test]
    fn block_decides_about_one_cluster() {
        let now: Timestamp = "2026-11-20T08:00:00.7Z".parse().unwrap();
        let end = expiry(now, Duration::from_hours(2)).unwrap();
        let made = blocking(&name("m1"), "m1", end, Some("kernel"));
        assert_eq!(made.name_any(), "block-m1");
        assert!(is_ours(&made));
        assert_eq!(made.annotations()[EXPIRES_AT], "2026-11-20T10:00:00Z");
        assert_eq!(made.annotations()[REASON], "kernel");
        let scope = decided_scope(&made, now).unwrap();
        assert!(scope.covers("m1") && !scope.covers("m2"));
        assert!(!is_ours(&Remedy::new("block-m1", RemedySpec::default())));
    }

    /// A length beyond the calendar is an error.
    #[test]
    fn endless_block_is_an_error() {
        assert!(expiry(Timestamp::now(), Duration::MAX).is_err());
        assert!(expiry(Timestamp::MAX, Duration::from_secs(1)).is_err());
    }
}

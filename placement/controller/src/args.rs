//! The flags.

use std::time::Duration;

use clap::{ArgAction, ValueEnum};
use jiff::SignedDuration;
use karmada_runtime::args::{ClientArgs, CommonArgs, LeaderElectionArgs, duration};
use karmada_runtime::events::EventBudget;
use objects::apis::Apis;
use objects::condition_taint::ConditionTaint;
use placement_rules::content::{Hub, PlacedKinds};
use placement_rules::envelope::Opening;

/// Places objects of a hub on the clusters of its fleet: selects and snapshots them, picks the clusters, rolls each change out, and says where that stands.
#[derive(clap::Parser, Debug)]
#[command(name = crate::identity::NAME, version)]
pub struct Args {
    #[command(flatten)]
    pub(crate) client: ClientArgs,
    #[command(flatten)]
    pub(crate) leader_election: LeaderElectionArgs,
    #[command(flatten)]
    pub(crate) events: EventBudget,
    /// The loops that run. A loop that does not is left to another controller.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Loop::ALL, value_name = "LOOP,...")]
    pub(crate) loops: Vec<Loop>,
    #[command(flatten)]
    pub(crate) selection: SelectionArgs,
    #[command(flatten)]
    pub(crate) waits: WaitArgs,
    /// Taint a cluster for a condition that an agent of it reports: it has the taint `cluster.karmada-rs.io/TYPE=STATUS:NoSchedule` while its condition `TYPE` is `STATUS`. May be repeated.
    #[arg(
        long = "taint-on-condition",
        value_name = "TYPE=STATUS:NoSchedule",
        value_delimiter = ',',
        value_parser = fleet_taint
    )]
    pub(crate) condition_taints: Vec<ConditionTaint>,
    /// Decide everything and write nothing; the metric `would_write_total` counts what would be written.
    #[arg(long)]
    pub(crate) observe_only: bool,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

/// A loop of the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Loop {
    /// Keeps what each cluster of the fleet has on the hub.
    Membership,
    /// Keeps the `ClusterProfile` of each cluster that has joined, where the hub has that kind.
    Profiles,
    /// Snapshots what placements select and what overrides say, and ends both.
    Snapshots,
    /// Picks the clusters of placements.
    Schedule,
    /// Gives the latest snapshots to the clusters.
    Rollout,
    /// Gives snapshots to the clusters stage by stage, as runs say.
    Updates,
    /// Keeps the Works of the clusters.
    Works,
    /// Takes placements from clusters because somebody asks for it.
    Evictions,
    /// Says where placements stand.
    Status,
}

impl Loop {
    const ALL: [Self; 9] = [
        Self::Membership,
        Self::Profiles,
        Self::Snapshots,
        Self::Schedule,
        Self::Rollout,
        Self::Updates,
        Self::Works,
        Self::Evictions,
        Self::Status,
    ];
}

/// The flags of what is placed.
#[derive(clap::Args, Debug)]
pub(crate) struct SelectionArgs {
    /// Namespaces that are never placed, beside `default`, `kube-*` and `fleet-*`.
    #[arg(
        long,
        alias = "skipped-propagating-namespaces",
        value_delimiter = ',',
        value_name = "NAME,..."
    )]
    skipped_namespaces: Vec<String>,
    /// Kinds that are never placed: `GROUP`, `GROUP/VERSION`, `GROUP/KIND,KIND`, `GROUP/VERSION/KIND,KIND` or `v1/KIND,KIND`, with semicolons between them.
    #[arg(
        long,
        alias = "skipped-propagating-apis",
        default_value = "",
        hide_default_value = true,
        value_name = "API;..."
    )]
    skipped_apis: Apis,
    /// The only kinds that are placed, as for `--skipped-apis`.
    #[arg(
        long,
        alias = "allowed-propagating-apis",
        default_value = "",
        hide_default_value = true,
        conflicts_with = "skipped_apis",
        value_name = "API;..."
    )]
    allowed_apis: Apis,
    /// The hub runs workloads itself: its volume claims are its own and not placed.
    #[arg(long)]
    enable_workload: bool,
    /// Open a config map with the annotation `kubernetes-fleet.io/envelope-configmap`: what is in it is placed instead of it. KubeFleet no longer does.
    #[arg(long, default_value_t = true, action = ArgAction::Set, num_args = 0..=1, default_missing_value = "true", value_name = "BOOL")]
    configmap_envelopes: bool,
    /// Wait until nothing that a placement selects has changed for this time before a new snapshot. The first is taken at once.
    #[arg(long, alias = "resource-changes-collection-duration", value_parser = pause, default_value = "100ms", value_name = "DURATION")]
    pub(crate) snapshot_quiet: Duration,
    /// Take a new snapshot this time after the first change, though changes go on.
    #[arg(long, alias = "resource-snapshot-creation-minimum-interval", value_parser = pause, default_value = "1s", value_name = "DURATION")]
    pub(crate) snapshot_interval: Duration,
}

/// The flags of what is waited for.
#[derive(clap::Args, Debug)]
pub(crate) struct WaitArgs {
    /// A cluster whose agent has not been heard of for this time gets nothing new.
    #[arg(long, value_parser = signed, default_value = "5m", value_name = "DURATION")]
    pub(crate) heartbeat_timeout: SignedDuration,
    /// What is not available after this time has failed.
    #[arg(long, value_parser = signed, default_value = "10m", value_name = "DURATION")]
    pub(crate) progress_deadline: SignedDuration,
    /// A cluster that leaves the fleet, and whose agent does not let go, is forced out after this time: 30s to 1h.
    #[arg(long, alias = "force-delete-wait-time", value_parser = forced, default_value = "15m", value_name = "DURATION")]
    pub(crate) force_leave_after: SignedDuration,
}

impl Args {
    /// Returns the settings of the hub.
    pub(crate) fn hub(&self) -> Hub {
        let SelectionArgs {
            skipped_apis,
            allowed_apis,
            ..
        } = &self.selection;
        Hub {
            runs_workloads: self.selection.enable_workload,
            skipped_namespaces: self.selection.skipped_namespaces.clone(),
            kinds: if allowed_apis.is_empty() {
                PlacedKinds::AllBut(skipped_apis.clone())
            } else {
                PlacedKinds::Only(allowed_apis.clone())
            },
        }
    }

    /// Returns which objects are opened, so that those in them are placed instead.
    pub(crate) fn opening(&self) -> Opening {
        Opening {
            config_maps: self.selection.configmap_envelopes,
        }
    }
}

/// Parses a taint with the only effect that those of a `MemberCluster` have.
fn fleet_taint(text: &str) -> Result<ConditionTaint, String> {
    let taint = text.parse::<ConditionTaint>().ok();
    let taint = taint.filter(|taint| taint.effect() == "NoSchedule");
    taint.ok_or_else(|| {
        "must be TYPE=STATUS:NoSchedule such as ServiceDomainNameResolutionReady=False:NoSchedule: a condition without a domain, and True, False or Unknown".to_owned()
    })
}

/// Parses a duration that may be zero.
fn pause(text: &str) -> Result<Duration, String> {
    if matches!(text, "0" | "0s") {
        return Ok(Duration::ZERO);
    }
    duration(text)
}

fn signed(text: &str) -> Result<SignedDuration, String> {
    let duration = duration(text)?;
    SignedDuration::try_from(duration).map_err(|error| error.to_string())
}

fn forced(text: &str) -> Result<SignedDuration, String> {
    let duration = signed(text)?;
    if (SignedDuration::from_secs(30)..=SignedDuration::from_hours(1)).contains(&duration) {
        Ok(duration)
    } else {
        Err("must be from 30s to 1h".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};
    use placement_rules::content::is_placeable;
    use serde_json::json;

    use super::*;

    fn parsed(flags: &[&str]) -> Result<Args, clap::Error> {
        Args::try_parse_from([&[crate::identity::NAME], flags].concat())
    }

    #[test]
    fn the_flags_are_well_formed() {
        Args::command().debug_assert();
    }

    /// A hub that changes hands keeps the flags that KubeFleet's hub-agent has for the same.
    #[test]
    fn flags_of_kubefleet_are_taken() {
        let args = parsed(&[
            "--skipped-propagating-namespaces=a,b",
            "--resource-changes-collection-duration=0s",
            "--resource-snapshot-creation-minimum-interval=0",
            "--force-delete-wait-time=30s",
            "--enable-workload",
        ])
        .unwrap();
        assert_eq!(args.hub().skipped_namespaces, ["a", "b"]);
        assert_eq!(args.selection.snapshot_quiet, Duration::ZERO);
        assert_eq!(args.selection.snapshot_interval, Duration::ZERO);
        let after = args.waits.force_leave_after;
        assert_eq!(after, SignedDuration::from_secs(30));
        assert_eq!(args.loops, Loop::ALL);
    }

    fn placed(flags: &[&str]) -> [bool; 2] {
        let hub = parsed(flags).unwrap().hub();
        ["ConfigMap", "Secret"]
            .map(|kind| is_placeable(&json!({ "apiVersion": "v1", "kind": kind }), &hub))
    }

    /// As KubeFleet's hub-agent, it places all kinds but some, or some alone.
    #[test]
    fn kinds_are_skipped_or_allowed() {
        assert_eq!(placed(&[]), [true, true]);
        let skipped = "--skipped-propagating-apis=v1/Secret";
        assert_eq!(placed(&[skipped]), [true, false]);
        let allowed = "--allowed-propagating-apis=apps;v1/Secret";
        assert_eq!(placed(&[allowed]), [false, true]);
        assert!(parsed(&[skipped, allowed]).is_err());
    }

    #[test]
    fn force_has_bounds() {
        for (text, is_good) in [("29s", false), ("30s", true), ("1h", true), ("61m", false)] {
            let flag = format!("--force-leave-after={text}");
            assert_eq!(parsed(&[&flag]).is_ok(), is_good, "{text}");
        }
    }

    /// A cluster of a fleet has no taint that evicts.
    #[test]
    fn taint_keeps_away_only() {
        for (text, is_good) in [
            ("DnsReady=False:NoSchedule", true),
            ("DnsReady=False:NoExecute", false),
            ("DnsReady:NoSchedule", false),
        ] {
            let flag = format!("--taint-on-condition={text}");
            assert_eq!(parsed(&[&flag]).is_ok(), is_good, "{text}");
        }
    }

    #[test]
    fn loops_are_chosen() {
        let args = parsed(&["--loops=schedule"]).unwrap();
        assert_eq!(args.loops, [Loop::Schedule]);
    }
}

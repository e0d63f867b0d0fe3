//! The flags.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Subcommand, ValueEnum};
use karmada_runtime::args::duration;
use karmada_runtime::client::Source;
use objects::apis::Apis;
use propagation_rules::customization::Operation;
use propagation_rules::rights::GroupResource;
use propagation_rules::template::{NamespacePattern, SKIPPED_NAMESPACES};
use traffic::ingress::{ControllerName, Settings, WhenAllBlocked};
use traffic::remedy::MaxBlocked;

use self::join::{JoinArgs, LeaveArgs, RenewArgs};
use crate::manifest::Format;

pub(crate) mod join;

/// Shows which clusters of a Karmada fleet are blocked and why, tells what a Remedy would do, takes the traffic away from a cluster and gives it back, empties one for a while, installs the agents of clusters, prints the rights to propagate a kind, and tells what interpreters say of an object.
#[derive(clap::Parser, Debug)]
#[command(
    name = crate::identity::NAME,
    bin_name = "kubectl remedy",
    version,
    arg_required_else_help = false,
    after_help = "Exit codes: 0 if it is done or all is well, 1 for bad news, 2 for an error."
)]
pub struct Args {
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The flags of the connection, as kubectl has them.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct ConnectionArgs {
    /// Kubeconfig of the Karmada control plane; defaults to $KUBECONFIG or ~/.kube/config.
    #[arg(long, global = true, value_name = "PATH")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig; defaults to the current one.
    #[arg(long, global = true, value_name = "NAME")]
    context: Option<String>,
    /// Consider every MultiClusterIngress of this namespace only; by default those of all namespaces. What is given as TYPE/NAME is in it; by default in that of the context.
    #[arg(short, long, global = true, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
}

impl ConnectionArgs {
    pub(crate) fn source(&self) -> Source {
        Source {
            kubeconfig: self.kubeconfig.clone(),
            context: self.context.clone(),
            ..Source::default()
        }
    }
}

/// A command.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    #[command(flatten)]
    Fleet(FleetCommand),
    /// Prints the ClusterRoles that let the propagation-controller propagate objects of these kinds, for `kubectl apply -f -`.
    Rights(RightsArgs),
    /// Prints what everybody who interprets the kind of an object says of it, and who decides: scripts and webhooks of users, and what is built in. Exits with 1 if one that decides has failed.
    Interpret(InterpretArgs),
    /// Offers the words that may come next.
    #[command(name = "__complete", hide = true)]
    Complete(CompleteArgs),
}

/// A command about the fleet of the connection.
#[derive(Debug, Subcommand)]
pub(crate) enum FleetCommand {
    /// Shows every cluster with its conditions, its actions and their Remedies, and how many ingresses are blocked there.
    Status(StatusArgs),
    /// Explains one cluster, from the verdict of its nodes to the load balancer. Or an object that is propagated, given as TYPE/NAME or TYPE.GROUP/NAME: its policy, its binding, its Work in each cluster, what holds it up, and the next command; a binding or a Work likewise. Or a placement of a KubeFleet, given as crp/NAME, or rp/NAME in the namespace: its clusters, what each waits for, and why others were not picked.
    Why(WhyArgs),
    /// Tells what the Remedies in a file would do now. Exits with 1 if a backend would have no cluster left.
    Plan(PlanArgs),
    /// Takes the traffic away from a cluster for a time, by a Remedy without conditions.
    Block(BlockArgs),
    /// Ends what `block` began.
    Unblock(UnblockArgs),
    /// Empties a cluster for a time: nothing new comes, the traffic leaves, and with --workloads so do the workloads. Exits with 1 if the other clusters cannot do without it, or something is left after --wait.
    Drain(DrainArgs),
    /// Takes back what `drain` has written, and nothing else: the workloads that it moved are asked back. Exits with 1 if there is no drain, or not all are back after --wait.
    Uncordon(UncordonArgs),
    /// Takes the traffic away from a cluster to see whether the others can do without it, gives it back at once if they cannot, and records the outcome. Exits with 1 if they cannot.
    Practice(PracticeArgs),
    /// Approves what a staged update run of a KubeFleet asks a person for, before or after a stage. Exits with 1 if it asks for nothing.
    Approve(ApproveArgs),
    /// Takes a placement of a KubeFleet from a cluster, by an eviction, which its disruption budget bounds.
    Evict(EvictArgs),
    /// Checks whether everything that remedies and propagation need is in place, and whether what is propagated is where it is to be. Exits with 1 if something is not.
    Check(CheckArgs),
    /// Installs the agents of clusters: their rights and a token in the Karmada API, and the agent itself as a Work; or with --fleet, lets the clusters join a fleet without Karmada. Exits with 1 if one cluster fails; the others go on.
    Join(JoinArgs),
    /// Takes away what `join` has made, and what the agents have written about their clusters; or with --fleet, what `join --fleet` has made.
    Leave(LeaveArgs),
    /// Gives agents new tokens in their Works, before the old ones end; with --fleet, a fleet without Karmada new tokens of its members, too.
    Renew(RenewArgs),
}

#[derive(clap::Args, Debug)]
pub(crate) struct RightsArgs {
    /// A kind, such as apps/deployments, or configmaps of the core group.
    #[arg(required = true, value_name = "GROUP/RESOURCE")]
    pub(crate) kinds: Vec<GroupResource>,
}

#[derive(clap::Args, Debug)]
pub(crate) struct InterpretArgs {
    /// File with the object, as YAML or JSON; `-` for standard input.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) filename: PathBuf,
    /// Ask this only; by default everything for which there is what it needs.
    #[arg(long, value_name = "OPERATION", value_parser = operation())]
    pub(crate) operation: Option<Operation>,
    /// File with customizations, or configurations of webhooks, that are asked in place of the fleet's. No API is needed then.
    #[arg(long, value_name = "FILE")]
    pub(crate) customization: Vec<PathBuf>,
    /// Number of replicas for `ReviseReplica`.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) replicas: Option<i32>,
    /// File with the object as it is in a member, for `Retain`.
    #[arg(long, value_name = "FILE")]
    pub(crate) observed: Option<PathBuf>,
    /// File with what clusters report, for `AggregateStatus`: a binding, or a list as in its `status.aggregatedStatus`.
    #[arg(long, value_name = "FILE")]
    pub(crate) items: Option<PathBuf>,
    /// Form of the output; YAML by default.
    #[arg(short, long, value_enum)]
    pub(crate) output: Option<Format>,
}

/// Returns the parser of the name of an operation.
fn operation() -> impl TypedValueParser<Value = Operation> {
    let names = PossibleValuesParser::new(Operation::ALL.map(Operation::name));
    names.try_map(|name| {
        let mut operations = Operation::ALL.into_iter();
        let found = operations.find(|operation| operation.name() == name);
        found.ok_or("no operation has this name")
    })
}

#[derive(clap::Args, Debug)]
pub(crate) struct CompleteArgs {
    /// The words of the line, the last of which is incomplete.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) words: Vec<String>,
}

#[derive(clap::Args, Debug)]
pub(crate) struct StatusArgs {
    /// Form of the output: `wide` adds the conditions' reasons and messages.
    #[arg(short, long, value_enum)]
    pub(crate) output: Option<StatusOutput>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StatusOutput {
    Wide,
    Json,
    Yaml,
}

#[derive(clap::Args, Debug)]
pub(crate) struct WhyArgs {
    /// The cluster; or an object that is propagated, such as deployment/web, a binding such as rb/web-deployment, or work/NAME; or crp/NAME, or rp/NAME.
    #[arg(value_name = "CLUSTER|TYPE/NAME")]
    pub(crate) subject: String,
    /// Form of the output, for programs.
    #[arg(short, long, value_enum)]
    pub(crate) output: Option<Format>,
    /// Of the propagation-controller: namespaces whose objects are never propagated, as regular expressions of whole names.
    #[arg(
        long,
        help_heading = OF_CONTROLLERS,
        default_value = SKIPPED_NAMESPACES,
        value_delimiter = ',',
        value_name = "REGEX,..."
    )]
    pub(crate) skipped_propagating_namespaces: Vec<NamespacePattern>,
    /// Of the propagation-controller: kinds that are never propagated, as it has them.
    #[arg(
        long,
        help_heading = OF_CONTROLLERS,
        default_value = "",
        hide_default_value = true,
        value_name = "API;..."
    )]
    pub(crate) skipped_propagating_apis: Apis,
    #[command(flatten)]
    pub(crate) controllers: ControllerArgs,
}

#[derive(clap::Args, Debug)]
pub(crate) struct PlanArgs {
    /// File with Remedies as YAML or JSON; `-` for standard input. A Remedy that exists is replaced.
    #[arg(short, long, required = true, value_name = "FILE")]
    pub(crate) filename: Vec<PathBuf>,
    /// Form of the output, for programs.
    #[arg(short, long, value_enum)]
    pub(crate) output: Option<Format>,
    #[command(flatten)]
    pub(crate) controllers: ControllerArgs,
}

#[derive(clap::Args, Debug)]
pub(crate) struct CheckArgs {
    /// Check what an installation finds, before it changes anything: versions, kinds, your rights, Karmada's own programs, interpreters.
    #[arg(long)]
    pub(crate) pre: bool,
    /// With --pre: address of the Karmada API as members reach it; by default that of the kubeconfig.
    #[arg(long, value_name = "URL", requires = "pre", value_parser = join::server)]
    pub(crate) server: Option<String>,
    /// Check again and again for this long, such as 5m, until nothing is wrong: for pipelines.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) wait: Option<Duration>,
}

#[derive(clap::Args, Debug)]
pub(crate) struct BlockArgs {
    /// The cluster.
    pub(crate) cluster: String,
    /// Time after which the block ends by itself, such as 2h or 1h30m. Blocking again sets it anew.
    #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
    pub(crate) length: Duration,
    /// Words for others about why.
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// Block even if a backend has no cluster left then.
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) dry_run: DryRunArgs,
    /// Print the Remedy, in this form.
    #[arg(short, long, value_enum)]
    pub(crate) output: Option<Format>,
    #[command(flatten)]
    pub(crate) controllers: ControllerArgs,
}

#[derive(clap::Args, Debug)]
pub(crate) struct UnblockArgs {
    /// The cluster.
    pub(crate) cluster: String,
    #[command(flatten)]
    pub(crate) dry_run: DryRunArgs,
}

#[derive(clap::Args, Debug)]
pub(crate) struct DrainArgs {
    /// The cluster.
    pub(crate) cluster: String,
    /// Time after which the traffic may come back by itself, such as 2h or 1h30m. Draining again sets it anew.
    #[arg(long = "for", value_name = "DURATION", value_parser = duration, default_value = "2h")]
    pub(crate) length: Duration,
    /// Words for others about why.
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// Have the workloads leave, too, once the traffic has.
    #[arg(long)]
    pub(crate) workloads: bool,
    /// Show the progress for this long, such as 15m, until nothing is left, or tell what holds it up.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) wait: Option<Duration>,
    /// Drain even if the other clusters cannot do without it.
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) dry_run: DryRunArgs,
    #[command(flatten)]
    pub(crate) controllers: ControllerArgs,
}

#[derive(clap::Args, Debug)]
pub(crate) struct UncordonArgs {
    /// The cluster.
    pub(crate) cluster: String,
    /// Wait this long until the workloads that were moved are back.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "15m")]
    pub(crate) wait: Duration,
    #[command(flatten)]
    pub(crate) dry_run: DryRunArgs,
}

#[derive(clap::Args, Debug)]
pub(crate) struct PracticeArgs {
    /// The cluster.
    pub(crate) cluster: String,
    /// Time for which the others do without it.
    #[arg(long = "for", value_name = "DURATION", value_parser = duration, default_value = "10m")]
    pub(crate) length: Duration,
    /// Prometheus that is asked whether all is well, too.
    #[arg(long, value_name = "URL", requires = "holds")]
    pub(crate) prometheus: Option<http::Uri>,
    /// PromQL that must hold: an answer of which each value is other than 0, such as `sum(rate(errors[1m])) < bool 5`.
    #[arg(long, value_name = "PROMQL", requires = "prometheus")]
    pub(crate) holds: Option<String>,
    #[command(flatten)]
    pub(crate) controllers: ControllerArgs,
}

#[derive(clap::Args, Debug)]
pub(crate) struct ApproveArgs {
    /// The `ClusterStagedUpdateRun`; as sur/NAME, the `StagedUpdateRun` in the namespace.
    pub(crate) run: String,
    /// The stage.
    pub(crate) stage: String,
    #[command(flatten)]
    pub(crate) dry_run: DryRunArgs,
}

#[derive(clap::Args, Debug)]
pub(crate) struct EvictArgs {
    /// The ClusterResourcePlacement.
    pub(crate) placement: String,
    /// The cluster.
    #[arg(value_name = "CLUSTER")]
    pub(crate) target: String,
    #[command(flatten)]
    pub(crate) dry_run: DryRunArgs,
}

#[derive(clap::Args, Clone, Copy, Debug)]
pub(crate) struct DryRunArgs {
    /// Write nothing: `client` sends no write, `server` sends it to be validated.
    #[arg(long, value_enum, default_value_t = DryRun::None)]
    pub(crate) dry_run: DryRun,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum DryRun {
    #[default]
    None,
    Client,
    Server,
}

impl DryRun {
    /// Returns the end of the line that tells of a write.
    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Client => " (dry run)",
            Self::Server => " (server dry run)",
        }
    }
}

/// The heading of the flags that are those of the controllers.
const OF_CONTROLLERS: &str = "Flags of the controllers, as they run with them";

/// The flags of the controllers on which their decisions depend. The API does not show them.
#[derive(clap::Args, Clone, Debug)]
#[command(next_help_heading = OF_CONTROLLERS)]
pub struct ControllerArgs {
    /// Of the ingress-controller.
    #[arg(
        long,
        value_name = "NAME",
        default_value = "karmada-rs.io/ingress-controller"
    )]
    ingress_class_controller: ControllerName,
    /// Of the ingress-controller.
    #[arg(long, value_name = "fail-open|fail-closed", default_value_t = WhenAllBlocked::FailOpen)]
    when_all_blocked: WhenAllBlocked,
    /// Of the remedy-controller.
    #[arg(long, value_name = "NUMBER|PERCENT", default_value = "100%")]
    pub(crate) max_blocked_clusters: MaxBlocked,
}

impl ControllerArgs {
    /// Returns the settings of the ingress-controller.
    pub(crate) fn settings(&self) -> Settings {
        Settings {
            when_all_blocked: self.when_all_blocked,
            ..Settings::new(self.ingress_class_controller.clone())
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_flags_are_well_formed() {
        super::Args::command().debug_assert();
    }
}

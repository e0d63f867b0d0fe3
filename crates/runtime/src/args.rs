//! Flags shared by several programs. Like all that name no variable of their own, they can come from one
//! with the prefix of the program's [`Identity`](crate::program::Identity).

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, ValueEnum};
use objects::qualified_name::is_label;
use tracing_subscriber::filter::{LevelFilter, Targets};

use crate::client::Source;

/// Karmada rejects longer names: with its prefix the execution namespace must stay a label.
const LONGEST_CLUSTER_NAME: usize = 48;

/// The flags of every program.
#[derive(Args, Clone, Debug)]
pub struct CommonArgs {
    /// Address that serves /livez, /readyz, /metrics and further endpoints of the program. `[::]` is every address of both families, and every IPv4 address on a host without IPv6.
    #[arg(long, default_value = "[::]:8080", value_name = "IP:PORT")]
    pub listen_address: SocketAddr,
    /// Minimum log level, globally or per module: `info`, `info,kube=debug`.
    #[arg(
        long,
        // Their errors reach our own log lines. The client prints a whole answer that it cannot read, a Secret among them.
        default_value = "info,kube_runtime=off,kube_client::client=off",
        value_name = "LEVEL",
        value_parser = log_levels
    )]
    pub log_level: Targets,
    /// Format of log lines.
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
}

/// The format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Human-readable text.
    Text,
    /// One JSON object per line.
    Json,
}

/// The flags of the connection to the control plane.
#[derive(Args, Clone, Debug)]
pub struct ClientArgs {
    /// Kubeconfig of the control plane; defaults to $KUBECONFIG, ~/.kube/config, or the pod's service account.
    #[arg(long, value_name = "PATH")]
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig; defaults to the current one.
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
}

impl ClientArgs {
    /// Returns the source of the client.
    pub fn source(&self) -> Source {
        Source {
            kubeconfig: self.kubeconfig.clone(),
            context: self.context.clone(),
            ..Source::default()
        }
    }
}

/// The flags of a program that runs in the control plane, or inside one member cluster of mode Pull.
#[derive(Args, Clone, Debug)]
pub struct PullArgs {
    /// Run inside one member cluster, of mode Pull, in place of Karmada's agent: --kubeconfig and --context are then those of the member, which has the lease, too.
    #[arg(long, requires_all = ["cluster_name", "karmada_kubeconfig"])]
    pub pull: bool,
    /// Name of the member's Cluster, with --pull.
    #[arg(long, value_name = "NAME", requires = "pull", value_parser = cluster_name)]
    pub cluster_name: Option<String>,
    /// Kubeconfig of the control plane, with --pull.
    #[arg(long, value_name = "PATH", requires = "pull")]
    pub karmada_kubeconfig: Option<PathBuf>,
    /// Context of that kubeconfig; defaults to the current one.
    #[arg(long, value_name = "NAME", requires = "pull")]
    pub karmada_context: Option<String>,
}

impl PullArgs {
    /// Returns the name of the cluster in which the program runs, if it does.
    pub fn cluster(&self) -> Option<&str> {
        self.cluster_name.as_deref().filter(|_| self.pull)
    }

    /// Returns the source of the client of the control plane, for a program that runs in a member.
    pub fn karmada(&self) -> Source {
        Source {
            kubeconfig: self.karmada_kubeconfig.clone(),
            context: self.karmada_context.clone(),
            ..Source::default()
        }
    }
}

/// The flags of leader election.
#[derive(Args, Clone, Debug)]
pub struct LeaderElectionArgs {
    /// Act only while holding the lease of this program.
    #[arg(long, default_value_t = true, action = ArgAction::Set, num_args = 0..=1, default_missing_value = "true", value_name = "BOOL")]
    pub leader_elect: bool,
    /// Namespace of the lease; that of the program's manifests by default. Karmada's own scheduler has its lease in the namespace of Karmada, and ours must wait for that one.
    #[arg(long, alias = "leader-election-namespace", value_name = "NAMESPACE")]
    pub leader_elect_resource_namespace: Option<String>,
}

/// Parses a duration such as `5s`, `1m30s` or `500ms`, which must be longer than zero.
///
/// # Errors
/// Returns one line for clap to print.
pub fn duration(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(duration) if duration.is_zero() => Err("must be longer than 0s".to_owned()),
        Ok(duration) => Ok(duration),
        Err(error) => Err(format!(
            "{error}; write a length of time such as 5s or 1m30s"
        )),
    }
}

/// Parses the name of a Cluster.
///
/// # Errors
/// Returns one line for clap to print.
pub fn cluster_name(text: &str) -> Result<String, String> {
    if is_label(text) && text.len() <= LONGEST_CLUSTER_NAME {
        Ok(text.to_owned())
    } else {
        Err(format!(
            "a cluster's name has at most {LONGEST_CLUSTER_NAME} characters of a-z, 0-9 and -, and does not begin or end with -"
        ))
    }
}

/// Parses log levels such as `info` or `info,kube=debug`.
///
/// # Errors
/// Returns one line for clap to print.
pub fn log_levels(text: &str) -> Result<Targets, String> {
    // `Targets` reads a single word that is no level as a module to log, which silences all others.
    let mut alone = text.split(',').filter(|part| !part.contains('='));
    match alone.find(|part| part.parse::<LevelFilter>().is_err()) {
        Some(part) => Err(format!(
            "{part:?} is no level: there are off, error, warn, info, debug and trace"
        )),
        None => text.parse().map_err(|error| format!("{error}")),
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use clap::Parser;
    use tracing::Level;

    use super::*;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        common: CommonArgs,
    }

    /// A program in a member is told which and where the control plane is, and one in the control plane is told of no
    /// member.
    #[test]
    fn pull_names_member_and_fleet() {
        #[derive(Debug, Parser)]
        struct Flags {
            #[command(flatten)]
            pull: PullArgs,
        }
        let parsed = |flags: &str| {
            let flags = flags.split_whitespace();
            Flags::try_parse_from(["program"].into_iter().chain(flags))
        };
        for (flags, lacks) in [
            ("--pull", "--cluster-name"),
            ("--pull --cluster-name=m1", "--karmada-kubeconfig"),
            ("--cluster-name=m1", "--pull"),
            ("--karmada-kubeconfig=/k", "--pull"),
            ("--pull --cluster-name=M --karmada-kubeconfig=/k", "a-z"),
        ] {
            let error = parsed(flags).unwrap_err().to_string();
            assert!(error.contains(lacks), "{flags}: {error}");
        }
        assert_eq!(parsed("").unwrap().pull.cluster(), None);
        let full = "--pull --cluster-name=m1 --karmada-kubeconfig=/k";
        let pull = parsed(full).unwrap().pull;
        assert_eq!(pull.cluster(), Some("m1"));
        assert_eq!(pull.karmada().kubeconfig, Some("/k".into()));
    }

    /// A program listens on port 8080 of every address unless told otherwise.
    /// Probes of a kubelet reach the pod on a host with IPv6 alone, too.
    #[test]
    fn listens_everywhere_by_default() {
        let program = Program::parse_from(["program"]);
        let everywhere = SocketAddr::from((Ipv6Addr::UNSPECIFIED, 8080));
        assert_eq!(program.common.listen_address, everywhere);
    }

    /// kube says so at every connection; we do once per cluster.
    #[test]
    fn unverified_certificates_are_no_noise() {
        let levels = Program::parse_from(["program"]).common.log_level;
        assert!(!levels.would_enable("kube_client::client::tls::rustls_tls", &Level::ERROR));
        assert!(!levels.would_enable("kube_client::client", &Level::WARN));
    }

    /// A log level alone is one and the others are of modules.
    #[test]
    fn log_levels_are_parsed() {
        for good in ["info", "WARN", "off", "info,kube=debug", "kube=trace"] {
            assert!(log_levels(good).is_ok(), "{good}");
        }
        for bad in ["loud", "info,kube", "kube=loud", "info=debug=trace"] {
            assert!(log_levels(bad).is_err(), "{bad}");
        }
    }

    /// A duration is written as in Go and is more than zero.
    #[test]
    fn durations_parse_as_in_go() {
        assert_eq!(duration("1m30s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert!(duration("0s").is_err());
        assert!(duration("5").is_err());
        assert!(duration("-5s").is_err());
    }
}

//! `cluster-health-agent check FILE`: tells the mistakes in a file of signals, and runs each of its probes once.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write as _};
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use futures::future::join_all;
use health::quorum::Quorum;
use health::threshold::Thresholds;
use karmada_runtime::client::{self, Addresses, Source};
use karmada_runtime::error::Chain;
use karmada_runtime::program::{print_clap_output, unprinted};
use kube::Client;
use rustls::crypto::ring;

use super::file::{Declaration, Defaults, parse};
use super::network::Node;
use super::round::run_once;
use super::unmet::Unmet;
use crate::identity::NAME;

/// The name of the command.
const COMMAND: &str = "check";

/// Says what is wrong with a file of signals, and runs each of its probes once from here. Exit code 0 if all succeed, 1 if one does not, 2 if the file cannot be used.
#[derive(Debug, Parser)]
#[command(name = "cluster-health-agent check", version)]
struct CheckArgs {
    /// File with signals, as in --signals-file.
    file: PathBuf,
    /// Address for which $(NODE_IP) stands in the file.
    #[arg(long, value_name = "IP")]
    node_ip: Option<IpAddr>,
    /// Kubeconfig of the member cluster, for probes of the kind nodes [default: in a pod, its service account; otherwise none].
    #[arg(long, value_name = "PATH")]
    member_kubeconfig: Option<PathBuf>,
}

/// As the agent's flags have them by default.
const DEFAULTS: Defaults = Defaults {
    thresholds: Thresholds {
        period: Duration::from_secs(5),
        failure: Duration::from_secs(30),
        success: Duration::from_secs(30),
        silence: Duration::from_secs(30),
        max_hold: Duration::from_mins(5),
    },
    timeout: Duration::from_secs(2),
    quorum: Quorum {
        min_answering: 50,
        failure: 80,
    },
};

/// Checks a file if the command line asks for that, and returns the exit code.
pub fn check_if_asked() -> Option<ExitCode> {
    let mut words = std::env::args_os().skip(1);
    if words.next()? != COMMAND {
        return None;
    }
    let name = OsString::from(format!("{NAME} {COMMAND}"));
    let args = CheckArgs::try_parse_from(std::iter::once(name).chain(words));
    Some(match args {
        Ok(args) => run(&args),
        Err(output) => print_clap_output(&output),
    })
}

fn run(args: &CheckArgs) -> ExitCode {
    let path = args.file.display();
    let text = match fs::read(&args.file) {
        Ok(text) => text,
        Err(error) => return refuse(&[format!("cannot read {path}: {error}")]),
    };
    let declarations = match parse(&text, args.node_ip, &DEFAULTS) {
        Ok(declarations) => declarations,
        Err(problems) => return refuse(&problems),
    };
    // The only error is that a provider is already installed.
    drop(ring::default_provider().install_default());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return refuse(&[error.to_string()]),
    };
    let tried = runtime.block_on(try_all(args, &declarations));
    match tried {
        Ok((report, all_succeed)) => print(&report, all_succeed),
        Err(problem) => refuse(&[problem]),
    }
}

/// Runs the probes beside each other, and returns a line or more about each, and whether all succeed.
async fn try_all(args: &CheckArgs, declarations: &[Declaration]) -> Result<(String, bool), String> {
    let node = Node::new(Addresses::by_system(), args.node_ip, member(args).await?);
    let rounds = declarations.iter().map(|declared| {
        let period = declared.thresholds.period;
        run_once(&declared.probe, &node, period, declared.timeout)
    });
    let outcomes = join_all(rounds).await;
    let all_succeed = outcomes.iter().all(Result::is_ok);
    Ok((report(declarations, &outcomes), all_succeed))
}

async fn member(args: &CheckArgs) -> Result<Option<Client>, String> {
    let connected = if let Some(path) = &args.member_kubeconfig {
        let source = Source {
            kubeconfig: Some(path.clone()),
            ..Source::default()
        };
        client::connect(&source, NAME).await
    } else if std::env::var_os("KUBERNETES_SERVICE_HOST").is_some() {
        client::connect_as_pod(NAME)
    } else {
        return Ok(None);
    };
    connected
        .map(Some)
        .map_err(|error| Chain(&error).to_string())
}

fn report(declarations: &[Declaration], outcomes: &[Result<(), Unmet>]) -> String {
    let mut lines = Vec::new();
    for (declared, outcome) in declarations.iter().zip(outcomes) {
        let Declaration {
            name, condition, ..
        } = declared;
        let outcome = match outcome {
            Ok(()) => "succeeds".to_owned(),
            Err(Unmet::Failed { failure, details }) => format!("fails: {failure}: {details}"),
            Err(Unmet::Unobserved(reason)) => format!("no vote: {reason}"),
        };
        lines.push(format!("{name} ({condition}): {outcome}\n"));
        let warnings = declared.probe.kind().warnings().into_iter();
        lines.extend(warnings.map(|text| format!("{name} ({condition}): warning: {text}\n")));
    }
    if declarations.is_empty() {
        lines.push("no signals\n".to_owned());
    }
    lines.concat()
}

fn print(report: &str, all_succeed: bool) -> ExitCode {
    let mut stdout = io::stdout();
    let printed = stdout
        .write_all(report.as_bytes())
        .and_then(|()| stdout.flush());
    match printed {
        Ok(()) if all_succeed => ExitCode::SUCCESS,
        Ok(()) => ExitCode::FAILURE,
        Err(error) => unprinted(&error),
    }
}

#[expect(
    clippy::print_stderr,
    reason = "the response to an invalid file is a plain line for each mistake, not a log event"
)]
fn refuse(problems: &[String]) -> ExitCode {
    for problem in problems {
        eprintln!("error: {problem}");
    }
    ExitCode::from(2)
}

//! The reference of the metrics, from the registries of programs that have started.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use clap::Parser;
use karmada_runtime::metrics::Description;
use karmada_runtime::program::{Identity, Program, StartError};
use lab_parts::kubeconfig::{self, Access};
use lab_parts::port::CLOSED;

use crate::table::cell;

/// The flag of the programs that count writes instead of performing them.
const OBSERVE_ONLY: &str = "--observe-only";

/// Returns the page that lists the metrics of every program.
pub(crate) fn page() -> Result<String> {
    let mut page = String::from(
        "# Metrics\n\n\
         Every program serves its metrics at `/metrics` of `--listen-address`, in OpenMetrics or the text format of Prometheus. A histogram has the series\n\
         `…_bucket`, `…_sum` and `…_count`. Labels have few values: none is the name of an object but of clusters, nodes and DNS servers.\n\
         The names of `process_…` are those that all programs of the world share, and have no prefix.\n",
    );
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("kubeconfig");
    // No program waits for the API before it has registered everything.
    kubeconfig::write(&path, &[&Access::open("karmada", CLOSED)])?;
    let runtime = tokio::runtime::Runtime::new()?;
    for (name, metrics) in runtime.block_on(programs(&path))? {
        write!(page, "\n## {name}\n\n")?;
        page.push_str("| Metric | Type | Labels | Meaning |\n|---|---|---|---|\n");
        for metric in metrics {
            writeln!(page, "{}", row(&metric))?;
        }
    }
    runtime.shutdown_background();
    Ok(page)
}

/// The metrics of one program.
type Registered = (&'static str, BTreeSet<Description>);

/// Returns the metrics of each program, as the flags let it have the most.
async fn programs(kubeconfig: &Path) -> Result<Vec<Registered>> {
    let file = |flag: &str| {
        let mut flag = OsString::from(format!("--{flag}="));
        flag.push(kubeconfig);
        flag
    };
    let [own, others] = agent_flags(file);
    let gateway = [
        file("kubeconfig"),
        "--provider=kubernetes".into(),
        file("gateway-kubeconfig"),
    ];
    let dns = [
        file("kubeconfig"),
        "--provider=dns".into(),
        file("dns-kubeconfig"),
        "--backend-addresses=ingresses".into(),
    ];
    let haproxy = [
        file("kubeconfig"),
        "--provider=haproxy".into(),
        "--haproxy-socket=unix:/nowhere".into(),
    ];
    let hub = [file("kubeconfig")];
    let mut programs = vec![
        registered(
            cluster_health_agent::IDENTITY,
            &[&own, &others],
            cluster_health_agent::start,
        )
        .await?,
        registered(
            remedy_controller::IDENTITY,
            &[&hub],
            remedy_controller::start,
        )
        .await?,
        registered(
            ingress_controller::IDENTITY,
            &[&gateway, &dns, &haproxy],
            ingress_controller::start,
        )
        .await?,
    ];
    programs.extend(observing_programs(file("kubeconfig")).await?);
    programs.push(placement_agent_metrics(file).await?);
    Ok(programs)
}

/// Returns the metrics of the programs that can also count writes instead of performing them.
async fn observing_programs(kubeconfig: OsString) -> Result<Vec<Registered>> {
    let performing = [kubeconfig.clone()];
    let observing = [kubeconfig, OBSERVE_ONLY.into()];
    let either: &[&[OsString]] = &[&performing, &observing];
    Ok(vec![
        registered(
            propagation_controller::IDENTITY,
            either,
            propagation_controller::start,
        )
        .await?,
        registered(scheduler::IDENTITY, either, scheduler::start).await?,
        registered(
            execution_controller::IDENTITY,
            either,
            execution_controller::start,
        )
        .await?,
        registered(
            cluster_controller::IDENTITY,
            either,
            cluster_controller::start,
        )
        .await?,
        registered(
            placement_controller::IDENTITY,
            either,
            placement_controller::start,
        )
        .await?,
    ])
}

/// Returns the metrics of the agent of placements.
async fn placement_agent_metrics(file: impl Fn(&str) -> OsString) -> Result<Registered> {
    let performing = [
        file("kubeconfig"),
        file("hub-kubeconfig"),
        "--cluster-name=member1".into(),
    ];
    let observing = [&performing[..], &[OBSERVE_ONLY.into()]].concat();
    let either: &[&[OsString]] = &[&performing, &observing];
    registered(placement_agent::IDENTITY, either, placement_agent::start).await
}

/// Returns the flags of an agent that probes every signal of its own cluster, and of one that probes those of others. `file` makes
/// a flag with a kubeconfig.
fn agent_flags(file: impl Fn(&str) -> OsString) -> [Vec<OsString>; 2] {
    [true, false].map(|own| {
        let signals = cluster_health_agent::SIGNALS.into_iter();
        let signals = signals.filter(|signal| signal.is_of_own_cluster() == own);
        let signals: Vec<&str> = signals.map(|signal| signal.name).collect();
        let mut flags = vec![
            file("karmada-kubeconfig"),
            file("member-kubeconfig"),
            "--cluster-name=member1".into(),
            "--nameserver=127.0.0.1".into(),
            format!("--detectors={}", signals.join(",")).into(),
        ];
        // Users declare signals of the agents' own cluster alone.
        if own {
            flags.push("--signals-file=/nowhere".into());
        }
        flags
    })
}

/// Returns the metrics of a program that starts with each of these lines of flags.
async fn registered<A: Parser>(
    identity: Identity,
    lines: &[&[OsString]],
    start: impl AsyncFn(A, &mut Program) -> Result<(), StartError>,
) -> Result<Registered> {
    let name = identity.name;
    let mut registered = BTreeSet::new();
    for flags in lines {
        let line = [OsString::from(name)].into_iter();
        let args = A::try_parse_from(line.chain(flags.iter().cloned()))?;
        let mut program = Program::new(identity, ([127, 0, 0, 1], 0).into());
        let started = start(args, &mut program).await;
        started.map_err(|error| anyhow!("{name} does not start: {error}"))?;
        let descriptions = program.registry.descriptions();
        registered.extend(descriptions.context("metrics that cannot be written")?);
    }
    Ok((name, registered))
}

fn row(metric: &Description) -> String {
    let Description {
        name,
        kind,
        labels,
        help,
    } = metric;
    let labels: Vec<String> = labels.iter().map(|label| format!("`{label}`")).collect();
    let (labels, help) = (labels.join(", "), cell(help));
    format!("| `{name}` | {kind} | {labels} | {help} |")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The metrics of every program are listed, though they have no series yet.
    #[test]
    fn metrics_without_series_are_listed() {
        let page = page().unwrap();
        for (metric, labels) in [
            (
                "cluster_health_agent_probe_answers_total",
                "`server`, `result`",
            ),
            (
                "remedy_controller_reconciles_total",
                "`controller`, `result`",
            ),
            ("ingress_controller_writes_total", "`target`, `outcome`"),
            ("propagation_controller_would_write_total", "`target`"),
            ("scheduler_lease_holder", ""),
            ("execution_controller_member_reachable", "`member`"),
            (
                "cluster_controller_credentials_expiry_timestamp_seconds",
                "`api`, `credential`",
            ),
            ("placement_controller_bindings", "`state`"),
            ("placement_agent_would_write_total", "`target`"),
        ] {
            let start = format!("| `karmada_{metric}` | ");
            let row = page.lines().find(|line| line.starts_with(&start)).unwrap();
            assert_eq!(row.split(" | ").nth(2), Some(labels), "{row}");
        }
    }
}

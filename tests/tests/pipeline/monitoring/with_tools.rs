//! The alerts, as Prometheus evaluates them. `alerts/` has a test of each: it fires on its fault, with the words that
//! wake somebody, and `alerts/healthy.yaml` a fleet in which none does.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use anyhow::{Result, ensure};
use lab_parts::kubeconfig::{self, Access};
use lab_parts::port::CLOSED;
use pipeline_tests::control_plane::{ApiKind, ControlPlane};
use pipeline_tests::kubectl::Kubectl;
use pipeline_tests::netns::isolated;
use pipeline_tests::programs::{Binary, Profile, Running};
use pipeline_tests::test_name;
use serde_json::Value;
use tempfile::TempDir;
use tools::{Tool, cargo, definitions};

use super::{ALERTS, alerts, name, path, rules};

/// The tests of a fleet without faults.
const HEALTHY: &str = "healthy";

/// Returns a folder with the rules as Prometheus reads them, and the tests beside them.
pub(crate) fn folder() -> Result<TempDir> {
    let folder = tempfile::tempdir()?;
    for file in ALERTS {
        fs::write(
            folder.path().join(format!("{file}.yaml")),
            rules(file).to_string(),
        )?;
    }
    for file in tests() {
        let from = path(&format!(
            "tests/tests/pipeline/monitoring/alerts/{file}.yaml"
        ));
        fs::copy(from, folder.path().join(format!("{file}-tests.yaml")))?;
    }
    Ok(folder)
}

/// Returns the names of the files with tests.
fn tests() -> impl Iterator<Item = &'static str> {
    ALERTS.into_iter().chain([HEALTHY])
}

/// Runs promtool on files in a folder, and returns its errors.
pub(crate) fn promtool(
    folder: &TempDir,
    command: &str,
    files: impl Iterator<Item = String>,
) -> Result<()> {
    let mut promtool = Command::new(Tool::Promtool.path()?);
    promtool.args([command, "rules"]).args(files);
    let output = promtool.current_dir(folder.path()).output()?;
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    ensure!(output.status.success(), "promtool {command} rules:\n{said}");
    Ok(())
}

/// Prometheus takes the rules, and each alert fires on its fault and on nothing else.
#[test]
fn alerts_fire_on_faults() -> Result<()> {
    let folder = folder()?;
    let rules = ALERTS.map(|file| format!("{file}.yaml"));
    promtool(&folder, "check", rules.into_iter())?;
    let tests = tests().map(|file| format!("{file}-tests.yaml"));
    promtool(&folder, "test", tests)
}

/// Every alert has a test in which it fires, and is looked for in the healthy fleet.
#[test]
fn every_alert_is_tried() -> Result<()> {
    let (mut fires, mut silent) = (BTreeSet::new(), BTreeSet::new());
    for file in tests() {
        let tests = path(&format!(
            "tests/tests/pipeline/monitoring/alerts/{file}.yaml"
        ));
        let tests: Value = serde_saphyr::from_str(&fs::read_to_string(tests)?)?;
        let tests = tests["tests"].as_array().into_iter().flatten();
        let looks = tests.filter_map(|test| test["alert_rule_test"].as_array());
        for look in looks.flatten() {
            let name = look["alertname"].as_str().unwrap_or_default().to_owned();
            if look["exp_alerts"].is_array() {
                fires.insert(name);
            } else if file == HEALTHY {
                silent.insert(name);
            }
        }
    }
    let all: BTreeSet<String> = alerts().iter().map(name).collect();
    assert_eq!(fires, all);
    assert_eq!(silent, all);
    Ok(())
}

/// An operator pipes `curl …/metrics` into `promtool check metrics`, which reads no `OpenMetrics`: every metric has its help and a
/// name as it should be.
#[test]
fn metrics_pass_promtool() {
    isolated(test_name!(), async || {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("kubeconfig");
        kubeconfig::write(&path, &[&Access::open("karmada", CLOSED)])?;
        for program in [
            Binary::RemedyController,
            Binary::PropagationController,
            Binary::Scheduler,
            Binary::ExecutionController,
            Binary::ClusterController,
            Binary::PlacementController,
        ] {
            let flags = [format!("--kubeconfig={}", path.display())];
            let running = Running::start_unready(program, Profile::Debug, flags).await?;
            let metrics = folder.path().join(program.name());
            fs::write(&metrics, running.metrics().await?)?;
            let mut promtool = Command::new(Tool::Promtool.path()?);
            promtool.args(["check", "metrics"]);
            let output = promtool.stdin(fs::File::open(metrics)?).output()?;
            ensure!(output.status.success(), "{}: {output:?}", program.name());
        }
        Ok(())
    });
}

/// The Operator's kinds accept the installed objects, with every field.
#[test]
fn operator_accepts_manifests() {
    // Where there is a network.
    let definitions = definitions::prometheus_operator();
    isolated(test_name!(), async move || {
        let definitions = definitions?;
        let api = ControlPlane::start("host", ApiKind::Real).await?;
        let kubectl = Kubectl::new(api.kubeconfig_path().to_owned())?;
        for kind in ["podmonitors", "prometheusrules"] {
            let file = definitions.join(format!("monitoring.coreos.com_{kind}.yaml"));
            let file = file.display();
            // Too large for the annotation of a client-side apply.
            kubectl.run(&format!("create -f {file}")).await?;
            let wait = "wait --for condition=established --timeout 60s -f";
            kubectl.run(&format!("{wait} {file}")).await?;
        }
        kubectl.run("create namespace monitoring").await?;
        let folder = cargo::root().join("manifests/monitoring");
        let apply = "apply --dry-run=server --validate=strict -k";
        let accepted = kubectl
            .run(&format!("{apply} {}", folder.display()))
            .await?;
        let accepted = accepted.lines().count();
        ensure!(accepted == 2 + ALERTS.len(), "{accepted}");
        Ok(())
    });
}

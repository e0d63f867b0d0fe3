//! The programs' reports, as Prometheus would have them, and whether an alert fires on them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use anyhow::{Result, bail};
use pipeline_tests::{
    fleet::Member,
    programs::{Binary, Running},
};
use serde_json::{Value, json};

use crate::monitoring::{
    ALERTS,
    with_tools::{folder, promtool},
};

/// The minutes for which the first record holds, and the last one at most.
const LENGTH: usize = 60;
/// The gauges that grow by themselves: the time for which something waits, in seconds.
const AGES: [&str; 1] = ["_oldest_unapplied_work_seconds"];

/// A program that Prometheus scrapes.
pub(super) struct Target<'a> {
    running: &'a Running,
    /// The labels that the `PodMonitor` and Prometheus add.
    labels: String,
}

impl<'a> Target<'a> {
    /// Returns a program of the host, in a pod of its own.
    pub(super) fn on_host(program: Binary, running: &'a Running) -> Self {
        let job = program.name();
        let labels =
            format!(r#"job="{job}",namespace="karmada-system",pod="{job}-a",instance="{job}-a""#);
        Self { running, labels }
    }

    /// Returns the agent on a node of a member, whose name Prometheus has as the label `cluster`.
    pub(super) fn on_node(member: Member, node: &str, running: &'a Running) -> Self {
        let (job, cluster) = (Binary::Agent.name(), member.name());
        let labels = format!(
            r#"cluster="{cluster}",job="{job}",namespace="karmada-rs",pod="agent-{node}",instance="agent-{node}""#
        );
        Self { running, labels }
    }
}

/// The programs' reports at one time: the values of their series.
pub(super) struct Record(BTreeMap<String, f64>);

impl Record {
    /// Reads the metrics of programs.
    pub(super) async fn of(targets: &[Target<'_>]) -> Result<Self> {
        let mut series = BTreeMap::new();
        for Target { running, labels } in targets {
            let metrics = running.metrics().await?;
            for line in metrics.lines().filter(|line| !line.starts_with('#')) {
                let Some((name, value)) = line.rsplit_once(' ') else {
                    bail!("no sample: {line}");
                };
                let (name, own) = name.split_once('{').unwrap_or((name, "}"));
                let separator = if own == "}" { "" } else { "," };
                let name = format!("{name}{{{labels}{separator}{own}");
                series.insert(name, value.parse()?);
            }
        }
        Ok(Self(series))
    }

    /// Returns the sum of the series of a metric.
    pub(super) fn value(&self, metric: &str) -> Option<f64> {
        let mut found = self
            .0
            .iter()
            .filter(|(series, _)| series.split('{').next() == Some(metric))
            .map(|(_, value)| *value)
            .peekable();
        found.peek()?;
        Some(found.sum())
    }
}

/// Asserts that an alert does not fire while the first record holds, and fires so many minutes after the last one.
pub(super) fn fires(
    alert: &str,
    records: &[Record],
    minutes: usize,
    labels: &Value,
    summary: &str,
) -> Result<()> {
    let names: BTreeSet<&String> = records.iter().flat_map(|record| record.0.keys()).collect();
    let input: Vec<Value> = names
        .into_iter()
        .map(|name| json!({ "series": name, "values": values(name, records) }))
        .collect();
    let files = ALERTS.map(|file| format!("{file}.yaml"));
    let fault = LENGTH + records.len() - 2;
    let expected = json!({
        "exp_labels": labels,
        "exp_annotations": { "summary": summary, "runbook_url": format!("docs/runbooks/{alert}.md") },
    });
    let test = json!({
        "rule_files": files,
        "evaluation_interval": "1m",
        "tests": [{
            "name": alert,
            "interval": "1m",
            "input_series": input,
            "alert_rule_test": [
                { "eval_time": format!("{}m", LENGTH - 1), "alertname": alert },
                { "eval_time": format!("{}m", fault + minutes), "alertname": alert, "exp_alerts": [expected] },
            ],
        }],
    });
    let folder = folder()?;
    // JSON is YAML.
    fs::write(folder.path().join("drill.yaml"), test.to_string())?;
    promtool(&folder, "test", ["drill.yaml".to_owned()].into_iter())
}

/// Returns the values of a series, one a minute: the first record holds for an hour, each of the others for a minute, and
/// the last one stays.
fn values(series: &str, records: &[Record]) -> String {
    let metric = series.split('{').next().unwrap_or_default();
    let grows = AGES.iter().any(|age| metric.ends_with(age));
    let last = records.len() - 1;
    let mut values = Vec::new();
    let mut was_there = false;
    for (number, record) in records.iter().enumerate() {
        let times = if number == 0 || number == last {
            LENGTH
        } else {
            1
        };
        let value = record.0.get(series);
        for time in 0..times {
            values.push(match value {
                Some(value) if grows && number == last && *value > 0.0 => {
                    let minutes = u32::try_from(time).unwrap_or_default();
                    (value + 60.0 * f64::from(minutes)).to_string()
                }
                Some(value) => value.to_string(),
                // A series that is gone is marked once, as Prometheus does.
                None if was_there => "stale".to_owned(),
                None => "_".to_owned(),
            });
            was_there = value.is_some();
        }
    }
    values.join(" ")
}

/// A record holds for an hour or a minute, a series that is gone is marked, and a time of waiting grows.
#[test]
fn records_become_series() {
    let record = |series: &[(&str, f64)]| {
        let owned = series
            .iter()
            .map(|(name, value)| ((*name).to_owned(), *value));
        Record(owned.collect())
    };
    let age = "x_oldest_unapplied_work_seconds{}";
    let records = [
        record(&[("gone", 1.0), (age, 0.0)]),
        record(&[("new", 2.0)]),
        record(&[("new", 3.0), (age, 5.0)]),
    ];
    for (series, before, after) in [
        ("gone", "1 1", "stale _ _ _"),
        ("new", "_ _", "2 3 3 3"),
        (age, "0 0", "stale 5 65 125"),
    ] {
        let values = values(series, &records);
        let values: Vec<&str> = values.split(' ').collect();
        assert_eq!(values.len(), 2 * LENGTH + 1, "{series}");
        assert_eq!(values[LENGTH - 2..LENGTH].join(" "), before, "{series}");
        assert_eq!(values[LENGTH..LENGTH + 4].join(" "), after, "{series}");
    }
}

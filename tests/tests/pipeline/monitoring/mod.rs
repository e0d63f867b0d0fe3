//! `manifests/monitoring`, as files: alerts and dashboard against the metrics that there are, and alerts against runbooks.
#![expect(clippy::panic, clippy::unwrap_used, reason = "a test fails so")]

mod promql;
pub(crate) mod with_tools;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use regex::Regex;
use serde_json::Value;
use tools::cargo;

use promql::{Series, parse};

/// The files with alerts, each a `PrometheusRule`.
pub(crate) const ALERTS: [&str; 4] = ["programs", "health", "propagation", "placement"];

/// The labels that the scrape and Prometheus add to every series, with that of its name.
const OF_THE_TARGET: [&str; 6] = ["cluster", "namespace", "job", "instance", "pod", "__name__"];

/// Returns a file or folder of the repository.
fn path(name: &str) -> PathBuf {
    cargo::root().join(name)
}

fn read(name: &str) -> String {
    fs::read_to_string(path(name)).unwrap()
}

/// Returns the `spec` of the `PrometheusRule` in one of the [`ALERTS`].
fn rules(name: &str) -> Value {
    let file = format!("manifests/monitoring/alerts/{name}.yaml");
    let mut object: Value = serde_saphyr::from_str(&read(&file)).unwrap();
    object["spec"].take()
}

/// Returns all alerts.
fn alerts() -> Vec<Value> {
    let rules = ALERTS.map(rules);
    let groups = rules.iter().filter_map(|spec| spec["groups"].as_array());
    let alerts = groups
        .flatten()
        .filter_map(|group| group["rules"].as_array());
    alerts.flatten().cloned().collect()
}

fn name(alert: &Value) -> String {
    alert["alert"].as_str().unwrap().to_owned()
}

/// Returns the labels of every metric in docs/reference/metrics.md, by its name.
fn reference() -> BTreeMap<String, BTreeSet<String>> {
    let page = read("docs/reference/metrics.md");
    let mut metrics = BTreeMap::new();
    for row in page.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.split(" | ").collect();
        let name = cells[0].trim_matches(['|', ' ', '`']);
        let mut labels: BTreeSet<String> = cells[2]
            .split(',')
            .map(|label| label.trim_matches([' ', '`']).to_owned())
            .filter(|label| !label.is_empty())
            .collect();
        if cells[1] == "histogram" {
            labels.insert("le".to_owned());
            for ending in ["bucket", "sum", "count"] {
                metrics.insert(format!("{name}_{ending}"), labels.clone());
            }
        } else {
            metrics.insert(name.to_owned(), labels);
        }
    }
    assert!(metrics.len() > 100, "{}", metrics.len());
    metrics
}

/// Checks that a query asks for metrics that exist, by labels that they have, and groups by labels of one of them or by one that it
/// makes of another. The series of several metrics keep the labels that tell them apart.
fn check(query: &str, reference: &BTreeMap<String, BTreeSet<String>>) {
    let nameless = Regex::new(r"(\w+)\(\s*\{[^}]*__name__=~[^}]*\}\[").unwrap();
    for [function] in nameless.captures_iter(query).map(|found| found.extract().1) {
        assert_eq!(function, "last_over_time", "drops the name: {query}");
    }
    let parsed = parse(query);
    let mut known: BTreeSet<&str> = OF_THE_TARGET.into();
    // The third text of `label_replace` is the label that it reads.
    let made = Regex::new(r#""(\w+)", "\$1", "\w+""#).unwrap();
    known.extend(
        made.captures_iter(query)
            .map(|found| found.extract::<1>().1[0]),
    );
    for Series { name, labels } in &parsed.series {
        let pattern = Regex::new(&format!("^(?:{name})$")).unwrap();
        let mut found = reference.iter().filter(|(name, _)| pattern.is_match(name));
        let (first, of_first) = found.next().unwrap_or_else(|| panic!("no {name}: {query}"));
        for (metric, of_metric) in found.chain([(first, of_first)]) {
            known.extend(of_metric.iter().map(String::as_str));
            for label in labels {
                let is_known = of_metric.contains(label) || OF_THE_TARGET.contains(&&**label);
                assert!(is_known, "{metric} has no {label}: {query}");
            }
        }
    }
    for label in &parsed.grouped {
        assert!(known.contains(&**label), "no metric has {label}: {query}");
    }
}

/// An operator would wait for ever for an alert whose metric has another name.
#[test]
fn alerts_ask_existing_metrics() {
    let reference = reference();
    for alert in alerts() {
        let query = alert["expr"].as_str().unwrap();
        check(query, &reference);
        assert!(!parse(query).series.is_empty(), "{query}");
    }
}

/// A panel without data looks like a fleet without faults.
#[test]
fn dashboard_asks_existing_metrics() {
    let dashboard: Value =
        serde_json::from_str(&read("manifests/monitoring/dashboard.json")).unwrap();
    let reference = reference();
    let mut queries = 0;
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().into_iter().flatten() {
            check(target["expr"].as_str().unwrap(), &reference);
            queries += 1;
        }
    }
    assert!(queries > 30, "{queries}");
}

/// Whoever is woken knows how bad it is, which cluster or program it is, and which page to open.
#[test]
fn alerts_say_what_and_where() {
    for alert in alerts() {
        let name = name(&alert);
        assert!(name.starts_with("KarmadaRs"), "{name}");
        let severity = alert["labels"]["severity"].as_str().unwrap();
        assert!(
            ["critical", "warning", "info"].contains(&severity),
            "{name}"
        );
        let annotations = &alert["annotations"];
        let summary = annotations["summary"].as_str().unwrap();
        assert!(!summary.contains('\n') && summary.len() < 160, "{name}");
        let runbook = format!("docs/runbooks/{name}.md");
        assert_eq!(annotations["runbook_url"], runbook.as_str());
        assert!(path(&runbook).exists(), "{runbook}");
        // The labels by which its query groups, and those that it does not aggregate, are in its text.
        let grouped = parse(alert["expr"].as_str().unwrap()).grouped;
        for label in ["member", "watch", "api"] {
            let is_said = summary.contains(&format!("$labels.{label}"));
            assert!(is_said || !grouped.contains(label), "{name}: {label}");
        }
    }
}

/// Every page is about an alert, begins with its name, has three commands, and is in the table by symptom.
#[test]
fn runbooks_are_of_alerts() {
    let names: BTreeSet<String> = alerts().iter().map(name).collect();
    let table = read("docs/runbooks/README.md");
    let mut pages = BTreeSet::new();
    for entry in fs::read_dir(path("docs/runbooks")).unwrap() {
        let path = entry.unwrap().path();
        let page = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if page == "README" {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with(&format!("# {page}\n\n")), "{page}");
        let look = text.split("\n## Look\n").nth(1).unwrap();
        let (look, _) = look.split_once("\n## Do\n").unwrap();
        let commands = look.lines().filter(|line| line.starts_with("    kubectl "));
        assert_eq!(commands.count(), 3, "{page}");
        assert!(text.lines().count() <= 35, "{page}");
        assert!(table.contains(&format!("({page}.md)")), "{page}");
        pages.insert(page);
    }
    assert_eq!(pages, names);
}

/// The pages of runbooks, and the table, refer to pages that exist.
#[test]
fn runbooks_link_existing_pages() {
    let mut links = 0;
    for entry in fs::read_dir(path("docs/runbooks")).unwrap() {
        let page = entry.unwrap().path();
        let text = fs::read_to_string(&page).unwrap();
        for (at, _) in text.match_indices("](") {
            let target = text[at + 2..].split([')', '#']).next().unwrap();
            let target = page.parent().unwrap().join(target);
            assert!(target.exists(), "{}: {}", page.display(), target.display());
            links += 1;
        }
    }
    assert!(links > 60, "{links}");
}

/// Every program's pods have the port, the labels and a namespace that the `PodMonitor` selects.
#[test]
fn podmonitor_selects_every_program() {
    let monitor: Value =
        serde_saphyr::from_str(&read("manifests/monitoring/podmonitor.yaml")).unwrap();
    let spec = &monitor["spec"];
    let namespaces = spec["namespaceSelector"]["matchNames"].as_array().unwrap();
    let port = &spec["podMetricsEndpoints"][0]["port"];
    let label = spec["jobLabel"].as_str().unwrap();
    let mut selected = 0;
    for (place, namespace) in [
        ("host", "karmada-system"),
        ("member", "karmada-rs"),
        ("propagation/host", "karmada-system"),
        ("propagation/cluster/host", "karmada-system"),
        ("pull/member", "karmada-system"),
        ("placement/hub/host", "fleet-system"),
        ("placement/member", "fleet-system"),
    ] {
        assert!(namespaces.contains(&namespace.into()), "{namespace}");
        for workload in super::manifests::installed(place) {
            let pod = &workload["spec"]["template"];
            if pod.is_null() {
                continue;
            }
            let labels = &pod["metadata"]["labels"];
            for (key, value) in spec["selector"]["matchLabels"].as_object().unwrap() {
                assert_eq!(&labels[key], value, "{place}");
            }
            assert_eq!(labels[label], workload["metadata"]["name"], "{place}");
            let ports = &pod["spec"]["containers"][0]["ports"];
            assert_eq!(&ports[0]["name"], port, "{place}");
            selected += 1;
        }
    }
    assert_eq!(selected, 11);
}

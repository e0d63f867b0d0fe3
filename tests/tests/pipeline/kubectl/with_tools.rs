//! The commands of kubectl that take several requests; `api_conformance` has the requests.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails so")]

mod check;
mod join;
mod members;
mod proxy;
mod remedy;
mod why;

use std::{fs, path::Path};

use anyhow::Result;
use pipeline_tests::{
    control_plane::{ApiKind, ControlPlane},
    crds,
    kubectl::Kubectl,
    on_both,
};

/// A Karmada API and kubectl for it.
struct Served {
    kubectl: Kubectl,
    _karmada: ControlPlane,
}

impl Served {
    async fn start(server: ApiKind) -> Result<Self> {
        let karmada = ControlPlane::start("karmada", server).await?;
        karmada.install_crds(&crds::karmada()).await?;
        crds::explained(&karmada.client(), &crds::karmada()).await?;
        Ok(Self {
            kubectl: Kubectl::new(karmada.kubeconfig_path().to_owned())?,
            _karmada: karmada,
        })
    }

    async fn run(&self, line: &str) -> String {
        self.kubectl.run(line).await.unwrap()
    }

    async fn feed(&self, line: &str, input: &str) -> String {
        self.kubectl.feed(line, input).await.unwrap()
    }

    async fn fail(&self, line: &str) -> String {
        self.kubectl.fail(line, "").await.unwrap()
    }
}

fn samples() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../manifests/samples");
    path.display().to_string()
}

/// Returns the words of the first line, and of the line with a name.
fn row<'a>(table: &'a str, name: &str) -> (Vec<&'a str>, Vec<&'a str>) {
    let words = |line: &'a str| line.split_whitespace().collect::<Vec<_>>();
    let first = words(table.lines().next().unwrap_or_default());
    let row = table
        .lines()
        .find(|line| line.split_whitespace().any(|word| word == name));
    (
        first,
        words(row.unwrap_or_else(|| panic!("no {name} in {table}"))),
    )
}

async fn fields_are_explained(server: ApiKind) -> Result<()> {
    let api = Served::start(server).await?;
    let remedy = api.run("explain remedy.spec").await;
    for part in [
        "GROUP:      remedy.karmada.io",
        "KIND:       Remedy",
        "FIELD: spec <Object>",
        "The clusters, the conditions that must match, and the actions",
        "  decisionMatches\t<[]Object>",
        "  actions\t<[]string>",
    ] {
        assert!(remedy.contains(part), "{part:?} is not in {remedy}");
    }
    let rules = api.run("explain mci.spec.rules").await;
    assert!(rules.contains("FIELD: rules <[]Object>"), "{rules}");
    assert!(rules.contains("  host\t<string>"), "{rules}");
    let ports = api.run("explain service.spec.ports").await;
    assert!(ports.contains("  targetPort\t<IntOrString>"), "{ports}");
    assert!(ports.contains("  port\t<integer> -required-"), "{ports}");
    let metadata = api.run("explain remedy.metadata.labels").await;
    assert!(metadata.contains("<map[string]string>"), "{metadata}");
    let all = api.run("explain remedy --recursive").await;
    assert!(all.contains("clusterNames\t<[]string>"), "{all}");
    let missing = api.fail("explain remedy.spec.nothing").await;
    assert!(
        missing.contains("field \"nothing\" does not exist"),
        "{missing}"
    );
    Ok(())
}

async fn manifests_are_applied(server: ApiKind) -> Result<()> {
    let api = Served::start(server).await?;
    api.run("create namespace shop").await;
    let line = format!("apply -f {}", samples());
    let first = api.run(&line).await;
    assert_eq!(
        first
            .lines()
            .filter(|line| line.ends_with(" created"))
            .count(),
        4,
        "{first}"
    );
    let again = api.run(&line).await;
    assert_eq!(
        again
            .lines()
            .filter(|line| line.ends_with(" unchanged"))
            .count(),
        4,
        "{again}"
    );
    let service = "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: shop}\nspec:\n  ports:\n  - {name: a, port: 80}\n  - {name: b, port: 81}\n";
    assert_eq!(
        api.feed("apply -f -", service).await,
        "service/web created\n"
    );
    let fewer = service.replace("  - {name: b, port: 81}\n", "");
    assert_eq!(
        api.feed("apply -f -", &fewer).await,
        "service/web configured\n"
    );
    let ports = api
        .run("get service web -n shop -o jsonpath={.spec.ports[*].port}")
        .await;
    assert_eq!(ports, "80");
    let wrong = service.replace("spec:", "spec:\n  nonsense: 1");
    let refused = api.kubectl.fail("apply -f -", &wrong).await.unwrap();
    assert!(
        refused.contains("unknown field \"spec.nonsense\""),
        "{refused}"
    );
    Ok(())
}

/// A dry run and a diff change nothing.
async fn dry_run_changes_nothing(server: ApiKind) -> Result<()> {
    let api = Served::start(server).await?;
    let manifest = fs::read_to_string(format!("{}/remedy-dns.yaml", samples())).unwrap();
    let tried = api.feed("apply --dry-run=server -f -", &manifest).await;
    assert_eq!(
        tried,
        "remedy.remedy.karmada.io/dns created (server dry run)\n"
    );
    assert!(api.fail("get remedy dns").await.contains("NotFound"));
    api.feed("apply -f -", &manifest).await;
    let changed = manifest.replace("TrafficControl", "Drain");
    let difference = api.kubectl.fail("diff -f -", &changed).await.unwrap();
    assert!(
        difference.contains("-  - TrafficControl") && difference.contains("+  - Drain"),
        "{difference}"
    );
    assert_eq!(api.feed("diff -f -", &manifest).await, "");
    assert_eq!(
        api.run("get remedy dns -o jsonpath={.spec.actions[0]}")
            .await,
        "TrafficControl"
    );
    let invalid = manifest.replace("operator: Equal", "operator: Similar");
    let refused = api
        .kubectl
        .fail("apply --dry-run=server -f -", &invalid)
        .await
        .unwrap();
    assert!(
        refused
            .contains("Unsupported value: \"Similar\": supported values: \"Equal\", \"NotEqual\""),
        "{refused}"
    );
    Ok(())
}

/// Objects are described with their events.
async fn describe_shows_events(server: ApiKind) -> Result<()> {
    let api = Served::start(server).await?;
    let remedy = "apiVersion: remedy.karmada.io/v1alpha1\nkind: Remedy\nmetadata:\n  name: dns\n  \
                  labels: {team: a}\nspec:\n  actions: [TrafficControl]\n";
    api.feed("create -f -", remedy).await;
    let uid = api.run("get remedy dns -o jsonpath={.metadata.uid}").await;
    let event = format!(
        "apiVersion: v1\nkind: Event\nmetadata: {{name: e1, namespace: default}}\ntype: Normal\nreason: Acted\n\
         message: took traffic away\ncount: 1\nfirstTimestamp: 2026-01-01T00:00:00Z\nlastTimestamp: 2026-01-01T00:00:00Z\n\
         involvedObject: {{apiVersion: remedy.karmada.io/v1alpha1, kind: Remedy, name: dns, uid: {uid}}}\n"
    );
    api.feed("create -f -", &event).await;
    let described = api.run("describe remedy dns").await;
    for part in [
        "Name:         dns",
        "Labels:       team=a",
        "Traffic",
        "Acted",
        "took traffic away",
    ] {
        assert!(described.contains(part), "{part:?} is not in {described}");
    }
    let events = api.run("get events").await;
    let (titles, cells) = row(&events, "Acted");
    assert_eq!(titles[..2], ["LAST", "SEEN"]);
    assert_eq!(cells[3], "remedy/dns");
    api.run("create service clusterip web --tcp=80:8080").await;
    for (kind, part) in [("service/web", "8080/TCP"), ("namespace/default", "Active")] {
        let described = api.run(&format!("describe {kind}")).await;
        assert!(described.contains(part), "{described}");
    }
    Ok(())
}

on_both!(
    fields_are_explained,
    manifests_are_applied,
    dry_run_changes_nothing,
    describe_shows_events,
);

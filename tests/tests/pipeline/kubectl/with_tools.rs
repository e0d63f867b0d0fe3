#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails so")]

mod check;
mod join;
mod members;
mod proxy;
mod remedy;
mod why;

use std::{fs, path::Path};

use anyhow::{Result, ensure};
use pipeline_tests::{
    control_plane::{ApiKind, ControlPlane, ControlPlaneOptions},
    crds,
    kubectl::Kubectl,
    on_both,
};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};

/// A Karmada API and kubectl for it.
struct Served {
    kubectl: Kubectl,
    karmada: ControlPlane,
}

impl Served {
    async fn start(server: ApiKind) -> Result<Self> {
        let options = ControlPlaneOptions::named("karmada").on(server);
        let karmada = ControlPlane::start(options).await?;
        karmada.install_crds(&crds::karmada()).await?;
        crds::explained(&karmada.client(), &crds::karmada()).await?;
        Ok(Self {
            kubectl: Kubectl::new(karmada.kubeconfig_path().to_owned())?,
            karmada,
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

    /// Creates a Remedy with labels and actions.
    async fn remedy(&self, name: &str, labels: &str) {
        let manifest = format!(
            "apiVersion: remedy.karmada.io/v1alpha1\nkind: Remedy\nmetadata:\n  name: {name}\n  \
             labels: {{{labels}}}\nspec:\n  actions: [TrafficControl]\n"
        );
        let created = self.feed("create -f -", &manifest).await;
        assert_eq!(
            created,
            format!("remedy.remedy.karmada.io/{name} created\n")
        );
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

/// Objects are shown as a real server shows them.
async fn get_shows_real_columns(server: ApiKind) -> Result<()> {
    let api = Served::start(server).await?;
    api.remedy("dns", "team: a").await;
    api.remedy("maintenance", "team: b").await;
    let table = api.run("get remedies").await;
    let (titles, cells) = row(&table, "dns");
    let columns = ["NAME", "ACTIONS", "ACTIVE", "ACCEPTED", "EXPIRES", "AGE"];
    assert_eq!(titles, columns);
    assert_eq!(cells[..2], ["dns", r#"["TrafficControl"]"#]);
    assert!(cells[2].ends_with('s'), "{table}");
    assert_eq!(table.lines().count(), 3);

    let selected = api.run("get remedies -l team=b -o name").await;
    assert_eq!(selected, "remedy.remedy.karmada.io/maintenance\n");
    let selected = api
        .run("get remedies --field-selector metadata.name=dns -o name")
        .await;
    assert_eq!(selected, "remedy.remedy.karmada.io/dns\n");
    let labels = api.run("get remedies --show-labels").await;
    assert!(labels.contains("team=a"), "{labels}");
    let yaml = api.run("get remedy dns -o yaml").await;
    assert!(
        yaml.contains("\n  actions:\n  - TrafficControl\n"),
        "{yaml}"
    );
    let path = api
        .run("get remedy dns -o jsonpath={.spec.actions[0]}")
        .await;
    assert_eq!(path, "TrafficControl");
    let sorted = api
        .run("get remedies --sort-by=.metadata.name -o name")
        .await;
    assert_eq!(sorted.lines().count(), 2);
    let chunked = api.run("get remedies --chunk-size=1 -o name").await;
    assert_eq!(chunked, sorted);

    api.run("create service clusterip web --tcp=80").await;
    let wide = api.run("get services -A -o wide").await;
    let (titles, cells) = row(&wide, "web");
    assert_eq!(titles.last(), Some(&"SELECTOR"));
    assert_eq!(cells[..3], ["default", "web", "ClusterIP"]);
    assert_eq!(cells.last(), Some(&"app=web"));
    let missing = api.fail("get remedy none").await;
    assert_eq!(
        missing,
        "Error from server (NotFound): remedies.remedy.karmada.io \"none\" not found\n"
    );
    let unknown = api.fail("get nonsense").await;
    assert!(
        unknown.contains("the server doesn't have a resource type \"nonsense\""),
        "{unknown}"
    );
    Ok(())
}

/// Creates an object of `tests/fixtures` with its status.
async fn create_fixture(api: &Served, name: &str) -> Result<()> {
    let path = format!("{}/fixtures/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let mut object: Value = serde_json::from_str(&fs::read_to_string(path)?)?;
    for own in ["creationTimestamp", "generation", "resourceVersion", "uid"] {
        object["metadata"].as_object_mut().unwrap().remove(own);
    }
    api.feed("create -f -", &object.to_string()).await;
    if object["status"].is_object() {
        let status = json!({ "status": object["status"] }).to_string();
        let mut line = vec!["patch", name, object["metadata"]["name"].as_str().unwrap()];
        if let Some(namespace) = object["metadata"]["namespace"].as_str() {
            line.extend(["-n", namespace]);
        }
        line.extend(["--subresource=status", "--type=merge", "-p", &status]);
        api.kubectl.run_args(&line).await?;
    }
    Ok(())
}

/// The columns that matter are shown.
async fn our_columns_are_shown(server: ApiKind) -> Result<()> {
    let api = Served::start(server).await?;
    api.run("create namespace bench").await;
    create_fixture(&api, "remedy").await?;
    create_fixture(&api, "multiclusteringress").await?;
    let table = api.run("get remedies").await;
    let (titles, cells) = row(&table, "dns");
    let columns = ["NAME", "ACTIONS", "ACTIVE", "ACCEPTED", "EXPIRES", "AGE"];
    assert_eq!(titles, columns);
    assert_eq!(cells[1], r#"["TrafficControl"]"#);
    let expires = "annotate remedy dns remedy.karmada-rs.io/expires-at=2026-11-20T18:00:00Z";
    api.run(expires).await;
    let status = json!({ "status": { "activeClusters": 2, "conditions": [{
        "type": "Accepted", "status": "True", "reason": "Accepted", "message": "",
        "lastTransitionTime": "2026-11-20T08:00:00Z" }] } });
    let line = "patch remedy dns --subresource=status --type=merge -p";
    let status = status.to_string();
    let line: Vec<&str> = line.split(' ').chain([&*status]).collect();
    api.kubectl.run_args(&line).await?;
    let table = api.run("get remedies").await;
    let (_, cells) = row(&table, "dns");
    assert_eq!(cells[2..5], ["2", "True", "2026-11-20T18:00:00Z"]);
    let blocked = r#"{"status":{"trafficBlockClusters":["c00001"]}}"#;
    let line = "patch mci m00000 -n bench --subresource=status --type=merge -p";
    let mut line: Vec<&str> = line.split(' ').collect();
    line.push(blocked);
    api.kubectl.run_args(&line).await?;
    let table = api.run("get mci -n bench").await;
    let (titles, cells) = row(&table, "m00000");
    assert_eq!(
        titles,
        ["NAME", "CLASS", "HOSTS", "BLOCKED", "ADDRESS", "AGE"]
    );
    assert_eq!(
        cells[1..5],
        ["fake", "h0.example.com", r#"["c00001"]"#, "1.2.3.5"]
    );
    Ok(())
}

/// Kinds, short names and categories can be combined.
async fn kinds_can_be_combined(server: ApiKind) -> Result<()> {
    let api = Served::start(server).await?;
    api.run("create namespace shop").await;
    api.run(&format!("apply -f {}", samples())).await;
    let all = api.run("get clusters,remedies,mci -A").await;
    for name in [
        "remedy.remedy.karmada.io/dns",
        "multiclusteringress.networking.karmada.io/shop",
    ] {
        assert!(all.contains(name), "{all}");
    }
    let category = api.run("get karmada-io -A").await;
    for name in [
        "remedy.remedy.karmada.io/maintenance-member1",
        "multiclusteringress.networking.karmada.io/shop",
    ] {
        assert!(category.contains(name), "{category}");
    }
    let (titles, cells) = row(&category, "multiclusteringress.networking.karmada.io/shop");
    assert_eq!(titles[..2], ["NAMESPACE", "NAME"]);
    assert_eq!(
        cells[..4],
        [
            "shop",
            "multiclusteringress.networking.karmada.io/shop",
            "karmada-rs",
            "shop.example.com"
        ]
    );
    Ok(())
}

async fn resources_are_listed(server: ApiKind) -> Result<()> {
    let api = Served::start(server).await?;
    let resources = api.run("api-resources -o wide").await;
    let (_, remedies) = row(&resources, "remedies");
    assert_eq!(
        remedies[..4],
        ["remedies", "remedy.karmada.io/v1alpha1", "false", "Remedy"]
    );
    assert!(
        remedies.last().unwrap().contains("karmada-io"),
        "{remedies:?}"
    );
    let (_, ingresses) = row(&resources, "multiclusteringresses");
    assert_eq!(ingresses[1], "mci");
    let versions = api.run("api-versions").await;
    for version in ["v1", "remedy.karmada.io/v1alpha1", "coordination.k8s.io/v1"] {
        assert!(versions.lines().any(|line| line == version), "{versions}");
    }
    let version = api.run("version").await;
    assert!(version.contains("Server Version: v1.36"), "{version}");
    Ok(())
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

/// An apply by the server respects owners.
async fn server_side_apply_respects_owners(server: ApiKind) -> Result<()> {
    let api = Served::start(server).await?;
    let map = |value: &str| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: one}}\ndata: {{a: '{value}'}}\n"
        )
    };
    let applied = api
        .feed("apply --server-side -f - --field-manager=me", &map("1"))
        .await;
    assert_eq!(applied, "configmap/one serverside-applied\n");
    let refused = api
        .kubectl
        .fail("apply --server-side -f - --field-manager=you", &map("2"))
        .await
        .unwrap();
    assert!(
        refused.contains("Apply failed with 1 conflict: conflict with \"me\": .data.a"),
        "{refused}"
    );
    api.feed(
        "apply --server-side --force-conflicts -f - --field-manager=you",
        &map("2"),
    )
    .await;
    assert_eq!(
        api.run("get configmap one -o jsonpath={.data.a}").await,
        "2"
    );
    let managers = api.run("get configmap one --show-managed-fields -o jsonpath={.metadata.managedFields[*].manager}").await;
    assert_eq!(managers, "you");
    Ok(())
}

async fn objects_are_patched(server: ApiKind) -> Result<()> {
    let api = Served::start(server).await?;
    api.remedy("dns", "").await;
    let merge = [
        "patch",
        "remedy",
        "dns",
        "--type=merge",
        "-p",
        r#"{"spec":{"actions":["A"]}}"#,
    ];
    api.kubectl.run_args(&merge).await.unwrap();
    let json = [
        "patch",
        "remedy",
        "dns",
        "--type=json",
        "-p",
        r#"[{"op":"add","path":"/spec/actions/-","value":"B"}]"#,
    ];
    api.kubectl.run_args(&json).await.unwrap();
    assert_eq!(
        api.run("get remedy dns -o jsonpath={.spec.actions}").await,
        r#"["A","B"]"#
    );
    let status = [
        "patch",
        "remedy",
        "dns",
        "--subresource=status",
        "--type=merge",
        "-p",
        r#"{"status":{"activeClusters":7}}"#,
    ];
    api.kubectl.run_args(&status).await.unwrap();
    assert_eq!(
        api.run("get remedy dns -o jsonpath={.status.activeClusters}")
            .await,
        "7"
    );
    let strategic = api.fail(r#"patch remedy dns -p {"spec":{}}"#).await;
    assert!(
        strategic.contains("strategic-merge-patch+json is not supported"),
        "{strategic}"
    );
    Ok(())
}

async fn objects_are_labelled_and_annotated(server: ApiKind) -> Result<()> {
    let api = Served::start(server).await?;
    api.run("create configmap one --from-literal=a=1").await;
    let strategic = ["patch", "configmap", "one", "-p", r#"{"data":{"b":"2"}}"#];
    api.kubectl.run_args(&strategic).await.unwrap();
    api.run("label configmap one team=a").await;
    let refused = api.fail("label configmap one team=b").await;
    assert!(
        refused.contains("'team' already has a value (a)"),
        "{refused}"
    );
    api.run("label configmap one team=b --overwrite").await;
    api.run("annotate configmap one note=hello").await;
    api.run("label configmap one team-").await;
    let one: Value = serde_json::from_str(&api.run("get configmap one -o json").await).unwrap();
    assert_eq!(one["data"], serde_json::json!({ "a": "1", "b": "2" }));
    assert_eq!(one["metadata"]["annotations"]["note"], "hello");
    assert_eq!(one["metadata"].get("labels"), None);
    Ok(())
}

async fn an_object_is_edited(server: ApiKind) -> Result<()> {
    let api = Served::start(server).await?;
    api.remedy("dns", "").await;
    for editor in ["sed -i s/TrafficControl/Drain/", "true"] {
        let mut command = api.kubectl.command(&["edit", "remedy", "dns"]).unwrap();
        let output = command.env("KUBE_EDITOR", editor).output().await.unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        let expected = if editor == "true" {
            "Edit cancelled, no changes made"
        } else {
            "remedy.remedy.karmada.io/dns edited"
        };
        assert!(said.contains(expected), "{said}");
    }
    assert_eq!(
        api.run("get remedy dns -o jsonpath={.spec.actions[0]}")
            .await,
        "Drain"
    );
    Ok(())
}

/// Objects are deleted in each way.
async fn every_deletion_works(server: ApiKind) -> Result<()> {
    let api = Served::start(server).await?;
    api.remedy("dns", "").await;
    let hold = [
        "patch",
        "remedy",
        "dns",
        "--type=merge",
        "-p",
        r#"{"metadata":{"finalizers":["example.com/hold"]}}"#,
    ];
    api.kubectl.run_args(&hold).await.unwrap();
    api.run("delete remedy dns --wait=false").await;
    let deleting = api
        .run("get remedy dns -o jsonpath={.metadata.deletionTimestamp}")
        .await;
    assert!(deleting.ends_with('Z'), "{deleting}");
    let mut waiting = api
        .kubectl
        .command(&["wait", "remedy/dns", "--for=delete", "--timeout=60s"])
        .unwrap()
        .spawn()
        .unwrap();
    let release = [
        "patch",
        "remedy",
        "dns",
        "--type=merge",
        "-p",
        r#"{"metadata":{"finalizers":null}}"#,
    ];
    api.kubectl.run_args(&release).await.unwrap();
    assert!(waiting.wait().await.unwrap().success());
    Ok(())
}

/// What is owned is deleted or orphaned.
async fn owned_objects_follow_or_stay(server: ApiKind) -> Result<()> {
    let mut api = Served::start(server).await?;
    api.karmada.start_controllers().await?;
    for (cascade, is_kept) in [
        ("orphan", true),
        ("foreground", false),
        ("background", false),
    ] {
        api.run("create configmap owner").await;
        let uid = api
            .run("get configmap owner -o jsonpath={.metadata.uid}")
            .await;
        let owned = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: owned\n  ownerReferences:\n  \
             - {{apiVersion: v1, kind: ConfigMap, name: owner, uid: {uid}, blockOwnerDeletion: true}}\n"
        );
        api.feed("create -f -", &owned).await;
        api.run(&format!("delete configmap owner --cascade={cascade}"))
            .await;
        if is_kept {
            let owners = api
                .run("get configmap owned -o jsonpath={.metadata.ownerReferences}")
                .await;
            assert_eq!(owners, "", "{cascade}");
            api.run("delete configmap owned").await;
        } else {
            api.run("wait configmap/owned --for=delete --timeout=60s")
                .await;
        }
    }
    Ok(())
}

/// A namespace takes its contents with it.
async fn namespace_takes_its_contents(server: ApiKind) -> Result<()> {
    let mut api = Served::start(server).await?;
    api.karmada.start_controllers().await?;
    api.run("create namespace shop").await;
    api.run("create configmap one -n shop").await;
    api.run("delete namespace shop").await;
    let gone = api.fail("get configmap one -n shop").await;
    assert!(gone.contains("NotFound"), "{gone}");
    api.run("create configmap one").await;
    api.run("delete configmaps --all").await;
    assert_eq!(api.run("get configmaps -o name").await, "");
    Ok(())
}

async fn kubectl_waits_for_what_comes(server: ApiKind) -> Result<()> {
    let api = Served::start(server).await?;
    api.remedy("dns", "").await;
    for (condition, patch) in [
        (
            "--for=condition=Active",
            r#"{"status":{"conditions":[{"type":"Active","status":"True","reason":"R","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}"#,
        ),
        (
            "--for=jsonpath={.status.activeClusters}=3",
            r#"{"status":{"activeClusters":3}}"#,
        ),
    ] {
        let arguments = ["wait", "remedy/dns", condition, "--timeout=60s"];
        let waiting = api.kubectl.command(&arguments).unwrap().spawn().unwrap();
        let patch = [
            "patch",
            "remedy",
            "dns",
            "--subresource=status",
            "--type=merge",
            "-p",
            patch,
        ];
        api.kubectl.run_args(&patch).await.unwrap();
        let output = waiting.wait_with_output().await.unwrap();
        assert!(output.status.success(), "{output:?}");
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            "remedy.remedy.karmada.io/dns condition met\n"
        );
    }
    Ok(())
}

async fn changes_are_watched(server: ApiKind) -> Result<()> {
    let api = Served::start(server).await?;
    api.remedy("dns", "").await;
    let mut watch = api
        .kubectl
        .command(&["get", "remedies", "--watch", "--output-watch-events"])
        .unwrap()
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let mut next = async || -> Result<Vec<String>> {
        let line = lines.next_line().await?.unwrap_or_default();
        Ok(line
            .split_whitespace()
            .take(2)
            .map(ToOwned::to_owned)
            .collect())
    };
    assert_eq!(next().await.unwrap(), ["EVENT", "NAME"]);
    assert_eq!(next().await.unwrap(), ["ADDED", "dns"]);
    api.run("label remedy dns team=a").await;
    assert_eq!(next().await.unwrap(), ["MODIFIED", "dns"]);
    api.remedy("other", "").await;
    assert_eq!(next().await.unwrap(), ["ADDED", "other"]);
    api.run("delete remedy dns").await;
    assert_eq!(next().await.unwrap(), ["DELETED", "dns"]);
    watch.kill().await.unwrap();
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
    api.remedy("dns", "team: a").await;
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

async fn objects_are_created_from_arguments(server: ApiKind) -> Result<()> {
    let api = Served::start(server).await?;
    for (line, printed) in [
        ("create namespace shop", "namespace/shop created"),
        (
            "create configmap one --from-literal=a=1",
            "configmap/one created",
        ),
        (
            "create secret generic one --from-literal=a=1",
            "secret/one created",
        ),
        (
            "create service clusterip one --tcp=80",
            "service/one created",
        ),
        ("create serviceaccount one", "serviceaccount/one created"),
        (
            "create ingress one --class=c --rule=a.com/*=web:80",
            "ingress.networking.k8s.io/one created",
        ),
        (
            "create role one --verb=get --resource=configmaps",
            "role.rbac.authorization.k8s.io/one created",
        ),
        (
            "create clusterrolebinding one --clusterrole=c --user=u",
            "clusterrolebinding.rbac.authorization.k8s.io/one created",
        ),
    ] {
        assert_eq!(api.run(line).await.trim_end(), printed);
    }
    let twice = api.fail("create namespace shop").await;
    ensure!(
        twice.contains("(AlreadyExists): namespaces \"shop\" already exists"),
        "{twice}"
    );
    let replaced = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {b: '2'}\n";
    assert_eq!(
        api.feed("replace -f -", replaced).await,
        "configmap/one replaced\n"
    );
    assert_eq!(
        api.run("get configmap one -o jsonpath={.data}").await,
        r#"{"b":"2"}"#
    );
    Ok(())
}

on_both!(
    get_shows_real_columns,
    our_columns_are_shown,
    kinds_can_be_combined,
    resources_are_listed,
    fields_are_explained,
    manifests_are_applied,
    server_side_apply_respects_owners,
    objects_are_patched,
    objects_are_labelled_and_annotated,
    an_object_is_edited,
    every_deletion_works,
    owned_objects_follow_or_stay,
    namespace_takes_its_contents,
    kubectl_waits_for_what_comes,
    changes_are_watched,
    dry_run_changes_nothing,
    describe_shows_events,
    objects_are_created_from_arguments,
);

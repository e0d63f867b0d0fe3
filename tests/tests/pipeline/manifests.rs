//! The manifests, as files.
#![expect(clippy::unwrap_used, reason = "a test fails so")]

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;
use tools::cargo;

/// Returns the files with objects in a folder and those below it.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(self::files(&path));
        } else if path.extension().is_some_and(|end| end == "yaml")
            && !path.ends_with("kustomization.yaml")
        {
            files.push(path);
        }
    }
    files
}

/// Returns the objects of all manifests in a folder.
fn objects(folder: &Path) -> Vec<Value> {
    files(folder).iter().flat_map(|path| read(path)).collect()
}

fn read(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    serde_saphyr::from_multiple(&text).unwrap()
}

/// Returns the objects that a user installs at this place.
pub(crate) fn installed(place: &str) -> Vec<Value> {
    objects(&cargo::root().join("manifests").join(place))
}

fn of_kind<'a>(objects: &'a [Value], kind: &str) -> Vec<&'a Value> {
    objects
        .iter()
        .filter(|object| object["kind"] == kind)
        .collect()
}

/// No object of Karmada's is among those that a user deletes.
#[test]
fn deleting_spares_karmada() {
    for place in [
        "karmada",
        "gateway",
        "dns",
        "gateway-api",
        "host",
        "tls-secrets",
        "member",
        "propagation",
        "admission",
        "placement/hub",
        "placement/member",
        "placement/ingresses",
        "placement/remedies",
        "pull",
        "monitoring",
        "renew",
        "practice",
    ] {
        let objects = installed(place);
        assert!(!objects.is_empty(), "{place}");
        for kind in ["Namespace", "CustomResourceDefinition", "APIService"] {
            assert!(of_kind(&objects, kind).is_empty(), "{kind} in {place}");
        }
    }
}

/// Returns the folder of the manifests, without symbolic links.
fn manifests() -> PathBuf {
    cargo::root().join("manifests").canonicalize().unwrap()
}

/// Returns the files that `places.sh` has for the APIs, those of its kustomizations one by one.
fn placed() -> BTreeSet<PathBuf> {
    let manifests = manifests();
    let script = fs::read_to_string(manifests.join("places.sh")).unwrap();
    let (_, places) = script.split_once("<<'PLACES'\n").unwrap();
    let (places, _) = places.split_once("\nPLACES\n").unwrap();
    let parts = places
        .lines()
        .flat_map(|line| line.split_whitespace().skip(2));
    let mut paths: Vec<PathBuf> = parts.map(|part| manifests.join(part)).collect();
    let mut files = BTreeSet::new();
    while let Some(path) = paths.pop() {
        let Ok(text) = fs::read_to_string(path.join("kustomization.yaml")) else {
            files.insert(path);
            continue;
        };
        let kustomization: Value = serde_saphyr::from_str(&text).unwrap();
        let resources = kustomization["resources"].as_array().into_iter().flatten();
        let resources = resources.map(|resource| path.join(resource.as_str().unwrap()));
        paths.extend(resources.map(|path| path.canonicalize().unwrap()));
    }
    files
}

/// Returns the objects that `places.sh` has for the APIs.
pub(crate) fn applied() -> Vec<Value> {
    let paths = placed().into_iter();
    paths
        .flat_map(|path| {
            if path.is_dir() {
                objects(&path)
            } else {
                read(&path)
            }
        })
        .collect()
}

/// Whatever is applied at any place is taken away by `uninstall.sh`: no manifest of an account, a right or a program is unknown to it.
#[test]
fn uninstallation_knows_every_manifest() {
    let (manifests, placed) = (manifests(), placed());
    let mut known = 0;
    for place in [
        "admission",
        "dns",
        "gateway",
        "gateway-api",
        "host",
        "karmada",
        "member",
        "placement",
        "practice",
        "propagation",
        "pull",
        "renew",
        "tls-secrets",
    ] {
        for path in files(&manifests.join(place)) {
            // Parts of the agent that go with its namespace, and kinds, which stay.
            let is_left = ["member/service-network", "placement/crds"]
                .iter()
                .any(|folder| path.starts_with(manifests.join(folder)));
            assert!(is_left || placed.contains(&path), "{}", path.display());
            known += 1;
        }
    }
    assert!(known > 50, "{known}");
}

/// A condition that our programs write is one that `clean.sh` removes.
#[test]
fn cleaning_knows_every_condition() {
    let script = fs::read_to_string(cargo::root().join("manifests/clean.sh")).unwrap();
    let (_, removed) = script.split_once("remove_conditions \"$kind\"").unwrap();
    let (removed, _) = removed.split_once("removals").unwrap();
    for condition in karmada_api::condition::OWNED {
        assert!(removed.contains(condition), "{condition}");
    }
}

/// Whoever looks up a credential finds its account: docs/security.md has a row for each.
#[test]
fn page_lists_every_account() {
    let page = fs::read_to_string(cargo::root().join("docs/security.md")).unwrap();
    let mut listed = 0;
    for (place, own) in [
        ("karmada", ""),
        ("gateway", "karmada-rs"),
        ("dns", ""),
        ("member", "karmada-rs"),
        ("propagation", "karmada-system"),
        ("placement/hub", ""),
        ("placement/member", ""),
        ("placement/ingresses", ""),
        ("placement/remedies", ""),
        ("pull", ""),
        ("renew", ""),
        ("practice", ""),
    ] {
        let objects = installed(place);
        for account in of_kind(&objects, "ServiceAccount") {
            let metadata = &account["metadata"];
            let (name, namespace) = (metadata["name"].as_str().unwrap(), &metadata["namespace"]);
            let namespace = namespace.as_str().unwrap_or(own).replace("member1", "NAME");
            // On the host, accounts of pods have no rights: a sentence is about all of them.
            if name.starts_with("karmada-rs-") {
                continue;
            }
            let row = format!("\n| `{namespace}/{name}` ");
            assert!(page.contains(&row), "{place}: no row of {namespace}/{name}");
            listed += 1;
        }
    }
    assert_eq!(listed, 22);
}

/// Nobody gets the rights to every kind unasked, and with them `clusters/proxy` of a Karmada. `*/finalizers` is no path.
#[test]
fn fleet_rights_list_their_kinds() {
    let optional = installed("propagation/everything");
    let is_optional = |role: &Value| optional.contains(role);
    for place in ["karmada", "propagation", "pull"] {
        let roles = installed(place);
        let roles = of_kind(&roles, "ClusterRole").into_iter();
        let mut listed = 0;
        for role in roles.filter(|role| !is_optional(role)) {
            for rule in role["rules"].as_array().into_iter().flatten() {
                let resources = rule["resources"].as_array().unwrap();
                let mut wildcards = resources
                    .iter()
                    .filter(|one| one.as_str().unwrap().contains('*'));
                assert!(wildcards.all(|one| one == "*/finalizers"), "{role}");
                listed += 1;
            }
        }
        assert!(listed > 0, "{place}");
    }
}

/// A user who forgets to name a registry runs nobody's image: that of the manifests cannot be pulled.
#[test]
fn images_have_no_owner() {
    let mut named = 0;
    for place in [
        "host",
        "member",
        "gateway/reachability",
        "propagation/host",
        "propagation/cluster/host",
        "placement/hub/host",
        "placement/member",
        "pull/member",
        "renew/host",
        "renew/programs",
        "practice/host",
    ] {
        let path = cargo::root().join("manifests").join(place);
        let text = fs::read_to_string(path.join("kustomization.yaml")).unwrap();
        let kustomization: Value = serde_saphyr::from_str(&text).unwrap();
        for image in kustomization["images"].as_array().unwrap() {
            let name = image["newName"].as_str().unwrap();
            assert!(name.starts_with("registry.invalid/"), "{name} in {place}");
            named += 1;
        }
    }
    assert_eq!(named, 15);
}

/// Pods run on Linux nodes with an account of their own and no priority class.
#[test]
fn pods_have_own_accounts() {
    let mut checked = 0;
    for place in [
        "host",
        "member",
        "gateway/reachability",
        "propagation/host",
        "propagation/cluster/host",
        "placement/hub/host",
        "placement/member",
        "pull/member",
    ] {
        let objects = installed(place);
        let accounts = of_kind(&objects, "ServiceAccount");
        for workload in ["Deployment", "DaemonSet"]
            .iter()
            .flat_map(|kind| of_kind(&objects, kind))
        {
            let name = &workload["metadata"]["name"];
            let pod = &workload["spec"]["template"]["spec"];
            assert_eq!(pod["nodeSelector"]["kubernetes.io/os"], "linux", "{name}");
            // Namespaces other than kube-system may admit the system's classes by quota only.
            assert_eq!(pod["priorityClassName"], Value::Null, "{name}");
            let account = &pod["serviceAccountName"];
            let mut names = accounts.iter().map(|account| &account["metadata"]["name"]);
            assert!(
                account.is_string() && names.any(|name| name == account),
                "{name}: {account}"
            );
            checked += 1;
        }
    }
    assert_eq!(checked, 12);
}

/// Nobody but Prometheus reaches the port of a program, and a default-deny policy cuts none off from its API.
#[test]
fn ports_are_guarded() {
    let mut guarded = 0;
    for place in [
        "host",
        "propagation/host",
        "propagation/cluster/host",
        "placement/hub/host",
        "placement/member",
        "pull/member",
    ] {
        let objects = installed(place);
        let policies = of_kind(&objects, "NetworkPolicy");
        for program in of_kind(&objects, "Deployment") {
            let name = &program["metadata"]["name"];
            let policy = policies
                .iter()
                .find(|policy| policy["metadata"]["name"] == *name)
                .unwrap();
            assert_eq!(
                policy["spec"]["podSelector"], program["spec"]["selector"],
                "{name}"
            );
            let from = &policy["spec"]["ingress"][0]["from"];
            assert_eq!(from.as_array().map(Vec::len), Some(1), "{name}");
            assert_eq!(policy["spec"]["egress"], serde_json::json!([{}]), "{name}");
            guarded += 1;
        }
    }
    assert_eq!(guarded, 10);
}

/// The replicas of a controller, and those of HAProxy, are spread over nodes, and a drain of nodes leaves one.
#[test]
fn replicas_are_spread() {
    let places = [
        "host",
        "haproxy",
        "propagation/host",
        "propagation/cluster/host",
        "placement",
        "pull",
    ];
    let objects = places.map(installed).concat();
    let budgets = of_kind(&objects, "PodDisruptionBudget");
    let workloads = ["Deployment", "StatefulSet"].map(|kind| of_kind(&objects, kind));
    let workloads = workloads.concat();
    assert_eq!(workloads.len(), 11);
    for workload in workloads {
        let spec = &workload["spec"];
        let mut budgets = budgets.iter().map(|budget| &budget["spec"]);
        let budget = budgets.find(|budget| budget["selector"] == spec["selector"]);
        assert_eq!(budget.unwrap()["minAvailable"], 1);
        let spread = &spec["template"]["spec"]["topologySpreadConstraints"][0];
        assert_eq!(spread["topologyKey"], "kubernetes.io/hostname");
        // A single node must be enough.
        assert_eq!(spread["whenUnsatisfiable"], "ScheduleAnyway");
        assert_eq!(spread["labelSelector"], spec["selector"]);
    }
}

/// Only agents and Prometheus reach the port of the agents.
#[test]
fn agents_port_is_guarded() {
    for place in ["member", "gateway/reachability"] {
        port_is_guarded(&installed(place));
    }
}

fn port_is_guarded(objects: &[Value]) {
    let policies = of_kind(objects, "NetworkPolicy");
    let sets = of_kind(objects, "DaemonSet");
    assert_eq!((policies.len(), sets.len()), (1, 1));
    let (policy, agents) = (policies[0], sets[0]);
    let selector = &agents["spec"]["selector"];
    let spec = &policy["spec"];
    assert_eq!(&spec["podSelector"], selector);
    assert_eq!(
        spec["policyTypes"],
        serde_json::json!(["Ingress", "Egress"])
    );
    // A default-deny policy must not make DNS look dead.
    assert_eq!(spec["egress"], serde_json::json!([{}]));
    let rules = spec["ingress"].as_array().unwrap();
    assert_eq!(rules.len(), 1);
    let from = rules[0]["from"].as_array().unwrap();
    assert_eq!(&from[0]["podSelector"], selector);
    assert_eq!(from[0]["namespaceSelector"], Value::Null);
    assert_eq!(
        from[1]["podSelector"]["matchLabels"]["app.kubernetes.io/name"],
        "prometheus"
    );
    assert_eq!(from.len(), 2);
    let container = &agents["spec"]["template"]["spec"]["containers"][0];
    let ports = container["ports"].as_array().unwrap();
    assert_eq!(ports.len(), 1);
    assert_eq!(
        rules[0]["ports"],
        serde_json::json!([{ "port": ports[0]["name"], "protocol": "TCP" }])
    );
}

/// The samples work in both homes: the taint of Karmada's policy is the one that our flag makes, and the
/// policies of the shop tolerate it.
#[test]
fn samples_share_one_taint() {
    let condition = karmada_api::condition::DNS_READY;
    let key = format!("cluster.karmada-rs.io/{condition}");
    let objects = installed("samples");
    let [tainting] = of_kind(&objects, "ClusterTaintPolicy")[..] else {
        panic!("not one ClusterTaintPolicy");
    };
    let spec = &tainting["spec"];
    for (moment, status) in [("addOnConditions", "False"), ("removeOnConditions", "True")] {
        let conditions = serde_json::json!([{ "conditionType": condition, "operator": "In",
            "statusValues": [status] }]);
        assert_eq!(spec[moment], conditions);
    }
    let taints = ["NoSchedule", "NoExecute"]
        .map(|effect| serde_json::json!({ "key": key, "value": "False", "effect": effect }));
    assert_eq!(spec["taints"], serde_json::json!(taints));
    let policies = of_kind(&objects, "PropagationPolicy");
    assert_eq!(policies.len(), 5);
    for policy in policies {
        let toleration = &policy["spec"]["placement"]["clusterTolerations"][0];
        assert_eq!(
            (&toleration["key"], &toleration["operator"]),
            (&key.clone().into(), &"Exists".into())
        );
    }
}

/// Each variable that a `ConfigMap` hands to the programs in a member is one of their flags.
#[test]
fn variables_are_flags() {
    let page = fs::read_to_string(cargo::root().join("docs/reference/flags.md")).unwrap();
    for (place, programs) in [
        ("placement/member", &["placement-agent"][..]),
        (
            "pull/member",
            &["execution-controller", "cluster-controller"],
        ),
    ] {
        let path = cargo::root().join("manifests").join(place);
        let text = fs::read_to_string(path.join("kustomization.yaml")).unwrap();
        let kustomization: Value = serde_saphyr::from_str(&text).unwrap();
        let literals = kustomization["configMapGenerator"][0]["literals"].as_array();
        for literal in literals.unwrap() {
            let (variable, _) = literal.as_str().unwrap().split_once('=').unwrap();
            for program in programs {
                let (_, section) = page.split_once(&format!("\n## {program}\n")).unwrap();
                let section = section.split("\n## ").next().unwrap();
                assert!(section.contains(variable), "{variable} of {program}");
            }
        }
    }
}

/// The documentation names manifests that exist.
#[test]
fn docs_name_existing_manifests() {
    let root = cargo::root();
    let mut found = 0;
    for entry in fs::read_dir(root.join("docs")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        for (start, _) in text.match_indices("manifests/") {
            let is_name = |c: char| c.is_ascii_alphanumeric() || "/-_.".contains(c);
            let name = text[start..].split(|c| !is_name(c)).next().unwrap();
            let name = name.trim_end_matches('.');
            assert!(root.join(name).exists(), "{}: {name}", path.display());
            found += 1;
        }
    }
    assert!(found > 10, "{found}");
}

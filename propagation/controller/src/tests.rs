//! The whole program on the embedded API. Time is virtual: a pause ends once nothing is left to do.

mod cloneset;
mod components;
mod customizations;
mod dependencies;
mod events;
mod imports;
mod lazy;
mod naming;
mod random;
mod rivals;
mod scheduling;
mod webhooks;
mod works;

use std::ops::Deref;
use std::time::Duration;

use clap::Parser;
use embedded_apiserver::{Fault, Verb};
use karmada_api::{ClusterResourceBinding, PropagationPolicy, ResourceBinding, names};
use karmada_runtime::program::Program;
use kube::Api;
use lab_parts::test_api::TestApi;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::*;

const POLICY: &str = "/apis/policy.karmada.io/v1alpha1/namespaces/shop/propagationpolicies";
const CLUSTER_POLICY: &str = "/apis/policy.karmada.io/v1alpha1/clusterpropagationpolicies";
const OVERRIDE: &str = "/apis/policy.karmada.io/v1alpha1/namespaces/shop/overridepolicies";
const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/shop/deployments";
const ROLE: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
const TOY: &str = "/apis/test.io/v1/namespaces/shop/toys";
const BINDING: &str = "/apis/work.karmada.io/v1alpha2/namespaces/shop/resourcebindings";
const CLUSTER_BINDING: &str = "/apis/work.karmada.io/v1alpha2/clusterresourcebindings";

/// The program and its API.
struct Stage {
    api: TestApi,
    running: Option<JoinHandle<bool>>,
}

impl Deref for Stage {
    type Target = TestApi;

    fn deref(&self) -> &TestApi {
        &self.api
    }
}

impl Stage {
    /// Starts an API with the namespace `shop`, without the program.
    async fn new() -> Self {
        let api = TestApi::with_kinds(karmada_api::crd::fleet().unwrap());
        api.create_namespace("shop").await;
        Self { api, running: None }
    }

    /// Starts the program and waits until it has nothing to do.
    async fn start(&mut self, flags: &[&str]) {
        let flags = [&["--leader-elect=false"], flags].concat();
        self.running = Some(self.spawn(&flags));
        self.settle().await;
    }

    /// Starts a replica of the program with these flags.
    fn spawn(&self, flags: &[&str]) -> JoinHandle<bool> {
        let args = Args::try_parse_from([&[NAME], flags].concat()).unwrap();
        let mut program = Program::new(IDENTITY, ([127, 0, 0, 1], 0).into());
        assemble(&args, self.client(), &mut program);
        tokio::spawn(program.run_until(async || std::future::pending().await))
    }

    async fn kill(&mut self) {
        let running = self.running.take().unwrap();
        running.abort();
        assert!(running.await.unwrap_err().is_cancelled());
    }

    async fn settle(&self) {
        tokio::time::sleep(Duration::from_secs(8)).await;
    }

    /// Sends a change of a user and returns the writes of the program after it.
    async fn change(&self, method: &str, path: &str, body: &Value) -> Vec<String> {
        self.writes();
        self.send(method, path, body).await;
        self.settle().await;
        self.written()
    }

    /// Returns the writes of the program since the last call, sorted.
    fn written(&self) -> Vec<String> {
        let mut writes = self.writes();
        writes.sort();
        writes
    }

    async fn binding(&self) -> ResourceBinding {
        let bindings = Api::namespaced(self.user(), "shop");
        bindings.get("web-deployment").await.unwrap()
    }

    /// Returns the Events of a kind as `reason: note`, sorted.
    async fn events(&self, kind: &str) -> Vec<String> {
        let events = self.api.events().await.into_iter();
        let mut notes: Vec<_> = events
            .filter(|event| event.regarding.as_ref().unwrap().kind.as_deref() == Some(kind))
            .map(|event| format!("{}: {}", event.reason.unwrap(), event.note.unwrap()))
            .collect();
        notes.sort();
        notes
    }
}

fn deployment() -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": "web", "namespace": "shop", "labels": { "app": "web" } },
        "spec": {
            "replicas": 2,
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{
                    "name": "web",
                    "image": "web:1",
                    "resources": { "requests": { "cpu": "100m" } },
                }] },
            },
        },
    })
}

fn policy(name: &str, spec: &Value) -> Value {
    let mut policy = json!({
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": { "name": name, "namespace": "shop" },
        "spec": {
            "resourceSelectors": [{ "apiVersion": "apps/v1", "kind": "Deployment", "name": "web" }],
            "placement": { "clusterAffinity": { "clusterNames": ["m1"] } },
        },
    });
    for (field, value) in spec.as_object().unwrap() {
        policy["spec"][field] = value.clone();
    }
    policy
}

fn claim_of(object: &Value) -> Option<&str> {
    object["metadata"]["annotations"][names::POLICY_NAME].as_str()
}

/// A program with policy `pp` and Deployment `web`, which is claimed and bound.
async fn settled() -> Stage {
    let mut stage = Stage::new().await;
    stage.send("POST", POLICY, &policy("pp", &json!({}))).await;
    stage.send("POST", DEPLOYMENT, &deployment()).await;
    stage.start(&[]).await;
    stage
}

fn web(path: &str) -> String {
    format!("{path}/web")
}

fn bound() -> String {
    format!("{BINDING}/web-deployment")
}

/// A template is claimed and bound with one write each.
#[tokio::test(start_paused = true)]
async fn one_write_claims_and_binds() {
    let mut stage = settled().await;
    assert_eq!(
        stage.written(),
        [
            format!("PATCH {DEPLOYMENT}/web"),
            format!("PATCH {POLICY}/pp"),
            format!("POST {BINDING}"),
        ]
    );
    let policy = stage.get(&format!("{POLICY}/pp")).await;
    let id = &policy["metadata"]["labels"][names::POLICY_ID];
    assert!(id.is_string(), "{policy}");
    assert_eq!(
        policy["metadata"]["finalizers"],
        json!([names::POLICY_FINALIZER])
    );
    let object = stage.get(&web(DEPLOYMENT)).await;
    let binding = stage.get(&bound()).await;
    for claimed in [&object, &binding] {
        assert_eq!(claim_of(claimed), Some("pp"));
        assert_eq!(&claimed["metadata"]["labels"][names::POLICY_ID], id);
    }
    let spec = &binding["spec"];
    assert_eq!(spec["replicas"], 2);
    assert_eq!(
        spec["replicaRequirements"],
        json!({ "namespace": "shop", "resourceRequest": { "cpu": "100m" } })
    );
    assert_eq!(spec["placement"], policy["spec"]["placement"]);
    assert_eq!(spec["resource"]["uid"], object["metadata"]["uid"]);
    assert_eq!(
        stage.events("Deployment").await,
        [
            "ApplyPolicySucceed: Apply policy(shop/pp) succeed",
            "GetReplicasSucceed: Get replicas(2) of the template succeed"
        ]
    );

    // Neither time nor a restart is a reason to write.
    stage.settle().await;
    stage.kill().await;
    stage.start(&[]).await;
    assert_eq!(stage.written(), [""; 0]);
    assert_eq!(stage.events("Deployment").await.len(), 2);
}

/// The order of policy and template makes no difference.
#[tokio::test(start_paused = true)]
async fn order_makes_no_difference() {
    let mut stage = Stage::new().await;
    stage.start(&[]).await;
    let wrote = stage.change("POST", DEPLOYMENT, &deployment()).await;
    assert_eq!(wrote, [""; 0]);
    stage
        .change("POST", POLICY, &policy("pp", &json!({})))
        .await;
    assert_eq!(claim_of(&stage.get(&bound()).await), Some("pp"));
}

/// The binding follows policy and template with one write each.
#[tokio::test(start_paused = true)]
async fn binding_follows_with_one_write() {
    let stage = settled().await;
    // The write of a scheduler, and the reports of the clusters.
    let scheduled = json!({ "spec": { "clusters": [{ "name": "m1", "replicas": 2 }] } });
    assert_eq!(stage.change("PATCH", &bound(), &scheduled).await, [""; 0]);

    let placement =
        json!({ "clusterAffinity": { "exclude": ["m2"], "newer": { "a": null, "b": 1 } } });
    let body = policy("pp", &json!({ "placement": placement }));
    let mut current = stage.get(&format!("{POLICY}/pp")).await;
    current["spec"] = body["spec"].clone();
    let wrote = stage.change("PUT", &format!("{POLICY}/pp"), &current).await;
    assert_eq!(wrote, [format!("PATCH {}", bound())]);
    let binding = stage.get(&bound()).await;
    let current = stage.get(&format!("{POLICY}/pp")).await;
    assert_eq!(binding["spec"]["placement"], current["spec"]["placement"]);
    assert_eq!(binding["spec"]["clusters"], scheduled["spec"]["clusters"]);

    let scaled = json!({ "spec": { "replicas": 5 } });
    let wrote = stage.change("PATCH", &web(DEPLOYMENT), &scaled).await;
    assert_eq!(wrote, [format!("PATCH {}", bound())]);
    assert_eq!(stage.binding().await.spec.replicas, Some(5));

    // A change that does not concern the binding is recorded as an edit, and no news.
    let notes = stage.events("Deployment").await;
    let before = stage.binding().await;
    let label = json!({ "metadata": { "labels": { "x": "y" } } });
    let wrote = stage.change("PATCH", &web(DEPLOYMENT), &label).await;
    assert_eq!(wrote, [format!("PATCH {}", bound())]);
    let binding = stage.binding().await;
    assert_eq!(binding.spec, before.spec);
    assert_eq!(binding.metadata.generation, before.metadata.generation);
    assert_eq!(stage.events("Deployment").await, notes);
}

/// Cases P5 and P22: a deleted policy lets its templates go and the binding stays, with its pause.
#[tokio::test(start_paused = true)]
async fn deleted_policy_lets_go() {
    let stage = settled().await;
    let before = stage.binding().await.spec;
    stage
        .change("DELETE", &format!("{POLICY}/pp"), &json!({}))
        .await;
    let policies: Api<PropagationPolicy> = Api::namespaced(stage.user(), "shop");
    assert_eq!(policies.get_opt("pp").await.unwrap(), None);
    let (object, binding) = (stage.get(&web(DEPLOYMENT)).await, stage.get(&bound()).await);
    for released in [&object, &binding] {
        assert_eq!(claim_of(released), None);
        assert_eq!(released["metadata"]["labels"].get(names::POLICY_ID), None);
    }
    assert_eq!(stage.binding().await.spec, before);
    // Unclaimed: an edit goes nowhere.
    let scaled = json!({ "spec": { "replicas": 5 } });
    let wrote = stage.change("PATCH", &web(DEPLOYMENT), &scaled).await;
    assert_eq!(wrote, [""; 0]);
}

/// A template that is leaving keeps no policy.
#[tokio::test(start_paused = true)]
async fn deleting_template_keeps_no_policy() {
    let stage = settled().await;
    let held = json!({ "metadata": { "finalizers": ["example.com/slow"] } });
    stage.change("PATCH", &web(DEPLOYMENT), &held).await;
    let wrote = stage.change("DELETE", &web(DEPLOYMENT), &json!({})).await;
    assert_eq!(wrote, [""; 0]);
    let policies: Api<PropagationPolicy> = Api::namespaced(stage.user(), "shop");
    let policy = format!("{POLICY}/pp");
    stage.change("DELETE", &policy, &json!({})).await;
    assert_eq!(policies.get_opt("pp").await.unwrap(), None);
    assert_eq!(claim_of(&stage.get(&web(DEPLOYMENT)).await), None);
}

/// A template is handed over to the next policy.
#[tokio::test(start_paused = true)]
async fn template_is_handed_over() {
    let stage = settled().await;
    let other = json!({ "clusterAffinity": { "clusterNames": ["m2"] } });
    let next = policy("next", &json!({ "priority": 5, "placement": other }));
    let wrote = stage.change("POST", POLICY, &next).await;
    // It gets its ID, and no template while another policy holds it.
    assert_eq!(wrote, [format!("PATCH {POLICY}/next")]);
    let wrote = stage
        .change("DELETE", &format!("{POLICY}/pp"), &json!({}))
        .await;
    assert_eq!(
        wrote,
        [
            format!("PATCH {DEPLOYMENT}/web"),
            format!("PATCH {POLICY}/pp"),
            format!("PATCH {}", bound()),
        ]
    );
    let (object, binding) = (stage.get(&web(DEPLOYMENT)).await, stage.get(&bound()).await);
    assert_eq!(
        (claim_of(&object), claim_of(&binding)),
        (Some("next"), Some("next"))
    );
    assert_eq!(binding["spec"]["placement"], other);
}

/// Another policy takes from one whose priority falls, and an Event says so, though their kind cannot be interpreted
/// meanwhile.
#[tokio::test(start_paused = true)]
async fn lowered_policy_is_preempted() {
    let preempting = |name: &str, priority: i32| {
        let mut policy = policy(
            name,
            &json!({ "priority": priority, "preemption": "Always" }),
        );
        policy["kind"] = json!("ClusterPropagationPolicy");
        policy["metadata"] = json!({ "name": name });
        policy
    };
    let mut stage = Stage::new().await;
    stage.send("POST", DEPLOYMENT, &deployment()).await;
    stage
        .send("POST", CLUSTER_POLICY, &preempting("high", 10))
        .await;
    stage.start(&[]).await;
    stage
        .change("POST", CLUSTER_POLICY, &preempting("low", 5))
        .await;
    let by = async || {
        let object = stage.get(&web(DEPLOYMENT)).await;
        object["metadata"]["annotations"][names::CLUSTER_POLICY_NAME].clone()
    };
    assert_eq!(by().await, "high");

    let high = format!("{CLUSTER_POLICY}/high");
    let lowered = json!({ "spec": { "priority": 4 } });
    stage.change("PATCH", &high, &lowered).await;
    assert_eq!(by().await, "low");

    let script = customizations::unreadable();
    stage
        .change("POST", customizations::CUSTOMIZATION, &script)
        .await;
    let raised = json!({ "spec": { "priority": 10 } });
    stage.change("PATCH", &high, &raised).await;
    assert_eq!(by().await, "low");
    stage
        .change("DELETE", &customizations::script(), &json!({}))
        .await;
    assert_eq!(by().await, "high");

    let events = stage.events("Deployment").await;
    let preemptions = events
        .iter()
        .filter_map(|note| note.strip_prefix("PreemptPolicySucceed: "));
    assert_eq!(
        preemptions.collect::<Vec<_>>(),
        [
            "cluster policy(high) is preempted by cluster policy(low)",
            "cluster policy(low) is preempted by cluster policy(high)",
        ]
    );
}

/// With the features of a Karmada that has them off, no policy takes from another, and dependencies stay.
#[tokio::test(start_paused = true)]
async fn features_are_switched_off() {
    let mut stage = Stage::new().await;
    let mut template = deployment();
    template["spec"]["template"]["spec"]["imagePullSecrets"] = json!([{ "name": "pull" }]);
    stage.send("POST", DEPLOYMENT, &template).await;
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "pull" } });
    stage
        .send("POST", "/api/v1/namespaces/shop/secrets", &secret)
        .await;
    stage
        .send(
            "POST",
            POLICY,
            &policy("pp", &json!({ "propagateDeps": true })),
        )
        .await;
    let off = "--feature-gates=PropagateDeps=false,PropagationPolicyPreemption=false";
    stage.start(&[off]).await;
    let clusters = json!({ "spec": { "clusters": [{ "name": "member1", "replicas": 2 }] } });
    stage.change("PATCH", &bound(), &clusters).await;
    let better = policy("better", &json!({ "priority": 1, "preemption": "Always" }));
    stage.change("POST", POLICY, &better).await;
    assert_eq!(claim_of(&stage.get(&web(DEPLOYMENT)).await), Some("pp"));
    let attached = format!("{BINDING}/pull-secret");
    assert_eq!(stage.find(&attached).await, None);
    stage.kill().await;
    // As they are on by default.
    stage
        .start(&["--feature-gates=PropagationPolicyPreemption=false"])
        .await;
    assert!(stage.find(&attached).await.is_some());
    stage.kill().await;
    stage.start(&[]).await;
    assert_eq!(claim_of(&stage.get(&web(DEPLOYMENT)).await), Some("better"));
}

/// Case P13: a claim that a user wiped is restored, which is no edit.
#[tokio::test(start_paused = true)]
async fn wiped_claim_is_restored() {
    let stage = settled().await;
    // A policy that would be chosen, had the template never had one.
    let better = policy("better", &json!({ "priority": 5 }));
    stage.change("POST", POLICY, &better).await;
    let wrote = stage.change("PUT", &web(DEPLOYMENT), &deployment()).await;
    assert_eq!(wrote, [format!("PATCH {DEPLOYMENT}/web")]);
    assert_eq!(claim_of(&stage.get(&web(DEPLOYMENT)).await), Some("pp"));
}

/// A binding deleted by hand is made again.
#[tokio::test(start_paused = true)]
async fn deleted_binding_is_recreated() {
    let stage = settled().await;
    let uid = stage.binding().await.metadata.uid;
    let wrote = stage.change("DELETE", &bound(), &json!({})).await;
    // The end of the finalizer comes first: it has no Works.
    assert_eq!(
        wrote,
        [format!("PATCH {}", bound()), format!("POST {BINDING}")]
    );
    let again = stage.binding().await;
    assert_ne!(again.metadata.uid, uid);
    assert_eq!(again.metadata.deletion_timestamp, None);
}

/// Returns the definition of policies of a newer Karmada, which knows more types of scheduling.
fn newer_policies() -> Value {
    let mut definitions = karmada_api::crd::fleet().unwrap().into_iter();
    let definition =
        definitions.find(|definition| definition["spec"]["names"]["kind"] == "PropagationPolicy");
    let mut definition = definition.unwrap();
    let version = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let mut field = version;
    for name in [
        "spec",
        "placement",
        "replicaScheduling",
        "replicaSchedulingType",
    ] {
        field = &mut field["properties"][name];
    }
    field.as_object_mut().unwrap().remove("enum");
    definition
}

/// An unsupported policy keeps its template as it is.
#[tokio::test(start_paused = true)]
async fn unsupported_policy_keeps_template() {
    let stage = settled().await;
    let before = stage.binding().await.spec;
    stage.server.install(&newer_policies()).unwrap();
    let newer = json!({ "replicaSchedulingType": "Newer" });
    let unsupported =
        json!({ "spec": { "placement": { "replicaScheduling": newer }, "priority": 3 } });
    let wrote = stage
        .change("PATCH", &format!("{POLICY}/pp"), &unsupported)
        .await;
    assert_eq!(wrote, [""; 0]);
    let scaled = json!({ "spec": { "replicas": 5 } });
    let wrote = stage.change("PATCH", &web(DEPLOYMENT), &scaled).await;
    assert_eq!(wrote, [""; 0]);
    assert_eq!(stage.binding().await.spec, before);
    assert_eq!(
        stage.events("PropagationPolicy").await,
        ["InvalidPolicy: replicaSchedulingType Newer is not supported by karmada-rs"]
    );
    // Deleted, it still lets go.
    stage
        .change("DELETE", &format!("{POLICY}/pp"), &json!({}))
        .await;
    assert_eq!(claim_of(&stage.get(&web(DEPLOYMENT)).await), None);
}

/// A policy waits for the overrides it depends on.
#[tokio::test(start_paused = true)]
async fn policy_awaits_overrides() {
    let mut stage = Stage::new().await;
    stage.send("POST", DEPLOYMENT, &deployment()).await;
    let waiting = policy("pp", &json!({ "dependentOverrides": ["o"] }));
    stage.send("POST", POLICY, &waiting).await;
    stage.start(&[]).await;
    assert_eq!(stage.written(), [format!("PATCH {POLICY}/pp")]);
    assert_eq!(
        stage.events("PropagationPolicy").await,
        ["ApplyPolicyFailed: Waits for the override policies that it depends on: o"]
    );
    let overrides = json!({
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "OverridePolicy",
        "metadata": { "name": "o", "namespace": "shop" },
        "spec": { "overrideRules": [] },
    });
    stage.change("POST", OVERRIDE, &overrides).await;
    assert_eq!(claim_of(&stage.get(&bound()).await), Some("pp"));
}

/// A cluster scoped template gets a binding of its scope.
#[tokio::test(start_paused = true)]
async fn binding_has_templates_scope() {
    let mut stage = Stage::new().await;
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": { "name": "shop:reader" },
        "rules": [],
    });
    let reader = json!({
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "ClusterPropagationPolicy",
        "metadata": { "name": "reader" },
        "spec": {
            "resourceSelectors": [{ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole" }],
            "placement": {},
        },
    });
    stage.send("POST", ROLE, &role).await;
    stage.send("POST", CLUSTER_POLICY, &reader).await;
    stage.start(&[]).await;
    let bindings: Api<ClusterResourceBinding> = Api::all(stage.user());
    let binding = bindings.get("shop.reader-clusterrole").await.unwrap();
    assert_eq!(binding.spec.resource.name, "shop:reader");
    assert_eq!(binding.spec.placement, Some(json!({})));
    stage.written();
    let wrote = stage
        .change("DELETE", &format!("{CLUSTER_POLICY}/reader"), &json!({}))
        .await;
    assert_eq!(
        wrote,
        [
            format!("PATCH {CLUSTER_POLICY}/reader"),
            format!("PATCH {ROLE}/shop:reader"),
            format!("PATCH {CLUSTER_BINDING}/shop.reader-clusterrole"),
        ]
    );
}

/// A kind that is skipped has no templates.
#[tokio::test(start_paused = true)]
async fn skipped_kind_has_none() {
    let mut stage = Stage::new().await;
    stage.send("POST", POLICY, &policy("pp", &json!({}))).await;
    stage.send("POST", DEPLOYMENT, &deployment()).await;
    stage
        .start(&["--skipped-propagating-apis=batch;apps/v1/Deployment"])
        .await;
    assert_eq!(stage.written(), [format!("PATCH {POLICY}/pp")]);
}

/// A policy, a template and a binding are taken over from Karmada without a write.
#[tokio::test(start_paused = true)]
async fn takeover_records_followed_policies() {
    macro_rules! fixture {
        ($name:literal) => {
            include_str!(concat!(
                "../../../propagation/rules/src/fixtures/",
                $name,
                ".json"
            ))
        };
    }
    let mut stage = Stage::new().await;
    let (service, roles) = ("/api/v1/namespaces/shop/services", ROLE);
    for (policies, policy) in [
        (POLICY, fixture!("propagationpolicy")),
        (CLUSTER_POLICY, fixture!("clusterpropagationpolicy")),
    ] {
        stage.send("POST", policies, &as_new(policy)).await;
    }
    for (templates, template, bindings, binding) in [
        (
            DEPLOYMENT,
            fixture!("template-deployment"),
            BINDING,
            fixture!("resourcebinding-web-deployment"),
        ),
        (
            service,
            fixture!("template-service"),
            BINDING,
            fixture!("resourcebinding-web-service"),
        ),
        (
            roles,
            fixture!("template-clusterrole"),
            CLUSTER_BINDING,
            fixture!("clusterresourcebinding"),
        ),
    ] {
        let stored = stage.send("POST", templates, &as_new(template)).await;
        let uid = &stored["metadata"]["uid"];
        let mut binding = as_new(binding);
        binding["metadata"]["ownerReferences"][0]["uid"] = uid.clone();
        binding["spec"]["resource"]["uid"] = uid.clone();
        stage.send("POST", bindings, &binding).await;
    }
    let before = specs(&stage).await;
    stage.start(&[]).await;
    let service = format!("{BINDING}/web-service");
    let role = format!("{CLUSTER_BINDING}/shop.reader-clusterrole");
    let patches = [role, bound(), service].map(|path| format!("PATCH {path}"));
    assert_eq!(stage.written(), patches);
    assert_eq!(specs(&stage).await, before);
    assert_eq!(stage.events("Deployment").await, [""; 0]);
    stage.kill().await;
    stage.start(&[]).await;
    assert_eq!(stage.written(), [""; 0]);
}

/// Returns spec and status of every binding.
async fn specs(stage: &Stage) -> Vec<(Value, Value)> {
    let mut specs = Vec::new();
    for bindings in [BINDING, CLUSTER_BINDING] {
        let list = stage.get(bindings).await;
        let items = list["items"].as_array().unwrap().iter();
        specs.extend(items.map(|item| (item["spec"].clone(), item["status"].clone())));
    }
    specs
}

/// Returns an object without the fields of the API server.
fn as_new(text: &str) -> Value {
    let mut object: Value = serde_json::from_str(text).unwrap();
    let metadata = object["metadata"].as_object_mut().unwrap();
    for field in ["uid", "resourceVersion", "creationTimestamp", "generation"] {
        metadata.remove(field);
    }
    object
}

impl Stage {
    /// Serves the kind `Toy` in version `v1` and these others, and creates one.
    async fn add_toy(&self, others: &[&str]) {
        let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
        let versions = others.iter().chain(&["v1"]).map(|name| {
            json!({ "name": name, "served": true, "storage": *name == "v1",
                "schema": { "openAPIV3Schema": schema } })
        });
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": { "name": "toys.test.io" },
            "spec": {
                "group": "test.io",
                "scope": "Namespaced",
                "names": { "kind": "Toy", "plural": "toys", "singular": "toy" },
                "versions": versions.collect::<Vec<_>>(),
            },
        });
        self.server.install(&definition).unwrap();
        let toy = json!({ "apiVersion": "test.io/v1", "kind": "Toy",
            "metadata": { "name": "web", "namespace": "shop" } });
        self.send("POST", TOY, &toy).await;
    }
}

/// One object in two versions of its group is one template.
#[tokio::test(start_paused = true)]
async fn versions_do_not_take_turns() {
    let mut stage = Stage::new().await;
    stage.add_toy(&["v1beta1"]).await;
    for (name, api_version) in [
        ("old", "test.io/v1beta1"),
        ("new", "test.io/v1"),
        ("newer", "test.io/v2"),
    ] {
        let selector = json!([{ "apiVersion": api_version, "kind": "Toy", "name": "web" }]);
        let policy = policy(name, &json!({ "resourceSelectors": selector }));
        stage.send("POST", POLICY, &policy).await;
    }
    stage.start(&[]).await;
    let mut written = stage.written();
    // That its kind is not served has the policy looked at again, before the watch shows its ID: the second patch is a
    // conflict.
    written.dedup();
    assert_eq!(
        written,
        [
            format!("PATCH {POLICY}/new"),
            format!("PATCH {POLICY}/newer"),
            format!("PATCH {POLICY}/old"),
            format!("PATCH {}", web(TOY)),
            format!("POST {BINDING}"),
        ]
    );
    let binding = stage.get(&format!("{BINDING}/web-toy")).await;
    assert_eq!(claim_of(&binding), Some("new"));
}

/// Case P88: who selects other objects in another version takes none of them away; and a policy that asks for another version keeps
/// its objects, there and back.
#[tokio::test(start_paused = true)]
async fn others_versions_take_nothing() {
    let mut stage = Stage::new().await;
    stage.create_namespace("other").await;
    stage.add_toy(&["v1beta1"]).await;
    let selector =
        |version: &str| json!([{ "apiVersion": format!("test.io/{version}"), "kind": "Toy" }]);
    let spec = json!({ "resourceSelectors": selector("v1beta1") });
    stage.send("POST", POLICY, &policy("ours", &spec)).await;
    stage.start(&[]).await;
    let mut others = policy("theirs", &json!({ "resourceSelectors": selector("v1") }));
    others["metadata"]["namespace"] = "other".into();
    let of_others = POLICY.replace("/shop/", "/other/");
    let (theirs, none) = (format!("{of_others}/theirs"), json!({}));
    for (method, path, body) in [
        ("POST", &of_others, &others),
        ("DELETE", &theirs, &none),
        ("POST", &of_others, &others),
    ] {
        stage.change(method, path, body).await;
        let claim = stage.get(&web(TOY)).await;
        assert_eq!(claim_of(&claim), Some("ours"), "{method}");
    }
    for version in ["v1", "v1beta1", "v1"] {
        let spec = json!({ "spec": { "resourceSelectors": selector(version) } });
        stage
            .change("PATCH", &format!("{POLICY}/ours"), &spec)
            .await;
        assert_eq!(
            claim_of(&stage.get(&web(TOY)).await),
            Some("ours"),
            "{version}"
        );
        let binding = stage.get(&format!("{BINDING}/web-toy")).await;
        assert_eq!(
            binding["spec"]["resource"]["apiVersion"],
            format!("test.io/{version}")
        );
    }
}

/// Case P111: a policy moves to a newer version, and the older one is not served any more: nothing is written then, and the
/// binding goes with its template.
#[tokio::test(start_paused = true)]
async fn older_version_may_go() {
    let mut stage = Stage::new().await;
    stage.add_toy(&["v1beta1"]).await;
    let [older, newer] = ["test.io/v1beta1", "test.io/v1"].map(|version| {
        let kind = json!({ "apiVersion": version, "kind": "Toy" });
        json!({ "resourceSelectors": [kind] })
    });
    let ours = policy("ours", &older);
    stage.send("POST", POLICY, &ours).await;
    stage.start(&[]).await;
    let binding = format!("{BINDING}/web-toy");
    let path = format!("{POLICY}/ours");
    let newer = json!({ "spec": newer });
    stage.change("PATCH", &path, &newer).await;
    let versions = stage.get(&binding).await;
    let owner = &versions["metadata"]["ownerReferences"][0];
    assert_eq!(owner["apiVersion"], "test.io/v1");
    assert_eq!(versions["spec"]["resource"]["apiVersion"], "test.io/v1");

    let definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/toys.test.io";
    let mut served = stage.get(definition).await;
    served["spec"]["versions"][0]["served"] = json!(false);
    let wrote = stage.change("PUT", definition, &served).await;
    assert_eq!(wrote, [""; 0]);
    stage.kill().await;
    stage.start(&[]).await;
    assert_eq!(stage.written(), [""; 0]);
    assert_eq!(claim_of(&stage.get(&binding).await), Some("ours"));
    stage.change("DELETE", &web(TOY), &json!({})).await;
    assert_eq!(stage.find(&binding).await, None);
}

/// Case P111: a policy of a preliminary version is deleted, and the version goes later: the binding has followed the one that
/// the API prefers, and goes with its template.
#[tokio::test(start_paused = true)]
async fn unclaimed_binding_follows_version() {
    let mut stage = Stage::new().await;
    stage.add_toy(&["v1beta1"]).await;
    let kind = json!({ "apiVersion": "test.io/v1beta1", "kind": "Toy" });
    let ours = policy("ours", &json!({ "resourceSelectors": [kind] }));
    stage.send("POST", POLICY, &ours).await;
    stage.start(&[]).await;
    let binding = format!("{BINDING}/web-toy");
    let stored = stage.get(&binding).await;
    assert_eq!(stored["spec"]["resource"]["apiVersion"], "test.io/v1beta1");
    let path = format!("{POLICY}/ours");
    stage.change("DELETE", &path, &json!({})).await;
    let followed = stage.get(&binding).await;
    assert_eq!(followed["spec"]["resource"]["apiVersion"], "test.io/v1");
    assert_eq!(claim_of(&followed), None);
    let owner = &followed["metadata"]["ownerReferences"][0];
    assert_eq!(owner["apiVersion"], "test.io/v1");

    let definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/toys.test.io";
    let mut served = stage.get(definition).await;
    served["spec"]["versions"][0]["served"] = json!(false);
    let wrote = stage.change("PUT", definition, &served).await;
    assert_eq!(wrote, [""; 0]);
    stage.kill().await;
    stage.start(&[]).await;
    assert_eq!(stage.written(), [""; 0]);
    stage.change("DELETE", &web(TOY), &json!({})).await;
    assert_eq!(stage.find(&binding).await, None);
}

/// Who only observes claims no template.
#[tokio::test(start_paused = true)]
async fn who_only_observes_writes_nothing() {
    let mut stage = Stage::new().await;
    stage.send("POST", POLICY, &policy("pp", &json!({}))).await;
    stage.send("POST", DEPLOYMENT, &deployment()).await;
    stage.start(&["--observe-only"]).await;
    assert_eq!(stage.written(), [""; 0]);
    assert_eq!(stage.events("Deployment").await, [""; 0]);
    // There was something to write.
    stage.kill().await;
    stage.start(&[]).await;
    assert!(!stage.written().is_empty());
}

/// A controller that dies after any of its writes leaves nothing that the next one does not finish.
#[tokio::test(start_paused = true)]
async fn crash_after_each_write() {
    let mut after = 0;
    loop {
        let mut stage = Stage::new().await;
        stage.send("POST", POLICY, &policy("pp", &json!({}))).await;
        stage.send("POST", DEPLOYMENT, &deployment()).await;
        stage.limit_writes(after);
        stage.start(&[]).await;
        let is_complete = stage.written().len() < after;
        stage.kill().await;
        stage.limit_writes(usize::MAX);
        stage.start(&[]).await;
        assert_eq!(
            claim_of(&stage.get(&web(DEPLOYMENT)).await),
            Some("pp"),
            "{after}"
        );
        assert_eq!(claim_of(&stage.get(&bound()).await), Some("pp"), "{after}");
        stage.written();

        // The same of its end.
        stage.limit_writes(after);
        stage
            .change("DELETE", &format!("{POLICY}/pp"), &json!({}))
            .await;
        stage.kill().await;
        stage.limit_writes(usize::MAX);
        stage.start(&[]).await;
        assert_eq!(
            claim_of(&stage.get(&web(DEPLOYMENT)).await),
            None,
            "{after}"
        );
        assert_eq!(claim_of(&stage.get(&bound()).await), None, "{after}");
        let policies: Api<PropagationPolicy> = Api::namespaced(stage.user(), "shop");
        assert_eq!(policies.get_opt("pp").await.unwrap(), None, "{after}");
        if is_complete {
            assert!(after > 3, "{after} writes");
            return;
        }
        after += 1;
    }
}

/// Refused and lost writes are made again.
#[tokio::test(start_paused = true)]
async fn lost_writes_are_repeated() {
    for fault in [
        Fault::Conflict.every(2),
        Fault::Disconnect
            .every(3)
            .verbs([Verb::Patch, Verb::Create]),
    ] {
        let mut stage = Stage::new().await;
        stage.send("POST", POLICY, &policy("pp", &json!({}))).await;
        stage.send("POST", DEPLOYMENT, &deployment()).await;
        stage.server.faults().inject(fault);
        stage.start(&[]).await;
        stage.settle().await;
        stage.server.faults().clear();
        assert_eq!(claim_of(&stage.get(&web(DEPLOYMENT)).await), Some("pp"));
        assert_eq!(claim_of(&stage.get(&bound()).await), Some("pp"));
    }
}

/// A template made again gets a binding of its own.
#[tokio::test(start_paused = true)]
async fn recreated_template_gets_own_binding() {
    let stage = settled().await;
    let former = stage.binding().await.metadata.uid;
    stage.send("DELETE", &web(DEPLOYMENT), &json!({})).await;
    stage.send("POST", DEPLOYMENT, &deployment()).await;
    stage.settle().await;
    let binding = stage.binding().await;
    assert_ne!(binding.metadata.uid, former);
    let object = stage.get(&web(DEPLOYMENT)).await;
    let uid = object["metadata"]["uid"].as_str();
    assert_eq!(binding.spec.resource.uid.as_deref(), uid);
}

//! The programs in the API of a fleet, with or without Karmada.

use anyhow::{Context, Result, ensure};
use pipeline_tests::{
    aggregation::aggregate,
    control_plane::{ApiKind, ControlPlane},
    crds,
    fleet::isolated,
    manifests,
    rights::grant,
    test_name,
};
use serde_json::{Value, json};

use super::super::{
    Attempt, SHOP_ROLES, allowed, annotated, attempt, held, labelled, named, play, recorded_in,
    send,
};

/// The rights of the programs in the API of a fleet, the widest that a user may give.
const RIGHTS: [&str; 10] = [
    "karmada/remedy-controller.yaml",
    "karmada/ingress-controller.yaml",
    "propagation/everything/rights.yaml",
    "propagation/cluster/cluster-controller.yaml",
    "propagation/publish-nodes/rights.yaml",
    "propagation/collect-endpoints/rights.yaml",
    "propagation/east-west/rights.yaml",
    "propagation/rebalance/rights.yaml",
    "propagation/estimators/rights.yaml",
    "renew/rights.yaml",
];

pub(super) const WEB: &str = "/apis/apps/v1/namespaces/shop/deployments/web";
pub(super) const WORKS: &str = "/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-member1/works";
pub(super) const WORK: &str =
    "/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-member1/works/web";
/// The Work of an agent.
pub(super) const AGENT: &str =
    "/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-member1/works/karmada-rs-agent";
pub(super) const BINDING: &str =
    "/apis/work.karmada.io/v1alpha2/namespaces/shop/resourcebindings/web-deployment";
pub(super) const CLUSTER: &str = "/apis/cluster.karmada.io/v1alpha1/clusters/member1";
const POLICIES: &str = "/apis/policy.karmada.io/v1alpha1/namespaces/shop/propagationpolicies";
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices";
const NODE_SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/karmada-es-member1/endpointslices";
const SERVICES: &str = "/api/v1/namespaces/shop/services";
const INGRESS: &str =
    "/apis/networking.karmada.io/v1alpha1/namespaces/shop/multiclusteringresses/web";

fn policy(name: &str, kind: &str, managed: bool) -> Value {
    let labels = managed
        .then(|| json!({ "app.kubernetes.io/managed-by": "karmada-rs.io_ingress-controller" }));
    json!({ "metadata": { "name": name, "labels": labels.unwrap_or_else(|| json!({})) },
        "spec": { "resourceSelectors": [{ "apiVersion": "v1", "kind": kind }] } })
}

/// Returns an EndpointSlice with these labels.
fn slice(name: &str, labels: &Value) -> Value {
    json!({ "metadata": { "name": name, "labels": labels }, "addressType": "IPv4", "endpoints": [], "ports": [] })
}

/// Returns a Service with these labels and this selector.
fn service(name: &str, labels: &Value, selector: &Value) -> Value {
    json!({ "metadata": { "name": name, "labels": labels },
        "spec": { "ports": [{ "port": 80 }], "selector": selector } })
}

/// Returns the labels that a slice of a Service has which the execution-controller collected.
fn labels_of_collected(service: &str) -> Value {
    json!({ "app.kubernetes.io/managed-by": "karmada-rs.io_execution-controller",
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.karmada.io",
        "kubernetes.io/service-name": service })
}

/// Returns the conditions of a Cluster that is ready, and one more.
fn ready_and(kind: &str) -> Value {
    conditions(&["Ready", kind])
}

/// Returns the same, with the reason of a signal that users declare for the second one.
fn ready_and_declared(kind: &str) -> Value {
    let mut body = ready_and(kind);
    body["status"]["conditions"][1]["reason"] = json!("DeclaredSignalReady");
    body
}

fn conditions(kinds: &[&str]) -> Value {
    let conditions = kinds.iter().map(|kind| {
        json!({ "type": kind, "status": "True", "reason": "Test", "message": "",
            "lastTransitionTime": "2026-11-20T08:00:00Z" })
    });
    json!({ "status": { "conditions": conditions.collect::<Vec<_>>() } })
}

fn of_propagation_controller() -> Vec<Attempt> {
    let template = "of a template the propagation-controller writes";
    let mark = "this label or annotation is not the propagation-controller's";
    let hold = "this finalizer or owner is not the propagation-controller's";
    let make = "the propagation-controller creates and deletes bindings and Works only";
    let owned = json!({ "metadata": { "ownerReferences": [
        { "apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "1" }] } });
    vec![
        attempt("PATCH", WEB, json!({ "spec": { "replicas": 0 } }), template),
        attempt("PATCH", WEB, annotated("kubernetes.io/a"), mark),
        attempt("PATCH", WEB, labelled("app"), mark),
        attempt("PATCH", WEB, held("x.io/hold"), hold),
        attempt("PATCH", WEB, owned, hold),
        attempt(
            "PATCH",
            &format!("{WEB}/scale"),
            json!({ "spec": { "replicas": 0 } }),
            make,
        ),
        attempt(
            "PATCH",
            "/api/v1/namespaces/shop/configmaps/map",
            json!({ "data": { "a": "c" } }),
            template,
        ),
        attempt(
            "PATCH",
            "/api/v1/namespaces/shop/configmaps/map",
            json!({ "binaryData": { "b": "YQ==" } }),
            template,
        ),
        attempt(
            "PATCH",
            "/api/v1/namespaces/shop/secrets/secret",
            json!({ "stringData": { "a": "c" } }),
            template,
        ),
        attempt(
            "PATCH",
            &format!("{SHOP_ROLES}/role"),
            json!({ "rules": [{ "apiGroups": ["*"], "resources": ["*"], "verbs": ["*"] }] }),
            template,
        ),
        attempt(
            "PATCH",
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/karmada-rs:scheduler",
            json!({ "rules": [] }),
            template,
        ),
        attempt(
            "PATCH",
            "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/karmada-rs:scheduler",
            json!({ "subjects": [] }),
            template,
        ),
        attempt(
            "PATCH",
            "/apis/coordination.k8s.io/v1/namespaces/shop/leases/lease",
            json!({ "spec": { "holderIdentity": "me" } }),
            template,
        ),
        attempt(
            "PATCH",
            CLUSTER,
            json!({ "spec": { "apiEndpoint": "https://127.0.0.1:1" } }),
            EITHER,
        ),
        attempt(
            "PATCH",
            "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/hook",
            json!({ "webhooks": [] }),
            template,
        ),
        attempt(
            "POST",
            "/apis/work.karmada.io/v1alpha1/namespaces/shop/works",
            named("a", &json!({ "spec": { "workload": {} } })),
            "writes Works in karmada-es-* only",
        ),
        allowed(
            "PATCH",
            WEB,
            labelled("propagationpolicy.karmada.io/permanent-id"),
        ),
        allowed("PATCH", WEB, annotated("karmada-rs.io/claimed-fingerprint")),
        allowed(
            "PATCH",
            &format!("{WEB}/status"),
            json!({ "status": { "replicas": 1 } }),
        ),
        allowed(
            "POST",
            WORKS,
            named("other", &json!({ "spec": { "workload": {} } })),
        ),
        allowed("PATCH", BINDING, json!({ "spec": { "replicas": 2 } })),
    ]
}

fn of_scheduler() -> Vec<Attempt> {
    let clusters = "of a binding the scheduler writes the clusters only";
    let metadata = "this metadata of a binding is not the scheduler's";
    vec![
        attempt(
            "PATCH",
            BINDING,
            json!({ "spec": { "replicas": 9 } }),
            clusters,
        ),
        attempt(
            "PATCH",
            BINDING,
            json!({ "spec": { "resource": { "name": "other" } } }),
            clusters,
        ),
        attempt(
            "PATCH",
            BINDING,
            json!({ "spec": { "suspension": { "dispatching": true } } }),
            clusters,
        ),
        attempt("PATCH", BINDING, labelled("app"), metadata),
        attempt("PATCH", BINDING, annotated("a"), metadata),
        attempt("PATCH", BINDING, held("x.io/hold"), metadata),
        allowed(
            "PATCH",
            BINDING,
            json!({ "spec": { "clusters": [{ "name": "member1" }] } }),
        ),
        allowed(
            "PATCH",
            BINDING,
            json!({ "spec": { "rescheduleTriggeredAt": "2026-11-22T08:00:00Z" } }),
        ),
        allowed(
            "PATCH",
            BINDING,
            annotated("policy.karmada.io/applied-placement"),
        ),
    ]
}

fn of_execution_controller() -> Vec<Attempt> {
    let spec = "the spec of a Work is not the execution-controller's";
    let metadata = "of a Work the execution-controller writes its own finalizer";
    let slices = "writes the EndpointSlices that it collected only";
    let services = "writes the Services that it derived from ServiceImports only";
    let own = json!({ "app.kubernetes.io/managed-by": "karmada-rs.io_execution-controller" });
    let users = format!("{SLICES}/users");
    vec![
        attempt(
            "POST",
            SERVICES,
            service("derived-web", &json!({}), &Value::Null),
            services,
        ),
        attempt(
            "POST",
            SERVICES,
            service("web", &own, &Value::Null),
            services,
        ),
        attempt(
            "POST",
            SERVICES,
            service("derived-web", &own, &json!({ "app": "web" })),
            services,
        ),
        allowed("POST", SERVICES, service("derived-web", &own, &Value::Null)),
        attempt("POST", SLICES, slice("a", &json!({})), slices),
        attempt(
            "POST",
            SLICES,
            slice("a", &labels_of_collected("web")),
            slices,
        ),
        attempt(
            "PATCH",
            &users,
            json!({ "metadata": { "labels": labels_of_collected("derived-web") } }),
            slices,
        ),
        attempt("PATCH", &users, json!({ "endpoints": [] }), slices),
        attempt("DELETE", &users, Value::Null, slices),
        allowed(
            "POST",
            SLICES,
            slice("b", &labels_of_collected("derived-web")),
        ),
        allowed(
            "PATCH",
            &format!("{SLICES}/b"),
            json!({ "endpoints": [{ "addresses": ["10.0.0.1"] }] }),
        ),
        allowed("DELETE", &format!("{SLICES}/b"), Value::Null),
        attempt(
            "PATCH",
            WORK,
            json!({ "spec": { "workload": { "manifests": [] } } }),
            spec,
        ),
        attempt(
            "PATCH",
            WORK,
            json!({ "spec": { "suspendDispatching": true } }),
            spec,
        ),
        attempt("PATCH", WORK, labelled("a"), metadata),
        attempt("PATCH", WORK, annotated("a"), metadata),
        attempt("PATCH", WORK, held("x.io/hold"), metadata),
        allowed("PATCH", WORK, held("karmada.io/execution-controller")),
    ]
}

fn of_cluster_controller() -> Vec<Attempt> {
    let namespaces = "keeps the namespaces karmada-es-* only";
    let cluster = "of a Cluster the cluster-controller writes taints";
    let nodes = "writes the EndpointSlices with nodes only";
    let own =
        json!({ "endpointslice.kubernetes.io/managed-by": "cluster-controller.karmada-rs.io" });
    vec![
        attempt("POST", SLICES, slice("n", &own), nodes),
        attempt("POST", NODE_SLICES, slice("n", &json!({})), nodes),
        attempt(
            "PATCH",
            &format!("{SLICES}/users"),
            json!({ "endpoints": [] }),
            nodes,
        ),
        allowed("POST", NODE_SLICES, slice("n", &own)),
        allowed("DELETE", &format!("{NODE_SLICES}/n"), Value::Null),
        attempt("DELETE", "/api/v1/namespaces/shop", Value::Null, namespaces),
        attempt(
            "DELETE",
            "/api/v1/namespaces/karmada-system",
            Value::Null,
            namespaces,
        ),
        attempt(
            "PATCH",
            "/api/v1/namespaces/shop",
            labelled("a"),
            namespaces,
        ),
        attempt(
            "POST",
            "/api/v1/namespaces",
            named("a", &json!({})),
            namespaces,
        ),
        attempt(
            "PATCH",
            CLUSTER,
            json!({ "spec": { "apiEndpoint": "https://127.0.0.1:1" } }),
            cluster,
        ),
        attempt(
            "PATCH",
            CLUSTER,
            json!({ "spec": { "secretRef": { "namespace": "shop" } } }),
            EITHER,
        ),
        attempt(
            "PATCH",
            CLUSTER,
            json!({ "spec": { "insecureSkipTLSVerification": true } }),
            cluster,
        ),
        allowed(
            "POST",
            "/api/v1/namespaces",
            named("karmada-es-member9", &json!({})),
        ),
        allowed(
            "PATCH",
            CLUSTER,
            json!({ "spec": { "taints": [{ "key": "a", "effect": "NoSchedule" }] } }),
        ),
    ]
}

fn of_ingress_controller() -> Vec<Attempt> {
    let own = "writes its own policies for exports only";
    vec![
        attempt(
            "POST",
            POLICIES,
            policy("everything", "ServiceExport", true),
            own,
        ),
        attempt(
            "POST",
            POLICIES,
            policy("export-a", "ServiceExport", false),
            own,
        ),
        attempt(
            "POST",
            POLICIES,
            policy("export-a", "Secret", true),
            "propagates ServiceExports only",
        ),
        attempt("PATCH", &format!("{POLICIES}/web"), labelled("a"), own),
        attempt("DELETE", &format!("{POLICIES}/web"), Value::Null, own),
        attempt(
            "PATCH",
            INGRESS,
            json!({ "spec": { "ingressClassName": "other" } }),
            "the spec of a MultiClusterIngress or an HTTPRoute is not",
        ),
        allowed("POST", POLICIES, policy("export-a", "ServiceExport", true)),
        allowed("PATCH", INGRESS, held("karmada-rs.io/a")),
    ]
}

fn of_remedy_controller() -> Vec<Attempt> {
    let status = format!("{CLUSTER}/status");
    let field = "the status of a Cluster is not this account's";
    let condition_of = "this condition of a Cluster is not this account's";
    vec![
        attempt(
            "PATCH",
            &status,
            json!({ "status": { "kubernetesVersion": "v0" } }),
            field,
        ),
        attempt(
            "PATCH",
            &status,
            json!({ "status": { "conditions": null } }),
            condition_of,
        ),
        attempt(
            "PATCH",
            &status,
            ready_and("CompleteAPIEnablements"),
            condition_of,
        ),
        attempt(
            "PATCH",
            &status,
            ready_and("ServiceDomainNameResolutionReady"),
            condition_of,
        ),
        allowed(
            "PATCH",
            &status,
            json!({ "status": { "remedyActions": ["TrafficControl"] } }),
        ),
        allowed("PATCH", &status, ready_and("HealthReporterReady")),
    ]
}

/// The agents on the nodes of gateways report on reachability, and nothing else.
fn of_gateway_agent() -> Vec<Attempt> {
    let status = format!("{CLUSTER}/status");
    let condition_of = "this condition of a Cluster is not this account's";
    vec![
        attempt(
            "PATCH",
            &status,
            json!({ "status": { "remedyActions": [] } }),
            "the status of a Cluster is not this account's",
        ),
        attempt(
            "PATCH",
            &status,
            ready_and("HealthReporterReady"),
            condition_of,
        ),
        attempt(
            "PATCH",
            &status,
            ready_and("ServiceDomainNameResolutionReady"),
            condition_of,
        ),
        allowed("PATCH", &status, ready_and("ReachableFromGateway")),
        recorded_in("default", Some("cannot create resource")),
        recorded_in("karmada-system", None),
        allowed("PATCH", &status, conditions(&["Ready"])),
    ]
}

fn of_agent() -> Vec<Attempt> {
    let status = format!("{CLUSTER}/status");
    let field = "the status of a Cluster is not this account's";
    let condition_of = "this condition of a Cluster is not this account's";
    vec![
        attempt(
            "PATCH",
            &status,
            json!({ "status": { "remedyActions": [] } }),
            field,
        ),
        attempt(
            "PATCH",
            &status,
            json!({ "status": { "apiEnablements": [] } }),
            field,
        ),
        attempt(
            "PATCH",
            &status,
            ready_and("CompleteAPIEnablements"),
            condition_of,
        ),
        attempt("PATCH", &status, ready_and_declared("Ready"), condition_of),
        attempt(
            "PATCH",
            &status,
            ready_and_declared("ReachableFromGateway"),
            condition_of,
        ),
        allowed("PATCH", &status, ready_and_declared("ImageRegistryReady")),
        attempt(
            "PATCH",
            "/apis/cluster.karmada.io/v1alpha1/clusters/member2/status",
            ready_and("ServiceDomainNameResolutionReady"),
            "cannot patch resource",
        ),
        recorded_in("karmada-es-member2", Some("cannot create resource")),
        recorded_in("karmada-es-member1", None),
        allowed(
            "PATCH",
            &status,
            ready_and("ServiceDomainNameResolutionReady"),
        ),
    ]
}

/// The start of any policy's refusal. Where two refuse a request, the API tells either.
const EITHER: &str = "denied request";

/// Somebody with every right over Clusters and Works, but not of the programs.
const USER: &str = "somebody";

/// Somebody with the same rights who may get the Secret of a member.
const JOINER: &str = "joiner";

/// Somebody who may do everything, as the admins of kubeadm, and is no member of `system:masters`.
const ADMIN: &str = "kubeadm-admin";

/// Returns the spec of the Work of an agent, whose Secret has this kubeconfig and token.
fn agent(kubeconfig: &str, token: &str, image: &str) -> Value {
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": { "name": "cluster-health-agent-karmada", "namespace": "karmada-rs" },
        "data": { "kubeconfig": kubeconfig, "token": token } });
    let runs = json!({ "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": { "name": "cluster-health-agent", "namespace": "karmada-rs" },
        "spec": { "image": image } });
    json!({ "spec": { "workload": { "manifests": [secret, runs] } } })
}

fn of_renewal() -> Vec<Attempt> {
    let token = "the renewal of tokens writes the token of the agent's Secret only";
    let field = "the renewal of tokens writes no other field";
    let mut more = agent("k", "t", "i");
    let manifests = more["spec"]["workload"]["manifests"].as_array_mut();
    manifests
        .unwrap()
        .push(json!({ "apiVersion": "v1", "kind": "Secret",
        "metadata": { "name": "more", "namespace": "kube-system" } }));
    let mut moved = agent("k", "t", "i");
    moved["spec"]["workload"]["manifests"][0]["metadata"]["namespace"] = "kube-system".into();
    let mut filled = agent("k", "t", "i");
    filled["spec"]["workload"]["manifests"][0]["data"]["other"] = "YQ==".into();
    vec![
        allowed("PATCH", AGENT, agent("k", "new", "i")),
        attempt("PATCH", AGENT, agent("other", "new", "i"), token),
        attempt("PATCH", AGENT, agent("k", "new", "other"), token),
        attempt("PATCH", AGENT, more, token),
        attempt("PATCH", AGENT, moved, token),
        attempt("PATCH", AGENT, filled, token),
        attempt(
            "PATCH",
            AGENT,
            json!({ "spec": { "preserveResourcesOnDeletion": true } }),
            field,
        ),
        attempt("PATCH", AGENT, labelled("a"), field),
        attempt("PATCH", WORK, labelled("a"), "cannot patch"),
        attempt("DELETE", AGENT, Value::Null, "cannot delete"),
    ]
}

fn of_user() -> Vec<Attempt> {
    let clusters = "/apis/cluster.karmada.io/v1alpha1/clusters";
    let pointing = |name: &str| {
        named(
            name,
            &json!({ "spec": { "syncMode": "Push",
        "apiEndpoint": "https://127.0.0.1:1", "secretRef": { "namespace": "karmada-cluster", "name": "member1" } } }),
        )
    };
    let works = "Works are written by propagation";
    let moves = "only who may get that Secret may change it";
    vec![
        attempt(
            "POST",
            clusters,
            pointing("stranger"),
            "spec.secretRef.name must be stranger",
        ),
        attempt(
            "PATCH",
            CLUSTER,
            json!({ "spec": { "secretRef": { "name": "member2" } } }),
            "spec.secretRef.name must be member1",
        ),
        attempt(
            "POST",
            WORKS,
            named("b", &json!({ "spec": { "workload": {} } })),
            works,
        ),
        attempt(
            "PATCH",
            WORK,
            json!({ "spec": { "workload": { "manifests": [] } } }),
            works,
        ),
        attempt("PATCH", CLUSTER, endpoint("https://127.0.0.1:3"), moves),
        attempt(
            "PATCH",
            CLUSTER,
            endpoint("http://127.0.0.1:3"),
            "must begin with https://",
        ),
        attempt(
            "PATCH",
            CLUSTER,
            json!({ "spec": { "insecureSkipTLSVerification": true } }),
            moves,
        ),
        attempt(
            "PATCH",
            CLUSTER,
            json!({ "spec": { "proxyURL": "http://127.0.0.1:3" } }),
            moves,
        ),
        attempt("POST", clusters, pointing("member1"), moves),
        allowed("PATCH", CLUSTER, labelled("region")),
    ]
}

/// Returns the requests of somebody who reads the Secret of a member, too.
fn of_joiner() -> Vec<Attempt> {
    vec![
        attempt(
            "PATCH",
            CLUSTER,
            endpoint("http://127.0.0.1:3"),
            "must begin with https://",
        ),
        allowed("PATCH", CLUSTER, endpoint("https://127.0.0.1:3")),
    ]
}

pub(super) fn endpoint(url: &str) -> Value {
    json!({ "spec": { "apiEndpoint": url } })
}

/// Makes the objects of the attempts, as those do who may.
pub(super) async fn furnish(api: &ControlPlane) -> Result<()> {
    for namespace in ["shop", "karmada-es-member1"] {
        api.namespace(namespace).await?;
    }
    let labels = json!({ "app": "web" });
    let pods = json!({ "metadata": { "labels": labels }, "spec": { "containers": [{ "name": "a", "image": "a" }] } });
    for (path, object) in [
        (
            WEB,
            json!({ "spec": { "selector": { "matchLabels": labels }, "template": pods } }),
        ),
        (
            "/api/v1/namespaces/shop/configmaps/map",
            json!({ "data": { "a": "b" } }),
        ),
        (
            "/api/v1/namespaces/shop/secrets/secret",
            json!({ "stringData": { "a": "b" } }),
        ),
        (&format!("{SHOP_ROLES}/role"), json!({ "rules": [] })),
        (
            "/apis/coordination.k8s.io/v1/namespaces/shop/leases/lease",
            json!({ "spec": {} }),
        ),
        (
            "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/hook",
            json!({ "webhooks": [
            { "name": "a.x.io", "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": "Ignore",
                "clientConfig": { "url": "https://127.0.0.1:1/" } }] }),
        ),
        (
            CLUSTER,
            json!({ "spec": { "syncMode": "Push", "apiEndpoint": "https://127.0.0.1:2",
            "secretRef": { "namespace": "karmada-cluster", "name": "member1" } } }),
        ),
        (WORK, json!({ "spec": { "workload": {} } })),
        (AGENT, agent("k", "t", "i")),
        (&format!("{SLICES}/users"), slice("users", &json!({}))),
        (
            BINDING,
            json!({ "spec": { "replicas": 1,
            "resource": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "namespace": "shop" } } }),
        ),
        (
            &format!("{POLICIES}/web"),
            policy("web", "Deployment", false),
        ),
        (
            INGRESS,
            json!({ "spec": { "defaultBackend": { "service": { "name": "web", "port": { "number": 80 } } } } }),
        ),
    ] {
        let (all, name) = path.rsplit_once('/').unwrap();
        let mut object = object;
        object["metadata"]["name"] = name.into();
        send(&api.client(), "POST", all, &object)
            .await
            .with_context(|| format!("{path} is not created"))?;
    }
    let mut status = json!({ "status": { "kubernetesVersion": "v1" } });
    let ready = &ready_and("")["status"]["conditions"][0];
    status["status"]["conditions"] = json!([ready]);
    send(
        &api.client(),
        "PATCH",
        &format!("{CLUSTER}/status"),
        &status,
    )
    .await?;
    Ok(())
}

/// Case P75: with the token of any program of a fleet, nothing can be written but its own objects.
#[test]
fn stolen_tokens_reach_no_further() {
    isolated(test_name!(), async || {
        let api = ControlPlane::start("karmada", ApiKind::Real).await?;
        api.install_crds(&crds::karmada()).await?;
        for namespace in ["karmada-system", "karmada-cluster"] {
            api.namespace(namespace).await?;
        }
        for file in manifests::PROPAGATION.into_iter().chain(RIGHTS) {
            manifests::apply(&api.client(), file).await?;
        }
        aggregate(&api.client()).await?;
        furnish(&api).await?;
        manifests::apply(&api.client(), "karmada/agent.yaml").await?;
        manifests::apply(&api.client(), "karmada/gateway-agent.yaml").await?;
        api.guard(
            manifests::CONFINEMENT
                .into_iter()
                .chain(["admission/clusters.yaml"]),
        )
        .await?;
        let every = json!([{ "apiGroups": ["cluster.karmada.io", "work.karmada.io"],
            "resources": ["*"], "verbs": ["*"] }]);
        grant(&api.client(), USER, &every).await?;
        until_guarded(&api).await?;
        let mut refusals = 0;
        for (program, attempts) in [
            ("propagation-controller", of_propagation_controller()),
            ("scheduler", of_scheduler()),
            ("execution-controller", of_execution_controller()),
            ("cluster-controller", of_cluster_controller()),
            ("ingress-controller", of_ingress_controller()),
            ("cluster-health-agent-gateway", of_gateway_agent()),
            ("remedy-controller", of_remedy_controller()),
            ("kubectl-remedy-renew", of_renewal()),
        ] {
            let account = format!("system:serviceaccount:karmada-system:{program}");
            refusals += play(&api, &account, attempts).await?;
        }
        let agent = "system:serviceaccount:karmada-es-member1:cluster-health-agent";
        refusals += play(&api, agent, of_agent()).await?;
        refusals += play(&api, USER, of_user()).await?;
        let mut secrets = every.clone();
        secrets
            .as_array_mut()
            .unwrap()
            .push(json!({ "apiGroups": [""],
            "resources": ["secrets"], "resourceNames": ["member1"], "verbs": ["get"] }));
        grant(&api.client(), JOINER, &secrets).await?;
        until_may(&api, JOINER, CLUSTER, &labelled("joins")).await?;
        refusals += play(&api, JOINER, of_joiner()).await?;
        let everything = json!([{ "apiGroups": ["*"], "resources": ["*"], "verbs": ["*"] }]);
        grant(&api.client(), ADMIN, &everything).await?;
        until_may(&api, ADMIN, CLUSTER, &labelled("administers")).await?;
        let rewritten = json!({ "spec": { "workload": { "manifests": [] } } });
        play(&api, ADMIN, vec![allowed("PATCH", WORK, rewritten)]).await?;
        ensure!(refusals >= 40, "{refusals}");
        Ok(())
    });
}

/// Waits until the rights of a user are in effect, by which he may make this change.
async fn until_may(api: &ControlPlane, user: &str, path: &str, change: &Value) -> Result<()> {
    let client = api.client_for(user).await?;
    while send(&client, "PATCH", path, change).await.is_err() {}
    Ok(())
}

/// Waits until the policies and the rights are in effect, which the API watches: the policies come in the order of
/// their files, and the last of them refuses this.
async fn until_guarded(api: &ControlPlane) -> Result<()> {
    let user = api.client_for(USER).await?;
    let work = named("probe", &json!({ "spec": { "workload": {} } }));
    loop {
        match send(&user, "POST", &format!("{WORKS}?dryRun=All"), &work).await {
            Err(kube::Error::Api(status)) if status.message.contains("Works are written by") => {
                return Ok(());
            }
            _ => {}
        }
    }
}

//! The limits of a thief of a token: beyond what RBAC says, by `manifests/admission` and `manifests/placement/hub/confinement.yaml`; and by
//! RBAC alone. On a real API only: the embedded one has neither accounts nor admission policies.
//!
//! - `real`: the attempts; those that RBAC alone refuses are in `rights`. `with_tools`: the page for users.
#![expect(clippy::unwrap_used, reason = "a test fails so")]
#![expect(clippy::print_stdout, reason = "shows what is refused, and how")]

mod real;
mod with_tools;

use anyhow::{Result, ensure};
use http::Request;
use kube::Client;
use pipeline_tests::control_plane::ControlPlane;
use serde_json::{Value, json};

const SHOP_ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/shop/roles";

/// The kinds of the created objects.
const KINDS: [(&str, &str); 25] = [
    ("clusterrolebindings", "ClusterRoleBinding"),
    ("clusterroles", "ClusterRole"),
    ("clusters", "Cluster"),
    ("configmaps", "ConfigMap"),
    ("deployments", "Deployment"),
    ("dnsendpoints", "DNSEndpoint"),
    ("endpointslices", "EndpointSlice"),
    ("events", "Event"),
    ("httproutes", "HTTPRoute"),
    ("ingresses", "Ingress"),
    ("leases", "Lease"),
    ("memberclusters", "MemberCluster"),
    ("multiclusteringresses", "MultiClusterIngress"),
    ("namespaces", "Namespace"),
    ("propagationpolicies", "PropagationPolicy"),
    ("remedies", "Remedy"),
    ("resourcebindings", "ResourceBinding"),
    ("resourceenvelopes", "ResourceEnvelope"),
    ("rolebindings", "RoleBinding"),
    ("roles", "Role"),
    ("secrets", "Secret"),
    ("services", "Service"),
    ("token", "TokenRequest"),
    (
        "validatingwebhookconfigurations",
        "ValidatingWebhookConfiguration",
    ),
    ("works", "Work"),
];

/// A method, a path, a body, and the text of its refusal; `None` where it is allowed.
type Attempt = (&'static str, String, Value, Option<&'static str>);

fn attempt(method: &'static str, path: &str, body: Value, refused: &'static str) -> Attempt {
    (method, path.to_owned(), body, Some(refused))
}

fn allowed(method: &'static str, path: &str, body: Value) -> Attempt {
    (method, path.to_owned(), body, None)
}

/// Returns the attempt to record an Event on the Lease of the agents in `namespace`.
fn recorded_in(namespace: &str, refused: Option<&'static str>) -> Attempt {
    let lease = json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "namespace": namespace, "name": "cluster-health-agent" });
    let event = json!({ "regarding": lease, "type": "Warning", "reason": "ConditionRefused",
        "action": "Report", "eventTime": "2026-11-26T08:00:00.000000Z",
        "reportingController": "cluster-health-agent", "reportingInstance": "cluster-health-agent" });
    let path = format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events");
    ("POST", path, named("refused", &event), refused)
}

fn annotated(key: &str) -> Value {
    json!({ "metadata": { "annotations": { key: "a" } } })
}

fn labelled(key: &str) -> Value {
    json!({ "metadata": { "labels": { key: "a" } } })
}

fn held(finalizer: &str) -> Value {
    json!({ "metadata": { "finalizers": [finalizer] } })
}

fn named(name: &str, fields: &Value) -> Value {
    let mut object = json!({ "metadata": { "name": name } });
    for (field, value) in fields.as_object().unwrap() {
        object[field] = value.clone();
    }
    object
}

/// Returns an object to be created at a path, with its version and kind.
fn typed(path: &str, object: &Value) -> Value {
    let (path, _) = path.split_once('?').unwrap_or((path, ""));
    let version = match path.split('/').collect::<Vec<_>>()[..] {
        ["", "apis", group, version, ..] => format!("{group}/{version}"),
        _ => "v1".to_owned(),
    };
    let (_, plural) = path.rsplit_once('/').unwrap();
    let (_, kind) = KINDS.into_iter().find(|(one, _)| *one == plural).unwrap();
    let mut typed = object.clone();
    typed["apiVersion"] = version.into();
    typed["kind"] = kind.into();
    typed
}

async fn send(
    client: &Client,
    method: &str,
    path: &str,
    body: &Value,
) -> Result<Value, kube::Error> {
    let (content, body) = match method {
        "POST" => ("application/json", typed(path, body).to_string()),
        "PATCH" => ("application/merge-patch+json", body.to_string()),
        _ => ("application/json", String::new()),
    };
    let request = Request::builder().method(method).uri(path);
    let request = request.header("Content-Type", content);
    client
        .request(request.body(body.into_bytes()).unwrap())
        .await
}

/// Plays all attempts of an account, and prints the text of each refusal.
async fn play(api: &ControlPlane, account: &str, attempts: Vec<Attempt>) -> Result<usize> {
    let client = api.client_for(account).await?;
    let mut refusals = 0;
    for (method, path, body, expected) in attempts {
        let answer = send(&client, method, &path, &body).await;
        match (answer, expected) {
            (Ok(_), None) => {}
            (Err(kube::Error::Api(status)), Some(expected)) => {
                println!("{account}: {method} {path} {body}: {}", status.message);
                ensure!(status.message.contains(expected), "{expected} is not said");
                refusals += 1;
            }
            (answer, _) => anyhow::bail!("{account}: {method} {path} {body}: {answer:?}"),
        }
    }
    Ok(refusals)
}

/// Waits until a policy refuses this: the API has a watch of its own on rights, and takes policies one by one.
async fn until_refused(client: &Client, method: &str, path: &str, body: &Value, message: &str) {
    while !send(client, method, path, body)
        .await
        .is_err_and(|error| error.to_string().contains(message))
    {}
}

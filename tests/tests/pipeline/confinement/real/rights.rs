//! The accounts that RBAC alone confines, or a policy for everybody: the rights of their manifests, and no others.

use anyhow::{Result, ensure};
use http::Request;
use pipeline_tests::{
    agents::MEMBER,
    control_plane::{ApiKind, ControlPlane},
    crds,
    fleet::{isolated, maintenance},
    test_name,
};
use serde_json::{Value, json};

use super::{
    super::{Attempt, SHOP_ROLES, allowed, attempt, labelled, named, play, send, until_refused},
    fleet::{AGENT, BINDING, CLUSTER, WEB, WORK, WORKS, endpoint, furnish},
};
use crate::install::page::{Page, Reader};

const SECRET: &str = "/api/v1/namespaces/shop/secrets/secret";
const MAPS: &str = "/api/v1/namespaces/shop/configmaps";
const NODE: &str = "/api/v1/nodes/n1";
const REMEDIES: &str = "/apis/remedy.karmada.io/v1alpha1/remedies";
const MEMBER_CLUSTER: &str = "/apis/cluster.kubernetes-fleet.io/v1/memberclusters/member1";
/// A Work of another cluster.
const OF_ANOTHER: &str = "/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-member2/works/web";
const MOVES: &str = "only who may get that Secret may change it";

/// The rights in the API of a fleet, and who has those that are bound to nobody.
const IN_FLEET: &str = "
for file in karmada/kubectl-remedy karmada/kubectl-remedy-drain karmada/kubectl-remedy-join propagation/cluster/kubectl-remedy-join pull/rights; do
  kubectl --context karmada apply -f manifests/$file.yaml
done
kubectl --context karmada apply -k manifests/practice
kubectl --context karmada create clusterrolebinding operator --clusterrole karmada-rs:kubectl-remedy --user operator
kubectl --context karmada create clusterrolebinding drainer --clusterrole karmada-rs:kubectl-remedy-drain --user drainer
kubectl --context karmada create clusterrolebinding joiner --clusterrole karmada-rs:kubectl-remedy-join --user joiner
kubectl --context karmada create clusterrolebinding fleet-joiner --clusterrole karmada-rs:kubectl-remedy-join-fleet --user fleet-joiner
kubectl --context karmada -n karmada-cluster create rolebinding fleet-joiner --role karmada-rs:kubectl-remedy-join-fleet --user fleet-joiner
";

/// The rights in other clusters, with all options: one API is gateway, member, hub, and where ExternalDNS runs.
const IN_MEMBER: &str = "
for namespace in karmada-rs karmada-system fleet-system shop; do kubectl --context member1 create namespace $namespace; done
kubectl --context member1 -n shop create secret generic secret --from-literal=a=b
kubectl --context member1 -n shop create deployment web --image a
for place in gateway/reachability dns member pull/member placement/member; do
  kubectl --context member1 apply -k manifests/$place
done
for option in dns-service node-condition signals; do
  kubectl --context member1 apply -f manifests/member/$option/rights.yaml
done
for file in ingresses/rights kubectl-remedy; do kubectl --context member1 apply -f manifests/placement/$file.yaml; done
kubectl --context member1 create clusterrolebinding operator --clusterrole karmada-rs:kubectl-remedy --user operator
";

/// An account, the requests that it may make once its rights are in effect, and those that it may not.
type Account = (&'static str, Attempt, Vec<Attempt>);

fn reads(path: &str) -> Attempt {
    attempt("GET", path, Value::Null, "cannot get resource")
}

fn lists(path: &str) -> Attempt {
    attempt("GET", path, Value::Null, "cannot list resource")
}

fn creates(path: &str) -> Attempt {
    attempt(
        "POST",
        path,
        named("own", &json!({})),
        "cannot create resource",
    )
}

fn changes(path: &str) -> Attempt {
    attempt("PATCH", path, labelled("a"), "cannot patch resource")
}

fn replaces(path: &str) -> Attempt {
    attempt("PUT", path, Value::Null, "cannot update resource")
}

fn deletes(path: &str) -> Attempt {
    attempt("DELETE", path, Value::Null, "cannot delete resource")
}

/// Returns the attempt to have every right.
fn escalates(refused: &'static str) -> Attempt {
    let role = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin" });
    let binding = named("own", &json!({ "roleRef": role, "subjects": [] }));
    let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    attempt("POST", bindings, binding, refused)
}

/// Returns the attempt to be another account.
fn takes_token_of(account: &str) -> Attempt {
    let (namespace, name) = account.split_once('/').unwrap();
    creates(&format!(
        "/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
    ))
}

/// Returns the requests that nobody may make who only looks, or blocks by Remedies.
fn beyond_looking() -> Vec<Attempt> {
    vec![
        reads(SECRET),
        changes(CLUSTER),
        changes(BINDING),
        changes(OF_ANOTHER),
        escalates("cannot create resource"),
    ]
}

fn blocks(remedy: &str) -> Attempt {
    let spec = json!({ "spec": maintenance(MEMBER) });
    allowed("POST", REMEDIES, named(remedy, &spec))
}

fn practice() -> Account {
    let account = "system:serviceaccount:karmada-system:kubectl-remedy-practice";
    let mut beyond = beyond_looking();
    beyond.push(deletes(&format!("{REMEDIES}/practised")));
    (account, blocks("practised"), beyond)
}

fn operator() -> Account {
    let mut beyond = beyond_looking();
    let lease = "/apis/coordination.k8s.io/v1/namespaces/karmada-system/leases/remedy-controller";
    beyond.push(changes(lease));
    ("operator", blocks("of-an-operator"), beyond)
}

fn drainer() -> Account {
    let taints = json!({ "spec": { "taints": [{ "key": "a", "effect": "NoSchedule" }] } });
    let beyond = vec![
        attempt("PATCH", CLUSTER, endpoint("https://127.0.0.1:3"), MOVES),
        deletes(CLUSTER),
        changes(&format!("{CLUSTER}/status")),
        reads(SECRET),
        changes(OF_ANOTHER),
        escalates("cannot create resource"),
    ];
    ("drainer", allowed("PATCH", CLUSTER, taints), beyond)
}

fn joiner() -> Account {
    let beyond = vec![
        reads(SECRET),
        changes(CLUSTER),
        changes(WORK),
        changes(OF_ANOTHER),
        takes_token_of("karmada-system/propagation-controller"),
        escalates("is attempting to grant RBAC permissions not currently held"),
    ];
    ("joiner", allowed("GET", AGENT, Value::Null), beyond)
}

fn fleet_joiner() -> Account {
    let secret_of = |name: &str, value: &str| json!({ "spec": { "secretRef": { name: value } } });
    let beyond = vec![
        attempt(
            "PATCH",
            CLUSTER,
            secret_of("name", "member2"),
            "spec.secretRef.name must be member1",
        ),
        attempt("PATCH", CLUSTER, secret_of("namespace", "shop"), MOVES),
        attempt(
            "PATCH",
            CLUSTER,
            endpoint("http://127.0.0.1:3"),
            "must begin with https://",
        ),
        reads(SECRET),
        changes(WORK),
        takes_token_of("karmada-system/propagation-controller"),
        escalates("cannot create resource"),
    ];
    let moves = allowed("PATCH", CLUSTER, endpoint("https://127.0.0.1:4"));
    ("fleet-joiner", moves, beyond)
}

fn pull() -> Account {
    let clusters = "/apis/cluster.karmada.io/v1alpha1/clusters";
    let beyond = vec![
        lists("/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-member2/works"),
        replaces(OF_ANOTHER),
        replaces(CLUSTER),
        replaces(&format!("{clusters}/member2/status")),
        replaces("/apis/coordination.k8s.io/v1/namespaces/karmada-cluster/leases/member2"),
        deletes(WORK),
        reads("/api/v1/namespaces/karmada-cluster/secrets/member1"),
        escalates("cannot create resource"),
    ];
    let account = "system:serviceaccount:karmada-es-member1:pull";
    (account, allowed("GET", WORKS, Value::Null), beyond)
}

fn in_fleet() -> Vec<Account> {
    vec![
        practice(),
        operator(),
        drainer(),
        joiner(),
        fleet_joiner(),
        pull(),
    ]
}

fn gateway_agent() -> Account {
    let slices = "/apis/discovery.k8s.io/v1/endpointslices";
    let beyond = vec![
        reads(SECRET),
        creates("/apis/discovery.k8s.io/v1/namespaces/karmada-rs/endpointslices"),
        changes(WEB),
        escalates("cannot create resource"),
    ];
    let account = "system:serviceaccount:karmada-rs:cluster-health-agent-gateway";
    (account, allowed("GET", slices, Value::Null), beyond)
}

fn dns_provider() -> Account {
    let names = |namespace: &str| {
        format!("/apis/externaldns.k8s.io/v1/namespaces/{namespace}/dnsendpoints")
    };
    let beyond = vec![
        lists(&names("shop")),
        creates(&names("shop")),
        reads(SECRET),
        changes(WEB),
        escalates("cannot create resource"),
    ];
    let account = "system:serviceaccount:karmada-rs:ingress-controller";
    (
        account,
        allowed("GET", &names("karmada-rs"), Value::Null),
        beyond,
    )
}

fn agent() -> Account {
    let beyond = vec![
        reads(SECRET),
        reads("/api/v1/namespaces/karmada-rs/secrets/cluster-health-agent-karmada"),
        lists("/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices"),
        lists("/api/v1/namespaces/kube-system/services"),
        creates("/apis/discovery.k8s.io/v1/namespaces/karmada-rs/endpointslices"),
        changes(NODE),
        changes(WEB),
        escalates("cannot create resource"),
    ];
    let account = "system:serviceaccount:karmada-rs:cluster-health-agent";
    (
        account,
        allowed("GET", "/api/v1/nodes", Value::Null),
        beyond,
    )
}

/// The account of a fleet, with the ClusterRole of the page.
fn fleet() -> Account {
    let beyond = vec![
        reads(SECRET),
        changes(NODE),
        creates(SHOP_ROLES),
        takes_token_of("karmada-rs/fleet"),
        escalates("cannot create resource"),
    ];
    let account = "system:serviceaccount:karmada-rs:fleet";
    (
        account,
        allowed("POST", MAPS, named("of-the-fleet", &json!({}))),
        beyond,
    )
}

/// It may bind any role: its rights are worth the member.
fn execution_controller() -> Account {
    let hooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    let beyond = vec![
        changes(NODE),
        creates(hooks),
        takes_token_of("karmada-system/cluster-controller"),
    ];
    let account = "system:serviceaccount:karmada-system:execution-controller";
    (
        account,
        allowed("POST", MAPS, named("pulled", &json!({}))),
        beyond,
    )
}

fn cluster_controller() -> Account {
    let beyond = vec![
        reads(SECRET),
        changes(NODE),
        changes(WEB),
        creates(MAPS),
        escalates("cannot create resource"),
    ];
    let account = "system:serviceaccount:karmada-system:cluster-controller";
    (
        account,
        allowed("GET", "/api/v1/nodes", Value::Null),
        beyond,
    )
}

/// It may write every object.
fn placement_agent() -> Account {
    let beyond = vec![
        attempt("GET", "/metrics", Value::Null, "cannot get path"),
        attempt(
            "DELETE",
            MAPS,
            Value::Null,
            "cannot deletecollection resource",
        ),
    ];
    let account = "system:serviceaccount:fleet-system:placement-agent";
    (account, allowed("GET", SECRET, Value::Null), beyond)
}

/// The one of a hub.
fn ingress_controller() -> Account {
    let beyond = vec![
        reads(SECRET),
        creates("/api/v1/namespaces/shop/services"),
        creates("/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices"),
        changes(MEMBER_CLUSTER),
        changes(&format!("{REMEDIES}/maintenance")),
        escalates("cannot create resource"),
    ];
    let account = "system:serviceaccount:fleet-system:ingress-controller";
    (
        account,
        allowed("GET", "/api/v1/services", Value::Null),
        beyond,
    )
}

fn operator_of_hub() -> Account {
    let classes = "/apis/networking.k8s.io/v1/ingressclasses";
    let beyond = vec![
        reads(SECRET),
        changes(MEMBER_CLUSTER),
        changes(WEB),
        escalates("cannot create resource"),
    ];
    ("operator", allowed("GET", classes, Value::Null), beyond)
}

fn in_member() -> Vec<Account> {
    vec![
        gateway_agent(),
        dns_provider(),
        agent(),
        fleet(),
        execution_controller(),
        cluster_controller(),
        placement_agent(),
        ingress_controller(),
        operator_of_hub(),
    ]
}

/// Waits until the rights of each account are in effect, and plays its attempts. None may act as somebody else.
async fn try_each(api: &ControlPlane, accounts: Vec<Account>) -> Result<()> {
    for (account, (method, path, body, _), beyond) in accounts {
        let client = api.client_for(account).await?;
        while send(&client, method, &path, &body).await.is_err() {}
        play(api, account, beyond).await?;
        let request = Request::get("/api").header("Impersonate-User", "somebody");
        let answer = client.request::<Value>(request.body(Vec::new())?).await;
        let refused = answer.err().map(|error| error.to_string());
        let refused = refused.unwrap_or_default();
        ensure!(
            refused.contains("cannot impersonate"),
            "{account}: {refused}"
        );
    }
    Ok(())
}

/// Case P116: with the token of an account that RBAC confines, there is no more to be had than is in its manifest: no other cluster's objects,
/// no Secret elsewhere, no further right, and nobody else's name.
#[test]
fn rbac_confines_stolen_tokens() {
    isolated(test_name!(), async || {
        let (karmada, member) = tokio::try_join!(
            ControlPlane::start("karmada", ApiKind::Real),
            ControlPlane::start("member1", ApiKind::Real)
        )?;
        karmada.install_crds(&crds::karmada()).await?;
        let kind = ("externaldns.k8s.io", "DNSEndpoint", "dnsendpoints");
        let kind = crds::definition(kind.0, kind.1, kind.2, &json!({}))?;
        crds::apply(&member.client(), &[kind]).await?;
        for namespace in ["karmada-system", "karmada-cluster"] {
            karmada.namespace(namespace).await?;
        }
        furnish(&karmada).await?;
        let contexts = [("karmada", &karmada), ("member1", &member)];
        let reader = Reader::of(&contexts, ApiKind::Real)?;
        reader.run(IN_FLEET).await?;
        reader.run(IN_MEMBER).await?;
        for step in reader.steps(Page::Join, "In the member") {
            reader.run(&step).await?;
        }

        karmada.guard(["admission/clusters.yaml"]).await?;
        let client = karmada.client_for("drainer").await?;
        let moved = endpoint("https://127.0.0.1:3");
        let path = format!("{CLUSTER}?dryRun=All");
        until_refused(&client, "PATCH", &path, &moved, MOVES).await;
        try_each(&karmada, in_fleet()).await?;
        try_each(&member, in_member()).await
    });
}

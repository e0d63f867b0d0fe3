use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::Body;
use clap::Parser;
use embedded_apiserver::ApiServer;
use futures::FutureExt;
use http::Request;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Namespace;
use karmada_runtime::client::Addresses;
use kube::Api;
use kube::api::PostParams;
use kube::runtime::wait::await_condition;
use lab_parts::kubeconfig::{self, Access};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::time::timeout;
use tower::ServiceExt;

use super::*;

const HANG: Duration = Duration::from_mins(1);
const HOST: &str = "karmada.test";
const NAMESPACE: &str = "karmada-es-member1";

/// DNS that works until it is dead, and then is silent.
#[derive(Default)]
struct Dns {
    dead: AtomicBool,
    looked_up: Notify,
}

impl Dns {
    fn addresses(self: &Arc<Self>) -> Addresses {
        let dns = Arc::clone(self);
        Addresses::by(move |name| {
            let dns = Arc::clone(&dns);
            async move {
                if dns.dead.load(Ordering::Relaxed) {
                    std::future::pending::<()>().await;
                }
                assert_eq!(name, HOST);
                dns.looked_up.notify_one();
                Ok(vec![[127, 0, 0, 1].into()])
            }
            .boxed()
        })
    }
}

#[tokio::test]
async fn an_agent_that_never_led_finds_karmada_when_dns_and_the_leader_are_gone() {
    let karmada = ApiServer::new();
    for definition in karmada_api::crd::stand_ins().unwrap() {
        karmada.install(&definition).unwrap();
    }
    let direct = Client::new(karmada.service(), "default");
    let namespace: Namespace =
        serde_json::from_value(json!({ "metadata": { "name": NAMESPACE } })).unwrap();
    let namespaces = Api::all(direct.clone());
    namespaces
        .create(&PostParams::default(), &namespace)
        .await
        .unwrap();
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let access = Access::open("karmada", listener.local_addr().unwrap());
    tokio::spawn(async move { karmada.serve(listener, std::future::pending()).await });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kubeconfig");
    kubeconfig::write(&path, &[&access]).unwrap();
    let by_name = std::fs::read_to_string(&path)
        .unwrap()
        .replace("127.0.0.1", HOST);
    std::fs::write(&path, by_name).unwrap();

    let args = Args::try_parse_from([
        NAME,
        &format!("--karmada-kubeconfig={}", path.display()),
        "--cluster-name=member1",
        "--host-name=n1",
        "--nameserver=127.0.0.1:1",
    ]);
    let config = Config::try_from(args.unwrap()).unwrap();
    let dns = Arc::<Dns>::default();
    let mut program = Program::new(IDENTITY, ([127, 0, 0, 1], 0).into());
    program.addresses = dns.addresses();
    let client = program.connect("karmada", &config.source).await.unwrap();
    let rounds = config.probes.start(&mut program, &config.cluster, None);
    let rounds = rounds.unwrap();
    run(config, client, None, rounds, &mut program).unwrap();

    // A leader's request, before the first task of the program runs: this agent does not campaign.
    let request = Request::get("/v1/observation?cluster=member1&agent=other&standby=false");
    let request = request.body(Body::empty()).unwrap();
    program.routes.clone().oneshot(request).await.unwrap();
    // Long before it campaigns, for which it would look Karmada up as well.
    let early = lease::DURATION / 2;
    timeout(early, dns.looked_up.notified()).await.unwrap();
    dns.dead.store(true, Ordering::Relaxed);

    let leases: Api<Lease> = Api::namespaced(direct, NAMESPACE);
    let held = await_condition(leases, NAME, |lease: Option<&Lease>| {
        let spec = lease.and_then(|lease| lease.spec.as_ref());
        spec.is_some_and(|spec| spec.holder_identity.is_some())
    });
    timeout(HANG, held).await.unwrap().unwrap();
}

//! An agent's memory does not grow while Karmada is away. This test needs a process of its own, since
//! every byte counts.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::net::Ipv4Addr;
use std::time::Duration;

use clap::Parser;
use cluster_health_agent::{Args, IDENTITY, NAME, assemble};
use embedded_apiserver::{ApiServer, Fault};
use hickory_proto::op::ResponseCode;
use http::Uri;
use k8s_openapi::api::core::v1::Namespace;
use karmada_api::Cluster;
use karmada_api::condition::{DNS_READY, FALSE, TRUE};
use karmada_runtime::client;
use karmada_runtime::program::Program;
use kube::api::PostParams;
use kube::runtime::wait::await_condition;
use kube::{Api, Client, Config};
use lab_parts::dns::{DnsServer, KUBERNETES_IP, Response};
use peak_alloc::PeakAlloc;
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};

#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

/// In the test's own, paused time.
const LONGEST_WAIT: Duration = Duration::from_mins(10);
/// The time in which DNS breaks and recovers once.
const CYCLE: Duration = Duration::from_mins(5);
const HALF: Duration = Duration::from_mins(30);
/// Half an hour has 360 rounds, so even a leak of two bytes in each exceeds this.
const SLACK: usize = 360;

const WORKS: Response = Response::Ipv4(KUBERNETES_IP);
const FAILS: Response = Response::Code(ResponseCode::Refused);

/// An agent with its DNS server and its Karmada API.
struct Location {
    karmada: ApiServer,
    clusters: Api<Cluster>,
    dns: DnsServer,
}

impl Location {
    async fn new(flag: &str) -> Self {
        let karmada = ApiServer::new();
        for definition in karmada_api::crd::stand_ins().unwrap() {
            karmada.install(&definition).unwrap();
        }
        let client = Client::new(karmada.service(), "default");
        let namespace =
            json!({ "metadata": { "name": karmada_api::execution_namespace("member1") } });
        let namespace: Namespace = serde_json::from_value(namespace).unwrap();
        let parameters = PostParams::default();
        let namespaces = Api::all(client.clone());
        namespaces.create(&parameters, &namespace).await.unwrap();
        let cluster = json!({ "metadata": { "name": "member1" }, "spec": { "syncMode": "Push" } });
        let cluster: Cluster = serde_json::from_value(cluster).unwrap();
        let clusters = Api::all(client);
        clusters.create(&parameters, &cluster).await.unwrap();

        let dns = DnsServer::start(WORKS).await.unwrap();
        let nameserver = format!("--nameserver={}", dns.address());
        let flags = [
            NAME,
            "--karmada-kubeconfig=unused",
            "--cluster-name=member1",
            "--host-name=n1",
            "--probe-name=kubernetes.default.svc.cluster.local.",
            "--max-recovery-hold=30s",
            &nameserver,
            flag,
        ];
        let config = Config::new(Uri::from_static("http://karmada"));
        let client = client::with_service(karmada.service(), config, NAME).unwrap();
        let mut program = Program::new(IDENTITY, (Ipv4Addr::LOCALHOST, 0).into());
        assemble(Args::parse_from(flags), client, None, &mut program).unwrap();
        program.serve().unwrap();
        tokio::spawn(program.run_until(async || std::future::pending().await));
        Self {
            karmada,
            clusters,
            dns,
        }
    }

    async fn until(&self, status: &str) {
        let clusters = self.clusters.clone();
        let reached = await_condition(clusters, "member1", |cluster: Option<&Cluster>| {
            let condition = cluster.and_then(|cluster| cluster.condition(DNS_READY));
            condition.is_some_and(|condition| condition.status == status)
        });
        timeout(LONGEST_WAIT, reached).await.unwrap().unwrap();
    }

    /// Breaks DNS, and then repairs it.
    async fn cycle(&self) {
        for response in [FAILS, WORKS] {
            self.dns.set(response);
            sleep(CYCLE / 2).await;
        }
    }
}

/// Returns the most bytes held in the first and in the second half of an hour without Karmada.
async fn held(fault: Fault, flag: &str) -> [usize; 2] {
    let place = Location::new(flag).await;
    place.until(TRUE).await;
    place.cycle().await;
    place.karmada.faults().inject(fault);
    let mut held = [0; 2];
    for most in &mut held {
        let half = Instant::now() + HALF;
        while Instant::now() < half {
            place.cycle().await;
            *most = ALLOCATED.current_usage().max(*most);
        }
    }
    place.karmada.faults().clear();
    place.dns.set(FAILS);
    place.until(FALSE).await;
    held
}

#[test]
fn the_second_half_of_an_hour_without_karmada_takes_no_more_memory_than_the_first() {
    for flag in ["--leader-elect=true", "--leader-elect=false"] {
        for fault in [Fault::Disconnect, Fault::Unavailable, Fault::Silence] {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .start_paused(true)
                .build()
                .unwrap();
            let case = format!("{flag}, {fault:?}");
            let [first, second] = runtime.block_on(held(fault, flag));
            assert!(second <= first + SLACK, "{case}: {first}, then {second}");
        }
    }
}

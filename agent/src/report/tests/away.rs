//! The Karmada API is away for long: report and lease on an API server in this process.

use api::Cluster;
use apiserver::{ApiServer, Fault, FaultId, Injection, Verb};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::PostParams;
use kube::runtime::wait::await_condition;
use runtime::lease::{self, Campaign};
use runtime::program::Program;
use tokio::time::timeout;

use super::*;

/// Of the test's own, paused time.
const LONGEST_WAIT: Duration = Duration::from_mins(10);

/// A Karmada API, and a report of one agent that seeks the lease there. Dropped, it ends.
struct Karmada {
    server: ApiServer,
    clusters: Api<Cluster>,
    votes: watch::Sender<Option<Vote>>,
    _program: Program,
}

impl Karmada {
    /// Without the Cluster object.
    async fn start(vote: Vote) -> Self {
        let server = ApiServer::new();
        for definition in api::crd::stand_ins().unwrap() {
            server.install(&definition).unwrap();
        }
        let client = Client::new(server.service(), "default");
        let own = api::execution_namespace("member1");
        let namespace = json!({ "metadata": { "name": own } });
        create::<Namespace>(&Api::all(client.clone()), namespace).await;

        let mut program = Program::new(crate::NAME, ([127, 0, 0, 1], 0).into());
        let campaign = Campaign::always(own, crate::NAME, "n1".to_owned());
        let leadership = lease::campaign(&mut program, client.clone(), campaign);
        let (votes, told) = watch::channel(Some(vote));
        let report = report(client.clone(), told, leadership);
        let task = report.run(program.stopping.clone());
        program.tasks.spawn("report", task);
        Self {
            server,
            clusters: Api::all(client),
            votes,
            _program: program,
        }
    }

    async fn create_cluster(&self) {
        let cluster = json!({ "metadata": { "name": "member1" }, "spec": { "syncMode": "Push" } });
        create(&self.clusters, cluster).await;
    }

    async fn until(&self, kind: &str, status: &str) {
        let says = |cluster: Option<&Cluster>| {
            let condition = cluster.and_then(|cluster| cluster.condition(kind));
            condition.is_some_and(|condition| condition.status == status)
        };
        let reached = await_condition(self.clusters.clone(), "member1", says);
        timeout(LONGEST_WAIT, reached).await.unwrap().unwrap();
    }

    fn inject(&self, fault: impl Into<Injection>) -> FaultId {
        self.server.faults().inject(fault)
    }

    fn remove(&self, fault: FaultId) {
        self.server.faults().remove(fault);
    }
}

async fn create<K>(api: &Api<K>, object: Value)
where
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned + serde::Serialize,
{
    let object = serde_json::from_value(object).unwrap();
    api.create(&PostParams::default(), &object).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_api_that_was_away_for_an_hour_hears_the_verdict_within_a_period_of_its_return() {
    for fault in [Fault::Disconnect, Fault::Unavailable, Fault::Silence] {
        let karmada = Karmada::start(Vote::Healthy).await;
        karmada.create_cluster().await;
        karmada.until(REPORTER_READY, TRUE).await;

        let id = karmada.inject(fault.clone());
        sleep(LONG / 2).await;
        karmada.votes.send_replace(Some(unhealthy()));
        sleep(LONG / 2).await;
        karmada.remove(id);
        let back = Instant::now();
        karmada.until(DNS_READY, FALSE).await;
        assert!(back.elapsed() <= PERIOD, "{fault:?}: {:?}", back.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_that_fails_for_long_is_tried_again_every_period() {
    let karmada = Karmada::start(Vote::Healthy).await;
    karmada.create_cluster().await;
    karmada.until(REPORTER_READY, TRUE).await;
    let fault = Fault::Unavailable.kind("clusters").verbs([Verb::Patch]);
    let fault = karmada.inject(fault);
    karmada.votes.send_replace(Some(unhealthy()));
    sleep(LONG).await;
    karmada.remove(fault);
    let back = Instant::now();
    karmada.until(DNS_READY, FALSE).await;
    assert!(back.elapsed() <= PERIOD, "{:?}", back.elapsed());
}

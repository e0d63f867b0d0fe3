//! The built program, started with good and with bad flags.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Output, Stdio};
use std::time::Duration;

use embedded_apiserver::{ApiServer, Fault};
use hickory_proto::op::ResponseCode;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Namespace;
use karmada_api::Cluster;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use lab_parts::dns::{DnsServer, KUBERNETES_IP, Response};
use lab_parts::kubeconfig::{self, Access};
use lab_parts::port::CLOSED;
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, prlimit};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, ChildStderr, Command};
use tokio::time::timeout;

/// A limit for anything that a program does at once, on a busy machine.
const AMPLE: Duration = Duration::from_mins(1);

struct Location {
    folder: TempDir,
}

impl Location {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let karmada = Access::open("karmada", CLOSED);
        kubeconfig::write(&folder.path().join("kubeconfig"), &[&karmada]).unwrap();
        std::fs::write(folder.path().join("nonsense"), "not: [a kubeconfig").unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns the command with these flags, in which `{}` stands for the folder of this location. Its DNS
    /// server is a port on which nothing listens.
    fn command(&self, flags: &[&str]) -> Command {
        let folder = self.folder.path().to_str().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_cluster-health-agent"));
        command
            .args(flags.iter().map(|flag| flag.replace("{}", folder)))
            .env_clear()
            .env("KARMADA_NAMESERVER", "127.0.0.1:1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    async fn output(&self, flags: &[&str]) -> Output {
        output(self.command(flags)).await
    }
}

async fn output(mut command: Command) -> Output {
    timeout(AMPLE, command.output()).await.unwrap().unwrap()
}

const KUBECONFIG_FLAG: &str = "--karmada-kubeconfig={}/kubeconfig";
const CLUSTER_FLAG: &str = "--cluster-name=member1";

/// Asserts that the program ended with code 2 and one line that holds `expected`.
fn assert_refused(output: &Output, expected: &str) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(
        stderr.starts_with("error: ") && stderr.ends_with('\n'),
        "{stderr}"
    );
    assert!(stderr.contains(expected), "{expected}: {stderr}");
}

#[tokio::test]
async fn bad_values_end_the_program_at_once_with_one_line_and_code_2() {
    let place = Location::new();
    let cases: [(&[&str], &str); 21] = [
        (&["--detect-period=0s"], "must be longer than 0s"),
        (&["--detect-period=5 apples"], "--detect-period"),
        (&["--detect-period=1ms"], "at least 100ms"),
        (
            &["--probe-timeout=5s"],
            "--probe-timeout 5s must be shorter than --detect-period 5s",
        ),
        (
            &["--probe-timeout=7s", "--detect-period=6s"],
            "--probe-timeout",
        ),
        (
            &["--detect-failure-threshold=0s"],
            "--detect-failure-threshold",
        ),
        (&["--nameserver=dns.example"], "dns.example"),
        (&["--nameserver=10.96.0.10:66000"], "10.96.0.10:66000"),
        (&["--probe-name=a..b"], "a..b"),
        (&["--karmada-context=elsewhere"], "elsewhere"),
        (&["--expect-address=kubernetes"], "--expect-address"),
        (&["--probe-kube-dns=dns.example"], "dns.example"),
        (
            &["--probe-endpoints=10.244.0.2,auto"],
            "--probe-endpoints has auto among addresses",
        ),
        (&["--dns-service=kube-dns"], "kube-system/kube-dns"),
        (&["--probe-endpoints"], "--member-kubeconfig"),
        (&["--detectors=-coredns-detector"], "--detectors"),
        (&["--listen-address=nowhere"], "--listen-address"),
        (&["--healthz-port=99999"], "--healthz-port"),
        (&["--unheard-of"], "--unheard-of"),
        (
            &["--leader-elect=false", "--peer=10.0.0.7"],
            "--leader-elect=false is for an agent without peers",
        ),
        (
            &["--host-name=$(NODE_NAME)"],
            "$(NODE_NAME) is not expanded",
        ),
    ];
    for (flags, expected) in cases {
        let flags = [&[KUBECONFIG_FLAG, CLUSTER_FLAG], flags].concat();
        assert_refused(&place.output(&flags).await, expected);
    }
}

#[tokio::test]
async fn a_kubeconfig_that_cannot_be_used_is_named() {
    let place = Location::new();
    for name in ["missing", "nonsense"] {
        let flag = format!("--karmada-kubeconfig={}", place.path(name).display());
        let output = place.output(&[CLUSTER_FLAG, &flag]).await;
        assert_refused(&output, place.path(name).to_str().unwrap());
    }
}

#[tokio::test]
async fn a_missing_required_flag_is_named() {
    let place = Location::new();
    assert_refused(&place.output(&[CLUSTER_FLAG]).await, "--karmada-kubeconfig");
    assert_refused(&place.output(&[KUBECONFIG_FLAG]).await, "--cluster-name");
    let bad_name = place
        .output(&[KUBECONFIG_FLAG, "--cluster-name=Member_1"])
        .await;
    assert_refused(&bad_name, "a cluster's name");
}

#[tokio::test]
async fn bad_values_from_the_environment_are_refused_too() {
    let place = Location::new();
    let mut command = place.command(&[KUBECONFIG_FLAG, CLUSTER_FLAG]);
    command.env("KARMADA_DETECT_PERIOD", "0s");
    assert_refused(&output(command).await, "must be longer than 0s");
    let mut command = place.command(&[KUBECONFIG_FLAG, CLUSTER_FLAG]);
    command.env("KARMADA_NAMESERVER", "10.96.0.10,nonsense");
    assert_refused(&output(command).await, "nonsense");
    let mut command = place.command(&[KUBECONFIG_FLAG, CLUSTER_FLAG]);
    command.env("KARMADA_HOST_NAME", "$(NODE_NAME)");
    assert_refused(&output(command).await, "$(NODE_NAME) is not expanded");
}

#[tokio::test]
async fn an_address_that_is_taken_is_named() {
    let place = Location::new();
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = taken.local_addr().unwrap();
    let flag = format!("--listen-address={address}");
    // The program has started by then, so log lines may come before it.
    let output = place.output(&[KUBECONFIG_FLAG, CLUSTER_FLAG, &flag]).await;
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(
        stderr
            .lines()
            .last()
            .unwrap()
            .contains(&address.to_string()),
        "{stderr}"
    );
}

/// A program that has started.
struct Running {
    child: Child,
    log: Lines<BufReader<ChildStderr>>,
    address: SocketAddr,
}

impl Running {
    async fn start(mut command: Command) -> Self {
        let mut child = command.arg("--log-format=json").spawn().unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
        let started = next_line(&mut log, "Started").await;
        let address = started["fields"]["address"]
            .as_str()
            .unwrap()
            .parse()
            .unwrap();
        Self {
            child,
            log,
            address,
        }
    }

    async fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: agent\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut response = String::new();
        let read = stream.read_to_string(&mut response);
        timeout(AMPLE, read).await.unwrap().unwrap();
        response
    }

    fn send(&self, signal: Signal) {
        let id = i32::try_from(self.child.id().unwrap()).unwrap();
        kill_process(Pid::from_raw(id).unwrap(), signal).unwrap();
    }

    async fn signal(mut self, signal: Signal) -> Option<i32> {
        self.send(signal);
        timeout(AMPLE, self.child.wait())
            .await
            .unwrap()
            .unwrap()
            .code()
    }
}

/// Waits for the log line with this message.
async fn next_line(log: &mut Lines<BufReader<ChildStderr>>, message: &str) -> Value {
    loop {
        let line = timeout(AMPLE, log.next_line())
            .await
            .unwrap()
            .unwrap()
            .unwrap();
        let line: Value = serde_json::from_str(&line).unwrap();
        if line["fields"]["message"] == message {
            return line;
        }
    }
}

#[tokio::test]
async fn karmadas_argument_list_starts_the_program_and_sigterm_ends_it() {
    let place = Location::new();
    let mut running = Running::start(place.command(&[
        "--host-kubeconfig={}/kubeconfig",
        "--host-context=karmada",
        CLUSTER_FLAG,
        "--host-name=node1",
        "--bind-address=127.0.0.1",
        "--healthz-port=0",
        "--detectors=*",
        "--coredns-detect-period=5s",
        "--coredns-success-threshold=30s",
        "--coredns-failure-threshold=30s",
        "--coredns-stale-threshold=60s",
        "--leader-elect=true",
        "--leader-elect-lease-duration=15s",
        "--leader-elect-renew-deadline=10s",
        "--leader-elect-retry-period=2s",
        "--leader-elect-resource-lock=leases",
        "--leader-elect-resource-name=cluster-problem-detector",
        "--leader-elect-resource-namespace=kube-system",
    ]))
    .await;
    for path in ["/healthz", "/livez"] {
        assert!(running.get(path).await.starts_with("HTTP/1.1 200 "));
    }
    let line = next_line(&mut running.log, "Names do not resolve").await;
    let failure = line["fields"]["failure"].as_str().unwrap();
    assert_eq!(failure, "unreachable from 127.0.0.1:1");
    assert_eq!(running.signal(Signal::TERM).await, Some(0));
}

#[tokio::test]
async fn flags_that_mean_nothing_here_are_named_in_one_warning() {
    let place = Location::new();
    let flags = [
        KUBECONFIG_FLAG,
        CLUSTER_FLAG,
        "--listen-address=127.0.0.1:0",
        "--log-format=json",
        "--coredns-stale-threshold=60s",
        "--v=4",
        "--vmodule=detector=5",
        "--logtostderr",
    ];
    let mut child = place.command(&flags).spawn().unwrap();
    let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut ignored = Vec::new();
    loop {
        let line = timeout(AMPLE, log.next_line()).await.unwrap();
        let line: Value = serde_json::from_str(&line.unwrap().unwrap()).unwrap();
        let fields = &line["fields"];
        match fields["message"].as_str().unwrap() {
            "Started" => break,
            "Flags of Karmada's detector that mean nothing here, ignored" => {
                ignored.push(fields["flags"].as_str().unwrap().to_owned());
            }
            _ => {}
        }
    }
    assert_eq!(
        ignored,
        ["--coredns-stale-threshold, --v, --vmodule, --logtostderr"]
    );
}

#[tokio::test]
async fn without_a_file_descriptor_left_a_round_is_no_observation_and_a_node_loses_its_vote() {
    let place = Location::new();
    let flags = [
        KUBECONFIG_FLAG,
        CLUSTER_FLAG,
        "--listen-address=127.0.0.1:0",
        "--detect-period=200ms",
        "--detect-failure-threshold=1s",
    ];
    let mut running = Running::start(place.command(&flags)).await;
    next_line(&mut running.log, "This node votes unhealthy").await;
    let program = Pid::from_raw(i32::try_from(running.child.id().unwrap()).unwrap());
    let limits = getrlimit(Resource::Nofile);
    let none = Rlimit {
        current: Some(1),
        ..limits
    };
    prlimit(program, Resource::Nofile, none).unwrap();
    next_line(&mut running.log, "Could not ask any DNS server").await;
    next_line(&mut running.log, "This node has no vote").await;
    prlimit(program, Resource::Nofile, limits).unwrap();
    next_line(&mut running.log, "Names do not resolve").await;
    next_line(&mut running.log, "This node votes unhealthy").await;
    let metrics = running.get("/metrics").await;
    assert!(
        !metrics.contains("probe_rounds_total{result=\"internal\"} 0"),
        "{metrics}"
    );
    assert_eq!(running.signal(Signal::TERM).await, Some(0));
}

#[tokio::test]
async fn the_first_round_makes_the_program_ready_and_is_counted() {
    let place = Location::new();
    let flags = [
        KUBECONFIG_FLAG,
        CLUSTER_FLAG,
        "--listen-address=127.0.0.1:0",
    ];
    let mut running = Running::start(place.command(&flags)).await;
    next_line(&mut running.log, "Names do not resolve").await;
    // The gate opens right after that line is written.
    let ready = async {
        while !running.get("/readyz").await.starts_with("HTTP/1.1 200 ") {
            tokio::task::yield_now().await;
        }
    };
    timeout(AMPLE, ready).await.unwrap();
    let metrics = running.get("/metrics").await;
    for line in [
        "karmada_cluster_health_agent_probe_rounds_total{result=\"unreachable\"} 1",
        "karmada_cluster_health_agent_probe_round_duration_seconds_count 1",
        "karmada_cluster_health_agent_vote{vote=\"healthy\"} 0",
        "karmada_cluster_health_agent_lease_holder 0",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    assert_eq!(running.signal(Signal::INT).await, Some(0));
}

const UNRESOLVED: &str =
    "Could not look up Karmada or peers, trying again: without DNS this agent cannot reach them";

/// Only agents that campaign connect to Karmada, and any of them may have to once DNS is dead.
#[tokio::test]
async fn karmada_and_peers_given_by_name_are_looked_up_at_the_start() {
    let place = Location::new();
    let path = place.path("kubeconfig");
    let by_address = std::fs::read_to_string(&path).unwrap();
    let by_name = by_address.replace(&CLOSED.ip().to_string(), "karmada.invalid");
    assert_ne!(by_name, by_address);
    std::fs::write(&path, by_name).unwrap();
    let flags = [
        KUBECONFIG_FLAG,
        CLUSTER_FLAG,
        "--listen-address=127.0.0.1:0",
        "--peer=http://localhost:1,http://agent-2.invalid:1",
    ];
    let mut running = Running::start(place.command(&flags)).await;
    let line = next_line(&mut running.log, UNRESOLVED).await;
    let names = line["fields"]["names"].as_str().unwrap();
    assert_eq!(names, "[\"agent-2.invalid\", \"karmada.invalid\"]");
    let metrics = running.get("/metrics").await;
    let unresolved = "karmada_cluster_health_agent_unresolved_names 2";
    assert!(metrics.contains(unresolved), "{metrics}");
    assert_eq!(running.signal(Signal::TERM).await, Some(0));
}

/// The agent's metrics that docs/operate-reference.md lists, with the names of their labels.
fn documented() -> BTreeMap<String, BTreeSet<String>> {
    let page = include_str!("../../docs/operate-reference.md");
    let rows = page.lines().filter_map(|line| {
        let columns: Vec<_> = line.strip_prefix('|')?.split('|').map(str::trim).collect();
        let [metrics, programs, _, _] = columns[..] else {
            return None;
        };
        let ours = programs == "all" || programs.split(", ").any(|program| program == "agent");
        ours.then_some(metrics)
    });
    let names = rows.flat_map(|metrics| metrics.split('`').skip(1).step_by(2));
    names
        .map(|name| {
            let (name, labels) = name.split_once('{').unwrap_or((name, ""));
            let labels = labels.trim_end_matches('}').split(',');
            let labels = labels.filter(|label| !label.is_empty());
            (name.to_owned(), labels.map(ToOwned::to_owned).collect())
        })
        .collect()
}

/// The metrics in `text`, with the names of the labels of their samples.
fn shown(text: &str) -> BTreeMap<String, BTreeSet<String>> {
    let types = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE karmada_cluster_health_agent_"));
    types
        .map(|line| {
            let (name, _) = line.split_once(' ').unwrap();
            let series = format!("karmada_cluster_health_agent_{name}{{");
            let samples = text.lines().filter_map(|line| line.strip_prefix(&series));
            let labels = samples.flat_map(|sample| {
                sample
                    .split("\",")
                    .map(|label| label.split_once('=').unwrap().0.to_owned())
            });
            (name.to_owned(), labels.collect())
        })
        .collect()
}

#[tokio::test]
async fn every_metric_of_a_fresh_agent_is_documented_with_its_labels_and_every_documented_one_is_there()
 {
    let place = Location::new();
    let flags = [
        KUBECONFIG_FLAG,
        CLUSTER_FLAG,
        "--listen-address=127.0.0.1:0",
        "--probe-endpoints=127.0.0.1:1",
        "--detectors=coredns-detector,service-network",
        "--service-network-address=127.0.0.1:1",
    ];
    let mut running = Running::start(place.command(&flags)).await;
    next_line(&mut running.log, "Names do not resolve").await;
    let counted = async {
        for counter in [
            "_api_requests_total{",
            "_probe_direct_answers_total{",
            "_service_network_probe_rounds_total{",
        ] {
            while !running.get("/metrics").await.contains(counter) {
                tokio::task::yield_now().await;
            }
        }
    };
    timeout(AMPLE, counted).await.unwrap();
    let mut documented = documented();
    // Only a leader shows any.
    documented.remove("failing_node");
    documented.remove("service_network_failing_node");
    // Agents of a gateway judge other clusters, and not their own; and no signal is declared.
    documented.retain(|name, _| {
        !["reachability_", "signal_"]
            .iter()
            .any(|prefix| name.starts_with(prefix))
    });
    // The kubeconfig has no credentials, and its server answers nothing.
    documented.remove("credentials_expiry_timestamp_seconds");
    documented.remove("expiring_credentials");
    documented.remove("api_request_duration_seconds");
    documented.remove("api_connections");
    // Without a prefix, as all programs of the world name them.
    documented.retain(|name, _| !name.starts_with("process_"));
    assert_eq!(shown(&running.get("/metrics").await), documented);
    assert_eq!(running.signal(Signal::TERM).await, Some(0));
}

const HEALTHY: &str = "This node votes healthy";

/// Dated to before the stall, the first round after it would turn the vote alone.
#[tokio::test]
async fn a_failure_right_after_a_stall_is_not_as_old_as_the_stall() {
    const STALL: Duration = Duration::from_secs(6);
    let works = Response::Ipv4(KUBERNETES_IP);
    let dns = DnsServer::start(works.clone()).await.unwrap();
    let nameserver = format!("--nameserver={}", dns.address());
    let place = Location::new();
    let mut running = Running::start(place.command(&[
        KUBECONFIG_FLAG,
        CLUSTER_FLAG,
        "--listen-address=127.0.0.1:0",
        "--probe-name=kubernetes.default.svc.cluster.local.",
        "--detect-period=1s",
        "--detect-failure-threshold=4s",
        "--detect-success-threshold=4s",
        &nameserver,
    ]))
    .await;
    next_line(&mut running.log, HEALTHY).await;

    running.send(Signal::STOP);
    dns.set(Response::Code(ResponseCode::Refused));
    let before = dns.received().len();
    // The stall itself, longer than the threshold and a period. Nothing is expected meanwhile.
    tokio::time::sleep(STALL).await;
    running.send(Signal::CONT);
    let queried = async {
        while dns.received().len() == before {
            tokio::task::yield_now().await;
        }
    };
    timeout(AMPLE, queried).await.unwrap();
    // Three more rounds would have to fail for a whole threshold.
    dns.set(works);
    let unhealthy = times(&mut running.log, "This node votes unhealthy", HEALTHY).await;
    assert_eq!(unhealthy, 0);
    assert_eq!(running.signal(Signal::TERM).await, Some(0));
}

#[tokio::test]
async fn the_vote_document_and_the_lease_identify_the_same_process() {
    let karmada = ApiServer::new();
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = karmada.clone();
    tokio::spawn(async move { server.serve(listener, std::future::pending()).await });
    let client = Client::new(karmada.service(), "default");
    let own = karmada_api::execution_namespace("member1");
    let namespace = serde_json::from_value(json!({ "metadata": { "name": own } })).unwrap();
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let parameters = PostParams::default();
    namespaces.create(&parameters, &namespace).await.unwrap();

    let place = Location::new();
    let access = Access::open("karmada", address);
    kubeconfig::write(&place.path("kubeconfig"), &[&access]).unwrap();
    let mut running = Running::start(place.command(&[
        KUBECONFIG_FLAG,
        CLUSTER_FLAG,
        "--host-name=n1",
        "--listen-address=127.0.0.1:0",
    ]))
    .await;
    next_line(&mut running.log, "Leading").await;
    let response = running.get("/v1/observation").await;
    let (_, body) = response.split_once("\r\n\r\n").unwrap();
    let document: Value = serde_json::from_str(body).unwrap();
    let leases: Api<Lease> = Api::namespaced(client, &own);
    let lease = leases.get("cluster-health-agent").await.unwrap();
    let holder = lease.spec.unwrap().holder_identity.unwrap();
    assert_eq!(
        holder,
        format!("n1_{}", document["agent"].as_str().unwrap())
    );
    assert_eq!(running.signal(Signal::TERM).await, Some(0));
}

const WAITING: &str =
    "The object of the cluster does not exist or is being deleted, waiting for it";
const THERE: &str = "The object of the cluster is there now";

/// Returns the number of lines with `message` before the line with `before`.
async fn times(log: &mut Lines<BufReader<ChildStderr>>, message: &str, before: &str) -> usize {
    let mut times = 0;
    loop {
        let line = timeout(AMPLE, log.next_line()).await;
        let line: Value = serde_json::from_str(&line.unwrap().unwrap().unwrap()).unwrap();
        let logged = &line["fields"]["message"];
        times += usize::from(logged == message);
        if logged == before {
            return times;
        }
    }
}

#[tokio::test]
async fn a_missing_or_deleted_cluster_is_logged_once() {
    let karmada = ApiServer::new();
    for definition in karmada_api::crd::stand_ins().unwrap() {
        karmada.install(&definition).unwrap();
    }
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = karmada.clone();
    tokio::spawn(async move { server.serve(listener, std::future::pending()).await });
    let clusters: Api<Cluster> = Api::all(Client::new(karmada.service(), "default"));

    let place = Location::new();
    let access = Access::open("karmada", address);
    kubeconfig::write(&place.path("kubeconfig"), &[&access]).unwrap();
    let flags = [
        KUBECONFIG_FLAG,
        CLUSTER_FLAG,
        "--listen-address=127.0.0.1:0",
        "--leader-elect=false",
    ];
    let mut running = Running::start(place.command(&flags)).await;
    let log = &mut running.log;
    next_line(log, WAITING).await;
    // After the loss of a watch everything is listed again.
    let lost = karmada.faults().inject(Fault::Disconnect);
    assert_eq!(times(log, WAITING, "Watch failed, will retry").await, 0);
    karmada.faults().remove(lost);
    let cluster = json!({ "metadata": { "name": "member1" }, "spec": { "syncMode": "Push" } });
    let mut cluster: Cluster = serde_json::from_value(cluster).unwrap();
    cluster.metadata.finalizers = Some(vec!["karmada.io/cluster-controller".to_owned()]);
    let creation = PostParams::default();
    clusters.create(&creation, &cluster).await.unwrap();
    assert_eq!(times(log, WAITING, THERE).await, 0);

    // Karmada's finalizer holds it while Karmada cleans up.
    let deletion = DeleteParams::default();
    clusters.delete("member1", &deletion).await.unwrap();
    next_line(log, WAITING).await;
    let free = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    let parameters = PatchParams::default();
    clusters.patch("member1", &parameters, &free).await.unwrap();
    clusters.create(&creation, &cluster).await.unwrap();
    assert_eq!(times(log, WAITING, THERE).await, 0);
    assert_eq!(running.signal(Signal::TERM).await, Some(0));
}

const ALONE: &str =
    "Neither --peer nor a member API: this agent's vote alone is the cluster's verdict";

#[tokio::test]
async fn an_agent_without_peers_logs_once_that_it_is_alone() {
    let place = Location::new();
    let alone = [
        KUBECONFIG_FLAG,
        CLUSTER_FLAG,
        "--listen-address=127.0.0.1:0",
        "--log-format=json",
    ];
    let with_peer = [&alone[..], &["--peer=127.0.0.1:1"]].concat();
    for (flags, expected) in [(alone.to_vec(), 1), (with_peer, 0)] {
        let mut child = place.command(&flags).spawn().unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
        assert_eq!(times(&mut log, ALONE, "Started").await, expected);
    }
}

/// Every mistake of a file is a line, and each probe of a good one is tried from here.
#[tokio::test]
async fn check_tries_a_file() {
    let place = Location::new();
    std::fs::write(place.path("wrong"), "signals: [{name: a}, {name: b, x: y}]").unwrap();
    let wrong = place.output(&["check", "{}/wrong"]).await;
    let stderr = String::from_utf8_lossy(&wrong.stderr);
    assert_eq!(wrong.status.code(), Some(2), "{stderr}");
    let lines: Vec<_> = stderr.lines().collect();
    assert_eq!(lines.len(), 2, "{stderr}");
    assert!(lines[0].starts_with("error: signal 1, a: missing field"));
    assert!(lines[1].starts_with("error: signal 2, b: unknown field `x`"));
    assert_refused(&place.output(&["check", "{}/none"]).await, "cannot read");
    assert_refused(&place.output(&["check"]).await, "FILE");

    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let good = listener.local_addr().unwrap();
    for (servers, code) in [(vec![good], 0), (vec![good, CLOSED], 1)] {
        let signals = servers.iter().enumerate().map(|(n, server)| {
            format!("- {{name: s{n}, condition: S{n}, probe: {{tcp: {{address: '{server}'}}}}}}\n")
        });
        let text = format!("signals:\n{}", signals.collect::<String>());
        std::fs::write(place.path("good"), text).unwrap();
        let mut command = place.command(&["check", "{}/good"]);
        command.stdout(Stdio::piped());
        let tried = output(command).await;
        let stdout = String::from_utf8_lossy(&tried.stdout);
        assert_eq!(tried.status.code(), Some(code), "{stdout}");
        assert!(stdout.starts_with("s0 (S0): succeeds\n"), "{stdout}");
        let fails = format!("s1 (S1): fails: refused from {CLOSED}: ");
        assert_eq!(stdout.contains(&fails), code == 1, "{stdout}");
    }
}

/// A gateway's agents have no cluster of their own that signals could be about.
#[tokio::test]
async fn gateway_declares_no_signals() {
    let place = Location::new();
    let flags = [
        KUBECONFIG_FLAG,
        "--detectors=reachability",
        "--signals-file={}/signals.yaml",
    ];
    assert_refused(&place.output(&flags).await, "--signals-file");
}

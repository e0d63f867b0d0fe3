use ::traffic::ingress::Admission;
use ::traffic::ingress::haproxy::Server;
use karmada_runtime::controller::{self, Controller};

use super::visitor::{Member, Visitor};
use super::*;

/// A grace that is over at once.
const NONE: Duration = Duration::ZERO;
const LONG: Duration = Duration::from_mins(10);

fn haproxy() -> Process {
    Process::start(&[BACKEND.to_owned()])
}

async fn visitors(haproxy: &Process, count: usize) -> Vec<Visitor> {
    let mut visitors = Vec::new();
    for _ in 0..count {
        visitors.push(Visitor::connect(&haproxy.path("web.sock")).await.unwrap());
    }
    visitors
}

/// Sends a request over each connection, and returns who answered.
async fn answers(visitors: &mut [Visitor]) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for visitor in visitors {
        let (status, body) = visitor.get("/").await.unwrap();
        assert_eq!(status, 200);
        all.insert(body);
    }
    all
}

fn set(members: &[&Member]) -> BTreeSet<String> {
    members
        .iter()
        .map(|member| member.address.to_string())
        .collect()
}

/// Ensures the desired state until HAProxy has these servers and no other, as the loop does: one that goes is kept for a moment
/// by its idle connections.
async fn settle(haproxy: &Process, provider: &Haproxy, desired: &Desired, members: &[&Member]) {
    loop {
        assert_eq!(provider.ensured(desired).await, [""; 0]);
        let state = haproxy.state().await;
        let servers = state.backends[BACKEND].values();
        let all_serve = servers.clone().all(Server::takes_requests);
        let addresses = servers.map(|server| server.address.unwrap().to_string());
        if all_serve && addresses.collect::<BTreeSet<String>>() == set(members) {
            return;
        }
    }
}

/// The pods of a member get other addresses while a request is in flight and clients keep their connections: the request
/// ends with 200, and none that follows arrives at the old address, also after a third address has taken its place.
#[tokio::test]
async fn old_address_gets_nothing() {
    let haproxy = haproxy();
    let [old, new, third] = [
        Member::start(1).await,
        Member::start(2).await,
        Member::start(3).await,
    ];
    let provider = provider(haproxy.socket(), NONE, false);
    assert_eq!(provider.ensured(&served_at(&[old.address])).await, [""; 0]);
    let mut clients = visitors(&haproxy, 8).await;
    assert_eq!(answers(&mut clients).await, set(&[&old]));
    let mut held = visitors(&haproxy, 1).await.remove(0);
    let held = tokio::spawn(async move { held.get("/held").await });
    let mut arrived = old.arrived.subscribe();
    arrived.wait_for(|arrived| *arrived == 9).await.unwrap();

    for next in [&new, &third] {
        provider.ensured(&served_at(&[next.address])).await;
        for _ in 0..5 {
            assert_eq!(answers(&mut clients).await, set(&[next]));
        }
    }
    old.lets_go.send_replace(true);
    let answer = held.await.unwrap();
    assert_eq!(answer, Some((200, old.address.to_string())));
    haproxy.idle().await;
    settle(&haproxy, &provider, &served_at(&[third.address]), &[&third]).await;
    for _ in 0..5 {
        assert_eq!(answers(&mut clients).await, set(&[&third]));
    }
    assert_eq!(*old.arrived.borrow(), 9, "requests at the old address");
}

/// Somebody gives a server of ours another address while a request is in flight: it gets nothing until that request has
/// ended, and then serves where it should. The connection of the request would else be used again.
#[tokio::test]
async fn stolen_server_comes_back() {
    let haproxy = haproxy();
    let [ours, other, theirs] = [
        Member::start(4).await,
        Member::start(5).await,
        Member::start(6).await,
    ];
    let provider = provider(haproxy.socket(), NONE, false);
    let desired = served_at(&[ours.address, other.address]);
    provider.ensured(&desired).await;
    provider.servers.look().await.unwrap();
    let name = format!(
        "example.com_ours_m1_{}_{}",
        ours.address.ip(),
        ours.address.port()
    );
    let (ip, port) = (theirs.address.ip(), theirs.address.port());
    let steal = format!("set server {BACKEND}/{name} addr {ip} port {port}");
    haproxy.ask(&steal).await;
    let mut waiting = Vec::new();
    for mut visitor in visitors(&haproxy, 2).await {
        waiting.push(tokio::spawn(async move { visitor.get("/held").await }));
    }
    let mut arrived = theirs.arrived.subscribe();
    arrived.wait_for(|arrived| *arrived == 1).await.unwrap();

    assert_eq!(provider.servers.look().await.unwrap(), [key()].into());
    provider.ensured(&desired).await;
    let mut clients = visitors(&haproxy, 4).await;
    assert_eq!(answers(&mut clients).await, set(&[&other]));
    for member in [&theirs, &other] {
        member.lets_go.send_replace(true);
    }
    for answer in waiting {
        assert_eq!(answer.await.unwrap().unwrap().0, 200);
    }
    haproxy.idle().await;
    settle(&haproxy, &provider, &desired, &[&ours, &other]).await;
    let found = answers(&mut clients).await;
    assert!(found.is_subset(&set(&[&ours, &other])), "{found:?}");
    assert!(found.contains(&ours.address.to_string()), "{found:?}");
    assert_eq!(*theirs.arrived.borrow(), 1);
}

/// While a cluster is blocked and released again and again, clients that keep their connections and new ones lose nothing,
/// and once it is blocked it gets nothing.
#[tokio::test]
async fn blocks_lose_no_request() {
    let haproxy = haproxy();
    let [one, other] = [Member::start(7).await, Member::start(8).await];
    for grace in [NONE, LONG] {
        let provider = provider(haproxy.socket(), grace, false);
        let both = served_at(&[one.address, other.address]);
        let mut blocked = both.clone();
        contract::admit(&mut blocked, "m1", Admission::Blocked);
        let mut clients = visitors(&haproxy, 4).await;
        for _ in 0..10 {
            provider.ensured(&both).await;
            // Which of the two, HAProxy says: one that comes back may get all requests for a while.
            let found = answers(&mut clients).await;
            assert!(found.is_subset(&set(&[&one, &other])), "{found:?}");
            provider.ensured(&blocked).await;
            clients.extend(visitors(&haproxy, 1).await);
            assert_eq!(answers(&mut clients).await, set(&[&other]));
        }
    }
    assert!(*one.arrived.borrow() > 0);
}

/// A session over TCP outlasts drain and maintenance, is told as the obstacle to the end, and ends by flag.
#[tokio::test]
async fn tcp_session_ends_by_flag() {
    let haproxy = Process::start(&[BACKEND.to_owned()]);
    let [one, other] = [Member::start(9).await, Member::start(10).await];
    let keeping = provider(haproxy.socket(), NONE, false);
    let ending = provider(haproxy.socket(), NONE, true);
    let desired = |member: &Member| {
        let mut desired = served_at(&[member.address]);
        desired.backends[0].service = "tcp".to_owned();
        let rules = desired.routes.rules.iter_mut().flatten();
        for path in rules
            .filter_map(|rule| rule.http.as_mut())
            .flat_map(|http| &mut http.paths)
        {
            path.backend.service.as_mut().unwrap().name = "tcp".to_owned();
        }
        desired
    };
    keeping.ensured(&desired(&one)).await;
    let mut session = Visitor::connect(&haproxy.path("tcp.sock")).await.unwrap();
    assert_eq!(session.get("/").await.unwrap().1, one.address.to_string());
    let obstacles = keeping.ensured(&desired(&other)).await;
    let told = format!(
        "connections to {} of cluster m1 stay open in backend ns_i_tcp_80 of HAProxy, which sends no new ones there; end them at one end, or set --haproxy-end-connections",
        one.address
    );
    assert_eq!(obstacles, [told]);
    assert_eq!(session.get("/").await.unwrap().1, one.address.to_string());
    let mut ended = Visitor::connect(&haproxy.path("tcp.sock")).await.unwrap();
    assert_eq!(ended.get("/").await.unwrap().1, other.address.to_string());
    ending.ensured(&desired(&one)).await;
    assert_eq!(ended.get("/").await, None);
}

/// Brings one ingress to its desired state, as the loop of the load balancer does.
struct Serving {
    provider: Arc<Haproxy>,
    desired: Desired,
}

impl Controller for Serving {
    type Key = Key;

    fn keys(&self) -> Vec<Key> {
        vec![key()]
    }

    async fn reconcile(&self, _: &Key) -> Result<(), BoxError> {
        self.provider.ensure(&self.desired).await?;
        Ok(())
    }
}

/// Sends requests until one is answered with 200.
async fn served(haproxy: &Process) {
    loop {
        if let Ok(mut visitor) = Visitor::connect(&haproxy.path("web.sock")).await
            && visitor
                .get("/")
                .await
                .is_some_and(|(status, _)| status == 200)
        {
            return;
        }
        tokio::task::yield_now().await;
    }
}

/// Starts the loop of a provider that brings HAProxy to one server at `member`.
fn spawn(haproxy: &Process, member: &Member) -> Program {
    let provider = Arc::new(provider(haproxy.socket(), LONG, false));
    let mut program = Program::new(crate::IDENTITY, ([127, 0, 0, 1], 0).into());
    let queue = Queue::default();
    Arc::clone(&provider).watch(&mut program, &queue);
    let serving = Serving {
        provider,
        desired: served_at(&[member.address]),
    };
    controller::spawn(&mut program, "test", serving, queue, Leadership::always());
    program
}

/// HAProxy dies and is started again, without any server: within a moment it serves as before.
#[tokio::test]
async fn restart_is_repaired() {
    let haproxy = haproxy();
    let member = Member::start(11).await;
    let _program = spawn(&haproxy, &member);
    served(&haproxy).await;
    let mut times = Vec::new();
    for _ in 0..5 {
        let died = Instant::now();
        haproxy.restart();
        served(&haproxy).await;
        times.push(died.elapsed());
    }
    println!("from the death of HAProxy to the first request that is served: {times:?}");
}

/// With a server in the configuration that nobody serves, requests wait for the servers that a reload lost, and none fails.
#[tokio::test]
async fn waiting_server_bridges_reload() {
    let waiting = "option redispatch 1\n  retries 3\n  server waiting 127.0.0.1:1 backup";
    let haproxy = Process::start(&[format!("{BACKEND}\n  {waiting}")]);
    let member = Member::start(12).await;
    let _program = spawn(&haproxy, &member);
    served(&haproxy).await;
    for _ in 0..3 {
        haproxy.reload();
        let mut clients = visitors(&haproxy, 20).await;
        assert_eq!(answers(&mut clients).await, set(&[&member]));
    }
}

use std::sync::{Arc, Mutex};
use std::time::Duration;

use embedded_apiserver::{ApiServer, Fault};
use http::{Method, Request};
use k8s_openapi::api::core::v1::Namespace;
use karmada_runtime::lease::{self, Leadership};
use kube::api::PostParams;
use kube::client::Body;
use kube::{Api, Client};
use serde_json::json;
use tower::ServiceExt;

use super::*;

const SECOND: Duration = Duration::from_secs(1);
const PERIOD: Duration = Duration::from_secs(5);
const ALMOST: Duration = Duration::from_millis(14_999);

/// A running campaign task.
struct Running {
    contacted: watch::Sender<Option<LeaderContact>>,
    known: watch::Sender<Option<usize>>,
    abstentions: watch::Sender<Option<Instant>>,
    seeking: watch::Receiver<CampaignMode>,
}

impl Running {
    fn start(known: Option<usize>) -> Self {
        let (contacted, contacts) = watch::channel(None);
        let (known, count) = watch::channel(known);
        let (abstentions, abstained) = watch::channel(None);
        let (decided, seeking) = watch::channel(CampaignMode::Off);
        let facts = Facts {
            contacts,
            known: count,
            abstentions: abstained,
        };
        tokio::spawn(run(facts, decided, CancellationToken::new()));
        Self {
            contacted,
            known,
            abstentions,
            seeking,
        }
    }

    fn contact(&self, standby: bool) {
        self.contacted.send_replace(Some(contact(standby)));
    }

    async fn after(&self, time: Duration) -> CampaignMode {
        tokio::time::sleep(time).await;
        *self.seeking.borrow()
    }
}

/// A leader's request at this moment.
fn contact(standby: bool) -> LeaderContact {
    let at = Instant::now().into_std();
    LeaderContact { at, standby }
}

#[tokio::test(start_paused = true)]
async fn an_agent_campaigns_once_the_list_is_known_and_its_turn_has_come() {
    let running = Running::start(None);
    let hour = Duration::from_hours(1);
    assert_eq!(running.after(hour).await, CampaignMode::Off);
    running.known.send_replace(Some(30));
    let spread = Duration::from_secs(20);
    assert_eq!(running.after(spread).await, CampaignMode::Spread(spread));
}

#[tokio::test(start_paused = true)]
async fn a_leaders_request_ends_the_campaign_and_its_silence_restarts_it() {
    let running = Running::start(Some(1));
    let turn = Duration::from_secs(1);
    assert!(matches!(running.after(turn).await, CampaignMode::Spread(_)));
    running.contact(false);
    assert_eq!(running.after(ALMOST).await, CampaignMode::Off);
    running.contact(false);
    assert_eq!(running.after(ALMOST).await, CampaignMode::Off);
    assert!(matches!(running.after(turn).await, CampaignMode::Spread(_)));
}

#[tokio::test(start_paused = true)]
async fn a_standby_seeks_the_lease_until_it_is_relieved() {
    let running = Running::start(Some(1_000));
    running.contact(true);
    assert_eq!(running.after(ALMOST).await, CampaignMode::Eager);
    assert_eq!(running.after(ALMOST).await, CampaignMode::Eager);
    running.contact(false);
    assert_eq!(running.after(ALMOST).await, CampaignMode::Off);
}

/// Otherwise a standby that no leader contacts any more would seek the lease as one of few for ever.
#[tokio::test(start_paused = true)]
async fn a_standby_is_one_of_many_again_once_no_leader_contacts_it() {
    let running = Running::start(Some(3));
    running.contact(true);
    assert_eq!(running.after(2 * ALMOST).await, CampaignMode::Eager);
    let one_of_many = CampaignMode::Spread(2 * SECOND);
    assert_eq!(running.after(SECOND).await, one_of_many);
}

#[tokio::test(start_paused = true)]
async fn an_agent_withdraws_while_it_abstains_and_campaigns_again_afterwards() {
    let running = Running::start(Some(2));
    let turn = 2 * SECOND;
    assert!(matches!(running.after(turn).await, CampaignMode::Spread(_)));
    let until = Instant::now() + 2 * DURATION;
    running.abstentions.send_replace(Some(until));
    assert_eq!(running.after(SECOND).await, CampaignMode::Withdrawn);
    running.contact(true);
    assert_eq!(running.after(28 * SECOND).await, CampaignMode::Withdrawn);
    // Of the standby's thirty seconds, half of one is left.
    assert_eq!(running.after(3 * SECOND / 2).await, CampaignMode::Eager);
    assert!(matches!(running.after(turn).await, CampaignMode::Spread(_)));
}

/// The agents of one cluster, started at the same moment, and the times of their requests to Karmada
/// other than renewals. The leader polls the others at once and then once a period.
struct Crowd {
    karmada: ApiServer,
    agents: Vec<Agent>,
    requests: Arc<Mutex<Vec<Instant>>>,
}

struct Agent {
    contacted: watch::Sender<Option<LeaderContact>>,
    _known: watch::Sender<Option<usize>>,
    leadership: Leadership,
    _program: Program,
}

impl Crowd {
    async fn of(agents: usize) -> Self {
        fastrand::seed(7);
        let karmada = ApiServer::new();
        let own = karmada_api::execution_namespace("member1");
        let namespaces = Api::all(Client::new(karmada.service(), "default"));
        let namespace: Namespace =
            serde_json::from_value(json!({ "metadata": { "name": own } })).unwrap();
        let parameters = PostParams::default();
        namespaces.create(&parameters, &namespace).await.unwrap();

        let requests = Arc::<Mutex<Vec<Instant>>>::default();
        let log = Arc::clone(&requests);
        let counting = karmada
            .service()
            .map_request(move |request: Request<Body>| {
                if request.method() != Method::PATCH {
                    log.lock().unwrap().push(Instant::now());
                }
                request
            });
        let client = Client::new(counting, "default");
        let agent = |number| {
            let mut program = Program::new(crate::identity::IDENTITY, ([127, 0, 0, 1], 0).into());
            let (contacted, contacts) = watch::channel(None);
            let (known, count) = watch::channel(Some(agents));
            let (seeking, mode) = watch::channel(CampaignMode::Off);
            let facts = Facts {
                contacts,
                known: count,
                abstentions: watch::channel(None).1,
            };
            start(&mut program, facts, seeking);
            let own = lease::LeaseConfig {
                mode,
                ..lease::LeaseConfig::eager(
                    own.clone(),
                    crate::identity::NAME,
                    format!("n{number}"),
                )
            };
            Agent {
                contacted,
                _known: known,
                leadership: lease::campaign(&mut program, client.clone(), own),
                _program: program,
            }
        };
        Self {
            karmada,
            agents: (0..agents).map(agent).collect(),
            requests,
        }
    }

    /// Lets `time` pass, and returns the number of requests in it and in its busiest second.
    async fn live(&self, time: Duration) -> (usize, usize) {
        let ends = Instant::now() + time;
        let (mut before, mut poll_at) = (None, Instant::now());
        while Instant::now() < ends {
            let leader = self.leader();
            if leader != before || poll_at <= Instant::now() {
                self.poll(leader);
                (before, poll_at) = (leader, Instant::now() + PERIOD);
            }
            tokio::time::sleep(SECOND / 10).await;
        }
        let requests = std::mem::take(&mut *self.requests.lock().unwrap());
        let seconds = requests.iter().map(|first| {
            let second = *first..*first + SECOND;
            requests.iter().filter(|at| second.contains(at)).count()
        });
        (requests.len(), seconds.max().unwrap_or(0))
    }

    /// Polls all others for the leader, and has two of them stand by.
    fn poll(&self, leader: Option<usize>) {
        let all = self.agents.len();
        for (number, agent) in (0..).zip(&self.agents) {
            let Some(distance) = leader.map(|leader| (number + all - leader) % all) else {
                return;
            };
            if distance > 0 {
                agent.contacted.send_replace(Some(contact(distance <= 2)));
            }
        }
    }

    fn leader(&self) -> Option<usize> {
        let mut agents = self.agents.iter();
        agents.position(|agent| agent.leadership.held_until().is_some())
    }
}

#[tokio::test(start_paused = true)]
async fn a_thousand_agents_that_start_at_once_send_few_requests_to_karmada() {
    let crowd = Crowd::of(1_000).await;
    let (requests, busiest) = crowd.live(Duration::from_mins(10)).await;
    assert!(crowd.leader().is_some());
    // The leader and its two standbys read the lease and watch it, and a watch lasts five minutes.
    assert!(requests <= 30, "{requests}");
    assert!(busiest <= 15, "{busiest}");
}

#[tokio::test(start_paused = true)]
async fn a_thousand_agents_that_wait_for_karmada_storm_it_neither_before_nor_after_its_return() {
    let crowd = Crowd::of(1_000).await;
    let away = crowd.karmada.faults().inject(Fault::Unavailable);
    let outage = Duration::from_mins(20);
    let (requests, busiest) = crowd.live(outage).await;

    assert!(requests <= 4 * 20 * 60, "{requests}");
    assert!(busiest <= 15, "{busiest}");
    crowd.karmada.faults().remove(away);
    let (requests, busiest) = crowd.live(Duration::from_mins(1)).await;
    assert!(crowd.leader().is_some());

    assert!(requests <= 50, "{requests}");
    assert!(busiest <= 15, "{busiest}");
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_dies_is_followed_within_its_lease_and_with_both_standbys_soon_after() {
    let known = 30;
    // One that did not watch the lease gives its holder the whole time, from when it first looks.
    let bounds = [(1, DURATION), (3, 2 * DURATION + spread(known))];
    for (dead, bound) in bounds {
        let mut crowd = Crowd::of(known).await;
        crowd.live(Duration::from_mins(2)).await;
        let leader = crowd.leader().unwrap();
        crowd.agents.rotate_left(leader);
        crowd.agents.drain(..dead);
        let killed = Instant::now();
        while crowd.leader().is_none() {
            crowd.live(SECOND).await;
        }
        let led = killed.elapsed();
        assert!(led <= bound, "{dead} dead: {led:?}");
    }
}

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;

use super::outage::{LASTING, MAX_PAUSE};
use super::*;
use crate::program::Identity;

/// A key for which no member is asked for anything.
const NOT_NEEDED: u8 = 100;
/// One that fails for itself.
const FAILS: u8 = 101;

/// The time after which a silent member is given up.
const SILENCE: Duration = Duration::from_secs(25);

/// Fails or hangs as the member's name tells, and records the keys.
struct Recorder {
    seen: Mutex<Vec<(String, u8)>>,
    /// The keys that show an outage.
    shown: Mutex<Vec<u8>>,
    calls: watch::Sender<usize>,
    down: watch::Sender<bool>,
}

impl MemberController for Arc<Recorder> {
    type Key = u8;

    fn keys(&self) -> Vec<(String, u8)> {
        let keys = ["dead", "slow", "well"].map(|member| {
            let member = member.to_owned();
            (0..10).map(move |key| (member.clone(), key))
        });
        keys.into_iter().flatten().collect()
    }

    async fn show_outage(&self, _: &str, key: &u8, reason: &(dyn Error + Send + Sync + 'static)) {
        assert_eq!(reason.to_string(), "no route");
        self.shown.lock().push(*key);
    }

    async fn reconcile(&self, member: &str, key: &u8) -> Result<Contact, ReconcileError> {
        self.seen.lock().push((member.to_owned(), *key));
        self.calls.send_modify(|calls| *calls += 1);
        match member {
            "slow" => std::future::pending().await,
            "silent" => {
                sleep(SILENCE).await;
                Err(ReconcileError::Unreachable("no route".into()))
            }
            _ if *key == NOT_NEEDED => Ok(Contact::None),
            _ if *key == FAILS => Err(ReconcileError::OfKey("not allowed".into())),
            "dead" if *self.down.borrow() => Err(ReconcileError::Unreachable("no route".into())),
            _ => Ok(Contact::Made),
        }
    }
}

impl Recorder {
    fn count(&self, member: &str) -> usize {
        let seen = self.seen.lock();
        seen.iter().filter(|(seen, _)| seen == member).count()
    }
}

fn start() -> (Program, Arc<Recorder>, MemberQueues<u8>) {
    let mut program = Program::new(
        Identity::for_tests(),
        SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
    );
    let recorder = Arc::new(Recorder {
        seen: Mutex::default(),
        shown: Mutex::default(),
        calls: watch::Sender::new(0),
        down: watch::Sender::new(true),
    });
    let queues = MemberQueues::default();
    let (controller, leadership) = (Arc::clone(&recorder), Leadership::always());
    spawn(&mut program, "work", controller, queues.clone(), leadership);
    (program, recorder, queues)
}

/// A slow or dead member delays no other.
#[tokio::test(start_paused = true)]
async fn slow_member_delays_nobody() {
    let (_program, recorder, _) = start();
    // Virtual time advances only once every task is idle.
    sleep(Duration::from_millis(1)).await;
    assert_eq!(recorder.count("well"), 10);
    assert_eq!(recorder.count("slow"), IN_FLIGHT);
    assert!(recorder.count("dead") <= IN_FLIGHT);
}

/// A dead member is tried with pauses and gets everything once it is back.
#[tokio::test(start_paused = true)]
async fn returning_member_gets_everything() {
    let (_program, recorder, queues) = start();
    sleep(Duration::from_mins(10)).await;
    let tried = recorder.count("dead");
    assert!((10..100).contains(&tried), "{tried}");
    recorder.down.send_replace(false);
    sleep(MAX_PAUSE).await;
    let mut keys: Vec<_> = recorder.seen.lock()[..].to_vec();
    keys.retain(|(member, _)| member == "dead");
    assert_eq!(keys.len(), tried + 10);
    assert_eq!(queues.of("dead").len(), 0);
}

/// A member that is added has a loop and one that is removed has none.
#[tokio::test(start_paused = true)]
async fn loops_follow_members() {
    let (_program, recorder, queues) = start();
    sleep(Duration::from_millis(1)).await;
    queues.of("new").add(7);
    sleep(Duration::from_millis(1)).await;
    assert_eq!(recorder.count("new"), 1);
    let removed = queues.of("new");
    queues.remove("new");
    sleep(Duration::from_millis(1)).await;
    removed.add(8);
    sleep(Duration::from_mins(1)).await;
    assert_eq!(recorder.count("new"), 1);
    queues.of("new").add(9);
    sleep(Duration::from_millis(1)).await;
    assert_eq!(recorder.count("new"), 2);
}

/// A change of a member ends its pause.
#[tokio::test(start_paused = true)]
async fn changed_member_is_retried() {
    let (_program, recorder, queues) = start();
    sleep(Duration::from_mins(10)).await;
    // Just after an attempt, with the longest pause ahead.
    let mut calls = recorder.calls.subscribe();
    calls.borrow_and_update();
    calls.changed().await.unwrap();
    sleep(Duration::from_millis(1)).await;
    let tried = recorder.count("dead");
    recorder.down.send_replace(false);
    queues.hurry("dead");
    sleep(Duration::from_millis(1)).await;
    assert_eq!(recorder.count("dead"), tried + 10);
}

/// Case P86: every key shows an outage that lasts, long before its own turn: once, and again if it changes. One that begins
/// later does, too.
#[tokio::test(start_paused = true)]
async fn each_shows_the_outage() {
    let (_program, recorder, queues) = start();
    sleep(LASTING / 2).await;
    assert_eq!(recorder.shown.lock()[..], [0; 0]);
    sleep(LASTING / 2).await;
    assert!(recorder.count("dead") < 10);
    recorder.shown.lock().sort_unstable();
    assert!(recorder.shown.lock().iter().copied().eq(0..10));
    queues.of("dead").add(10);
    sleep(MAX_PAUSE).await;
    queues.of("dead").add(3);
    sleep(MAX_PAUSE * 2).await;
    assert_eq!(recorder.shown.lock()[10..], [10, 3]);
    sleep(Duration::from_mins(10)).await;
    assert_eq!(recorder.shown.lock()[10..], [10, 3]);
    assert!(recorder.count("dead") < 100);
}

/// Case P86: a member that does not even refuse takes a while for each attempt. Its hundredth key shows that within a minute.
#[tokio::test(start_paused = true)]
async fn silence_is_an_outage() {
    let (_program, recorder, queues) = start();
    sleep(Duration::from_millis(1)).await;
    queues.of("silent").add_all(110..210);
    sleep(Duration::from_mins(1)).await;
    let mut shown = recorder.shown.lock().clone();
    shown.retain(|key| *key >= 110);
    shown.sort_unstable();
    assert!(shown.into_iter().eq(110..210));
    let tried = recorder.count("silent");
    sleep(Duration::from_mins(10)).await;
    assert!(recorder.count("silent") - tried < 40);
}

/// Keys that wait, one of them changed again meanwhile, are reconciled once when the member is back.
#[tokio::test(start_paused = true)]
async fn held_keys_are_released() {
    let (_program, recorder, queues) = start();
    sleep(LASTING).await;
    let (tried, queue) = (recorder.count("dead"), queues.of("dead"));
    queue.add(3);
    assert_eq!(queue.len(), 10);
    recorder.down.send_replace(false);
    queues.hurry("dead");
    sleep(Duration::from_millis(1)).await;
    assert_eq!(recorder.count("dead"), tried + 10);
    assert!(queue.is_empty());
}

/// A key that fails for a reason of its own tells nothing of a member either, and waits for its own time.
#[tokio::test(start_paused = true)]
async fn own_failure_ends_no_outage() {
    let (_program, recorder, queues) = start();
    sleep(LASTING).await;
    let shown = recorder.shown.lock().len();
    queues.of("dead").add(FAILS);
    sleep(Duration::from_mins(10)).await;
    assert_eq!(recorder.shown.lock()[shown..], [FAILS]);
}

/// A reconcile that asks nothing of a member tells nothing of it: the pauses stay long.
#[tokio::test(start_paused = true)]
async fn untried_member_stays_out() {
    let (_program, recorder, queues) = start();
    sleep(Duration::from_mins(10)).await;
    let tried = recorder.count("dead");
    queues.of("dead").add(NOT_NEEDED);
    sleep(Duration::from_mins(10)).await;
    assert!(recorder.count("dead") - tried <= 10 * 6 + 1);
}

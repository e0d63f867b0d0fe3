//! Restarts and hand-overs, each of which moves workloads in Karmada although their Lazy policies wait.

use super::*;

/// An event after which the controller of Karmada looks at a template anew.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// The first list after a start.
    Restart,
    /// The lists of a replica that becomes the leader.
    ChangeOfLeader,
    /// The lists after every watch has expired.
    Relist,
    /// The claim goes with its policy, and the next one makes another.
    Deletion,
    /// The same with a policy that selects the template no longer.
    Unmatch,
    /// An edit of the policy to which the binding belonged before.
    EditOfPredecessor,
}

/// A template that runs in m1 while its Lazy policy says m2.
struct Waiting {
    stage: Stage,
    standby: JoinHandle<bool>,
}

impl Waiting {
    /// Starts two replicas, and lets the template wait: for a change of `pp`, or for `zz`, which is there to take over.
    async fn start(event: Event) -> Self {
        let mut stage = Stage::new().await;
        let system = json!({ "metadata": { "name": "karmada-system" } });
        stage.send("POST", "/api/v1/namespaces", &system).await;
        stage.running = Some(stage.spawn(&["--leader-elect"]));
        stage.settle().await;
        let standby = stage.spawn(&["--leader-elect"]);
        stage.apply(&lazily("pp", "m1")).await;
        stage.deploy().await;
        match event {
            Event::Restart | Event::ChangeOfLeader | Event::Relist => {
                stage.apply(&lazily("pp", "m2")).await;
            }
            Event::Deletion | Event::Unmatch => stage.apply(&lazily("zz", "m2")).await,
            Event::EditOfPredecessor => {
                let mut preempting = lazily("zz", "m2");
                preempting["spec"]["priority"] = json!(2);
                preempting["spec"]["preemption"] = json!("Always");
                stage.apply(&preempting).await;
            }
        }
        assert_eq!(stage.placed().await.as_deref(), Some("m1"));
        Self { stage, standby }
    }

    async fn happens(&mut self, event: Event) {
        let stage = &mut self.stage;
        match event {
            Event::Restart => {
                self.standby.abort();
                stage.kill().await;
                stage.running = Some(stage.spawn(&["--leader-elect"]));
            }
            Event::ChangeOfLeader => stage.kill().await,
            Event::Relist => {
                let faults = stage.server.faults();
                faults.inject(Fault::ExpireWatch);
                let status = json!({ "status": { "replicas": 1 } });
                let path = format!("{}/status", web(DEPLOYMENT));
                stage.send("PATCH", &path, &status).await;
                stage.settle().await;
                assert!(faults.hits()["ExpireWatch"] > 0);
                faults.clear();
            }
            Event::Deletion => stage.remove("pp").await,
            Event::Unmatch => {
                let mut unmatched = lazily("pp", "m1");
                unmatched["spec"]["resourceSelectors"][0]["name"] = json!("other");
                stage.apply(&unmatched).await;
            }
            Event::EditOfPredecessor => {
                stage.apply(&placing("pp", "m3", &json!({}))).await;
            }
        }
        // Longer than a lease lasts.
        tokio::time::sleep(Duration::from_mins(2)).await;
    }
}

/// Lets a template wait until the event is over, and edits it; fails unless only the edit moves it.
async fn only_an_edit_moves(event: Event) {
    let mut waiting = Waiting::start(event).await;
    waiting.happens(event).await;
    assert_eq!(waiting.stage.placed().await.as_deref(), Some("m1"));
    waiting.stage.edit().await;
    assert_eq!(waiting.stage.placed().await.as_deref(), Some("m2"));
}

/// W2: to the controller of Karmada, each template of its first list is edited.
#[tokio::test(start_paused = true)]
async fn restart_moves_nothing() {
    only_an_edit_moves(Event::Restart).await;
}

/// W2: a new leader has reconciled nothing yet.
#[tokio::test(start_paused = true)]
async fn new_leader_moves_nothing() {
    only_an_edit_moves(Event::ChangeOfLeader).await;
}

/// W2: a list after the first one shows no edits either.
#[tokio::test(start_paused = true)]
async fn relist_moves_nothing() {
    only_an_edit_moves(Event::Relist).await;
}

/// W2: in Karmada the next policy takes a template without a claim like one that was edited.
#[tokio::test(start_paused = true)]
async fn deleted_policys_template_waits() {
    only_an_edit_moves(Event::Deletion).await;
}

/// W2: a selector takes the claim away, too.
#[tokio::test(start_paused = true)]
async fn deselected_template_waits() {
    only_an_edit_moves(Event::Unmatch).await;
}

/// Case P44, W3: in Karmada the predecessor still owns the binding, and its edit brings the successor's clusters.
#[tokio::test(start_paused = true)]
async fn former_policys_edit_moves_nothing() {
    only_an_edit_moves(Event::EditOfPredecessor).await;
}

/// W8: Karmada looks for a policy of a new template once more after a moment, as if somebody had edited it.
#[tokio::test(start_paused = true)]
async fn later_policy_awaits_edit() {
    let stage = Stage::running().await;
    let mut other = lazily("other", "m3");
    other["spec"]["resourceSelectors"][0]["name"] = json!("other");
    stage.apply(&other).await;
    stage.send("POST", DEPLOYMENT, &deployment()).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    stage.apply(&lazily("pp", "m1")).await;
    stage.expect(None, Some("pp")).await;
    stage.edit().await;
    stage.expect(Some("m1"), Some("pp")).await;
}

/// A controller may die when it has handed the binding over, and not the template.
#[tokio::test(start_paused = true)]
async fn edit_during_hand_over_counts() {
    let mut stage = Stage::running().await;
    stage.apply(&lazily("pp1", "m1")).await;
    stage.deploy().await;
    stage.apply(&lazily("pp2", "m2")).await;
    let before = stage.get(&web(DEPLOYMENT)).await["metadata"].clone();
    stage.remove("pp1").await;
    stage.expect(Some("m1"), Some("pp2")).await;
    stage.kill().await;
    let claim = json!({ "labels": before["labels"], "annotations": before["annotations"] });
    let edit = json!({ "metadata": claim, "spec": { "replicas": 5 } });
    stage.send("PATCH", &web(DEPLOYMENT), &edit).await;
    stage.start(&[]).await;
    stage.expect(Some("m2"), Some("pp2")).await;
}

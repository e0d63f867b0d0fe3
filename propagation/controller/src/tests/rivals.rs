//! Another client takes back the program's writes, as a Karmada does after an upgrade has started its controllers again.

use tokio::time::Instant;

use super::works::{dispatched, work, works};
use super::*;

const RIVAL: &str = "karmada-controller-manager";

/// Has the rival set the value at `pointer` to `theirs` whenever it is not so.
fn rival(api: TestApi, path: String, pointer: &'static str, theirs: Value) -> JoinHandle<()> {
    tokio::spawn(async move {
        loop {
            let object = api.find(&path).await.unwrap_or_default();
            if !object.is_null() && object.pointer(pointer) != theirs.pointer(pointer) {
                let path = format!("{path}?fieldManager={RIVAL}");
                api.send("PATCH", &path, &theirs).await;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
}

impl Stage {
    /// Lets a minute pass and returns how often the program has written this meanwhile.
    async fn written_in_a_minute(&self, call: &str) -> usize {
        self.writes();
        tokio::time::sleep(Duration::from_mins(1)).await;
        let writes = self.writes().into_iter();
        writes.filter(|write| write == call).count()
    }

    /// Returns the notes of the Events of this reason, by the kind that they are about, sorted.
    async fn contested(&self, reason: &str) -> Vec<(String, String)> {
        let events = self.api.events().await.into_iter();
        let of_reason = events.filter(|event| event.reason.as_deref() == Some(reason));
        let mut notes: Vec<_> = of_reason
            .map(|event| {
                let kind = event.regarding.unwrap().kind.unwrap();
                (kind, event.note.unwrap())
            })
            .collect();
        notes.sort();
        notes
    }

    /// Waits until the value at `pointer` is this.
    async fn until_is(&self, path: &str, pointer: &str, wanted: &Value) {
        while self.get(path).await.pointer(pointer) != Some(wanted) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// A template with the same but for its name.
fn named(name: &str) -> Value {
    let mut template = deployment();
    template["metadata"]["name"] = json!(name);
    template
}

/// The spec of a binding is undone each time: the program writes ever less often and names the rival once on binding and
/// template. Another template is bound at once, an edit is followed at once, and in the end ours has the last word.
#[tokio::test(start_paused = true)]
async fn contested_binding_backs_off() {
    let stage = settled().await;
    let theirs = json!({ "spec": { "replicas": 9 } });
    let fight = rival(stage.api.clone(), bound(), "/spec/replicas", theirs);
    let writes = stage
        .written_in_a_minute(&format!("PATCH {}", bound()))
        .await;
    // Three at once, and then after 1, 2, 4, 8, 16 and 32 seconds.
    assert!((7..=9).contains(&writes), "{writes}");
    let contested = stage.contested("BindingContested").await;
    let kinds: Vec<_> = contested.iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(kinds, ["Deployment", "ResourceBinding"]);
    for (_, note) in &contested {
        let expected = format!("{RIVAL} undoes every write to spec.replicas");
        assert!(note.starts_with(&expected), "{note}");
    }

    let selectors = json!([{ "apiVersion": "apps/v1", "kind": "Deployment", "name": "api" }]);
    let other = policy("api", &json!({ "resourceSelectors": selectors }));
    stage.send("POST", POLICY, &other).await;
    stage.send("POST", DEPLOYMENT, &named("api")).await;
    stage.settle().await;
    assert!(
        stage
            .find(&format!("{BINDING}/api-deployment"))
            .await
            .is_some()
    );
    let scaled = json!({ "spec": { "replicas": 4 } });
    let wrote = stage.change("PATCH", &web(DEPLOYMENT), &scaled).await;
    assert!(wrote.contains(&format!("PATCH {}", bound())), "{wrote:?}");

    fight.abort();
    let stopped = Instant::now();
    stage.until_is(&bound(), "/spec/replicas", &json!(4)).await;
    assert!(stopped.elapsed() <= Duration::from_mins(1));
}

/// A binding that somebody deletes each time is made less and less often.
#[tokio::test(start_paused = true)]
async fn deleted_binding_backs_off() {
    let stage = settled().await;
    let api = stage.api.clone();
    let fight = tokio::spawn(async move {
        loop {
            if api.find(&bound()).await.is_some() {
                // It may be gone by now.
                drop(api.try_send("DELETE", &bound(), &Value::Null).await);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    let writes = stage.written_in_a_minute(&format!("POST {BINDING}")).await;
    assert!((7..=9).contains(&writes), "{writes}");
    let contested = stage.contested("BindingContested").await;
    assert!(
        contested[0].1.starts_with("another client undoes"),
        "{contested:?}"
    );
    fight.abort();
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert!(stage.find(&bound()).await.is_some());
}

/// The manifest in a Work is undone each time, or the Work is deleted: the program pauses for that one, names the rival
/// once on binding and Work, and the Work of another member is not delayed.
#[tokio::test(start_paused = true)]
async fn contested_work_backs_off() {
    let stage = dispatched().await;
    let manifest = "/spec/workload/manifests/0/spec/replicas";
    let mut theirs = stage.get(&work("m1")).await;
    theirs["spec"]["workload"]["manifests"][0]["spec"]["replicas"] = json!(9);
    let theirs = json!({ "spec": { "workload": theirs["spec"]["workload"] } });
    let fight = rival(stage.api.clone(), work("m1"), manifest, theirs);
    let writes = stage
        .written_in_a_minute(&format!("PATCH {}", work("m1")))
        .await;
    assert!((7..=9).contains(&writes), "{writes}");
    let contested = stage.contested("WorkContested").await;
    let kinds: Vec<_> = contested.iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(kinds, ["ResourceBinding", "Work"]);
    for (_, note) in &contested {
        let expected =
            format!("{RIVAL} undoes every write to spec.workload of work(karmada-es-m1/");
        assert!(note.starts_with(&expected), "{note}");
    }

    stage.writes();
    let drift = json!({ "spec": { "suspendDispatching": true } });
    let wrote = stage.change("PATCH", &work("m2"), &drift).await;
    assert!(
        wrote.contains(&format!("PATCH {}", work("m2"))),
        "{wrote:?}"
    );

    fight.abort();
    let stopped = Instant::now();
    stage.until_is(&work("m1"), manifest, &json!(1)).await;
    assert!(stopped.elapsed() <= Duration::from_mins(1));
    assert_eq!(stage.contested("WorkContested").await, contested);
}

/// A user's single edit of a binding or a Work is undone at once, and so is the third.
#[tokio::test(start_paused = true)]
async fn few_edits_are_undone_at_once() {
    let stage = dispatched().await;
    let suspended = json!({ "spec": { "suspendDispatching": true } });
    for _ in 0..3 {
        let wrote = stage.change("PATCH", &work("m1"), &suspended).await;
        assert!(
            wrote.contains(&format!("PATCH {}", work("m1"))),
            "{wrote:?}"
        );
    }
    let scaled = json!({ "spec": { "replicas": 9 } });
    for _ in 0..3 {
        let wrote = stage.change("PATCH", &bound(), &scaled).await;
        assert!(wrote.contains(&format!("PATCH {}", bound())), "{wrote:?}");
    }
    assert_eq!(stage.contested("WorkContested").await, []);
    assert_eq!(stage.contested("BindingContested").await, []);
}

/// A workload that leaves a cluster and returns, over and over, has its Work made at once each time.
#[tokio::test(start_paused = true)]
async fn return_knows_no_pause() {
    let stage = dispatched().await;
    for _ in 0..8 {
        stage.schedule(&["m2"]).await;
        stage.let_go("m1").await;
        let wrote = stage.schedule(&["m1", "m2"]).await;
        assert!(
            wrote.contains(&format!("POST {}", works("m1"))),
            "{wrote:?}"
        );
    }
    assert_eq!(stage.contested("WorkContested").await, []);
}

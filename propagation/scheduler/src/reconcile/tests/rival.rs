//! Another scheduler takes the clusters of a binding back after each of our writes.

use std::time::Duration;

use karmada_runtime::events::{EventBudget, EventRecorder};
use kube::Api;
use kube::api::{Patch, PatchParams};
use tokio::time::advance;

use super::*;

/// Lets the rival take the clusters of the binding away, and shows that.
async fn undo(stage: &Stage, name: &str) {
    let api: Api<ResourceBinding> = Api::namespaced(stage.api.user(), "shop");
    let rival = PatchParams {
        field_manager: Some("karmada-scheduler".to_owned()),
        ..PatchParams::default()
    };
    let undone = json!({ "spec": { "clusters": [{ "name": "m1", "replicas": 9 }] } });
    let undone = Patch::Merge(&undone);
    api.patch(name, &rival, &undone).await.unwrap();
    show(stage, name).await;
}

async fn show(stage: &Stage, name: &str) {
    stage.show(&stage.api.get(&format!("{BINDINGS}/{name}")).await);
}

/// Returns the number of our writes to the binding's spec since the last call.
fn written(stage: &Stage, name: &str) -> usize {
    let path = format!("PATCH {BINDINGS}/{name}");
    let writes = stage.api.writes().into_iter();
    writes.filter(|call| *call == path).count()
}

/// Creates a stage whose Events are written as those of the program are, and two bindings.
async fn stage() -> (Stage, Program) {
    let mut stage = Stage::new().await;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let mut program = Program::new(crate::identity::IDENTITY, address);
    let budget = EventBudget {
        burst: 10,
        per_second: 1,
    };
    let events = EventRecorder::spawn(&mut program, stage.api.client(), budget);
    let index = Arc::clone(&stage.reconciler.index);
    let expectations = stage.expectations.clone();
    let notices = events::notices(events.clone(), index);
    let (client, writes) = (stage.api.client(), stage.writes.clone());
    stage.reconciler.committer = Committer::new(
        client,
        crate::identity::NAME,
        writes,
        expectations,
        Some(notices),
    );
    stage.reconciler.events = Some(events);
    for name in ["web", "api"] {
        let binding = binding(name, "ResourceBinding", &divided());
        stage.show(&stage.api.create(&binding).await);
    }
    (stage, program)
}

/// A Karmada upgrade restarts its scheduler beside ours. Ours pauses and names it once, on binding and template; other
/// bindings are decided at once, and once the other is gone ours has the last word.
#[tokio::test(start_paused = true)]
async fn rival_is_named_and_outlasted() {
    let (stage, _program) = stage().await;
    let (web, api) = (Key::new("shop", "web"), Key::new("shop", "api"));
    for _ in 0..20 {
        stage.reconcile(&web).await.unwrap();
        undo(&stage, "web").await;
    }
    assert_eq!(
        written(&stage, "web"),
        3 + 1,
        "the first also notes the placement"
    );
    stage.reconcile(&api).await.unwrap();
    assert_eq!(written(&stage, "api"), 1);

    assert_eq!(
        stage.queue.len(),
        2,
        "what was written, and the end of the pause"
    );
    advance(Duration::from_secs(1)).await;
    stage.reconcile(&web).await.unwrap();
    assert_eq!(written(&stage, "web"), 1);
    stage.assert_settled(&format!("{BINDINGS}/web"), &web).await;

    tokio::time::sleep(Duration::from_mins(1)).await;
    let events = stage.api.events().await;
    let contested = events
        .iter()
        .filter(|event| event.reason.as_deref() == Some("BindingContested"));
    let contested: Vec<_> = contested
        .map(|event| {
            (
                event.regarding.clone().unwrap().kind.unwrap(),
                event.note.clone().unwrap(),
            )
        })
        .collect();
    assert_eq!(contested.len(), 2, "{contested:?}");
    for kind in ["ResourceBinding", "Deployment"] {
        let of_kind = contested.iter().find(|(of, _)| of == kind);
        let note = "karmada-scheduler undoes every write to spec.clusters";
        assert!(of_kind.unwrap().1.starts_with(note), "{contested:?}");
    }
}

/// A user who scales up and down again undoes nothing, and neither does who makes a workload of the name anew.
#[tokio::test(start_paused = true)]
async fn other_decisions_know_no_pause() {
    let (stage, _program) = stage().await;
    let key = Key::new("shop", "web");
    for replicas in [2, 4, 2, 4, 2, 4, 2, 4] {
        let scaled = json!({ "spec": { "replicas": replicas } });
        stage
            .api
            .send("PATCH", &format!("{BINDINGS}/web"), &scaled)
            .await;
        show(&stage, "web").await;
        stage.reconcile(&key).await.unwrap();
        assert_eq!(written(&stage, "web"), 1);
        show(&stage, "web").await;
    }
    for _ in 0..8 {
        let path = format!("{BINDINGS}/web");
        stage.api.send("DELETE", &path, &Value::Null).await;
        let binding = binding("web", "ResourceBinding", &divided());
        stage.show(&stage.api.create(&binding).await);
        stage.reconcile(&key).await.unwrap();
        assert_eq!(written(&stage, "web"), 1);
    }
}

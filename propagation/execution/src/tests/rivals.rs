//! Another client in a member, as an operator or a second Karmada, changes an object back after each of our writes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::task::JoinHandle;

use super::*;

/// A client that has its own greeting in a `ConfigMap`.
struct Rival {
    /// The number of times that it has undone ours.
    undone: Arc<AtomicUsize>,
    running: JoinHandle<()>,
}

impl Rival {
    fn start(member: &ServedApi, name: &'static str) -> Self {
        let (undone, maps) = (Arc::new(AtomicUsize::new(0)), maps(member));
        let counted = Arc::clone(&undone);
        let parameters = PatchParams {
            field_manager: Some("operator".to_owned()),
            ..PatchParams::default()
        };
        let theirs = Patch::Merge(json!({ "data": { "greeting": "theirs" } }));
        let running = tokio::spawn(async move {
            loop {
                until(maps.clone(), name, has("hello")).await;
                maps.patch(name, &parameters, &theirs).await.unwrap();
                counted.fetch_add(1, Ordering::SeqCst);
            }
        });
        Self { undone, running }
    }
}

fn has(greeting: &'static str) -> impl Fn(Option<&ConfigMap>) -> bool {
    move |map| {
        let data = map.and_then(|map| map.data.as_ref());
        data.is_some_and(|data| data["greeting"] == greeting)
    }
}

async fn edit(member: &ServedApi, name: &str) {
    let edit = Patch::Merge(json!({ "data": { "greeting": "edited" } }));
    let parameters = PatchParams::default();
    maps(member).patch(name, &parameters, &edit).await.unwrap();
}

/// Returns the Events of our program about a rival, with the name of the Work of each.
async fn contested(stage: &Stage) -> Vec<(String, String)> {
    let events = stage.api.events().await.into_iter();
    let contested = events.filter(|event| event.reason.as_deref() == Some("MemberObjectContested"));
    contested
        .map(|event| (event.regarding.unwrap().name.unwrap(), event.note.unwrap()))
        .collect()
}

/// The Event names the operator and the member, once; the operator's object is written ever less often, others at once,
/// and when it stops all is as wanted.
#[tokio::test]
async fn rival_is_named_and_outlasted() {
    let member = member(|_| true).await;
    let stage = Stage::new().await;
    stage.join("m1", member.address()).await;
    for name in ["a", "b"] {
        stage.dispatch("m1", name, json!({})).await;
    }
    let _program = stage.start(&[]);
    for name in ["a", "b"] {
        stage.condition("m1", name, APPLIED, TRUE).await;
    }
    let rival = Rival::start(&member, "a");
    let told = async {
        while contested(&stage).await.is_empty() {
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(30), told).await.unwrap();
    let undone = rival.undone.load(Ordering::SeqCst);
    assert!((3..=5).contains(&undone), "{undone}");

    edit(&member, "b").await;
    until(maps(&member), "b", has("hello")).await;
    rival.running.abort();
    until(maps(&member), "a", has("hello")).await;
    let contested = contested(&stage).await;
    let note = "operator undoes every write to object(ConfigMap/shop/a) in member(m1)";
    assert_eq!(contested.len(), 1, "{contested:?}");
    assert!(
        contested[0].0 == "a" && contested[0].1.starts_with(note),
        "{contested:?}"
    );
}

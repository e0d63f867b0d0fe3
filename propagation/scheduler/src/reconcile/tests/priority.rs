use std::time::Duration;

use super::*;

/// Returns the position of the first write of the binding `urgent`, which was created after thirty others.
async fn turn_of_urgent(is_heeded: bool) -> usize {
    let heeded = Heeded {
        priority: is_heeded,
        ..Heeded::default()
    };
    let stage = Stage::heeding(heeded).await;
    for nth in 0..30 {
        let new = binding(&format!("b{nth:02}"), "ResourceBinding", &divided());
        stage.show(&stage.api.create(&new).await);
    }
    let mut urgent = binding("urgent", "ResourceBinding", &divided());
    urgent["spec"]["schedulePriority"] = json!({ "priority": 7 });
    stage.show(&stage.api.create(&urgent).await);
    let (api, _program) = stage.run();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mut writes = api.writes().into_iter();
    writes.position(|write| write.contains("urgent")).unwrap()
}

/// Of those that wait, the binding with the highest priority is scheduled first. Case I93.
#[tokio::test(start_paused = true)]
async fn highest_priority_goes_first() {
    // Several are decided at the same time, and each is written twice.
    assert!(turn_of_urgent(true).await < 16);
}

/// Without the feature bindings take their turns. Case I93.
#[tokio::test(start_paused = true)]
async fn priority_can_be_off() {
    assert!(turn_of_urgent(false).await >= 30);
}

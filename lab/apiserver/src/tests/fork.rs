//! A fork starts as a copy of its origin and is independent from then on.

use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::Duration;

use tokio::runtime::Builder;

use super::{REMEDIES, remedy, server};
use crate::{ApiServer, Fault};

/// Compiled once, outside any runtime, and forked on several threads.
static PREPARED: LazyLock<ApiServer> = LazyLock::new(server);

/// A fork and its origin do not see each other's writes and watches.
#[tokio::test(start_paused = true)]
async fn fork_and_origin_are_apart() {
    let origin = server();
    origin.post(REMEDIES, &remedy("both")).await.ok();
    let fork = origin.fork();
    let mut of_origin = origin.watch(REMEDIES).await;
    let mut of_fork = fork.watch(REMEDIES).await;
    assert_eq!(of_origin.seen().await, "ADDED both");
    assert_eq!(of_fork.seen().await, "ADDED both");

    fork.post(REMEDIES, &remedy("of-fork")).await.ok();
    assert_eq!(of_fork.seen().await, "ADDED of-fork");
    assert!(of_origin.is_quiet().await);
    origin
        .get(&format!("{REMEDIES}/of-fork"))
        .await
        .fails(404, "NotFound");

    origin.delete(&format!("{REMEDIES}/both")).await.ok();
    assert_eq!(of_origin.seen().await, "DELETED both");
    assert!(of_fork.is_quiet().await);
    fork.get(&format!("{REMEDIES}/both")).await.ok();
}

/// A fork has faults metrics and definitions of its own.
#[tokio::test(start_paused = true)]
async fn fork_has_its_own_faults() {
    let origin = server();
    origin.faults().inject(Fault::InternalError);
    let fork = origin.fork();
    fork.get(REMEDIES).await.ok();
    origin.get(REMEDIES).await.fails(500, "InternalError");
    fork.faults().inject(Fault::Unavailable);
    origin.faults().clear();
    origin.get(REMEDIES).await.ok();
    fork.faults().clear();

    let definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let definition = format!("{definition}/remedies.remedy.example.com");
    fork.delete(&definition).await.ok();
    assert_eq!(fork.get(REMEDIES).await.code, 404);
    origin.get(REMEDIES).await.ok();

    let origins = origin.get("/metrics").await.body;
    let forks = fork.get("/metrics").await.body;
    assert!(!String::from_utf8_lossy(&origins).contains("verb=\"DELETE\""));
    assert!(String::from_utf8_lossy(&forks).contains("verb=\"DELETE\""));
}

#[test]
fn forks_share_the_compiled_kinds() {
    let (origin, fork) = (server(), server().fork());
    let forked = origin.fork();
    let kinds =
        |server: &ApiServer| -> Vec<_> { server.state().registry.iter().cloned().collect() };
    let (kinds_of_origin, kinds_of_forked) = (kinds(&origin), kinds(&forked));
    assert_eq!(kinds_of_origin.len(), kinds_of_forked.len());
    for (one, other) in kinds_of_origin.iter().zip(&kinds_of_forked) {
        assert!(Arc::ptr_eq(one, other), "{}", one.plural);
    }
    // Kinds of definitions that were installed twice are not shared.
    let all = kinds(&fork).into_iter().zip(kinds_of_origin);
    let shared = all.filter(|(one, other)| Arc::ptr_eq(one, other));
    assert!(shared.count() < kinds_of_forked.len());
}

/// A fork may begin at another time than its origin.
#[tokio::test(start_paused = true)]
async fn fork_begins_at_its_time() {
    let now = "2030-01-01T00:00:00Z";
    let fork = PREPARED.fork_at(now.parse().unwrap());
    let created = fork.post(REMEDIES, &remedy("a")).await.ok();
    assert_eq!(created["metadata"]["creationTimestamp"], now);
}

/// Returns when an object was created in a fork that runs for so many hours.
fn created_after(hours: u64) -> String {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let fork = PREPARED.fork();
        tokio::time::advance(Duration::from_hours(hours)).await;
        let created = fork.post(REMEDIES, &remedy("late")).await.ok();
        created["metadata"]["creationTimestamp"]
            .as_str()
            .unwrap()
            .to_owned()
    })
}

/// A fork runs in the time of the runtime that made it.
#[test]
fn fork_follows_its_runtimes_time() {
    let runs: Vec<_> = (1..=4)
        .map(|hours| thread::spawn(move || created_after(hours)))
        .collect();
    let times: Vec<_> = runs.into_iter().map(|run| run.join().unwrap()).collect();
    let expected = (1..=4).map(|hour| format!("2026-01-01T0{hour}:00:00Z"));
    assert_eq!(times, expected.collect::<Vec<_>>());
}

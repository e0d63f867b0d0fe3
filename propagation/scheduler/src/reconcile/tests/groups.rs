use super::*;

/// Returns a binding of a Deployment `name` on one of the clusters, in these groups.
fn grouped(name: &str, groups: &Value) -> Value {
    let one = json!({ "spreadConstraints": [{ "minGroups": 1, "maxGroups": 1 }] });
    let mut binding = binding(name, "ResourceBinding", &one);
    binding["spec"]["workloadAffinityGroups"] = groups.clone();
    binding
}

fn apart() -> Value {
    json!({ "antiAffinityGroup": "app=web" })
}

fn together() -> Value {
    json!({ "affinityGroup": "app=web" })
}

fn key(name: &str) -> Key {
    Key::new("shop", name)
}

fn path(name: &str) -> String {
    format!("{BINDINGS}/{name}")
}

impl Stage {
    /// Creates a stage that heeds groups, with the clusters `m1` and `m2`.
    async fn of_groups() -> Self {
        let heeded = Heeded {
            groups: true,
            ..Heeded::default()
        };
        Self::heeding(heeded).await
    }

    async fn create(&self, binding: &Value) {
        self.show(&self.api.create(binding).await);
    }

    async fn show_stored(&self, name: &str) {
        self.show(&self.api.get(&path(name)).await);
    }

    /// Returns the names of the clusters of a stored binding.
    async fn clusters(&self, name: &str) -> Vec<String> {
        let stored = self.api.get(&path(name)).await;
        let clusters = stored["spec"]["clusters"].as_array().cloned();
        let names = clusters.unwrap_or_default().into_iter();
        names
            .map(|target| target["name"].as_str().unwrap().to_owned())
            .collect()
    }
}

/// Two that must not meet are decided before the watch shows the writes: neither takes the cluster of the
/// other, and the third has none. Case I91.
#[tokio::test]
async fn unseen_writes_count() {
    let stage = Stage::of_groups().await;
    for name in ["a", "b", "c"] {
        stage.create(&grouped(name, &apart())).await;
    }
    for name in ["a", "b", "c"] {
        stage.reconcile(&key(name)).await.unwrap();
    }
    assert_eq!(stage.clusters("a").await, ["m1"]);
    assert_eq!(stage.clusters("b").await, ["m2"]);
    assert_eq!(stage.clusters("c").await, [""; 0]);
    let c = stage.api.get(&path("c")).await;
    assert_eq!(
        c["status"]["conditions"][0]["message"],
        "0/2 clusters are available: 2 cluster already has workload with the same anti-affinity group."
    );
}

/// One is decided again before the watch shows the write: that counts on, though the second write is refused
/// for the version that it was decided on. Case I91.
#[tokio::test]
async fn second_decision_forgets_nothing() {
    let stage = Stage::of_groups().await;
    for name in ["a", "b"] {
        stage.create(&grouped(name, &apart())).await;
    }
    stage.reconcile(&key("a")).await.unwrap();
    stage.reconcile(&key("a")).await.unwrap_err();
    stage.reconcile(&key("b")).await.unwrap();
    assert_eq!(stage.clusters("a").await, ["m1"]);
    assert_eq!(stage.clusters("b").await, ["m2"]);
}

/// Two at the same time, by two workers. Case I91.
#[tokio::test]
async fn racers_do_not_meet() {
    let stage = Stage::of_groups().await;
    for name in ["a", "b"] {
        stage.create(&grouped(name, &apart())).await;
    }
    let (a, b) = (key("a"), key("b"));
    let both = tokio::join!(stage.reconcile(&a), stage.reconcile(&b));
    both.0.unwrap();
    both.1.unwrap();
    let (a, b) = (stage.clusters("a").await, stage.clusters("b").await);
    assert_eq!((a.len(), b.len()), (1, 1));
    assert_ne!(a, b);
}

/// A workload follows another of its group, and no one of another namespace or group. Case I91.
#[tokio::test]
async fn workloads_stay_together() {
    let stage = Stage::of_groups().await;
    let mut first = grouped("a", &together());
    first["spec"]["placement"]["clusterAffinity"] = json!({ "clusterNames": ["m2"] });
    stage.create(&first).await;
    stage.create(&grouped("b", &together())).await;
    stage
        .create(&grouped("c", &json!({ "affinityGroup": "app=other" })))
        .await;
    for name in ["a", "b", "c"] {
        stage.reconcile(&key(name)).await.unwrap();
    }
    for (name, expected) in [("a", "m2"), ("b", "m2"), ("c", "m1")] {
        assert_eq!(stage.clusters(name).await, [expected], "{name}");
    }
}

/// Karmada wakes nobody when a member leaves.
/// One that leaves, or goes into another group, wakes those that wait for its cluster. Case I91.
#[tokio::test]
async fn leaver_wakes_who_waits() {
    for leaves in [true, false] {
        let stage = Stage::of_groups().await;
        for name in ["a", "b", "c"] {
            stage.create(&grouped(name, &apart())).await;
            stage.reconcile(&key(name)).await.unwrap();
            stage.show_stored(name).await;
        }
        assert_eq!(stage.clusters("c").await, [""; 0]);
        let other = json!({ "antiAffinityGroup": "app=other" });
        let edit = json!({ "spec": { "workloadAffinityGroups": other } });
        let a = stage.api.send("PATCH", &path("a"), &edit).await;
        let a = from_value(a).unwrap();
        let event = if leaves {
            Seen::Delete(Decoded::Valid(a))
        } else {
            Seen::Apply(Decoded::Valid(a))
        };
        let woken = stage.observe_binding(event);
        assert!(woken.contains(&key("c")), "{woken:?}");
        stage.reconcile(&key("c")).await.unwrap();
        assert_eq!(stage.clusters("c").await, ["m1"]);
    }
}

/// A decision that the API refuses is not counted, and those that waited for its clusters are woken. Case I91.
#[tokio::test]
async fn refused_write_frees_cluster() {
    let stage = Stage::of_groups().await;
    for name in ["a", "b", "c"] {
        stage.create(&grouped(name, &apart())).await;
    }
    stage.reconcile(&key("b")).await.unwrap();
    let call = format!("PATCH {}", path("a"));
    stage.api.refuse(&call, 409, "Conflict", "changed");
    stage.reconcile(&key("a")).await.unwrap_err();
    stage.reconcile(&key("c")).await.unwrap();
    assert_eq!(stage.clusters("c").await, ["m2"]);
}

/// Without the feature the groups of a binding are not looked at, as in Karmada. Case I91.
#[tokio::test]
async fn groups_are_off_by_default() {
    let stage = Stage::new().await;
    for name in ["a", "b"] {
        stage.create(&grouped(name, &apart())).await;
        stage.reconcile(&key(name)).await.unwrap();
        assert_eq!(stage.clusters(name).await, ["m1"]);
    }
}

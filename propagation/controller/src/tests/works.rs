//! Works of bindings and Namespaces. The tests stand in for the scheduler and the members.

use karmada_api::{Condition, Work};
use objects::Metadata;

use super::*;

const CLUSTERS: &str = "/apis/cluster.karmada.io/v1alpha1/clusters";

pub(super) fn works(cluster: &str) -> String {
    format!("/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-{cluster}/works")
}

pub(super) fn work(cluster: &str) -> String {
    format!(
        "{}/{}",
        works(cluster),
        names::work("Deployment", "shop", "web")
    )
}

/// Returns how many of the lines have this text.
fn count(lines: &[String], text: &str) -> usize {
    lines.iter().filter(|line| line.contains(text)).count()
}

/// A Namespace stays in a cluster that its policy no longer names, and follows its edits there. Case P93.
#[tokio::test(start_paused = true)]
async fn narrowed_namespace_stays() {
    let mut stage = dispatched().await;
    let policy = json!({
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "ClusterPropagationPolicy",
        "metadata": { "name": "spaces" },
        "spec": {
            "resourceSelectors": [{ "apiVersion": "v1", "kind": "Namespace", "name": "shop" }],
            "placement": {},
        },
    });
    stage.change("POST", CLUSTER_POLICY, &policy).await;
    let path = format!("{CLUSTER_BINDING}/shop-namespace");
    let both = json!({ "spec": { "clusters": [{ "name": "m1" }, { "name": "m2" }] } });
    stage.change("PATCH", &path, &both).await;
    let work = stage.get(&namespace_work("m2")).await;
    assert_ne!(work.annotation(names::CLUSTER_BINDING_NAME), None);
    let one = json!({ "spec": { "clusters": [{ "name": "m1" }] } });
    let wrote = stage.change("PATCH", &path, &one).await;
    assert_eq!(count(&wrote, "DELETE"), 0, "{wrote:?}");
    let label = json!({ "metadata": { "labels": { "team": "a" } } });
    stage
        .change("PATCH", "/api/v1/namespaces/shop", &label)
        .await;
    let work = stage.get(&namespace_work("m2")).await;
    assert_eq!(work.annotation(names::CLUSTER_BINDING_NAME), None);
    let manifest = &work["spec"]["workload"]["manifests"][0];
    assert_eq!(manifest["metadata"]["labels"]["team"], "a");
    assert_eq!(manifest.annotation(names::CLUSTER_BINDING_NAME), None);

    // Nor does it go with its binding, which somebody has deleted, though it is not known at first after a restart.
    stage.kill().await;
    let deleted = stage.send("DELETE", &path, &json!({})).await;
    stage.writes();
    let no_discovery = stage.server.faults().inject(Fault::InternalError.kind(""));
    stage.start(&[]).await;
    stage.server.faults().remove(no_discovery);
    tokio::time::sleep(Duration::from_mins(1)).await;
    // It has another one now.
    assert_ne!(stage.get(&path).await.uid(), deleted.uid());
    let wrote = stage.written();
    let deleted = wrote.iter().filter(|write| write.starts_with("DELETE"));
    assert!(
        deleted.filter(|write| write.contains("/works/")).count() == 0,
        "{wrote:?}"
    );
}

fn namespace_work(cluster: &str) -> String {
    format!(
        "{}/{}",
        works(cluster),
        names::work("Namespace", "", "shop")
    )
}

impl Stage {
    /// Adds a cluster with its namespace, as they are after it has joined.
    pub(super) async fn join(&self, cluster: &str) {
        let namespace = json!({ "metadata": { "name": format!("karmada-es-{cluster}") } });
        self.send("POST", "/api/v1/namespaces", &namespace).await;
        let object = json!({
            "apiVersion": "cluster.karmada.io/v1alpha1",
            "kind": "Cluster",
            "metadata": { "name": cluster },
            "spec": { "syncMode": "Push" },
        });
        self.send("POST", CLUSTERS, &object).await;
    }

    /// Schedules the binding as a scheduler does, and returns the writes of the program after it.
    pub(super) async fn schedule(&self, clusters: &[&str]) -> Vec<String> {
        let clusters: Vec<Value> = clusters
            .iter()
            .map(|cluster| json!({ "name": cluster, "replicas": 1 }))
            .collect();
        let spec = json!({ "spec": { "clusters": clusters } });
        self.change("PATCH", &bound(), &spec).await
    }

    /// Reports a Work as applied, with one replica ready, and returns the writes of the program after it.
    async fn applied(&self, cluster: &str) -> Vec<String> {
        let status = self.report(cluster, 1).await;
        let path = format!("{}/status", work(cluster));
        self.change("PATCH", &path, &status).await
    }

    /// Returns the status of a Work that is applied, with this many replicas ready.
    async fn report(&self, cluster: &str, ready: u8) -> Value {
        let work = self.work(cluster).await;
        let manifest = &work.spec.workload.manifests[0];
        let made_from = &manifest["metadata"]["annotations"][names::TEMPLATE_GENERATION];
        let made_from: i64 = made_from.as_str().unwrap().parse().unwrap();
        json!({ "status": {
            "conditions": [{
                "type": "Applied", "status": "True", "reason": "AppliedSuccessful", "message": "",
                "lastTransitionTime": "2026-11-22T08:00:00Z",
                "observedGeneration": work.metadata.generation,
            }],
            "manifestStatuses": [{
                "identifier": {
                    "ordinal": 0, "group": "apps", "version": "v1", "kind": "Deployment",
                    "resource": "", "namespace": "shop", "name": "web",
                },
                "health": "Healthy",
                "status": {
                    "generation": 1, "observedGeneration": 1, "replicas": 1, "readyReplicas": ready,
                    "resourceTemplateGeneration": made_from,
                },
            }],
        } })
    }

    pub(super) async fn work(&self, cluster: &str) -> Work {
        serde_json::from_value(self.get(&work(cluster)).await).unwrap()
    }

    /// Lets a Work go that is being deleted, as its member does.
    pub(super) async fn let_go(&self, cluster: &str) -> Vec<String> {
        let released = json!({ "metadata": { "finalizers": null } });
        self.change("PATCH", &work(cluster), &released).await
    }

    async fn condition(&self, kind: &str) -> Condition {
        let status = self.binding().await.status.unwrap();
        let mut conditions = status.conditions.unwrap().into_iter();
        conditions
            .find(|condition| condition.type_ == kind)
            .unwrap()
    }
}

/// A program with clusters m1 and m2 and a binding that is scheduled to both.
pub(super) async fn dispatched() -> Stage {
    let mut stage = Stage::new().await;
    for cluster in ["m1", "m2"] {
        stage.join(cluster).await;
    }
    stage.send("POST", POLICY, &policy("pp", &json!({}))).await;
    stage.send("POST", DEPLOYMENT, &deployment()).await;
    stage.start(&[]).await;
    stage.written();
    let wrote = stage.schedule(&["m1", "m2"]).await;
    assert_eq!(
        wrote,
        ["m1", "m2"].map(|cluster| format!("POST {}", works(cluster)))
    );
    stage
}

/// Each cluster gets one work and its status comes back.
#[tokio::test(start_paused = true)]
async fn each_cluster_gets_one_work() {
    let mut stage = dispatched().await;
    let created = stage.work("m1").await;
    assert_eq!(created.spec.workload.manifests[0]["spec"]["replicas"], 1);
    assert_eq!(created.spec.suspend_dispatching, Some(false));

    let status = format!("PATCH {}/status", bound());
    let template_status = format!("PATCH {DEPLOYMENT}/web/status");
    let wrote = stage.applied("m1").await;
    assert!(wrote.contains(&status), "{wrote:?}");
    let wrote = stage.applied("m2").await;
    assert_eq!(wrote, [template_status, status]);
    assert_eq!(stage.condition("FullyApplied").await.status, "True");
    let items = stage
        .binding()
        .await
        .status
        .unwrap()
        .aggregated_status
        .unwrap();
    let clusters: Vec<&str> = items
        .iter()
        .map(|item| item.cluster_name.as_str())
        .collect();
    assert_eq!(clusters, ["m1", "m2"]);
    let template = stage.get(&web(DEPLOYMENT)).await;
    assert_eq!(template["status"]["readyReplicas"], 2);
    assert_eq!(
        template["status"]["observedGeneration"],
        template["metadata"]["generation"]
    );
    let notes = stage.events("ResourceBinding").await;
    assert_eq!(count(&notes, "SyncWorkSucceed"), 1, "{notes:?}");
    assert_eq!(count(&notes, "AggregateStatusSucceed"), 2, "{notes:?}");

    // Neither time nor a restart is a reason to write.
    stage.written();
    stage.settle().await;
    stage.kill().await;
    stage.start(&[]).await;
    assert_eq!(stage.written(), [""; 0]);
    assert_eq!(stage.events("ResourceBinding").await.len(), notes.len());
}

/// The reports of Works within a second are written at once.
#[tokio::test(start_paused = true)]
async fn reports_are_written_together() {
    let stage = dispatched().await;
    let moment = Duration::from_millis(150);
    for ready in [0, 1] {
        for cluster in ["m1", "m2"] {
            let status = stage.report(cluster, ready).await;
            let path = format!("{}/status", work(cluster));
            stage.send("PATCH", &path, &status).await;
            tokio::time::sleep(moment).await;
        }
        if ready == 0 {
            // Both have reported: that is no news for later.
            let items = stage.binding().await.status.unwrap().aggregated_status;
            assert_eq!(items.unwrap().len(), 2);
        }
    }
    stage.settle().await;
    let wrote = stage.written();
    let status = format!("{}/status", bound());
    assert_eq!(count(&wrote, &status), 2, "{wrote:?}");
    assert!(count(&wrote, DEPLOYMENT) <= 2, "{wrote:?}");
    let template = stage.get(&format!("{DEPLOYMENT}/web")).await;
    assert_eq!(template["status"]["readyReplicas"], 2);
}

/// An edit and the name of the next policy are written once to each work.
#[tokio::test(start_paused = true)]
async fn edit_is_written_once() {
    let stage = dispatched().await;
    let patches = ["m1", "m2"].map(|cluster| format!("PATCH {}", work(cluster)));
    let label = json!({ "metadata": { "labels": { "tier": "front" } } });
    let record = format!("PATCH {}", bound());
    assert_eq!(
        stage.change("PATCH", &web(DEPLOYMENT), &label).await,
        [patches.as_slice(), &[record]].concat()
    );
    let work = stage.work("m1").await;
    let annotations = work.metadata.annotations.unwrap();
    assert_eq!(annotations[names::MANIFEST_GENERATION], "2");
    assert_eq!(work.metadata.generation, Some(2));

    let lazy = json!({ "priority": 1, "preemption": "Always",
        "activationPreference": "Lazy", "conflictResolution": "Overwrite" });
    let lazy = policy("lazy", &lazy);
    let wrote = stage.change("POST", POLICY, &lazy).await;
    assert_eq!(claim_of(&stage.get(&bound()).await), Some("lazy"));
    // The binding follows the former one.
    assert_eq!(count(&wrote, "/works"), 0, "{wrote:?}");
    let high = policy("high", &json!({ "priority": 2, "preemption": "Always" }));
    let mut wrote = stage.change("POST", POLICY, &high).await;
    assert_eq!(claim_of(&stage.get(&bound()).await), Some("high"));
    wrote.retain(|write| write.contains("/works"));
    assert_eq!(wrote, patches);
    let manifest = &stage.work("m1").await.spec.workload.manifests[0];
    assert_eq!(claim_of(manifest), Some("high"));
}

/// A cluster that is not needed loses its work.
#[tokio::test(start_paused = true)]
async fn unneeded_work_is_deleted() {
    let stage = dispatched().await;
    let wrote = stage.schedule(&["m1"]).await;
    assert_eq!(wrote, [format!("DELETE {}", work("m2"))]);
    let leaving = stage.work("m2").await;
    assert!(leaving.metadata.deletion_timestamp.is_some());
    // Wanted again before it is gone: a new one is made as soon as it can.
    assert_eq!(stage.schedule(&["m1", "m2"]).await, [""; 0]);
    assert_eq!(stage.let_go("m2").await, [format!("POST {}", works("m2"))]);
    assert_ne!(stage.work("m2").await.metadata.uid, leaving.metadata.uid);
}

/// An edit does not overtake the pause before it.
#[tokio::test(start_paused = true)]
async fn edit_follows_pause() {
    let stage = dispatched().await;
    let before = stage.work("m1").await;
    let pause = json!({ "spec": { "suspension": { "dispatching": true } } });
    let edit = json!({ "spec": { "paused": true } });
    let (policy, template) = (format!("{POLICY}/pp"), web(DEPLOYMENT));
    futures::join!(
        stage.send("PATCH", &policy, &pause),
        stage.send("PATCH", &template, &edit),
    );
    stage.settle().await;
    let after = stage.work("m1").await;
    assert!(after.is_suspended());
    assert_eq!(after.spec.workload.manifests[0]["spec"]["paused"], true);
    // At once: a version with the edit alone would have left.
    let generations = [before, after].map(|work| work.metadata.generation.unwrap());
    assert_eq!(generations[1] - generations[0], 1);
}

/// A pause that ends before it is in the binding leaves the works.
#[tokio::test(start_paused = true)]
async fn short_pause_leaves_works() {
    let stage = dispatched().await;
    let policy = format!("{POLICY}/pp");
    let refused = Fault::Conflict.kind("resourcebindings");
    stage.server.faults().inject(refused.verbs([Verb::Patch]));
    let pause = json!({ "spec": { "suspension": { "dispatching": true } } });
    stage.change("PATCH", &policy, &pause).await;
    assert!(stage.work("m1").await.is_suspended());
    assert!(stage.binding().await.spec.suspension.is_none());

    let end = json!({ "spec": { "suspension": null } });
    stage.change("PATCH", &policy, &end).await;
    assert!(!stage.work("m1").await.is_suspended());
}

/// A policy that drops a template does not pause it.
#[tokio::test(start_paused = true)]
async fn dropping_policy_pauses_nothing() {
    let stage = dispatched().await;
    // The binding keeps the claim.
    let refused = Fault::Conflict.kind("resourcebindings");
    stage.server.faults().inject(refused.verbs([Verb::Patch]));
    let others = [json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": "other" })];
    let wanted = json!({ "spec": {
        "resourceSelectors": others,
        "suspension": { "dispatching": true },
    } });
    stage
        .change("PATCH", &format!("{POLICY}/pp"), &wanted)
        .await;
    assert_eq!(claim_of(&stage.get(&bound()).await), Some("pp"));
    assert!(!stage.work("m1").await.is_suspended());
}

/// A template that its policy leaves keeps the changes of its override policies, though they go first. Case P89.
#[tokio::test(start_paused = true)]
async fn left_workload_keeps_overrides() {
    let stage = dispatched().await;
    let plaintext = json!([{ "path": "/spec/replicas", "operator": "replace", "value": 7 }]);
    let override_policy = json!({
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "OverridePolicy",
        "metadata": { "name": "seven", "namespace": "shop" },
        "spec": { "overrideRules": [{ "overriders": { "plaintext": plaintext } }] },
    });
    stage.change("POST", OVERRIDE, &override_policy).await;
    // The binding keeps the claim.
    let refused = Fault::Conflict.kind("resourcebindings");
    stage.server.faults().inject(refused.verbs([Verb::Patch]));
    stage
        .change("DELETE", &format!("{POLICY}/pp"), &json!({}))
        .await;
    assert_eq!(claim_of(&stage.get(&bound()).await), Some("pp"));
    let path = format!("{OVERRIDE}/seven");
    let wrote = stage.change("DELETE", &path, &json!({})).await;
    assert!(
        !wrote.iter().any(|write| write.contains("/works/")),
        "{wrote:?}"
    );
    let work = stage.work("m1").await;
    assert_eq!(work.spec.workload.manifests[0]["spec"]["replicas"], 7);
}

/// A template that is scaled to nothing, and so in no cluster, has been observed: `kubectl rollout status` waits for
/// that. Case P92.
#[tokio::test(start_paused = true)]
async fn empty_workload_is_observed() {
    let stage = dispatched().await;
    let empty = json!({ "spec": { "replicas": 0 } });
    stage.change("PATCH", &web(DEPLOYMENT), &empty).await;
    stage.schedule(&[]).await;
    let observed =
        async || stage.get(&web(DEPLOYMENT)).await["status"]["observedGeneration"].clone();
    assert_ne!(observed().await, 2);
    let generation = stage.binding().await.metadata.generation;
    let status = json!({ "status": {
        "schedulerObservedGeneration": generation,
        "conditions": [{
            "type": "Scheduled", "status": "True", "reason": "Success", "message": "",
            "lastTransitionTime": "2026-11-22T08:00:00Z",
        }],
    } });
    stage
        .change("PATCH", &format!("{}/status", bound()), &status)
        .await;
    let template = stage.get(&web(DEPLOYMENT)).await;
    assert_eq!(
        template["status"]["observedGeneration"],
        template["metadata"]["generation"]
    );
}

/// A deleted binding takes its works along without waiting for members.
#[tokio::test(start_paused = true)]
async fn deleted_binding_deletes_works() {
    let stage = dispatched().await;
    let before = stage.binding().await.metadata.uid;
    let wrote = stage.change("DELETE", &bound(), &json!({})).await;
    for cluster in ["m1", "m2"] {
        let deletion = format!("DELETE {}", work(cluster));
        assert!(wrote.contains(&deletion), "{wrote:?}");
        assert!(
            stage
                .work(cluster)
                .await
                .metadata
                .deletion_timestamp
                .is_some()
        );
    }
    // The template is still there: it gets a new binding.
    assert_ne!(stage.binding().await.metadata.uid, before);
}

/// Case P87: a namespace is going while the program starts. Whether a workload in it is protected, and stays, is not known
/// before its kind is listed: until then its Works stay.
#[tokio::test(start_paused = true)]
async fn unlisted_template_keeps_works() {
    let mut stage = dispatched().await;
    stage.kill().await;
    let namespace = "/api/v1/namespaces/shop";
    stage.send("DELETE", namespace, &json!({})).await;
    let no_discovery = stage.server.faults().inject(Fault::InternalError.kind(""));
    stage.start(&[]).await;
    assert_eq!(count(&stage.written(), "DELETE"), 0);
    assert!(stage.find(&bound()).await.is_some());
    stage.server.faults().remove(no_discovery);
    tokio::time::sleep(Duration::from_mins(1)).await;
    let deletions = ["m1", "m2"].map(|cluster| format!("DELETE {}", work(cluster)));
    let mut wrote = stage.written();
    wrote.retain(|write| write.starts_with("DELETE"));
    assert_eq!(wrote, deletions);
    assert_eq!(stage.find(&bound()).await, None);
}

/// Case P5: a template without a policy stays in its clusters as it is.
#[tokio::test(start_paused = true)]
async fn unclaimed_workload_stays() {
    let stage = dispatched().await;
    let of_policy = format!("{POLICY}/pp");
    stage.change("DELETE", &of_policy, &json!({})).await;
    let label = json!({ "metadata": { "labels": { "tier": "front" } } });
    assert_eq!(
        stage.change("PATCH", &web(DEPLOYMENT), &label).await,
        [""; 0]
    );
    let wrote = stage.applied("m1").await;
    assert!(
        wrote.contains(&format!("PATCH {}/status", bound())),
        "{wrote:?}"
    );
}

/// An override changes one cluster and a broken one changes nothing.
#[tokio::test(start_paused = true)]
async fn override_changes_one_cluster() {
    let stage = dispatched().await;
    let [seven, broken] = ["/spec/replicas", "/none/x"].map(|path| {
        let plaintext = json!([{ "path": path, "operator": "replace", "value": 7 }]);
        json!([{
            "targetCluster": { "clusterNames": ["m2"] },
            "overriders": { "plaintext": plaintext },
        }])
    });
    let override_policy = json!({
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "OverridePolicy",
        "metadata": { "name": "seven", "namespace": "shop" },
        "spec": { "overrideRules": seven },
    });
    let wrote = stage.change("POST", OVERRIDE, &override_policy).await;
    assert_eq!(wrote, [format!("PATCH {}", work("m2"))]);
    let overridden = stage.work("m2").await;
    assert_eq!(overridden.spec.workload.manifests[0]["spec"]["replicas"], 7);
    let annotations = overridden.metadata.annotations.unwrap();
    assert!(annotations[names::APPLIED_OVERRIDES].contains("\"seven\""));
    let notes = stage.events("Deployment").await;
    let applied =
        "ApplyOverridePolicySucceed: Apply override policies for cluster(m2) successfully.";
    assert!(notes.iter().any(|note| note == applied), "{notes:?}");

    let broken = json!({ "spec": { "overrideRules": broken } });
    let path = format!("{OVERRIDE}/seven");
    assert_eq!(stage.change("PATCH", &path, &broken).await, [""; 0]);
    let notes = stage.events("Deployment").await;
    assert_eq!(count(&notes, "ApplyOverridePolicyFailed"), 1, "{notes:?}");

    let wrote = stage.change("DELETE", &path, &json!({})).await;
    assert_eq!(wrote, [format!("PATCH {}", work("m2"))]);
    let reset = stage.work("m2").await;
    assert_eq!(reset.spec.workload.manifests[0]["spec"]["replicas"], 1);
}

/// Every cluster gets the namespaces of users.
#[tokio::test(start_paused = true)]
async fn every_cluster_gets_namespaces() {
    let stage = dispatched().await;
    for cluster in ["m1", "m2"] {
        let work: Work = serde_json::from_value(stage.get(&namespace_work(cluster)).await).unwrap();
        assert_eq!(work.spec.suspend_dispatching, None);
        let owner = &work.metadata.owner_references.unwrap()[0];
        assert_eq!(
            (owner.kind.as_str(), owner.name.as_str()),
            ("Namespace", "shop")
        );
    }
    stage.writes();
    stage.join("m3").await;
    stage.settle().await;
    assert_eq!(stage.written(), [format!("POST {}", works("m3"))]);
    let label = json!({ "metadata": { "labels": { "team": "a" } } });
    let wrote = stage
        .change("PATCH", "/api/v1/namespaces/shop", &label)
        .await;
    let patches = ["m1", "m2", "m3"].map(|cluster| format!("PATCH {}", namespace_work(cluster)));
    assert_eq!(wrote, patches);
    let skipped = json!({ "metadata": {
        "name": "own", "labels": { "namespace.karmada.io/skip-auto-propagation": "True" },
    } });
    assert_eq!(
        stage.change("POST", "/api/v1/namespaces", &skipped).await,
        [""; 0]
    );
}

/// A cluster that joins later gets its work then.
#[tokio::test(start_paused = true)]
async fn joining_cluster_gets_work() {
    let stage = dispatched().await;
    assert_eq!(stage.schedule(&["m1", "m2", "m3"]).await, [""; 0]);
    stage.writes();
    stage.join("m3").await;
    stage.settle().await;
    assert_eq!(
        stage.written(),
        [(); 2].map(|()| format!("POST {}", works("m3")))
    );
}

/// Tools that wait for conditions see a rollout end once it has ended in all clusters, where a flag asks for that.
#[tokio::test(start_paused = true)]
async fn conditions_follow_members() {
    let mut stage = dispatched().await;
    stage.kill().await;
    stage.start(&["--deployment-conditions"]).await;
    for cluster in ["m1", "m2"] {
        stage.applied(cluster).await;
    }
    let reasons = async || -> Vec<Value> {
        let template = stage.get(&web(DEPLOYMENT)).await;
        let conditions = template["status"]["conditions"].as_array().unwrap();
        conditions.iter().map(|one| one["reason"].clone()).collect()
    };
    let before = ["MinimumReplicasUnavailable", "ReplicaSetUpdated"];
    assert_eq!(reasons().await, before);
    for cluster in ["m1", "m2"] {
        let mut report = stage.report(cluster, 1).await;
        let counts = &mut report["status"]["manifestStatuses"][0]["status"];
        for name in ["updatedReplicas", "availableReplicas"] {
            counts[name] = 1.into();
        }
        let path = format!("{}/status", work(cluster));
        stage.change("PATCH", &path, &report).await;
    }
    let after = ["MinimumReplicasAvailable", "NewReplicaSetAvailable"];
    assert_eq!(reasons().await, after);
    stage.settle().await;
    assert_eq!(stage.written(), [""; 0]);
}

/// A death before any write of works is made good.
#[tokio::test(start_paused = true)]
async fn crash_before_each_write() {
    for allowed in 0.. {
        let mut stage = dispatched().await;
        stage.limit_writes(allowed);
        stage.schedule(&["m1"]).await;
        let label = json!({ "metadata": { "labels": { "tier": "front" } } });
        let wrote = stage.change("PATCH", &web(DEPLOYMENT), &label).await;
        let hung = stage.is_limit_reached();
        stage.kill().await;
        stage.limit_writes(usize::MAX);
        stage.start(&[]).await;
        let manifest = &stage.work("m1").await.spec.workload.manifests[0];
        assert_eq!(manifest["metadata"]["labels"]["tier"], "front", "{wrote:?}");
        assert!(stage.work("m2").await.metadata.deletion_timestamp.is_some());
        if !hung {
            assert!(allowed > 2, "{wrote:?}");
            return;
        }
    }
}

/// Refused and lost writes of works are made again.
#[tokio::test(start_paused = true)]
async fn lost_writes_are_repeated() {
    for fault in [
        Fault::Conflict.every(2),
        Fault::LoseResponse.every(2),
        Fault::Unavailable
            .every(2)
            .verbs([Verb::Patch, Verb::Create, Verb::Delete]),
    ] {
        let mut stage = dispatched().await;
        let scheduled = json!({ "spec": { "clusters": [{ "name": "m1", "replicas": 1 }] } });
        let scaled = json!({ "spec": { "replicas": 5, "paused": true } });
        stage.limit_writes(0);
        stage.send("PATCH", &bound(), &scheduled).await;
        stage.send("PATCH", &web(DEPLOYMENT), &scaled).await;
        stage.settle().await;
        stage.kill().await;
        stage.limit_writes(usize::MAX);
        stage.server.faults().inject(fault);
        stage.start(&[]).await;
        stage.settle().await;
        stage.settle().await;
        stage.server.faults().clear();
        let left = stage.work("m2").await.metadata.deletion_timestamp;
        assert!(left.is_some());
        let manifest = &stage.work("m1").await.spec.workload.manifests[0];
        assert_eq!(manifest["spec"]["paused"], true);
        assert_eq!(stage.binding().await.spec.replicas, Some(5));
    }
}

/// Trouble with one cluster holds up no other and is recorded once.
#[tokio::test(start_paused = true)]
async fn trouble_stays_with_its_cluster() {
    let stage = dispatched().await;
    let namespace = "/api/v1/namespaces/karmada-es-m3";
    stage.join("m3").await;
    stage.send("DELETE", namespace, &json!({})).await;
    stage.settle().await;
    stage.join("m4").await;
    stage.schedule(&["m1", "m2", "m3", "m4"]).await;
    stage.settle().await;
    assert!(stage.work("m4").await.metadata.uid.is_some());
    let notes = stage.events("ResourceBinding").await;
    let failed = notes
        .iter()
        .filter(|note| note.starts_with("SyncWorkFailed"));
    assert_eq!(failed.count(), 1, "{notes:?}");
}

/// A binding that others require has works and their pause.
#[tokio::test(start_paused = true)]
async fn required_binding_has_works() {
    let stage = dispatched().await;
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "settings", "namespace": "shop" }, "data": { "a": "b" },
    });
    let map = stage
        .send("POST", "/api/v1/namespaces/shop/configmaps", &map)
        .await;
    let attached = json!({
        "apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding",
        "metadata": {
            "name": "settings-configmap", "namespace": "shop",
            "labels": { names::BINDING_ID: "some-id" },
        },
        "spec": {
            "resource": {
                "apiVersion": "v1", "kind": "ConfigMap", "namespace": "shop", "name": "settings",
                "uid": map["metadata"]["uid"],
            },
            "requiredBy": [{
                "namespace": "shop", "name": "web-deployment",
                "clusters": [{ "name": "m1" }, { "name": "m2" }],
            }],
        },
    });
    stage.change("POST", BINDING, &attached).await;
    let name = names::work("ConfigMap", "shop", "settings");
    let required = format!("{}/{name}", works("m2"));
    let work = stage.get(&required).await;
    assert_eq!(work["spec"]["suspendDispatching"], false);
    assert_eq!(
        work["spec"]["workload"]["manifests"][0]["data"],
        json!({ "a": "b" })
    );
    let pause = json!({ "spec": { "suspension": { "dispatching": true } } });
    stage.change("PATCH", &format!("{POLICY}/pp"), &pause).await;
    assert_eq!(
        stage.get(&required).await["spec"]["suspendDispatching"],
        true
    );
}

/// A binding that is deleted without its id takes its works along.
#[tokio::test(start_paused = true)]
async fn lost_id_deletes_works() {
    let mut stage = dispatched().await;
    stage.kill().await;
    let labels = json!({ "metadata": { "labels": { names::BINDING_ID: null } } });
    stage.send("PATCH", &bound(), &labels).await;
    stage.send("DELETE", &bound(), &json!({})).await;
    stage.written();
    stage.start(&[]).await;
    let written = stage.written();
    for cluster in ["m1", "m2"] {
        let deletion = format!("DELETE {}", work(cluster));
        assert!(written.contains(&deletion), "{written:?}");
    }
}

/// Who only observes makes no works.
#[tokio::test(start_paused = true)]
async fn observer_makes_no_works() {
    let mut stage = dispatched().await;
    stage.kill().await;
    let label = json!({ "metadata": { "labels": { "tier": "front" } } });
    stage.send("PATCH", &web(DEPLOYMENT), &label).await;
    stage.start(&["--observe-only"]).await;
    assert_eq!(stage.written(), [""; 0]);
    // There was something to write.
    stage.kill().await;
    stage.start(&[]).await;
    assert!(!stage.written().is_empty());
}

/// The record of an edit wakes the binding before the watch shows the Works that were written for it.
#[tokio::test(start_paused = true)]
async fn unseen_work_is_patched_once() {
    let stage = dispatched().await;
    let (by, coalesce) = (Duration::from_secs(2), false);
    let late = Fault::DelayEvents { by, coalesce };
    stage.server.faults().inject(late.kind("works"));
    for seconds in [3, 4] {
        let edit = json!({ "spec": { "minReadySeconds": seconds } });
        stage.written();
        stage.send("PATCH", &web(DEPLOYMENT), &edit).await;
        // The record waits until the copies have had the API to themselves.
        tokio::time::sleep(Duration::from_millis(10)).await;
        let on_works = ["m1", "m2"].map(|cluster| format!("PATCH {}", work(cluster)));
        assert_eq!(stage.written(), on_works);
        stage.settle().await;
        assert_eq!(stage.written(), [format!("PATCH {}", bound())]);
    }
    // An edit meanwhile arrives, too.
    for seconds in [5, 6] {
        let edit = json!({ "spec": { "minReadySeconds": seconds } });
        stage.send("PATCH", &web(DEPLOYMENT), &edit).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    stage.settle().await;
    for cluster in ["m1", "m2"] {
        let manifest = &stage.work(cluster).await.spec.workload.manifests[0];
        assert_eq!(manifest["spec"]["minReadySeconds"], 6);
    }
}

/// Case P85: a pause and an edit that are applied in one moment, as `GitOps` does, come over two watches. The edit waits
/// for the pause, even if that comes late.
#[tokio::test(start_paused = true)]
async fn late_pause_holds_edit() {
    let stage = dispatched().await;
    let (by, coalesce) = (Duration::from_secs(3), false);
    let late = Fault::DelayEvents { by, coalesce };
    stage
        .server
        .faults()
        .inject(late.kind("propagationpolicies"));
    let pause = json!({ "spec": { "suspension": { "dispatching": true } } });
    stage.send("PATCH", &format!("{POLICY}/pp"), &pause).await;
    let edit = json!({ "spec": { "minReadySeconds": 3 } });
    stage.written();
    stage.send("PATCH", &web(DEPLOYMENT), &edit).await;
    tokio::time::sleep(by / 2).await;
    assert!(!stage.written().contains(&format!("PATCH {}", work("m1"))));
    stage.settle().await;
    for cluster in ["m1", "m2"] {
        let work = stage.work(cluster).await;
        let manifest = &work.spec.workload.manifests[0];
        assert_eq!(manifest["spec"]["minReadySeconds"], 3);
        assert!(work.is_suspended());
    }
}

/// Works wait while their policy cannot be read, and an Event says why.
#[tokio::test(start_paused = true)]
async fn unread_policy_is_told() {
    let stage = dispatched().await;
    let unread = Fault::Forbidden.kind("propagationpolicies");
    let unread = stage.server.faults().inject(unread.verbs([Verb::Get]));
    let edit = json!({ "spec": { "minReadySeconds": 3 } });
    stage.send("PATCH", &web(DEPLOYMENT), &edit).await;
    stage.settle().await;
    let told = stage.events("Deployment").await;
    let cause = "cannot read its policy: the API server answered 403";
    assert!(told.iter().any(|note| note.contains(cause)), "{told:?}");
    let manifest = &stage.work("m1").await.spec.workload.manifests[0];
    assert_eq!(manifest["spec"]["minReadySeconds"], Value::Null);
    stage.server.faults().remove(unread);
    tokio::time::sleep(Duration::from_mins(1)).await;
    let manifest = &stage.work("m1").await.spec.workload.manifests[0];
    assert_eq!(manifest["spec"]["minReadySeconds"], 3);
}

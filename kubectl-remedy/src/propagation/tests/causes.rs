//! Every cause that can stand in the first line, each with its next command.

use k8s_openapi::api::rbac::v1::ClusterRole;
use karmada_api::{Suspension, Work};
use objects::{Key, Metadata};
use serde_json::{Value, from_value, json};

use super::{cluster, facts, policy, set_health, unbound};
use crate::propagation::facts::Facts;
use crate::propagation::report::Report;

/// Asserts the report of facts: the word, the sentence and the command.
#[track_caller]
fn told(facts: &Facts, word: &str, sentence: &str, next: &str) {
    let report = Report::of(facts);
    assert_eq!((&*report.summary, &*report.next), (sentence, next));
    assert_eq!(report.cause, word);
    let text = report.text(super::now());
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some(sentence));
    assert_eq!(lines.next_back().map(str::trim_start), Some(next));
}

fn set(facts: &mut Facts, pointer: &str, value: Value) {
    let template = facts.template.as_mut().unwrap();
    let (parent, field) = pointer.rsplit_once('/').unwrap();
    template.pointer_mut(parent).unwrap()[field] = value;
}

/// Returns the facts of an unbound Deployment, where the only policy selects this.
fn selecting(selector: Value) -> Facts {
    let mut facts = unbound();
    facts.policies[0].spec.resource_selectors = vec![from_value(selector).unwrap()];
    facts
}

fn work<'a>(facts: &'a mut Facts, cluster: &str) -> &'a mut Work {
    let namespace = karmada_api::execution_namespace(cluster);
    let mut works = facts.works.iter_mut();
    works
        .find(|work| work.metadata.namespace() == namespace)
        .unwrap()
}

/// Gives the Work of `member2` this condition `Applied`, or none.
fn set_applied(facts: &mut Facts, applied: Option<(&str, &str)>) {
    let conditions = &mut work(facts, "member2").status.as_mut().unwrap().conditions;
    conditions.retain(|condition| condition.type_ != "Applied");
    conditions.extend(applied.map(|(status, message)| {
        let condition = json!({ "type": "Applied", "status": status, "reason": "AppliedFailed",
            "message": message, "lastTransitionTime": "2026-11-21T23:58:01Z" });
        from_value(condition).unwrap()
    }));
}

const GET_POLICY: &str = "kubectl get propagationpolicy/web -n shop -o yaml";
const GET_BINDING: &str = "kubectl get resourcebinding/web-deployment -n shop -o yaml";
const DESCRIBE_BINDING: &str = "kubectl describe resourcebinding/web-deployment -n shop";
const LEASES: &str = "kubectl get leases -n karmada-system";
const MEMBER2_WORK: &str = "work/web-56d6c779bb -n karmada-es-member2";

/// Where all is well, that is said.
#[test]
fn nothing_is_wrong() {
    let sentence = "Deployment shop/web is in member1 and member2, as it is to be.";
    told(&facts(), "Nothing", sentence, DESCRIBE_BINDING);
}

/// A template that is gone or goes holds up the objects made of it.
#[test]
fn template_goes() {
    let mut gone = facts();
    gone.template = None;
    let sentence = "Deployment shop/web does not exist: what was made of it goes with it.";
    told(&gone, "TemplateGone", sentence, GET_BINDING);
    let mut deleting = facts();
    set(
        &mut deleting,
        "/metadata/deletionTimestamp",
        json!("2026-11-22T00:00:00Z"),
    );
    set(&mut deleting, "/metadata/finalizers", json!(["a", "b"]));
    let sentence = "Deployment shop/web is being deleted, and waits for its finalizers: a, b.";
    let next = "kubectl get deployments.apps/web -n shop -o yaml";
    told(&deleting, "TemplateDeleting", sentence, next);
}

/// A kind that the user skips is told as such, and not as one without a policy.
#[test]
fn kind_is_skipped() {
    let mut skipped = unbound();
    skipped.skipped.apis = "apps/v1/Deployment".parse().unwrap();
    let sentence =
        "Deployment shop/web is not propagated: the propagation-controller skips deployments.apps.";
    let next =
        "kubectl --context host get deployment/propagation-controller -n karmada-system -o yaml";
    told(&skipped, "KindSkipped", sentence, next);
}

/// An obstacle of a namespace is told of it.
#[test]
fn namespace_is_skipped() {
    let mut skipped = unbound();
    skipped.skipped.namespaces = vec!["sh.p".parse().unwrap()];
    let sentence =
        "Deployment shop/web is not propagated: the propagation-controller skips namespace shop.";
    let next =
        "kubectl --context host get deployment/propagation-controller -n karmada-system -o yaml";
    told(&skipped, "NamespaceSkipped", sentence, next);

    let namespace = |name: &str, labels: Value| {
        let mut facts = facts();
        facts.kind.group.clear();
        facts.kind.kind = "Namespace".to_owned();
        facts.kind.plural = "namespaces".to_owned();
        facts.key = Key::cluster_scoped(name);
        facts.template = Some(json!({ "apiVersion": "v1", "kind": "Namespace",
            "metadata": { "name": name, "labels": labels } }));
        facts.binding = None;
        facts.works.clear();
        facts
    };
    let label = "namespace.karmada.io/skip-auto-propagation";
    let sentence = format!("Namespace shop stays out of the members: its label {label} says so.");
    let next = format!("kubectl label namespaces/shop {label}-");
    told(
        &namespace("shop", json!({ label: "true" })),
        "NamespaceSkipped",
        &sentence,
        &next,
    );
    let sentence = "Namespace default stays out of the members, as those of Kubernetes and Karmada themselves do.";
    let next = "kubectl get namespaces";
    told(
        &namespace("default", json!({})),
        "NamespaceSkipped",
        sentence,
        next,
    );
    // Every member is to have it, without a policy.
    let sentence =
        "Namespace shop has no Work for member1 yet (1 other cluster is in trouble, too).";
    told(
        &namespace("shop", json!({})),
        "NoWork",
        sentence,
        "kubectl describe namespaces/shop",
    );
}

/// Where no policy has the template, the nearest tells its obstacle.
#[test]
fn nearest_policy_is_named() {
    let mut none = unbound();
    none.policies.clear();
    let sentence = "No policy selects Deployment shop/web, and none comes near.";
    let next = "kubectl get propagationpolicies,clusterpropagationpolicies -n shop";
    told(&none, "NoPolicy", sentence, next);
    let of = "apps/v1";
    for (selector, but) in [
        (
            json!({ "apiVersion": of, "kind": "Deployment", "name": "api" }),
            "selects the name api",
        ),
        (
            json!({ "apiVersion": of, "kind": "Deployment", "labelSelector": {
                "matchLabels": { "app": "api" },
                "matchExpressions": [{ "key": "tier", "operator": "Exists" }] } }),
            "selects the labels app=api,tier Exists",
        ),
        (
            json!({ "apiVersion": "apps/v1beta1", "kind": "Deployment" }),
            "selects the version apps/v1beta1",
        ),
        (
            json!({ "apiVersion": of, "kind": "Deployment", "namespace": "other" }),
            "selects the namespace other",
        ),
    ] {
        let sentence = format!(
            "No policy selects Deployment shop/web: PropagationPolicy shop/web comes nearest, and {but}."
        );
        told(&selecting(selector), "NoPolicy", &sentence, GET_POLICY);
    }
    let other = json!({ "apiVersion": "v1", "kind": "Service" });
    let sentence = "No policy selects Deployment shop/web, and none comes near.";
    told(&selecting(other), "NoPolicy", sentence, next);

    let mut lost = facts();
    lost.policies.clear();
    let sentence = "No policy selects Deployment shop/web, and none comes near; what was made of it before stays as it is.";
    told(&lost, "NoPolicy", sentence, next);
}

/// A policy that selects the template and is not applied says why.
#[test]
fn policy_is_not_applied() {
    let selects = "PropagationPolicy shop/web selects Deployment shop/web, and is not applied:";
    let next = "kubectl describe propagationpolicy/web -n shop";
    let mut invalid = unbound();
    let pause = json!({ "dispatching": true, "dispatchingOnClusters": { "clusterNames": ["m"] } });
    invalid.policies[0].spec.suspension = from_value::<Option<Suspension>>(pause).unwrap();
    let sentence = format!(
        "{selects} suspension dispatching cannot co-exist with dispatchingOnClusters.clusterNames."
    );
    told(&invalid, "PolicyNotApplied", &sentence, next);
    let mut newer = unbound();
    let placement = json!({ "replicaScheduling": { "replicaSchedulingType": "Newer" } });
    newer.policies[0].spec.placement = Some(placement);
    let sentence = Report::of(&newer).summary;
    assert!(
        sentence.contains("is not supported by karmada-rs"),
        "{sentence}"
    );
    told(&newer, "PolicyNotApplied", &sentence, next);
    let mut deleting = unbound();
    let time = from_value(json!("2026-11-22T00:00:00Z")).unwrap();
    deleting.policies[0].metadata.deletion_timestamp = time;
    let sentence = format!("{selects} it is being deleted.");
    told(&deleting, "PolicyNotApplied", &sentence, next);
}

/// A policy that waits names the reason: its override policies, or an edit.
#[test]
fn policy_waits() {
    let mut overrides = unbound();
    overrides.policies[0].spec.dependent_overrides = vec!["there".to_owned(), "gone".to_owned()];
    overrides.overrides = [Key::new("shop", "there")].into();
    let sentence = "PropagationPolicy shop/web has Deployment shop/web, and waits for override policies that do not exist: gone.";
    told(
        &overrides,
        "AwaitsOverrides",
        sentence,
        "kubectl get overridepolicies -n shop",
    );

    let edit = "kubectl edit deployments.apps/web -n shop";
    let mut lazy = unbound();
    lazy.policies[0].spec.activation_preference = Some("Lazy".to_owned());
    let younger = from_value(json!("2026-11-22T00:00:00Z")).unwrap();
    lazy.policies[0].metadata.creation_timestamp = younger;
    let sentence = "PropagationPolicy shop/web is Lazy: Deployment shop/web follows it when it is edited next.";
    told(&lazy, "AwaitsEdit", sentence, edit);

    let mut behind = facts();
    behind.policies[0].spec.activation_preference = Some("Lazy".to_owned());
    behind.policies[0].metadata.generation = Some(2);
    let record = json!({ "policy": "shop/web", "uid": policy().metadata.uid(), "generation": 1,
        "template": "" });
    let annotations = behind
        .binding
        .as_mut()
        .unwrap()
        .metadata
        .annotations
        .as_mut()
        .unwrap();
    annotations.insert("karmada-rs.io/activated".to_owned(), record.to_string());
    let sentence = "Deployment shop/web is not as its policy says: Generation 2 of policy shop/web waits for the next edit of the template, which follows generation 1.";
    told(&behind, "AwaitsEdit", sentence, edit);
}

/// A kind that may not be propagated comes with the command that grants it, and one that nobody interprets with the reason.
#[test]
fn kind_is_left_alone() {
    let role: ClusterRole = from_value(json!({ "metadata": { "name": "r" }, "rules": [
        { "apiGroups": [""], "resources": ["services"], "verbs": ["list", "watch", "patch"] }] }))
    .unwrap();
    let mut forbidden = unbound();
    forbidden.roles = Some(vec![role]);
    let sentence = "PropagationPolicy shop/web selects Deployment shop/web, and the propagation-controller may not propagate apps/deployments.";
    let next = "kubectl remedy rights apps/deployments | kubectl apply -f -";
    told(&forbidden, "KindNotGranted", sentence, next);
    let mut refused = unbound();
    refused.refusal = Some("a script that interprets it cannot be read: line 1".to_owned());
    let sentence = "Deployment shop/web is not propagated: a script that interprets it cannot be read: line 1.";
    let next = "kubectl describe resourceinterpretercustomizations";
    told(&refused, "KindNotInterpreted", sentence, next);
}

/// A binding that nobody makes, or that goes, is the cause.
#[test]
fn binding_is_missing() {
    let sentence = "PropagationPolicy shop/web has Deployment shop/web, and no propagation-controller has made its binding.";
    told(
        &unbound(),
        "NotBound",
        sentence,
        "kubectl describe deployments.apps/web -n shop",
    );
    let mut deleting = facts();
    let time = from_value(json!("2026-11-22T00:00:00Z")).unwrap();
    deleting
        .binding
        .as_mut()
        .unwrap()
        .metadata
        .deletion_timestamp = time;
    let sentence = "The binding of Deployment shop/web is being deleted.";
    told(&deleting, "BindingDeleting", sentence, GET_BINDING);
}

/// Returns the facts with a binding without clusters.
fn scheduled(condition: Option<(&str, &str)>) -> Facts {
    let mut facts = facts();
    let binding = facts.binding.as_mut().unwrap();
    binding.spec.clusters = None;
    let condition = condition.map(|(reason, message)| {
        let condition = json!({ "type": "Scheduled", "status": "False", "reason": reason,
                "message": message });
        from_value(condition).unwrap()
    });
    binding.status.as_mut().unwrap().conditions = Some(condition.into_iter().collect());
    facts
}

/// A binding without clusters tells the result of scheduling.
#[test]
fn binding_has_no_clusters() {
    let sentence = "Deployment shop/web is not scheduled: default-scheduler has not decided about its binding.";
    told(&scheduled(None), "NotScheduled", sentence, LEASES);
    let is = "Deployment shop/web is not scheduled:";
    let room = "kubectl get clusters -o custom-columns=NAME:.metadata.name,ALLOCATABLE:.status.resourceSummary.allocatable,ALLOCATED:.status.resourceSummary.allocated";
    let chosen_by = "kubectl get clusters -o custom-columns=NAME:.metadata.name,LABELS:.metadata.labels,TAINTS:.spec.taints";
    for (reason, message, next) in [
        (
            "NoClusterFit",
            "0/2 clusters are available: 2 cluster(s) did not match the placement cluster affinity constraint.",
            chosen_by,
        ),
        (
            "Unschedulable",
            "Clusters available replicas 3 are not enough to schedule.",
            room,
        ),
        (
            "SchedulerError",
            "the number of feasible region is less than spreadConstraint.MinGroups",
            DESCRIBE_BINDING,
        ),
    ] {
        let sentence = format!("{is} {}.", message.trim_end_matches('.'));
        told(
            &scheduled(Some((reason, message))),
            "Unschedulable",
            &sentence,
            next,
        );
    }
    let mut paused = scheduled(None);
    let spec = &mut paused.binding.as_mut().unwrap().spec;
    spec.suspension = from_value(json!({ "scheduling": true })).unwrap();
    let sentence = "Scheduling is suspended in the binding of Deployment shop/web.";
    told(&paused, "SchedulingSuspended", sentence, GET_BINDING);
    let mut nowhere = facts();
    nowhere.binding.as_mut().unwrap().spec.clusters = None;
    nowhere.works.clear();
    let sentence = "Deployment shop/web is scheduled to no cluster.";
    told(&nowhere, "NoCluster", sentence, GET_BINDING);
}

/// A Work that is not there, or is not applied, says why.
#[test]
fn work_is_not_applied() {
    let web = "Deployment shop/web";
    let describe = format!("kubectl describe {MEMBER2_WORK}");
    let mut failed = facts();
    set_applied(&mut failed, Some(("False", "exceeded quota:\n compute")));
    let sentence = format!("{web} is not applied in member2: exceeded quota: compute.");
    told(&failed, "ApplyFailed", &sentence, &describe);
    let mut silent = facts();
    set_applied(&mut silent, None);
    let sentence = format!("{web} has a Work for member2 that nobody has applied yet.");
    told(&silent, "NotApplied", &sentence, LEASES);
    let mut deleting = facts();
    let time = from_value(json!("2026-11-22T00:00:00Z")).unwrap();
    work(&mut deleting, "member2").metadata.deletion_timestamp = time;
    let sentence =
        format!("The Work of {web} for member2 is being deleted, and makes room for a new one.");
    told(&deleting, "WorkDeleting", &sentence, &describe);
    let mut missing = facts();
    missing
        .works
        .retain(|work| work.metadata.namespace() != "karmada-es-member2");
    let sentence = format!("{web} has no Work for member2 yet.");
    told(&missing, "NoWork", &sentence, DESCRIBE_BINDING);
    let mut taken = facts();
    let annotations = work(&mut taken, "member2")
        .metadata
        .annotations
        .as_mut()
        .unwrap();
    annotations.insert(
        karmada_api::names::BINDING_NAME.to_owned(),
        "other".to_owned(),
    );
    let sentence =
        format!("{web} has no Work for member2: binding shop/other has the one of its name.");
    told(
        &taken,
        "WorkTaken",
        &sentence,
        &format!("kubectl get {MEMBER2_WORK} -o yaml"),
    );
}

/// A pause is told with whether the cluster is up to date, and whose it is.
#[test]
fn work_is_paused() {
    let next = "kubectl get propagationpolicy/web -n shop -o jsonpath={.spec.suspension}";
    let mut paused = facts();
    work(&mut paused, "member2").spec.suspend_dispatching = Some(true);
    let sentence = "Deployment shop/web is paused in member2, which does not have it as it is now.";
    told(&paused, "Paused", sentence, next);
    let delivered = work(&mut paused, "member2");
    let generation = delivered.metadata.generation;
    for condition in &mut delivered.status.as_mut().unwrap().conditions {
        condition.observed_generation = generation;
    }
    let sentence = "Deployment shop/web is paused in member2, which has all there is to have now.";
    told(&paused, "Paused", sentence, next);
}

/// A member that is not ready is the cause where an object is not applied, and is told where it is.
#[test]
fn member_is_not_ready() {
    let message = "cluster is not reachable: Unauthorized";
    let next = "kubectl describe cluster/member2";
    let mut away = facts();
    away.clusters
        .extend([cluster("member2", "False", "ClusterNotReachable", message)]);
    let sentence = format!(
        "Deployment shop/web was applied in member2, which is not ready now: ClusterNotReachable: {message}."
    );
    told(&away, "ClusterNotReady", &sentence, next);
    set_applied(&mut away, Some(("False", "no connection")));
    let sentence = format!(
        "Deployment shop/web is not applied in member2, which is not ready: ClusterNotReachable: {message}."
    );
    told(&away, "ClusterUnreachable", &sentence, next);
    away.clusters.remove("member2");
    let sentence = "Deployment shop/web is to be in member2, which does not exist.";
    told(&away, "ClusterMissing", sentence, "kubectl get clusters");
}

/// Of several clusters in trouble the gravest is told, and that there are others.
#[test]
fn gravest_trouble_is_told() {
    let mut facts = facts();
    set_health(work(&mut facts, "member1"), "Unhealthy");
    let next = "kubectl get work/web-56d6c779bb -n karmada-es-member1 -o jsonpath={.status.manifestStatuses}";
    let sentence = "Deployment shop/web is applied in member1, and not healthy there.";
    told(&facts, "Unhealthy", sentence, next);
    set_applied(&mut facts, Some(("False", "exceeded quota.")));
    let sentence = "Deployment shop/web is not applied in member2: exceeded quota (1 other cluster is in trouble, too).";
    told(
        &facts,
        "ApplyFailed",
        sentence,
        &format!("kubectl describe {MEMBER2_WORK}"),
    );
}

/// An eviction under way is told once nothing else is wrong, and a Work that nobody needs where it is asked about.
#[test]
fn cluster_is_left() {
    let mut leaving = facts();
    let spec = &mut leaving.binding.as_mut().unwrap().spec;
    spec.clusters
        .as_mut()
        .unwrap()
        .retain(|target| target.name == "member1");
    let mut former = leaving.clone();
    let spec = &mut leaving.binding.as_mut().unwrap().spec;
    let task = json!({ "fromCluster": "member2", "purgeMode": "Gracefully", "reason": "Taint" });
    spec.graceful_eviction_tasks = Some(vec![from_value(task).unwrap()]);
    let sentence = "Deployment shop/web is leaving member2, where its copy stays until those elsewhere are healthy.";
    told(&leaving, "Leaving", sentence, GET_BINDING);
    let sentence = "Deployment shop/web is in member1, as it is to be.";
    told(&former, "Nothing", sentence, DESCRIBE_BINDING);
    former.only = Some("member2".to_owned());
    let sentence = "Deployment shop/web is not to be in member2 any more.";
    told(
        &former,
        "NotNeeded",
        sentence,
        &format!("kubectl describe {MEMBER2_WORK}"),
    );
}

/// A template that others require needs no policy, and a Work of nobody's no template.
#[test]
fn followers_need_no_policy() {
    let mut follower = facts();
    follower.policies.clear();
    let spec = &mut follower.binding.as_mut().unwrap().spec;
    let clusters = spec.clusters.take();
    spec.placement = None;
    let required = json!([{ "namespace": "shop", "name": "api-deployment", "clusters": clusters }]);
    spec.required_by = from_value(required).unwrap();
    let sentence = "Deployment shop/web is in member1 and member2, as it is to be.";
    told(&follower, "Nothing", sentence, DESCRIBE_BINDING);

    let mut alone = facts();
    alone.template = None;
    alone.binding = None;
    alone.policies.clear();
    alone
        .works
        .retain(|work| work.metadata.namespace() == "karmada-es-member2");
    alone.kind.group = "work.karmada.io".to_owned();
    alone.kind.kind = "Work".to_owned();
    alone.kind.plural = "works".to_owned();
    alone.key = Key::new("karmada-es-member2", "web-56d6c779bb");
    alone.only = Some("member2".to_owned());
    let sentence = "Work karmada-es-member2/web-56d6c779bb is in member2, as it is to be.";
    let next = "kubectl describe works.work.karmada.io/web-56d6c779bb -n karmada-es-member2";
    told(&alone, "Nothing", sentence, next);
}

use karmada_api::{ClusterView, OverridePolicy, ResourceBinding, Suspension, execution_namespace};
use objects::patch::JsonPatch;
use objects::write::Action;
use proptest::prelude::*;
use serde_json::{Value, from_value, json, to_value};

use super::*;
use crate::binding_ref::BindingRef;
use crate::fixtures::{self, cluster};
use crate::interpret::Timed;
use crate::overrides::Overrides;

const MEMBERS: [&str; 3] = ["member1", "member2", "member3"];

/// Everything that plans refer to.
struct World {
    binding: ResourceBinding,
    template: Value,
    revised: BTreeMap<i32, Result<Timed, String>>,
    clusters: Vec<ClusterView>,
    policies: Vec<OverridePolicy>,
    policy_suspension: Option<Suspension>,
    works: Vec<Work>,
    referrers: BTreeMap<Key, Option<Suspension>>,
}

impl World {
    /// Returns the world of the recorded Deployment.
    fn recorded() -> Self {
        let (template, binding) = fixtures::deployment();
        Self {
            binding,
            template,
            revised: BTreeMap::new(),
            clusters: MEMBERS.map(cluster).into(),
            policies: vec![fixtures::override_policy()],
            policy_suspension: None,
            works: works_of("web-56d6c779bb"),
            referrers: BTreeMap::new(),
        }
    }

    fn facts(&self) -> WorkFacts<'_> {
        facts((&self.binding).into(), &self.template, self)
    }

    fn plan(&self) -> BTreeMap<String, Step> {
        plan(&self.facts(), || "new".to_owned())
    }

    fn step(&self, cluster: &str) -> Step {
        self.plan().remove(cluster).unwrap()
    }

    fn suspend(&mut self, suspension: Value) {
        self.binding.spec.suspension = from_value(suspension).unwrap();
    }

    fn schedule(&mut self, clusters: &[&str]) {
        let targets = clusters.iter().map(|name| TargetCluster {
            name: (*name).to_owned(),
            replicas: Some(2),
            ..TargetCluster::default()
        });
        self.binding.spec.clusters = Some(targets.collect());
    }

    fn work(&mut self, cluster: &str) -> &mut Work {
        let namespace = execution_namespace(cluster);
        let mut works = self.works.iter_mut();
        works
            .find(|work| work.metadata.namespace.as_ref() == Some(&namespace))
            .unwrap()
    }

    /// Applies the plan as an API server does.
    fn settle(&mut self) {
        for (cluster, step) in self.plan() {
            let Ok(Some(write)) = step else {
                continue;
            };
            match write.action {
                Action::Create(mut body) => {
                    body["metadata"]["generation"] = 1.into();
                    self.works.push(from_value(body).unwrap());
                }
                Action::Json(patch) => {
                    let work = self.work(&cluster);
                    let before = work.spec.clone();
                    *work = patched(work, &patch);
                    if work.spec != before {
                        work.metadata.generation = work.metadata.generation.map(|g| g + 1);
                    }
                }
                _ => self.works.retain(|work| Key::of(work) != write.object.key),
            }
        }
    }
}

fn works_of(name: &str) -> Vec<Work> {
    let mut works = fixtures::works();
    works.retain(|work| work.metadata.name.as_deref() == Some(name));
    works
}

fn facts<'a>(binding: BindingRef<'a>, template: &'a Value, world: &'a World) -> WorkFacts<'a> {
    let clusters = world.clusters.iter();
    let clusters = clusters.map(|cluster| (cluster.metadata.name(), cluster));
    WorkFacts {
        binding,
        template,
        revised: world.revised.clone(),
        clusters: clusters.collect(),
        overrides: Overrides {
            policies: world.policies.iter().collect(),
            ..Overrides::default()
        },
        policy_suspension: world.policy_suspension.as_ref(),
        works: world.works.iter().collect(),
        is_everywhere: false,
        referrers: world
            .referrers
            .iter()
            .map(|(key, suspension)| (key.clone(), suspension.iter().collect()))
            .collect(),
    }
}

fn patched(work: &Work, patch: &JsonPatch) -> Work {
    let mut object = to_value(work).unwrap();
    json_patch::patch(&mut object, patch.operations()).unwrap();
    from_value(object).unwrap()
}

const UNCHANGED: Step = Ok(None);

/// Returns the patch of a Work.
#[track_caller]
fn patch_of(step: Step) -> JsonPatch {
    match step.map(|write| write.map(|write| write.action)) {
        Ok(Some(Action::Json(patch))) => patch,
        other => panic!("not patched: {other:?}"),
    }
}

/// Returns the body of a new Work.
#[track_caller]
fn body_of(step: Step) -> Value {
    match step.map(|write| write.map(|write| write.action)) {
        Ok(Some(Action::Create(body))) => body,
        other => panic!("not created: {other:?}"),
    }
}

/// Returns the paths of the patch of a Work, and `true` if its manifest is among them.
#[track_caller]
fn paths_of(step: Step) -> (Vec<String>, bool) {
    let patch = patch_of(step);
    let paths: Vec<_> = patch.paths().map(ToString::to_string).collect();
    let manifest = paths.iter().any(|path| path == "/spec/workload");
    (paths, manifest)
}

fn is_deletion(step: &Step) -> bool {
    matches!(step, Ok(Some(write)) if write.action == Action::Delete)
}

/// The works of Karmada are taken over as they are.
#[test]
fn karmadas_works_are_taken_over() {
    let world = World::recorded();
    for (template, binding) in fixtures::bound() {
        let binding = BindingRef::from(&binding);
        let mut world = World::recorded();
        world.works = works_of(&work_name(binding));
        let plan = plan(&facts(binding, &template, &world), String::new);
        let expected = ["member1", "member2"].map(|name| (name.to_owned(), UNCHANGED));
        assert_eq!(plan, expected.into(), "{}", binding.key());
    }
    let (template, binding) = fixtures::role();
    let binding = BindingRef::from(&binding);
    let mut world = World {
        policies: vec![],
        ..world
    };
    world.works = works_of(&work_name(binding));
    let plan = plan(&facts(binding, &template, &world), String::new);
    assert_eq!(plan, [("member3".to_owned(), UNCHANGED)].into());
}

fn parsed(value: Option<&Value>) -> Option<Value> {
    value.map(|text| serde_json::from_str(text.as_str().unwrap()).unwrap())
}

fn assert_made_alike(binding: BindingRef<'_>, template: &Value, policies: &[OverridePolicy]) {
    for work in works_of(&work_name(binding)) {
        let mut world = World {
            policies: policies.to_vec(),
            ..World::recorded()
        };
        world.works.clear();
        let id = work.metadata.labels.as_ref().unwrap()[names::WORK_ID].clone();
        let mut plan = plan(&facts(binding, template, &world), || id.clone());
        let member = cluster_of(&work).unwrap();
        let mut body = body_of(plan.remove(member).unwrap());
        assert_eq!(
            body["spec"],
            to_value(&work.spec).unwrap(),
            "{member} {}",
            binding.key()
        );
        let annotations = body["metadata"]["annotations"].as_object_mut().unwrap();
        assert_eq!(
            annotations.remove(names::MANIFEST_GENERATION),
            Some("1".into())
        );
        let recorded = to_value(&work.metadata).unwrap();
        for list in [names::APPLIED_OVERRIDES, names::APPLIED_CLUSTER_OVERRIDES] {
            let ours = annotations.remove(list);
            let theirs = recorded["annotations"].get(list);
            assert_eq!(parsed(ours.as_ref()), parsed(theirs), "{list}");
        }
        for (key, value) in annotations {
            assert_eq!(recorded["annotations"][key.as_str()], *value, "{key}");
        }
        for field in ["name", "namespace", "labels", "finalizers"] {
            assert_eq!(body["metadata"][field], recorded[field], "{field}");
        }
    }
}

/// A work that is made anew is that of Karmada to the letter.
#[test]
fn new_work_matches_karmadas() {
    for (template, binding) in fixtures::bound() {
        assert_made_alike((&binding).into(), &template, &[fixtures::override_policy()]);
    }
    let (template, binding) = fixtures::role();
    assert_made_alike((&binding).into(), &template, &[]);
}

/// A paused work of Karmada is taken over as it is.
#[test]
fn karmadas_paused_work_stays() {
    let (binding, work) = fixtures::paused();
    let mut world = World {
        binding,
        ..World::recorded()
    };
    let generation = world.template.pointer_mut("/metadata/generation").unwrap();
    *generation = 3.into();
    let image = "/spec/template/spec/containers/0/image";
    *world.template.pointer_mut(image).unwrap() = "registry.example.com/shop/web:1.5.0".into();
    *world.work("member2") = work;
    let (paths, manifest) = paths_of(world.step("member1"));
    assert!(
        manifest,
        "the recording has member1 as it was before the new image: {paths:?}"
    );
    assert_eq!(world.step("member2"), UNCHANGED);
}

/// A claim and a generation alone are not written to works.
#[test]
fn claim_alone_is_not_written() {
    let mut world = World::recorded();
    let metadata = world.template.get_mut("metadata").unwrap();
    metadata["generation"] = 9.into();
    metadata["labels"] = json!({ "app": "web", names::CLUSTER_POLICY_ID: "other" });
    metadata["annotations"]
        .as_object_mut()
        .unwrap()
        .remove(names::POLICY_NAME);
    assert_eq!(world.step("member1"), UNCHANGED);
    world.template["metadata"]["labels"]["tier"] = "front".into();
    let (paths, manifest) = paths_of(world.step("member1"));
    assert!(manifest);
    let record = "/metadata/annotations/karmada-rs.io~1manifest-generation";
    assert_eq!(paths, [record, "/spec/workload"]);
}

fn follow(world: &mut World, policy: &str) {
    let record = json!({ "policy": policy, "template": "1:0:0" }).to_string();
    let annotations = world.binding.metadata.annotations.get_or_insert_default();
    annotations.insert(names::ACTIVATED.to_owned(), record);
}

/// Works name the next policy once the binding follows it.
#[test]
fn followed_policy_is_named() {
    let mut world = World::recorded();
    let next = json!({ names::POLICY_NAMESPACE: "shop", names::POLICY_NAME: "next" });
    for (key, value) in next.as_object().unwrap() {
        world.template["metadata"]["annotations"][key] = value.clone();
        let annotations = world.binding.metadata.annotations.get_or_insert_default();
        annotations.insert(key.clone(), value.as_str().unwrap().to_owned());
    }
    follow(&mut world, "shop/web");
    assert_eq!(world.step("member1"), UNCHANGED);
    follow(&mut world, "shop/next");
    assert!(paths_of(world.step("member1")).1);
}

fn state_after_move(clusters: &[&str], mode: &str, before: &str) -> Option<String> {
    let mut world = World::recorded();
    world.schedule(clusters);
    let task = json!({ "fromCluster": "gone", "purgeMode": mode,
        "preservedLabelState": { "checkpoint": "7" }, "clustersBeforeFailover": [before] });
    world.binding.spec.graceful_eviction_tasks = from_value(json!([task])).unwrap();
    let action = world.step("member1").unwrap()?.action;
    let Action::Json(patch) = action else {
        return None;
    };
    let work = patched(world.work("member1"), &patch);
    let manifest = &work.spec.workload.manifests[0];
    manifest.label("checkpoint").map(str::to_owned)
}

/// A workload takes its state to its one new cluster.
#[test]
fn state_moves_with_workload() {
    let mut world = World::recorded();
    assert_eq!(
        state_after_move(&["member1"], "Directly", "gone").as_deref(),
        Some("7")
    );
    assert_eq!(
        state_after_move(&["member1"], "Immediately", "gone").as_deref(),
        Some("7")
    );
    for (clusters, mode, before) in [
        (&["member1", "member2"][..], "Directly", "gone"),
        (&["member1"], "Gracefully", "gone"),
        (&["member1"], "Directly", "member1"),
    ] {
        assert_eq!(
            state_after_move(clusters, mode, before),
            None,
            "{clusters:?} {mode} {before}"
        );
    }
    world.binding.spec.graceful_eviction_tasks = None;
    assert_eq!(world.step("member1"), UNCHANGED);
}

/// Case P20: a suspension is written without a change of the manifest and records its generation; it ends in three ways.
#[test]
fn suspension_records_manifest_generation() {
    let mut world = World::recorded();
    world.suspend(json!({ "dispatchingOnClusters": { "clusterNames": ["member2"] } }));
    assert_eq!(world.step("member1"), UNCHANGED);
    let (paths, manifest) = paths_of(world.step("member2"));
    let record = "/metadata/annotations/karmada-rs.io~1manifest-generation";
    assert_eq!(paths, [record, "/spec/suspendDispatching"]);
    assert!(!manifest);
    world.settle();
    let work = world.work("member2");
    assert!(work.is_suspended());
    let annotations = work.metadata.annotations.as_ref().unwrap();
    assert_eq!(annotations[names::MANIFEST_GENERATION], "1");
    assert_eq!(work.metadata.generation, Some(2));
    for resumed in [json!(null), json!({}), json!({ "dispatching": false })] {
        world.suspend(resumed);
        let (paths, _) = paths_of(world.step("member2"));
        assert_eq!(paths, ["/spec/suspendDispatching"]);
    }
}

/// A Namespace stays where its policy no longer wants it: every member has it, and with it everything in it would go. Its Work
/// is the Namespace's again. Case P93.
#[test]
fn namespace_is_given_back() {
    let mut world = World::recorded();
    world.schedule(&["member1"]);
    let spec = &mut world.work("member2").spec;
    spec.suspend_dispatching = Some(true);
    spec.preserve_resources_on_deletion = Some(true);
    let facts = WorkFacts {
        is_everywhere: true,
        ..world.facts()
    };
    let mut steps = plan(&facts, || "new".to_owned());
    let patch = patch_of(steps.remove("member2").unwrap());
    assert_eq!(patch.value(["spec", "workload"]), None);
    let id_label = facts.binding.id_label();
    let work = patched(world.work("member2"), &patch);
    assert_eq!(bound(&work.metadata), None);
    assert_eq!(work.metadata.label(id_label), None);
    assert_eq!(work.metadata.annotation(names::CONFLICT_RESOLUTION), None);
    let spec = &work.spec;
    assert_eq!(
        (
            spec.suspend_dispatching,
            spec.preserve_resources_on_deletion
        ),
        (None, None)
    );
    assert_eq!(work.metadata.owner_references.unwrap()[0].kind, "Namespace");
}

/// Case P8: a cluster that is not needed loses its work unless it leaves with grace.
#[test]
fn unneeded_work_is_deleted() {
    let mut world = World::recorded();
    world.schedule(&["member1"]);
    let uid = world.work("member2").metadata.uid.clone();
    let key = Key::new("karmada-es-member2", "web-56d6c779bb");
    let orphaned = Ok(Some(deletion(key, uid)));
    assert_eq!(world.step("member2"), orphaned);
    let task =
        |mode: &str| from_value(json!([{ "fromCluster": "member2", "purgeMode": mode }])).unwrap();
    for mode in ["Gracefully", "Never", ""] {
        world.binding.spec.graceful_eviction_tasks = task(mode);
        assert_eq!(world.step("member2"), Err(Unwritten::Keep), "{mode}");
    }
    world.binding.spec.graceful_eviction_tasks = task("Directly");
    assert_eq!(world.step("member2"), orphaned);
    let work = world.work("member2");
    let deletion = work.metadata.creation_timestamp.clone();
    work.metadata.deletion_timestamp = deletion;
    assert_eq!(world.step("member2"), Err(Unwritten::Deleting));
    world.work("member2").metadata.deletion_timestamp = None;
    world.binding.spec.graceful_eviction_tasks = None;
    world.binding.spec.required_by =
        from_value(json!([{ "name": "x", "clusters": [{ "name": "member2" }] }])).unwrap();
    let step = world.step("member2");
    let (_, manifest) = paths_of(step);
    assert!(
        manifest,
        "a cluster that only requires it has the template's own replicas"
    );
}

/// Nothing comes to a cluster before a copy that leaves another directly is gone.
#[test]
fn direct_purge_comes_first() {
    let mut world = World::recorded();
    world.schedule(&["member1", "member3"]);
    world.template["metadata"]["labels"]["tier"] = "front".into();
    let tasks = json!([{ "fromCluster": "member2", "purgeMode": "Directly" }]);
    world.binding.spec.graceful_eviction_tasks = from_value(tasks).unwrap();
    assert!(is_deletion(&world.step("member2")));
    for cluster in ["member1", "member3"] {
        assert_eq!(
            world.step(cluster),
            Err(Unwritten::AwaitRemoval),
            "{cluster}"
        );
    }
    // A pause is not put off.
    let there = json!({ "dispatchingOnClusters": { "clusterNames": ["member1"] } });
    world.suspend(there);
    let (paths, _) = paths_of(world.step("member1"));
    assert!(paths.contains(&"/spec/suspendDispatching".to_owned()));
    world.suspend(Value::Null);

    let deletion = world.work("member2").metadata.creation_timestamp.clone();
    world.work("member2").metadata.deletion_timestamp = deletion;
    assert_eq!(world.step("member2"), Err(Unwritten::Deleting));
    assert_eq!(world.step("member3"), Err(Unwritten::AwaitRemoval));
    world
        .works
        .retain(|work| cluster_of(work) != Some("member2"));
    let plan = world.plan();
    assert!(paths_of(plan["member1"].clone()).1);
    body_of(plan["member3"].clone());
}

/// A copy that comes back to a cluster that it left directly waits for nothing.
#[test]
fn return_awaits_no_removal() {
    let mut world = World::recorded();
    world.schedule(&["member2", "member3"]);
    let tasks = json!([{ "fromCluster": "member2", "purgeMode": "Directly" }]);
    world.binding.spec.graceful_eviction_tasks = from_value(tasks).unwrap();
    assert_ne!(world.step("member3"), Err(Unwritten::AwaitRemoval));
}

/// A suspension that the policy has and the binding not yet holds edits and copies.
#[test]
fn policys_suspension_holds_edits() {
    let mut world = World::recorded();
    world.template["metadata"]["labels"]["edited"] = "true".into();
    world.schedule(&["member1"]);
    world.policy_suspension = from_value(json!({ "dispatching": true })).unwrap();
    let (paths, manifest) = paths_of(world.step("member1"));
    assert!(
        manifest && paths.contains(&"/spec/suspendDispatching".to_owned()),
        "{paths:?}"
    );
    assert_eq!(world.step("member2"), Err(Unwritten::HoldWhilePaused));
}

/// Case P27: while dispatching is suspended no copy goes before its replacement is there.
#[test]
fn pause_holds_unreplaced_copy() {
    let mut world = World::recorded();
    // Wholly suspended, or in its own cluster: every copy stays.
    for suspension in [
        json!({ "dispatching": true }),
        json!({ "dispatchingOnClusters": { "clusterNames": ["member2"] } }),
    ] {
        world.schedule(&["member1"]);
        world.suspend(suspension);
        assert_eq!(world.step("member2"), Err(Unwritten::HoldWhilePaused));
    }
    // The replacement is suspended: the copy stays until it has arrived.
    world.suspend(json!({ "dispatchingOnClusters": { "clusterNames": ["member3"] } }));
    world.schedule(&["member1", "member3"]);
    assert_eq!(world.step("member2"), Err(Unwritten::HoldWhilePaused));
    world.settle();
    assert_eq!(world.step("member2"), Err(Unwritten::HoldWhilePaused));
    let [undated, applied] = [None, Some(1)].map(|generation| {
        from_value(json!({ "conditions": [
            { "type": "Applied", "status": "True", "observedGeneration": generation },
        ] }))
        .unwrap()
    });
    world.work("member3").status = undated;
    assert_eq!(
        world.step("member2"),
        Err(Unwritten::HoldWhilePaused),
        "no generation: an earlier manifest"
    );
    world.work("member3").status = applied;
    assert!(is_deletion(&world.step("member2")));
    // Its manifest changes in this very step: it is not the delivered one any more.
    world.template["metadata"]["labels"]["tier"] = "front".into();
    assert_eq!(world.step("member2"), Err(Unwritten::HoldWhilePaused));
    world.suspend(json!(null));
    assert!(is_deletion(&world.step("member2")));
}

/// Case P29: a binding that others require is suspended where all of them are.
#[test]
fn suspended_where_all_referrers_are() {
    let mut world = World::recorded();
    world.binding.spec.clusters = None;
    let required_by = ["a", "b"].map(
        |name| json!({ "namespace": "shop", "name": name, "clusters": [{ "name": "member1" }] }),
    );
    world.binding.spec.required_by = from_value(json!(required_by)).unwrap();
    let paused: Option<Suspension> = from_value(json!({ "dispatching": true })).unwrap();
    world
        .referrers
        .insert(Key::new("shop", "a"), paused.clone());
    assert!(!world.facts().is_suspended("member1"), "b is not known");
    world.referrers.insert(Key::new("shop", "b"), None);
    assert!(!world.facts().is_suspended("member1"));
    world.referrers.insert(Key::new("shop", "b"), paused);
    assert!(world.facts().is_suspended("member1"));
    assert!(!world.facts().is_suspended("member2"));
    world.schedule(&["member1"]);
    assert!(
        !world.facts().is_suspended("member1"),
        "its own policy needs it there, too"
    );
}

/// A cluster that is unknown or leaving gets no new work.
#[test]
fn leaving_cluster_gets_no_work() {
    let mut world = World::recorded();
    world.works.clear();
    world
        .clusters
        .retain(|cluster| cluster.metadata.name.as_deref() != Some("member2"));
    assert_eq!(world.step("member2"), Err(Unwritten::NoCluster));
    world.clusters[0].metadata.deletion_timestamp =
        from_value(json!("2026-11-22T00:00:00Z")).unwrap();
    assert_eq!(world.step("member1"), Err(Unwritten::NoCluster));
    world.works = works_of("web-56d6c779bb");
    assert_eq!(world.step("member1"), UNCHANGED);
}

/// An override that fails leaves the work of its clusters as it is.
#[test]
fn failing_override_keeps_work() {
    let mut world = World::recorded();
    let overriders = &mut world.policies[0].spec.override_rules[0].overriders;
    overriders["plaintext"][0]["operator"] = "upsert".into();
    assert_eq!(world.step("member1"), UNCHANGED);
    let Err(Unwritten::Refused(error)) = world.step("member2") else {
        panic!("not refused");
    };
    assert_eq!(error.policy, "web");
}

/// An override that ends is taken back with its record.
#[test]
fn ended_override_is_taken_back() {
    let mut world = World::recorded();
    world.policies.clear();
    let (paths, manifest) = paths_of(world.step("member2"));
    let removed = "/metadata/annotations/policy.karmada.io~1applied-overrides";
    assert!(paths.iter().any(|path| path == removed), "{paths:?}");
    assert!(manifest);
    world.settle();
    assert_eq!(world.step("member2"), UNCHANGED);
}

/// A work that is going is awaited and a binding without an id has none.
#[test]
fn deleting_work_is_awaited() {
    let mut world = World::recorded();
    let work = world.work("member1");
    work.metadata.deletion_timestamp = work.metadata.creation_timestamp.clone();
    assert_eq!(world.step("member1"), Err(Unwritten::AwaitDeletion));
    world.binding.metadata.labels = None;
    assert_eq!(world.plan(), BTreeMap::new());
}

fn spec_in(world: &World, cluster: &str) -> Value {
    let body = body_of(world.step(cluster));
    body["spec"]["workload"]["manifests"][0]["spec"].clone()
}

/// Replicas are those of each cluster and completions are divided.
#[test]
fn replicas_and_completions_are_divided() {
    let mut world = World::recorded();
    world.template = json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": { "namespace": "shop", "name": "web", "uid": "u" },
        "spec": { "parallelism": 4, "completions": 8 },
    });
    world.binding.spec.resource.kind = "Job".to_owned();
    world.works.clear();
    world.policies.clear();
    assert_eq!(
        spec_in(&world, "member1"),
        json!({ "parallelism": 2, "completions": 4 })
    );
    world.binding.spec.placement = Some(json!({}));
    assert_eq!(
        spec_in(&world, "member1"),
        json!({ "parallelism": 2, "completions": 8 })
    );
    world.binding.spec.replicas = None;
    assert_eq!(
        spec_in(&world, "member1"),
        json!({ "parallelism": 4, "completions": 8 })
    );
}

proptest! {
    #[test]
    fn a_second_plan_changes_nothing(
        clusters in prop::sample::subsequence(MEMBERS.to_vec(), 0..=3),
        suspended in prop::sample::subsequence(MEMBERS.to_vec(), 0..=3),
        is_wholly_suspended in any::<bool>(),
        with_policy in any::<bool>(),
        label in "[a-c]",
    ) {
        let mut world = World::recorded();
        world.schedule(&clusters);
        world.suspend(json!({
            "dispatching": is_wholly_suspended,
            "dispatchingOnClusters": { "clusterNames": suspended },
        }));
        world.template["metadata"]["labels"]["x"] = label.into();
        if !with_policy {
            world.policies.clear();
        }
        world.settle();
        for (cluster, step) in world.plan() {
            let is_settled = matches!(step, Ok(None) | Err(Unwritten::HoldWhilePaused));
            prop_assert!(is_settled, "{cluster}: {step:?}");
        }
    }
}

/// A Work that is made before the watch shows the claim of its template is that of a claimed one.
#[test]
fn claim_comes_from_binding() {
    let mut world = World::recorded();
    world.works.clear();
    let expected = world.plan();
    for (field, keys) in [
        ("labels", vec![names::POLICY_ID]),
        (
            "annotations",
            vec![names::POLICY_NAMESPACE, names::POLICY_NAME],
        ),
    ] {
        let map = world.template["metadata"][field].as_object_mut().unwrap();
        for key in keys {
            map.remove(key).unwrap();
        }
    }
    assert_eq!(world.plan(), expected);
}

/// A Work of the same name that another binding has, which may be of another namespace, is neither written nor
/// reported, and stays when this binding goes.
#[test]
fn others_works_are_left_alone() {
    let mut world = World::recorded();
    let annotations = world.works[0].metadata.annotations.as_mut().unwrap();
    annotations.insert(names::BINDING_NAMESPACE.to_owned(), "other".to_owned());
    let labels = world.works[0].metadata.labels.as_mut().unwrap();
    labels.insert(names::BINDING_ID.to_owned(), "another".to_owned());
    let cluster = cluster_of(&world.works[0]).unwrap().to_owned();
    let steps = world.plan();
    let other = Key::new("other", "web-deployment");
    assert_eq!(steps[&cluster], Err(Unwritten::Taken(other)));
    let taken = steps
        .values()
        .filter(|step| matches!(step, Err(Unwritten::Taken(_))));
    assert_eq!(taken.count(), 1, "{steps:?}");
    world.binding.spec.clusters = Some(Vec::new());
    assert_eq!(world.plan().get(&cluster), None);
}

/// Karmada's names of Works leave out group, case and colons, so a binding that could not have Karmada's name has
/// Works of its own.
#[test]
fn renamed_binding_has_own_works() {
    let mut world = World::recorded();
    let karmadas = work_name((&world.binding).into());
    world.binding.metadata.name = names::bindings("apps", "Deployment", "web").last();
    assert_ne!(work_name((&world.binding).into()), karmadas);
}

/// Case I65: the manifest that a script makes of the template comes before that of the rule of its kind, and a time
/// that it puts in stays as it was first.
#[test]
fn script_revises_first() {
    let mut world = World::recorded();
    world.settle();
    world.schedule(&["member1"]);
    let [first, second] = ["first", "second"].map(|at| {
        let mut object = world.template.clone();
        object["spec"]["paused"] = json!(true);
        object["spec"]["at"] = json!(at);
        object
    });
    let revised = Timed {
        value: first.clone(),
        at_another_time: Some(second.clone()),
    };
    world.revised.insert(2, Ok(revised));
    world.settle();
    let replicas = world.template["spec"]["replicas"].clone();
    let before = world.work("member1").spec.workload.manifests[0].clone();
    assert_eq!(before["spec"]["paused"], true);
    assert_eq!(before["spec"]["at"], "first");
    assert_eq!(
        before["spec"]["replicas"], replicas,
        "the script alone revises"
    );
    let later = Timed {
        value: second,
        at_another_time: Some(first),
    };
    world.revised.insert(2, Ok(later));
    assert_eq!(world.step("member1"), UNCHANGED);
}

/// Case I69: where the script fails, its cluster's Work stays, and others go on.
#[test]
fn failed_script_holds_its_cluster() {
    let mut world = World::recorded();
    world.settle();
    world.schedule(&["member1", "member2"]);
    world.binding.spec.clusters.as_mut().unwrap()[1].replicas = Some(3);
    world.revised.insert(3, Err("no".to_owned()));
    let template = world.template.clone();
    world.revised.insert(2, Ok(template.into()));
    assert_eq!(
        world.step("member2"),
        Err(Unwritten::Unrevised("no".to_owned()))
    );
    assert!(world.step("member1").is_ok());
}

/// Case P95: fields that the control plane has allocated stay in the Work that Karmada made of a Service, unless a member
/// refuses it; a Work of ours is as it is to be.
#[test]
fn allocated_fields_are_tolerated() {
    let services = fixtures::bound().into_iter();
    let mut services = services.filter(|(template, _)| template["kind"] == "Service");
    let (mut template, binding) = services.next().unwrap();
    let spec = template["spec"].as_object_mut().unwrap();
    assert!(spec.remove("ipFamilies").is_some());
    let name = work_name((&binding).into());
    let mut world = World {
        binding,
        template,
        works: works_of(&name),
        ..World::recorded()
    };
    assert_eq!(world.step("member1"), UNCHANGED);
    let of_member =
        |work: &&mut Work| work.metadata.namespace.as_deref() == Some("karmada-es-member1");
    let work = world.works.iter_mut().find(of_member).unwrap();
    let conditions = &mut work.status.as_mut().unwrap().conditions;
    conditions
        .iter_mut()
        .find(|one| one.type_ == "Applied")
        .unwrap()
        .status = "False".to_owned();
    assert_ne!(world.step("member1"), UNCHANGED, "it is refused");
    world.works = works_of(&name);
    let work = world.works.iter_mut().find(of_member).unwrap();
    let annotations = work.metadata.annotations.get_or_insert_default();
    annotations.insert(names::MANIFEST_GENERATION.to_owned(), "1".to_owned());
    assert_ne!(world.step("member1"), UNCHANGED, "it is ours");
}

fn told_ports(world: &World) -> (Option<String>, Value) {
    let patch = patch_of(world.step("member1"));
    let work = world
        .works
        .iter()
        .find(|work| work.metadata.namespace.as_deref() == Some("karmada-es-member1"));
    let mut work = to_value(work.unwrap()).unwrap();
    json_patch::patch(&mut work, patch.operations()).unwrap();
    let told = work.annotation(names::ALLOCATED_NODE_PORTS);
    (told.map(str::to_owned), work)
}

/// Case P114: a Work tells which node ports nobody has asked for, as long as that is so; one of Karmada's learns of them with
/// the next change, or once its member refuses them.
#[test]
fn allocated_node_ports_are_told() {
    let services = fixtures::bound().into_iter();
    let mut services = services.filter(|(template, _)| template["kind"] == "Service");
    let (mut template, binding) = services.next().unwrap();
    let name = work_name((&binding).into());
    let annotations = &mut template["metadata"]["annotations"];
    annotations[names::ALLOCATED_NODE_PORTS] = json!("30080");
    let mut world = World {
        binding,
        template,
        works: works_of(&name),
        ..World::recorded()
    };
    assert_eq!(world.step("member1"), UNCHANGED);
    let of_member =
        |work: &&mut Work| work.metadata.namespace.as_deref() == Some("karmada-es-member1");
    world.template["spec"]["sessionAffinity"] = json!("ClientIP");
    let (ports, work) = told_ports(&world);
    assert_eq!(ports.as_deref(), Some("30080"));
    let manifest = &work["spec"]["workload"]["manifests"][0];
    assert_eq!(manifest.annotation(names::ALLOCATED_NODE_PORTS), None);

    *world.works.iter_mut().find(of_member).unwrap() = from_value(work).unwrap();
    assert_eq!(world.step("member1"), UNCHANGED);
    let annotations = world.template["metadata"]["annotations"].as_object_mut();
    annotations.unwrap().remove(names::ALLOCATED_NODE_PORTS);
    assert_eq!(told_ports(&world).0, None);
}

/// A node port that nobody has asked for is left out where an override makes the Service one of a type that has none; one that
/// is asked for is its author's to remove.
#[test]
fn overridden_type_leaves_node_ports() {
    let services = fixtures::bound().into_iter();
    let mut services = services.filter(|(template, _)| template["kind"] == "Service");
    let (mut template, binding) = services.next().unwrap();
    template["spec"]["type"] = json!("NodePort");
    template["spec"]["ports"] = json!([
        { "name": "http", "port": 80, "nodePort": 30_080 },
        { "name": "https", "port": 443, "nodePort": 30_443 },
    ]);
    let [both, asked]: [&[i64]; 2] = [&[30_080, 30_443], &[30_443]];
    for (type_, allocated, expected) in [
        ("NodePort", "30080", both),
        ("LoadBalancer", "30080", both),
        ("ClusterIP", "30080", asked),
        ("ClusterIP", "30080,30443", &[]),
        ("ClusterIP", "", both),
    ] {
        let replace = json!({ "path": "/spec/type", "operator": "replace", "value": type_ });
        let policy = json!({
            "metadata": { "name": "type", "namespace": "shop" },
            "spec": { "overrideRules": [{ "overriders": { "plaintext": [replace] } }] },
        });
        let mut template = template.clone();
        template["metadata"]["annotations"][names::ALLOCATED_NODE_PORTS] = json!(allocated);
        let world = World {
            binding: binding.clone(),
            template,
            policies: vec![from_value(policy).unwrap()],
            works: Vec::new(),
            ..World::recorded()
        };
        let body = body_of(world.step("member1"));
        let spec = &body["spec"]["workload"]["manifests"][0]["spec"];
        let ports = spec["ports"].as_array().unwrap().iter();
        let ports = ports.filter_map(|port| port.get("nodePort")?.as_i64());
        assert_eq!(spec["type"], type_);
        assert_eq!(ports.collect::<Vec<_>>(), expected, "{type_} {allocated}");
    }
}

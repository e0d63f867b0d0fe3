mod installers;

use std::{fs, future::pending, path::PathBuf};

use anyhow::{Context, Result, bail, ensure};
use futures::StreamExt;
use k8s_openapi::api::{apps::v1::Deployment, coordination::v1::Lease, core::v1::Secret};
use karmada_api::names;
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams},
    runtime::{
        WatchStreamExt,
        watcher::{Config, watcher},
    },
};
use pipeline_tests::{
    aggregation::aggregate,
    control_plane::{ApiKind, ControlPlane},
    fleet::{Member, NAMESPACE},
    kubectl::ensure_cells,
    on_both,
    programs::{Binary, Profile, Running},
    propagation::PropagationPrograms,
    wait::{until, until_told},
    writes::WriteCounts,
};
use serde_json::{Value, json};

use super::super::recorded::api_of;
use super::super::{IMAGE, WEB, deployments, has_image, suspend, would_write_nothing};
use super::left::{Left, is_binding, is_scheduled, marks, without_record};
use crate::install::{
    page::{Page, Reader},
    snapshot::Snapshot,
};

/// The member that hosts Karmada, too.
const HOST: Member = Member(3);

/// The namespace of Karmada, in its own API and in the cluster that hosts it.
const SYSTEM: &str = "karmada-system";

/// Takes away the rights that fleets of tests have from the start, and makes the objects that only Karmada writes.
const BEFORE_US: &str = "
kubectl --context karmada delete -k manifests/propagation
kubectl --context karmada apply -f - <<END
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: karmada-scheduler, namespace: karmada-system}
spec: {holderIdentity: ''}
END
";

/// Makes the objects of Karmada in its host. The embedded API would need no part of it.
const ON_THE_HOST: &str = "
kubectl --context host create namespace karmada-system
kubectl --context host -n karmada-system create deployment karmada-scheduler --image=a -- \
    /bin/karmada-scheduler --v=4
kubectl --context host -n karmada-system create deployment karmada-controller-manager --image=a -- \
    /bin/karmada-controller-manager --controllers=*,-remedy --v=4
";

/// The section of docs/swap.md.
const SECTION: &str = "In place of Karmada's propagation";

/// The programs of Karmada, as they run in the host.
const OF_KARMADA: [&str; 2] = ["karmada-scheduler", "karmada-controller-manager"];

/// The arguments by which Karmada's controllers leave propagation alone.
const STILL: [&str; 3] = [
    "--controllers=*,-binding,-bindingStatus,-execution,-workStatus",
    "--skipped-propagating-namespaces=.*",
    "--feature-gates=PropagateDeps=false,PropagationPolicyPreemption=false",
];

/// A Karmada's fleet, and who follows the page there.
struct TakeOver {
    left: Left,
    server: ApiKind,
    reader: Reader,
}

impl TakeOver {
    async fn new(server: ApiKind) -> Result<Self> {
        let left = Left::by_a_karmada(server).await?;
        let (karmada, first) = (&left.fleet.karmada, left.fleet.member(Member(1)));
        let host = left.fleet.member(HOST);
        let contexts = [("karmada", karmada), ("host", host), ("member1", first)];
        let reader = Reader::of(&contexts, server)?;
        reader.run(BEFORE_US).await?;
        if server == ApiKind::Real {
            reader.run(ON_THE_HOST).await?;
        }
        Ok(Self {
            left,
            server,
            reader,
        })
    }

    fn host(&self) -> &ControlPlane {
        self.left.fleet.member(HOST)
    }

    /// Starts the programs with these flags, as their Deployments run them where there are any.
    async fn start(&self, flags: &[&str]) -> Result<PropagationPrograms> {
        if self.server == ApiKind::Embedded {
            return self.left.fleet.run_with(flags).await;
        }
        let start = async |program| self.start_program(program, flags).await;
        Ok(PropagationPrograms {
            propagation_controller: start(Binary::PropagationController).await?,
            scheduler: start(Binary::Scheduler).await?,
            execution_controller: start(Binary::ExecutionController).await?,
        })
    }

    async fn start_program(&self, program: Binary, flags: &[&str]) -> Result<Running> {
        let pod = pod(self.host(), program.name()).await?;
        let folder = self.mounted(&pod).await?.display().to_string();
        let container = &pod["containers"][0];
        let mount = container["volumeMounts"][0]["mountPath"].as_str();
        let mount = mount.context("nothing is mounted")?;
        let arguments = container["args"].as_array().into_iter().flatten();
        let arguments: Vec<_> = arguments.filter_map(Value::as_str).collect();
        ensure!(
            arguments.ends_with(flags),
            "{arguments:?} has not {flags:?}"
        );
        let arguments = arguments.iter();
        let arguments = arguments.map(|argument| argument.replace(mount, &folder));
        Running::start(program, Profile::Debug, arguments).await
    }

    /// Returns a folder with the Secret that a pod mounts.
    async fn mounted(&self, pod: &Value) -> Result<PathBuf> {
        let name = pod["volumes"][0]["secret"]["secretName"].as_str();
        let name = name.context("no Secret is mounted")?;
        let secrets: Api<Secret> = Api::namespaced(self.host().client(), SYSTEM);
        let folder = self.reader.path(name);
        fs::create_dir_all(&folder)?;
        for (file, content) in secrets.get(name).await?.data.unwrap_or_default() {
            fs::write(folder.join(file), content.0)?;
        }
        Ok(folder)
    }

    /// Checks that the programs would write nothing, and that they write nothing.
    async fn observe(&self) -> Result<()> {
        let karmada = &self.left.fleet.karmada;
        let before = karmada.successful_writes().await?;
        let observers = self.start(&["--observe-only"]).await?;
        let count = |is: fn(&Value) -> bool| u32::try_from(self.left.recorded(is).count());
        let looked_at = [
            2 * count(is_binding)?,
            count(is_scheduled)?,
            count(|object| object["kind"] == "Work")?,
        ];
        for ((program, name), least) in observers.all().into_iter().zip(looked_at) {
            let reconciles = format!("karmada_{name}_reconciles_total");
            program
                .until_metric(&reconciles, |count: f64| count >= f64::from(least))
                .await?;
        }
        observers.rest().await?;
        would_write_nothing(&observers).await?;
        observers.stop().await?;
        let written = karmada.successful_writes().await?.since(&before);
        ensure!(written.is_empty(), "{written}");
        Ok(())
    }

    /// Waits until each binding of a policy has the record of its policy, and the programs rest.
    async fn is_taken_over(&self, programs: &PropagationPrograms) -> Result<()> {
        for recorded in self.left.recorded(is_scheduled) {
            let (api, name) = api_of(self.left.fleet.karmada.client(), recorded)?;
            until(&api, name, "recorded", |binding| {
                binding.is_some_and(|it| it.annotations().contains_key(names::ACTIVATED))
            })
            .await?;
        }
        programs.rest().await
    }

    /// Checks that besides Events one patch of each binding of a policy was written, and nothing else.
    fn ensure_one_patch_each(&self, mut written: WriteCounts) -> Result<()> {
        written.0.retain(|kind, _| kind.resource != "events");
        let count = |kind: &str| {
            let recorded = self.left.recorded(is_scheduled);
            recorded.filter(|object| object["kind"] == kind).count()
        };
        let (cluster, own) = (count("ClusterResourceBinding"), count("ResourceBinding"));
        let expected = format!(
            "{cluster} PATCH clusterresourcebindings.work.karmada.io, {own} PATCH resourcebindings.work.karmada.io"
        );
        ensure!(written.to_string() == expected, "{written}, not {expected}");
        Ok(())
    }

    /// Checks that kubectl tells where the workload stands, also while it is paused.
    async fn is_told_by_kubectl(&self) -> Result<()> {
        let printed = self
            .reader
            .run("kubectl --context karmada get pp,rb,work -A");
        let printed = printed.await?;
        let work = format!(
            "work.work.karmada.io/{}",
            names::work("Deployment", NAMESPACE, WEB)
        );
        let binding = "resourcebinding.work.karmada.io/web-deployment";
        let policy = "propagationpolicy.policy.karmada.io/web";
        let cells = [
            (NAMESPACE, policy, "CONFLICT-RESOLUTION", "Abort"),
            (NAMESPACE, binding, "SCHEDULED", "True"),
            (NAMESPACE, binding, "FULLYAPPLIED", "True"),
            ("karmada-es-member1", &work, "WORKLOAD-KIND", "Deployment"),
            ("karmada-es-member2", &work, "APPLIED", "True"),
        ];
        ensure_cells(&printed, &cells)?;
        let told = self.describe().await?;
        ensure!(told.contains("FullyAppliedSuccess"), "{told}");
        ensure!(!told.contains("SuspendDispatching"), "{told}");

        let bindings = self.left.fleet.bindings();
        let paused = "Dispatching is suspended on member1 (up to date), member2 (up to date).";
        suspend(&self.left.fleet, json!({ "dispatching": true })).await?;
        until_told(
            &bindings,
            "web-deployment",
            ["Dispatching", "False"],
            paused,
        )
        .await?;
        let told = self.describe().await?;
        for part in ["SuspendDispatching", paused, "SyncWorkSucceed"] {
            ensure!(told.contains(part), "{part:?} is not in {told}");
        }
        suspend(&self.left.fleet, Value::Null).await?;
        let resumed = "is being dispatched to its clusters";
        until_told(
            &bindings,
            "web-deployment",
            ["Dispatching", "True"],
            resumed,
        )
        .await
    }

    async fn describe(&self) -> Result<String> {
        let describe = "kubectl --context karmada describe rb web-deployment -n shop";
        self.reader.run(describe).await
    }

    /// Checks with the reader's commands that an edit travels, and undoes it. Another image travels, too.
    async fn edit(&self, check: &str) -> Result<()> {
        let fleet = &self.left.fleet;
        self.reader.run(check).await?;
        let copies = deployments(fleet.member(Member(1)));
        until(&copies, WEB, "tried", |copy| {
            copy.is_some_and(|copy| copy.annotations().contains_key("try"))
        })
        .await?;
        let look = check.lines().last().context("no commands")?;
        let shown = self.reader.run(look).await?;
        ensure!(shown == "1", "{look} shows {shown:?}");
        let undo = "kubectl --context karmada -n shop annotate deployment web try-";
        self.reader.run(undo).await?;

        let edit = json!([{ "op": "replace", "path": IMAGE, "value": "registry.example.com/shop/web:1.5.0" }]);
        let edit = Patch::Json::<()>(serde_json::from_value(edit)?);
        let templates = deployments(&fleet.karmada);
        templates.patch(WEB, &PatchParams::default(), &edit).await?;
        for (member, registry) in [(Member(1), "registry"), (Member(2), "mirror")] {
            let image = format!("{registry}.example.com/shop/web:1.5.0");
            has_image(fleet, member, &image).await?;
        }
        Ok(())
    }

    /// Returns the specs of Karmada's own Deployments, where there are any.
    async fn of_karmada(&self) -> Result<Vec<Value>> {
        match self.server {
            ApiKind::Embedded | ApiKind::EmbeddedByTls => Ok(Vec::new()),
            ApiKind::Real => of_karmada(self.host()).await,
        }
    }

    /// Follows the page from the first step to the last.
    async fn follow(&self) -> Result<()> {
        let steps = self.reader.steps(Page::Swap, SECTION);
        let [observe, still, start, check, back] = &steps[..] else {
            bail!("the page has other steps: {steps:?}");
        };
        let karmada = &self.left.fleet.karmada;
        let apis = [karmada.client(), self.host().client()];
        let there = Snapshot::take(&apis[0]).await?;
        let host = Snapshot::take(&apis[1]).await?;
        let (before, theirs) = (self.left.now().await?, self.of_karmada().await?);
        make_rights(&self.reader, self.server).await?;
        // As the kube-controller-manager of every Karmada does.
        aggregate(&apis[0]).await?;
        self.reader.run(observe).await?;
        self.observe().await?;

        self.reader.run(still).await?;
        if self.server == ApiKind::Real {
            is_still(&theirs, &self.of_karmada().await?)?;
        }
        self.reader.run(start).await?;
        let writes = karmada.successful_writes().await?;
        let programs = self.start(&[]).await?;
        self.is_taken_over(&programs).await?;
        self.ensure_one_patch_each(karmada.successful_writes().await?.since(&writes))?;
        self.left.ensure_same(&before, without_record).await?;
        self.edit(check).await?;
        programs.rest().await?;
        self.is_told_by_kubectl().await?;
        programs.rest().await?;

        // The first command ends the programs, which still need their rights.
        let (stop, rest) = back.split_once('\n').context("one command")?;
        self.reader.run(stop).await?;
        programs.stop().await?;
        self.reader.run(rest).await?;
        let after = Snapshot::take(&apis[0]).await?;
        let [left, gone] = [there.only_in(&after), after.only_in(&there)];
        ensure!(
            left.is_empty() && gone.is_empty(),
            "left: {left:?}, gone: {gone:?}"
        );
        let after = Snapshot::take(&apis[1]).await?;
        host.is_kept_by(&after).context("the host")?;
        self.left.ensure_same(&before, marks).await?;
        let leases: Api<Lease> = Api::namespaced(karmada.client(), SYSTEM);
        let lease = leases.get("karmada-scheduler").await?;
        let holder = lease.spec.and_then(|spec| spec.holder_identity);
        ensure!(holder.unwrap_or_default().is_empty(), "the lease is held");
        Ok(())
    }
}

/// Makes the objects that the programs need.
async fn make_rights(reader: &Reader, server: ApiKind) -> Result<()> {
    let steps = reader.steps(Page::Propagation, "Install");
    let [rights, kubeconfigs, ..] = &steps[..] else {
        bail!("the page has fewer steps: {steps:?}");
    };
    reader.run(rights).await?;
    if server == ApiKind::Real {
        let install = reader.steps(Page::Install, "2. ");
        let functions = install.iter().find(|block| block.starts_with("access() {"));
        let functions = functions.context("the page has no functions")?;
        let (functions, _) = functions.split_once("\naccess ").context("no call")?;
        reader.run(functions).await?;
        reader.run(kubeconfigs).await?;
    }
    Ok(())
}

/// Returns the replicas of Karmada's own Deployments.
async fn of_karmada(host: &ControlPlane) -> Result<Vec<Value>> {
    let deployments: Api<Deployment> = Api::namespaced(host.client(), SYSTEM);
    let mut specs = Vec::new();
    for name in OF_KARMADA {
        specs.push(serde_json::to_value(deployments.get(name).await?.spec)?);
    }
    Ok(specs)
}

/// Returns the template of the pods of a Deployment in the host.
async fn pod(host: &ControlPlane, name: &str) -> Result<Value> {
    let deployments: Api<Deployment> = Api::namespaced(host.client(), SYSTEM);
    let deployment = deployments.get(name).await?;
    let pod = deployment.spec.and_then(|spec| spec.template.spec);
    Ok(serde_json::to_value(pod)?)
}

/// Checks that Karmada's scheduler does not run, that its controllers have [`STILL`] more, and that
/// nothing else of either has changed.
fn is_still(before: &[Value], now: &[Value]) -> Result<()> {
    let mut expected = before.to_vec();
    let [scheduler, controllers] = &mut expected[..] else {
        bail!("Karmada has other programs: {before:?}");
    };
    scheduler["replicas"] = json!(0);
    let command = controllers.pointer_mut("/template/spec/containers/0/command");
    let command = command
        .and_then(Value::as_array_mut)
        .context("no command")?;
    command.extend(STILL.map(Value::from));
    ensure!(now == expected, "{now:?}");
    Ok(())
}

/// Reports that the pods of all Deployments in the host's `karmada-system` run, as its own controllers do.
async fn deployment_controller(host: &ControlPlane) -> Result<()> {
    let deployments: Api<Deployment> = Api::namespaced(host.client(), SYSTEM);
    let events = watcher(deployments.clone(), Config::default()).applied_objects();
    let mut events = std::pin::pin!(events);
    while let Some(deployment) = events.next().await {
        let deployment = deployment?;
        let observed = deployment
            .status
            .as_ref()
            .and_then(|status| status.observed_generation);
        if observed == deployment.metadata.generation {
            continue;
        }
        let replicas = deployment.spec.as_ref().and_then(|spec| spec.replicas);
        let status = json!({ "status": {
            "observedGeneration": deployment.metadata.generation, "replicas": replicas,
            "updatedReplicas": replicas, "readyReplicas": replicas, "availableReplicas": replicas,
        } });
        let (name, parameters) = (deployment.name_any(), PatchParams::default());
        let patch = Patch::Merge(status);
        match deployments.patch_status(&name, &parameters, &patch).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.is_not_found() => {}
            Err(error) => return Err(error.into()),
        }
    }
    pending().await
}

/// Cases P63 and I103, as far as our parts reach: who only observes sees no difference; the take-over writes one annotation
/// for each binding, and nothing else in the control plane or in a member; an edit travels; and at the end
/// Karmada finds every mark by which it knows its objects, its programs and its lease, and nothing of ours.
async fn karmada_is_relieved_and_returns(server: ApiKind) -> Result<()> {
    let take_over = TakeOver::new(server).await?;
    tokio::select! {
        followed = take_over.follow() => followed,
        ended = deployment_controller(take_over.host()) => ended,
    }
}

on_both!(long: karmada_is_relieved_and_returns);

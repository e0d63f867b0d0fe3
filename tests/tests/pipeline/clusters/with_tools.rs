//! docs/fleet.md and docs/join.md, followed by a reader.

use anyhow::{Result, ensure};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use karmada_api::{ClusterView, condition::TRUE, names::collected_slice};
use kube::Api;
use pipeline_tests::{
    agents::MEMBER,
    control_plane::{ApiKind, ControlPlane},
    fleet::isolated,
    programs::{Binary, Profile, Running},
    test_name,
    wait::until,
};

use crate::install::page::{Page, Reader};

/// The objects that the reader propagates.
const WORKLOAD: &str = "
kubectl --context karmada create namespace shop
kubectl --context karmada -n shop create configmap settings --from-literal=a=1
kubectl --context karmada apply -f - <<END
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: settings, namespace: shop}
spec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap, name: settings}], placement: {}}
END
kubectl --context karmada -n shop wait rb settings-configmap --for create --timeout 1m
kubectl --context karmada -n shop wait rb settings-configmap --for condition=FullyApplied --timeout 1m
";

/// A Service that the reader propagates before exporting it.
const SERVICE: &str = "
kubectl --context karmada -n shop create service clusterip web --tcp=80
kubectl --context karmada apply -f - <<END
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: web, namespace: shop}
spec: {resourceSelectors: [{apiVersion: v1, kind: Service, name: web}], placement: {}}
END
kubectl --context karmada -n shop wait rb web-service --for create --timeout 1m
kubectl --context karmada -n shop wait rb web-service --for condition=FullyApplied --timeout 1m
";

/// The slice that the controllers of the member make of its pods.
const ENDPOINTS: &str = "
kubectl --context member1 apply -f - <<END
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: web-1
  namespace: shop
  labels:
    kubernetes.io/service-name: web
    endpointslice.kubernetes.io/managed-by: endpointslice-controller.k8s.io
addressType: IPv4
endpoints: [{addresses: [10.244.1.10]}]
ports: [{port: 8080}]
END
";

/// Reads the objects of every kind, as the garbage collector does within half a minute. Of a kind that nobody has read
/// before, the first list can fail while Kubernetes deletes it, and be repeated no earlier than after five minutes
/// (<https://github.com/operator-framework/operator-controller/issues/1437>).
const READ_EVERY_KIND: &str = "
kinds=$(kubectl --context karmada get crds -o jsonpath='{.items[*].metadata.name}')
kubectl --context karmada get ${kinds// /,} -A -o name
";

const VALUE: &str =
    "kubectl --context member1 -n shop get configmap settings -o jsonpath='{.data.a}'";

/// Starts the programs with the kubeconfigs that the reader has made.
async fn programs(reader: &Reader) -> Result<Vec<Running>> {
    let mut programs = Vec::new();
    for (binary, own) in [
        (Binary::ClusterController, None),
        (Binary::PropagationController, None),
        (Binary::Scheduler, None),
        (Binary::ExecutionController, Some("--collect-endpoints")),
    ] {
        let path = reader.path(&format!("access/{}/kubeconfig", binary.name()));
        let kubeconfig = format!("--kubeconfig={}", path.display());
        let flags = std::iter::once(kubeconfig).chain(own.map(ToOwned::to_owned));
        programs.push(Running::start(binary, Profile::Debug, flags).await?);
    }
    Ok(programs)
}

async fn follow(reader: &Reader, page: Page, section: &str) -> Result<()> {
    for step in reader.steps(page, section) {
        reader.run(&step).await?;
    }
    Ok(())
}

/// Who follows the pages from an empty API has a fleet with a member and an exported Service there, and takes all of it
/// away again after a crash; its copies stay in the member.
#[test]
fn pages_make_and_remove_a_fleet() {
    isolated(test_name!(), async || {
        make_and_remove(&["1. ", "2. ", "3. "], "").await
    });
}

/// The same with Helm.
#[test]
fn charts_make_and_remove_a_fleet() {
    isolated(test_name!(), async || {
        make_and_remove(&["With Helm"], RELEASES_GO).await
    });
}

/// The command that the page names before its own way to remove a fleet.
const RELEASES_GO: &str = "
helm uninstall karmada-rs --kube-context host --namespace karmada-system
helm uninstall karmada-rs-rights --kube-context karmada --namespace karmada-system
";

/// Installs by these sections of the page.
async fn make_and_remove(install: &[&str], before_removal: &str) -> Result<()> {
    let (mut karmada, member) = tokio::try_join!(
        ControlPlane::start("karmada", ApiKind::Real),
        ControlPlane::start("member1", ApiKind::Real)
    )?;
    karmada.start_controllers().await?;
    let name = MEMBER.name();
    let contexts = [("karmada", &karmada), ("host", &karmada), (&*name, &member)];
    let reader = Reader::of(&contexts, ApiKind::Real)?;
    reader.learn_functions().await?;
    for section in install {
        follow(&reader, Page::Fleet, section).await?;
    }
    let programs = programs(&reader).await?;
    for section in ["In the member", "In the fleet"] {
        for step in reader.steps(Page::Join, section) {
            let step = step.replace("https://203.0.113.8:6443", &member.url());
            reader.run(&step).await?;
        }
    }
    let clusters: Api<ClusterView> = Api::all(karmada.client());
    until(&clusters, &name, "ready", |cluster| {
        let mut conditions = cluster
            .into_iter()
            .flat_map(|cluster| &cluster.status.conditions);
        conditions.any(|one| one.type_ == "Ready" && one.status == TRUE)
    })
    .await?;
    reader.run(WORKLOAD).await?;
    ensure!(reader.run(VALUE).await? == "1");

    reader.run(SERVICE).await?;
    reader.run(ENDPOINTS).await?;
    follow(&reader, Page::Fleet, "Expose a Service").await?;
    let slices: Api<EndpointSlice> = Api::namespaced(karmada.client(), "shop");
    let copy = collected_slice(&name, "web-1", "IPv4");
    until(&slices, &copy, "collected", |slice| slice.is_some()).await?;

    for program in programs {
        program.kill().await?;
    }
    reader.run(before_removal).await?;
    reader.run(READ_EVERY_KIND).await?;
    follow(&reader, Page::Fleet, "Remove it").await?;
    ensure!(reader.run(VALUE).await? == "1");
    ensure!(slices.get_opt(&copy).await?.is_none());
    let left = "kubectl --context karmada get crds,clusterroles,clusterrolebindings,validatingadmissionpolicies,namespaces -o name";
    let left = reader.run(left).await?;
    let ours = left.lines().filter(|name| name.contains("karmada"));
    let ours: Vec<_> = ours.collect();
    ensure!(ours == ["namespace/karmada-system"], "{ours:?}");
    Ok(())
}

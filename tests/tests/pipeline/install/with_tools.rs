mod charts;
mod day_2;
mod egress;
mod gateway;
mod list;
mod release;
mod rotation;

use std::{
    fs,
    future::pending,
    net::{Ipv4Addr, SocketAddr},
};

use anyhow::{Context, Result};
use futures::StreamExt;
use hickory_proto::op::ResponseCode;
use k8s_openapi::api::{
    apps::v1::DaemonSet,
    core::v1::{ConfigMap, Namespace, Secret, Service, ServiceAccount},
    discovery::v1::EndpointSlice,
};
use karmada_api::{MultiClusterIngress, ServiceExport, condition::DNS_READY};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, PostParams},
    runtime::{
        WatchStreamExt,
        watcher::{Config, watcher},
    },
};
use lab_parts::dns::{self, DnsServer, Response};
use pipeline_tests::{
    agents::{Agents, MEMBER, has_condition},
    control_plane::{ApiKind, ControlPlane},
    crds,
    fleet::{Fleet, INGRESS, Member, NAMESPACE, SERVICE, on_dns},
    netns, on_both,
    programs::{Binary, Profile, Running},
    relay::Relay,
    wait::until,
};
use serde_json::{Value, json};

use super::{
    page::{Page, Reader},
    snapshot::Snapshot,
};

const FINALIZER: &str = "karmada-rs.io/ingress-controller";
const MEMBERS: [Member; 2] = [MEMBER, Member(2)];

/// Starts a Karmada with two members, before anybody has installed us, and what else is there: objects of
/// Karmada, of users, and in the gateway.
async fn before_us(server: ApiKind) -> Result<Fleet> {
    Fleet::lay_network(&MEMBERS)?;
    let fleet = Fleet::before_us(server, Profile::Debug).await?;
    let reader = Reader::new(&fleet, server)?;
    // Karmada's own definitions have none of our additions. To remove an absent one is harmless.
    reader
        .run(
            "for kind in remedies.remedy multiclusteringresses.networking remedies.remedy; do\n\
             kubectl patch crd $kind.karmada.io --type json \
             --patch-file manifests/crds/${kind%.*}-remove.yaml\ndone",
        )
        .await?;
    for member in MEMBERS {
        fleet.register(member).await?;
    }
    fleet.place(&MEMBERS).await?;
    fleet.create_ingress(INGRESS, "karmada-rs").await?;
    fleet.create_remedy("of-a-user", on_dns()).await?;
    fleet.karmada.install_crds(&[crds::exports()]).await?;
    reader.run(OF_OTHERS).await?;
    if server == ApiKind::Real {
        reader.run(ON_THE_HOST).await?;
    }
    Ok(fleet)
}

/// Objects of Karmada and of users, some with names and labels much like ours.
const OF_OTHERS: &str = "
kubectl -n karmada-system create serviceaccount karmada-controller-manager
kubectl -n karmada-system create configmap karmada --from-literal=a=1
kubectl -n shop create configmap settings --from-literal=a=1
kubectl create clusterrole karmada --verb=get --resource=secrets
kubectl apply -f - <<END
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: other}
spec: {controller: example.com/other}
---
apiVersion: networking.karmada.io/v1alpha1
kind: MultiClusterIngress
metadata: {name: of-another, namespace: shop, finalizers: [karmada.io/multi-cluster-ingress-controller]}
spec: {ingressClassName: other, defaultBackend: {service: {name: web, port: {number: 80}}}}
---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: karmada-controller-manager, namespace: karmada-system}
spec: {holderIdentity: one}
---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: of-another, namespace: karmada-es-member1}
---
apiVersion: multicluster.x-k8s.io/v1alpha1
kind: ServiceExport
metadata: {name: of-a-user, namespace: shop}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: export-of-a-user, namespace: shop}
spec: {resourceSelectors: [{apiVersion: multicluster.x-k8s.io/v1alpha1, kind: ServiceExport, name: of-a-user}], placement: {}}
END
kubectl --context gateway create namespace shop
kubectl --context gateway -n shop create service clusterip of-another --tcp=80
kubectl --context gateway -n shop create ingress of-another --class=c --rule=a.com/*=of-another:80
";

/// The objects of Karmada's host, of which the embedded API would need no part.
const ON_THE_HOST: &str = "
kubectl --context host create namespace karmada-system
kubectl --context host -n karmada-system create deployment karmada-controller-manager --image=a -- \
    /bin/karmada-controller-manager --controllers=*,hpaScaleTargetMarker --v=4
kubectl --context host -n karmada-system create secret generic karmada-cert --from-literal=a=1
";

/// The additions of other pages to an installation: confinement, the plugin's rights, agents at the gateway, and the renewal of tokens.
const OPTIONS: &str = "
kubectl --context karmada apply -k manifests/admission/confine
kubectl --context karmada apply -f manifests/karmada/kubectl-remedy.yaml -f manifests/karmada/kubectl-remedy-join.yaml
kubectl --context karmada apply -f manifests/karmada/gateway-agent.yaml
kubectl --context karmada apply -k manifests/renew
access karmada karmada-system kubectl-remedy-renew access/kubectl-remedy-renew
store host karmada-system kubectl-remedy-renew-karmada access/kubectl-remedy-renew
kubectl --context host apply -k manifests/renew/host
kubectl --context gateway apply -k manifests/admission/gateway
kubectl --context gateway apply -k manifests/gateway/reachability
kubectl --context gateway apply -f manifests/renew/gateway.yaml
kubectl --context member1 apply -f manifests/member/node-condition/rights.yaml -f manifests/member/dns-service/rights.yaml
";

const INSTALL: [&str; 5] = ["2. ", "3. ", "4. ", "5. ", "6. "];

/// The manifests of the Karmada API can be deleted at any time.
async fn api_manifests_can_be_deleted(server: ApiKind) -> Result<()> {
    let fleet = before_us(server).await?;
    let reader = Reader::new(&fleet, server)?;
    let before = Snapshot::take(&fleet.karmada.client()).await?;
    reader
        .run("kubectl --context karmada apply -k manifests/karmada")
        .await?;
    let installed = Snapshot::take(&fleet.karmada.client()).await?;
    assert!(installed.keys().len() > before.keys().len());
    reader
        .run("kubectl --context karmada delete -k manifests/karmada")
        .await?;
    before.is_kept_by(&Snapshot::take(&fleet.karmada.client()).await?)
}

/// Starts our controllers, with the kubeconfigs that the page creates where it can.
async fn controllers(fleet: &Fleet, reader: &Reader, server: ApiKind) -> Result<[Running; 2]> {
    match server {
        ApiKind::Embedded | ApiKind::EmbeddedByTls => Ok([
            fleet.remedy_controller().await?,
            fleet.ingress_controller().await?,
        ]),
        ApiKind::Real => {
            let kubeconfig = |flag: &str, folder: &str| {
                let path = reader.path(&format!("access/{folder}/kubeconfig"));
                format!("--{flag}={}", path.display())
            };
            let flags = [kubeconfig("kubeconfig", "remedy-controller")];
            let remedies = Running::start(Binary::RemedyController, Profile::Debug, flags).await?;
            let flags = [
                kubeconfig("kubeconfig", "ingress-controller"),
                "--provider=kubernetes".to_owned(),
                kubeconfig("gateway-kubeconfig", "gateway"),
            ];
            let ingresses =
                Running::start(Binary::IngressController, Profile::Debug, flags).await?;
            Ok([remedies, ingresses])
        }
    }
}

/// Does the reader's part of step 1: one ingress is handed over, the other is not.
async fn hand_over(fleet: &Fleet, reader: &Reader) -> Result<()> {
    reader
        .run("kubectl -n shop patch mci moved --type merge -p '{\"spec\":{\"ingressClassName\":\"other\"}}'")
        .await?;
    until(&fleet.ingresses(), "moved", "let go", |ingress| {
        !is_ours(ingress)
    })
    .await?;
    fleet
        .ingresses()
        .delete("moved", &DeleteParams::default())
        .await?;
    assert!(is_ours(Some(&fleet.ingresses().get(INGRESS).await?)));
    Ok(())
}

/// Checks that the arguments of Karmada's Deployment are still there beside ours.
async fn adds_to_karmadas_arguments(reader: &Reader) -> Result<()> {
    let command = "kubectl --context host -n karmada-system get deployment karmada-controller-manager -o jsonpath='{.spec.template.spec.containers[0].command}'";
    let command = reader.run(command).await?;
    for argument in [
        "--controllers=*,hpaScaleTargetMarker",
        "--controllers=*,-remedy",
    ] {
        assert!(command.contains(argument), "{command}");
    }
    Ok(())
}

/// Checks that the chart's list of controllers is as before, with `-remedy`.
async fn adds_to_the_charts_list(reader: &Reader) -> Result<()> {
    let values = "helm get values karmada -o json | jq -r .controllerManager.controllers";
    let before = reader.run(values).await?;
    let upgrade = fs::read_to_string(reader.path("upgrade"))?;
    let arguments: Vec<_> = upgrade.lines().collect();
    assert!(arguments.contains(&"--reuse-values"), "{upgrade}");
    // A comma that is not escaped ends a value.
    let after = format!(r"controllerManager.controllers={}\,-remedy", before.trim());
    assert_eq!(arguments.last(), Some(&&*after), "{upgrade}");
    Ok(())
}

/// Follows the page to a kubeconfig of an agent that goes through a load balancer.
async fn reaches_karmada_at_an_address_that_its_certificate_lacks(
    fleet: &Fleet,
    reader: &Reader,
) -> Result<()> {
    let name = "karmada-apiserver.karmada-system.svc.cluster.local";
    let address: SocketAddr = "203.0.113.7:5443".parse()?;
    netns::add_address(address.ip())?;
    let _load_balancer = Relay::start_at(address, fleet.karmada.address()).await?;
    let steps = reader.steps(Page::Before, "The address of the Karmada API");
    let [access, certificate, expect_a_name] = &steps[..] else {
        anyhow::bail!("the page has other steps: {steps:?}");
    };

    reader.run(access).await?;
    let names = reader.run(certificate).await?;
    assert!(names.contains(&format!("DNS:{name}")), "{names}");
    let member = MEMBER.name();
    let kubeconfig = format!("access/{member}/kubeconfig");
    let who = format!(
        "kubectl --kubeconfig {kubeconfig} auth whoami -o jsonpath={{.status.userInfo.username}}"
    );
    let Err(refused) = reader.run(&who).await else {
        anyhow::bail!("the certificate contains the address: {names}");
    };
    assert!(refused.to_string().contains("not 203.0.113.7"), "{refused}");
    let read = || -> Result<Value> {
        let text = fs::read(reader.path(&kubeconfig))?;
        Ok(serde_json::from_slice(&text)?)
    };
    let mut expected = read()?;
    reader.run(expect_a_name).await?;
    let cluster = &mut expected["clusters"][0]["cluster"];
    assert_eq!(cluster["server"], format!("https://{address}"));
    cluster["tls-server-name"] = json!(name);
    assert_eq!(read()?, expected);
    assert_eq!(
        reader.run(&who).await?,
        format!("system:serviceaccount:karmada-es-{member}:cluster-health-agent")
    );
    Ok(())
}

/// An uninstallation leaves everything as it was.
async fn uninstallation_leaves_nothing(server: ApiKind) -> Result<()> {
    let fleet = before_us(server).await?;
    let reader = Reader::new(&fleet, server)?;
    let karmada = Snapshot::take(&fleet.karmada.client()).await?;
    let gateway = Snapshot::take(&fleet.gateway.client()).await?;

    reader.follow(&INSTALL).await?;
    adds_to_the_charts_list(&reader).await?;
    if server == ApiKind::Real {
        adds_to_karmadas_arguments(&reader).await?;
        reader.run(OPTIONS).await?;
        reaches_karmada_at_an_address_that_its_certificate_lacks(&fleet, &reader).await?;
    }
    let controllers = controllers(&fleet, &reader, server).await?;
    let agents = Agents::start(&fleet, 1).await?;
    fleet.create_ingress("moved", "karmada-rs").await?;
    fleet.serves(&MEMBERS).await?;
    let client = fleet.karmada.client();
    let exports: Api<ServiceExport> = Api::namespaced(client, NAMESPACE);
    until(&exports, SERVICE, "exported", |export| export.is_some()).await?;
    agents.dns_works_on([]);
    fleet.has_blocked(&[MEMBER]).await?;
    until(&fleet.ingresses(), "moved", "ours", is_ours).await?;
    has_condition(&fleet, DNS_READY, "False", "").await?;

    hand_over(&fleet, &reader).await?;
    let steps = reader.steps(Page::Uninstall, "The steps");
    let [handed_over, stopped, rest @ ..] = &steps[..] else {
        anyhow::bail!("the page has fewer steps: {steps:?}");
    };
    assert!(reader.run(handed_over).await?.contains(FINALIZER));
    let mut running = Some((controllers, agents));
    if server == ApiKind::Embedded {
        stop(running.take()).await?;
    }
    reader.run(stopped).await?;
    uninstall(&fleet, &reader, rest).await?;
    // The page's Remedy is the reader's own.
    reader.run("kubectl delete remedy dns").await?;
    // Without rights they could write no more.
    if let Some((controllers, mut agents)) = running {
        for controller in controllers {
            controller.kill().await?;
        }
        agents.kill_all().await?;
    }

    nothing_is_listed(&reader).await?;
    let after = Snapshot::take(&fleet.karmada.client()).await?;
    karmada.is_kept_by(&after).context("the Karmada API")?;
    let after = Snapshot::take(&fleet.gateway.client()).await?;
    gateway.is_kept_by(&after).context("the gateway")
}

/// Runs these steps of an uninstallation, in which namespaces end.
async fn uninstall(fleet: &Fleet, reader: &Reader, steps: &[String]) -> Result<()> {
    let run = async {
        for step in steps {
            reader.run(step).await?;
        }
        anyhow::Ok(())
    };
    tokio::select! {
        done = run => done,
        ended = namespace_controller(&fleet.gateway) => ended,
    }
}

/// Checks that no API has an object with a name, a label or a field of ours.
async fn nothing_is_listed(reader: &Reader) -> Result<()> {
    for context in ["karmada", "gateway"] {
        let left = reader.run(&format!("manifests/list.sh {context}")).await?;
        anyhow::ensure!(left.is_empty(), "{context} still has\n{left}");
    }
    Ok(())
}

fn is_ours(ingress: Option<&MultiClusterIngress>) -> bool {
    ingress.is_some_and(|ingress| ingress.finalizers().iter().any(|name| name == FINALIZER))
}

async fn stop(running: Option<([Running; 2], Agents)>) -> Result<()> {
    let Some((controllers, agents)) = running else {
        return Ok(());
    };
    for controller in controllers {
        controller.stop().await?;
    }
    agents.stop_all().await
}

/// Empties and ends namespaces of a real API that are being deleted, as kube-controller-manager does, of
/// what the page creates there.
async fn namespace_controller(api: &ControlPlane) -> Result<()> {
    let client = api.client();
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let events = watcher(namespaces.clone(), Config::default()).applied_objects();
    let mut events = std::pin::pin!(events);
    while let Some(namespace) = events.next().await {
        let mut namespace = namespace?;
        let spec = namespace.spec.get_or_insert_default();
        let held = spec.finalizers.take().is_some_and(|held| !held.is_empty());
        if namespace.metadata.deletion_timestamp.is_none() || !held {
            continue;
        }
        let name = namespace.name_any();
        delete_all::<Secret>(&client, &name).await?;
        delete_all::<ConfigMap>(&client, &name).await?;
        delete_all::<ServiceAccount>(&client, &name).await?;
        let parameters = PostParams::default();
        let ended = namespaces.replace_subresource("finalize", &name, &parameters, &namespace);
        match ended.await {
            Ok(_) => {}
            // The embedded API has ended it already.
            Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => {}
            Err(error) => return Err(error.into()),
        }
    }
    pending().await
}

async fn delete_all<K>(client: &Client, namespace: &str) -> Result<()>
where
    K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
        + Clone
        + serde::de::DeserializeOwned
        + std::fmt::Debug,
{
    let api: Api<K> = Api::namespaced(client.clone(), namespace);
    api.delete_collection(&DeleteParams::default(), &ListParams::default())
        .await?;
    Ok(())
}

/// The detector of Karmada's example, as one that runs has to be written.
fn detector() -> Value {
    let labels = json!({ "app": "service-name-resolution-detector" });
    let command = [
        "service-name-resolution-detector",
        "--host-kubeconfig=/tmp/config",
        "--cluster-name=member1",
        "--host-name=$(HOST_NAME)",
        "--bind-address=$(POD_ADDRESS)",
        "--healthz-port=8081",
        "--v=4",
    ];
    let container = json!({ "name": "detector", "image": "detector", "command": command });
    json!({
        "metadata": { "name": "service-name-resolution-detector", "labels": labels },
        "spec": {
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": {
                    "serviceAccountName": "service-name-resolution-detector",
                    "containers": [container],
                },
            },
        },
    })
}

/// Agents in the detector's place find each other by the objects that the page renders.
async fn replaced_detectors_find_each_other(server: ApiKind) -> Result<()> {
    Fleet::lay_network(&[])?;
    let fleet = Fleet::start(server, Profile::Debug).await?;
    fleet.join(MEMBER).await?;
    let member = fleet.gateway.client();
    let daemon_sets: Api<DaemonSet> = Api::namespaced(member.clone(), "kube-system");
    let detector: DaemonSet = serde_json::from_value(detector())?;
    daemon_sets
        .create(&PostParams::default(), &detector)
        .await?;

    let reader = Reader::new(&fleet, ApiKind::Real)?;
    let steps = reader.steps(Page::Swap, "In place of Karmada's own detector");
    let [rendered, image, ..] = &steps[..] else {
        anyhow::bail!("the page has fewer steps: {steps:?}");
    };
    reader.run(rendered).await?;
    let services: Api<Service> = Api::namespaced(member.clone(), "kube-system");
    let service = services.get("cluster-health-agent").await?;
    leads_to_every_pod(&service, &detector)?;

    let mut nodes = Vec::new();
    for number in 1..=2 {
        nodes.push(in_place_of_detector(&fleet, number).await?);
    }
    list(member.clone(), &service).await?;
    has_condition(&fleet, DNS_READY, "True", "").await?;
    for (dns, _) in &nodes {
        dns.set(Response::Code(ResponseCode::Refused));
    }
    has_condition(&fleet, DNS_READY, "False", "2 of 2 nodes fail").await?;

    reader.run(image).await?;
    let changed = daemon_sets.get("service-name-resolution-detector").await?;
    let pod = changed.spec.and_then(|spec| spec.template.spec);
    let containers = pod.map(|pod| pod.containers).unwrap_or_default();
    assert_eq!(
        containers[0].image.as_deref(),
        Some("YOUR-REGISTRY/cluster-health-agent:0.1.0")
    );
    for (_, agent) in nodes {
        agent.stop().await?;
    }
    Ok(())
}

/// Checks that the Service is that of the agents, for the pods of `detector`.
fn leads_to_every_pod(service: &Service, detector: &DaemonSet) -> Result<()> {
    let spec = service.spec.as_ref().context("a Service without a spec")?;
    assert_eq!(spec.cluster_ip.as_deref(), Some("None"));
    assert_eq!(spec.publish_not_ready_addresses, Some(true));
    let template = detector.spec.as_ref().map(|spec| &spec.template);
    let pod = template.and_then(|template| template.metadata.as_ref());
    assert_eq!(spec.selector, pod.and_then(|pod| pod.labels.clone()));
    let ports = spec.ports.as_deref().unwrap_or_default();
    let ports = ports.iter().map(|port| (port.name.as_deref(), port.port));
    assert_eq!(ports.collect::<Vec<_>>(), [(Some("admin"), 8081)]);
    Ok(())
}

/// Creates the `EndpointSlice` of the Service with both nodes, as the member's own controller does.
async fn list(member: Client, service: &Service) -> Result<()> {
    let ports = service.spec.as_ref().and_then(|spec| spec.ports.as_ref());
    let ports = ports.into_iter().flatten();
    let ports =
        ports.map(|port| json!({ "name": port.name, "port": port.port, "protocol": "TCP" }));
    let endpoints = (1..=2).map(|number| {
        let address = node_address(number).ip();
        json!({ "addresses": [address], "nodeName": format!("n{number}") })
    });
    let slice = json!({
        "metadata": {
            "name": "cluster-health-agent-1",
            "labels": { "kubernetes.io/service-name": service.name_any() },
        },
        "addressType": "IPv4",
        "ports": ports.collect::<Vec<_>>(),
        "endpoints": endpoints.collect::<Vec<_>>(),
    });
    let slices: Api<EndpointSlice> = Api::namespaced(member, "kube-system");
    let slice = serde_json::from_value(slice)?;
    slices.create(&PostParams::default(), &slice).await?;
    Ok(())
}

fn node_address(number: u8) -> SocketAddr {
    (Ipv4Addr::new(10, 244, 100, number), 8081).into()
}

/// Starts an agent as in a pod of the detector's `DaemonSet`: with its arguments, with the rights of its
/// account in the member, and in its namespace.
async fn in_place_of_detector(fleet: &Fleet, number: u8) -> Result<(DnsServer, Running)> {
    let address = node_address(number);
    netns::add_address(address.ip())?;
    let dns = DnsServer::start(dns::cluster()).await?;
    let (gateway, account) = (&fleet.gateway, "service-name-resolution-detector");
    let path = gateway.account_kubeconfig("kube-system", account)?;
    let mut pod: Value = serde_json::from_slice(&fs::read(&path)?)?;
    pod["contexts"][0]["context"]["namespace"] = "kube-system".into();
    fs::write(&path, pod.to_string())?;
    let (karmada, account) = (&fleet.karmada, "cluster-health-agent");
    let karmada = karmada.account_kubeconfig("karmada-es-member1", account)?;
    let flags = [
        format!("--host-kubeconfig={}", karmada.display()),
        format!("--cluster-name={}", MEMBER.name()),
        format!("--host-name=n{number}"),
        "--coredns-detect-period=500ms".to_owned(),
        "--coredns-success-threshold=3s".to_owned(),
        "--coredns-failure-threshold=3s".to_owned(),
        "--v=4".to_owned(),
        format!("--nameserver={}", dns.address()),
        format!("--member-kubeconfig={}", path.display()),
    ];
    let agent = Running::start_at(Binary::Agent, Profile::Debug, address, flags).await?;
    Ok((dns, agent))
}

/// A node with the condition of an agent, and what else would be cleaned.
const OF_AN_AGENT: &str = r#"
kubectl --context member1 create -f - <<END
apiVersion: v1
kind: Node
metadata: {name: n1}
---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: cluster-health-agent, namespace: default}
END
kubectl --context member1 patch node n1 --subresource status --type merge --patch '{"status": {"conditions": [
  {"type": "Ready", "status": "True"}, {"type": "ServiceNetworkReady", "status": "False"},
  {"type": "ServiceDomainNameResolutionReady", "status": "True"}]}}'
"#;

/// Only the conditions of nodes are removed where only they are to be.
async fn only_node_conditions_go(server: ApiKind) -> Result<()> {
    Fleet::lay_network(&[])?;
    let fleet = Fleet::start(server, Profile::Debug).await?;
    let reader = Reader::new(&fleet, server)?;
    reader.run(OF_AN_AGENT).await?;
    let types = "kubectl --context member1 get node n1 -o jsonpath='{.status.conditions[*].type}'";
    let before = reader.run(types).await?;
    assert_eq!(
        before,
        "Ready ServiceNetworkReady ServiceDomainNameResolutionReady"
    );
    // Nothing is left to do the second time.
    for _ in 0..2 {
        reader.run("ONLY=nodes manifests/clean.sh member1").await?;
        assert_eq!(reader.run(types).await?, "Ready");
    }
    let lease = "kubectl --context member1 get lease cluster-health-agent -o name";
    reader.run(lease).await.map(drop)
}

on_both!(
    api_manifests_can_be_deleted,
    uninstallation_leaves_nothing,
    only_node_conditions_go,
    replaced_detectors_find_each_other,
);

//! The objects that users and Karmada itself create.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use anyhow::Result;
use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice};
use karmada_api::{
    Cluster, Remedy, ResourceBinding, TRAFFIC_CONTROL, condition::DNS_READY, execution_namespace,
};
use kube::{
    Api,
    api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use super::{Fleet, HOST, Member, NAMESPACE, SERVICE};
use crate::{
    api::{apply, merge_status},
    manifests,
};

/// A Cluster as a real Karmada serves it.
const CLUSTER: &str = include_str!("../../fixtures/cluster.json");

impl Fleet {
    /// Creates the Cluster of a member, without a verdict and without actions, its namespace, and the
    /// rights of its agents.
    pub async fn join(&self, member: Member) -> Result<()> {
        self.register(member).await?;
        self.grant_agents(&member.name()).await
    }

    /// Gives the agents of a cluster their rights.
    pub(crate) async fn grant_agents(&self, cluster: &str) -> Result<()> {
        manifests::apply_edited(&self.karmada.client(), "karmada/agent.yaml", |text| {
            text.replace("member1", cluster)
        })
        .await
    }

    /// Creates the Cluster of a member, without a verdict and without actions, and its namespace.
    pub async fn register(&self, member: Member) -> Result<()> {
        let name = member.name();
        self.create_cluster(&name).await?;
        self.karmada.namespace(&execution_namespace(&name)).await
    }

    /// Creates a Cluster of that name, without a verdict and without actions.
    pub async fn create_cluster(&self, name: &str) -> Result<()> {
        let mut cluster: Value = serde_json::from_str(CLUSTER)?;
        cluster["metadata"] = json!({ "name": name });
        let mut status = cluster["status"].take();
        status["remedyActions"] = Value::Null;
        if let Some(conditions) = status["conditions"].as_array_mut() {
            conditions.retain(|condition| condition["type"] != DNS_READY);
        }
        let resource = ApiResource::erase::<Cluster>(&());
        let clusters: Api<DynamicObject> = Api::all_with(self.karmada.client(), &resource);
        let cluster = serde_json::from_value(cluster)?;
        clusters.create(&PostParams::default(), &cluster).await?;
        merge_status(&clusters, name, &status).await
    }

    /// Writes the verdict of a member in place of its agent.
    pub async fn set_dns(&self, member: Member, status: &str) -> Result<()> {
        self.set_condition(member, DNS_READY, status).await
    }

    /// Writes a condition of a member in place of its agent.
    pub async fn set_condition(&self, member: Member, kind: &str, status: &str) -> Result<()> {
        set_condition(&self.clusters(), member, kind, status).await
    }

    /// Places the Service in exactly these clusters: its template, its binding, and the endpoints
    /// that Karmada collects.
    pub async fn place(&self, members: &[Member]) -> Result<()> {
        let clusters = members
            .iter()
            .map(|member| (member.name(), member.backend()));
        let clusters: Vec<_> = clusters.collect();
        self.place_service(SERVICE, &clusters).await
    }

    /// Places a Service in exactly these clusters, with one endpoint in each, as [`Self::place`] does.
    pub async fn place_service(
        &self,
        service: &str,
        clusters: &[(String, SocketAddr)],
    ) -> Result<()> {
        let client = self.karmada.client();
        let services: Api<Service> = Api::namespaced(client.clone(), NAMESPACE);
        let port = json!({ "name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP" });
        apply(&services, service, json!({ "spec": { "ports": [port] } })).await?;

        let bindings: Api<ResourceBinding> = Api::namespaced(client.clone(), NAMESPACE);
        let targets: Vec<Value> = clusters
            .iter()
            .map(|(cluster, _)| json!({ "name": cluster }))
            .collect();
        let resource = json!({ "apiVersion": "v1", "kind": "Service", "namespace": NAMESPACE, "name": service });
        let spec = json!({ "spec": { "resource": resource, "clusters": targets } });
        apply(&bindings, &format!("{service}-service"), spec).await?;

        let slices: Api<EndpointSlice> = Api::namespaced(client, NAMESPACE);
        for (cluster, backend) in clusters {
            let slice = json!({
                "metadata": {
                    "labels": {
                        "kubernetes.io/service-name": format!("derived-{service}"),
                        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.karmada.io",
                    },
                    "annotations": { "work.karmada.io/namespace": execution_namespace(cluster) },
                },
                "addressType": "IPv4",
                "endpoints": [{ "addresses": [backend.ip()], "conditions": { "ready": true } }],
                "ports": [{ "name": "http", "port": backend.port(), "protocol": "TCP" }],
            });
            apply(&slices, &format!("imported-{cluster}-{service}"), slice).await?;
        }
        Ok(())
    }

    /// Reports the addresses of the Service's load balancer in each member, at its backend's address, as Karmada gathers them. To
    /// one of them no request can be sent.
    pub async fn report_load_balancers(&self, members: &[Member]) -> Result<()> {
        let reported = members.iter().map(|member| {
            let addresses = vec![member.backend().ip(), Ipv4Addr::LOCALHOST.into()];
            (member.name(), addresses)
        });
        let reported: Vec<_> = reported.collect();
        self.report_addresses(SERVICE, &reported).await
    }

    /// Reports the addresses of a Service's load balancer in each cluster, as Karmada gathers them.
    pub async fn report_addresses(
        &self,
        service: &str,
        clusters: &[(String, Vec<IpAddr>)],
    ) -> Result<()> {
        let bindings: Api<ResourceBinding> = Api::namespaced(self.karmada.client(), NAMESPACE);
        let items: Vec<Value> = clusters
            .iter()
            .map(|(cluster, addresses)| {
                let entries: Vec<Value> = addresses.iter().map(|ip| json!({ "ip": ip })).collect();
                json!({
                    "clusterName": cluster, "applied": true,
                    "status": { "loadBalancer": { "ingress": entries } },
                })
            })
            .collect();
        let status = json!({ "aggregatedStatus": items });
        let name = format!("{service}-service");
        merge_status(&bindings, &name, &status).await
    }

    /// Creates an ingress of that class for the Service.
    pub async fn create_ingress(&self, name: &str, class: &str) -> Result<()> {
        self.create_ingress_for(name, class, HOST).await
    }

    /// Creates an ingress of that class for the Service, with a host of its own.
    pub async fn create_ingress_for(&self, name: &str, class: &str, host: &str) -> Result<()> {
        self.create_ingress_to(SERVICE, name, class, host).await
    }

    /// Creates an ingress of that class for that Service, with a host of its own.
    pub async fn create_ingress_to(
        &self,
        service: &str,
        name: &str,
        class: &str,
        host: &str,
    ) -> Result<()> {
        let ingress = serde_json::from_value(json!({
            "apiVersion": "networking.karmada.io/v1alpha1",
            "kind": "MultiClusterIngress",
            "metadata": { "name": name },
            "spec": {
                "ingressClassName": class,
                "rules": [{ "host": host, "http": { "paths": [{
                    "path": "/",
                    "pathType": "Prefix",
                    "backend": { "service": { "name": service, "port": { "number": 80 } } },
                }] } }],
            },
        }))?;
        self.ingresses()
            .create(&PostParams::default(), &ingress)
            .await?;
        Ok(())
    }

    /// Creates a Remedy.
    pub async fn create_remedy(&self, name: &str, spec: Value) -> Result<()> {
        let remedy = Remedy::new(name, serde_json::from_value(spec)?);
        self.remedies()
            .create(&PostParams::default(), &remedy)
            .await?;
        Ok(())
    }

    /// Deletes a Remedy.
    pub async fn delete_remedy(&self, name: &str) -> Result<()> {
        self.remedies()
            .delete(name, &DeleteParams::default())
            .await?;
        Ok(())
    }
}

/// Returns the spec of a Remedy that blocks a member at once.
pub fn maintenance(member: Member) -> Value {
    json!({ "clusterAffinity": { "clusterNames": [member.name()] }, "actions": [TRAFFIC_CONTROL] })
}

/// Returns the spec of a Remedy that blocks every member whose DNS is dead.
pub fn on_dns() -> Value {
    on_failure_of(DNS_READY)
}

/// Writes a condition of a member in place of its agent.
pub(crate) async fn set_condition(
    clusters: &Api<Cluster>,
    member: Member,
    kind: &str,
    status: &str,
) -> Result<()> {
    let name = member.name();
    loop {
        let cluster = clusters.get(&name).await?;
        let mut conditions = serde_json::to_value(cluster.conditions())?;
        if let Some(conditions) = conditions.as_array_mut() {
            conditions.retain(|condition| condition["type"] != kind);
            conditions.push(json!({ "type": kind, "status": status, "reason": "Test",
                "message": "", "lastTransitionTime": "2026-11-20T08:00:00Z" }));
        }
        // The list is written whole, and others write it, too.
        let patch = Patch::Merge(json!({
            "metadata": { "resourceVersion": cluster.metadata.resource_version },
            "status": { "conditions": conditions },
        }));
        let parameters = PatchParams::default();
        match clusters.patch_status(&name, &parameters, &patch).await {
            Err(kube::Error::Api(status)) if status.is_conflict() => {}
            written => return Ok(written.map(drop)?),
        }
    }
}

/// Returns the spec of a Remedy that blocks every member on which a condition is False.
pub fn on_failure_of(condition: &str) -> Value {
    let requirement =
        json!({ "conditionType": condition, "operator": "Equal", "conditionStatus": "False" });
    let matches = json!([{ "clusterConditionMatch": requirement }]);
    json!({ "decisionMatches": matches, "actions": [TRAFFIC_CONTROL] })
}

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Service, ServicePort};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};
use karmada_api::ResourceBinding;
use karmada_api::names::NODE_PORTS;
use objects::Key;

use super::addresses::{ServedPort, Target, slice};
use super::facts::Facts;
use crate::cached::Cached;
use crate::endpoints::slice_cluster;

/// The annotation of each slice of node ports, and of no other, with the Service's `externalTrafficPolicy`. With `Local`, a node
/// without a pod of the Service drops connections, so a timeout says nothing about the cluster.
pub(super) const TRAFFIC_POLICY_ANNOTATION: &str = "karmada-rs.io/external-traffic-policy";
/// The policy by which only nodes with a pod of the Service serve it.
pub(super) const LOCAL: &str = "Local";
/// The policy by which every node serves it.
const CLUSTER: &str = "Cluster";
/// The policy by which a Service has addresses of one family.
const SINGLE_STACK: &str = "SingleStack";

/// A reason for which nodes get no request for a Service of type `NodePort`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NodeObstacle {
    /// The nodes of the cluster are not published.
    Unpublished,
    /// This port of the Service has no node port.
    Unallocated(i32),
    /// Only nodes with a ready endpoint of the Service serve it, and nobody tells which these are.
    ExternalTrafficPolicyLocal,
}

impl fmt::Display for NodeObstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unpublished => f.write_str(
                "their nodes are not published; give the Service the type LoadBalancer, or in a fleet without Karmada run the cluster-controller with --publish-node-addresses",
            ),
            Self::Unallocated(port) => write!(
                f,
                "port {port} has no node port; set nodePort in the Service, or let its API allocate one"
            ),
            Self::ExternalTrafficPolicyLocal => f.write_str(
                "with externalTrafficPolicy Local only nodes with a ready pod serve, and it is not known which these are; export the Service, and collect endpoints with the names of their nodes",
            ),
        }
    }
}

/// The nodes at which a Service is served.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Nodes {
    /// The slices of each cluster.
    pub(super) slices: BTreeMap<String, Vec<Arc<EndpointSlice>>>,
    /// The reasons for which nodes are left out, and the clusters in which they are.
    pub(super) obstacles: BTreeMap<NodeObstacle, BTreeSet<String>>,
}

impl Nodes {
    fn leave_out(&mut self, cluster: &str, obstacle: NodeObstacle) {
        let clusters = self.obstacles.entry(obstacle).or_default();
        clusters.insert(cluster.to_owned());
    }
}

/// Returns `true` for a Service that is served at its nodes.
pub fn has_node_ports(template: &Service) -> bool {
    let spec = template.spec.as_ref();
    spec.and_then(|spec| spec.type_.as_deref()) == Some("NodePort")
}

/// Returns `true` for a Service that is served only at nodes with a ready endpoint of it.
pub fn needs_local_endpoints(template: &Service) -> bool {
    let spec = template.spec.as_ref();
    let policy = spec.and_then(|spec| spec.external_traffic_policy.as_deref());
    has_node_ports(template) && policy == Some(LOCAL)
}

/// Returns the only family of addresses at which a Service is served; `None` if there are two, or it is not told.
pub fn only_family(template: &Service) -> Option<&str> {
    let spec = template.spec.as_ref()?;
    let policy = spec.ip_family_policy.as_deref().unwrap_or(SINGLE_STACK);
    let family = spec.ip_families.as_ref()?.first()?;
    (policy == SINGLE_STACK).then_some(family.as_str())
}

/// Returns the nodes of these clusters at which `service` is served, which has node ports and this binding.
pub(super) fn nodes<'a>(
    service: &Key,
    template: &Service,
    binding: &ResourceBinding,
    clusters: impl Iterator<Item = &'a str>,
    facts: &impl Facts,
) -> Cached<Nodes> {
    let Key { namespace, name } = service;
    let is_local = needs_local_endpoints(template);
    if is_local && !facts.unread_slices(namespace).is_empty() {
        return Cached::Unread;
    }
    let collected = is_local.then(|| facts.slices(namespace, name));
    let local = collected.as_deref().map(local_nodes);
    let unknown = Local {
        names: BTreeSet::new(),
        is_complete: false,
    };
    let own = own_node_ports(binding);
    let mut found = Nodes::default();
    for cluster in clusters {
        let published = match facts.nodes(cluster) {
            Cached::Present(published) => published,
            Cached::Absent => {
                found.leave_out(cluster, NodeObstacle::Unpublished);
                continue;
            }
            Cached::Unread => return Cached::Unread,
        };
        let local = local.as_ref();
        let local = local.map(|known| known.get(cluster).unwrap_or(&unknown));
        if local.is_some_and(|local| !local.is_complete) {
            found.leave_out(cluster, NodeObstacle::ExternalTrafficPolicyLocal);
        }
        let own = own.get(cluster);
        let mut ports = Vec::new();
        for port in template.spec.iter().flat_map(|spec| &spec.ports).flatten() {
            match served_at(port, own) {
                Some(port) => ports.push(port),
                None => found.leave_out(cluster, NodeObstacle::Unallocated(port.port)),
            }
        }
        let mut slices = slices(name, &published, local, &ports);
        if let Some(family) = only_family(template) {
            keep_family(&mut slices, family);
        }
        if !slices.is_empty() {
            found.slices.insert(cluster.to_owned(), slices);
        }
    }
    Cached::Present(found)
}

/// The nodes with a ready endpoint of a Service in a cluster.
struct Local<'a> {
    names: BTreeSet<&'a str>,
    /// False if there may be others.
    is_complete: bool,
}

/// Returns the nodes of each cluster from which endpoints were collected.
fn local_nodes(collected: &[Arc<EndpointSlice>]) -> BTreeMap<&str, Local<'_>> {
    let mut clusters: BTreeMap<&str, Local<'_>> = BTreeMap::new();
    for slice in collected {
        let Some(cluster) = slice_cluster(slice) else {
            continue;
        };
        let local = clusters.entry(cluster).or_insert_with(|| Local {
            names: BTreeSet::new(),
            is_complete: true,
        });
        let endpoints = slice.endpoints.iter().flatten();
        for endpoint in endpoints.filter(|endpoint| is_ready(endpoint)) {
            match &endpoint.node_name {
                Some(name) => {
                    local.names.insert(name.as_str());
                }
                None => local.is_complete = false,
            }
        }
    }
    clusters
}

/// Returns the node ports that members have in place of those of the template, by the names of their ports.
fn own_node_ports(binding: &ResourceBinding) -> BTreeMap<&str, BTreeMap<&str, u16>> {
    let status = binding.status.iter();
    let items = status.flat_map(|status| &status.aggregated_status);
    let own = items.flatten().filter_map(|item| {
        let own = item.status.as_ref()?.get(NODE_PORTS)?.as_object()?;
        let own = own.iter().filter_map(|(name, own)| {
            let own = u16::try_from(own.as_u64()?).ok();
            Some((name.as_str(), own.filter(|own| *own != 0)?))
        });
        Some((item.cluster_name.as_str(), own.collect()))
    });
    own.collect()
}

/// Returns the port with its node port in a member; `None` if it has none.
fn served_at(port: &ServicePort, own: Option<&BTreeMap<&str, u16>>) -> Option<ServedPort> {
    let own = own.and_then(|own| own.get(port.name.as_deref().unwrap_or_default()));
    let given = port.node_port.filter(|given| *given != 0);
    Some(ServedPort {
        port: port.clone(),
        at: own.map(|own| i32::from(*own)).or(given)?,
    })
}

fn slices(
    service: &str,
    published: &[Arc<EndpointSlice>],
    local: Option<&Local<'_>>,
    ports: &[ServedPort],
) -> Vec<Arc<EndpointSlice>> {
    if ports.is_empty() {
        return Vec::new();
    }
    let nodes = published.iter().flat_map(|slice| slice.endpoints.iter());
    let serving = nodes.flatten().filter(|node| {
        let name = node.node_name.as_deref().unwrap_or_default();
        is_ready(node) && local.is_none_or(|local| local.names.contains(name))
    });
    let addresses = serving.flat_map(|node| &node.addresses);
    let mut families: BTreeMap<&str, BTreeSet<Target>> = BTreeMap::new();
    for ip in addresses.filter_map(|address| address.parse::<IpAddr>().ok()) {
        let target = Target::Ip(ip);
        families.entry(target.family()).or_default().insert(target);
    }
    let policy = if local.is_some() { LOCAL } else { CLUSTER };
    let slices = families.iter().map(|(family, targets)| {
        let made = slice(service, family, targets, ports.iter());
        Arc::new(marked(made, policy))
    });
    slices.collect()
}

/// Keeps the slices of this family, if there are any. A node refuses connections at its addresses of the other; a member whose nodes
/// have none of this one has given the Service its own.
fn keep_family(slices: &mut Vec<Arc<EndpointSlice>>, family: &str) {
    if slices.iter().any(|slice| slice.address_type == family) {
        slices.retain(|slice| slice.address_type == family);
    }
}

/// Returns the slice as one of node ports under this policy. It has another name under another, as marks in a gateway go with
/// their slice only.
fn marked(mut slice: EndpointSlice, policy: &str) -> EndpointSlice {
    let name = slice.metadata.name.take().unwrap_or_default();
    slice.metadata.name = Some(format!("{name}/{policy}"));
    let mark = (TRAFFIC_POLICY_ANNOTATION.to_owned(), policy.to_owned());
    slice.metadata.annotations = Some([mark].into());
    slice
}

fn is_ready(endpoint: &Endpoint) -> bool {
    let conditions = endpoint.conditions.as_ref();
    conditions.is_none_or(|conditions| conditions.ready != Some(false))
}

#[cfg(test)]
mod tests;

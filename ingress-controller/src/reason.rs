//! The reasons of this program's Events.

karmada_runtime::event_reasons! {
    TrafficBlocked: "MultiClusterIngress", "a cluster was blocked";
    TrafficUnblocked: "MultiClusterIngress", "a cluster is no longer blocked";
    RouteRefused: "HTTPRoute", "its newest version is not served, as it has something that is not supported, or its Gateway does not take it; what was served before goes on";
    WriteRefused: "MultiClusterIngress", "the API refuses a write to it, for example by an admission policy; the note names the fields and gives the reason";
    ServiceNotFound: "MultiClusterIngress", "a route refers to a Service for which the namespace has no template";
    ServicePortNotFound: "MultiClusterIngress", "a route refers to a port that the template of the Service does not have";
    TrafficReadmitted: "MultiClusterIngress", "every cluster of a Service is blocked or has no ready endpoints, and those that a condition blocked serve it all the same";
    AllClustersBlocked: "MultiClusterIngress", "every cluster of a Service is blocked or has no ready endpoints, and none serves it";
    NoEndpoints: "MultiClusterIngress", "a Service has locations, but no addresses of it have been known there for a while; the note says what would bring them";
    AddressUnusable: "MultiClusterIngress", "a member reports an address to which no request can be sent, such as a loopback address or a host name of one label; the others serve";
    ExternalTrafficPolicyLocal: "MultiClusterIngress", "a Service of type NodePort has `externalTrafficPolicy: Local`, and it has not been known for a while which nodes of a member have a ready pod of it; these get no request";
    NodesUnpublished: "MultiClusterIngress", "a Service of type NodePort is served at the nodes of a member, which nobody has published for a while (`--publish-node-addresses` of the cluster-controller)";
    NodePortMissing: "MultiClusterIngress", "a port of a Service of type NodePort has no node port; its others serve";
    AddressShared: "MultiClusterIngress", "an address that members report serves one port of a Service at several ports, of which a gateway may use the first only";
    InvalidAnnotation: "MultiClusterIngress", "its annotation when-all-blocked, backend-addresses or serve has a value that does not exist, or names addresses that cannot be had; the note says which counts";
    AnnotationWithheld: "MultiClusterIngress", "annotations of it are not passed on, because they would be code in the gateway's proxy (`--withhold-annotations`)";
    ExportClash: "MultiClusterIngress", "a PropagationPolicy of a user has the name of the one that would propagate a backend's export";
    ExportRefused: "MultiClusterIngress", "the API refuses a backend's export, or the PropagationPolicy by which it travels, for example by an admission policy; the note gives the reason";
    ExportNotOurs: "MultiClusterIngress", "someone else has exported a backend: the controller leaves that to them";
    ExportContested: "MultiClusterIngress", "another client undoes every write to a backend's export or to its policy";
    StatusContested: "MultiClusterIngress", "another client undoes every write to our part of the status";
    LoadBalancerContested: "MultiClusterIngress", "another client undoes every write to the addresses of the load balancer";
    FinalizersContested: "MultiClusterIngress", "another client undoes every write to our finalizer";
    LoadBalancerSilent: "MultiClusterIngress", "the load balancer does not answer, so that what it serves stays as it was";
    LoadBalancerFailing: "MultiClusterIngress", "the load balancer could not be brought up to date for a while; the note gives the last error";
    GatewayClash: "MultiClusterIngress", "an object in the gateway cluster that is not ours has the name of one of ours, or a provider has the ingress for another controller";
    GatewayRefused: "MultiClusterIngress", "the gateway cluster rejects an object, HAProxy a command, or a provider the ingress; the note gives the reason";
    GatewayNotFound: "MultiClusterIngress", "the Gateway that `--gateway` names does not exist in the gateway cluster";
    RouteInvalid: "MultiClusterIngress", "a host or path of it cannot be had as an HTTPRoute; the note gives the reason, and the others are served";
    RouteConflict: "MultiClusterIngress", "another MultiClusterIngress, or an HTTPRoute that is not ours, has the same host and path at the Gateway";
    RouteNotAccepted: "MultiClusterIngress", "the Gateway does not serve one of its HTTPRoutes, or not all of it; the note gives the reason of the Gateway's controller";
    TlsNotServed: "MultiClusterIngress", "no listener of the Gateway serves TLS for a host for which it wants TLS";
    GatewayContested: "MultiClusterIngress", "another client undoes every write to an object of ours in the gateway cluster";
    DnsHostRefused: "MultiClusterIngress", "with `--provider dns`: a host is not published, because it is no DNS name, no rule names one, or another MultiClusterIngress leads it elsewhere";
    DnsTargetRefused: "MultiClusterIngress", "with `--provider dns`: an address is left out of a record, or no address serves every Service of a host; the note says which and why";
    DnsRecordNotServed: "MultiClusterIngress", "with `--provider dns`: a host does not resolve to what was published, after the time that ExternalDNS and resolvers have";
    BackendMissing: "MultiClusterIngress", "the configuration of HAProxy has no backend for a Service; the note names what to add";
    ConnectionsOpen: "MultiClusterIngress", "connections to an address that is taken out of HAProxy stay open after the grace; the note says where";
}

impl Reason {
    /// Returns `true` for an obstacle with which a load balancer may send requests otherwise than the status of the ingress says.
    pub(crate) fn delays_enforcement(self) -> bool {
        matches!(
            self,
            Self::LoadBalancerSilent
                | Self::LoadBalancerFailing
                | Self::GatewayClash
                | Self::GatewayRefused
                | Self::GatewayContested
                | Self::DnsRecordNotServed
                | Self::ConnectionsOpen
        )
    }
}

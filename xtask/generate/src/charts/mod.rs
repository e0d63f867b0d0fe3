//! The generated parts of the Helm charts in `manifests/helm`: [`copies()`] of the manifests that they render, and the
//! values that they take, as files and as a page ([`values`]).

mod copies;
mod schema;
mod values;

pub(crate) use self::copies::{copies, left_over};
pub(crate) use self::values::{defaults, page};

/// The charts, each with the files and folders below `manifests/` that it renders.
const CHARTS: [(&str, &[&str]); 3] = [
    (
        "karmada-rs",
        &[
            "host",
            "propagation/host",
            "propagation/cluster/host",
            "placement/hub/host",
            "renew/host",
            "renew/programs/renew.yaml",
        ],
    ),
    (
        "karmada-rs-agent",
        &[
            "member",
            "member/dns-service",
            "member/node-condition",
            "member/service-network",
            "member/signals",
            "gateway/reachability",
            "pull/member",
            "placement/member",
            "placement/crds/placement.kubernetes-fleet.io_appliedworks.yaml",
            "renew/programs/renew.yaml",
        ],
    ),
    (
        "karmada-rs-rights",
        &[
            "karmada",
            "gateway",
            "dns",
            "gateway-api/rights.yaml",
            "tls-secrets/gateway.yaml",
            "tls-secrets/karmada.yaml",
            "pull/rights.yaml",
            "propagation",
            "propagation/cluster",
            "propagation/collect-endpoints/rights.yaml",
            "propagation/east-west/rights.yaml",
            "propagation/estimators/rights.yaml",
            "propagation/everything/rights.yaml",
            "propagation/publish-nodes/rights.yaml",
            "propagation/rebalance/rights.yaml",
            "renew",
            "renew/fleet/rights.yaml",
            "admission",
            "admission/confine",
            "admission/gateway",
            "fleet",
            "placement/crds",
            "placement/hub",
            "placement/ingresses/member.yaml",
            "placement/ingresses/rights.yaml",
            "placement/kubectl-remedy.yaml",
            "placement/remedies/rights.yaml",
        ],
    ),
];

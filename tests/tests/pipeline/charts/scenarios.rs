//! Installations by helm and by kustomize.

/// A release, and the manifests that have the same objects.
pub(super) struct Scenario {
    pub(super) chart: &'static str,
    pub(super) namespace: &'static str,
    /// Each as `NAME=JSON`.
    pub(super) values: &'static [&'static str],
    /// As [`manifests`](super::rendering::manifests) reads them.
    pub(super) manifests: &'static [&'static str],
}

const fn scenario(
    chart: &'static str,
    namespace: &'static str,
    values: &'static [&'static str],
    manifests: &'static [&'static str],
) -> Scenario {
    Scenario {
        chart,
        namespace,
        values,
        manifests,
    }
}

const HOST: &str = "karmada-rs";
const AGENT: &str = "karmada-rs-agent";
const RIGHTS: &str = "karmada-rs-rights";

/// Turns off the defaults on the host.
const NO_REMEDIES: &str = r#"remedyController={"enabled":false}"#;
const NO_INGRESSES: &str = r#"ingressController={"enabled":false}"#;
const NO_AGENT: &str = r#"clusterHealthAgent={"enabled":false}"#;
const MEMBER: &str = r#"clusterName="member1""#;

/// The scenarios. Every kustomization and every component of our programs in `manifests/` is in one.
pub(super) const ALL: [Scenario; 30] = [
    scenario(HOST, "karmada-system", &[], &["host"]),
    scenario(
        HOST,
        "karmada-system",
        &[r#"ingressController={"flags":["--export-services=false"]}"#],
        &["without-exports"],
    ),
    scenario(
        HOST,
        "karmada-system",
        &["copyTlsSecrets=true"],
        &["tls-secrets"],
    ),
    scenario(
        HOST,
        "karmada-system",
        &[
            r#"loadBalancer="haproxy""#,
            r#"ingressController={"flags":["--haproxy-socket=haproxy-0=tcp:haproxy-0.haproxy:9999,haproxy-1=tcp:haproxy-1.haproxy:9999"]}"#,
        ],
        &["haproxy/host"],
    ),
    scenario(
        HOST,
        "karmada-system",
        &[
            NO_REMEDIES,
            NO_INGRESSES,
            r#"propagationController={"enabled":true,"flags":["--observe-only"]}"#,
            r#"scheduler={"enabled":true,"flags":["--observe-only"]}"#,
            r#"executionController={"enabled":true,"flags":["--observe-only"]}"#,
        ],
        &["propagation/observe"],
    ),
    scenario(
        HOST,
        "karmada-system",
        &[
            NO_REMEDIES,
            NO_INGRESSES,
            r#"propagationController={"enabled":true}"#,
            r#"scheduler={"enabled":true,"flags":["--enable-scheduler-estimator"]}"#,
            r#"executionController={"enabled":true}"#,
        ],
        &["propagation/estimators"],
    ),
    scenario(
        HOST,
        "karmada-system",
        &[
            NO_REMEDIES,
            NO_INGRESSES,
            r#"propagationController={"enabled":true}"#,
            r#"scheduler={"enabled":true}"#,
            r#"executionController={"enabled":true,"flags":["--block-multicluster-services"]}"#,
        ],
        &["propagation/east-west"],
    ),
    scenario(
        HOST,
        "karmada-system",
        &[
            NO_REMEDIES,
            NO_INGRESSES,
            r#"propagationController={"enabled":true}"#,
            r#"scheduler={"enabled":true}"#,
            r#"executionController={"enabled":true,"flags":["--collect-endpoints"]}"#,
            r#"clusterController={"enabled":true}"#,
        ],
        &["propagation/collect-endpoints", "propagation/cluster/host"],
    ),
    scenario(
        HOST,
        "karmada-system",
        &[
            NO_REMEDIES,
            NO_INGRESSES,
            r#"propagationController={"enabled":true}"#,
            r#"scheduler={"enabled":true,"flags":["--rebalance-workloads"]}"#,
            r#"executionController={"enabled":true,"flags":["--collect-endpoints"]}"#,
        ],
        &["propagation/rebalance"],
    ),
    scenario(
        HOST,
        "karmada-system",
        &[
            NO_REMEDIES,
            NO_INGRESSES,
            r#"clusterController={"enabled":true,"flags":["--publish-node-addresses"]}"#,
        ],
        &["propagation/publish-nodes"],
    ),
    scenario(
        HOST,
        "fleet-system",
        &[
            NO_REMEDIES,
            NO_INGRESSES,
            r#"placementController={"enabled":true}"#,
        ],
        &["placement/hub/host"],
    ),
    scenario(
        HOST,
        "fleet-system",
        &[
            NO_REMEDIES,
            NO_INGRESSES,
            r#"placementController={"enabled":true}"#,
            r#"renew={"enabled":true}"#,
        ],
        &["placement/hub/host", "renew/programs"],
    ),
    scenario(
        HOST,
        "fleet-system",
        &[
            NO_INGRESSES,
            r#"remedyController={"flags":["--cluster-kind=MemberCluster"]}"#,
        ],
        &["placement/remedies/host"],
    ),
    scenario(
        HOST,
        "fleet-system",
        &[
            NO_REMEDIES,
            r#"ingressController={"flags":["--cluster-kind=MemberCluster"]}"#,
        ],
        &["placement/ingresses/host"],
    ),
    scenario(
        HOST,
        "karmada-system",
        &[NO_REMEDIES, NO_INGRESSES, r#"renew={"enabled":true}"#],
        &["renew/host"],
    ),
    scenario(
        HOST,
        "karmada-system",
        &[
            "fixedUser=false",
            NO_REMEDIES,
            NO_INGRESSES,
            r#"scheduler={"enabled":true}"#,
            r#"propagationController={"enabled":true}"#,
            r#"executionController={"enabled":true}"#,
            r#"renew={"enabled":true}"#,
        ],
        &["propagation/host + openshift", "renew/host + openshift"],
    ),
    scenario(AGENT, "karmada-rs", &[], &["member"]),
    scenario(
        AGENT,
        "karmada-rs",
        &["fixedUser=false"],
        &["member + openshift"],
    ),
    scenario(
        AGENT,
        "karmada-rs",
        &[
            "dnsService=true",
            "nodeCondition=true",
            "serviceNetwork=true",
        ],
        &["member + member/dns-service + member/node-condition + member/service-network"],
    ),
    scenario(
        AGENT,
        "karmada-rs",
        &[NO_AGENT, r#"gatewayHealthAgent={"enabled":true}"#],
        &["gateway/reachability"],
    ),
    scenario(
        AGENT,
        "karmada-system",
        &[
            MEMBER,
            NO_AGENT,
            r#"pull={"enabled":true}"#,
            r#"renew={"enabled":true}"#,
        ],
        &["pull/member", "renew/pull"],
    ),
    scenario(
        AGENT,
        "fleet-system",
        &[
            MEMBER,
            NO_AGENT,
            r#"placement={"enabled":true}"#,
            r#"renew={"enabled":true}"#,
        ],
        &[
            "placement/member",
            "renew/programs",
            "placement/crds/placement.kubernetes-fleet.io_appliedworks.yaml",
        ],
    ),
    scenario(
        RIGHTS,
        "karmada-system",
        &[
            r#"place="karmada""#,
            "admission=false",
            "kubectlRemedy=false",
            "copyTlsSecrets=true",
        ],
        &["karmada", "tls-secrets/karmada.yaml"],
    ),
    scenario(
        RIGHTS,
        "karmada-system",
        &[
            r#"place="karmada""#,
            r#"agents=["member1"]"#,
            "gatewayAgents=true",
            r#"pull=["member1"]"#,
            r#"propagation={"enabled":true,"estimators":true}"#,
            "renew=true",
        ],
        &[
            "karmada",
            "karmada/kubectl-remedy.yaml",
            "karmada/agent.yaml",
            "karmada/gateway-agent.yaml",
            "pull/rights.yaml",
            "propagation",
            "propagation/estimators/rights.yaml",
            "renew",
            "renew/pull-member.yaml",
            "admission/confine",
        ],
    ),
    scenario(
        RIGHTS,
        "karmada-system",
        &[
            r#"place="karmada""#,
            r#"propagation={"enabled":true,"everything":true,"blockMulticlusterServices":true}"#,
            "admission=false",
            "kubectlRemedy=false",
        ],
        &[
            "karmada",
            "propagation",
            "propagation/east-west/rights.yaml",
            "propagation/everything/rights.yaml",
        ],
    ),
    scenario(
        RIGHTS,
        "karmada-system",
        &[
            r#"place="fleet""#,
            r#"propagation={"collectEndpoints":true,"publishNodes":true,"rebalance":true}"#,
            "kubectlRemedy=false",
        ],
        &[
            "fleet",
            "karmada",
            "propagation",
            "propagation/cluster",
            "propagation/collect-endpoints/rights.yaml",
            "propagation/publish-nodes/rights.yaml",
            "propagation/rebalance/rights.yaml",
            "admission",
        ],
    ),
    scenario(
        RIGHTS,
        "karmada-rs",
        &[r#"place="gateway""#, "copyTlsSecrets=true"],
        &["gateway", "tls-secrets/gateway.yaml", "admission/gateway"],
    ),
    scenario(
        RIGHTS,
        "karmada-rs",
        &[r#"place="gateway""#, "gatewayApi=true"],
        &["gateway-api", "admission/gateway"],
    ),
    scenario(RIGHTS, "karmada-rs", &[r#"place="dns""#], &["dns"]),
    scenario(
        RIGHTS,
        "fleet-system",
        &[
            r#"place="hub""#,
            r#"agents=["member1"]"#,
            r#"placement=["member1"]"#,
            "ingresses=true",
            "remedies=true",
            "renew=true",
        ],
        &[
            "placement/crds",
            "fleet/networking.karmada.io_multiclusteringresses.yaml",
            "fleet/remedy.karmada.io_remedies.yaml",
            "placement/hub",
            "placement/ingresses/rights.yaml",
            "placement/ingresses/member.yaml",
            "placement/kubectl-remedy.yaml",
            "placement/remedies/rights.yaml",
            "placement/hub/cluster-health-agent.yaml",
            "renew/hub.yaml",
            "renew/placement-member.yaml",
        ],
    ),
];

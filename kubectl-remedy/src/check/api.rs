//! The API: whether it answers, serves the kinds, and lets the caller read and write them.

use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use karmada_api::condition::REPORTER_LEASE;
use karmada_api::gateway_api::HttpRoute;
use karmada_runtime::error::Chain;
use kube::api::PostParams;
use kube::{Api, Client};

use super::report::{Finding, Section};
use crate::error::Error;
use crate::lists::serves;

const INSTALL: &str = "docs/install.md tells what to install; the kubeconfig must be that of the Karmada API, and not of a member or of the host";
const RIGHTS: &str =
    "manifests/karmada/kubectl-remedy.yaml has the ClusterRole: bind it to yourself";

/// The kinds that are read, with their group and version.
const KINDS: [(&str, &str); 4] = [
    ("cluster.karmada.io/v1alpha1", "clusters"),
    ("remedy.karmada.io/v1alpha1", "remedies"),
    ("networking.karmada.io/v1alpha1", "multiclusteringresses"),
    ("work.karmada.io/v1alpha2", "resourcebindings"),
];

/// A right of the caller.
#[derive(Clone, Copy, Debug)]
pub(super) struct Right {
    verb: &'static str,
    group: &'static str,
    resource: &'static str,
    /// The name of the one object that is meant, if not all are.
    name: Option<&'static str>,
}

const READS: [Right; 19] = [
    Right::to("list", "cluster.karmada.io", "clusters"),
    Right::to("get", "cluster.karmada.io", "clusters"),
    Right::to("list", "remedy.karmada.io", "remedies"),
    Right::to("list", "networking.karmada.io", "multiclusteringresses"),
    Right::to("list", "work.karmada.io", "resourcebindings"),
    Right::to("get", "work.karmada.io", "resourcebindings"),
    Right::to("list", "work.karmada.io", "clusterresourcebindings"),
    Right::to("list", "work.karmada.io", "works"),
    Right::to("list", "policy.karmada.io", "propagationpolicies"),
    Right::to("list", "policy.karmada.io", "clusterpropagationpolicies"),
    Right::to("list", "networking.k8s.io", "ingressclasses"),
    Right::to("list", "discovery.k8s.io", "endpointslices"),
    Right::to("list", "coordination.k8s.io", "leases").called(REPORTER_LEASE),
    Right::to("get", "coordination.k8s.io", "leases").called("remedy-controller"),
    Right::to("get", "coordination.k8s.io", "leases").called("ingress-controller"),
    Right::to("get", "coordination.k8s.io", "leases").called("propagation-controller"),
    Right::to("get", "coordination.k8s.io", "leases").called("karmada-scheduler"),
    Right::to("get", "coordination.k8s.io", "leases").called("execution-controller"),
    Right::to("get", "coordination.k8s.io", "leases").called("cluster-controller"),
];

/// Read where the API has them.
const ROUTES: Right = Right::to("list", "gateway.networking.k8s.io", "httproutes");

const WRITES: [Right; 3] = [
    Right::to("create", "remedy.karmada.io", "remedies"),
    Right::to("patch", "remedy.karmada.io", "remedies"),
    Right::to("delete", "remedy.karmada.io", "remedies"),
];

/// Checks that the API answers and serves the kinds.
pub(super) async fn kinds(client: &Client) -> Section {
    let findings = match client.apiserver_version().await {
        Ok(version) => {
            let answers = format!("the API server answers: {}", version.git_version);
            let mut findings = vec![Finding::good(answers)];
            for (version, plural) in KINDS {
                findings.push(kind(client, version, plural).await);
            }
            findings
        }
        Err(error) => vec![Finding::bad(
            format!("the API server does not answer: {}", Chain(&error)),
            "name another --kubeconfig or --context",
        )],
    };
    Section {
        title: "API",
        findings,
    }
}

async fn kind(client: &Client, version: &str, plural: &str) -> Finding {
    match client.list_api_group_resources(version).await {
        Ok(served) if served.resources.iter().any(|found| found.name == plural) => {
            Finding::good(format!("{plural} of {version} are served"))
        }
        Ok(_) => Finding::bad(format!("{plural} of {version} are not served"), INSTALL),
        Err(error) => Finding::bad(
            format!("{plural} of {version} are not served: {}", Chain(&error)),
            INSTALL,
        ),
    }
}

/// Checks that the caller may read the objects that are shown, and write Remedies.
pub(super) async fn rights(client: &Client, namespace: Option<&str>) -> Result<Section, Error> {
    let mut findings = Vec::new();
    let is_routed = serves::<HttpRoute>(client).await?;
    let routes = is_routed.then_some(ROUTES);
    for right in READS.into_iter().chain(routes) {
        match allows(client, namespace, right).await? {
            Some(true) => {}
            Some(false) => findings.push(Finding::bad(right.denied(), RIGHTS)),
            None => {
                findings.push(Finding::doubtful(
                    "the API does not tell what you may do",
                    "commands that you have no right to will say so",
                ));
                break;
            }
        }
    }
    if findings.is_empty() {
        findings.push(Finding::good("you may read everything that is shown"));
        let mut denied = Vec::new();
        for right in WRITES {
            if allows(client, None, right).await? == Some(false) {
                denied.push(Finding::doubtful(right.denied(), RIGHTS));
            }
        }
        if denied.is_empty() {
            denied.push(Finding::good("you may block and unblock clusters"));
        }
        findings.extend(denied);
    }
    Ok(Section {
        title: "Your rights",
        findings,
    })
}

impl Right {
    pub(super) const fn to(
        verb: &'static str,
        group: &'static str,
        resource: &'static str,
    ) -> Self {
        Self {
            verb,
            group,
            resource,
            name: None,
        }
    }

    const fn called(self, name: &'static str) -> Self {
        Self {
            name: Some(name),
            ..self
        }
    }

    pub(super) fn denied(self) -> String {
        let Self {
            verb,
            group,
            resource,
            name,
        } = self;
        let name = name.map_or_else(String::new, |name| format!(" called {name}"));
        format!("you may not {verb} {resource}.{group}{name}")
    }

    /// Returns `true` if it is about objects in the namespace that is named.
    fn is_of_ingresses(self) -> bool {
        [
            "multiclusteringresses",
            "httproutes",
            "resourcebindings",
            "propagationpolicies",
            "endpointslices",
        ]
        .contains(&self.resource)
    }
}

/// Returns the answer of the API about a right, if it gives one.
pub(super) async fn allows(
    client: &Client,
    namespace: Option<&str>,
    right: Right,
) -> Result<Option<bool>, Error> {
    let namespace = namespace.filter(|_| right.is_of_ingresses());
    let attributes = ResourceAttributes {
        verb: Some(right.verb.to_owned()),
        group: Some(right.group.to_owned()),
        resource: Some(right.resource.to_owned()),
        name: right.name.map(ToOwned::to_owned),
        namespace: namespace.map(ToOwned::to_owned),
        ..ResourceAttributes::default()
    };
    let review = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(attributes),
            ..SelfSubjectAccessReviewSpec::default()
        },
        ..SelfSubjectAccessReview::default()
    };
    let reviews: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    match reviews.create(&PostParams::default(), &review).await {
        Ok(review) => Ok(review.status.map(|status| status.allowed)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(source) => Err(Error::request("ask for your rights", source)),
    }
}

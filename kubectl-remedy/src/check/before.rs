//! `kubectl remedy check --pre`: the surroundings of an installation, before it changes anything.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Namespace, Service};
use karmada_runtime::client::{Source, connect};
use karmada_runtime::error::Chain;
use kube::api::ListParams;
use kube::{Api, Client};
use objects::Metadata;

use super::api::{Right, allows};
use super::controllers::{NAMESPACE, Program, foreign};
use super::gates;
use super::members::minor;
use super::report::{Finding, Section};
use crate::args::CheckArgs;
use crate::error::Error;
use crate::identity::NAME;
use crate::interpret::customizations;
use crate::lease::Holder;
use crate::membership::agent::kubeconfig::reachable;
use crate::propagation::{Served, served};

/// The kinds that an installation builds on.
const KINDS: [&str; 7] = [
    "clusters.cluster.karmada.io",
    "remedies.remedy.karmada.io",
    "multiclusteringresses.networking.karmada.io",
    "propagationpolicies.policy.karmada.io",
    "clusterpropagationpolicies.policy.karmada.io",
    "resourcebindings.work.karmada.io",
    "works.work.karmada.io",
];

/// The beginning of the name of an estimator's Service (`--scheduler-estimator-service-prefix` has the same default).
const ESTIMATOR: &str = "karmada-scheduler-estimator-";

/// The writes of an installation.
const WRITES: [Right; 7] = [
    Right::to("create", "", "namespaces"),
    Right::to("create", "", "serviceaccounts"),
    Right::to("create", "", "secrets"),
    Right::to("create", "rbac.authorization.k8s.io", "clusterroles"),
    // Who grants rights beyond his own needs these two.
    Right::to("escalate", "rbac.authorization.k8s.io", "clusterroles"),
    Right::to("bind", "rbac.authorization.k8s.io", "clusterroles"),
    Right::to("patch", "apiextensions.k8s.io", "customresourcedefinitions"),
];

/// The first minor version that serves the policies of `manifests/admission`.
const WITH_ADMISSION: i64 = 30;

/// Adds a section for each subject.
pub(super) async fn check(
    args: &CheckArgs,
    source: &Source,
    client: &Client,
    now: Timestamp,
    sections: &mut Vec<Section>,
) -> Result<(), Error> {
    sections.push(api(args, source, client).await?);
    sections.push(rights(client).await?);
    sections.push(karmada(client, now).await?);
    sections.push(interpreters(client).await?);
    Ok(())
}

async fn api(args: &CheckArgs, source: &Source, client: &Client) -> Result<Section, Error> {
    let version = client.apiserver_version().await;
    let version = version.map_err(|source| Error::request("get the version of the API", source))?;
    let mut findings = vec![answers(&version.git_version), kinds(&served(client).await?)];
    findings.extend(for_members(args.server.as_deref(), source).await?);
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace = namespaces.get_opt(NAMESPACE).await;
    let namespace = namespace
        .map_err(|source| Error::request(format!("get the namespace {NAMESPACE}"), source))?;
    findings.push(match namespace {
        Some(_) => Finding::good(format!("the namespace {NAMESPACE} exists")),
        None => Finding::bad(
            format!("there is no namespace {NAMESPACE}, where leases, accounts and tokens are"),
            format!("kubectl create namespace {NAMESPACE}"),
        ),
    });
    Ok(Section {
        title: "API",
        findings,
    })
}

/// Tells whether members may reach the API at `given`, or at the server of the kubeconfig, and whether it answers at `given`.
async fn for_members(given: Option<&str>, source: &Source) -> Result<Vec<Finding>, Error> {
    let own = source.cluster()?.server.unwrap_or_default();
    let mut findings = vec![match reachable(given.unwrap_or(&own)) {
        Ok(server) => Finding::good(format!("members may reach {server}")),
        Err(error) => Finding::doubtful(error.to_string(), "`kubectl remedy join` takes it"),
    }];
    let Some(given) = given else {
        return Ok(findings);
    };
    if !given.starts_with("https:") {
        let hint = "give --server an https URL";
        findings.push(Finding::doubtful(format!("{given} is not encrypted"), hint));
        return Ok(findings);
    }
    let there = connect(&source.at(given)?, NAME).await?;
    findings.push(match there.apiserver_version().await {
        Ok(_) => Finding::good(format!(
            "the Karmada API answers at {given}, and its certificate has that address"
        )),
        Err(error) => {
            let why = Chain(&error).to_string();
            let hint = if why.contains("certificate") {
                "give it a certificate with that address, or `kubectl remedy join` a --tls-server-name that it has (docs/before.md)"
            } else {
                "members would not reach it there, either"
            };
            Finding::bad(format!("the Karmada API does not answer at {given}: {why}"), hint)
        }
    });
    Ok(findings)
}

fn answers(version: &str) -> Finding {
    let text = format!("the API server answers: {version}");
    if minor(version).is_some_and(|minor| minor < WITH_ADMISSION) {
        let hint = "the policies of manifests/admission need Kubernetes 1.30: leave them out";
        return Finding::doubtful(text, hint);
    }
    Finding::good(text)
}

fn kinds(all: &[Served]) -> Finding {
    let mut missing = KINDS.to_vec();
    missing.retain(|name| !all.iter().any(|kind| kind.full_name() == *name));
    if missing.is_empty() {
        return Finding::good("every kind is served");
    }
    if missing.len() == KINDS.len() {
        return Finding::doubtful(
            "no kind of Karmada is served",
            "for a fleet without Karmada apply manifests/fleet first; for a Karmada name the context of its own API, and not that of its host",
        );
    }
    Finding::bad(
        format!("these kinds are not served: {}", missing.join(", ")),
        "docs/install.md and docs/fleet.md tell what to apply",
    )
}

async fn rights(client: &Client) -> Result<Section, Error> {
    let mut findings = Vec::new();
    for right in WRITES {
        if allows(client, None, right).await? == Some(false) {
            let hint = "an installation needs it, as cluster-admin has it";
            findings.push(Finding::bad(right.denied(), hint));
        }
    }
    if findings.is_empty() {
        findings.push(Finding::good("you may install"));
    }
    Ok(Section {
        title: "Your rights",
        findings,
    })
}

/// Tells which of Karmada's own programs lead, since the work of ours is theirs until they are stopped.
async fn karmada(client: &Client, now: Timestamp) -> Result<Section, Error> {
    let mut findings = Vec::new();
    let mut is_karmada = false;
    for (name, hint) in [
        (
            "karmada-controller-manager",
            "turn the controllers off whose work ours are to do: docs/swap.md and docs/propagation.md name them",
        ),
        (
            "karmada-scheduler",
            "stop it before our scheduler is to work: they campaign for the same lease",
        ),
    ] {
        let program = Program::new(name);
        let Some(lease) = program.lease(client).await? else {
            continue;
        };
        let holder = Holder::of(&lease, now).filter(Holder::is_live);
        if let Some(holder) = holder
            && foreign(program, &lease).is_none()
        {
            is_karmada = true;
            findings.push(Finding::doubtful(
                format!("{name} leads: its lease is {holder}"),
                hint,
            ));
        }
    }
    if findings.is_empty() {
        findings.push(Finding::good("none of them leads here"));
    }
    findings.extend(estimators(client).await?);
    if is_karmada {
        findings.extend(gates::findings(client).await?);
    }
    Ok(Section {
        title: "Karmada's own programs",
        findings,
    })
}

/// Tells of estimators, which our scheduler asks only when told to.
async fn estimators(client: &Client) -> Result<Option<Finding>, Error> {
    let services: Api<Service> = Api::namespaced(client.clone(), NAMESPACE);
    let services = services.list_metadata(&ListParams::default()).await;
    let services = services
        .map_err(|source| Error::request(format!("list services in {NAMESPACE}"), source))?;
    let names = services
        .items
        .iter()
        .filter_map(|it| it.metadata.name.as_ref());
    let count = names.filter(|name| name.starts_with(ESTIMATOR)).count();
    Ok((count > 0).then(|| {
        Finding::doubtful(
            format!("Services of estimators are here, {count} of them"),
            "our scheduler asks them with --enable-scheduler-estimator, and the flags that Karmada's has for them",
        )
    }))
}

async fn interpreters(client: &Client) -> Result<Section, Error> {
    let (interpreters, customizations) = customizations::interpreters(client).await?;
    let problems = customizations.iter().flat_map(|customization| {
        let name = customization.name();
        let found = interpreters.problems(name).into_iter();
        found.map(move |problem| {
            Finding::bad(
                format!("{name}: {problem}"),
                "what it customizes would not be propagated; `kubectl remedy interpret` tries scripts",
            )
        })
    });
    let mut findings: Vec<_> = problems.collect();
    if findings.is_empty() {
        let count = customizations.len();
        findings.push(Finding::good(format!(
            "all {count} customizations can be carried out"
        )));
    }
    Ok(Section {
        title: "Interpreters",
        findings,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(found: &[Served]) -> String {
        let shown = kinds(found).to_string();
        let shown = anstream::adapter::strip_str(&shown).to_string();
        shown.lines().next().unwrap_or_default().to_owned()
    }

    fn served(name: &str) -> Served {
        let (plural, group) = name.split_once('.').unwrap();
        Served {
            group: group.to_owned(),
            plural: plural.to_owned(),
            ..Served::default()
        }
    }

    /// An API that has no kind is the host's, or one before its definitions; one that lacks some is broken.
    #[test]
    fn missing_kinds_are_named() {
        assert_eq!(line(&[]), "‼ no kind of Karmada is served");
        let some: Vec<_> = KINDS[1..].iter().copied().map(served).collect();
        assert_eq!(
            line(&some),
            "× these kinds are not served: clusters.cluster.karmada.io"
        );
        let all: Vec<_> = KINDS.into_iter().map(served).collect();
        assert_eq!(line(&all), "✓ every kind is served");
    }

    fn told(version: &str) -> usize {
        answers(version).to_string().lines().count()
    }

    /// An older API has not all that an installation may use.
    #[test]
    fn old_version_is_told() {
        assert_eq!(
            (told("v1.36.1"), told("v1.29.4"), told("v1.30.0-eks")),
            (1, 2, 1)
        );
    }
}

//! The controllers: whether one of each leads, and whether another program writes their fields.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use karmada_api::{Cluster, MultiClusterIngress};
use kube::core::ObjectMeta;
use kube::{Api, Client};

use super::report::{Finding, Section};
use crate::error::Error;
use crate::identity::NAME;
use crate::lease::Holder;
use crate::lists::scoped;
use crate::propagation::Survey;
use crate::writer::{Writer, metadata};

/// The namespace of the controllers' leases.
pub(super) const NAMESPACE: &str = "karmada-system";

/// A program that leads while it holds a lease.
#[derive(Clone, Copy, Debug)]
pub(super) struct Program {
    pub(super) name: &'static str,
    lease: &'static str,
}

/// A field that one program is to write.
#[derive(Clone, Copy, Debug)]
struct Field {
    parent: &'static str,
    name: &'static str,
    /// The plural of the objects that have it.
    of: &'static str,
    writer: Program,
}

const REMEDY: Program = Program::new("remedy-controller");
const INGRESS: Program = Program::new("ingress-controller");
const PROPAGATION: Program = Program::new("propagation-controller");
const EXECUTION: Program = Program::new("execution-controller");
const CLUSTER: Program = Program::new("cluster-controller");
/// Its lease is that of Karmada's own, so that one of them leads.
const SCHEDULER: Program = Program {
    name: "scheduler",
    lease: "karmada-scheduler",
};

const ACTIONS: Field = Field::new("status", "remedyActions", "clusters", REMEDY);
const LOCATIONS: Field = Field::new("status", "serviceLocations", "ingresses", INGRESS);
const BLOCKED: Field = Field::new("status", "trafficBlockClusters", "ingresses", INGRESS);
const RESOURCE: Field = Field::new("spec", "resource", "bindings", PROPAGATION);
const TARGETS: Field = Field::new("spec", "clusters", "bindings", SCHEDULER);
const WORKLOAD: Field = Field::new("spec", "workload", "works", PROPAGATION);

impl Program {
    /// Creates a program whose lease has its name.
    pub(super) const fn new(name: &'static str) -> Self {
        Self { name, lease: name }
    }

    /// Reads its lease.
    pub(super) async fn lease(self, client: &Client) -> Result<Option<Lease>, Error> {
        let leases: Api<Lease> = Api::namespaced(client.clone(), NAMESPACE);
        let lease = leases.get_opt(self.lease).await;
        lease.map_err(|source| {
            let attempt = format!("get the lease {NAMESPACE}/{}", self.lease);
            Error::request(attempt, source)
        })
    }
}

impl Field {
    const fn new(
        parent: &'static str,
        name: &'static str,
        of: &'static str,
        writer: Program,
    ) -> Self {
        Self {
            parent,
            name,
            of,
            writer,
        }
    }
}

/// Checks the controllers.
pub(super) async fn section(
    client: &Client,
    namespace: Option<&str>,
    survey: Option<&Survey>,
    now: Timestamp,
) -> Result<Section, Error> {
    let mut findings = Vec::new();
    for program in [REMEDY, INGRESS] {
        let lease = program.lease(client).await?;
        findings.push(leader(program, lease.as_ref(), now));
    }
    let clusters: Api<Cluster> = Api::all(client.clone());
    findings.push(writers(ACTIONS, metadata(&clusters).await?.iter(), None));
    let ingresses = metadata(&scoped::<MultiClusterIngress>(client, namespace)).await?;
    findings.extend([LOCATIONS, BLOCKED].map(|field| writers(field, ingresses.iter(), None)));
    findings.extend(propagation(client, survey, now).await?);
    Ok(Section {
        title: "Controllers",
        findings,
    })
}

/// Checks those that propagate, unless that is left to Karmada's.
async fn propagation(
    client: &Client,
    survey: Option<&Survey>,
    now: Timestamp,
) -> Result<Vec<Finding>, Error> {
    let programs = [PROPAGATION, SCHEDULER, EXECUTION, CLUSTER];
    let leases = programs.map(|program| async move {
        let lease = program.lease(client).await?;
        Ok::<_, Error>((program, lease))
    });
    let leases = futures::future::try_join_all(leases).await?;
    let ours = leases.iter().any(|(program, lease)| {
        let writer = lease.as_ref().map(|lease| foreign(*program, lease));
        writer == Some(None)
    });
    if !ours {
        let text = "propagation is left to Karmada's controllers: none of ours has ever led";
        return Ok(vec![Finding::good(text)]);
    }
    let mut findings: Vec<_> = leases
        .iter()
        .map(|(program, lease)| propagator(*program, lease.as_ref(), now))
        .collect();
    let Some(survey) = survey else {
        return Ok(findings);
    };
    for field in [RESOURCE, TARGETS] {
        let since = leads_since(field.writer, &leases, now);
        findings.extend(since.map(|since| writers(field, survey.of_bindings(), Some(since))));
    }
    let since = leads_since(WORKLOAD.writer, &leases, now);
    findings.extend(since.map(|since| writers(WORKLOAD, survey.of_works(), Some(since))));
    Ok(findings)
}

/// Returns the time at which a program began to lead, if it still does.
fn leads_since(
    program: Program,
    leases: &[(Program, Option<Lease>)],
    now: Timestamp,
) -> Option<Timestamp> {
    let mut leases = leases.iter();
    let (_, lease) = leases.find(|(other, _)| other.name == program.name)?;
    let lease = lease.as_ref()?;
    let is_live = Holder::of(lease, now)?.is_live();
    let acquired = lease.spec.as_ref()?.acquire_time.as_ref()?.0;
    (is_live && foreign(program, lease).is_none()).then_some(acquired)
}

/// Returns the other program that renews the lease of `program`.
pub(super) fn foreign(program: Program, lease: &Lease) -> Option<String> {
    let writer = Writer::of(&lease.metadata, "spec", "renewTime")?.name;
    (writer != program.name).then_some(writer)
}

/// Returns whether a program leads whose work Karmada's own may do.
fn propagator(program: Program, lease: Option<&Lease>, now: Timestamp) -> Finding {
    let Some(lease) = lease else {
        return Finding::doubtful(
            format!(
                "{} never led: Karmada's own does its work, or nobody",
                program.name
            ),
            format!("start the {}, unless Karmada's own runs", program.name),
        );
    };
    let other = foreign(program, lease);
    match (other, Holder::of(lease, now)) {
        (Some(other), Some(holder)) if holder.is_live() => Finding::doubtful(
            format!(
                "{other} leads in place of the {}: lease {NAMESPACE}/{} is {holder}",
                program.name, program.lease
            ),
            format!(
                "stop {other} if the {} is to take over; while that leads, ours waits",
                program.name
            ),
        ),
        _ => leader(program, Some(lease), now),
    }
}

fn leader(program: Program, lease: Option<&Lease>, now: Timestamp) -> Finding {
    let name = format!("lease {NAMESPACE}/{}", program.lease);
    let program = program.name;
    let hint = format!(
        "start the {program}, or look at its logs; one with --leader-elect=false has no lease"
    );
    match lease.map(|lease| Holder::of(lease, now)) {
        None => Finding::bad(format!("{program} never led: there is no {name}"), hint),
        Some(None) => Finding::bad(
            format!("{program} does not lead: nobody holds the {name}"),
            hint,
        ),
        Some(Some(holder)) if holder.is_live() => {
            Finding::good(format!("{program} leads: {name} is {holder}"))
        }
        Some(Some(holder)) => {
            Finding::bad(format!("{program} does not lead: {name} is {holder}"), hint)
        }
    }
}

/// Returns the programs other than its own and this one, which writes once at the wish of a user, that last wrote a field of some objects,
/// and did `since`.
fn writers<'a>(
    field: Field,
    objects: impl Iterator<Item = &'a ObjectMeta>,
    since: Option<Timestamp>,
) -> Finding {
    let Field {
        parent,
        name,
        of,
        writer: Program { name: own, .. },
    } = field;
    let mut others: BTreeMap<String, usize> = BTreeMap::new();
    for metadata in objects {
        if let Some(writer) = Writer::of(metadata, parent, name)
            && ![own, NAME].contains(&&*writer.name)
            && since.is_none_or(|since| writer.time.is_some_and(|time| time.0 > since))
        {
            *others.entry(writer.name).or_default() += 1;
        }
    }
    if others.is_empty() {
        return Finding::good(format!("{name} of {of} is written by the {own} alone"));
    }
    let others: Vec<String> = others
        .iter()
        .map(|(name, count)| format!("{name} ({count} {of})"))
        .collect();
    Finding::doubtful(
        format!("{name} was last written by {}", others.join(", ")),
        format!(
            "two programs that write it undo each other's work: turn the other one off, or the {own}"
        ),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    fn lease(holder: &str, renewed: &str) -> Lease {
        from_value(json!({ "metadata": {}, "spec": { "holderIdentity": holder,
            "leaseDurationSeconds": 15, "renewTime": renewed } }))
        .unwrap()
    }

    /// A controller leads while its lease is renewed.
    #[test]
    fn renewed_lease_leads() {
        let now: Timestamp = "2026-11-20T08:10:00Z".parse().unwrap();
        let live = lease("host_1", "2026-11-20T08:09:55.000000Z");
        let dead = lease("host_1", "2026-11-20T07:00:00.000000Z");
        let free = lease("", "2026-11-20T08:09:55.000000Z");
        for (lease, text) in [
            (
                Some(live),
                "✓ remedy-controller leads: lease karmada-system/remedy-controller is held by host_1, renewed 5s ago",
            ),
            (
                Some(dead),
                "× remedy-controller does not lead: lease karmada-system/remedy-controller is held by host_1, renewed 70m ago",
            ),
            (
                Some(free),
                "× remedy-controller does not lead: nobody holds the lease karmada-system/remedy-controller",
            ),
            (
                None,
                "× remedy-controller never led: there is no lease karmada-system/remedy-controller",
            ),
        ] {
            let shown = leader(REMEDY, lease.as_ref(), now).to_string();
            let shown = anstream::adapter::strip_str(&shown).to_string();
            assert_eq!(shown.lines().next(), Some(text));
        }
    }

    fn written_by(manager: &str) -> ObjectMeta {
        from_value(
            json!({ "managedFields": [{ "manager": manager, "operation": "Update",
                "fieldsV1": { "f:status": { "f:remedyActions": {} } } }] }),
        )
        .unwrap()
    }

    /// Another writer is named with the number of objects.
    #[test]
    fn other_writer_is_counted() {
        let own = [
            written_by(REMEDY.name),
            written_by(NAME),
            ObjectMeta::default(),
        ];
        let alone = writers(ACTIONS, own.iter(), None);
        assert_eq!(
            alone,
            Finding::good("remedyActions of clusters is written by the remedy-controller alone")
        );
        let both = [
            written_by(REMEDY.name),
            written_by("karmada-controller-manager"),
        ];
        let shown = writers(ACTIONS, both.iter(), None).to_string();
        assert!(
            shown.contains("last written by karmada-controller-manager (1 clusters)"),
            "{shown}"
        );
        // A write of others before ours began to lead is no contest.
        let since = Some("2026-11-20T08:10:00Z".parse().unwrap());
        let before =
            Finding::good("remedyActions of clusters is written by the remedy-controller alone");
        assert_eq!(writers(ACTIONS, both.iter(), since), before);
    }

    fn held_by(manager: &str) -> Lease {
        from_value(json!({
            "metadata": { "managedFields": [{ "manager": manager, "operation": "Update",
                "fieldsV1": { "f:spec": { "f:renewTime": {} } } }] },
            "spec": { "holderIdentity": "host_1", "leaseDurationSeconds": 15,
                "renewTime": "2026-11-20T08:09:55.000000Z" } }))
        .unwrap()
    }

    /// The scheduler and Karmada's own campaign for one lease; which of them holds it, its writer tells.
    #[test]
    fn foreign_leader_is_named() {
        let now: Timestamp = "2026-11-20T08:10:00Z".parse().unwrap();
        let (ours, theirs) = (held_by("scheduler"), held_by("karmada-scheduler"));
        for (lease, text) in [
            (
                Some(&ours),
                "✓ scheduler leads: lease karmada-system/karmada-scheduler is held by host_1, renewed 5s ago",
            ),
            (
                Some(&theirs),
                "‼ karmada-scheduler leads in place of the scheduler: lease karmada-system/karmada-scheduler is held by host_1, renewed 5s ago",
            ),
            (
                None,
                "‼ scheduler never led: Karmada's own does its work, or nobody",
            ),
        ] {
            let shown = propagator(SCHEDULER, lease, now).to_string();
            let shown = anstream::adapter::strip_str(&shown).to_string();
            assert_eq!(shown.lines().next(), Some(text));
        }
    }
}

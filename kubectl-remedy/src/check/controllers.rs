//! The controllers: whether one of each leads, and whether another program writes what is theirs.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use karmada_api::{Cluster, MultiClusterIngress};
use kube::core::ObjectMeta;
use kube::{Api, Client};

use super::report::{Finding, Section};
use crate::error::Error;
use crate::fleet::scoped;
use crate::lease::Holder;
use crate::writer::{Writer, metadata};

/// The namespace of the controllers' leases.
const NAMESPACE: &str = "karmada-system";
/// The program that writes `remedyActions`, and its lease.
const REMEDY: &str = "remedy-controller";
/// The program that writes `trafficBlockClusters`, and its lease.
const INGRESS: &str = "ingress-controller";

/// Checks the controllers.
pub(super) async fn section(
    client: &Client,
    namespace: Option<&str>,
    now: Timestamp,
) -> Result<Section, Error> {
    let leases: Api<Lease> = Api::namespaced(client.clone(), NAMESPACE);
    let mut findings = Vec::new();
    for program in [REMEDY, INGRESS] {
        let lease = leases.get_opt(program).await;
        let lease = lease.map_err(|source| {
            Error::request(format!("get the lease {NAMESPACE}/{program}"), source)
        })?;
        findings.push(leader(program, lease.as_ref(), now));
    }
    let clusters: Api<Cluster> = Api::all(client.clone());
    let clusters = metadata(&clusters).await?;
    findings.push(writers("remedyActions", "clusters", REMEDY, &clusters));
    let ingresses = metadata(&scoped::<MultiClusterIngress>(client, namespace)).await?;
    for field in ["serviceLocations", "trafficBlockClusters"] {
        findings.push(writers(field, "ingresses", INGRESS, &ingresses));
    }
    Ok(Section {
        title: "Controllers",
        findings,
    })
}

fn leader(program: &str, lease: Option<&Lease>, now: Timestamp) -> Finding {
    let name = format!("lease {NAMESPACE}/{program}");
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

/// Returns the programs other than `own` that last wrote `status.<field>` of some objects.
fn writers(field: &str, kind: &str, own: &str, objects: &[ObjectMeta]) -> Finding {
    let mut others: BTreeMap<String, usize> = BTreeMap::new();
    for metadata in objects {
        if let Some(writer) = Writer::of(metadata, "status", field)
            && writer.name != own
        {
            *others.entry(writer.name).or_default() += 1;
        }
    }
    if others.is_empty() {
        return Finding::good(format!("{field} of {kind} is written by the {own} alone"));
    }
    let others: Vec<String> = others
        .iter()
        .map(|(name, count)| format!("{name} ({count} {kind})"))
        .collect();
    Finding::doubtful(
        format!("{field} was last written by {}", others.join(", ")),
        format!(
            "two programs that write it undo each other's work: turn the other one off, or the {own}"
        ),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    /// A controller leads while its lease is renewed.
    #[test]
    fn renewed_lease_leads() {
        let now: Timestamp = "2026-11-20T08:10:00Z".parse().unwrap();
        let lease = |holder: &str, renewed: &str| -> Lease {
            from_value(json!({ "metadata": {}, "spec": { "holderIdentity": holder,
                "leaseDurationSeconds": 15, "renewTime": renewed } }))
            .unwrap()
        };
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

    /// Another writer is named with the number of objects.
    #[test]
    fn other_writer_is_counted() {
        let written_by = |manager: &str| -> ObjectMeta {
            from_value(
                json!({ "managedFields": [{ "manager": manager, "operation": "Update",
                "fieldsV1": { "f:status": { "f:remedyActions": {} } } }] }),
            )
            .unwrap()
        };
        let own = [written_by(REMEDY), ObjectMeta::default()];
        let alone = writers("remedyActions", "clusters", REMEDY, &own);
        assert_eq!(
            alone,
            Finding::good("remedyActions of clusters is written by the remedy-controller alone")
        );
        let both = [written_by(REMEDY), written_by("karmada-controller-manager")];
        let shown = writers("remedyActions", "clusters", REMEDY, &both).to_string();
        assert!(
            shown.contains("last written by karmada-controller-manager (1 clusters)"),
            "{shown}"
        );
    }
}

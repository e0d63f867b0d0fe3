//! Argo Workflows.

use serde_json::{Value, json};

use super::interpreter::{Interpreter, Known};
use super::needs::Needs;
use super::reading::{count, list, pods, text};
use super::retention::keep_suspension;
use crate::interpret::replicas::{Replicas, node_claim};
use crate::interpret::revise::set;

pub(super) const KINDS: &[Known] = &[(
    "argoproj.io/v1alpha1",
    "Workflow",
    Interpreter {
        replicas: Some(replicas),
        revise: Some(|manifest, replicas| set(manifest, "parallelism", replicas)),
        is_healthy: Some(is_healthy),
        // The status, which is no subresource there, is kept of any kind.
        retain: Some(keep_suspension),
        needs: Some(needs),
        ..Interpreter::NONE
    },
)];

/// The Pods that may run at a time. The requirements of each are in templates of many kinds; on which nodes they
/// may run is in one place.
fn replicas(workflow: &Value) -> Replicas {
    let parallelism = count(workflow, "/spec/parallelism").unwrap_or(1);
    let claim = workflow.get("spec").and_then(node_claim);
    Replicas::new(
        parallelism,
        claim.map(|claim| json!({ "nodeClaim": claim })),
    )
}

fn is_healthy(workflow: &Value) -> bool {
    !["", "Error", "Failed"].contains(&text(workflow, "/status/phase"))
}

fn needs(workflow: &Value) -> Needs<'_> {
    let mut needs = pods(workflow, &["/spec"]);
    let executor = text(workflow, "/spec/executor/serviceAccountName");
    needs.objects.push(("ServiceAccount", executor));
    for claim in list(workflow, "/spec/volumeClaimTemplates") {
        let name = text(claim, "/metadata/name");
        needs.objects.push(("PersistentVolumeClaim", name));
    }
    // Karmada reads the name of a secret from the field that other volumes have it in.
    for volume in list(workflow, "/spec/volumes") {
        needs.objects.push(("Secret", text(volume, "/secret/name")));
    }
    needs
}

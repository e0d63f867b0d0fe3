//! The changes that overrides make to a manifest.

use fleet_api::MemberCluster;
use fleet_api::overrides::{JsonPatchOverride, OverrideRule};
use objects::Metadata;
use objects::patch::{self, PatchError, operation};
use serde_json::Value;

use super::refuse::problem_of_path;
use super::snapshot::SnapshotView;
use super::variables::replaced;
use crate::select::{identifier, show};
use objects::grant::Grant;

/// Returns a manifest as a cluster is to have it, or `None` if it is not to have it.
///
/// # Errors
/// Fails with the override, the rule and the path that cannot be applied.
pub(crate) fn overridden(
    mut manifest: Value,
    overrides: &[SnapshotView<'_>],
    cluster: &MemberCluster,
) -> Result<Option<Value>, String> {
    // No patch makes another object of it.
    let identity = identifier(&manifest);
    for one in overrides.iter().filter(|one| one.selects(&identity)) {
        for (place, rule) in one.rules(cluster) {
            if rule.override_type == "Delete" {
                return Ok(None);
            }
            let grant = Grant::of(&manifest);
            let changed = change(&mut manifest, rule, cluster);
            let changed = changed.and_then(|()| match one.namespace() {
                "" => Ok(()),
                _ => grant.require_same(&manifest),
            });
            changed.map_err(|reason| {
                let (shown, object) = (one.shown(), show(&identity));
                let cluster = cluster.metadata.name();
                format!(
                    "rule {place} of {shown} cannot be applied to {object} for {cluster}: {reason}"
                )
            })?;
        }
    }
    Ok(Some(manifest))
}

fn change(
    manifest: &mut Value,
    rule: &OverrideRule,
    cluster: &MemberCluster,
) -> Result<(), String> {
    if !["", "JSONPatch"].contains(&&*rule.override_type) {
        let unknown = &rule.override_type;
        return Err(format!("`{unknown}` is no type of override that is known"));
    }
    for one in &rule.patches {
        patch(manifest, one, cluster).map_err(|reason| {
            let JsonPatchOverride { operator, path, .. } = one;
            format!("{operator} {path}: {reason}")
        })?;
    }
    Ok(())
}

fn patch(
    manifest: &mut Value,
    one: &JsonPatchOverride,
    cluster: &MemberCluster,
) -> Result<(), String> {
    if let Some(problem) = problem_of_path(&one.path) {
        return Err(problem.to_owned());
    }
    let value = one.value.as_ref();
    let value = value.map(|value| replaced(value, cluster)).transpose()?;
    let operation = operation(&one.operator, &one.path, value.as_ref())?;
    patch::apply(&[operation], manifest).map_err(|error| match error {
        PatchError::Unfit(_) => "the object has no such place".to_owned(),
        too_much => too_much.to_string(),
    })
}

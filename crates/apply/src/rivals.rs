//! The pauses between our writes of an object that another client changes back each time.

use karmada_runtime::contention::{Attempt, Backoff};
use karmada_runtime::write::WriteMode;
use objects::Metadata;
use objects::difference::{Difference, differences};
use objects::last_writer::rival_in;
use objects::managed_fields::all_fields;
use objects::ownership::ObservedObject;
use objects::write::{Action, ObjectRef};
use serde_json::Value;
use tokio::time::Instant;

use crate::applier::Applier;
use crate::manifest_set::{ManifestRef, Object};
use crate::ownership::Ownership;
use crate::result::{Again, Contested, Synced};

impl<O: Ownership> Applier<O> {
    /// Begins the write of a manifest to its object as it was `seen`.
    ///
    /// # Errors
    /// Fails with the pause before the write.
    pub(crate) fn begin(
        &self,
        one: &ManifestRef<'_, O::Source>,
        seen: Option<&Value>,
    ) -> Result<Attempt<Object>, Backoff> {
        let version = seen.map(Metadata::resource_version);
        (self.contention).begin(one.object(), one.manifest, version, Instant::now())
    }

    /// Begins the actions that are planned of a manifest; `None` if there are none, or they are only counted.
    ///
    /// # Errors
    /// Fails with the pause before the write.
    pub(crate) fn begin_planned(
        &self,
        writes: &WriteMode,
        one: &ManifestRef<'_, O::Source>,
        seen: Option<&Value>,
        actions: &[Action],
    ) -> Result<Option<Attempt<Object>>, Backoff> {
        if actions.is_empty() || matches!(writes, WriteMode::DryRun(_)) {
            return Ok(None);
        }
        self.begin(one, seen).map(Some)
    }

    /// Notes that a write that has begun was stored.
    pub(crate) fn stored(&self, attempt: Option<Attempt<Object>>, stored: Option<&Value>) {
        if let (Some(attempt), Some(stored)) = (attempt, stored) {
            let version = stored.resource_version().to_owned();
            self.contention
                .stored(attempt, Some(version), Instant::now());
        }
    }

    /// Forgets who undoes the writes of a manifest that is given up.
    pub(crate) fn give_up(&self, one: &ManifestRef<'_, O::Source>) {
        self.contention.forget(&one.object());
    }

    /// Returns the result of a manifest if its object, as it is `cached`, is left until the end of a pause. The manager that
    /// causes it is looked up when it is news.
    pub(crate) async fn paused(
        &self,
        one: &ManifestRef<'_, O::Source>,
        object_ref: &ObjectRef,
        cached: &ObservedObject,
        backoff: Backoff,
    ) -> Synced {
        let mut manager = None;
        if backoff.is_news {
            let found = self.requests.get(object_ref).await;
            let found = found.ok().flatten();
            manager = found.and_then(|found| rival(one.manifest, &found, O::MANAGERS.ours));
            tracing::warn!(
                object = one.name(),
                manager = manager.as_deref().unwrap_or("another client"),
                "Another writer undoes every write of the object, will write again after growing pauses"
            );
        }
        let left = backoff.until.saturating_duration_since(Instant::now());
        Synced {
            left: Some(Again::After(left)),
            contested: Some(Contested {
                until: backoff.until,
                is_news: backoff.is_news,
                manager,
            }),
            ..Synced::observed(cached.clone())
        }
    }
}

/// Returns the manager other than `own` that last wrote something of `object` that is not as the manifest has it: a
/// field of that, or else one that it says nothing about.
fn rival(manifest: &Value, object: &Value, own: &str) -> Option<String> {
    /// Additions of others to these are left alone.
    const THEIRS: [&str; 2] = ["/metadata", "/status"];
    let (mut changed, mut added) = (Vec::new(), Vec::new());
    for Difference { path, wanted, .. } in differences(object, manifest, &all_fields(object)) {
        if wanted.is_some() {
            changed.push(path);
        } else if !THEIRS.iter().any(|part| path.starts_with(part)) {
            added.push(path);
        }
    }
    rival_in(object, own, &changed).or_else(|| rival_in(object, own, &added))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Who has changed a field of the manifest is the rival, and who adds to it only if nobody has.
    #[test]
    fn changed_field_names_rival() {
        let mut object = json!({
            "metadata": { "annotations": { "revision": "4" }, "managedFields": [
                { "manager": "ours", "time": "2026-01-04T00:00:00Z",
                  "fieldsV1": { "f:spec": { "f:paused": {} } } },
                { "manager": "scaler", "time": "2026-01-01T00:00:00Z", "subresource": "scale",
                  "fieldsV1": { "f:spec": { "f:replicas": {} } } },
                { "manager": "counter", "time": "2026-01-03T00:00:00Z", "fieldsV1": {
                    "f:metadata": { "f:annotations": { "f:revision": {} } },
                    "f:status": { "f:replicas": {} } } },
                { "manager": "adder", "time": "2026-01-02T00:00:00Z",
                  "fieldsV1": { "f:spec": { "f:minReadySeconds": {} } } },
            ] },
            "spec": { "paused": true, "minReadySeconds": 4 },
            "status": { "replicas": 3 },
        });
        let manifest = json!({ "metadata": {}, "spec": { "replicas": 2, "paused": false } });
        for (replicas, expected) in [(5, "scaler"), (2, "adder")] {
            object["spec"]["replicas"] = json!(replicas);
            let found = rival(&manifest, &object, "ours");
            assert_eq!(found.as_deref(), Some(expected));
        }
    }
}

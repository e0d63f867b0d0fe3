//! Compares an object with its manifest: before it is written, once it is, or in place of that.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use objects::comparison::{Compared, Comparison, ComparisonOption, Versions, compared};
use objects::difference::overlaid;
use objects::managed_fields::all_fields;
use objects::metadata::{self, Written};
use objects::ownership::Retain;
use objects::replacement::replacement;
use objects::retain::{pinned, retain};
use objects::write::{Action, ObjectRef, Write};
use serde_json::Value;

use crate::applier::Applier;
use crate::error::MemberError;
use crate::manifest_set::ManifestRef;
use crate::not_written::NotWritten;
use crate::notes::written_part;
use crate::ownership::Ownership;
use crate::plan::replacing;
use crate::requests::APPLY;

impl<O: Ownership> Applier<O> {
    /// Compares an object that is not to be written.
    pub(crate) async fn compare_only(
        &self,
        one: &ManifestRef<'_, O::Source>,
        object_ref: &ObjectRef,
        object: Option<&Value>,
        (retain, option): (&Retain, ComparisonOption),
    ) -> Result<NotWritten, MemberError> {
        let compared = if let Some(object) = object {
            let applied = self.applied(one, object_ref, object, retain).await?;
            self.compare(one, object_ref, object, (&applied, option))
                .await?
        } else {
            let differences = compared(one.manifest, None, option, O::IGNORED);
            Compared::of(None, differences)
        };
        Ok(NotWritten::Compared(Arc::new(compared)))
    }

    /// Compares an object before the actions that are planned on it. Returns a cause if there must be none.
    pub(crate) async fn compare_first(
        &self,
        one: &ManifestRef<'_, O::Source>,
        object_ref: &ObjectRef,
        object: &Value,
        (retain, option): (&Retain, ComparisonOption),
        actions: &[Action],
    ) -> Result<Option<NotWritten>, MemberError> {
        let applied = if actions.is_empty() {
            Cow::Borrowed(object)
        } else {
            let manifest = &*written_part(one, object);
            let written = ManifestRef { manifest, ..*one };
            Cow::Owned(self.applied(&written, object_ref, object, retain).await?)
        };
        let compared = self
            .compare(one, object_ref, object, (&applied, option))
            .await?;
        let differs = !compared.differences.is_empty();
        Ok(differs.then(|| NotWritten::Differs(Arc::new(compared))))
    }

    /// Compares an object that has everything of its manifest by now.
    pub(crate) async fn compare_after(
        &self,
        one: &ManifestRef<'_, O::Source>,
        object_ref: &ObjectRef,
        object: &Value,
        comparison: Comparison,
    ) -> Result<Option<Arc<Compared>>, MemberError> {
        let compared = match comparison {
            Comparison::Afterwards => {
                let versions = (object, ComparisonOption::Full);
                match self.compare(one, object_ref, object, versions).await {
                    // It has changed since it was written, which will be seen.
                    Err(error) if error.is_conflict() => return Ok(None),
                    compared => compared?,
                }
            }
            // It was written because there was none.
            Comparison::First(_) => Compared::of(Some(object), Vec::new()),
            Comparison::Only(_) | Comparison::Never => return Ok(None),
        };
        Ok(Some(Arc::new(compared)))
    }

    /// Compares an object with its manifest and with the object as an application of that would leave it.
    async fn compare(
        &self,
        one: &ManifestRef<'_, O::Source>,
        object_ref: &ObjectRef,
        found: &Value,
        (applied, option): (&Value, ComparisonOption),
    ) -> Result<Compared, MemberError> {
        let versions = Versions {
            found,
            applied,
            alone: None,
        };
        let mut differences = compared(one.manifest, Some(versions), option, O::IGNORED);
        // A field that the cluster has filled in may look as if somebody had added it.
        if option == ComparisonOption::Full && differences.iter().any(|one| one.wanted.is_none()) {
            let alone = self.alone(one, object_ref, found).await?;
            let versions = Versions {
                alone: alone.as_ref(),
                ..versions
            };
            differences = compared(one.manifest, Some(versions), option, O::IGNORED);
        }
        Ok(Compared {
            is_owned: self.is_of_set(one, found),
            ..Compared::of(Some(found), differences)
        })
    }

    /// Returns the object as the cluster would keep it if it had nothing but its manifest; `None` if it does not tell.
    async fn alone(
        &self,
        one: &ManifestRef<'_, O::Source>,
        object_ref: &ObjectRef,
        object: &Value,
    ) -> Result<Option<Value>, MemberError> {
        let all = Written {
            labels: keys(object, "labels"),
            annotations: keys(object, "annotations"),
        };
        let body = replacement(one.manifest, object, &all);
        let write = Write::replace(APPLY, object_ref.clone(), body);
        let alone = self.requests.try_out(&write).await;
        alone
            .map(Some)
            .or_else(|error| match error.into_rejection() {
                Ok(_) => Ok(None),
                Err(error) => Err(error),
            })
    }

    /// Returns the object as an application of its manifest would leave it, without storing it.
    async fn applied(
        &self,
        one: &ManifestRef<'_, O::Source>,
        object_ref: &ObjectRef,
        object: &Value,
        kept: &Retain,
    ) -> Result<Value, MemberError> {
        let write = application(object_ref, one.manifest, object);
        let tried = match self.requests.try_out(&write).await {
            Err(error) if error.is_about_unknown_fields() => {
                let known = self.known_part(one, object_ref, Some(object), kept).await?;
                let write = application(object_ref, &known, object);
                self.requests.try_out(&write).await
            }
            Err(error) if error.is_about_duplicates() => {
                let body = replacing::<O>(kept, one.manifest, object);
                let write = Write::replace(APPLY, object_ref.clone(), body);
                self.requests.try_out(&write).await
            }
            tried => tried,
        };
        match tried {
            // An object that may not become so differs all the same. The words for it are different for each kind and policy.
            Err(error) if error.is_about_values() => {
                Ok(overlaid(object, one.manifest, &all_fields(object)))
            }
            tried => tried,
        }
    }
}

/// Returns the keys of an object's labels or annotations.
fn keys(object: &Value, part: &str) -> BTreeSet<String> {
    let map = metadata::field(object, part).and_then(Value::as_object);
    let keys = map.into_iter().flatten().map(|(key, _)| key.clone());
    keys.collect()
}

/// Returns the application of a manifest to an object.
fn application(object_ref: &ObjectRef, manifest: &Value, object: &Value) -> Write {
    let action = Action::Apply {
        body: pinned(retain(manifest, Some(object)), object),
        is_forced: true,
    };
    Write::new(APPLY, object_ref.clone(), action)
}

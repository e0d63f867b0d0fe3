//! Compares an object with its manifest: before it is written, once it is, or in place of that.

use std::borrow::Cow;
use std::sync::Arc;

use objects::difference::overlaid;
use objects::managed_fields::all_fields;
use objects::metadata::{self, Written};
use objects::ownership::{Compared, Comparison, Extent, Versions};
use objects::replacement::replacement;
use objects::retain::{pinned, retain};
use serde_json::Value;

use crate::applier::Applier;
use crate::error::MemberError;
use crate::findings::Verdict;
use crate::notes::written_part;
use crate::ownership::Ownership;
use crate::plan::{ApplyPlan, replacing};
use crate::requests::ObjectPath;
use crate::unit::ManifestRef;

impl<O: Ownership> Applier<O> {
    /// Returns when a manifest is compared with its object.
    pub(crate) fn comparison(
        &self,
        one: &ManifestRef<'_, O::Source>,
        object: Option<&Value>,
    ) -> Comparison {
        self.ownership.comparison(one.unit, one.manifest, object)
    }

    /// Compares an object that is not to be written.
    pub(crate) async fn compare_only(
        &self,
        one: &ManifestRef<'_, O::Source>,
        path: &ObjectPath,
        object: Option<&Value>,
        extent: Extent,
    ) -> Result<Verdict, MemberError> {
        let compared = if let Some(object) = object {
            let applied = self.applied(one, path, object).await?;
            self.compare(one, path, object, (&applied, extent)).await?
        } else {
            let differences = self.ownership.differences(one.manifest, None, extent);
            Compared::of(None, differences)
        };
        Ok(Verdict::Compared(Arc::new(compared)))
    }

    /// Compares an object before the write that is planned of it. Returns a verdict if there must be none.
    pub(crate) async fn compare_first(
        &self,
        one: &ManifestRef<'_, O::Source>,
        path: &ObjectPath,
        object: &Value,
        (extent, plan): (Extent, &ApplyPlan),
    ) -> Result<Option<Verdict>, MemberError> {
        let applied = if *plan == ApplyPlan::Unchanged {
            Cow::Borrowed(object)
        } else {
            let manifest = &*written_part(one, object);
            let written = ManifestRef { manifest, ..*one };
            Cow::Owned(self.applied(&written, path, object).await?)
        };
        let compared = self.compare(one, path, object, (&applied, extent)).await?;
        let differs = !compared.differences.is_empty();
        Ok(differs.then(|| Verdict::Differs(Arc::new(compared))))
    }

    /// Compares an object that has everything of its manifest by now.
    pub(crate) async fn compare_after(
        &self,
        one: &ManifestRef<'_, O::Source>,
        path: &ObjectPath,
        object: &Value,
        comparison: Comparison,
    ) -> Result<Option<Arc<Compared>>, MemberError> {
        let compared = match comparison {
            Comparison::Afterwards => {
                let versions = (object, Extent::Whole);
                match self.compare(one, path, object, versions).await {
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

    /// Compares an object with its manifest and what an application of that would make of it.
    async fn compare(
        &self,
        one: &ManifestRef<'_, O::Source>,
        path: &ObjectPath,
        found: &Value,
        (applied, extent): (&Value, Extent),
    ) -> Result<Compared, MemberError> {
        let of = |alone: Option<&Value>| {
            let versions = Versions {
                found,
                applied,
                alone,
            };
            let owner = &self.ownership;
            owner.differences(one.manifest, Some(versions), extent)
        };
        let mut differences = of(None);
        // What the cluster has filled in may look as if somebody had added it.
        if extent == Extent::Whole && differences.iter().any(|one| one.wanted.is_none()) {
            let alone = self.alone(one, path, found).await?;
            differences = of(alone.as_ref());
        }
        Ok(Compared {
            is_owned: self.is_of_unit(one, found),
            ..Compared::of(Some(found), differences)
        })
    }

    /// Returns what the cluster would keep if the object had nothing but its manifest; `None` if it does not tell.
    async fn alone(
        &self,
        one: &ManifestRef<'_, O::Source>,
        path: &ObjectPath,
        object: &Value,
    ) -> Result<Option<Value>, MemberError> {
        let all = |part: &str| {
            let map = metadata::field(object, part).and_then(Value::as_object);
            map.into_iter().flatten().map(|(key, _)| key.clone())
        };
        let all = Written {
            labels: all("labels").collect(),
            annotations: all("annotations").collect(),
        };
        let body = replacement(one.manifest, object, &all);
        let alone = self.requests.try_out(path, &body, true).await;
        alone
            .map(Some)
            .or_else(|error| match error.into_rejection() {
                Ok(_) => Ok(None),
                Err(error) => Err(error),
            })
    }

    /// Returns what an application of the manifest would make of its object, without storing it.
    async fn applied(
        &self,
        one: &ManifestRef<'_, O::Source>,
        path: &ObjectPath,
        object: &Value,
    ) -> Result<Value, MemberError> {
        let body = |manifest: &Value| pinned(retain(manifest, Some(object)), object);
        let tried = self.requests.try_apply(path, &body(one.manifest)).await;
        let tried = match tried {
            Err(error) if error.is_about_unknown_fields() => {
                let known = self.known_part(one, path, Some(object)).await?;
                self.requests.try_apply(path, &body(&known)).await
            }
            Err(error) if error.is_about_duplicates() => {
                let body = replacing(&*self.ownership, one, object);
                self.requests.try_out(path, &body, true).await
            }
            tried => tried,
        };
        match tried {
            // What may not become so differs all the same. The words for it are different for each kind and policy.
            Err(error) if error.is_about_values() => {
                Ok(overlaid(object, one.manifest, &all_fields(object)))
            }
            tried => tried,
        }
    }
}

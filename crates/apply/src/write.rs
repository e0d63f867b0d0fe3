//! Writes an object that needs it.

use karmada_runtime::write::WriteMode;
use objects::drift::take_left_out;
use objects::ownership::ObservedObject;
use objects::retain::without_generated;
use serde_json::Value;

use crate::applier::Applier;
use crate::error::MemberError;
use crate::ownership::{Ownership, WriteStyle};
use crate::plan::{ApplyPlan, plan, replacing, rewrite};
use crate::requests::ObjectPath;
use crate::unit::{LastWrite, ManifestRef};

/// The number of times that an object is read again because another was faster to write it. A controller of the
/// cluster, which reports at every change, may be so more than once.
const MAX_CONFLICTS: u32 = 4;

/// The result of a write, or of finding that there is nothing to write.
pub(crate) struct Written {
    /// The object.
    pub(crate) object: Option<Value>,
    /// True if it was written.
    pub(crate) is_new: bool,
    /// The note on its manifest.
    pub(crate) note: Option<String>,
}

impl<O: Ownership> Applier<O> {
    /// Plans a write without a live look: the creation of what was never there, and the write of a new manifest to
    /// an object that the cache shows as we have left it. Returns `None` if only such a look can tell.
    fn plan_unread(
        &self,
        writes: &WriteMode,
        one: &ManifestRef<'_, O::Source>,
        style: WriteStyle,
        cached: &ObservedObject,
    ) -> Option<ApplyPlan> {
        let records = self.records.lock();
        if let Some(object) = cached.seen() {
            let is_as_left = records.of(one)?.has_left_ours(object);
            let is_as_left = is_as_left && !self.hides_others(one, object);
            return is_as_left.then(|| rewrite(&*self.ownership, one, object, style))?;
        }
        // A creation fails where there is an object, and an apply would take it over. If it is only counted,
        // it fails nowhere.
        let is_absent = *cached == ObservedObject::Absent
            && style == WriteStyle::Replace
            && matches!(writes, WriteMode::Perform(_))
            && records.has_nothing_of(one);
        is_absent.then(|| plan(&*self.ownership, one, None, style, LastWrite::Unknown))
    }

    /// Writes what the object lacks. Unless [`Self::plan_unread`] shows that there is no need to, it is read live.
    pub(crate) async fn write_manifest(
        &self,
        writes: &WriteMode,
        one: &ManifestRef<'_, O::Source>,
        cached: &ObservedObject,
    ) -> Result<Written, MemberError> {
        let path = self.requests.path(one).await?;
        if path.is_stray {
            // Whoever lets a user write in one namespace goes by what the manifest says.
            return Err(MemberError::Manifest {
                object: one.name(),
                problem: "has a namespace, but its kind has none",
            });
        }
        let mut style = self.ownership.write_style(one.unit);
        let mut unread = self.plan_unread(writes, one, style, cached);
        let mut conflicts = 0;
        let mut known = None;
        loop {
            let (object, plan) = if let Some(plan) = unread.take() {
                (cached.seen().cloned(), plan)
            } else {
                let object = self.requests.get(&path).await?;
                if let Some(found) = &object
                    && let Some(note) = self.settled(one, found).await?
                {
                    return Ok(Written {
                        object,
                        is_new: false,
                        note,
                    });
                }
                let (owner, last) = (&*self.ownership, LastWrite::Unknown);
                let manifest = known.as_ref().unwrap_or(one.manifest);
                let known = ManifestRef { manifest, ..*one };
                let plan = plan(owner, &known, object.as_ref(), style, last);
                (object, plan)
            };
            match self.write(writes, one, &path, plan, style).await {
                Ok(written) => return self.record_write(one, object, written).await,
                Err(error) if error.is_about_duplicates() && style == WriteStyle::Apply => {
                    style = WriteStyle::Replace;
                }
                Err(error) if error.is_about_unknown_fields() && known.is_none() => {
                    known = Some(self.known_part(one, &path, object.as_ref()).await?);
                }
                // Another was faster: its object is to be looked at first.
                Err(error) if error.is_conflict() && conflicts < MAX_CONFLICTS => conflicts += 1,
                Err(error) => {
                    if matches!(error, MemberError::Refused { .. }) {
                        self.records.lock().obstruct(&one.unit.key);
                    } else if error.is_missing() {
                        self.requests.forget(&one.kind());
                    }
                    return Err(error);
                }
            }
        }
    }

    /// Records how a plan was carried out: `written` is the object if it was written, and `object` as it was before.
    async fn record_write(
        &self,
        one: &ManifestRef<'_, O::Source>,
        object: Option<Value>,
        written: Option<Value>,
    ) -> Result<Written, MemberError> {
        let is_new = written.is_some();
        if is_new {
            self.records.lock().touch(&one.unit.key);
        }
        let object = written.or(object);
        let mut note = None;
        if let Some(object) = &object {
            self.settle(one, object);
            note = self.note(one, object).await?;
            self.records.lock().note(one, note.as_deref());
        }
        Ok(Written {
            object,
            is_new,
            note,
        })
    }

    /// Returns what the cluster knows of a manifest that it refuses because it does not know all of it.
    async fn known_part(
        &self,
        one: &ManifestRef<'_, O::Source>,
        path: &ObjectPath,
        object: Option<&Value>,
    ) -> Result<Value, MemberError> {
        let body = match object {
            Some(object) => replacing(&*self.ownership, one, object),
            None => without_generated(one.manifest),
        };
        // Other writes drop what apply refuses.
        let stored = self.requests.try_out(path, &body, object.is_some()).await?;
        let mut known = one.manifest.clone();
        take_left_out(&mut known, &stored);
        Ok(known)
    }

    /// Carries out a plan. Returns the object as written, and `None` if it was not.
    async fn write(
        &self,
        writes: &WriteMode,
        one: &ManifestRef<'_, O::Source>,
        path: &ObjectPath,
        plan: ApplyPlan,
        style: WriteStyle,
    ) -> Result<Option<Value>, MemberError> {
        match plan {
            ApplyPlan::Unchanged => Ok(None),
            ApplyPlan::Refuse { reason } => Err(MemberError::Refused {
                object: one.name(),
                reason,
            }),
            ApplyPlan::Create { body } => match style {
                WriteStyle::Apply => self.requests.create_by_apply(writes, path, &body).await,
                WriteStyle::Replace => self.requests.create(writes, path, &body).await,
            },
            ApplyPlan::Apply { body, take_over } => {
                if let Some(patch) = take_over {
                    self.requests.take_over(writes, path, patch).await?;
                }
                self.requests.apply(writes, path, &body).await
            }
            ApplyPlan::Replace { body } => self.requests.replace(writes, path, &body).await,
        }
    }
}

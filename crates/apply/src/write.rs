//! Writes an object that needs it.

use std::borrow::Cow;

use karmada_runtime::write::WriteMode;
use objects::comparison::Comparison;
use objects::drift::take_left_out;
use objects::ownership::{Adoption, Instruction, ObservedObject, Retain, WriteStyle};
use objects::retain::without_generated;
use objects::{Metadata, metadata};
use serde_json::Value;

use crate::applier::Applier;
use crate::error::MemberError;
use crate::findings::Verdict;
use crate::notes::without_node_ports;
use crate::outcome::{Need, Outcome, Written};
use crate::ownership::Ownership;
use crate::plan::{ApplyPlan, plan, replacing, rewrite};
use crate::requests::ObjectPath;
use crate::unit::{LastWrite, ManifestRef};

/// The number of times that an object is read again because another was faster to write it. A controller of the
/// cluster, which reports at every change, may be so more than once.
const MAX_CONFLICTS: u32 = 4;

/// What a look at an object has shown.
enum Look {
    /// This is to be written.
    Write(Planned),
    /// Nothing is.
    Nothing(Outcome),
}

/// A write that is planned of an object.
struct Planned {
    /// The object as it was found.
    object: Option<Value>,
    /// What the owner says of that.
    told: Instruction,
    plan: ApplyPlan,
}

/// What the cluster is given instead of what it has refused.
#[derive(Default)]
struct Fallback {
    /// A manifest that it does not know more of.
    manifest: Option<Value>,
    /// True if it replaces what cannot be applied.
    replaces: bool,
}

impl Fallback {
    fn style(&self, told: &Instruction) -> WriteStyle {
        if self.replaces {
            WriteStyle::Replace
        } else {
            told.style
        }
    }
}

impl<O: Ownership> Applier<O> {
    /// Plans a write without a live look: the creation of what was never there, and the write of a new manifest to
    /// an object that the cache shows as we have left it. Returns `None` if only such a look can tell.
    fn plan_unread(
        &self,
        writes: &WriteMode,
        one: &ManifestRef<'_, O::Source>,
        told: &Instruction,
        cached: &ObservedObject,
    ) -> Option<ApplyPlan> {
        let is_compared = matches!(told.compare, Comparison::First(_) | Comparison::Only(_));
        // What an unforced apply conflicts with is to be known.
        if is_compared || told.style == WriteStyle::ApplyUnforced {
            return None;
        }
        let records = self.records.lock();
        if let Some(object) = cached.seen() {
            // What a script keeps of the object is in no cache for certain.
            if told.retain.by.fingerprint().is_some() {
                return None;
            }
            let is_as_left = records.of(one)?.has_left_ours(object);
            let is_as_left = is_as_left && !self.hides_others(one, object);
            return is_as_left.then(|| rewrite::<O>(told, one.manifest, object))?;
        }
        // A creation fails where there is an object, and an apply would take it over. If it is only counted,
        // it fails nowhere.
        let is_absent = *cached == ObservedObject::Absent
            && told.style == WriteStyle::Replace
            && matches!(writes, WriteMode::Perform(_))
            && records.has_nothing_of(one);
        is_absent.then(|| plan::<O>(told, one.manifest, None, LastWrite::Unknown))
    }

    /// Writes what the object lacks, as the owner has `told` of it as it is cached. Unless [`Self::plan_unread`] shows that
    /// there is no need to, it is read live.
    pub(crate) async fn write_manifest(
        &self,
        writes: &WriteMode,
        one: &ManifestRef<'_, O::Source>,
        cached: &ObservedObject,
        told: Instruction,
    ) -> Result<Outcome, MemberError> {
        let path = self.path(one).await?;
        // During a pause there is no need to look; whether one begins, the cache may not show yet.
        if let Err(backoff) = self.begin(one, cached.seen()) {
            return Ok(self.paused(one, &path, backoff).await);
        }
        let unread = self.plan_unread(writes, one, &told, cached);
        let mut unread = unread.map(|plan| Planned {
            object: cached.seen().cloned(),
            told,
            plan,
        });
        let mut conflicts = 0;
        let mut fallback = Fallback::default();
        loop {
            let looked = match unread.take() {
                Some(planned) => Ok(Look::Write(planned)),
                None => self.look(one, &path, &fallback).await,
            };
            let Planned { object, told, plan } = match looked {
                Ok(Look::Write(planned)) => planned,
                Ok(Look::Nothing(outcome)) => return Ok(outcome),
                // It changed while it was compared.
                Err(error) if error.is_conflict() && conflicts < MAX_CONFLICTS => {
                    conflicts += 1;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let attempt = match self.begin_planned(writes, one, object.as_ref(), &plan) {
                Ok(attempt) => attempt,
                Err(backoff) => return Ok(self.paused(one, &path, backoff).await),
            };
            let style = fallback.style(&told);
            match self
                .write(writes, one, &path, plan, (style, &told.adopt))
                .await
            {
                Ok(written) => {
                    if is_change(object.as_ref(), written.as_ref()) {
                        self.stored(attempt, written.as_ref());
                    } else if written.is_some() {
                        // Where a webhook makes the same of it again, a later change of another's undoes nothing.
                        self.give_up(one);
                    }
                    let written = self
                        .record_write(one, &path, (object, written), &told)
                        .await?;
                    self.findings.lock().clear(one);
                    return Ok(Outcome::Written(written));
                }
                Err(error) if error.is_about_duplicates() && style == WriteStyle::Apply => {
                    fallback.replaces = true;
                }
                Err(error) if error.is_about_unknown_fields() && fallback.manifest.is_none() => {
                    let known = self.known_part(one, &path, object.as_ref(), &told.retain);
                    fallback.manifest = Some(known.await?);
                }
                Err(error) if !error.refused_node_ports().is_empty() => {
                    let manifest = fallback.manifest.as_ref().unwrap_or(one.manifest);
                    let refused = error.refused_node_ports();
                    let allocated = &told.retain.node_ports;
                    let without = without_node_ports(manifest, &refused, allocated);
                    fallback.manifest = Some(without.ok_or(error)?);
                }
                // Another has a field otherwise, and keeps it.
                Err(error) if error.is_about_managers() && style == WriteStyle::ApplyUnforced => {
                    let verdict = rejected(error)?;
                    return Ok(self.leave(one, object.as_ref(), verdict));
                }
                // Another was faster: its object is to be looked at first.
                Err(error) if error.is_conflict() && conflicts < MAX_CONFLICTS => conflicts += 1,
                Err(error) => {
                    if error.is_missing() {
                        self.requests.forget(&one.kind());
                    }
                    return Err(error);
                }
            }
        }
    }

    /// Returns where the object of a manifest is.
    async fn path(&self, one: &ManifestRef<'_, O::Source>) -> Result<ObjectPath, MemberError> {
        let path = self.requests.path(one).await?;
        if path.is_stray {
            // Whoever lets a user write in one namespace goes by what the manifest says.
            return Err(MemberError::Manifest {
                object: one.name(),
                problem: "has a namespace, but its kind has none",
            });
        }
        Ok(path)
    }

    /// Reads an object live, and decides what is to be done about it.
    async fn look(
        &self,
        one: &ManifestRef<'_, O::Source>,
        path: &ObjectPath,
        fallback: &Fallback,
    ) -> Result<Look, MemberError> {
        if self.sees_all {
            self.findings.lock().begin(one);
        }
        let object = self.requests.get(path).await?;
        let leave = |verdict| Ok(Look::Nothing(self.leave(one, object.as_ref(), verdict)));
        let verdict = self.findings.lock().same(one, object.as_ref());
        if let Some(verdict) = verdict {
            return leave(verdict);
        }
        let told = self.ownership.instruction(one, object.as_ref());
        if let Comparison::Only(option) = told.compare {
            let kept = (&told.retain, option);
            let compared = self.compare_only(one, path, object.as_ref(), kept);
            return leave(compared.await.or_else(rejected)?);
        }
        if let Some(found) = &object
            && let Need::Nothing { note } = self.need(one, found, &told).await?
        {
            self.findings.lock().clear(one);
            return Ok(Look::Nothing(Outcome::Written(Written {
                object,
                is_new: false,
                note,
                compared: None,
            })));
        }
        let known = ManifestRef {
            manifest: fallback.manifest.as_ref().unwrap_or(one.manifest),
            ..*one
        };
        let manifest = match &object {
            Some(found) => self.retained(&known, found, &told).await?,
            None => Cow::Borrowed(known.manifest),
        };
        let planned = Instruction {
            style: fallback.style(&told),
            ..told.clone()
        };
        let mut plan = plan::<O>(&planned, &manifest, object.as_ref(), LastWrite::Unknown);
        if let ApplyPlan::Refuse { reason } = plan {
            return leave(Verdict::Refused { reason });
        }
        if let (Comparison::First(option), Some(found)) = (told.compare, &object) {
            let kept = (&told.retain, option);
            let compared = self.compare_first(one, path, found, kept, &plan);
            let verdict = compared.await.or_else(|error| rejected(error).map(Some))?;
            if let Some(verdict) = verdict {
                return leave(verdict);
            }
            plan = plan.guarded(found);
        }
        Ok(Look::Write(Planned { object, told, plan }))
    }

    /// Leaves an object as it is.
    fn leave(
        &self,
        one: &ManifestRef<'_, O::Source>,
        object: Option<&Value>,
        verdict: Verdict,
    ) -> Outcome {
        self.findings.lock().set(one, object, &verdict);
        let mut records = self.records.lock();
        match &verdict {
            Verdict::Refused { .. } => records.obstruct(&one.unit.key),
            _ => records.unsettle(one),
        }
        Outcome::Left(verdict)
    }

    /// Records how a plan was carried out: `written` is the object if it was written, and `object` as it was before.
    async fn record_write(
        &self,
        one: &ManifestRef<'_, O::Source>,
        path: &ObjectPath,
        (object, written): (Option<Value>, Option<Value>),
        told: &Instruction,
    ) -> Result<Written, MemberError> {
        let is_new = is_change(object.as_ref(), written.as_ref());
        if is_new {
            self.records.lock().touch(&one.unit.key);
        }
        let object = written.or(object);
        let (mut note, mut compared) = (None, None);
        if let Some(object) = &object {
            // As it was decided: what is written now may be compared otherwise.
            compared = self.compare_after(one, path, object, told.compare).await?;
            self.settle(one, object, told);
            note = self.note(one, object, &told.retain).await?;
            self.records.lock().note(one, note.as_deref());
        }
        Ok(Written {
            object,
            is_new,
            note,
            compared,
        })
    }

    /// Returns what the cluster knows of a manifest that it refuses because it does not know all of it.
    pub(crate) async fn known_part(
        &self,
        one: &ManifestRef<'_, O::Source>,
        path: &ObjectPath,
        object: Option<&Value>,
        retain: &Retain,
    ) -> Result<Value, MemberError> {
        let body = match object {
            Some(object) => replacing::<O>(retain, one.manifest, object),
            None => without_generated(one.manifest),
        };
        // Other writes drop what apply refuses.
        let stored = self.requests.try_out(path, &body, object.is_some()).await?;
        let mut known = without_generated(one.manifest);
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
        (style, adopt): (WriteStyle, &Adoption),
    ) -> Result<Option<Value>, MemberError> {
        match plan {
            ApplyPlan::Unchanged => Ok(None),
            ApplyPlan::Refuse { reason } => Err(MemberError::Refused {
                object: one.name(),
                reason,
            }),
            ApplyPlan::Create { body } => {
                // An apply takes over what is there by now.
                let adopts = !matches!(adopt, Adoption::Refuse { .. });
                if adopts && style != WriteStyle::Replace {
                    self.requests.create_by_apply(writes, path, &body).await
                } else {
                    self.requests.create(writes, path, &body).await
                }
            }
            ApplyPlan::Apply {
                mut body,
                take_over,
            } => {
                if let Some(patch) = take_over {
                    let taken = self.requests.take_over(writes, path, patch).await?;
                    if let Some(taken) = taken
                        && !body.resource_version().is_empty()
                    {
                        let version = taken.resource_version().into();
                        metadata::set(&mut body, "resourceVersion", version);
                    }
                }
                if style == WriteStyle::ApplyUnforced {
                    self.requests.apply_unforced(writes, path, &body).await
                } else {
                    self.requests.apply(writes, path, &body).await
                }
            }
            ApplyPlan::Replace { body } => self.requests.replace(writes, path, &body).await,
        }
    }
}

/// Returns `true` if an object was written otherwise than it was: what a webhook makes the same again is not.
fn is_change(before: Option<&Value>, written: Option<&Value>) -> bool {
    let before = before.map(Metadata::resource_version);
    written.is_some_and(|written| before != Some(written.resource_version()))
}

/// Returns the verdict that an error is, if it is to be expected again.
fn rejected(error: MemberError) -> Result<Verdict, MemberError> {
    let (request, status) = error.into_rejection()?;
    Ok(Verdict::Rejected { request, status })
}

//! Writes an object that needs it.

use std::borrow::Cow;

use karmada_runtime::write::WriteMode;
use objects::comparison::Comparison;
use objects::drift::take_left_out;
use objects::ownership::{Instruction, ObservedObject, Retain, WriteStyle};
use objects::replacement::note_secrets;
use objects::retain::without_generated;
use objects::write::{Action, ObjectRef, Write};
use objects::{Metadata, metadata};
use serde_json::Value;

use crate::applier::Applier;
use crate::error::MemberError;
use crate::manifest_set::{LastWrite, ManifestRef};
use crate::not_written::NotWritten;
use crate::notes::without_node_ports;
use crate::ownership::Ownership;
use crate::plan::{creation, plan, replacing, rewrite};
use crate::requests::{APPLY, CREATE, TAKE_OVER};
use crate::result::{Need, Synced};

/// The number of times that an object is read again because another was faster to write it. A controller of the
/// cluster, which reports at every change, may be so more than once.
const MAX_CONFLICTS: u32 = 4;

/// The finding of a look at an object.
enum Look {
    /// These are to be done on it as it was found, about which the owner has told this.
    Write(Option<Value>, Instruction, Vec<Action>),
    /// Nothing is.
    Nothing(Synced),
}

impl<O: Ownership> Applier<O> {
    /// Plans a write without a live look: the creation of an object that was never there, and the write of a new manifest to
    /// an object that the cache shows as we have left it. Returns `None` if only such a look can tell.
    fn plan_unread(
        &self,
        writes: &WriteMode,
        one: &ManifestRef<'_, O::Source>,
        told: &Instruction,
        cached: &ObservedObject,
    ) -> Option<Action> {
        let is_compared = matches!(told.compare, Comparison::First(_) | Comparison::Only(_));
        // The conflicts of an unforced apply are to be known.
        if is_compared || !told.style.is_forced() {
            return None;
        }
        let records = self.records.lock();
        if let Some(object) = cached.seen() {
            // The fields that a script keeps of the object are in no cache for certain.
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
            && told.style.replaces()
            && matches!(writes, WriteMode::Perform(_))
            && records.has_nothing_of(one);
        is_absent.then(|| creation(told, one.manifest))
    }

    /// Writes the fields that the object lacks, of which the owner has `told` as it is cached. It is read live, unless
    /// [`Self::plan_unread`] shows that there is no need to.
    pub(crate) async fn write_manifest(
        &self,
        writes: &WriteMode,
        one: &ManifestRef<'_, O::Source>,
        cached: &ObservedObject,
        told: Instruction,
    ) -> Result<Synced, MemberError> {
        let object_ref = self.object_ref(one).await?;
        // During a pause there is no need to look; whether one begins, the cache may not show yet.
        if let Err(backoff) = self.begin(one, cached.seen()) {
            return Ok(self.paused(one, &object_ref, cached, backoff).await);
        }
        let mut style = told.style;
        let unread = self.plan_unread(writes, one, &told, cached);
        let mut unread =
            unread.map(|action| Look::Write(cached.seen().cloned(), told, vec![action]));
        let mut conflicts = 0;
        let mut known = None;
        loop {
            let looked = match unread.take() {
                Some(planned) => Ok(planned),
                None => self.look(one, &object_ref, (known.as_ref(), style)).await,
            };
            let (object, told, actions) = match looked {
                Ok(Look::Write(object, told, actions)) => (object, told, actions),
                Ok(Look::Nothing(synced)) => return Ok(synced),
                // It changed while it was compared.
                Err(error) if error.is_conflict() && conflicts < MAX_CONFLICTS => {
                    conflicts += 1;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let attempt = match self.begin_planned(writes, one, object.as_ref(), &actions) {
                Ok(attempt) => attempt,
                Err(backoff) => return Ok(self.paused(one, &object_ref, cached, backoff).await),
            };
            let found = (object.as_ref(), &told);
            match self.write(writes, one, &object_ref, found, actions).await {
                Ok(written) => {
                    if is_change(object.as_ref(), written.as_ref()) {
                        self.stored(attempt, written.as_ref());
                    } else if written.is_some() {
                        // Where a webhook makes the same of it again, a later change of another's undoes nothing.
                        self.give_up(one);
                    }
                    let before = (object, written);
                    let synced = self.record_write(one, &object_ref, before, &told).await?;
                    self.not_written.lock().clear(one);
                    return Ok(synced);
                }
                // Others would lose fields by a replacement, which an unforced apply leaves to them.
                Err(error)
                    if error.is_about_duplicates() && style.is_forced() && !style.replaces() =>
                {
                    style = WriteStyle::Replace;
                }
                Err(error) if error.is_about_unknown_fields() && known.is_none() => {
                    let part = self.known_part(one, &object_ref, object.as_ref(), &told.retain);
                    known = Some(part.await?);
                }
                Err(error) if !error.refused_node_ports().is_empty() => {
                    let manifest = known.as_ref().unwrap_or(one.manifest);
                    let refused = error.refused_node_ports();
                    let allocated = &told.retain.node_ports;
                    let without = without_node_ports(manifest, &refused, allocated);
                    known = Some(without.ok_or(error)?);
                }
                // Another has a field otherwise, and keeps it.
                Err(error) if error.is_about_managers() && !style.is_forced() => {
                    let cause = rejected(error)?;
                    return Ok(self.leave(one, object.as_ref(), cause));
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

    /// Refers to the object of a manifest, if its kind has a namespace where the manifest does.
    async fn object_ref(&self, one: &ManifestRef<'_, O::Source>) -> Result<ObjectRef, MemberError> {
        let object_ref = self.requests.object_ref(one).await?;
        if object_ref.key.namespace != one.key().namespace {
            // Whoever lets a user write in one namespace goes by the manifest.
            return Err(MemberError::Manifest {
                object: one.name(),
                problem: "has a namespace, but its kind has none",
            });
        }
        Ok(object_ref)
    }

    /// Reads an object live, and decides about it. `known` is the part of the manifest that its cluster knows, if that is
    /// not all.
    async fn look(
        &self,
        one: &ManifestRef<'_, O::Source>,
        object_ref: &ObjectRef,
        (known, style): (Option<&Value>, WriteStyle),
    ) -> Result<Look, MemberError> {
        if self.sees_all {
            self.not_written.lock().begin(one);
        }
        let object = self.requests.get(object_ref).await?;
        let leave = |cause| Ok(Look::Nothing(self.leave(one, object.as_ref(), cause)));
        let cause = self.not_written.lock().same(one, object.as_ref());
        if let Some(cause) = cause {
            return leave(cause);
        }
        let told = self.ownership.instruction(one, object.as_ref());
        if let Comparison::Only(option) = told.compare {
            let kept = (&told.retain, option);
            let compared = self.compare_only(one, object_ref, object.as_ref(), kept);
            return leave(compared.await.or_else(rejected)?);
        }
        if let Some(found) = &object
            && let Need::Nothing { note } = self.need(one, found, &told).await?
        {
            self.not_written.lock().clear(one);
            let synced = Synced::noted(self.written(one, object), note);
            return Ok(Look::Nothing(synced));
        }
        let known = ManifestRef {
            manifest: known.unwrap_or(one.manifest),
            ..*one
        };
        let manifest = match &object {
            Some(found) => self.retained(&known, found, &told).await?,
            None => Cow::Borrowed(known.manifest),
        };
        let planned = Instruction {
            style,
            ..told.clone()
        };
        let planned = plan::<O>(&planned, &manifest, object.as_ref(), LastWrite::Unknown);
        let actions = match planned {
            Ok(actions) => actions,
            Err(reason) => return leave(NotWritten::Refused { reason }),
        };
        if let (Comparison::First(option), Some(found)) = (told.compare, &object) {
            let kept = (&told.retain, option);
            let compared = self.compare_first(one, object_ref, found, kept, &actions);
            let cause = compared.await.or_else(|error| rejected(error).map(Some))?;
            if let Some(cause) = cause {
                return leave(cause);
            }
        }
        Ok(Look::Write(object, told, actions))
    }

    /// Leaves an object as it is.
    fn leave(
        &self,
        one: &ManifestRef<'_, O::Source>,
        object: Option<&Value>,
        cause: NotWritten,
    ) -> Synced {
        self.not_written.lock().record(one, object, &cause);
        match &cause {
            NotWritten::Refused { .. } => self.records.lock().obstruct(&one.set.key),
            _ => self.records.lock().unsettle(one),
        }
        self.left(one, cause)
    }

    /// Returns the observation of an object as the API serves it.
    fn written(&self, one: &ManifestRef<'_, O::Source>, object: Option<Value>) -> ObservedObject {
        self.owned(one, object.map(without_managers))
    }

    /// Records how a plan was carried out: `written` is the object if it was written, and `object` as it was before.
    async fn record_write(
        &self,
        one: &ManifestRef<'_, O::Source>,
        object_ref: &ObjectRef,
        (object, written): (Option<Value>, Option<Value>),
        told: &Instruction,
    ) -> Result<Synced, MemberError> {
        let is_new = is_change(object.as_ref(), written.as_ref());
        if is_new {
            self.records.lock().touch(&one.set.key);
        }
        let object = written.or(object);
        let (mut note, mut compared) = (None, None);
        if let Some(object) = &object {
            // As it was decided: the object as written may be compared otherwise.
            compared = self
                .compare_after(one, object_ref, object, told.compare)
                .await?;
            self.settle(one, object, told);
            note = self.note(one, object, &told.retain).await?;
            self.records.lock().note(one, note.as_deref());
        }
        Ok(Synced {
            written: is_new,
            compared,
            ..Synced::noted(self.written(one, object), note)
        })
    }

    /// Returns the part that the cluster knows of a manifest, which it refuses because it does not know all of it.
    pub(crate) async fn known_part(
        &self,
        one: &ManifestRef<'_, O::Source>,
        object_ref: &ObjectRef,
        object: Option<&Value>,
        retain: &Retain,
    ) -> Result<Value, MemberError> {
        let mut known = without_generated(one.manifest);
        let object_ref = object_ref.clone();
        // Other writes drop the fields that apply refuses.
        let write = match object {
            Some(object) => {
                let body = replacing::<O>(retain, one.manifest, object);
                Write::replace(APPLY, object_ref, body)
            }
            None => Write::create_as(CREATE, object_ref, known.clone()),
        };
        let stored = self.requests.try_out(&write).await?;
        take_left_out(&mut known, &stored);
        Ok(known)
    }

    /// Does the actions on an object, if there is one, of which the owner has `told`. Returns it as it is written, and
    /// `None` if it was not.
    async fn write(
        &self,
        writes: &WriteMode,
        one: &ManifestRef<'_, O::Source>,
        object_ref: &ObjectRef,
        (object, told): (Option<&Value>, &Instruction),
        actions: Vec<Action>,
    ) -> Result<Option<Value>, MemberError> {
        let mut written: Option<Value> = None;
        for mut action in actions {
            match &mut action {
                // It is written as it was compared, but for the patch before, which has made another version.
                Action::Apply { body, .. } if matches!(told.compare, Comparison::First(_)) => {
                    if let Some(found) = written.as_ref().or(object) {
                        let version = found.resource_version().into();
                        metadata::set(body, "resourceVersion", version);
                    }
                }
                // The manifest that was planned may have others, which a script or a webhook has kept.
                Action::Create(body) | Action::Replace(body) if told.style.replaces() => {
                    note_secrets(body, one.manifest);
                }
                _ => {}
            }
            let target = match action {
                Action::Json(_) => TAKE_OVER,
                _ if object.is_none() => CREATE,
                _ => APPLY,
            };
            let write = Write::new(target, object_ref.clone(), action);
            written = self.requests.write(writes, &write).await?;
        }
        Ok(written)
    }
}

/// Returns an object as the watch has it: its managed fields are the larger part of many.
fn without_managers(mut object: Value) -> Value {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    object
}

/// Returns `true` if an object was written otherwise than it was: one that a webhook makes the same again is not.
fn is_change(before: Option<&Value>, written: Option<&Value>) -> bool {
    let before = before.map(Metadata::resource_version);
    written.is_some_and(|written| before != Some(written.resource_version()))
}

/// Returns the error as a cause not to write, if it is to be expected again.
fn rejected(error: MemberError) -> Result<NotWritten, MemberError> {
    let (request, status) = error.into_rejection()?;
    Ok(NotWritten::Rejected { request, status })
}

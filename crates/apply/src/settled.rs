//! Tells whether the object of a manifest needs a write, from the records and the cache where they can.

use std::borrow::Cow;

use objects::drift::take_left_out;
use objects::metadata;
use objects::ownership::Instruction;
use objects::replacement::leave_node_ports;
use objects::retain::without_generated;
use serde_json::Value;

use crate::applier::Applier;
use crate::error::MemberError;
use crate::manifest_set::{LastWrite, ManifestRef};
use crate::ownership::Ownership;
use crate::plan::{plan, replacing};
use crate::result::Need;

impl<O: Ownership> Applier<O> {
    /// Returns the need of the object of a manifest.
    pub(crate) async fn need(
        &self,
        one: &ManifestRef<'_, O::Source>,
        object: &Value,
        told: &Instruction,
    ) -> Result<Need, MemberError> {
        if !self.is_settled(one, object, told).await? {
            return Ok(Need::Write);
        }
        if self.has_note(one, None) {
            return Ok(Need::Nothing { note: None });
        }
        let note = self.note(one, object, &told.retain).await?;
        let Some(text) = note.as_deref() else {
            self.records.lock().note(one, None);
            return Ok(Need::Nothing { note: None });
        };
        // With another, the cluster may know more by now.
        let is_known = self.has_note(one, Some(text)) || one.set.notes.contains(text);
        Ok(if is_known {
            Need::Nothing { note }
        } else {
            Need::Write
        })
    }

    fn has_note(&self, one: &ManifestRef<'_, O::Source>, note: Option<&str>) -> bool {
        let record = self.records.lock().of(one);
        record.is_some_and(|record| record.has_note(note))
    }

    /// Returns the object if a sync would find nothing to apply. Only a live look can tell: a field that has
    /// left the manifest shows in the managed fields, which the cache lacks.
    pub(crate) async fn find_settled(
        &self,
        one: &ManifestRef<'_, O::Source>,
        cached: &Value,
    ) -> Result<Option<Value>, MemberError> {
        if !self.finds_nothing(one, cached).await? {
            return Ok(None);
        }
        let object_ref = self.requests.object_ref(one).await?;
        match self.requests.get(&object_ref).await? {
            Some(object) if self.finds_nothing(one, &object).await? => Ok(Some(object)),
            _ => Ok(None),
        }
    }

    /// Returns `true` if a sync would find nothing to write, whatever was written last.
    async fn finds_nothing(
        &self,
        one: &ManifestRef<'_, O::Source>,
        object: &Value,
    ) -> Result<bool, MemberError> {
        let told = self.ownership.instruction(one, Some(object));
        let retained = self.retained(one, object, &told).await?;
        let plan = plan::<O>(&told, &retained, Some(object), LastWrite::Unknown);
        Ok(plan == Ok(Vec::new()))
    }

    /// Returns the manifest as it is to replace `object`, with the fields of that which a script or a webhook keeps.
    pub(crate) async fn retained<'m>(
        &self,
        one: &ManifestRef<'m, O::Source>,
        object: &Value,
        told: &Instruction,
    ) -> Result<Cow<'m, Value>, MemberError> {
        if !told.style.replaces() || told.retain.by.fingerprint().is_none() {
            return Ok(Cow::Borrowed(one.manifest));
        }
        let body = replacing::<O>(&told.retain, one.manifest, object);
        let retained = self.ownership.retain(body, object).await;
        retained
            .map(Cow::Owned)
            .map_err(|reason| MemberError::Customization {
                object: one.name(),
                reason,
            })
    }

    /// Returns `true` if the object, from a cache or not, needs nothing, but for fields that its cluster may not know.
    async fn is_settled(
        &self,
        one: &ManifestRef<'_, O::Source>,
        object: &Value,
        told: &Instruction,
    ) -> Result<bool, MemberError> {
        // The mark of the set may be where a record does not look, as its owners are.
        if !self.is_of_set(one, object) {
            return Ok(false);
        }
        let record = self.records.lock().of(one);
        // Another script may want another object.
        let record = record.filter(|record| record.is_by(told.retain.by.fingerprint()));
        let is_replaced = told.style.replaces();
        let last = match record {
            // The edit may have taken a field out, which only the managed fields show.
            Some(before) if !before.is_of(one) => return Ok(false),
            Some(before) if before.has_left(object) && before.is_compared(told.compare) => {
                return Ok(true);
            }
            _ if told.compare.looks_beyond() => return Ok(false),
            // A field that somebody added shows in them, too.
            Some(before) if is_replaced && !before.has_left_content(object) => return Ok(false),
            Some(_) => LastWrite::OfManifest,
            None => one.set.last_write,
        };
        // An unforced write leaves to others the fields that they have set.
        let may_hide_more = told.style.is_forced() && self.hides_others(one, object);
        if last == LastWrite::Unknown || may_hide_more {
            return Ok(false);
        }
        let mut known = without_generated(one.manifest);
        if is_replaced {
            leave_node_ports(&mut known, &told.retain.node_ports, Some(object));
            take_left_out(&mut known, object);
        }
        let known = ManifestRef {
            manifest: &known,
            ..*one
        };
        let retained = self.retained(&known, object, told).await?;
        let is_settled = plan::<O>(told, &retained, Some(object), last) == Ok(Vec::new());
        if is_settled {
            self.settle(one, object, told);
        }
        Ok(is_settled)
    }

    /// Returns `true` if others have written something of an object from the cache, outside of metadata and status.
    /// Only a live look can tell which.
    pub(crate) fn hides_others(&self, one: &ManifestRef<'_, O::Source>, object: &Value) -> bool {
        if metadata::field(object, "managedFields").is_some() {
            return false;
        }
        let cached = self.watches.get(&one.kind(), &one.key());
        cached.is_some_and(|cached| O::MANAGERS.are_with_others(cached.writers()))
    }

    pub(crate) fn settle(
        &self,
        one: &ManifestRef<'_, O::Source>,
        object: &Value,
        told: &Instruction,
    ) {
        let is_ours = if told.style.replaces() {
            O::MANAGERS.have_updated_all(object)
        } else {
            O::MANAGERS.have_applied_all(object)
        };
        self.records.lock().settle(one, object, is_ours, told);
    }
}

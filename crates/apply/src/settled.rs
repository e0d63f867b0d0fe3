//! Tells whether the object of a manifest needs a write, from the records and the cache where they can.

use std::borrow::Cow;

use objects::drift::take_left_out;
use objects::metadata;
use objects::ownership::Comparison;
use objects::retain::without_generated;
use serde_json::Value;

use crate::applier::Applier;
use crate::error::MemberError;
use crate::outcome::Need;
use crate::ownership::{Ownership, WriteStyle};
use crate::plan::{ApplyPlan, plan, replacing};
use crate::unit::{LastWrite, ManifestRef};

impl<O: Ownership> Applier<O> {
    /// Returns what the object of a manifest needs.
    pub(crate) async fn need(
        &self,
        one: &ManifestRef<'_, O::Source>,
        object: &Value,
    ) -> Result<Need, MemberError> {
        if !self.is_settled(one, object).await? {
            return Ok(Need::Write);
        }
        let has_note = |note: Option<&str>| {
            let record = self.records.lock().of(one);
            record.is_some_and(|record| record.has_note(note))
        };
        if has_note(None) {
            return Ok(Need::Nothing { note: None });
        }
        let note = self.note(one, object).await?;
        let Some(text) = note.as_deref() else {
            self.records.lock().note(one, None);
            return Ok(Need::Nothing { note: None });
        };
        // With another, the cluster may know more by now.
        let is_known = has_note(Some(text)) || one.unit.notes.contains(text);
        Ok(if is_known {
            Need::Nothing { note }
        } else {
            Need::Write
        })
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
        let path = self.requests.path(one).await?;
        match self.requests.get(&path).await? {
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
        let customized = self.customized(one, object).await?;
        let one = ManifestRef {
            manifest: &customized,
            ..*one
        };
        Ok(self.needs_nothing(&one, object, LastWrite::Unknown))
    }

    /// Returns the manifest as it is to replace `object`, with what a script or a webhook keeps of that.
    pub(crate) async fn customized<'m>(
        &self,
        one: &ManifestRef<'m, O::Source>,
        object: &Value,
    ) -> Result<Cow<'m, Value>, MemberError> {
        let is_replaced = self.ownership.write_style(one.unit) == WriteStyle::Replace;
        if !is_replaced || self.ownership.customization(one.manifest).is_none() {
            return Ok(Cow::Borrowed(one.manifest));
        }
        let body = replacing(&*self.ownership, one, object);
        let customized = self.ownership.customize(body, object).await;
        let failed = |reason| MemberError::Customization {
            object: one.name(),
            reason,
        };
        customized.map(Cow::Owned).map_err(failed)
    }

    /// Returns `true` if a sync would find nothing to write to the object.
    fn needs_nothing(
        &self,
        one: &ManifestRef<'_, O::Source>,
        object: &Value,
        last: LastWrite,
    ) -> bool {
        let style = self.ownership.write_style(one.unit);
        plan(&*self.ownership, one, Some(object), style, last) == ApplyPlan::Unchanged
    }

    /// Returns `true` if the object, from a cache or not, needs nothing, but for what its cluster may not know.
    async fn is_settled(
        &self,
        one: &ManifestRef<'_, O::Source>,
        object: &Value,
    ) -> Result<bool, MemberError> {
        // What says so may be where a record does not look, as its owners are.
        if !self.is_of_unit(one, object) {
            return Ok(false);
        }
        let style = self.ownership.write_style(one.unit);
        let comparison = self.comparison(one, Some(object));
        // Another script may want another object.
        let customization = self.ownership.customization(one.manifest);
        let record = self.records.lock().of(one);
        let record = record.filter(|record| record.is_by(customization));
        let last = match record {
            // The edit may have taken a field out, which only the managed fields show.
            Some(before) if !before.is_of(one) => return Ok(false),
            Some(before) if before.has_left(object) && before.is_compared(comparison) => {
                return Ok(true);
            }
            _ if comparison.looks_beyond() => return Ok(false),
            // What somebody added shows in them, too.
            Some(before) if style == WriteStyle::Replace && !before.has_left_content(object) => {
                return Ok(false);
            }
            Some(_) => LastWrite::OfManifest,
            None => one.unit.last_write,
        };
        // What others have set an unforced write leaves to them.
        let may_hide_more = style != WriteStyle::ApplyUnforced && self.hides_others(one, object);
        if last == LastWrite::Unknown || may_hide_more {
            return Ok(false);
        }
        let mut known = without_generated(one.manifest);
        if style == WriteStyle::Replace {
            self.leave_node_ports(one, &mut known, object);
            take_left_out(&mut known, object);
        }
        let known = ManifestRef {
            manifest: &known,
            ..*one
        };
        let customized = self.customized(&known, object).await?;
        let known = ManifestRef {
            manifest: &customized,
            ..known
        };
        let is_settled = self.needs_nothing(&known, object, last);
        if is_settled {
            self.settle(one, object, comparison);
        }
        Ok(is_settled)
    }

    /// Returns `true` if others have written something of an object from the cache, outside of metadata and status.
    /// Only a live look can tell what.
    pub(crate) fn hides_others(&self, one: &ManifestRef<'_, O::Source>, object: &Value) -> bool {
        if metadata::field(object, "managedFields").is_some() {
            return false;
        }
        let cached = self.watches.get(&one.kind(), &one.key());
        let managers = self.ownership.managers();
        cached.is_some_and(|cached| managers.are_with_others(cached.writers()))
    }

    pub(crate) fn settle(
        &self,
        one: &ManifestRef<'_, O::Source>,
        object: &Value,
        comparison: Comparison,
    ) {
        let managers = self.ownership.managers();
        let is_ours = match self.ownership.write_style(one.unit) {
            WriteStyle::Apply | WriteStyle::ApplyUnforced => managers.have_applied_all(object),
            WriteStyle::Replace => managers.have_updated_all(object),
        };
        let customization = self.ownership.customization(one.manifest);
        let mut records = self.records.lock();
        records.settle(one, object, is_ours, (comparison, customization));
    }
}

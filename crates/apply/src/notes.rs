//! What an object lacks of its manifest because its cluster does not know it.

use std::borrow::Cow;

use objects::drift::take_left_out;
use objects::retain::without_generated;
use serde_json::Value;

use crate::applier::Applier;
use crate::error::MemberError;
use crate::ownership::Ownership;
use crate::unit::ManifestRef;

impl<O: Ownership> Applier<O> {
    /// Returns what there is to note about a manifest whose object has what a write could give it.
    pub(crate) async fn note(
        &self,
        one: &ManifestRef<'_, O::Source>,
        object: &Value,
    ) -> Result<Option<String>, MemberError> {
        let paths = take_left_out(&mut without_generated(one.manifest), object);
        if paths.is_empty() {
            return Ok(None);
        }
        let schema = self.schemas.hash(&one.kind()).await?;
        let lacking = lacking(&paths, one);
        Ok(Some(format!("the member's schema {schema} {lacking}")))
    }
}

/// Returns the part of a manifest with which its object was written: what the cluster did not know then is no difference,
/// even if it knows it now.
pub(crate) fn written_part<'m, S>(one: &ManifestRef<'m, S>, object: &Value) -> Cow<'m, Value> {
    let mut known = without_generated(one.manifest);
    let paths = take_left_out(&mut known, object);
    if !paths.is_empty() && one.unit.notes.contains(&lacking(&paths, one)) {
        Cow::Owned(known)
    } else {
        Cow::Borrowed(one.manifest)
    }
}

/// Returns the part of a note that says which fields of a manifest its object lacks.
fn lacking<S>(paths: &[String], one: &ManifestRef<'_, S>) -> String {
    format!("lacks {} of {}", paths.join(", "), one.name())
}

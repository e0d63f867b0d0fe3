//! The fields of a manifest that its object lacks because its cluster does not know or refuses them.

use std::borrow::Cow;
use std::collections::BTreeSet;

use objects::drift::take_left_out;
use objects::ownership::Retain;
use objects::replacement::leave_node_ports;
use objects::retain::without_generated;
use serde_json::Value;

use crate::applier::Applier;
use crate::error::MemberError;
use crate::manifest_set::ManifestRef;
use crate::ownership::Ownership;

impl<O: Ownership> Applier<O> {
    /// Returns the note about a manifest whose object has all that a write could give it.
    pub(crate) async fn note(
        &self,
        one: &ManifestRef<'_, O::Source>,
        object: &Value,
        retain: &Retain,
    ) -> Result<Option<String>, MemberError> {
        let mut manifest = without_generated(one.manifest);
        let ports = leave_node_ports(&mut manifest, &retain.node_ports, Some(object));
        let paths = take_left_out(&mut manifest, object);
        let mut notes = Vec::new();
        if !paths.is_empty() {
            let schema = self.schemas.hash(&one.kind()).await?;
            let lacking = lacking(&paths, one);
            notes.push(format!("the member's schema {schema} {lacking}"));
        }
        if !ports.is_empty() {
            let ports: Vec<_> = ports.iter().map(ToString::to_string).collect();
            let (ports, service) = (ports.join(", "), one.name());
            notes.push(format!(
                "the member refuses node port {ports} of {service}, and has allocated another"
            ));
        }
        Ok((!notes.is_empty()).then(|| notes.join("; ")))
    }
}

/// Returns a manifest without the node ports in these places among its ports, if its object may have others.
pub(crate) fn without_node_ports(
    manifest: &Value,
    refused: &[usize],
    allocated: &BTreeSet<u16>,
) -> Option<Value> {
    let refused = refused.iter().filter_map(|place| {
        let port = manifest.pointer(&format!("/spec/ports/{place}/nodePort"))?;
        u16::try_from(port.as_u64()?).ok()
    });
    let refused = refused.filter(|port| allocated.contains(port)).collect();
    let mut manifest = manifest.clone();
    let left = leave_node_ports(&mut manifest, &refused, None);
    (!left.is_empty()).then_some(manifest)
}

/// Returns the part of a manifest with which its object was written: a field that the cluster did not know is no difference,
/// even if it knows it now.
pub(crate) fn written_part<'m, S>(one: &ManifestRef<'m, S>, object: &Value) -> Cow<'m, Value> {
    let mut known = without_generated(one.manifest);
    let paths = take_left_out(&mut known, object);
    if !paths.is_empty() && one.set.notes.contains(&lacking(&paths, one)) {
        Cow::Owned(known)
    } else {
        Cow::Borrowed(one.manifest)
    }
}

/// Returns the part of a note that says which fields of a manifest its object lacks.
fn lacking<S>(paths: &[String], one: &ManifestRef<'_, S>) -> String {
    format!("lacks {} of {}", paths.join(", "), one.name())
}

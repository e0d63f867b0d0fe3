//! The parts of what was selected, each small enough for etcd.

use serde_json::Value;

use crate::placement::hash::encode;

/// The size of a part, in bytes of JSON.
const PART_BYTES: usize = 800 * 1024;

/// Splits objects into parts, in their order. One that is larger than a part is alone in its own; without any, there
/// is one empty part.
///
/// # Errors
/// Fails if an object cannot be written as JSON, which none that was read is.
pub(super) fn split(objects: Vec<Value>) -> serde_json::Result<Vec<Vec<Value>>> {
    let mut parts = Vec::new();
    let (mut part, mut bytes) = (Vec::new(), 0);
    for object in objects {
        // KubeFleet counts the newline that Go's encoder ends an object with.
        let size = encode(&object)?.len() + 1;
        if bytes + size > PART_BYTES && !part.is_empty() {
            parts.push(std::mem::take(&mut part));
            bytes = 0;
        }
        part.push(object);
        bytes += size;
    }
    parts.push(part);
    Ok(parts)
}

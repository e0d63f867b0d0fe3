//! The parts of a selection, each small enough for etcd.

use serde_json::Value;

use crate::hash::encode;

/// The size of a part, in bytes of JSON.
const PART_BYTES: usize = 800 * 1024;
/// The number of objects of a part. The Work that is made of it tells of each in some 600 bytes, and etcd takes both
/// together.
const PART_OBJECTS: usize = 1000;

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
        let is_full = bytes + size > PART_BYTES || part.len() == PART_OBJECTS;
        if is_full && !part.is_empty() {
            parts.push(std::mem::take(&mut part));
            bytes = 0;
        }
        part.push(object);
        bytes += size;
    }
    parts.push(part);
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns the number of objects in each part of so many.
    fn lengths(number: usize) -> Vec<usize> {
        let parts = split(vec![json!({ "kind": "ConfigMap" }); number]).unwrap();
        parts.iter().map(Vec::len).collect()
    }

    /// Case F97: the report on many small objects fits into the status of their Works, too.
    #[test]
    fn many_objects_are_parted() {
        assert_eq!(lengths(0), [0]);
        assert_eq!(lengths(1000), [1000]);
        assert_eq!(lengths(2001), [1000, 1000, 1]);
    }
}

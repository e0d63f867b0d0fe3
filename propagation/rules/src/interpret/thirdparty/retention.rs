//! The fields of an object that a replacement keeps, as several projects need it.

use objects::fields::insert;
use serde_json::Value;

/// Keeps whether work on the object is suspended: who decides that does it where the object is.
pub(super) fn keep_suspension(body: &mut Value, object: &Value) {
    let suspend = object.pointer("/spec/suspend");
    if let Some(suspend) = suspend.filter(|suspend| !suspend.is_null()) {
        insert(body, "/spec", "suspend", suspend.clone());
    }
}

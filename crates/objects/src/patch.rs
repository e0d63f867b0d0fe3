//! Patches of an object, and the guard that makes one fail if the object has changed since it was read.
//!
//! A guard names the resource version that was read; at another one the API server answers 409 Conflict. No value
//! is a guard: for the `test` of a JSON patch the API server compares encoded bytes, and its encoder escapes `&`, `<`
//! and `>`, which ours does not.

use std::collections::BTreeMap;
use std::fmt;

use json_patch::jsonptr::{Pointer, PointerBuf};
use json_patch::{AddOperation, PatchOperation, RemoveOperation, ReplaceOperation, TestOperation};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::params;
use serde::Serialize;
use serde_json::{Value, json};

use crate::metadata::{self, Metadata};

/// The characters that the API server's encoder escapes, and ours does not.
const ESCAPED: [char; 5] = ['&', '<', '>', '\u{2028}', '\u{2029}'];

/// The levels of the deepest object that is made, which every JSON parser reads.
pub const MAX_LEVELS: usize = 100;
/// The bytes that the copies of one JSON patch may add; as for kube-apiserver.
const MAX_COPIED: usize = 3 << 20;

/// A JSON patch (RFC 6902). A path is given by its parts, so that any key can be one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct JsonPatch(Vec<PatchOperation>);

/// Returns the merge patch `body` with a guard.
pub fn guarded(resource_version: Option<&str>, mut body: Value) -> Value {
    metadata::set(&mut body, "resourceVersion", resource_version.into());
    body
}

/// Returns the merge patch that makes one value of another, or `None` if they are equal.
pub fn merge_between(before: &Value, after: &Value) -> Option<Value> {
    if before == after {
        return None;
    }
    let (Value::Object(old), Value::Object(new)) = (before, after) else {
        return Some(after.clone());
    };
    let gone = old.keys().filter(|key| !new.contains_key(*key));
    let gone = gone.map(|key| (key.clone(), Value::Null));
    let changed = new.iter().filter_map(|(key, value)| {
        let patch = match old.get(key) {
            Some(old) => merge_between(old, value)?,
            None => value.clone(),
        };
        Some((key.clone(), patch))
    });
    Some(Value::Object(gone.chain(changed).collect()))
}

/// Returns an operation as users write it: to `add`, `remove` or `replace` the value at a JSON pointer (RFC 6901).
///
/// # Errors
/// Fails if it is another one, or the path is no JSON pointer.
pub fn operation(
    operator: &str,
    path: &str,
    value: Option<&Value>,
) -> Result<PatchOperation, String> {
    if !["add", "replace", "remove"].contains(&operator) {
        return Err(format!("`{operator}` is no operator that is known"));
    }
    let operation = json!({ "op": operator, "path": path, "value": value });
    serde_json::from_value(operation).map_err(|error| format!("`{path}` is no path: {error}"))
}

/// Errors of a JSON patch that somebody else has written.
#[derive(Debug)]
pub enum PatchError {
    /// The object has no such place.
    Unfit(json_patch::PatchError),
    /// The object would be too deep.
    TooDeep,
    /// The patch copies too much.
    TooLarge,
}

impl fmt::Display for PatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unfit(error) => write!(f, "at {}: {}", error.path, error.kind),
            Self::TooDeep => write!(f, "the object would have more than {MAX_LEVELS} levels"),
            Self::TooLarge => write!(f, "it copies more than {} MiB", MAX_COPIED >> 20),
        }
    }
}

/// Applies the operations of a JSON patch that somebody else has written, as Kubernetes, Karmada and KubeFleet do: unlike
/// RFC 6902, they [count](from_the_start) places in lists from the end, too. After an error, those before it are applied.
///
/// # Errors
/// Fails if one does not fit the object, or would make an object that no API server stores. Such an object is never
/// made: its copies could fill the memory, and whoever walks through it would need a stack as deep.
pub fn apply(operations: &[PatchOperation], object: &mut Value) -> Result<(), PatchError> {
    let mut copied = 0;
    for operation in operations {
        let operation = &counted(operation.clone(), object);
        let added = match operation {
            PatchOperation::Add(add) => Some(&add.value),
            PatchOperation::Replace(replace) => Some(&replace.value),
            PatchOperation::Move(of) => object.pointer(of.from.as_str()),
            PatchOperation::Copy(of) => object.pointer(of.from.as_str()),
            PatchOperation::Remove(_) | PatchOperation::Test(_) => None,
        };
        if let Some(added) = added {
            let levels = MAX_LEVELS.saturating_sub(operation.path().count());
            if is_deeper(added, levels) {
                return Err(PatchError::TooDeep);
            }
            if let PatchOperation::Copy(_) = operation {
                copied += added.to_string().len();
            }
        }
        if copied > MAX_COPIED {
            return Err(PatchError::TooLarge);
        }
        let one = std::slice::from_ref(operation);
        json_patch::patch(object, one).map_err(PatchError::Unfit)?;
    }
    Ok(())
}

/// Returns an operation whose places in lists are counted from the start.
fn counted(mut operation: PatchOperation, object: &Value) -> PatchOperation {
    let paths = match &mut operation {
        PatchOperation::Add(add) => vec![(&mut add.path, true)],
        PatchOperation::Remove(remove) => vec![(&mut remove.path, false)],
        PatchOperation::Replace(replace) => vec![(&mut replace.path, false)],
        PatchOperation::Move(moved) => vec![(&mut moved.from, false), (&mut moved.path, true)],
        PatchOperation::Copy(copied) => vec![(&mut copied.from, false), (&mut copied.path, true)],
        PatchOperation::Test(test) => vec![(&mut test.path, false)],
    };
    for (path, adds) in paths {
        *path = from_the_start(path, adds, object);
    }
    operation
}

fn is_deeper(value: &Value, levels: usize) -> bool {
    let Some(left) = levels.checked_sub(1) else {
        return true;
    };
    match value {
        Value::Array(items) => items.iter().any(|item| is_deeper(item, left)),
        Value::Object(fields) => fields.values().any(|field| is_deeper(field, left)),
        _ => false,
    }
}

/// Returns a path whose places in lists are counted from the start, and written as JSON pointers have them. `adds` is true if
/// the last one is that of a new element.
pub fn from_the_start(path: &Pointer, adds: bool, object: &Value) -> PointerBuf {
    let last = path.tokens().count();
    let mut at = Some(object);
    let tokens = path.tokens().zip(1..).map(|(token, depth)| {
        let token = token.decoded();
        if let Some(Value::Array(items)) = at {
            let places = items.len() + usize::from(adds && depth == last);
            let place = place(&token, places);
            at = place.and_then(|place| items.get(place));
            place.map_or_else(|| token.into_owned(), |place| place.to_string())
        } else {
            at = at.and_then(|at| at.get(&*token));
            token.into_owned()
        }
    });
    PointerBuf::from_tokens(tokens)
}

/// Returns the place, in a list with so many, that a part of a path means to the library which Kubernetes, Karmada and
/// KubeFleet use: -1 is the last, and 01 the second.
pub fn place(token: &str, places: usize) -> Option<usize> {
    match token.parse::<isize>().ok()? {
        place @ ..0 => places.checked_add_signed(place),
        place => usize::try_from(place).ok(),
    }
}

impl JsonPatch {
    /// Sets the value at `path`, whether there is one or not; at a place in a list, inserts it.
    pub fn add<'p>(&mut self, path: impl IntoIterator<Item = &'p str>, value: Value) {
        let path = PointerBuf::from_tokens(path);
        self.0
            .push(PatchOperation::Add(AddOperation { path, value }));
    }

    /// Replaces the value at `path`, which must be there.
    pub fn replace<'p>(&mut self, path: impl IntoIterator<Item = &'p str>, value: Value) {
        let path = PointerBuf::from_tokens(path);
        self.0
            .push(PatchOperation::Replace(ReplaceOperation { path, value }));
    }

    /// Removes the value at `path`, which must be there.
    pub fn remove<'p>(&mut self, path: impl IntoIterator<Item = &'p str>) {
        let path = PointerBuf::from_tokens(path);
        self.0
            .push(PatchOperation::Remove(RemoveOperation { path }));
    }

    /// Lets the patch fail unless the element that it is about has this name at `path`: in a list of which some
    /// elements could not be read, the places of the others are not those of the server's list.
    pub fn test_name<'p>(&mut self, path: impl IntoIterator<Item = &'p str>, name: &str) {
        // No valid name has them, and the test would fail for ever.
        if name.contains(ESCAPED) {
            return;
        }
        let (path, value) = (PointerBuf::from_tokens(path), name.into());
        self.0
            .push(PatchOperation::Test(TestOperation { path, value }));
    }

    /// Brings `wanted` into a map of the metadata, such as `labels`, which is `current`: an entry of `None` goes,
    /// and entries that are not mentioned stay.
    pub fn entries<'k>(
        &mut self,
        map: &str,
        current: Option<&BTreeMap<String, String>>,
        wanted: impl IntoIterator<Item = (&'k str, Option<&'k str>)>,
    ) {
        let Some(current) = current else {
            // An entry cannot be added to a map that is not there.
            let present = wanted.into_iter();
            let present = present.filter_map(|(key, value)| Some((key, value?)));
            let present: BTreeMap<_, _> = present.collect();
            if !present.is_empty() {
                self.add(["metadata", map], json!(present));
            }
            return;
        };
        for (key, value) in wanted {
            let path = ["metadata", map, key];
            match (current.get(key), value) {
                (Some(current), Some(value)) if current == value => {}
                (_, Some(value)) => self.add(path, value.into()),
                (Some(_), None) => self.remove(path),
                (None, None) => {}
            }
        }
    }

    /// Adds a finalizer that is not there.
    pub fn add_finalizer(&mut self, metadata: &ObjectMeta, finalizer: &str) {
        match &metadata.finalizers {
            Some(_) if metadata.has_finalizer(finalizer) => {}
            Some(_) => self.add(["metadata", "finalizers", "-"], finalizer.into()),
            None => self.add(["metadata", "finalizers"], json!([finalizer])),
        }
    }

    /// Removes a finalizer, if it is there.
    pub fn remove_finalizer(&mut self, metadata: &ObjectMeta, finalizer: &str) {
        let place = metadata.finalizers().position(|one| one == finalizer);
        if let Some(place) = place {
            self.remove(["metadata", "finalizers", &place.to_string()]);
        }
    }

    /// Adds the operations of `other`.
    pub fn append(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Returns the patch with a guard before its operations.
    #[must_use]
    pub fn guarded(self, resource_version: Option<&str>) -> Self {
        let mut guarded = Self::default();
        // A `test` of the version would be answered with 422 and not with 409.
        guarded.replace(["metadata", "resourceVersion"], resource_version.into());
        guarded.append(self);
        guarded
    }

    /// Returns `true` if the patch does nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of operations.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the operations.
    pub fn operations(&self) -> &[PatchOperation] {
        &self.0
    }

    /// Returns the paths that the operations are about, as JSON pointers (RFC 6901).
    pub fn paths(&self) -> impl Iterator<Item = &Pointer> {
        self.0.iter().map(PatchOperation::path)
    }

    /// Returns the value that the patch sets at `path`.
    pub fn value<'p>(&self, path: impl IntoIterator<Item = &'p str>) -> Option<&Value> {
        let path = PointerBuf::from_tokens(path);
        self.0.iter().find_map(|operation| match operation {
            PatchOperation::Add(set) if set.path == path => Some(&set.value),
            PatchOperation::Replace(set) if set.path == path => Some(&set.value),
            _ => None,
        })
    }
}

impl From<JsonPatch> for json_patch::Patch {
    fn from(patch: JsonPatch) -> Self {
        Self(patch.0)
    }
}

impl<T: Serialize> From<JsonPatch> for params::Patch<T> {
    fn from(patch: JsonPatch) -> Self {
        Self::Json(patch.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(patch: &JsonPatch) -> Value {
        serde_json::to_value(patch).unwrap()
    }

    #[test]
    fn keys_are_escaped() {
        let mut patch = JsonPatch::default();
        patch.add(["metadata", "labels", "x.io/a~b"], json!("1"));
        patch.remove(["metadata", "labels", "~1"]);
        assert_eq!(
            json(&patch),
            json!([
                { "op": "add", "path": "/metadata/labels/x.io~1a~0b", "value": "1" },
                { "op": "remove", "path": "/metadata/labels/~01" },
            ])
        );
        let mut object = json!({ "metadata": { "labels": { "~1": "old" } } });
        json_patch::patch(&mut object, patch.operations()).unwrap();
        assert_eq!(object["metadata"]["labels"], json!({ "x.io/a~b": "1" }));
    }

    /// Case P113: a place in a list may be counted from its end, and have zeros before it; a key stays one.
    #[test]
    fn places_are_counted() {
        let object = json!({ "a": [{ "-1": "x", "01": "y" }, { "b": [1] }], "-1": {} });
        for (path, adds, expected) in [
            ("/a/-1/b/-1", false, "/a/1/b/0"),
            ("/a/-1/b/-1", true, "/a/1/b/1"),
            ("/a/00/-1", false, "/a/0/-1"),
            ("/a/0/01", true, "/a/0/01"),
            ("/a/-3", false, "/a/-3"),
            ("/a/02", true, "/a/2"),
            ("/a/-", true, "/a/-"),
            ("/-1/01", false, "/-1/01"),
            ("/none/-1", true, "/none/-1"),
            ("", false, ""),
        ] {
            let path = Pointer::parse(path).unwrap();
            assert_eq!(from_the_start(path, adds, &object).as_str(), expected);
        }
        let operations = [
            operation("add", "/list/-1", Some(&json!("new"))).unwrap(),
            operation("replace", "/list/-2", Some(&json!("b"))).unwrap(),
            operation("remove", "/list/00", None).unwrap(),
        ];
        let mut object = json!({ "list": [0, 1] });
        apply(&operations, &mut object).unwrap();
        assert_eq!(object, json!({ "list": ["b", "new"] }));
        let beyond = operation("remove", "/list/-3", None).unwrap();
        assert!(apply(&[beyond], &mut object).is_err());
    }

    #[test]
    fn guards_come_first() {
        let mut patch = JsonPatch::default();
        patch.add(["spec", "a"], json!(1));
        let patch = patch.guarded(Some("7"));
        assert_eq!(
            json(&patch)[0],
            json!({ "op": "replace", "path": "/metadata/resourceVersion", "value": "7" })
        );
        assert_eq!(patch.value(["spec", "a"]), Some(&json!(1)));
        assert_eq!(patch.len(), 2);
        let merge = guarded(
            Some("7"),
            json!({ "metadata": { "labels": {} }, "spec": 1 }),
        );
        let expected = json!({ "metadata": { "labels": {}, "resourceVersion": "7" }, "spec": 1 });
        assert_eq!(merge, expected);
    }

    /// A name with such a character is none, but the rest of the patch has to be possible.
    #[test]
    fn tests_need_no_escapes() {
        let mut patch = JsonPatch::default();
        patch.test_name(["spec", "tasks", "0", "fromCluster"], "m1");
        let of = ["spec", "tasks", "1", "fromCluster"];
        for name in ["a&b", "<", "a>", "\u{2028}"] {
            patch.test_name(of, name);
        }
        let test = json!({ "op": "test", "path": "/spec/tasks/0/fromCluster", "value": "m1" });
        assert_eq!(json(&patch), json!([test]));
    }

    /// Whoever writes an override, or answers as a webhook, makes no object that is too deep or too large.
    #[test]
    fn foreign_patches_are_bounded() {
        let patch = |operations: Value, object: Value| {
            let operations: json_patch::Patch = serde_json::from_value(operations).unwrap();
            let mut object = object;
            let applied = apply(&operations, &mut object);
            applied.map(|()| object).map_err(|error| error.to_string())
        };
        let nested = |levels: usize| (1..levels).fold(json!(1), |inner, _| json!([inner]));
        let add = |levels| json!([{ "op": "add", "path": "/a/b", "value": nested(levels) }]);
        let object = json!({ "a": {} });
        assert_eq!(
            patch(add(98), object.clone()).unwrap()["a"]["b"],
            nested(98)
        );
        let too_deep = "the object would have more than 100 levels";
        assert_eq!(patch(add(99), object).unwrap_err(), too_deep);
        for operation in ["move", "copy"] {
            let further = json!([{ "op": operation, "from": "/a", "path": "/b/c/d" }]);
            let object = |levels| json!({ "a": nested(levels), "b": { "c": {} } });
            assert!(patch(further.clone(), object(97)).is_ok());
            assert_eq!(patch(further, object(98)).unwrap_err(), too_deep);
        }
        let copy = json!({ "op": "copy", "from": "/a", "path": "/b/-" });
        let object = json!({ "a": "x".repeat(1 << 20), "b": [] });
        assert!(patch(json!([copy, copy]), object.clone()).is_ok());
        assert_eq!(
            patch(json!([copy, copy, copy]), object).unwrap_err(),
            "it copies more than 3 MiB"
        );
        let unfit = json!([{ "op": "remove", "path": "/a" }]);
        assert!(patch(unfit, json!({})).is_err());
    }

    #[test]
    fn merge_makes_the_other() {
        let before = json!({ "a": { "b": 1, "c": [1, 2] }, "d": 1, "e": "x" });
        let after = json!({ "a": { "c": [2] }, "d": 1, "f": {} });
        let patch = merge_between(&before, &after).unwrap();
        let expected = json!({ "a": { "b": null, "c": [2] }, "e": null, "f": {} });
        assert_eq!(patch, expected);
        let mut made = before.clone();
        json_patch::merge(&mut made, &patch);
        assert_eq!(made, after);
        assert_eq!(merge_between(&before, &before), None);
    }

    #[test]
    fn entries_differ_from_current() {
        let current = [
            ("same", "1"),
            ("other", "1"),
            ("gone", "1"),
            ("theirs", "1"),
        ];
        let current = current.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let current = BTreeMap::from(current);
        let wanted = [
            ("same", Some("1")),
            ("other", Some("2")),
            ("new", Some("3")),
            ("gone", None),
            ("never", None),
        ];
        let mut patch = JsonPatch::default();
        patch.entries("labels", Some(&current), wanted);
        let mut object = json!({ "metadata": { "labels": current } });
        json_patch::patch(&mut object, patch.operations()).unwrap();
        let expected = json!({ "same": "1", "other": "2", "new": "3", "theirs": "1" });
        assert_eq!(object["metadata"]["labels"], expected);
        assert_eq!(patch.len(), 3);
    }

    #[test]
    fn absent_map_is_added_whole() {
        let mut patch = JsonPatch::default();
        patch.entries("labels", None, [("a/b", None)]);
        assert!(patch.is_empty());
        patch.entries("labels", None, [("a/b", Some("1")), ("c", None)]);
        let added = json!({ "op": "add", "path": "/metadata/labels", "value": { "a/b": "1" } });
        assert_eq!(json(&patch), json!([added]));
    }

    #[test]
    fn finalizers_are_patched_once() {
        let theirs = vec!["x.io/theirs".to_owned()];
        let both = [theirs.clone(), vec!["x.io/ours".to_owned()]].concat();
        let to_theirs =
            json!([{ "op": "add", "path": "/metadata/finalizers/-", "value": "x.io/ours" }]);
        let alone =
            json!([{ "op": "add", "path": "/metadata/finalizers", "value": ["x.io/ours"] }]);
        let removal = json!([{ "op": "remove", "path": "/metadata/finalizers/1" }]);
        for (finalizers, addition, removal) in [
            (Some(both), json!([]), removal),
            (Some(theirs), to_theirs, json!([])),
            (None, alone, json!([])),
        ] {
            let metadata = ObjectMeta {
                finalizers,
                ..ObjectMeta::default()
            };
            let [mut adding, mut removing] = [JsonPatch::default(), JsonPatch::default()];
            adding.add_finalizer(&metadata, "x.io/ours");
            removing.remove_finalizer(&metadata, "x.io/ours");
            assert_eq!((json(&adding), json(&removing)), (addition, removal));
        }
    }
}

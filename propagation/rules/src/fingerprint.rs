//! The fingerprint of a template, by which an edit is told from an event without one.

use std::fmt;
use std::hash::Hasher;
use std::str::FromStr;

use fnv::FnvHasher;
use karmada_api::names;
use serde_json::Value;

/// The version of the fields that count and of their hash.
const VERSION: &str = "2";

/// The annotations and labels of Karmada that users set: a change of one is an edit.
const OF_USERS: [&str; 3] = [
    "namespace.karmada.io/skip-auto-propagation",
    "resourcetemplate.karmada.io/deletion-protected",
    names::CONFLICT_RESOLUTION,
];

/// The hashes of the fields that users set in a template: status, and those that API server and control plane add to its
/// metadata, do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    content: u64,
    metadata: u64,
}

impl Fingerprint {
    /// Returns the fingerprint of a template.
    pub fn of(template: &Value) -> Self {
        let (mut content, mut metadata) = (FnvHasher::default(), FnvHasher::default());
        for (name, value) in template.as_object().into_iter().flatten() {
            if !matches!(name.as_str(), "metadata" | "status") {
                hash_text(name, &mut content);
                hash(value, &mut content);
            }
        }
        for name in ["annotations", "labels"] {
            hash_text(name, &mut metadata);
            let entries = template.pointer(&format!("/metadata/{name}"));
            let entries = entries.and_then(Value::as_object).into_iter().flatten();
            for (key, value) in entries.filter(|(key, _)| is_of_users(key)) {
                hash_text(key, &mut metadata);
                hash(value, &mut metadata);
            }
        }
        for name in ["finalizers", "ownerReferences"] {
            hash_text(name, &mut metadata);
            let items = template.pointer(&format!("/metadata/{name}"));
            let items = items.and_then(Value::as_array).into_iter().flatten();
            for item in items.filter(|item| item.as_str().is_none_or(is_of_users)) {
                hash(item, &mut metadata);
            }
        }
        Self {
            content: content.finish(),
            metadata: metadata.finish(),
        }
    }

    /// Returns `true` if users changed the template since it had the fingerprint `before`. Content that
    /// differs in the same generation was added by a newer API server.
    pub fn is_edit_of(&self, before: &Self, is_same_generation: bool) -> bool {
        self.metadata != before.metadata || (self.content != before.content && !is_same_generation)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { content, metadata } = self;
        write!(f, "{VERSION}:{content:016x}:{metadata:016x}")
    }
}

/// A text that is no fingerprint of this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownVersion;

impl FromStr for Fingerprint {
    type Err = UnknownVersion;

    fn from_str(text: &str) -> Result<Self, UnknownVersion> {
        match *text.split(':').collect::<Vec<_>>() {
            [VERSION, content, metadata] => Ok(Self {
                content: parsed(content)?,
                metadata: parsed(metadata)?,
            }),
            _ => Err(UnknownVersion),
        }
    }
}

fn parsed(text: &str) -> Result<u64, UnknownVersion> {
    u64::from_str_radix(text, 16).map_err(|_| UnknownVersion)
}

/// Returns `true` unless a label, an annotation or a finalizer of this key belongs to a control plane.
fn is_of_users(key: &str) -> bool {
    let prefix = key.split_once('/').map_or("", |(prefix, _)| prefix);
    let is_ours =
        matches!(prefix, "karmada.io" | "karmada-rs.io") || prefix.ends_with(".karmada.io");
    !is_ours || OF_USERS.contains(&key)
}

/// Hashes a value so that no two values are the same sequence of bytes. The keys of objects are sorted
/// (`serde_json` keeps them so).
fn hash(value: &Value, hasher: &mut FnvHasher) {
    match value {
        Value::Object(fields) => {
            hasher.write_u8(b'{');
            for (name, value) in fields {
                hash_text(name, hasher);
                hash(value, hasher);
            }
            hasher.write_u8(b'}');
        }
        Value::Array(items) => {
            hasher.write_u8(b'[');
            for item in items {
                hash(item, hasher);
            }
            hasher.write_u8(b']');
        }
        Value::String(text) => {
            hasher.write_u8(b'"');
            hash_text(text, hasher);
        }
        scalar => {
            hasher.write_u8(b'=');
            hash_text(&scalar.to_string(), hasher);
        }
    }
}

fn hash_text(text: &str, hasher: &mut FnvHasher) {
    // In the same order of bytes on every machine: fingerprints outlive the process.
    hasher.write(&(text.len() as u64).to_le_bytes());
    hasher.write(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn template() -> Value {
        json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {
                "name": "web", "uid": "u", "generation": 3, "resourceVersion": "7",
                "labels": { "app": "web" },
            },
            "spec": { "replicas": 2, "template": { "spec": { "containers": [{ "name": "a" }] } } },
            "status": { "replicas": 2 },
        })
    }

    fn changed(pointer: &str, value: Value) -> bool {
        let mut changed = template();
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        if changed.pointer(parent).is_none() {
            let (above, parent) = parent.rsplit_once('/').unwrap();
            changed.pointer_mut(above).unwrap()[parent] = json!({});
        }
        let name = name.replace("~1", "/");
        changed.pointer_mut(parent).unwrap()[name] = value;
        Fingerprint::of(&changed).is_edit_of(&Fingerprint::of(&template()), false)
    }

    /// Cases P47 and P48: a field that users and autoscalers set is an edit, and one that control planes set is none.
    #[test]
    fn only_users_fields_are_edits() {
        for (pointer, value) in [
            ("/spec/replicas", json!(3)),
            ("/spec/paused", json!(true)),
            ("/spec/template/spec/containers", json!([])),
            ("/spec/replicas", json!("2")),
            ("/metadata/labels/app", json!("shop")),
            ("/metadata/labels/refresh-time", json!("1")),
            (
                "/metadata/annotations/x.karmada.io.example.com~1a",
                json!("1"),
            ),
            (
                "/metadata/annotations/work.karmada.io~1conflict-resolution",
                json!("overwrite"),
            ),
            (
                "/metadata/labels/namespace.karmada.io~1skip-auto-propagation",
                json!("true"),
            ),
            ("/metadata/finalizers", json!(["example.com/a"])),
            ("/metadata/ownerReferences", json!([{ "uid": "o" }])),
            ("/data", json!({})),
        ] {
            assert!(changed(pointer, value.clone()), "{pointer} {value}");
        }
        for (pointer, value) in [
            ("/status", json!({ "replicas": 1 })),
            ("/metadata/generation", json!(4)),
            ("/metadata/resourceVersion", json!("8")),
            ("/metadata/managedFields", json!([{}])),
            (
                "/metadata/labels/propagationpolicy.karmada.io~1permanent-id",
                json!("x"),
            ),
            (
                "/metadata/annotations/karmada-rs.io~1claimed-fingerprint",
                json!("x"),
            ),
            ("/metadata/finalizers", json!(["karmada.io/a"])),
            ("/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z")),
        ] {
            assert!(!changed(pointer, value.clone()), "{pointer} {value}");
        }
    }

    /// Content that differs in one generation is no edit.
    #[test]
    fn same_generation_is_no_edit() {
        let before = Fingerprint::of(&template());
        let mut defaulted = template();
        defaulted["spec"]["new"] = json!("default");
        let now = Fingerprint::of(&defaulted);
        assert!(!now.is_edit_of(&before, true));
        assert!(now.is_edit_of(&before, false));
        defaulted["metadata"]["labels"]["app"] = json!("other");
        assert!(Fingerprint::of(&defaulted).is_edit_of(&before, true));
    }

    /// A fingerprint is read as it was written and one of another version is not.
    #[test]
    fn fingerprint_reads_as_written() {
        let fingerprint = Fingerprint::of(&template());
        assert_eq!(fingerprint.to_string().parse(), Ok(fingerprint));
        // Fingerprints outlive the program: another hash needs another version.
        assert_eq!(
            Fingerprint::of(&json!({ "kind": "A", "metadata": { "labels": { "a": "b" } } }))
                .to_string(),
            "2:d3239673e13c9ae5:246a650811076195"
        );
        for text in ["", "1:0:0", "2:0", "2:0:x", "2:0:0:0"] {
            assert_eq!(text.parse::<Fingerprint>(), Err(UnknownVersion), "{text}");
        }
    }
}

//! Hashes of JSON as Go writes it: KubeFleet compares snapshots by them, and so do we, or every snapshot would
//! be made anew when a fleet changes hands.

use std::io;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use fleet_api::overrides::OverrideSpec;
use fleet_api::placement::EnvelopeIdentifier;
use fleet_api::policy::PlacementPolicy;
use fleet_api::snapshot::ResourceSnapshotSpec;
use objects::digest::sha256;
use objects::metadata;
use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, Serializer};
use serde_json::{Value, json};

/// Returns the hash of a policy as a snapshot has it: the number of clusters does not count.
///
/// # Errors
/// Fails if the policy cannot be written as JSON, which no policy that was read is.
pub fn of_policy(policy: Option<&PlacementPolicy>) -> serde_json::Result<String> {
    let policy = policy.map(|policy| PlacementPolicy {
        number_of_clusters: None,
        ..policy.clone()
    });
    in_base64(&policy)
}

/// Returns the hash of an override as a snapshot has it.
///
/// # Errors
/// Fails if the override cannot be written as JSON, which none that was read is.
pub fn of_override(spec: &OverrideSpec) -> serde_json::Result<String> {
    in_base64(spec)
}

/// Returns a hash that is a `[]byte` in Go, which its JSON has in Base64.
fn in_base64(value: &impl Serialize) -> serde_json::Result<String> {
    Ok(BASE64_STANDARD.encode(hex_of(value)?))
}

/// Returns the hash of everything that a placement selected, however it is split into snapshots.
///
/// # Errors
/// Fails if an object cannot be written as JSON, which none that was read is.
pub fn of_objects(selected_resources: Vec<Value>) -> serde_json::Result<String> {
    hex_of(&ResourceSnapshotSpec { selected_resources })
}

/// Returns the hash of the names of overrides, as the Works that have them carry it.
///
/// # Errors
/// Fails if the names cannot be written as JSON.
pub fn of_names<T: Serialize>(names: Option<&[T]>) -> serde_json::Result<String> {
    hex_of(&names)
}

/// Returns the digest of the effect of overrides in a cluster.
///
/// # Errors
/// Fails if it cannot be written as JSON.
pub(super) fn of_rules(rules: &impl Serialize) -> serde_json::Result<String> {
    hex_of(rules)
}

/// Returns the end of the name of an envelope's Work.
pub(crate) fn of_envelope_identity(envelope: &EnvelopeIdentifier) -> String {
    let EnvelopeIdentifier {
        name,
        namespace,
        type_,
    } = envelope;
    let mut hash = sha256(format!("{type_}/{namespace}/{name}").as_bytes());
    hash.truncate(16);
    hash
}

/// Returns the hash of a manifest as the object that was written by it carries it: of its metadata only labels and
/// annotations count, and of these none that belong to a part of Kubernetes.
///
/// # Errors
/// Fails if the manifest cannot be written as JSON, which none that was read is.
pub fn of_manifest(manifest: &Value) -> serde_json::Result<String> {
    let [annotations, labels] =
        ["annotations", "labels"].map(|part| metadata::but_for(manifest, part, is_reserved));
    let mut hashed = manifest.clone();
    if let Some(fields) = hashed.as_object_mut() {
        fields.remove("status");
        let metadata = json!({ "annotations": annotations, "finalizers": [], "labels": labels,
            "managedFields": [], "ownerReferences": [] });
        fields.insert("metadata".to_owned(), metadata);
    }
    hex_of(&hashed)
}

/// Returns the hash of a binding on a cluster that has these already, by their uids and that of the placement.
pub(super) fn of_binding(placement: &str, cluster: &str, before: &[&str]) -> String {
    sha256(format!("{placement}/{cluster}/{}", before.join("/")).as_bytes())
}

/// Returns `true` for a label or an annotation that belongs to a part of Kubernetes, or of the fleet.
pub fn is_reserved(key: &str) -> bool {
    let reserved = ["kubernetes.io/", "k8s.io/", "kubernetes-fleet.io/"];
    reserved.iter().any(|domain| key.contains(domain))
}

fn hex_of(value: &impl Serialize) -> serde_json::Result<String> {
    Ok(sha256(&encode(value)?))
}

/// Returns the JSON of a value as Go's `encoding/json` writes it.
///
/// # Errors
/// Fails if the value cannot be written as JSON.
pub fn encode(value: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut json = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut json, GoFormatter))?;
    Ok(json)
}

/// Writes JSON in the way of Go: safe to stand inside HTML, and with its form of floating-point numbers.
struct GoFormatter;

impl Formatter for GoFormatter {
    fn write_string_fragment<W: io::Write + ?Sized>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut rest = fragment;
        while let Some(at) = rest.find(['<', '>', '&', '\u{2028}', '\u{2029}']) {
            let (plain, special) = rest.split_at(at);
            writer.write_all(plain.as_bytes())?;
            let mut characters = special.chars();
            if let Some(character) = characters.next() {
                write!(writer, "\\u{:04x}", u32::from(character))?;
            }
            rest = characters.as_str();
        }
        writer.write_all(rest.as_bytes())
    }

    fn write_f64<W: io::Write + ?Sized>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        let magnitude = value.abs();
        // As ECMAScript does, says Go: exponents only for very small and very large numbers.
        if magnitude != 0.0 && !(1e-6..1e21).contains(&magnitude) {
            let text = format!("{value:e}");
            return match text.split_once('e') {
                Some((digits, exponent)) if !exponent.starts_with('-') => {
                    write!(writer, "{digits}e+{exponent}")
                }
                _ => writer.write_all(text.as_bytes()),
            };
        }
        if value.fract() == 0.0 {
            return write!(writer, "{value:.0}");
        }
        CompactFormatter.write_f64(writer, value)
    }
}

#[cfg(test)]
mod tests {
    use fleet_api::names;
    use fleet_api::overrides::JsonPatchOverride;
    use serde_json::{Value, from_value, json};

    use super::super::fixtures::{self, fixture};
    use super::*;

    /// Case F14: the policies of a running KubeFleet, each with the hash that it gave them.
    #[test]
    fn policies_have_recorded_hashes() {
        for name in fixtures::POLICY_SNAPSHOTS {
            let snapshot = fixture(name);
            let policy: Option<PlacementPolicy> =
                from_value(snapshot["spec"]["policy"].clone()).unwrap();
            let hash = of_policy(policy.as_ref()).unwrap();
            assert_eq!(hash, snapshot["spec"]["policyHash"], "{name}");
        }
    }

    #[test]
    fn absent_policy_hashes_null() {
        let hash = BASE64_STANDARD.decode(of_policy(None).unwrap()).unwrap();
        let null = "74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b";
        assert_eq!(hash, null.as_bytes());
    }

    #[test]
    fn number_of_clusters_is_blanked() {
        let [one, five] = [1, 5].map(|number| PlacementPolicy {
            number_of_clusters: Some(number),
            ..PlacementPolicy::default()
        });
        let one = of_policy(Some(&one)).unwrap();
        assert_eq!(one, of_policy(Some(&five)).unwrap());
    }

    /// Case F14: the content of one group may be in several snapshots: the hash is of all of it.
    #[test]
    fn contents_have_recorded_hashes() {
        for name in fixtures::RESOURCE_SNAPSHOTS {
            let snapshot = fixture(name);
            let content: ResourceSnapshotSpec = from_value(snapshot["spec"].clone()).unwrap();
            let annotations = &snapshot["metadata"]["annotations"];
            let recorded = &annotations["kubernetes-fleet.io/resource-hash"];
            let hash = of_objects(content.selected_resources).unwrap();
            assert_eq!(hash, *recorded, "{name}");
        }
    }

    /// Case F36: the overrides of a running KubeFleet, and the lists of their names, each with the hash that it gave them.
    #[test]
    fn overrides_have_recorded_hashes() {
        for name in [
            "crp-over-clusterresourceoverridesnapshot",
            "crp-over-resourceoverridesnapshot",
        ] {
            let spec = &fixture(name)["spec"];
            let read: OverrideSpec = from_value(spec["overrideSpec"].clone()).unwrap();
            assert_eq!(of_override(&read).unwrap(), spec["overrideHash"], "{name}");
        }
        let binding = &fixtures::items("crp-over-bindings")[0]["spec"];
        let work = &fixtures::items("crp-over-works")[0]["metadata"]["annotations"];
        for (list, annotation) in [
            (
                "clusterResourceOverrideSnapshots",
                names::CLUSTER_OVERRIDES_HASH,
            ),
            ("resourceOverrideSnapshots", names::OVERRIDES_HASH),
        ] {
            let listed: Vec<Value> = from_value(binding[list].clone()).unwrap();
            assert_eq!(of_names(Some(&listed[..])).unwrap(), work[annotation]);
        }
    }

    /// Go writes null for a value that is not there.
    #[test]
    fn absent_value_is_null() {
        let patch = json!({ "op": "remove", "path": "/data" });
        let patch: JsonPatchOverride = from_value(patch).unwrap();
        let text = String::from_utf8(encode(&patch).unwrap()).unwrap();
        assert_eq!(text, r#"{"op":"remove","path":"/data","value":null}"#);
    }

    #[test]
    fn absent_overrides_hash_null() {
        let work = fixture("crp-1-work");
        let recorded = &work["metadata"]["annotations"][names::OVERRIDES_HASH];
        assert_eq!(of_names::<String>(None).unwrap(), *recorded);
    }

    #[test]
    fn texts_are_safe_in_html() {
        let text = encode(&json!("<b>&\u{2028}\u{2029}ü\u{7f}\n")).unwrap();
        let expected = r#""\u003cb\u003e\u0026\u2028\u2029ü"#;
        assert_eq!(
            String::from_utf8(text).unwrap(),
            format!("{expected}\u{7f}\\n\"")
        );
    }

    #[test]
    fn numbers_have_their_go_form() {
        for (number, expected) in [
            (json!(1), "1"),
            (json!(0.5), "0.5"),
            (json!(3.0), "3"),
            (json!(1e21), "1e+21"),
            (json!(1.5e-7), "1.5e-7"),
            (json!(-1e20), "-100000000000000000000"),
            (Value::from(u64::MAX), "18446744073709551615"),
        ] {
            let text = encode(&number).unwrap();
            assert_eq!(String::from_utf8(text).unwrap(), expected);
        }
    }
}

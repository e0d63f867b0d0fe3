//! The JSON of an object that is kept, compressed: of a manifest about half is left, for a few microseconds.

use serde::de::DeserializeOwned;
use serde_json::Value;

/// A value as compressed text (an LZ4 block, with its size before it). The default is none.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Packed(Box<[u8]>);

impl From<&Value> for Packed {
    fn from(value: &Value) -> Self {
        Self(lz4_flex::compress_prepend_size(value.to_string().as_bytes()).into())
    }
}

impl Packed {
    /// Returns the value.
    ///
    /// # Errors
    /// It is none of `T`.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        // Made here: it decompresses.
        let text = lz4_flex::decompress_size_prepended(&self.0).unwrap_or_default();
        serde_json::from_slice(&text)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A manifest comes back as it was, and takes less than half of its text.
    #[test]
    fn manifest_is_halved() {
        let ports = (8000..8020).map(
            |number| json!({ "name": format!("port-{number}"), "port": number, "protocol": "TCP" }),
        );
        let ports: Vec<_> = ports.collect();
        let manifest = json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": "web" },
            "spec": { "ports": ports, "selector": { "app": "web" } } });
        let packed = Packed::from(&manifest);
        assert_eq!(packed.read::<Value>().unwrap(), manifest);
        assert!(2 * packed.0.len() < manifest.to_string().len());
    }

    /// A text that cannot be compressed comes back, too.
    #[test]
    fn odd_values_come_back() {
        for value in [json!(null), json!({}), json!("\u{2028}"), json!(1.5)] {
            assert_eq!(Packed::from(&value).read::<Value>().unwrap(), value);
        }
    }
}

//! Texts arrive byte for byte.

use std::fmt::Write;

use http::Method;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{CONFIG_MAPS, config_map, server};

const APPLY: &str = "application/apply-patch+yaml";

/// Characters that YAML reads otherwise than JSON, or that JSON must escape, beside the blanks that YAML folds.
const ODD: [char; 14] = [
    '\0', '\t', '\n', '\r', ' ', '"', '\\', '\u{7f}', '\u{85}', '\u{9f}', '\u{2028}', '\u{2029}',
    '\u{fffe}', '\u{ffff}',
];

fn text() -> impl Strategy<Value = String> {
    let letter = prop_oneof![any::<char>(), prop::sample::select(&ODD[..])];
    prop::collection::vec(letter, 0..12).prop_map(String::from_iter)
}

/// Returns JSON in which everything but ASCII is escaped, so that it is the same as YAML; a letter beyond U+FFFF is
/// as it is, for YAML does not know the escape of JSON.
fn escaped(value: &Value) -> String {
    let mut escaped = String::new();
    for letter in value.to_string().chars() {
        match u32::from(letter) {
            0x7f..=0xffff => write!(escaped, "\\u{:04x}", u32::from(letter)).unwrap(),
            _ => escaped.push(letter),
        }
    }
    escaped
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
    /// By create, merge patch and apply, in a field of data and in one of metadata.
    #[test]
    fn every_text_arrives_equal(text in text()) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let server = server();
            let texts = json!({ "data": { "a": text }, "metadata": { "annotations": { "a": text } } });
            let with_texts = |name: &str| {
                let mut object = config_map(name);
                json_patch::merge(&mut object, &texts);
                object
            };
            let created = server.post(CONFIG_MAPS, &with_texts("a")).await.ok();
            server.post(CONFIG_MAPS, &config_map("b")).await.ok();
            let patched = server.merge(&format!("{CONFIG_MAPS}/b"), &texts).await.ok();
            let path = format!("{CONFIG_MAPS}/c?fieldManager=me");
            let body = escaped(&with_texts("c"));
            let applied = server.request(Method::PATCH, &path, APPLY, body).await.ok();
            for stored in [created, patched, applied] {
                prop_assert_eq!(&stored["data"], &texts["data"]);
                prop_assert_eq!(&stored["metadata"]["annotations"], &texts["metadata"]["annotations"]);
            }
            Ok(())
        })?;
    }
}

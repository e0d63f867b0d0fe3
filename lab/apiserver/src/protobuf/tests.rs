use proptest::prelude::{ProptestConfig, any, prop, proptest};
use serde_json::json;

use super::{MESSAGES, read};
use crate::kinds::{DEFINITIONS, Registry};

/// Encodes a field of fewer than 128 bytes.
fn bytes(number: u8, content: &[u8]) -> Vec<u8> {
    let length = u8::try_from(content.len()).unwrap();
    assert!(length < 128 && number < 16);
    [&[number << 3 | 2, length], content].concat()
}

fn integer(number: u8, value: u8) -> Vec<u8> {
    vec![number << 3, value]
}

fn object(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let types = [bytes(1, api_version.as_bytes()), bytes(2, kind.as_bytes())].concat();
    [b"k8s\0".to_vec(), bytes(1, &types), bytes(2, raw)].concat()
}

/// Every message that a field names is there.
#[test]
fn every_named_message_exists() {
    let plain = [
        "text",
        "int",
        "bool",
        "bytes",
        "Time",
        "MicroTime",
        "IntOrString",
        "Quantity",
        "Json",
    ];
    for (name, message) in &*MESSAGES {
        for field in message.values() {
            assert!(
                plain.contains(&field.type_) || MESSAGES.contains_key(field.type_),
                "{name}.{}: {}",
                field.name,
                field.type_
            );
        }
    }
    assert!(MESSAGES.len() > 150);
}

/// Go clients send every built-in kind so, but for definitions.
#[test]
fn every_builtin_kind_is_read() {
    for kind in Registry::default().iter() {
        if kind.group == DEFINITIONS.0 {
            continue;
        }
        let version = match kind.group.as_str() {
            "" => kind.version.clone(),
            group => format!("{group}/{}", kind.version),
        };
        let object = read(&object(&version, &kind.kind, &[])).unwrap();
        assert_eq!(object["kind"], kind.kind);
    }
}

/// Fields have their names in JSON.
#[test]
fn fields_have_json_names() {
    let parameters = [
        bytes(1, b"example.com"),
        bytes(2, b"Options"),
        bytes(3, b"o"),
    ]
    .concat();
    let class = bytes(2, &bytes(2, &parameters));
    assert_eq!(
        read(&object("networking.k8s.io/v1", "IngressClass", &class)),
        Ok(json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "IngressClass",
            "spec": {"parameters": {"apiGroup": "example.com", "kind": "Options", "name": "o"}},
        }))
    );
}

/// An object is read as Go writes it.
#[test]
fn go_encoding_is_read() {
    let port = [
        bytes(1, b"http"),
        bytes(2, b"TCP"),
        integer(3, 80),
        bytes(4, &[integer(1, 1), bytes(3, b"web")].concat()),
        integer(5, 0),
    ]
    .concat();
    let other = [
        integer(3, 81),
        bytes(4, &[integer(1, 0), integer(2, 8)].concat()),
    ]
    .concat();
    let label = [bytes(1, b"a"), bytes(2, b"b")].concat();
    let metadata = [
        bytes(1, b"web"),
        bytes(2, b""),
        integer(7, 0),
        bytes(8, b""),
        bytes(11, &label),
    ]
    .concat();
    let spec = [bytes(1, &port), bytes(1, &other), bytes(3, b"")].concat();
    let service = [bytes(1, &metadata), bytes(2, &spec)].concat();
    assert_eq!(
        read(&object("v1", "Service", &service)).unwrap(),
        json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": { "name": "web", "labels": { "a": "b" } },
            "spec": { "ports": [
                { "name": "http", "protocol": "TCP", "port": 80, "targetPort": "web" },
                { "port": 81, "targetPort": 8 },
            ] },
        })
    );
}

/// Bytes times and zeros that mean something are kept.
#[test]
fn bytes_times_zeros_are_kept() {
    let data = [bytes(1, b"a"), bytes(2, b"hello")].concat();
    let secret = [bytes(2, &data), integer(5, 0)].concat();
    assert_eq!(
        read(&object("v1", "Secret", &secret)).unwrap(),
        json!({ "apiVersion": "v1", "kind": "Secret", "data": { "a": "aGVsbG8=" }, "immutable": false })
    );
    let time = [integer(1, 5), vec![0x10, 0xe8, 0x07]].concat();
    let lease = bytes(
        2,
        &[bytes(1, b"me"), integer(2, 15), bytes(4, &time)].concat(),
    );
    assert_eq!(
        read(&object("coordination.k8s.io/v1", "Lease", &lease)).unwrap()["spec"],
        json!({ "holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": "1970-01-01T00:00:05.000001Z" })
    );
    let options = [integer(1, 0), bytes(4, b"Orphan")].concat();
    assert_eq!(
        read(&object("v1", "DeleteOptions", &options)).unwrap()["propagationPolicy"],
        "Orphan"
    );
}

/// A message that is no object is refused.
#[test]
fn non_object_is_refused() {
    for bad in [
        b"".to_vec(),
        b"{}".to_vec(),
        object("v1", "Nonsense", &[]),
        object("other.example.com/v1", "Service", &[]),
        object("v1", "Service", &[0x0a]),
        object("v1", "Service", &[0x0a, 0x7f, 0]),
        object("v1", "Service", &integer(1, 1)),
        object("v1", "Service", &bytes(1, &bytes(1, &[0xff]))),
        [b"k8s\0".to_vec(), vec![0xff; 20]].concat(),
    ] {
        assert!(read(&bad).is_err(), "{bad:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_bytes_make_it_panic(raw in prop::collection::vec(any::<u8>(), 0..100)) {
        drop(read(&object("v1", "Service", &raw)));
        drop(read(&object("apps/v1", "Deployment", &raw)));
        drop(read(&[b"k8s\0".to_vec(), raw].concat()));
    }
}

/// An embedded message of Go is part of the one around it.
#[test]
fn embedded_messages_are_inlined() {
    let paths = bytes(1, &bytes(1, &bytes(1, b"/")));
    let rule = [bytes(1, b"a.com"), bytes(2, &paths)].concat();
    let ingress = bytes(2, &bytes(3, &rule));
    let ingress = read(&object("networking.k8s.io/v1", "Ingress", &ingress)).unwrap();
    assert_eq!(
        ingress["spec"]["rules"],
        json!([{ "host": "a.com", "http": { "paths": [{ "path": "/" }] } }])
    );
}

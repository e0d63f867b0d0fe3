use std::hash::Hasher;

use fnv::FnvHasher;
use objects::Key;
use objects::qualified_name::is_subdomain;

use crate::ingress::ControllerName;

/// The longest name of a Service, and the longest value of a label.
const LONGEST: usize = 63;
const HASH_DIGITS: usize = 10;

/// Returns the name of the gateway's Ingress for `ingress`: its own, unless that is none of an object.
pub(super) fn ingress_name(ingress: &Key) -> String {
    if is_subdomain(&ingress.name) {
        ingress.name.clone()
    } else {
        object_name(&ingress.name, "", &["ingress"])
    }
}

/// Returns the name of the gateway Service for `service` of `ingress`.
pub(in crate::ingress) fn service_name(ingress: &Key, service: &str) -> String {
    object_name(&ingress.name, service, &[])
}

/// Returns the name of the copy of `secret` for `ingress`.
pub(super) fn secret_name(ingress: &Key, secret: &str) -> String {
    object_name(&ingress.name, secret, &[])
}

/// Returns the name of an object created for `service` of the ingress `ingress`:
/// `<ingress>-<service>-<hash>`, a DNS-1035 label. The hash covers `ingress`, `service` and `rest`.
pub(in crate::ingress) fn object_name(ingress: &str, service: &str, rest: &[&str]) -> String {
    let readable = format!("{ingress}-{service}");
    let mut name: String = readable
        .chars()
        .map(|c| {
            if c.is_ascii_lowercase() || c.is_ascii_digit() {
                c
            } else {
                '-'
            }
        })
        .collect();
    // The name of an Ingress may begin with a digit, that of a Service may not (DNS-1035).
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) {
        name.insert_str(0, "i-");
    }
    let parts = [ingress, service].into_iter().chain(rest.iter().copied());
    hashed(&name, parts)
}

/// Returns the value of the label on our own objects: the controller's name with its slash replaced, and
/// shortened with a hash if it is too long for a label.
pub(in crate::ingress) fn managed_by(controller: &ControllerName) -> String {
    limited(controller.as_str().replace('/', "_"), controller.as_str())
}

/// Returns `name`, which must be ASCII, if it is short enough for a label, or else one that is shortened
/// with the hash of `whole`.
pub(in crate::ingress) fn limited(name: String, whole: &str) -> String {
    if name.len() <= LONGEST {
        name
    } else {
        hashed(&name, [whole])
    }
}

/// Cuts `name`, which must be ASCII, and appends `-<hash of parts>`.
pub(in crate::ingress) fn hashed<'a>(
    name: &str,
    parts: impl IntoIterator<Item = &'a str>,
) -> String {
    let cut: String = name.chars().take(LONGEST - 1 - HASH_DIGITS).collect();
    let cut = cut.trim_end_matches(['-', '.', '_']);
    format!("{cut}-{:0HASH_DIGITS$x}", hash(parts))
}

/// Returns the FNV-1a hash of the parts, each followed by a zero byte, folded to 40 bits as its authors
/// advise (Fowler, Noll, Vo, "Changing the FNV hash size: xor-folding"). It must never change: names made
/// of it are in clusters.
pub(in crate::ingress) fn hash<'a>(parts: impl IntoIterator<Item = &'a str>) -> u64 {
    let mut hasher = FnvHasher::default();
    for part in parts {
        hasher.write(part.as_bytes());
        hasher.write_u8(0);
    }
    let hash = hasher.finish();
    (hash >> 40) ^ (hash & 0xff_ffff_ffff)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn is_dns_1035_label(name: &str) -> bool {
        let mut characters = name.chars();
        (1..=63).contains(&name.len())
            && name.starts_with(|c: char| c.is_ascii_lowercase())
            && !name.ends_with('-')
            && characters.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
    }

    /// A name is made of both names and a hash that never changes.
    #[test]
    fn name_has_stable_hash() {
        assert_eq!(object_name("shop", "web", &[]), "shop-web-df0789731c");
        assert_eq!(object_name("shop.eu", "web", &[]), "shop-eu-web-9b2e300323");
        assert_eq!(object_name("1st", "web", &[]), "i-1st-web-2472373c64");
    }

    /// An Ingress has the name of its ingress, and one of its own where that is none of an object.
    #[test]
    fn ingress_keeps_its_name() {
        assert_eq!(ingress_name(&Key::new("ns", "shop.eu")), "shop.eu");
        let route = ingress_name(&Key::new("ns", "httproute:shop"));
        assert!(
            is_subdomain(&route) && route.starts_with("httproute-shop-"),
            "{route}"
        );
    }

    /// Names that read the same differ by their hash.
    #[test]
    fn equal_readings_differ_by_hash() {
        let same = [("a.b", "c"), ("a-b", "c"), ("a", "b-c"), ("a.b-c", "")];
        let names = same.map(|(ingress, service)| object_name(ingress, service, &[]));
        for (i, name) in names.iter().enumerate() {
            assert!(!names[i + 1..].contains(name), "{names:?}");
        }
        assert_ne!(object_name("a", "b", &["c"]), object_name("a", "b", &[]));
        assert_ne!(
            object_name("a", "b", &["c", "d"]),
            object_name("a", "b", &["cd"])
        );
    }

    /// Our label has the controller's name and the length of a label.
    #[test]
    fn label_fits_controller_name() {
        let ours = "karmada-rs.io/ingress-controller".parse().unwrap();
        assert_eq!(managed_by(&ours), "karmada-rs.io_ingress-controller");
        let long = format!("{}.example/{}", "a".repeat(50), "b".repeat(63));
        let other = format!("{}.example/{}c", "a".repeat(50), "b".repeat(62));
        let [long, other] = [long, other].map(|name| managed_by(&name.parse().unwrap()));
        assert_eq!(long.len(), 63);
        assert_ne!(long, other);
    }

    proptest! {
        /// Every name is a DNS-1035 label.
        #[test]
        fn every_name_is_dns_label(
            ingress in "[a-z0-9]([a-z0-9.-]{0,250}[a-z0-9])?",
            service in "[a-z]([a-z0-9-]{0,60}[a-z0-9])?",
        ) {
            let name = object_name(&ingress, &service, &[]);
            prop_assert!(is_dns_1035_label(&name), "{name}");
        }
    }
}

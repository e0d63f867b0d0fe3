use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

/// The interval in which ExternalDNS brings its records up to date (its flag `--interval`).
pub const INTERVAL: Duration = Duration::from_mins(1);

/// The result of looking a name up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lookup {
    /// The addresses that are published: those of the records, or those to which their name resolves.
    pub published: BTreeSet<IpAddr>,
    /// The addresses of the host.
    pub found: BTreeSet<IpAddr>,
    /// Set if the record leads to another name. Its addresses may change between two questions.
    pub is_alias: bool,
}

/// Returns `true` if every resolver must answer with a record that was published so long ago.
pub fn is_due(published_for: Duration, ttl: Duration) -> bool {
    // A resolver may have asked just before the change.
    published_for >= INTERVAL + ttl
}

/// Returns `true` if the name resolves to the published addresses. A resolver may leave out some of many addresses.
pub fn is_served(lookup: &Lookup) -> bool {
    let Lookup {
        published,
        found,
        is_alias,
    } = lookup;
    let found: BTreeSet<IpAddr> = found.iter().copied().map(untranslated).collect();
    if *is_alias {
        !published.is_disjoint(&found)
    } else {
        !found.is_empty() && found.is_subset(published)
    }
}

/// Returns the IPv4 address for which a resolver of a network without IPv4 has made an IPv6 address (RFC 6052, section 2.1).
fn untranslated(ip: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = ip else {
        return ip;
    };
    match v6.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, _, _] => {
            let [.., a, b, c, d] = v6.octets();
            [a, b, c, d].into()
        }
        _ => ip,
    }
}

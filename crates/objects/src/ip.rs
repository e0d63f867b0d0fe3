//! Which IP addresses Services and their endpoints have.

use std::net::IpAddr;

/// Returns the canonical form of an address that a Service or an endpoint may have. An `EndpointSlice` takes no other, while
/// the status of an object takes any (Kubernetes, `ValidateNonSpecialIP`).
///
/// # Errors
/// Fails for an address that means no host, or another one to everybody. The error is the reason.
pub fn non_special(ip: IpAddr) -> Result<IpAddr, &'static str> {
    let ip = ip.to_canonical();
    let is_link_local = match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    if ip.is_unspecified() {
        Err("is the unspecified address")
    } else if ip.is_loopback() {
        Err("is a loopback address")
    } else if is_link_local {
        Err("is a link-local address")
    } else if ip.is_multicast() {
        Err("is a multicast address")
    } else {
        Ok(ip)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Special addresses are refused in both families, also one of IPv4 that is written as IPv6.
    #[test]
    fn special_addresses_are_refused() {
        for (address, expected) in [
            ("10.0.0.1", Ok("10.0.0.1")),
            ("2001:DB8::1", Ok("2001:db8::1")),
            ("::ffff:192.0.2.1", Ok("192.0.2.1")),
            ("0.0.0.0", Err("is the unspecified address")),
            ("::", Err("is the unspecified address")),
            ("127.0.0.53", Err("is a loopback address")),
            ("::1", Err("is a loopback address")),
            ("::ffff:127.0.0.1", Err("is a loopback address")),
            ("169.254.1.1", Err("is a link-local address")),
            ("fe80::1", Err("is a link-local address")),
            ("224.0.0.1", Err("is a multicast address")),
            ("ff02::1", Err("is a multicast address")),
        ] {
            let found = non_special(address.parse().unwrap()).map(|ip| ip.to_string());
            assert_eq!(found, expected.map(str::to_owned), "{address}");
        }
    }
}

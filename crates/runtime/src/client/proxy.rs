//! The proxy that the environment asks for, as client-go and kubectl read it (Go's
//! `golang.org/x/net/http/httpproxy`). No proxy is supported, but going past one that a user asked for
//! would be as wrong as going through one for an API that `NO_PROXY` exempts.

use std::net::IpAddr;

use http::Uri;

/// Returns the variable that asks for a proxy on the way to `url`; `variable` reads the environment.
pub(super) fn asked_for(
    url: &Uri,
    variable: impl Fn(&str) -> Option<String>,
) -> Option<&'static str> {
    let secure = url.scheme_str() != Some("http");
    let names = if secure {
        ["HTTPS_PROXY", "https_proxy"]
    } else {
        ["HTTP_PROXY", "http_proxy"]
    };
    let set = |name: &&str| variable(name).is_some_and(|value| !value.is_empty());
    let name = names.into_iter().find(set)?;
    let exempt = ["NO_PROXY", "no_proxy"]
        .into_iter()
        .find_map(|name| variable(name).filter(|value| !value.is_empty()))
        .unwrap_or_default();
    let host = url.host().unwrap_or_default().trim_matches(['[', ']']);
    let port = url.port_u16().unwrap_or(if secure { 443 } else { 80 });
    (!is_direct(&host.to_lowercase(), port, &exempt.to_lowercase())).then_some(name)
}

fn is_direct(host: &str, port: u16, exempt: &str) -> bool {
    let ip: Option<IpAddr> = host.parse().ok();
    if host == "localhost" || ip.is_some_and(|ip| ip.is_loopback()) {
        return true;
    }
    exempt.split(',').map(str::trim).any(|entry| {
        if entry == "*" {
            return true;
        }
        if let Some((network, bits)) = entry.split_once('/') {
            let network = network.parse().ok().zip(bits.parse().ok());
            return ip
                .zip(network)
                .is_some_and(|(ip, (network, bits))| contains(network, bits, ip));
        }
        // An IPv6 address has colons without a port, too.
        let (name, of_port) = match entry.rsplit_once(':') {
            Some((name, of_port)) if entry.parse::<IpAddr>().is_err() => {
                (name.trim_matches(['[', ']']), of_port.parse().ok())
            }
            _ => (entry, None),
        };
        if name.is_empty() || of_port.is_some_and(|of_port: u16| of_port != port) {
            return false;
        }
        if let Ok(address) = name.parse::<IpAddr>() {
            return ip == Some(address);
        }
        // `.example.com` has only subdomains, `example.com` itself too.
        let domain = name.strip_prefix('*').unwrap_or(name);
        match domain.strip_prefix('.') {
            Some(_) => host.ends_with(domain),
            None => host == domain || host.ends_with(&format!(".{domain}")),
        }
    })
}

/// Returns `true` if the network `network/bits` contains `ip`.
fn contains(network: IpAddr, bits: u32, ip: IpAddr) -> bool {
    match (network, ip) {
        (IpAddr::V4(network), IpAddr::V4(ip)) => {
            let difference = u32::from(network) ^ u32::from(ip);
            bits <= 32 && difference.checked_shr(32 - bits).unwrap_or(0) == 0
        }
        (IpAddr::V6(network), IpAddr::V6(ip)) => {
            let difference = u128::from(network) ^ u128::from(ip);
            bits <= 128 && difference.checked_shr(128 - bits).unwrap_or(0) == 0
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asks(url: &str, environment: &[(&str, &str)]) -> Option<&'static str> {
        asked_for(&url.parse().unwrap(), |name| {
            let found = environment.iter().find(|(set, _)| *set == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    const PROXY: (&str, &str) = ("HTTPS_PROXY", "http://proxy:3128");

    /// The variable of the scheme asks for a proxy.
    #[test]
    fn variable_follows_the_scheme() {
        let api = "https://hub.example.com:5443";
        assert_eq!(asks(api, &[]), None);
        assert_eq!(asks(api, &[PROXY]), Some("HTTPS_PROXY"));
        assert_eq!(asks(api, &[("https_proxy", "p")]), Some("https_proxy"));
        assert_eq!(asks(api, &[("HTTPS_PROXY", "")]), None);
        assert_eq!(asks(api, &[("HTTP_PROXY", "p")]), None);
        let plain = "http://hub.example.com";
        assert_eq!(asks(plain, &[("HTTP_PROXY", "p")]), Some("HTTP_PROXY"));
        assert_eq!(asks(plain, &[PROXY]), None);
    }

    /// No proxy exempts as in Go.
    #[test]
    fn no_proxy_exempts() {
        let cases = [
            ("https://localhost:5443", "", true),
            ("https://127.0.0.1:5443", "", true),
            ("https://[::1]:5443", "", true),
            ("https://k.example.com", "*", true),
            ("https://k.example.com", "other.org, example.com", true),
            ("https://K.Example.com", "k.EXAMPLE.com", true),
            ("https://example.com", ".example.com", false),
            ("https://k.example.com", ".example.com", true),
            ("https://k.example.com", "*.example.com", true),
            ("https://notexample.com", "example.com", false),
            ("https://k.example.com:5443", "k.example.com:5443", true),
            ("https://k.example.com:5443", "k.example.com:443", false),
            ("https://k.example.com", "k.example.com:443", true),
            ("https://10.0.0.7:5443", "10.0.0.7", true),
            ("https://10.0.0.7:5443", "10.0.0.0/8", true),
            ("https://11.0.0.7:5443", "10.0.0.0/8", false),
            ("https://10.0.0.7:5443", "0.0.0.0/0", true),
            ("https://10.0.0.7:5443", "10.0.0.0/99", false),
            ("https://[fd00::7]:5443", "fd00::/8", true),
            ("https://[fd00::7]:5443", "fd00::7", true),
            ("https://[fd00::7]:5443", "[fd00::7]:5443", true),
            ("https://k.example.com", "10.0.0.0/8,,", false),
        ];
        for (url, exempt, direct) in cases {
            for name in ["NO_PROXY", "no_proxy"] {
                let found = asks(url, &[PROXY, (name, exempt)]);
                assert_eq!(found.is_none(), direct, "{url} with {exempt}");
            }
        }
    }
}

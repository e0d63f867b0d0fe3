//! The proxy on the way to a server: that of a kubeconfig, of a Cluster, or of the environment, which is read as client-go
//! and kubectl read it (Go's `golang.org/x/net/http/httpproxy`).

use std::fmt;
use std::net::IpAddr;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::{HeaderMap, HeaderName, HeaderValue, Uri, header};
use percent_encoding::percent_decode_str;

use super::error::ClientError;

/// A proxy that leads to servers by HTTP `CONNECT` (RFC 9110, section 9.3.6).
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    url: Uri,
    /// The headers of each request to it, its credentials among them.
    headers: HeaderMap,
    /// Its source, for messages.
    origin: String,
}

impl Proxy {
    /// Reads a proxy such as `http://proxy.example:3128`, which `origin` names. Without a scheme it is `http`, as in Go.
    ///
    /// # Errors
    /// Fails if it is another proxy than one by HTTP.
    pub fn parse(text: &str, origin: impl Into<String>) -> Result<Self, ClientError> {
        let origin = origin.into();
        let Some((url, credentials)) = read(text) else {
            return Err(ClientError::Proxy(origin));
        };
        let mut headers = HeaderMap::new();
        headers.extend(credentials.map(|value| (header::PROXY_AUTHORIZATION, value)));
        Ok(Self {
            url,
            headers,
            origin,
        })
    }

    /// Adds headers to each request to the proxy.
    ///
    /// # Errors
    /// Fails with the name of the first that is no header.
    pub fn with_headers<'a>(
        mut self,
        headers: impl IntoIterator<Item = (&'a String, &'a String)>,
    ) -> Result<Self, ClientError> {
        for (name, value) in headers {
            let parsed = HeaderName::try_from(name).ok();
            let parsed = parsed.zip(HeaderValue::try_from(value).ok());
            let (header, mut value) =
                parsed.ok_or_else(|| ClientError::ProxyHeader(name.clone()))?;
            value.set_sensitive(true);
            self.headers.insert(header, value);
        }
        Ok(self)
    }

    /// Returns the proxy that the environment asks for on the way to `url`, if it does; `variable` reads the environment.
    ///
    /// # Errors
    /// Fails if that is another proxy than one by HTTP.
    pub(crate) fn asked_for(
        url: &Uri,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, ClientError> {
        let found = asked_for(url, variable);
        let proxy = found.map(|(variable, value)| Self::parse(&value, variable));
        proxy.transpose()
    }

    pub(super) fn url(&self) -> &Uri {
        &self.url
    }

    pub(super) fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    pub(super) fn origin(&self) -> &str {
        &self.origin
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut proxy = f.debug_struct("Proxy");
        proxy.field("url", &self.url).finish_non_exhaustive()
    }
}

/// Returns the URL without credentials, and these.
fn read(text: &str) -> Option<(Uri, Option<HeaderValue>)> {
    let rest = match text.split_once("://") {
        Some(("http", rest)) => rest,
        Some(_) => return None,
        None => text,
    };
    let authority = rest.split(['/', '?', '#']).next()?;
    let (credentials, address) = match authority.rsplit_once('@') {
        Some((credentials, address)) => (Some(basic(credentials)?), address),
        None => (None, authority),
    };
    let url: Uri = format!("http://{address}/").parse().ok()?;
    let address = url.authority()?;
    // Behind a colon is a port, or it is no such URL: a password may stand there.
    let is_whole = address.port().is_some() || address.as_str() == address.host();
    (is_whole && !address.host().is_empty()).then_some((url, credentials))
}

/// Returns the header with the credentials `USER[:PASSWORD]` of a URL (RFC 7617).
fn basic(credentials: &str) -> Option<HeaderValue> {
    let (user, password) = credentials.split_once(':').unwrap_or((credentials, ""));
    let [user, password] = [user, password].map(|text| percent_decode_str(text).collect());
    let pair: Vec<u8> = [user, vec![b':'], password].concat();
    let mut value =
        HeaderValue::try_from(format!("Basic {}", BASE64_STANDARD.encode(pair))).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Returns the variable that asks for a proxy on the way to `url`, with its value; `variable` reads the environment.
fn asked_for(
    url: &Uri,
    variable: impl Fn(&str) -> Option<String>,
) -> Option<(&'static str, String)> {
    let secure = url.scheme_str() != Some("http");
    let names = if secure {
        ["HTTPS_PROXY", "https_proxy"]
    } else {
        ["HTTP_PROXY", "http_proxy"]
    };
    let set = names.map(|name| (name, variable(name).unwrap_or_default()));
    let mut set = set.into_iter().filter(|(_, value)| !value.is_empty());
    let (name, value) = set.next()?;
    let exempt = ["NO_PROXY", "no_proxy"].map(|name| variable(name).unwrap_or_default());
    let exempt = exempt.into_iter().find(|exempt| !exempt.is_empty());
    let exempt = exempt.unwrap_or_default();
    let host = url.host().unwrap_or_default().trim_matches(['[', ']']);
    let port = url.port_u16().unwrap_or(if secure { 443 } else { 80 });
    let is_direct = is_direct(&host.to_lowercase(), port, &exempt.to_lowercase());
    (!is_direct).then_some((name, value))
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
        let found = asked_for(&url.parse().unwrap(), |name| {
            let found = environment.iter().find(|(set, _)| *set == name);
            found.map(|(_, value)| (*value).to_owned())
        });
        found.map(|(name, _)| name)
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

    /// A proxy is one by HTTP, with or without credentials, which are never shown.
    #[test]
    fn proxy_is_by_http() {
        for (text, url, credentials) in [
            (
                "http://proxy.example:3128",
                "http://proxy.example:3128/",
                None,
            ),
            ("proxy.example:3128/", "http://proxy.example:3128/", None),
            ("http://[fd00::7]", "http://[fd00::7]/", None),
            (
                "http://user:p%40ss@192.0.2.1:80",
                "http://192.0.2.1:80/",
                Some("Basic dXNlcjpwQHNz"),
            ),
        ] {
            let proxy = Proxy::parse(text, "HTTPS_PROXY").unwrap();
            assert_eq!(*proxy.url(), url);
            let found = proxy.headers().get(header::PROXY_AUTHORIZATION);
            assert_eq!(found.map(|value| value.to_str().unwrap()), credentials);
            assert!(!format!("{proxy:?}").contains("user"), "{proxy:?}");
        }
        for text in [
            "https://p",
            "socks5://p:1080",
            "http://",
            "http://:1",
            "p p",
            "http://user:secret@",
            "http://user:secret",
        ] {
            let error = Proxy::parse(text, "HTTPS_PROXY").unwrap_err().to_string();
            let expected =
                "cannot use the proxy of HTTPS_PROXY: write http://[USER:PASSWORD@]HOST[:PORT]";
            assert_eq!(error, expected);
        }
    }

    /// A header that cannot be sent is named.
    #[test]
    fn bad_header_is_named() {
        let [sent, refused] = ["shop", "shop\r\n"].map(|value| {
            let proxy = Proxy::parse("proxy", "the Cluster's proxyURL").unwrap();
            proxy.with_headers([(&"X-Team".to_owned(), &value.to_owned())])
        });
        assert_eq!(sent.unwrap().headers()["x-team"], "shop");
        assert!(matches!(refused, Err(ClientError::ProxyHeader(name)) if name == "X-Team"));
    }
}

//! Requests that another site's page makes in a browser on this machine. The page and the APIs refuse
//! them: they listen on loopback without authentication, and any page can send requests there.

use http::header::{HOST, HeaderName, ORIGIN};
use http::{HeaderMap, Uri};

/// Returns `true` unless the request is for a host name other than loopback's, as DNS rebinding makes,
/// or from another site's page.
pub(crate) fn is_own(headers: &HeaderMap) -> bool {
    let Some(host) = text(headers, HOST) else {
        return false;
    };
    let name = format!("http://{host}").parse::<Uri>().ok();
    let name = name.as_ref().and_then(Uri::host).unwrap_or_default();
    let is_loopback = matches!(name, "localhost" | "127.0.0.1" | "[::1]");
    let origin = text(headers, ORIGIN);
    is_loopback && origin.is_none_or(|origin| origin == format!("http://{host}"))
}

/// Returns a header, empty if it is no text.
fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    let value = headers.get(name)?;
    Some(value.to_str().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    /// Only requests of our own page by a loopback address are served.
    #[test]
    fn only_own_page_is_served() {
        let cases: [(&str, Option<&str>, bool); 8] = [
            ("127.0.0.1:8000", None, true),
            ("localhost:8000", None, true),
            ("[::1]:8000", None, true),
            ("127.0.0.1:8000", Some("http://127.0.0.1:8000"), true),
            ("127.0.0.1:8000", Some("http://evil.example"), false),
            ("127.0.0.1:8000", Some("http://127.0.0.1:9000"), false),
            ("evil.example:8000", None, false),
            ("127.0.0.1:8000", Some("null"), false),
        ];
        for (host, origin, expected) in cases {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, HeaderValue::from_static(host));
            if let Some(origin) = origin {
                headers.insert(ORIGIN, HeaderValue::from_static(origin));
            }
            assert_eq!(is_own(&headers), expected, "{host} {origin:?}");
        }
        assert!(!is_own(&HeaderMap::new()));
    }
}

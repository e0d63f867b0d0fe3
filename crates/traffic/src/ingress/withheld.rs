//! The annotations of an ingress that never reach a gateway: those that are code in its proxy.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

/// The patterns of annotations that are withheld from the gateway. Whoever may create an ingress in one namespace
/// would otherwise run code in the proxy of all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Withheld(Vec<String>);

/// The annotations by which the proxies in use take configuration as it is: the snippets of nginx, NGINX and HAProxy,
/// the sections of haproxy-ingress, the Lua of older nginx controllers, and the resources of Ambassador.
const CODE: [&str; 5] = [
    "*snippet*",
    "nginx.ingress.kubernetes.io/lua-*",
    "haproxy-ingress.github.io/config-*",
    "ingress.kubernetes.io/config-*",
    "getambassador.io/config",
];

impl Default for Withheld {
    fn default() -> Self {
        Self(CODE.map(str::to_owned).into())
    }
}

impl FromStr for Withheld {
    type Err = Infallible;

    /// Reads patterns that commas separate.
    fn from_str(text: &str) -> Result<Self, Infallible> {
        let patterns = text.split(',').map(str::trim);
        let patterns = patterns.filter(|pattern| !pattern.is_empty());
        Ok(Self(patterns.map(str::to_owned).collect()))
    }
}

impl fmt::Display for Withheld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(","))
    }
}

impl Withheld {
    /// Returns `true` if the annotation `key` is withheld.
    pub fn covers(&self, key: &str) -> bool {
        let key = key.to_ascii_lowercase();
        let mut patterns = self.0.iter();
        patterns.any(|pattern| matches(&pattern.to_ascii_lowercase(), &key))
    }
}

/// Returns `true` if the text is of the pattern, in which `*` stands for any text.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(mut text) = text.strip_prefix(first) else {
        return false;
    };
    let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
    for part in middle.split('*') {
        let Some(place) = text.find(part) else {
            return false;
        };
        text = &text[place + part.len()..];
    }
    text.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Code of every proxy is withheld, whatever its prefix and case, and settings are passed on.
    #[test]
    fn code_is_withheld() {
        let withheld = Withheld::default();
        for code in [
            "nginx.ingress.kubernetes.io/configuration-snippet",
            "nginx.ingress.kubernetes.io/server-snippet",
            "nginx.ingress.kubernetes.io/auth-snippet",
            "nginx.ingress.kubernetes.io/stream-snippet",
            "nginx.ingress.kubernetes.io/modsecurity-snippet",
            "own.example.com/configuration-snippet",
            "nginx.ingress.kubernetes.io/Server-Snippet",
            "nginx.org/location-snippets",
            "nginx.org/server-snippets",
            "haproxy.org/backend-config-snippet",
            "haproxy-ingress.github.io/config-backend",
            "ingress.kubernetes.io/config-backend",
            "nginx.ingress.kubernetes.io/lua-resty-waf-extra-rules",
            "getambassador.io/config",
        ] {
            assert!(withheld.covers(code), "{code}");
        }
        for setting in [
            "nginx.ingress.kubernetes.io/rewrite-target",
            "nginx.ingress.kubernetes.io/proxy-body-size",
            "traefik.ingress.kubernetes.io/router.middlewares",
            "cert-manager.io/cluster-issuer",
            "haproxy.org/timeout-server",
            "example.com/evaluation-order",
        ] {
            assert!(!withheld.covers(setting), "{setting}");
        }
    }

    /// A star stands for any text, and nothing else has a meaning.
    #[test]
    fn star_is_any_text() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("*", "a/b", true),
            ("a*", "ab", true),
            ("a*", "ba", false),
            ("*a", "ba", true),
            ("*a", "ab", false),
            ("a*a", "a", false),
            ("a*a", "aa", true),
            ("a*b*c", "a-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("a.b", "axb", false),
            ("", "", true),
            ("", "a", false),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
        let given: Withheld = "a/*, b".parse().unwrap();
        assert!(given.covers("a/x") && given.covers("b") && !given.covers("c"));
        let none: Withheld = "".parse().unwrap();
        assert!(!none.covers("nginx.ingress.kubernetes.io/server-snippet"));
        let default = Withheld::default().to_string().parse();
        assert_eq!(default, Ok(Withheld::default()));
    }
}

//! The routes of an Ingress as every proxy reads them.

use std::collections::BTreeSet;

use k8s_openapi::api::networking::v1::{
    HTTPIngressPath, HTTPIngressRuleValue, IngressBackend, IngressRule, IngressSpec,
};

/// Returns the default backend and the rules. Beside rules, a default backend is written as rules: some proxies serve the
/// one, and others ignore it there. Each host gets it for the paths that its rules do not cover, and so does every other
/// host.
pub(in crate::ingress) fn all_routes(
    routes: &IngressSpec,
) -> (Option<IngressBackend>, Vec<IngressRule>) {
    let mut rules = routes.rules.clone().unwrap_or_default();
    let default = routes.default_backend.clone();
    let Some(backend) = default.as_ref().filter(|_| !rules.is_empty()) else {
        return (default, rules);
    };
    let covered = rules.iter().filter(|rule| paths(rule).any(is_catch_all));
    let mut covered: BTreeSet<String> = covered.map(host).collect();
    for rule in &mut rules {
        if covered.insert(host(rule)) {
            let http = rule.http.get_or_insert_default();
            http.paths.push(catch_all(backend.clone()));
        }
    }
    if covered.insert(String::new()) {
        rules.push(for_all_hosts(backend.clone()));
    }
    (None, rules)
}

/// Returns the rules. A default backend is one of them.
pub(in crate::ingress) fn all_rules(routes: &IngressSpec) -> Vec<IngressRule> {
    let (default, mut rules) = all_routes(routes);
    rules.extend(default.map(for_all_hosts));
    rules
}

fn for_all_hosts(backend: IngressBackend) -> IngressRule {
    IngressRule {
        host: None,
        http: Some(HTTPIngressRuleValue {
            paths: vec![catch_all(backend)],
        }),
    }
}

/// Returns the host of a rule, which is empty if it is for every host.
fn host(rule: &IngressRule) -> String {
    rule.host.clone().unwrap_or_default()
}

fn paths(rule: &IngressRule) -> impl Iterator<Item = &HTTPIngressPath> {
    rule.http.iter().flat_map(|http| &http.paths)
}

fn is_catch_all(path: &HTTPIngressPath) -> bool {
    let is_root = matches!(path.path.as_deref(), None | Some("" | "/"));
    is_root && path.path_type != "Exact"
}

fn catch_all(backend: IngressBackend) -> HTTPIngressPath {
    HTTPIngressPath {
        backend,
        path: Some("/".to_owned()),
        path_type: "Prefix".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;

    fn service(name: &str) -> Value {
        json!({ "service": { "name": name, "port": { "number": 80 } } })
    }

    fn path(path: &str, kind: &str, to: &str) -> Value {
        json!({ "path": path, "pathType": kind, "backend": service(to) })
    }

    /// A default backend gets the paths that the rules of a host leave, and all other hosts.
    #[test]
    fn default_backend_becomes_rules() {
        let rest = path("/", "Prefix", "d");
        let rule =
            |host: &str, paths: &[&Value]| json!({ "host": host, "http": { "paths": paths } });
        let (a, exact) = (path("/a", "Prefix", "a"), path("/", "Exact", "a"));
        let (all, any) = (
            path("/", "Prefix", "a"),
            path("/", "ImplementationSpecific", "a"),
        );
        let others = json!({ "http": { "paths": [rest] } });
        for (rules, expected) in [
            (json!([]), None),
            (
                json!([rule("h", &[&a])]),
                Some(json!([rule("h", &[&a, &rest]), others])),
            ),
            (
                json!([rule("h", &[&exact])]),
                Some(json!([rule("h", &[&exact, &rest]), others])),
            ),
            (
                json!([rule("h", &[&all]), rule("g", &[&any])]),
                Some(json!([rule("h", &[&all]), rule("g", &[&any]), others])),
            ),
            // Two rules of one host, and one without paths.
            (
                json!([rule("h", &[&a]), rule("h", &[&all]), { "host": "*.g" }]),
                Some(json!([
                    rule("h", &[&a]),
                    rule("h", &[&all]),
                    rule("*.g", &[&rest]),
                    others
                ])),
            ),
            (
                json!([{ "http": { "paths": [all] } }]),
                Some(json!([{ "http": { "paths": [all] } }])),
            ),
        ] {
            let routes = json!({ "defaultBackend": service("d"), "rules": rules });
            let (default, found) = all_routes(&from_value(routes).unwrap());
            let Some(expected) = expected else {
                assert!(default.is_some() && found.is_empty());
                continue;
            };
            assert_eq!((default, json!(found)), (None, expected), "{rules}");
        }
        let without = json!({ "rules": [rule("h", &[&a])] });
        let (default, found) = all_routes(&from_value(without.clone()).unwrap());
        assert_eq!((default, json!(found)), (None, without["rules"].clone()));
    }
}

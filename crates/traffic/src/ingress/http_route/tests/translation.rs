use super::*;

/// Returns the hosts with their paths, as `host type path service:port`, or the refusal.
fn translated(listeners: &Value, spec: Value) -> Result<Vec<String>, String> {
    let (facts, route) = (fleet(listeners), route(&json!([to("web")]), spec));
    let attachment = attachment(&route, &facts, &ours());
    let spec = ingress_spec(&route, &attachment.parents).map_err(|refusal| refusal.to_string())?;
    let rules = spec.rules.into_iter().flatten();
    let shown = rules.flat_map(|rule| {
        let host = rule.host.unwrap_or_else(|| "any".to_owned());
        let paths = rule.http.into_iter().flat_map(|http| http.paths);
        paths.map(move |path| {
            let service = path.backend.service.unwrap();
            let port = service.port.unwrap().number.unwrap();
            let (kind, value) = (path.path_type, path.path.unwrap());
            format!("{host} {kind} {value} {}:{port}", service.name)
        })
    });
    Ok(shown.collect())
}

fn any() -> Value {
    json!([listener("http", json!({}))])
}

/// Rules as a Gateway reads them: all matches of a rule, none is every request, and of two with one path the first counts.
#[test]
fn rules_become_paths() {
    let exact = json!({ "path": { "type": "Exact", "value": "/a" } });
    let prefix = json!({ "path": { "type": "PathPrefix", "value": "/a" } });
    let slash = json!({ "path": { "type": "PathPrefix", "value": "/a/" } });
    let untyped = json!({ "path": { "value": "/b" } });
    for (rules, expected) in [
        (json!([rule("s", &json!([]))]), vec!["any Prefix / s:80"]),
        (json!([rule("s", &json!([{}]))]), vec!["any Prefix / s:80"]),
        (
            json!([rule("s", &json!([exact, untyped]))]),
            vec!["any Exact /a s:80", "any Prefix /b s:80"],
        ),
        (
            json!([
                rule("s", &json!([prefix])),
                rule("t", &json!([exact, slash]))
            ]),
            vec!["any Prefix /a s:80", "any Exact /a t:80"],
        ),
    ] {
        let found = translated(&any(), json!({ "rules": rules })).unwrap();
        assert_eq!(found, expected, "{rules}");
    }
}

fn listeners(hosts: &[&str]) -> Value {
    let listeners = hosts.iter().map(|host| match *host {
        "" => listener("any", json!({})),
        host => listener(host, json!({ "hostname": host })),
    });
    Value::from(listeners.collect::<Vec<_>>())
}

/// A route has the hosts that it and its listeners have in common.
#[test]
fn hosts_are_common() {
    let rules = json!([rule("s", &json!([]))]);
    for (of_listeners, of_route, expected) in [
        (&[""][..], &[][..], "any"),
        (
            &[""],
            &["a.example.com", "*.example.org"],
            "*.example.org a.example.com",
        ),
        (&["a.example.com"], &[], "a.example.com"),
        (
            &["a.example.com"],
            &["a.example.com", "b.example.com"],
            "a.example.com",
        ),
        (
            &["*.example.com"],
            &["a.example.com", "x.y.example.com"],
            "a.example.com x.y.example.com",
        ),
        (
            &["*.example.com"],
            &["example.com", "a.example.com"],
            "a.example.com",
        ),
        (&["a.example.com"], &["*.example.com"], "a.example.com"),
        (&["*.a.example.com"], &["*.example.com"], "*.a.example.com"),
        (
            &["a.example.com", "b.example.com"],
            &["b.example.com"],
            "b.example.com",
        ),
        (&["a.example.com", ""], &["c.example.com"], "c.example.com"),
    ] {
        let spec = json!({ "hostnames": of_route, "rules": rules });
        let found = translated(&listeners(of_listeners), spec).unwrap();
        let hosts = found.iter().map(|shown| shown.split(' ').next().unwrap());
        let hosts: Vec<&str> = hosts.collect();
        assert_eq!(hosts.join(" "), expected, "{of_listeners:?} {of_route:?}");
    }
    let spec = json!({ "hostnames": ["b.example.com"], "rules": rules });
    let refused = translated(&listeners(&["a.example.com"]), spec).unwrap_err();
    assert!(
        refused.contains("no listener of Gateway infra/web has a host"),
        "{refused}"
    );
}

/// A rule that would change a request, or its destination, is refused with the number of its rule.
#[test]
fn features_are_refused() {
    let good = rule("s", &json!([]));
    for (change, expected) in [
        (
            json!({ "filters": [{ "type": "URLRewrite" }] }),
            "rule 2 has filters",
        ),
        (
            json!({ "backendRefs": [{ "name": "s", "port": 80, "filters": [{}] }] }),
            "rule 2 has filters",
        ),
        (
            json!({ "timeouts": { "request": "1s" } }),
            "rule 2 has timeouts",
        ),
        (json!({ "retry": { "attempts": 2 } }), "rule 2 has retry"),
        (
            json!({ "sessionPersistence": {} }),
            "rule 2 has sessionPersistence",
        ),
        (
            json!({ "matches": [{}, { "headers": [{ "name": "a", "value": "b" }] }] }),
            "rule 2 matches by headers",
        ),
        (
            json!({ "matches": [{}, { "queryParams": [{ "name": "a", "value": "b" }] }] }),
            "rule 2 matches by queryParams",
        ),
        (
            json!({ "matches": [{}, { "method": "GET" }] }),
            "rule 2 matches by method",
        ),
        (
            json!({ "matches": [{}, { "path": { "type": "RegularExpression", "value": "/a.*" } }] }),
            "rule 2 matches by a type of path",
        ),
        (json!({ "backendRefs": [] }), "rule 2 leads to no Service"),
        (
            json!({ "backendRefs": [{ "name": "s", "port": 80, "weight": 0 }] }),
            "rule 2 leads to no Service",
        ),
        (
            json!({ "backendRefs": [{ "name": "s", "port": 80 }, { "name": "t", "port": 80, "weight": 9 }] }),
            "rule 2 divides its requests",
        ),
        (
            json!({ "backendRefs": [
                { "group": "multicluster.x-k8s.io", "kind": "ServiceImport", "name": "s", "port": 80 },
            ] }),
            "rule 2 leads to a multicluster.x-k8s.io/ServiceImport",
        ),
        (
            json!({ "backendRefs": [{ "namespace": "other", "name": "s", "port": 80 }] }),
            "rule 2 leads to namespace other",
        ),
        (
            json!({ "backendRefs": [{ "name": "s" }] }),
            "rule 2 names no port of Service s",
        ),
    ] {
        let mut bad = good.clone();
        json_patch::merge(&mut bad, &change);
        let spec = json!({ "rules": [good, bad] });
        let refused = translated(&any(), spec).unwrap_err();
        assert!(refused.starts_with(expected), "{refused}");
    }
    let refused = translated(&any(), json!({ "rules": [] })).unwrap_err();
    assert!(refused.starts_with("the route has no rule"), "{refused}");
}

/// One Service that gets all requests of a rule is served, however it is written.
#[test]
fn whole_share_is_served() {
    for backends in [
        json!([{ "name": "s", "port": 80, "weight": 7 }]),
        json!([{ "name": "s", "port": 80 }, { "name": "t", "port": 80, "weight": 0 }]),
        json!([{ "group": "", "kind": "Service", "namespace": "shop", "name": "s", "port": 80 }]),
    ] {
        let spec = json!({ "rules": [{ "backendRefs": backends }] });
        let found = translated(&any(), spec).unwrap();
        assert_eq!(found, ["any Prefix / s:80"], "{backends}");
    }
}

/// A route is attached to the listeners that it names, and that take routes of its namespace.
#[test]
fn listeners_choose_routes() {
    let from = |from: &str| json!({ "allowedRoutes": { "namespaces": { "from": from } } });
    let kinds = |kind: &str| json!({ "allowedRoutes": { "namespaces": { "from": "All" }, "kinds": [{ "kind": kind }] } });
    let none = "no listener of Gateway infra/web takes HTTPRoutes of namespace shop";
    let passing = json!({ "protocol": "HTTPS", "tls": { "mode": "Passthrough" } });
    for (fields, reference, expected) in [
        (from("All"), json!({}), None),
        (
            from("All"),
            json!({ "sectionName": "one", "port": 80 }),
            None,
        ),
        (kinds("HTTPRoute"), json!({}), None),
        (from("Same"), json!({}), Some(none)),
        (json!({ "allowedRoutes": null }), json!({}), Some(none)),
        (from("None"), json!({}), Some(none)),
        (
            from("Selector"),
            json!({}),
            Some("allowedRoutes of Gateway infra/web selects"),
        ),
        (kinds("GRPCRoute"), json!({}), Some(none)),
        (json!({ "protocol": "TCP" }), json!({}), Some(none)),
        (passing, json!({}), Some(none)),
        (
            from("All"),
            json!({ "sectionName": "two" }),
            Some("Gateway infra/web has no listener of the sectionName"),
        ),
        (
            from("All"),
            json!({ "port": 81 }),
            Some("Gateway infra/web has no listener of the sectionName"),
        ),
    ] {
        let facts = fleet(&json!([listener("one", fields.clone())]));
        let mut parent = to("web");
        parent
            .as_object_mut()
            .unwrap()
            .extend(reference.as_object().unwrap().clone());
        let route = route(
            &json!([parent]),
            json!({ "rules": [rule("s", &json!([]))] }),
        );
        let attachment = attachment(&route, &facts, &ours());
        let refused = ingress_spec(&route, &attachment.parents).err();
        let refused = refused.map(|refusal| refusal.to_string());
        match (&refused, expected) {
            (Some(refused), Some(expected)) => assert!(refused.starts_with(expected), "{refused}"),
            (refused, expected) => assert_eq!(refused.as_deref(), expected, "{fields}"),
        }
    }
}

/// The certificates of a listener are Secrets of the route's namespace; that of others an ingress cannot name.
#[test]
fn certificates_are_of_namespace() {
    let tls = |certificate: Value| {
        let https = json!({ "hostname": "a.example.com", "protocol": "HTTPS",
            "tls": { "certificateRefs": [certificate] } });
        let listeners = json!([listener("http", json!({})), listener("https", https)]);
        let facts = fleet(&listeners);
        let spec = json!({ "rules": [rule("s", &json!([]))] });
        let route = route(&json!([to("web")]), spec);
        let attachment = attachment(&route, &facts, &ours());
        ingress_spec(&route, &attachment.parents).map(|spec| json!(spec.tls))
    };
    let served = tls(json!({ "name": "cert", "namespace": "shop" })).unwrap();
    let expected = json!([{ "hosts": ["a.example.com"], "secretName": "cert" }]);
    assert_eq!(served, expected);
    for other in [
        json!({ "name": "cert" }),
        json!({ "name": "c", "namespace": "shop", "kind": "X" }),
    ] {
        let refused = tls(other).unwrap_err().to_string();
        assert!(
            refused.starts_with("listener https of Gateway infra/web has a certificate"),
            "{refused}"
        );
    }
}

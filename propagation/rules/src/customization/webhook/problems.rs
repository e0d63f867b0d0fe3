//! The problems of a configuration of webhooks, in the words with which Karmada's webhook refuses it. Where no
//! webhook runs, it may have any of these.

use std::collections::BTreeSet;
use std::fmt::Display;

use objects::qualified_name::is_subdomain;
use serde_json::{Value, json};

use crate::customization::fields::{list, text, texts};
use crate::customization::operation::Operation;

/// The version of requests that is known.
pub(super) const KNOWN_VERSION: &str = "v1alpha1";
/// The bounds of `timeoutSeconds`. The longest is Karmada's default.
pub(super) const SHORTEST: u64 = 1;
pub(super) const LONGEST: u64 = 30;
/// The problem of a webhook whose address is missing or ambiguous.
pub(super) const ONE_ADDRESS: &str = "exactly one of url or service is required";

/// The problems that were found so far, each with the field that has it.
#[derive(Default)]
struct Found(Vec<String>);

impl Found {
    fn required(&mut self, field: impl Display) {
        self.0.push(format!("{field}: Required value"));
    }

    fn required_for(&mut self, field: impl Display, detail: &str) {
        self.0.push(format!("{field}: Required value: {detail}"));
    }

    fn invalid(&mut self, field: impl Display, value: &Value, detail: &str) {
        self.0
            .push(format!("{field}: Invalid value: {value}: {detail}"));
    }
}

/// Returns the problems of a configuration.
pub fn problems(configuration: &Value) -> Vec<String> {
    let mut found = Found::default();
    let mut names = BTreeSet::new();
    for (nth, webhook) in list(configuration, "webhooks").enumerate() {
        let at = format!("webhooks[{nth}]");
        let name = text(webhook, "name");
        if name.is_empty() {
            found.required(format_args!("{at}.name"));
        } else if !is_subdomain(name) || !name.contains('.') {
            let detail = "should be a domain with at least two segments separated by dots";
            found.invalid(format_args!("{at}.name"), &json!(name), detail);
        }
        for (nth, rule) in list(webhook, "rules").enumerate() {
            self::rule(&mut found, &format!("{at}.rules[{nth}]"), rule);
        }
        timeout(&mut found, &at, webhook);
        let config = webhook.get("clientConfig").unwrap_or(&Value::Null);
        address(&mut found, &format!("{at}.clientConfig"), config);
        versions(
            &mut found,
            &format!("{at}.interpreterContextVersions"),
            webhook,
        );
        if !names.insert(name) {
            found
                .0
                .push(format!("{at}.name: Duplicate value: {name:?}"));
        }
    }
    found.0
}

fn rule(found: &mut Found, at: &str, rule: &Value) {
    for (field, others) in [
        ("operations", "operations"),
        ("apiGroups", "API groups"),
        ("apiVersions", "API versions"),
        ("kinds", "kinds"),
    ] {
        let values: Vec<&str> = texts(rule, field).collect();
        if values.is_empty() {
            found.required(format_args!("{at}.{field}"));
        }
        if values.len() > 1 && values.contains(&"*") {
            let detail = format!("if '*' is present, must not specify other {others}");
            found.invalid(format_args!("{at}.{field}"), &json!(values), &detail);
        }
    }
    let known = Operation::ALL.map(Operation::name);
    for (nth, operation) in texts(rule, "operations").enumerate() {
        if operation != "*" && !known.contains(&operation) {
            let supported = known.map(|name| format!("{name:?}")).join(", ");
            found.0.push(format!(
                "{at}.operations[{nth}]: Unsupported value: {operation:?}: supported values: \"*\", {supported}"
            ));
        }
    }
}

fn timeout(found: &mut Found, at: &str, webhook: &Value) {
    let Some(timeout) = given(webhook, "timeoutSeconds") else {
        return;
    };
    let bounds = SHORTEST..=LONGEST;
    if !timeout
        .as_u64()
        .is_some_and(|seconds| bounds.contains(&seconds))
    {
        let detail = format!("the timeout value must be between {SHORTEST} and {LONGEST} seconds");
        found.invalid(format_args!("{at}.timeoutSeconds"), timeout, &detail);
    }
}

/// Returns the value of a field, if it has one.
fn given<'a>(object: &'a Value, field: &str) -> Option<&'a Value> {
    object.get(field).filter(|value| !value.is_null())
}

fn address(found: &mut Found, at: &str, config: &Value) {
    match (given(config, "url"), given(config, "service")) {
        (Some(url), None) => {
            if let Some(problem) = of_url(url.as_str().unwrap_or_default()) {
                found.invalid(format_args!("{at}.url"), url, &problem);
            }
        }
        (None, Some(service)) => {
            for field in ["name", "namespace"] {
                if text(service, field).is_empty() {
                    let detail = format!("service {field} is required");
                    found.required_for(format_args!("{at}.service.{field}"), &detail);
                }
            }
            if let Some(port) = given(service, "port")
                && !(1..=65535).contains(&port.as_u64().unwrap_or_default())
            {
                let detail = "port is not valid: must be between 1 and 65535, inclusive";
                found.invalid(format_args!("{at}.service.port"), port, detail);
            }
        }
        _ => found.required_for(at, ONE_ADDRESS),
    }
}

/// Returns the problem of a URL, if it has one.
pub(super) fn of_url(url: &str) -> Option<String> {
    const FORM: &str = "; desired format: https://host[/path]";
    let Some(rest) = url.strip_prefix("https://") else {
        return Some(format!("'https' is the only allowed URL scheme{FORM}"));
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.is_empty() {
        return Some(format!("host must be specified{FORM}"));
    }
    let problem = if authority.contains('@') {
        "user information is not permitted in the URL"
    } else if rest.contains('#') {
        "fragments are not permitted in the URL"
    } else if rest.contains('?') {
        "query parameters are not permitted in the URL"
    } else {
        return None;
    };
    Some(problem.to_owned())
}

fn versions(found: &mut Found, at: &str, webhook: &Value) {
    let versions: Vec<&str> = texts(webhook, "interpreterContextVersions").collect();
    if versions.is_empty() {
        let detail = format!("must specify one of {KNOWN_VERSION}");
        return found.required_for(at, &detail);
    }
    for (nth, version) in versions.iter().enumerate() {
        if versions[..nth].contains(version) {
            let detail = "duplicate version";
            found.invalid(format_args!("{at}[{nth}]"), &json!(version), detail);
        }
    }
    if !versions.contains(&KNOWN_VERSION) {
        let detail = format!("must include at least one of {KNOWN_VERSION}");
        found.invalid(at, &json!(versions), &detail);
    }
}

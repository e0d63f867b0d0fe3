//! Validation of built-in kinds beyond their schemas, as far as clients depend on it.

use std::net::IpAddr;

use serde_json::Value;

use super::kind::Kind;
use super::{custom, events};
use crate::error::Cause;
use crate::metadata;
use crate::names;

/// The limit for the data of a `ConfigMap` or `Secret`, in bytes.
const MAX_DATA: usize = 1024 * 1024;

/// Validates an object of a built-in kind beyond its schema.
pub(crate) fn validate(kind: &Kind, object: &Value) -> Vec<Cause> {
    if kind.custom {
        return Vec::new();
    }
    match (kind.group.as_str(), kind.plural.as_str()) {
        ("", "configmaps" | "secrets") => data(object),
        ("", "namespaces") => namespace(object),
        ("", "endpoints") => endpoints(object),
        ("", "events") => event(object, "involvedObject"),
        (events::GROUP, events::PLURAL) => event(object, "regarding"),
        ("", "services") => service(object),
        ("coordination.k8s.io", "leases") => lease(object),
        ("discovery.k8s.io", "endpointslices") => endpoint_slice(object),
        ("networking.k8s.io", "ingresses") => ingress(object),
        _ if kind.is_definition() => custom::validate(object),
        _ => Vec::new(),
    }
}

/// Validates a change of an object of a built-in kind.
pub(crate) fn validate_change(kind: &Kind, object: &Value, before: &Value) -> Vec<Cause> {
    match (kind.group.as_str(), kind.plural.as_str()) {
        ("", "configmaps" | "secrets") if before["immutable"] == true => {
            ["immutable", "data", "binaryData"]
                .into_iter()
                .filter(|field| object.get(field) != before.get(field))
                .map(|field| Cause::forbidden(field, "field is immutable when `immutable` is set"))
                .collect()
        }
        ("discovery.k8s.io", "endpointslices")
            if object["addressType"] != before["addressType"] =>
        {
            let new = text(&object["addressType"]);
            vec![Cause::invalid("addressType", new, "field is immutable")]
        }
        _ => Vec::new(),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn data(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let mut size = 0;
    for field in ["data", "binaryData"] {
        for (key, value) in object[field].as_object().into_iter().flatten() {
            size += text(value).len();
            let is_repeated = field == "data" && !object["binaryData"][key].is_null();
            let why = names::data_key(key).or_else(|| {
                is_repeated.then(|| "duplicate of key present in binaryData".to_owned())
            });
            if let Some(why) = why {
                causes.push(Cause::invalid(
                    format!("{field}[{key}]"),
                    key.as_str(),
                    &why,
                ));
            }
        }
    }
    if size > MAX_DATA {
        causes.push(Cause::too_long("data", MAX_DATA));
    }
    causes
}

fn namespace(namespace: &Value) -> Vec<Cause> {
    let is_terminating = metadata::is_terminating(namespace);
    let phase = text(&namespace["status"]["phase"]);
    let why = match (phase, is_terminating) {
        ("Active", true) => "may only be 'Terminating' if `deletionTimestamp` is not empty",
        ("Terminating", false) => "may only be 'Active' if `deletionTimestamp` is empty",
        _ => return Vec::new(),
    };
    vec![Cause::invalid("status.Phase", phase, why)]
}

fn event(event: &Value, object: &str) -> Vec<Cause> {
    let namespace = text(&event["metadata"]["namespace"]);
    let about = text(&event[object]["namespace"]);
    if about == namespace || (about.is_empty() && namespace == "default") {
        return Vec::new();
    }
    let field = format!("{object}.namespace");
    vec![Cause::invalid(
        field,
        about,
        "does not match event.namespace",
    )]
}

fn service(service: &Value) -> Vec<Cause> {
    let spec = &service["spec"];
    let ports = items(&spec["ports"]);
    let headless = spec["clusterIP"] == "None" || spec["type"] == "ExternalName";
    let mut causes = Vec::new();
    if ports.is_empty() && !headless {
        causes.push(Cause::required("spec.ports", ""));
    }
    for (index, port) in ports.iter().enumerate() {
        if ports.len() > 1 && text(&port["name"]).is_empty() {
            causes.push(Cause::required(format!("spec.ports[{index}].name"), ""));
        }
        let number = port["port"].as_i64().unwrap_or_default();
        if !(1..=65535).contains(&number) {
            let why = "must be between 1 and 65535, inclusive";
            let field = format!("spec.ports[{index}].port");
            causes.push(Cause::invalid(field, number, why));
        }
    }
    causes
}

fn lease(lease: &Value) -> Vec<Cause> {
    let spec = &lease["spec"];
    let mut causes = Vec::new();
    if let Some(seconds) = spec["leaseDurationSeconds"].as_i64()
        && seconds <= 0
    {
        let field = "spec.leaseDurationSeconds";
        causes.push(Cause::invalid(field, seconds, "must be greater than 0"));
    }
    if let Some(transitions) = spec["leaseTransitions"].as_i64()
        && transitions < 0
    {
        let why = "must be greater than or equal to 0";
        causes.push(Cause::invalid("spec.leaseTransitions", transitions, why));
    }
    causes
}

fn endpoint_slice(slice: &Value) -> Vec<Cause> {
    let type_ = text(&slice["addressType"]);
    let mut causes = Vec::new();
    if !["IPv4", "IPv6", "FQDN"].contains(&type_) {
        let supported = &["FQDN", "IPv4", "IPv6"];
        causes.push(Cause::unsupported("addressType", type_, supported));
    }
    for (index, endpoint) in items(&slice["endpoints"]).iter().enumerate() {
        let field = format!("endpoints[{index}].addresses");
        let addresses = items(&endpoint["addresses"]);
        if addresses.is_empty() {
            causes.push(Cause::required(
                field.clone(),
                "must contain at least 1 address",
            ));
        }
        for (index, address) in addresses.iter().enumerate() {
            let (field, address) = (format!("{field}[{index}]"), text(address));
            if !is_of_type(type_, address) {
                let why = format!("must be a valid {type_} address");
                causes.push(Cause::invalid(field, address, &why));
            } else if let Ok(ip) = address.parse()
                && let Some(why) = no_endpoint(ip)
            {
                causes.push(Cause::invalid(field, address, &why));
            }
        }
    }
    causes
}

fn is_of_type(type_: &str, address: &str) -> bool {
    match (type_, address.parse()) {
        ("IPv4", Ok(IpAddr::V4(_))) | ("IPv6", Ok(IpAddr::V6(_))) => true,
        ("IPv4" | "IPv6", _) => false,
        _ => true,
    }
}

fn endpoints(endpoints: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    for (subset, value) in items(&endpoints["subsets"]).iter().enumerate() {
        for list in ["addresses", "notReadyAddresses"] {
            for (index, address) in items(&value[list]).iter().enumerate() {
                let field = format!("subsets[{subset}].{list}[{index}].ip");
                let address = text(&address["ip"]);
                let why = match address.parse() {
                    Ok(ip) => no_endpoint(ip),
                    Err(_) => Some(
                        "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)".to_owned(),
                    ),
                };
                causes.extend(why.map(|why| Cause::invalid(field, address, &why)));
            }
        }
    }
    causes
}

/// Returns the rule that forbids an address as an endpoint (`ValidateEndpointIP`).
fn no_endpoint(address: IpAddr) -> Option<String> {
    let (is_link_local, is_link_local_multicast) = match address.to_canonical() {
        IpAddr::V4(ip) => (ip.is_link_local(), ip.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(ip) => (
            ip.is_unicast_link_local(),
            ip.segments()[0] & 0xff0f == 0xff02,
        ),
    };
    let range = if address.is_unspecified() {
        return Some(format!("may not be unspecified ({address})"));
    } else if address.to_canonical().is_loopback() {
        "loopback range (127.0.0.0/8, ::1/128)"
    } else if is_link_local {
        "link-local range (169.254.0.0/16, fe80::/10)"
    } else if is_link_local_multicast {
        "link-local multicast range (224.0.0.0/24, ff02::/10)"
    } else {
        return None;
    };
    Some(format!("may not be in the {range}"))
}

fn ingress(ingress: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    for (rule, value) in items(&ingress["spec"]["rules"]).iter().enumerate() {
        for (path, value) in items(&value["http"]["paths"]).iter().enumerate() {
            let type_ = text(&value["pathType"]);
            let supported = &["Exact", "ImplementationSpecific", "Prefix"];
            if !type_.is_empty() && !supported.contains(&type_) {
                let field = format!("spec.rules[{rule}].http.paths[{path}].pathType");
                causes.push(Cause::unsupported(field, type_, supported));
            }
        }
    }
    causes
}

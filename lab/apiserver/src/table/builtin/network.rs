//! Services, endpoints and ingresses.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::cell::{NONE, age, entries_of, first_few, items, joined, name, or, text};
use super::columns::Table;

const DEFAULT_CLASS: &str = "ingressclass.kubernetes.io/is-default-class";

pub(super) const SERVICE: Table = Table {
    columns: &[
        ("Name", "string", 0),
        ("Type", "string", 0),
        ("Cluster-IP", "string", 0),
        ("External-IP", "string", 0),
        ("Port(s)", "string", 0),
        ("Age", "string", 0),
        ("Selector", "string", 1),
    ],
    cells: |object, now| {
        let spec = &object["spec"];
        let ports = items(&spec["ports"]).iter().map(|port| {
            let (number, protocol) = (&port["port"], text(&port["protocol"]));
            match port["nodePort"].as_i64() {
                Some(node) if node > 0 => format!("{number}:{node}/{protocol}"),
                _ => format!("{number}/{protocol}"),
            }
        });
        let selector =
            entries_of(&spec["selector"]).map(|(key, value)| format!("{key}={}", text(value)));
        vec![
            name(object),
            json!(text(&spec["type"])),
            json!(or(text(&spec["clusterIPs"][0]), NONE)),
            json!(external_address(object)),
            json!(or(&joined(ports), NONE)),
            json!(age(object, now)),
            json!(or(&joined(selector), NONE)),
        ]
    },
};

pub(super) const ENDPOINTS: Table = Table {
    columns: &[
        ("Name", "string", 0),
        ("Endpoints", "string", 0),
        ("Age", "string", 0),
    ],
    cells: |object, now| {
        let mut list = Vec::new();
        for subset in items(&object["subsets"]) {
            let addresses = items(&subset["addresses"]).iter();
            let addresses = addresses.map(|address| text(&address["ip"]));
            if items(&subset["ports"]).is_empty() {
                list.extend(addresses.clone().map(ToOwned::to_owned));
            }
            for port in items(&subset["ports"]) {
                let addresses = addresses.clone();
                list.extend(addresses.map(|address| host_port(address, &port["port"])));
            }
        }
        let endpoints = match items(&object["subsets"]) {
            [] => NONE.to_owned(),
            _ => first_few(&list),
        };
        vec![name(object), json!(endpoints), json!(age(object, now))]
    },
};

pub(super) const ENDPOINT_SLICE: Table = Table {
    columns: &[
        ("Name", "string", 0),
        ("AddressType", "string", 0),
        ("Ports", "string", 0),
        ("Endpoints", "string", 0),
        ("Age", "string", 0),
    ],
    cells: |object, now| {
        let ports: Vec<_> = items(&object["ports"])
            .iter()
            .map(|port| match (&port["port"], &port["name"]) {
                (Value::Null, Value::Null) => "*".to_owned(),
                (Value::Null, name) => text(name).to_owned(),
                (number, _) => number.to_string(),
            })
            .collect();
        let addresses: Vec<_> = items(&object["endpoints"])
            .iter()
            .flat_map(|endpoint| items(&endpoint["addresses"]))
            .map(|address| text(address).to_owned())
            .collect();
        vec![
            name(object),
            json!(text(&object["addressType"])),
            json!(or(&first_few(&ports), "<unset>")),
            json!(or(&first_few(&addresses), "<unset>")),
            json!(age(object, now)),
        ]
    },
};

pub(super) const INGRESS: Table = Table {
    columns: &[
        ("Name", "string", 0),
        ("Class", "string", 0),
        ("Hosts", "string", 0),
        ("Address", "string", 0),
        ("Ports", "string", 0),
        ("Age", "string", 0),
    ],
    cells: |object, now| {
        let spec = &object["spec"];
        let hosts: Vec<_> = items(&spec["rules"])
            .iter()
            .map(|rule| text(&rule["host"]).to_owned())
            .filter(|host| !host.is_empty())
            .collect();
        let ports = if items(&spec["tls"]).is_empty() {
            "80"
        } else {
            "80, 443"
        };
        vec![
            name(object),
            json!(or(text(&spec["ingressClassName"]), NONE)),
            json!(or(&first_few(&hosts), "*")),
            json!(balancer_addresses(object)),
            json!(ports),
            json!(age(object, now)),
        ]
    },
};

pub(super) const INGRESS_CLASS: Table = Table {
    columns: &[
        ("Name", "string", 0),
        ("Controller", "string", 0),
        ("Parameters", "string", 0),
        ("Age", "string", 0),
    ],
    cells: |object, now| {
        let is_default = object["metadata"]["annotations"][DEFAULT_CLASS] == "true";
        let shown = text(&object["metadata"]["name"]);
        let parameters = &object["spec"]["parameters"];
        let parameters = match (parameters, text(&parameters["apiGroup"])) {
            (Value::Null, _) => NONE.to_owned(),
            (_, "") => format!(
                "{}/{}",
                text(&parameters["kind"]),
                text(&parameters["name"])
            ),
            (_, group) => {
                format!(
                    "{}.{group}/{}",
                    text(&parameters["kind"]),
                    text(&parameters["name"])
                )
            }
        };
        vec![
            if is_default {
                json!(format!("{shown} (default)"))
            } else {
                json!(shown)
            },
            json!(text(&object["spec"]["controller"])),
            json!(parameters),
            json!(age(object, now)),
        ]
    },
};

fn external_address(service: &Value) -> String {
    let spec = &service["spec"];
    let own = joined(items(&spec["externalIPs"]).iter().map(text));
    match text(&spec["type"]) {
        "ClusterIP" | "NodePort" => or(&own, NONE),
        "LoadBalancer" => match (balancer_addresses(service), own) {
            (given, own) if given.is_empty() => or(&own, "<pending>"),
            (given, own) if own.is_empty() => given,
            (given, own) => format!("{given},{own}"),
        },
        "ExternalName" => text(&spec["externalName"]).to_owned(),
        _ => "<unknown>".to_owned(),
    }
}

/// Returns the addresses of load balancers, sorted and without duplicates.
fn balancer_addresses(object: &Value) -> String {
    let ingress = items(&object["status"]["loadBalancer"]["ingress"]).iter();
    let addresses: BTreeSet<_> = ingress
        .map(|one| or(text(&one["ip"]), text(&one["hostname"])))
        .filter(|address| !address.is_empty())
        .collect();
    joined(addresses)
}

fn host_port(host: &str, port: &Value) -> String {
    if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}

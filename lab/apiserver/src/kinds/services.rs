//! Allocation of cluster IPs, and the node ports that are asked for.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use serde_json::{Value, json};

use crate::error::Cause;

/// The range is 10.96.0.0/12, kubeadm's default. 10.96.0.1 is the address of the API itself.
const FIRST: u32 = u32::from_be_bytes([10, 96, 0, 2]);
const LAST: u32 = u32::from_be_bytes([10, 111, 255, 254]);

#[derive(Clone, Debug, Default)]
pub(crate) struct ClusterIps {
    taken: BTreeSet<u32>,
}

impl ClusterIps {
    pub(crate) fn take(&mut self, service: &Value) {
        self.taken.extend(address(service));
    }

    pub(crate) fn give_back(&mut self, service: &Value) {
        if let Some(address) = address(service) {
            self.taken.remove(&address);
        }
    }

    fn next(&self) -> Option<u32> {
        // The set is sorted, so the first address that is not the expected one marks a gap.
        let mut next = FIRST;
        for &taken in self.taken.range(FIRST..=LAST) {
            if taken > next {
                break;
            }
            next = taken + 1;
        }
        (next <= LAST).then_some(next)
    }
}

fn address(service: &Value) -> Option<u32> {
    let address: Ipv4Addr = service["spec"]["clusterIP"].as_str()?.parse().ok()?;
    Some(u32::from(address))
}

/// Assigns the cluster IP of a Service, or keeps the one it has.
pub(crate) fn assign_cluster_ip(
    ips: &ClusterIps,
    service: &mut Value,
    before: Option<&Value>,
) -> Result<(), Cause> {
    if !service["spec"].is_object() {
        service["spec"] = json!({});
    }
    let spec = &mut service["spec"];
    if spec["type"] == "ExternalName" {
        return Ok(());
    }
    let requested = spec["clusterIP"].as_str().unwrap_or_default().to_owned();
    let had = before
        .and_then(|before| before["spec"]["clusterIP"].as_str())
        .unwrap_or_default();
    let address = match (requested.as_str(), had) {
        ("", "") => {
            let why = "failed to allocate IP: range is full";
            let next = ips.next();
            let next = next.ok_or_else(|| Cause::invalid("spec.clusterIPs", "", why))?;
            Ipv4Addr::from(next).to_string()
        }
        ("", had) => had.to_owned(),
        // A headless Service.
        ("None", _) => requested,
        (requested, had) if requested == had => requested.to_owned(),
        (requested, had) if !had.is_empty() => {
            let why = "may not change once set";
            return Err(Cause::invalid("spec.clusterIPs[0]", requested, why));
        }
        (requested, _) => free_address(ips, requested)?,
    };
    spec["clusterIP"] = json!(address);
    spec["clusterIPs"] = json!([address]);
    for (field, default) in [
        ("ipFamilies", json!(["IPv4"])),
        ("ipFamilyPolicy", json!("SingleStack")),
        ("internalTrafficPolicy", json!("Cluster")),
    ] {
        if spec[field].is_null() {
            spec[field] = default;
        }
    }
    Ok(())
}

fn free_address(ips: &ClusterIps, requested: &str) -> Result<String, Cause> {
    let parsed = requested.parse::<Ipv4Addr>().map(u32::from);
    let why = match parsed {
        Ok(address) if ips.taken.contains(&address) => {
            "failed to allocate IP: provided IP is already allocated"
        }
        Ok(address) if (FIRST..=LAST).contains(&address) => return Ok(requested.to_owned()),
        Ok(_) => {
            "failed to allocate IP: the provided IP is not in the valid range. The range of \
                  valid IPs is 10.96.0.0/12"
        }
        Err(_) => "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
    };
    Err(Cause::invalid("spec.clusterIPs", requested, why))
}

/// Refuses the node ports of a Service that another one has. None is allocated.
pub(crate) fn refuse_node_ports<'a>(
    service: &Value,
    others: impl Iterator<Item = &'a Value>,
) -> Vec<Cause> {
    let taken: BTreeSet<_> = others.flat_map(node_ports).map(|(_, port)| port).collect();
    let refused = node_ports(service).filter(|(_, port)| taken.contains(port));
    let causes = refused.map(|(place, port)| {
        let field = format!("spec.ports[{place}].nodePort");
        Cause::invalid(field, port, "provided port is already allocated")
    });
    causes.collect()
}

fn node_ports(service: &Value) -> impl Iterator<Item = (usize, i64)> + use<'_> {
    let ports = service["spec"]["ports"].as_array();
    let ports = ports.into_iter().flatten().enumerate();
    ports.filter_map(|(place, port)| Some((place, port["nodePort"].as_i64()?)))
}

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use karmada_api::{DnsEndpoint, DnsEndpointSpec, DnsProviderProperty, DnsRecord};
use objects::patch::JsonPatch;
use objects::{Key, Metadata};

use super::hosts::hosts;
use super::problem::DnsProblem;
use super::targets::{Origin, targets};
use crate::ingress::kubernetes::{Managed, ManagedBy, edit, edits_of_metadata, hashed, ingress_of};
use crate::ingress::{ControllerName, Desired};

/// The annotation with the targets of a record and the source of each, as JSON.
const TARGETS_ANNOTATION: &str = "karmada-rs.io/dns-targets";
/// The beginning of the annotations that tell ExternalDNS more (its `source/annotations/provider_specific.go`), and the
/// parts that a `DNSEndpoint` has as properties.
const EXTERNAL_DNS: &str = "external-dns.alpha.kubernetes.io/";
const PROPERTIES: [&str; 3] = ["aws", "scw", "webhook"];

/// The factory of `DNSEndpoint`s, which also recognizes them.
#[derive(Clone, Debug)]
pub struct Publisher {
    managed_by: ManagedBy,
    namespace: String,
    ttl: u32,
    set_identifier: String,
}

/// The records that are to be published for one ingress.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wanted {
    /// One object for each host that leads somewhere.
    pub endpoints: Vec<DnsEndpoint>,
    /// The hosts and targets that are not published, or not as they are written.
    pub problems: BTreeSet<DnsProblem>,
}

impl Publisher {
    /// Creates a factory for `controller` of objects in `namespace`. Records live for `ttl`, which is rounded up to seconds,
    /// and have `set_identifier` unless that is empty.
    pub fn new(
        controller: &ControllerName,
        namespace: String,
        ttl: Duration,
        set_identifier: String,
    ) -> Self {
        let seconds = ttl.as_secs() + u64::from(ttl.subsec_nanos() > 0);
        Self {
            managed_by: ManagedBy::new(controller),
            namespace,
            ttl: u32::try_from(seconds).unwrap_or(u32::MAX),
            set_identifier,
        }
    }

    /// Returns the label of our objects.
    pub fn managed_by(&self) -> &ManagedBy {
        &self.managed_by
    }

    /// Returns the namespace of the objects.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Returns the time that a resolver may keep an answer.
    pub fn ttl(&self) -> Duration {
        Duration::from_secs(self.ttl.into())
    }

    /// Returns `true` if answers may be those of another fleet as well.
    pub fn shares_names(&self) -> bool {
        !self.set_identifier.is_empty()
    }

    /// Returns the records that are to be published for `desired`. `existing` are the objects of its ingress.
    pub fn wanted(&self, desired: &Desired, existing: &[Arc<DnsEndpoint>]) -> Wanted {
        let mut wanted = Wanted::default();
        let held: BTreeMap<&str, BTreeSet<Origin>> = existing
            .iter()
            .filter(|endpoint| ingress_of(&endpoint.metadata).as_ref() == Some(&desired.key))
            .map(|endpoint| (host_of(endpoint), origins(endpoint)))
            .collect();
        let nothing = BTreeSet::new();
        for (host, services) in hosts(&desired.routes, &mut wanted.problems) {
            let held = held.get(&*host).unwrap_or(&nothing);
            let targets = targets(desired, &host, &services, held, &mut wanted.problems);
            // Without targets ExternalDNS would make an update to nothing, so the object goes.
            if !targets.is_empty() {
                wanted
                    .endpoints
                    .push(self.endpoint(desired, &host, &targets));
            }
        }
        wanted
    }

    fn endpoint(&self, desired: &Desired, host: &str, origins: &BTreeSet<Origin>) -> DnsEndpoint {
        let mut by_type: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for origin in origins {
            let record_type = match origin.target.parse() {
                Ok(IpAddr::V4(_)) => "A",
                Ok(IpAddr::V6(_)) => "AAAA",
                Err(_) => "CNAME",
            };
            let targets = by_type.entry(record_type).or_default();
            targets.insert(origin.target.clone());
        }
        let properties = properties(desired);
        let records = by_type.into_iter().map(|(record_type, targets)| DnsRecord {
            dns_name: host.to_owned(),
            record_type: record_type.to_owned(),
            record_ttl: self.ttl,
            targets: targets.into_iter().collect(),
            set_identifier: self.set_identifier.clone(),
            provider_specific: properties.clone(),
        });
        // The object is in another namespace than its ingress, so it names both.
        let ingress = Key::new(&self.namespace, desired.key.to_string());
        let mut metadata = self.managed_by.metadata(&ingress, self.name(host));
        let annotations = metadata.annotations.get_or_insert_default();
        annotations.insert(TARGETS_ANNOTATION.to_owned(), text(origins));
        DnsEndpoint {
            api_version: DnsEndpoint::API_VERSION.to_owned(),
            kind: DnsEndpoint::KIND.to_owned(),
            metadata,
            spec: DnsEndpointSpec {
                endpoints: records.collect(),
            },
        }
    }

    /// Returns the name of the object of a host. All ingresses have it in common, so a host has one object. Another fleet has
    /// another one.
    fn name(&self, host: &str) -> String {
        let readable = host.replace('*', "any");
        let owner = self.managed_by.selector();
        hashed(&readable, [host, &owner, &self.set_identifier])
    }
}

/// Returns the hints that annotations of the ingress give to providers of DNS.
fn properties(desired: &Desired) -> Vec<DnsProviderProperty> {
    let all = desired.annotations.iter().filter_map(|(key, value)| {
        let (part, rest) = key.strip_prefix(EXTERNAL_DNS)?.split_once('-')?;
        PROPERTIES.contains(&part).then(|| DnsProviderProperty {
            name: format!("{part}/{rest}"),
            value: value.clone(),
        })
    });
    all.collect()
}

fn text(origins: &BTreeSet<Origin>) -> String {
    // Text without keys other than ours always serializes.
    serde_json::to_string(origins).unwrap_or_default()
}

/// Returns the targets of one of our objects. An unreadable list is as none.
pub(super) fn origins(endpoint: &DnsEndpoint) -> BTreeSet<Origin> {
    let text = endpoint.metadata.annotation(TARGETS_ANNOTATION);
    let read = text.and_then(|text| serde_json::from_str(text).ok());
    read.unwrap_or_default()
}

/// Returns the object without the targets of which `is_cut` holds; `None` if none is left.
pub(super) fn without(
    endpoint: &DnsEndpoint,
    is_cut: impl Fn(&Origin) -> bool,
) -> Option<DnsEndpoint> {
    let mut left = origins(endpoint);
    left.retain(|origin| !is_cut(origin));
    let mut rest = endpoint.clone();
    for record in &mut rest.spec.endpoints {
        // Another cluster may have the same address.
        let targets = &mut record.targets;
        targets.retain(|target| left.iter().any(|origin| origin.target == *target));
    }
    rest.spec
        .endpoints
        .retain(|record| !record.targets.is_empty());
    let annotations = rest.metadata.annotations.get_or_insert_default();
    annotations.insert(TARGETS_ANNOTATION.to_owned(), text(&left));
    (!rest.spec.endpoints.is_empty()).then_some(rest)
}

/// Returns the host of one of our objects.
pub fn host_of(endpoint: &DnsEndpoint) -> &str {
    let first = endpoint.spec.endpoints.first();
    first.map_or("", |record| &record.dns_name)
}

/// Returns the targets that an object publishes.
pub fn targets_of(endpoint: &DnsEndpoint) -> BTreeSet<String> {
    let records = endpoint.spec.endpoints.iter();
    records.flat_map(|record| record.targets.clone()).collect()
}

/// Returns the name to which an object leads, if it is one.
pub fn alias_of(endpoint: &DnsEndpoint) -> Option<&str> {
    let mut records = endpoint.spec.endpoints.iter();
    let record = records.find(|record| record.record_type == "CNAME")?;
    record.targets.first().map(String::as_str)
}

impl Managed for DnsEndpoint {
    const KIND: &'static str = Self::KIND;
    const TARGET: &'static str = "dns_endpoint";

    fn edits(&self, existing: &Self) -> serde_json::Result<JsonPatch> {
        let mut edits = edits_of_metadata(&self.metadata, &existing.metadata);
        let [wanted, found] = [self, existing].map(|endpoint| &endpoint.spec.endpoints);
        edit(&mut edits, ["spec", "endpoints"], Some(wanted), Some(found))?;
        Ok(edits)
    }
}

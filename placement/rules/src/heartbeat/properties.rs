//! The properties of its cluster that the agent tells beside the room in it: the costs of its nodes, and the ways to its API.
//!
//! The names are those of KubeFleet's provider for its cloud, so that policies which sort by them go on.

use std::collections::BTreeMap;

use fleet_api::conditions::COSTS_COLLECTED;
use fleet_api::member::{MemberClusterStatus, PropertyValue};
use fleet_api::names::{
    AUTHORITY_PROPERTY, CORE_COST_PROPERTY, ENTRYPOINT_PROPERTY, INSTANCES_PROPERTY,
    MEMORY_COST_PROPERTY, VERSION_PROPERTY,
};
use jiff::Timestamp;
use objects::Mistake;
use objects::condition::{Condition, FALSE, TRUE, find, whole_seconds};
use objects::quantity::Quantity;

use crate::condition::{condition, put};
use objects::usage::ClusterUsage;

/// The properties that an agent tells if it is asked to, besides those that begin with [`INSTANCES_PROPERTY`].
const TOLD: [&str; 5] = [
    AUTHORITY_PROPERTY,
    CORE_COST_PROPERTY,
    ENTRYPOINT_PROPERTY,
    MEMORY_COST_PROPERTY,
    VERSION_PROPERTY,
];
/// The types of machines without a price that are named.
const NAMED: usize = 10;

/// The bytes of a GiB.
const GIB: f64 = 1024.0 * 1024.0 * 1024.0;

/// The prices of machines for an hour, by their types.
pub type Prices = BTreeMap<String, f64>;

/// Reads prices, a map in YAML or JSON.
///
/// # Errors
/// Fails with their mistake, which quotes nothing: it is told on the hub, and the file may be another than was meant.
pub fn read_prices(text: &str) -> Result<Prices, String> {
    let prices: Prices = serde_saphyr::from_str(text).map_err(|error| {
        let mistake = Mistake::from(&error);
        format!("must be a map of types of machines to prices: {mistake}")
    })?;
    let wrong = prices
        .values()
        .find(|price| !price.is_finite() || **price < 0.0);
    match wrong {
        Some(price) => Err(format!("a price is {price}")),
        None => Ok(prices),
    }
}

/// How others reach the API of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entrypoint {
    /// Its URL.
    pub url: String,
    /// The certificates by which it is known, as PEM, if they are not everybody's.
    pub authority: Option<String>,
    /// The version of its Kubernetes, once that is known.
    pub version: Option<String>,
}

/// The properties that the agent tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    properties: BTreeMap<String, String>,
    conditions: Vec<Condition>,
}

impl Collected {
    /// Tells how many nodes there are of each type, and the average costs of a core and a GiB of them. A node whose price nobody
    /// knows costs nothing.
    pub fn add_costs(&mut self, usage: &ClusterUsage, prices: &Result<Prices, String>) {
        let types = usage
            .instance_types
            .iter()
            .filter(|(name, _)| !name.is_empty());
        let counts = types.map(|(name, count)| {
            let property = format!("{INSTANCES_PROPERTY}{name}/count");
            (property, count.to_string())
        });
        self.properties.extend(counts);
        let costs = prices.as_ref().map_err(Clone::clone);
        let (status, reason, message) = match costs.and_then(|prices| costs_of(usage, prices)) {
            Ok(costs) => {
                for (property, cost) in [
                    (CORE_COST_PROPERTY, costs.core),
                    (MEMORY_COST_PROPERTY, costs.memory),
                ] {
                    self.properties
                        .insert(property.to_owned(), format!("{cost:.3}"));
                }
                if costs.missing.is_empty() {
                    let message = "All cost properties have been collected successfully";
                    (TRUE, "CostsCalculated", message.to_owned())
                } else {
                    let message = format!(
                        "Cost properties are collected in a degraded mode with the following warning(s): no price is known of {}",
                        named(&costs.missing)
                    );
                    (TRUE, "CostsCalculationDegraded", message)
                }
            }
            Err(problem) => {
                let message =
                    format!("An error has occurred when collecting cost properties: {problem}");
                (FALSE, "CostsCalculationFailed", message)
            }
        };
        self.conditions
            .push(condition((COSTS_COLLECTED, status), reason, &message));
    }

    /// Tells how others reach the API of the cluster.
    pub fn add_entrypoint(&mut self, entrypoint: &Entrypoint) {
        let Entrypoint {
            url,
            authority,
            version,
        } = entrypoint;
        for (property, value) in [
            (ENTRYPOINT_PROPERTY, Some(url)),
            (AUTHORITY_PROPERTY, authority.as_ref()),
            (VERSION_PROPERTY, version.as_ref()),
        ] {
            if let Some(value) = value {
                self.properties.insert(property.to_owned(), value.clone());
            }
        }
    }
}

/// The average cost of nodes.
struct Costs<'u> {
    core: f64,
    memory: f64,
    /// The types without a price.
    missing: Vec<&'u str>,
}

fn costs_of<'u>(usage: &'u ClusterUsage, prices: &Prices) -> Result<Costs<'u>, String> {
    let mut costs = Costs {
        core: 0.0,
        memory: 0.0,
        missing: Vec::new(),
    };
    let mut total = 0.0;
    for (name, count) in &usage.instance_types {
        match prices.get(name) {
            Some(price) => total += price * f64::from(u32::try_from(*count).unwrap_or(u32::MAX)),
            None => costs.missing.push(name),
        }
    }
    if usage.nodes == 0 {
        return Ok(costs);
    }
    if total <= 0.0 {
        return Err(format!(
            "nodes are present, but no price is known of {}",
            named(&costs.missing)
        ));
    }
    let [cores, bytes] = ["cpu", "memory"].map(|resource| {
        let amount = Quantity::parse(&usage.capacity.text(resource));
        amount.unwrap_or_default().approximate()
    });
    if cores <= 0.001 || bytes <= 1.0 {
        return Err(format!(
            "the nodes have {cores} cores and {bytes} bytes of memory"
        ));
    }
    costs.core = total / cores;
    costs.memory = total / (bytes / GIB);
    Ok(costs)
}

/// Returns the first of these types as a person reads them.
fn named(types: &[&str]) -> String {
    let shown = types.iter().take(NAMED);
    let shown = shown.map(|name| {
        if name.is_empty() {
            "nodes without a type"
        } else {
            name
        }
    });
    let mut named = shown.collect::<Vec<_>>().join(", ");
    if types.len() > NAMED {
        named.push_str(", ...");
    }
    named
}

/// Tells the properties that were collected, and takes back those before.
pub(super) fn write(
    collected: &Collected,
    status: &mut MemberClusterStatus,
    (generation, now): (Option<i64>, Timestamp),
) {
    status.properties.retain(|name, _| {
        let is_ours = TOLD.contains(&&**name) || name.starts_with(INSTANCES_PROPERTY);
        !is_ours || collected.properties.contains_key(name)
    });
    for (name, value) in &collected.properties {
        let value = PropertyValue {
            value: value.clone(),
            observation_time: Some(whole_seconds(now)),
        };
        status.properties.insert(name.clone(), value);
    }
    if find(&collected.conditions, COSTS_COLLECTED).is_none() {
        status.conditions.retain(|one| one.type_ != COSTS_COLLECTED);
    }
    let conditions = collected.conditions.iter().cloned();
    put(&mut status.conditions, conditions, (generation, now));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use objects::usage::NodeCapacity;

    fn usage(types: &[&str]) -> ClusterUsage {
        let nodes: Vec<_> = types
            .iter()
            .map(|name| {
                let amounts = json!({ "cpu": "4", "memory": "8Gi" });
                NodeCapacity::from(&json!({
                    "metadata": { "labels": { "node.kubernetes.io/instance-type": name } },
                    "status": { "capacity": amounts, "allocatable": amounts } }))
            })
            .collect();
        ClusterUsage::of(&nodes, [])
    }

    fn written(types: &[&str], prices: &str) -> MemberClusterStatus {
        let mut collected = Collected::default();
        collected.add_costs(&usage(types), &read_prices(prices));
        let mut status = MemberClusterStatus::default();
        write(&collected, &mut status, (Some(1), Timestamp::UNIX_EPOCH));
        status
    }

    fn value<'a>(status: &'a MemberClusterStatus, name: &str) -> Option<&'a str> {
        status.properties.get(name).map(|one| &*one.value)
    }

    /// Case F118: a core and a GiB cost a share of all nodes; of nodes without a price it is said, and
    /// without any nothing is told.
    #[test]
    fn nodes_have_their_costs() {
        let prices = "small: 0.2\nlarge: 0.6\n";
        for (types, prices, core, memory, reason) in [
            (
                &["small", "small", "large"][..],
                prices,
                Some("0.083"),
                Some("0.042"),
                "CostsCalculated",
            ),
            (
                &["small", "new"],
                prices,
                Some("0.025"),
                Some("0.013"),
                "CostsCalculationDegraded",
            ),
            (&[], prices, Some("0.000"), Some("0.000"), "CostsCalculated"),
            (&["new"], prices, None, None, "CostsCalculationFailed"),
            (
                &["small"],
                "small: -1",
                None,
                None,
                "CostsCalculationFailed",
            ),
            (&["small"], "small", None, None, "CostsCalculationFailed"),
        ] {
            let status = written(types, prices);
            assert_eq!(value(&status, CORE_COST_PROPERTY), core, "{types:?}");
            assert_eq!(value(&status, MEMORY_COST_PROPERTY), memory, "{types:?}");
            assert_eq!(status.conditions[0].reason, reason, "{types:?}");
        }
        let status = written(&["small", "small", "large"], prices);
        let small = value(&status, "kubernetes.azure.com/vm-sizes/small/count");
        assert_eq!(small, Some("2"));
    }

    /// An error about prices quotes nothing of a file that may be a Secret.
    #[test]
    fn wrong_prices_are_not_quoted() {
        for text in [
            "marker",
            "a: marker",
            "- marker",
            "a: {marker: 1}",
            "marker: -1",
            "a: [marker",
        ] {
            let error = read_prices(text).unwrap_err();
            assert!(!error.contains("marker"), "{error}");
        }
    }

    /// A property that is no longer asked for is taken back; those of others stay.
    #[test]
    fn former_properties_go() {
        let mut status = written(&["small"], "small: 1");
        let other = PropertyValue::default();
        status
            .properties
            .insert("example.com/rack".to_owned(), other);
        let mut collected = Collected::default();
        collected.add_entrypoint(&Entrypoint {
            url: "https://m1.example.com".to_owned(),
            ..Entrypoint::default()
        });
        write(&collected, &mut status, (Some(1), Timestamp::UNIX_EPOCH));
        let names: Vec<_> = status.properties.keys().collect();
        assert_eq!(names, ["example.com/rack", "k8s.io/cluster-entrypoint"]);
        assert!(status.conditions.is_empty());
    }
}

//! The properties of a cluster: those that its agent reports, and the room in it.

use fleet_api::MemberCluster;
use fleet_api::policy::PropertyRequirement;
use objects::qualified_name::{is_name, is_qualified, is_subdomain};
use objects::quantity::Quantity;

/// The prefix of the properties that are read from the cluster's room.
const RESOURCES: &str = "resources.kubernetes-fleet.io/";

/// The parts of the room of a resource.
const PARTS: [&str; 3] = ["total", "allocatable", "available"];

/// Returns a property of a cluster; `None` if it is absent or cannot be read.
pub(super) fn property(cluster: &MemberCluster, name: &str) -> Option<Quantity> {
    let status = cluster.status.as_ref()?;
    let Some(amount) = name.strip_prefix(RESOURCES) else {
        return Quantity::parse(&status.properties.get(name)?.value);
    };
    let (part, resource) = amount.split_once('-')?;
    let usage = &status.resource_usage;
    let amounts = match part {
        "total" => &usage.capacity,
        "allocatable" => &usage.allocatable,
        "available" => &usage.available,
        _ => return None,
    };
    match amounts.get(resource) {
        Some(amount) => Quantity::parse(amount),
        // A cluster without nodes has none of the resources of a node.
        None => (usage.observation_time.is_some() && matches!(resource, "cpu" | "memory"))
            .then(Quantity::default),
    }
}

/// Returns `true` if the cluster meets the requirement. A property that is absent meets none.
pub(super) fn meets(cluster: &MemberCluster, requirement: &PropertyRequirement) -> bool {
    let [value] = &*requirement.values else {
        return false;
    };
    let (Some(has), Some(wanted)) = (property(cluster, &requirement.name), Quantity::parse(value))
    else {
        return false;
    };
    match &*requirement.operator {
        "Gt" => has > wanted,
        "Ge" => has >= wanted,
        "Eq" => has == wanted,
        "Ne" => has != wanted,
        "Lt" => has < wanted,
        "Le" => has <= wanted,
        _ => false,
    }
}

/// Returns `true` for the name of a property: one of the room of a cluster names a part and a resource, any other is of
/// segments with a domain before them or not.
pub(super) fn is_property(name: &str) -> bool {
    let Some(amount) = name.strip_prefix(RESOURCES) else {
        let mut segments = name.split('/');
        let first = segments.next().unwrap_or_default();
        return (is_subdomain(first) || is_name(first)) && segments.all(is_name);
    };
    let named = amount.split_once('-');
    named.is_some_and(|(part, resource)| PARTS.contains(&part) && is_qualified(resource))
}

/// Returns `true` if a property is compared with quantities.
pub(super) fn has_quantities(requirement: &PropertyRequirement) -> bool {
    let mut values = requirement.values.iter();
    values.all(|value| Quantity::parse(value).is_some())
}

/// Returns `true` if no quantity meets both requirements. Of several, each two are compared, in both orders.
pub(super) fn exclude(one: &PropertyRequirement, other: &PropertyRequirement) -> bool {
    let ([value], [bound]) = (&*one.values, &*other.values) else {
        return false;
    };
    let (Some(value), Some(bound)) = (Quantity::parse(value), Quantity::parse(bound)) else {
        return false;
    };
    one.name == other.name
        && match (&*one.operator, &*other.operator) {
            ("Eq", "Ne") => value == bound,
            ("Eq" | "Ge", "Eq" | "Le") => value > bound,
            ("Gt", "Eq" | "Le" | "Lt") | ("Eq" | "Ge", "Lt") => value >= bound,
            _ => false,
        }
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::super::fixtures::fixture;
    use super::*;

    fn recorded() -> MemberCluster {
        from_value(fixture("membercluster")).unwrap()
    }

    /// Case F22.
    #[test]
    fn operators_compare_quantities() {
        for (operator, than_less, than_equal, than_more) in [
            ("Gt", true, false, false),
            ("Ge", true, true, false),
            ("Eq", false, true, false),
            ("Ne", true, false, true),
            ("Lt", false, false, true),
            ("Le", false, true, true),
            ("In", false, false, false),
        ] {
            let met = ["3999m", "4000m", "5"].map(|value| {
                let requirement = PropertyRequirement {
                    name: format!("{RESOURCES}available-cpu"),
                    operator: operator.to_owned(),
                    values: vec![value.to_owned()],
                };
                meets(&recorded(), &requirement)
            });
            assert_eq!(met, [than_less, than_equal, than_more], "{operator}");
        }
    }

    #[test]
    fn properties_have_their_places() {
        let cluster = recorded();
        for (name, value) in [
            ("kubernetes-fleet.io/node-count", Quantity::parse("1")),
            (
                "resources.kubernetes-fleet.io/total-memory",
                Quantity::parse("8Gi"),
            ),
            (
                "resources.kubernetes-fleet.io/allocatable-cpu",
                Quantity::parse("4"),
            ),
            (
                "resources.kubernetes-fleet.io/available-ephemeral-storage",
                None,
            ),
            ("resources.kubernetes-fleet.io/cpu", None),
            ("example.com/rack", None),
        ] {
            assert_eq!(property(&cluster, name), value, "{name}");
        }
    }

    #[test]
    fn no_nodes_are_no_room() {
        let empty: MemberCluster = from_value(json!({ "status": { "resourceUsage": {
            "observationTime": "2026-11-25T16:44:09Z" } } }))
        .unwrap();
        let name = "resources.kubernetes-fleet.io/available-cpu";
        assert_eq!(property(&empty, name), Some(Quantity::default()));
        assert_eq!(property(&MemberCluster::default(), name), None);
    }

    #[test]
    fn what_cannot_be_read_meets_nothing() {
        for values in [
            vec![],
            vec!["much".to_owned()],
            vec!["1".to_owned(), "2".to_owned()],
        ] {
            let requirement = PropertyRequirement {
                name: "kubernetes-fleet.io/node-count".to_owned(),
                operator: "Ne".to_owned(),
                values,
            };
            assert!(!meets(&recorded(), &requirement), "{requirement:?}");
        }
    }
}

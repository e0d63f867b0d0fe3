//! The parts of a template whose Pods differ.

pub use karmada_api::Component;
use serde_json::Value;

use super::replicas::{pod_requirements, same_requirements};

/// Returns the part of this name with Pods of the spec `pod`.
pub(super) fn component(name: &str, replicas: i64, pod: Option<&Value>) -> Component {
    with_requirements(name, replicas, pod.and_then(pod_requirements))
}

/// Returns the part of this name with Pods that need so much each.
pub(super) fn with_requirements(
    name: &str,
    replicas: i64,
    replica_requirements: Option<Value>,
) -> Component {
    Component {
        name: name.to_owned(),
        replicas: i32::try_from(replicas.max(0)).unwrap_or(i32::MAX),
        replica_requirements,
    }
}

/// Returns `true` if the parts in a binding are the same as `ours`, in whichever order: those of a map have none.
pub fn same_components(ours: &[Component], theirs: &[Component]) -> bool {
    let [ours, theirs] = [ours, theirs].map(by_name);
    let mut pairs = ours.iter().zip(&theirs);
    ours.len() == theirs.len()
        && pairs.all(|(ours, theirs)| {
            let needs = [ours, theirs].map(|component| component.replica_requirements.as_ref());
            ours.name == theirs.name
                && ours.replicas == theirs.replicas
                && same_requirements(needs[0], needs[1])
        })
}

fn by_name(components: &[Component]) -> Vec<&Component> {
    let mut components: Vec<_> = components.iter().collect();
    components.sort_by_key(|component| &component.name);
    components
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(name: &str, cpu: &str) -> Component {
        let needs = json!({ "resourceRequest": { "cpu": cpu } });
        with_requirements(name, 1, Some(needs))
    }

    /// Neither order nor notation makes a difference; names, numbers and needs do.
    #[test]
    fn differences_are_told_apart() {
        let ours = [of("a", "100m"), of("b", "1")];
        assert!(same_components(&ours, &[of("b", "1000m"), of("a", "0.1")]));
        let more = with_requirements("b", 2, ours[1].replica_requirements.clone());
        for theirs in [
            vec![],
            vec![of("a", "100m")],
            vec![of("a", "100m"), of("c", "1")],
            vec![of("a", "100m"), of("b", "2")],
            vec![of("a", "100m"), more],
        ] {
            assert!(!same_components(&ours, &theirs), "{theirs:?}");
        }
    }

    /// Nothing less than none, and nothing more than a binding can say.
    #[test]
    fn replicas_stay_in_range() {
        for (replicas, expected) in [(-1, 0), (3, 3), (i64::MAX, i32::MAX)] {
            assert_eq!(component("a", replicas, None).replicas, expected);
        }
    }
}

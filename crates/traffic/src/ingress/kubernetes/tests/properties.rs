use proptest::prelude::*;

use super::{Cluster, desired, gateway};
use crate::ingress::fixtures::{Fixture, binding, blocked, cluster, slice, template};
use crate::ingress::kubernetes::KubernetesPlan;

fn any_fixture() -> impl Strategy<Value = (Fixture, Vec<String>)> {
    let slices = proptest::collection::btree_set(("[st]", "m[1-3]", "[xy]"), 0..8);
    let states = proptest::collection::vec(0..3_u8, 3);
    let services = proptest::collection::vec("[stu]", 0..4);
    (slices, states, services).prop_map(|(slices, states, services)| {
        let mut fixture = Fixture::default()
            .with_binding("s", binding("s", &["m1", "m2", "m3"]))
            .with_binding("t", binding("t", &["m1", "m2"]))
            .with_template(template("s", &[("web", 80)]))
            .with_template(template("t", &[("web", 80), ("dns", 53)]));
        for (state, name) in states.into_iter().zip(["m1", "m2", "m3"]) {
            fixture = match state {
                0 => fixture.with_cluster(cluster(name)),
                1 => fixture.with_cluster(blocked(name)),
                _ => fixture,
            };
        }
        let slices: Vec<_> = slices
            .iter()
            .map(|(service, cluster, name)| slice(service, cluster, name, &["10.0.0.1"]))
            .collect();
        (fixture.with_slices(&slices), services)
    })
}

proptest! {
    /// From any state one plan reaches the desired state and a second changes nothing.
    #[test]
    fn one_plan_converges(
        (before, named_before) in any_fixture(),
        (now, named_now) in any_fixture(),
    ) {
        let [before, now] = [(before, named_before), (now, named_now)].map(|(fixture, named)| {
            let named: Vec<&str> = named.iter().map(String::as_str).collect();
            desired(&fixture, &named)
        });
        let mut gateway = Cluster::converged(&before);
        gateway.apply(&gateway.plan(&now));
        prop_assert_eq!(gateway.plan(&now), KubernetesPlan::default());
        prop_assert_eq!(gateway, Cluster::converged(&now));
    }

    /// No endpoint of a blocked cluster is ever desired.
    #[test]
    fn blocked_endpoints_are_never_desired((fixture, services) in any_fixture()) {
        let services: Vec<&str> = services.iter().map(String::as_str).collect();
        let desired = desired(&fixture, &services);
        for slice in gateway().objects(&desired).slices {
            let cluster = &slice.metadata.labels.as_ref().unwrap()["karmada-rs.io/cluster"];
            let seen = fixture.clusters.get(cluster);
            prop_assert!(seen.is_some_and(|cluster| cluster.remedy_actions().is_empty()));
        }
    }
}

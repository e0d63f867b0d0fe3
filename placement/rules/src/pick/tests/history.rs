use std::collections::BTreeSet;

use fleet_api::policy::PlacementPolicy;
use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Event {
    Policy(Value),
    Number(u32),
    Leaves(usize),
    Joins(usize),
    Silent(usize),
    Back,
    BindAll,
}

fn event() -> impl Strategy<Value = Event> {
    let policies = prop_oneof![
        Just(json!({ "placementType": "PickN" })),
        Just(
            json!({ "placementType": "PickN", "topologySpreadConstraints": [
            { "topologyKey": "zone" }] })
        ),
        Just(
            json!({ "placementType": "PickN", "affinity": { "clusterAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": { "clusterSelectorTerms": [
                { "labelSelector": { "matchLabels": { "zone": "1" } } }] } } } })
        ),
    ];
    prop_oneof![
        policies.prop_map(Event::Policy),
        (0..6_u32).prop_map(Event::Number),
        (0..8_usize).prop_map(Event::Leaves),
        (0..8_usize).prop_map(Event::Joins),
        (0..8_usize).prop_map(Event::Silent),
        Just(Event::Back),
        Just(Event::BindAll),
    ]
}

proptest! {
    /// Whatever happens: never more than asked for, never twice in one cluster, never short while a cluster fits, and
    /// a cluster that has the placement under the policy keeps it (`schedule` also sees that a second pass writes nothing).
    #[test]
    fn numbers_hold_in_any_history(events in proptest::collection::vec(event(), 1..25)) {
        let zoned = |n: usize| cluster(&format!("c{n}"), &json!({ "zone": (n % 3).to_string() }));
        let mut world = World::new((0..4).map(zoned).collect(), &json!({ "placementType": "PickN" }));
        let (mut number, mut index) = (2, 0);
        world.number(number);
        for event in events {
            let before = world.scheduled();
            let mut may_lose = false;
            match event {
                Event::Policy(policy) => {
                    index += 1;
                    world.adopt(&policy, index);
                    may_lose = true;
                }
                Event::Number(wanted) => {
                    number = wanted;
                    may_lose = true;
                }
                Event::Leaves(n) => {
                    world.clusters.retain(|one| one.metadata.name() != format!("c{n}"));
                    may_lose = true;
                }
                Event::Joins(n) => {
                    if world.clusters.iter().all(|one| one.metadata.name() != format!("c{n}")) {
                        world.clusters.push(zoned(n));
                    }
                }
                Event::Silent(n) => world.ineligible.push(format!("c{n}")),
                Event::Back => world.ineligible.clear(),
                Event::BindAll => world.bind_all(),
            }
            world.number(number);
            let after = world.schedule();
            let distinct: BTreeSet<_> = after.iter().collect();
            prop_assert_eq!(distinct.len(), after.len());
            prop_assert!(after.len() <= number as usize);
            if !may_lose {
                prop_assert!(before.iter().all(|name| after.contains(name)));
            }
            let policy: PlacementPolicy = world.policy.spec.policy.clone().unwrap();
            let is_plain = policy.affinity.is_none() && policy.topology_spread_constraints.is_empty();
            let eligible = world.clusters.iter().filter(|one| {
                !world.ineligible.iter().any(|name| name == one.metadata.name())
            });
            if is_plain && after.len() < number as usize {
                prop_assert!(eligible.count() <= after.len());
            }
            prop_assert_eq!(world.is_fulfilled(), after.len() == number as usize);
        }
    }
}

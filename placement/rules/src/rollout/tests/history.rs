//! Random histories, judged by the objects of the members and not by our own reading of the reports.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

#[derive(Clone, Copy, Debug)]
enum Event {
    Snapshot(u8),
    Strategy(bool),
    Schedules(u8),
    Unschedules(usize),
    Unreachable(usize),
    Reachable,
    Leaves(usize),
    Says(usize, Says),
    AllSay(Says),
    Gone,
    Time(i64),
}

fn says() -> impl Strategy<Value = Says> {
    prop_oneof![
        4 => Just(Says::Available),
        1 => Just(Says::Untrackable),
        2 => Just(Says::Unavailable),
        1 => Just(Says::Refused),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        2 => (0..4_u8).prop_map(Event::Snapshot),
        1 => any::<bool>().prop_map(Event::Strategy),
        1 => (0..12_u8).prop_map(Event::Schedules),
        1 => (0..12_usize).prop_map(Event::Unschedules),
        1 => (0..12_usize).prop_map(Event::Unreachable),
        1 => Just(Event::Reachable),
        1 => (0..12_usize).prop_map(Event::Leaves),
        6 => (0..12_usize, says()).prop_map(|(place, says)| Event::Says(place, says)),
        2 => says().prop_map(Event::AllSay),
        2 => Just(Event::Gone),
        2 => (0..400_i64).prop_map(Event::Time),
    ]
}

/// The knowledge of the oracle about a binding: the words of its member, their time and generation.
#[derive(Clone, Default)]
struct Known {
    last: Option<(Option<i64>, Says, i64)>,
    has_served: bool,
}

#[derive(Clone)]
struct Judge {
    world: World,
    known: BTreeMap<String, Known>,
}

impl Judge {
    fn says(&mut self, place: usize, says: Says) {
        let Some(binding) = self.world.bindings.get(place).cloned() else {
            return;
        };
        if binding.spec.state == BindingState::Scheduled
            || self
                .world
                .unreachable
                .contains(&binding.spec.target_cluster)
        {
            return;
        }
        self.world.report(place, says);
        let known = self
            .known
            .entry(binding.metadata.name().to_owned())
            .or_default();
        let serves = |says| matches!(says, Says::Available | Says::Untrackable);
        let since = match known.last {
            // A serving version goes on doing so, whether or not that can be tracked.
            Some((generation, before, since))
                if generation == binding.metadata.generation
                    && (before == says || (serves(before) && serves(says))) =>
            {
                since
            }
            _ => self.world.seconds,
        };
        known.last = Some((binding.metadata.generation, says, since));
        known.has_served |= serves(says);
    }

    fn known(&self, binding: &Binding) -> Known {
        self.known
            .get(binding.metadata.name())
            .cloned()
            .unwrap_or_default()
    }

    fn is_reachable(&self, binding: &Binding) -> bool {
        let cluster = &binding.spec.target_cluster;
        !self.world.unreachable.contains(cluster) && !self.world.gone.contains(cluster)
    }

    fn says_now(&self, binding: &Binding) -> Option<(Says, i64)> {
        let (generation, says, since) = self.known(binding).last?;
        (generation == binding.metadata.generation).then_some((says, self.world.seconds - since))
    }

    fn is_ready(&self, binding: &Binding) -> bool {
        let strategy = apply_strategy(&self.world.placement);
        binding.spec.state != BindingState::Scheduled
            && !binding.metadata.is_deleting()
            && self.is_reachable(binding)
            && binding.spec.apply_strategy == Some(strategy)
            && match self.says_now(binding) {
                Some((Says::Available, _)) => true,
                Some((Says::Untrackable, age)) => age >= 60,
                _ => false,
            }
    }

    /// Returns `true` if nothing can be lost: it never served, or is broken.
    fn is_expendable(&self, binding: &Binding) -> bool {
        !self.known(binding).has_served
            || match self.says_now(binding) {
                Some((Says::Refused, _)) => true,
                Some((Says::Unavailable, age)) => age >= 600,
                _ => false,
            }
    }

    /// Plans a step, and judges it.
    fn step(&mut self) -> Result<bool, TestCaseError> {
        let plan = self.world.plan();
        let before = self.clone();
        let is_quiet = plan.writes.is_empty();
        self.world.write(plan);
        let bindings = before.world.bindings.iter();
        let wanted = bindings.clone().filter(|one| {
            one.spec.state != BindingState::Unscheduled && !one.metadata.is_deleting()
        });
        let none_is_wanted = wanted.clone().count() == 0;
        let wanted = wanted.filter(|one| before.is_reachable(one)).count();
        let quarter = wanted.div_ceil(4);
        let ready = bindings.clone().filter(|one| before.is_ready(one)).count();
        let (mut lost, mut at_risk, mut newly_bound) = (0, false, 0);
        for (old, new) in bindings.clone().zip(&self.world.bindings) {
            let is_deleted = new.metadata.is_deleting() && !old.metadata.is_deleting();
            let is_given = new.spec.resource_snapshot_name != old.spec.resource_snapshot_name;
            let is_gone = before.world.gone.contains(&old.spec.target_cluster);
            if is_deleted {
                prop_assert_eq!(old.spec.state, BindingState::Unscheduled);
            }
            if (is_deleted && !is_gone && !none_is_wanted && !before.is_expendable(old)) || is_given
            {
                prop_assert!(
                    before.is_reachable(old),
                    "an unreachable cluster is changed"
                );
            }
            let disturbs = (is_deleted && !none_is_wanted && !is_gone)
                || (is_given && old.spec.state == BindingState::Bound);
            if disturbs {
                lost += usize::from(before.is_ready(old));
                at_risk |= !before.is_expendable(old);
            }
            newly_bound += usize::from(is_given && old.spec.state == BindingState::Scheduled);
        }
        if at_risk {
            prop_assert!(
                ready - lost + quarter >= wanted,
                "{} of {} are left",
                ready - lost,
                wanted
            );
        }
        let present = bindings
            .filter(|one| one.spec.state != BindingState::Scheduled && before.is_reachable(one));
        if newly_bound > 0 {
            prop_assert!(
                present.count() + newly_bound <= wanted + quarter,
                "too many have it"
            );
        }
        Ok(is_quiet)
    }

    fn happens(&mut self, event: Event) {
        let world = &mut self.world;
        match event {
            Event::Snapshot(n) => world.snapshot = format!("s{n}"),
            Event::Strategy(server_side) => {
                let kind = if server_side {
                    "ServerSideApply"
                } else {
                    "ClientSideApply"
                };
                world.placement.spec.strategy.apply_strategy =
                    from_value(json!({ "type": kind })).unwrap();
            }
            Event::Schedules(n) => {
                let cluster = format!("c{n}");
                world.gone.remove(&cluster);
                let has_one = world
                    .bindings
                    .iter()
                    .any(|one| one.spec.target_cluster == cluster && !one.metadata.is_deleting());
                if !has_one {
                    world.schedule(&cluster);
                }
            }
            Event::Unschedules(place) => {
                if let Some(binding) = world.bindings.get_mut(place)
                    && binding.spec.state != BindingState::Unscheduled
                {
                    binding.spec.state = BindingState::Unscheduled;
                    binding.metadata.generation = binding.metadata.generation.map(|n| n + 1);
                }
            }
            Event::Unreachable(n) => {
                world.unreachable.insert(format!("c{n}"));
            }
            Event::Reachable => world.unreachable.clear(),
            Event::Leaves(n) => {
                let cluster = format!("c{n}");
                for place in 0..world.bindings.len() {
                    if self.world.bindings[place].spec.target_cluster == cluster {
                        self.happens(Event::Unschedules(place));
                    }
                }
                self.world.gone.insert(cluster);
            }
            Event::Says(place, says) => self.says(place, says),
            Event::AllSay(says) => {
                (0..world.bindings.len()).for_each(|place| self.says(place, says));
            }
            Event::Gone => world.bindings.retain(|one| !one.metadata.is_deleting()),
            Event::Time(seconds) => world.seconds += seconds,
        }
    }
}

proptest! {
    /// Case F29: at each step enough are ready and not too many have it, whatever the members say; and once they say
    /// that all is well, every cluster has the latest, and none that has left has anything.
    #[test]
    fn floor_and_ceiling_hold(
        clusters in 0..10_usize,
        events in proptest::collection::vec(event(), 1..60),
    ) {
        let mut judge = Judge { world: World::new(clusters), known: BTreeMap::new() };
        for event in events {
            judge.happens(event);
            judge.step()?;
        }
        judge.world.unreachable.clear();
        for _ in 0..200 {
            judge.happens(Event::Gone);
            judge.happens(Event::AllSay(Says::Available));
            if judge.step()? {
                break;
            }
            judge.world.seconds += 60;
        }
        let bindings = &judge.world.bindings;
        let bound = bindings.iter().filter(|one| one.spec.state == BindingState::Bound);
        prop_assert_eq!(bound.count(), bindings.len());
        prop_assert_eq!(judge.world.with(&judge.world.snapshot), bindings.len());
        let clusters: BTreeSet<_> = bindings.iter().map(|one| &one.spec.target_cluster).collect();
        prop_assert_eq!(clusters.len(), bindings.len());
    }
}

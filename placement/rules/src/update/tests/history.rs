//! Random histories, judged by the versions given to clusters and the words of members and persons, not by those of runs.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::super::stages::concurrency;
use super::world::Done;
use super::*;

#[derive(Clone, Copy, Debug)]
enum Event {
    Says(usize, bool),
    AllSay(bool),
    Answers(usize, bool),
    Wants(bool),
    Time(i64),
    Dies(usize),
    Snapshot,
    Another,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => (0..9_usize, proptest::bool::weighted(0.8)).prop_map(|(place, says)| Event::Says(place, says)),
        2 => any::<bool>().prop_map(Event::AllSay),
        4 => (0..4_usize, proptest::bool::weighted(0.7)).prop_map(|(place, says)| Event::Answers(place, says)),
        2 => any::<bool>().prop_map(Event::Wants),
        3 => (0..200_i64).prop_map(Event::Time),
        3 => (0..4_usize).prop_map(Event::Dies),
        1 => Just(Event::Snapshot),
        1 => Just(Event::Another),
    ]
}

/// The observations of one run.
#[derive(Default)]
struct Seen {
    /// The clusters that it gave its snapshot, and whether that has become ready since.
    given: BTreeMap<String, bool>,
    /// The requests that a person has approved.
    approved: BTreeSet<String>,
}

struct Judge {
    world: World,
    seen: Vec<Seen>,
}

impl Judge {
    fn new(clusters: &[(&str, &str)]) -> Self {
        let mut judge = Self {
            world: World::new(clusters),
            seen: Vec::new(),
        };
        judge.begin();
        judge
    }

    fn begin(&mut self) {
        let name = format!("run{}", self.seen.len());
        self.world.start(&name, "");
        self.seen.push(Seen::default());
    }

    fn says(&mut self, place: usize, is_available: bool) {
        let Some(binding) = self.world.bindings.get(place) else {
            return;
        };
        let cluster = binding.spec.target_cluster.clone();
        let snapshot = binding.spec.resource_snapshot_name.clone();
        if !self.world.report(&cluster, is_available) {
            return;
        }
        for (seen, run) in self.seen.iter_mut().zip(&self.world.runs) {
            if snapshot_of(run, []).as_ref() == Some(&snapshot) {
                seen.given
                    .entry(cluster.clone())
                    .and_modify(|ready| *ready = true);
            }
        }
    }

    fn answers(&mut self, place: usize, is_approved: bool) {
        let last = self.seen.len() - 1;
        let names = ["after-canary", "before-staging"];
        let name = format!("run{}-{}", last - (place / 2).min(last), names[place % 2]);
        if self.world.answer(&name, is_approved) && is_approved {
            let run: usize = name[3..4].parse().unwrap();
            self.seen[run].approved.insert(name);
        }
    }

    fn happens(&mut self, event: Event) -> usize {
        let world = &mut self.world;
        match event {
            Event::Says(place, says) => self.says(place, says),
            Event::AllSay(says) => {
                (0..world.bindings.len()).for_each(|place| self.says(place, says));
            }
            Event::Answers(place, says) => self.answers(place, says),
            Event::Wants(goes_on) => world.want(if goes_on {
                RunState::Run
            } else {
                RunState::Stop
            }),
            Event::Time(seconds) => world.seconds += seconds,
            Event::Dies(writes) => return writes,
            Event::Snapshot => world.snapshot(),
            Event::Another if self.seen.len() < 9 => self.begin(),
            Event::Another => {}
        }
        usize::MAX
    }

    /// Takes a step of every run, and judges it.
    fn step(&mut self, most: usize) -> Result<bool, TestCaseError> {
        let mut is_quiet = true;
        for run in 0..self.seen.len() {
            let before = self.world.runs[run].clone();
            let done = self.world.step(run, most);
            is_quiet &= done.is_empty();
            for done in done {
                let Done::Given(cluster, snapshot) = done else {
                    continue;
                };
                let status = before.status.clone().unwrap_or_default();
                prop_assert_eq!(before.spec.state, RunState::Run);
                let expected = format!("web-{}-snapshot", status.resource_snapshot_index_used);
                prop_assert_eq!(snapshot, expected);
                let place = status
                    .stages
                    .iter()
                    .position(|stage| stage.clusters.iter().any(|one| one.cluster_name == cluster));
                self.seen[run].given.insert(cluster.clone(), false);
                self.judge(run, place.unwrap())?;
            }
        }
        Ok(is_quiet)
    }

    /// Judges a run that has just given a cluster of this stage its snapshot.
    fn judge(&self, run: usize, place: usize) -> Result<(), TestCaseError> {
        let status = self.world.runs[run].status.clone().unwrap_or_default();
        let configs = status.strategy.unwrap_or_default().stages;
        let seen = &self.seen[run];
        let stage = &status.stages[place];
        let is_open = |cluster: &str| seen.given.get(cluster) == Some(&false);
        let open = stage
            .clusters
            .iter()
            .filter(|one| is_open(&one.cluster_name));
        let most = concurrency(
            configs[place].max_concurrency.as_ref(),
            stage.clusters.len(),
        );
        prop_assert!(
            open.count() <= most.unwrap(),
            "too many are updated at once"
        );
        let tasks = |stage: &fleet_api::update::StageStatus, is_before: bool| {
            let tasks = if is_before {
                &stage.before_tasks
            } else {
                &stage.after_tasks
            };
            let names = tasks.iter().map(|task| task.approval_request_name.clone());
            names.filter(|name| !name.is_empty()).collect::<Vec<_>>()
        };
        for name in tasks(stage, true) {
            prop_assert!(seen.approved.contains(&name), "{} is not approved", name);
        }
        for earlier in &status.stages[..place] {
            for cluster in &earlier.clusters {
                prop_assert!(
                    !is_open(&cluster.cluster_name),
                    "an earlier stage is not done"
                );
            }
            if earlier.clusters.is_empty() {
                continue;
            }
            for name in tasks(earlier, true)
                .into_iter()
                .chain(tasks(earlier, false))
            {
                prop_assert!(seen.approved.contains(&name), "{} is not approved", name);
            }
        }
        Ok(())
    }
}

fn clusters() -> impl Strategy<Value = Vec<(&'static str, &'static str)>> {
    let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
    let env = prop_oneof![Just("canary"), Just("staging"), Just("prod")];
    proptest::collection::vec(env, 1..9).prop_map(move |envs| names.into_iter().zip(envs).collect())
}

proptest! {
    /// Case F85: whatever members and persons say, and whenever the program dies, no more clusters are updated at once than may
    /// be, no stage comes before its approvals and before the stages before it, and who is to stop gives nothing. And once
    /// all goes well, a last run ends well, and every cluster has its snapshot.
    #[test]
    fn bounds_and_order_hold(
        clusters in clusters(),
        events in proptest::collection::vec(event(), 1..80),
    ) {
        let mut judge = Judge::new(&clusters);
        for event in events {
            let most = judge.happens(event);
            judge.step(most)?;
        }
        // Two that go on would undo each other's work.
        for run in &mut judge.world.runs {
            run.spec.state = RunState::Stop;
        }
        judge.begin();
        let last = judge.seen.len() - 1;
        for _ in 0..300 {
            judge.happens(Event::AllSay(true));
            for place in 0..2 {
                judge.answers(place, true);
            }
            judge.world.seconds += 61;
            judge.step(usize::MAX)?;
        }
        prop_assert!(judge.step(usize::MAX)?);
        let run = &judge.world.runs[last];
        let said = said(run.status.as_ref().unwrap()).unwrap();
        prop_assert_eq!(&*said.reason, "UpdateRunSucceeded", "{}", said.message);
        let snapshot = format!("web-{}-snapshot", judge.world.snapshots.len() - 1);
        prop_assert_eq!(judge.world.with(&snapshot).len(), clusters.len());
    }
}

use jiff::Timestamp;
use karmada_api::{Cluster, Remedy};
use objects::write::{Plan, Write};
use serde::Deserialize;

use super::bound::{BlockBound, Claim, MaxBlocked, OverBound};
use super::{ActionChange, Allowance, Scope, plan};

/// The future of a cluster, as far as remedies decide about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Forecast {
    /// The cluster with the actions that it comes to have.
    pub cluster: Cluster,
    /// The changes of its actions on the way there.
    pub changes: Vec<ActionChange>,
    /// Set if the bound keeps it unblocked although a condition requires a block.
    pub over_bound: Option<OverBound>,
}

/// Returns the future of `clusters`, which are all of the fleet, under `remedies`, which are all there are:
/// the state in which [`plan`] has nothing left to write at `now`. `complete` is as in an [`Allowance`].
pub fn forecast<'a>(
    clusters: impl IntoIterator<Item = &'a Cluster>,
    remedies: &[&Remedy],
    now: Timestamp,
    complete: bool,
    max: MaxBlocked,
) -> Vec<Forecast> {
    let scopes: Vec<(Scope, &Remedy)> = remedies.iter().map(|r| (Scope::of(r), *r)).collect();
    let fleet = clusters.into_iter().map(|cluster| {
        let known = Forecast::present(cluster);
        let covering = scopes
            .iter()
            .filter(|(scope, _)| scope.covers(known.name()));
        let covering: Vec<&Remedy> = covering.map(|(_, remedy)| *remedy).collect();
        (known, covering)
    });
    let mut fleet: Vec<(Forecast, Vec<&Remedy>)> = fleet.collect();
    let mut bound = BlockBound::new(max);
    bound.set_clusters(fleet.len());
    // A block that is lifted makes room for another one, so one round may not be the last.
    loop {
        for (known, remedies) in &fleet {
            let claim = Claim::of(&known.cluster, remedies.iter().copied(), now);
            bound.replace(known.name(), claim);
        }
        bound.admit();
        let mut is_settled = true;
        for (known, remedies) in &mut fleet {
            known.over_bound = bound.over(known.name());
            let allowance = Allowance {
                complete,
                may_block: known.over_bound.is_none(),
            };
            let remedies = remedies.iter().copied();
            let Plan { writes, events, .. } = plan(&known.cluster, remedies, now, allowance);
            if let Some(write) = writes.first() {
                is_settled = false;
                known.write(write, events);
            }
        }
        if is_settled {
            return fleet.into_iter().map(|(known, _)| known).collect();
        }
    }
}

impl Forecast {
    fn present(cluster: &Cluster) -> Self {
        Self {
            cluster: cluster.clone(),
            changes: Vec::new(),
            over_bound: None,
        }
    }

    fn name(&self) -> &str {
        self.cluster.metadata.name.as_deref().unwrap_or_default()
    }

    fn write(&mut self, write: &Write, changes: Vec<ActionChange>) {
        let status = self.cluster.status.get_or_insert_default();
        let actions = &write.body()["status"]["remedyActions"];
        status.remedy_actions = Option::deserialize(actions).unwrap_or_default();
        status.unclear_actions = false;
        self.changes.extend(changes);
    }
}

#[cfg(test)]
mod tests {
    use karmada_api::TRAFFIC_CONTROL;
    use karmada_api::condition::DNS_READY;
    use proptest::prelude::*;
    use serde_json::{Value, from_value, json};

    use super::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn cluster(name: &str, dns: &str, actions: &[&str]) -> Cluster {
        let actions = (!actions.is_empty()).then_some(actions);
        from_value(json!({
            "metadata": { "name": name }, "spec": {},
            "status": { "conditions": [{ "type": DNS_READY, "status": dns }], "remedyActions": actions },
        }))
        .unwrap()
    }

    fn remedy(name: &str, spec: &Value) -> Remedy {
        from_value(json!({ "metadata": { "name": name }, "spec": spec })).unwrap()
    }

    fn on_dns() -> Remedy {
        let wanted =
            json!({ "conditionType": DNS_READY, "operator": "Equal", "conditionStatus": "False" });
        let matches = json!([{ "clusterConditionMatch": wanted }]);
        remedy(
            "dns",
            &json!({ "decisionMatches": matches, "actions": [TRAFFIC_CONTROL] }),
        )
    }

    fn blocked(forecast: &[Forecast]) -> Vec<&str> {
        let blocked = forecast.iter();
        blocked
            .filter(|known| known.cluster.remedy_actions() == [TRAFFIC_CONTROL])
            .map(Forecast::name)
            .collect()
    }

    /// A block that is lifted makes room for the next.
    #[test]
    fn lifted_block_makes_room() {
        let clusters = [
            cluster("m1", "False", &[]),
            cluster("m2", "False", &[]),
            cluster("m3", "True", &[TRAFFIC_CONTROL]),
        ];
        let found = forecast(&clusters, &[&on_dns()], NOW, true, MaxBlocked::Count(1));
        assert_eq!(blocked(&found), ["m1"]);
        assert_eq!(found[0].changes.len(), 1);
        assert!(found[1].over_bound.is_some());
        assert!(matches!(
            found[2].changes[..],
            [ActionChange::Cleared { .. }]
        ));
    }

    /// Without remedies nothing stays blocked unless one could not be read.
    #[test]
    fn no_remedies_no_blocks() {
        let clusters = [cluster("m1", "False", &[TRAFFIC_CONTROL])];
        let all = MaxBlocked::Percent(100);
        assert_eq!(blocked(&forecast(&clusters, &[], NOW, true, all)), [""; 0]);
        assert_eq!(blocked(&forecast(&clusters, &[], NOW, false, all)), ["m1"]);
    }

    proptest! {
        /// A forecast is settled and within the bound.
        #[test]
        fn forecast_keeps_the_bound(
            states in proptest::collection::vec((any::<bool>(), any::<bool>()), 0..6),
            max in 0_usize..4,
        ) {
            let clusters: Vec<Cluster> = states
                .iter()
                .enumerate()
                .map(|(n, (fails, is_blocked))| {
                    let actions: &[&str] = if *is_blocked { &[TRAFFIC_CONTROL] } else { &[] };
                    cluster(&format!("m{n}"), if *fails { "False" } else { "True" }, actions)
                })
                .collect();
            let max = MaxBlocked::Count(max);
            let remedy = on_dns();
            let once = forecast(&clusters, &[&remedy], NOW, true, max);
            let later: Vec<Cluster> = once.iter().map(|known| known.cluster.clone()).collect();
            let twice = forecast(&later, &[&remedy], NOW, true, max);
            prop_assert!(twice.iter().all(|known| known.changes.is_empty()));
            prop_assert_eq!(blocked(&once), blocked(&twice));
            // Blocks that are set already stay, whatever the bound.
            let kept = states.iter().filter(|(fails, is_blocked)| *fails && *is_blocked).count();
            let MaxBlocked::Count(max) = max else { unreachable!() };
            prop_assert!(blocked(&once).len() <= max.max(kept));
        }
    }
}

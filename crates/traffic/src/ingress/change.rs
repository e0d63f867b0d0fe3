//! The difference between two desired states of an ingress, for who has to judge it beforehand.

use std::fmt;

use serde::Serialize;

use super::admission::Admission;
use super::desired::{Backend, ClusterEndpoints, Desired};
use super::problem::Problem;

/// The change of the clusters that serve one backend Service of an ingress.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BackendChange {
    /// The namespace of the ingress.
    pub namespace: String,
    /// The name of the ingress.
    pub ingress: String,
    /// The Service.
    pub service: String,
    /// The clusters that serve it no more.
    pub lost: Vec<String>,
    /// The clusters that serve it from then on.
    pub gained: Vec<String>,
    /// Those that serve it then.
    pub left: Vec<ServingCluster>,
    /// Set if nothing serves it any more.
    #[serde(rename = "cutOff")]
    pub is_cut_off: bool,
}

/// A cluster that serves a backend Service. Displays its name and its state, unless that is the usual one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ServingCluster {
    /// The cluster.
    pub name: String,
    /// The particular thing about it.
    pub state: ServingState,
}

/// The particular thing about a cluster that serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum ServingState {
    /// There is none.
    Admitted,
    /// It is blocked, and no other cluster serves the Service.
    Readmitted,
    /// It could not answer a request.
    NoReadyEndpoints,
}

/// Returns the changes of the backends of one ingress.
pub fn backend_changes(before: &Desired, after: &Desired) -> Vec<BackendChange> {
    let pairs = after.backends.iter();
    pairs
        .filter_map(|then| {
            let now = before.backend(&then.service)?;
            let service = &then.service;
            let is_cut_off = is_all_blocked(after, service) && !is_all_blocked(before, service);
            let is_changed = is_cut_off || admissions(now).ne(admissions(then));
            is_changed.then(|| BackendChange {
                namespace: after.key.namespace.clone(),
                ingress: after.key.name.clone(),
                service: then.service.clone(),
                lost: missing(now, then),
                gained: missing(then, now),
                left: then.serving(),
                is_cut_off,
            })
        })
        .collect()
}

/// Returns `true` if nothing serves a Service because every cluster is blocked.
fn is_all_blocked(desired: &Desired, service: &str) -> bool {
    let mut problems = desired.problems().into_iter();
    problems
        .any(|problem| matches!(problem, Problem::AllBlocked { service: of, .. } if of == service))
}

fn admissions(backend: &Backend) -> impl Iterator<Item = (&str, Admission)> {
    let clusters = backend.clusters.iter();
    clusters.map(|cluster| (cluster.cluster.as_str(), cluster.admission))
}

/// Returns the clusters that serve a Service in `a` and not in `b`.
fn missing(a: &Backend, b: &Backend) -> Vec<String> {
    let served = a.clusters.iter().filter(|c| c.admission.is_served());
    let clusters = served.map(|cluster| &cluster.cluster);
    let missing = clusters.filter(|cluster| {
        let other = b.cluster(cluster);
        other.is_none_or(|other| !other.admission.is_served())
    });
    missing.cloned().collect()
}

impl Backend {
    /// Returns the clusters that serve the Service.
    pub fn serving(&self) -> Vec<ServingCluster> {
        // Without any endpoints nobody collects them, and the program that serves the traffic knows more.
        let collects = self.clusters.iter().any(ClusterEndpoints::takes_requests);
        let served = self.clusters.iter().filter(|c| c.admission.is_served());
        served
            .map(|cluster| ServingCluster {
                name: cluster.cluster.clone(),
                state: if cluster.admission == Admission::Readmitted {
                    ServingState::Readmitted
                } else if collects && !cluster.takes_requests() {
                    ServingState::NoReadyEndpoints
                } else {
                    ServingState::Admitted
                },
            })
            .collect()
    }
}

impl fmt::Display for ServingCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        f.write_str(match self.state {
            ServingState::Admitted => "",
            ServingState::Readmitted => " (blocked, readmitted)",
            ServingState::NoReadyEndpoints => " (no ready endpoints)",
        })
    }
}

#[cfg(test)]
mod tests {
    use objects::Key;

    use super::super::choice::WhenAllBlocked;
    use super::super::decision::{Settings, desired};
    use super::super::fixtures::{Fixture, binding, blocked, cluster, ingress, slice};
    use super::*;

    /// Returns the desired state while these clusters of two, in which Service `s` runs, are blocked. A
    /// person decided to block those in `decided`.
    fn served(blocks: &[&str], decided: &[&str], when_all_blocked: WhenAllBlocked) -> Desired {
        let both = ["m1", "m2"];
        let mut fixture = Fixture::default()
            .with_binding("s", binding("s", &both))
            .with_slices(&both.map(|name| slice("s", name, "x", &["10.0.0.1"])));
        for name in both {
            let is_blocked = blocks.contains(&name);
            fixture = fixture.with_cluster(if is_blocked {
                blocked(name)
            } else {
                cluster(name)
            });
        }
        fixture.decided = decided.iter().map(|&name| name.to_owned()).collect();
        let settings = Settings {
            when_all_blocked,
            ..Settings::new("karmada-rs.io/ingress-controller".parse().unwrap())
        };
        let (key, ingress) = (Key::new("ns", "i"), ingress("i", &["s"], None));
        desired(&key, &ingress, &[].into(), &fixture, &settings)
    }

    /// Returns the clusters that a change to these blocks loses, gains and leaves, and whether none is left.
    fn change(before: &[&str], after: &Desired) -> Option<([String; 3], bool)> {
        let before = served(before, &[], WhenAllBlocked::FailOpen);
        let mut changes = backend_changes(&before, after);
        let change = changes.pop()?;
        let ingress = Key::new(&change.namespace, &change.ingress);
        assert!(changes.is_empty() && ingress == before.key);
        let lists = [change.lost, change.gained, texts(&change.left)];
        Some((lists.map(|names| names.join(", ")), change.is_cut_off))
    }

    fn texts(clusters: &[ServingCluster]) -> Vec<String> {
        clusters.iter().map(ToString::to_string).collect()
    }

    /// A backend tells which clusters it loses and gains and which are left.
    #[test]
    fn backend_lists_lost_and_gained() {
        let open = WhenAllBlocked::FailOpen;
        for (before, after, expected) in [
            (
                &[][..],
                served(&["m1"], &[], open),
                Some((["m1", "", "m2"], false)),
            ),
            (
                &["m1"],
                served(&[], &[], open),
                Some((["", "m1", "m1, m2"], false)),
            ),
            (&["m1"], served(&["m1"], &[], open), None),
            (
                &["m1"],
                served(&["m1", "m2"], &["m2"], open),
                Some((["m2", "m1", "m1 (blocked, readmitted)"], false)),
            ),
            (
                &["m1"],
                served(&["m1", "m2"], &[], WhenAllBlocked::FailClosed),
                Some((["m2", "", ""], true)),
            ),
        ] {
            let expected = expected.map(|(lists, cut_off)| (lists.map(str::to_owned), cut_off));
            assert_eq!(change(before, &after), expected, "{before:?}");
        }
    }

    /// A cluster without ready endpoints says so if another has some.
    #[test]
    fn missing_endpoints_are_marked() {
        let fixture = Fixture::default()
            .with_cluster(cluster("m1"))
            .with_cluster(cluster("m2"))
            .with_binding("s", binding("s", &["m1", "m2"]));
        let settings = Settings::new("karmada-rs.io/ingress-controller".parse().unwrap());
        let ingress = ingress("i", &["s"], None);
        let known = [slice("s", "m1", "x", &["10.0.0.1"])];
        let [without, with] = [fixture.clone(), fixture.with_slices(&known)].map(|fixture| {
            let key = Key::new("ns", "i");
            let desired = desired(&key, &ingress, &[].into(), &fixture, &settings);
            texts(&desired.backends[0].serving())
        });
        assert_eq!(without, ["m1", "m2"]);
        assert_eq!(with, ["m1", "m2 (no ready endpoints)"]);
    }
}

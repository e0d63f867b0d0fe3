//! The rollout of the Deployment: the version that its template wants, and its state in each member.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::Deployment;
use karmada_api::condition::FALSE;
use karmada_api::work::DISPATCHING;
use karmada_api::{ClusterView, Work, execution_namespace, names};
use kube::ResourceExt;
use tokio::time::Instant;

use super::state::{RolloutClusterState, RolloutState};
use super::timeline::{Stage, Step, Timeline};
use crate::objects::{NAMESPACE, WEB};
use crate::rollout::{image, version, version_of};
use crate::update::Update;

#[derive(Debug)]
pub(super) struct Rollout {
    /// The image of the template; none while there is no template.
    wanted: Option<String>,
    members: BTreeMap<String, MemberRollout>,
}

#[derive(Debug, Default)]
struct MemberRollout {
    pods: Pods,
    /// The number of changes of the Deployment there.
    generation: i64,
    paused: bool,
    /// The keys of the taints that drive workloads out.
    taints: Vec<String>,
}

/// The pods of a Deployment in a member.
#[derive(Debug, Default)]
pub(super) struct Pods {
    /// The image of those that are ready.
    pub(super) runs: Option<String>,
    /// The image of those that are not ready yet.
    pub(super) starts: Option<String>,
}

impl Pods {
    /// Notes the Deployment, and returns `true` if pods of another image are ready than before.
    pub(super) fn note(&mut self, copy: Option<&Deployment>) -> bool {
        let image = copy.and_then(image).map(str::to_owned);
        let (runs, starts) = match copy {
            Some(copy) if is_rolled_out(copy) => (image, None),
            // A change of anything else than the image starts no pods.
            Some(_) if image == self.runs => (image, None),
            Some(copy) if has_ready_pods(copy) => (self.runs.clone(), image),
            Some(_) => (None, image),
            None => (None, None),
        };
        self.starts = starts;
        let before = std::mem::replace(&mut self.runs, runs);
        before != self.runs
    }
}

/// Returns the website among the Deployments of a namespace.
pub(super) fn web(deployments: &[Arc<Deployment>]) -> Option<&Deployment> {
    let found = deployments.iter().find(|it| it.name_any() == WEB);
    found.map(Arc::as_ref)
}

/// Returns `true` if all pods are of the newest template and ready.
fn is_rolled_out(deployment: &Deployment) -> bool {
    let replicas = deployment.spec.as_ref().and_then(|spec| spec.replicas);
    let replicas = replicas.unwrap_or_default();
    deployment.status.as_ref().is_some_and(|status| {
        status.observed_generation == deployment.metadata.generation
            && status.updated_replicas.unwrap_or_default() >= replicas
            && status.available_replicas.unwrap_or_default() >= replicas
            && status.unavailable_replicas.is_none_or(|count| count == 0)
    })
}

fn has_ready_pods(deployment: &Deployment) -> bool {
    let status = deployment.status.as_ref();
    status.is_some_and(|status| status.ready_replicas.unwrap_or_default() > 0)
}

impl Rollout {
    pub(super) fn new(members: &[String]) -> Self {
        let members = members
            .iter()
            .map(|name| (name.clone(), MemberRollout::default()));
        Self {
            wanted: None,
            members: members.collect(),
        }
    }

    /// Applies an update that is about the workload.
    pub(super) fn apply(&mut self, at: Instant, update: &Update, timeline: &mut Timeline) {
        match update {
            Update::Templates(templates) => self.templates(at, templates, timeline),
            Update::Profiles(profiles) => self.profiles(at, profiles, timeline),
            Update::Works(works) => self.works(at, works, timeline),
            Update::Copies {
                cluster, copies, ..
            } => self.copies(at, cluster, copies, timeline),
            _ => {}
        }
    }

    /// Notes the templates in the control plane.
    fn templates(&mut self, at: Instant, templates: &[Arc<Deployment>], timeline: &mut Timeline) {
        let wanted = web(templates).and_then(image).map(str::to_owned);
        let before = std::mem::replace(&mut self.wanted, wanted);
        if let (Some(before), Some(now)) = (before, &self.wanted)
            && before != *now
        {
            let text = format!("Deployment {WEB} wants version {}", version(now));
            let step = Step(Stage::VersionWanted, true);
            timeline.add_for_all(at, self.members.keys(), step, text);
        }
    }

    /// Notes the Deployments in a member.
    fn copies(
        &mut self,
        at: Instant,
        cluster: &str,
        copies: &[Arc<Deployment>],
        timeline: &mut Timeline,
    ) {
        let Some(member) = self.members.get_mut(cluster) else {
            return;
        };
        let copy = web(copies);
        let generation = copy.and_then(|copy| copy.metadata.generation);
        member.generation = generation.unwrap_or_default();
        if !member.pods.note(copy) {
            return;
        }
        let runs = member.pods.runs.as_ref();
        let text = match runs {
            Some(image) => format!("runs version {}", version(image)),
            None => format!("its Deployment {WEB} is gone"),
        };
        timeline.add(at, cluster, Step(Stage::VersionRuns, runs.is_some()), text);
    }

    /// Notes the Works of all members.
    fn works(&mut self, at: Instant, works: &[Arc<Work>], timeline: &mut Timeline) {
        let name = names::work("Deployment", NAMESPACE, WEB);
        for (cluster, member) in &mut self.members {
            let namespace = execution_namespace(cluster);
            let work = works.iter().find(|work| {
                work.name_any() == name && work.namespace().as_ref() == Some(&namespace)
            });
            let Some(condition) = work.and_then(|work| work.condition(DISPATCHING)) else {
                member.paused = false;
                continue;
            };
            let paused = condition.status == FALSE;
            if std::mem::replace(&mut member.paused, paused) == paused {
                continue;
            }
            let (stage, text) = if paused {
                (Stage::RolloutPaused, "its Work is suspended: changes wait")
            } else {
                (Stage::RolloutResumed, "its Work is dispatched again")
            };
            timeline.add(at, cluster, Step(stage, !paused), text.to_owned());
        }
    }

    /// Notes the taints of all members.
    fn profiles(&mut self, at: Instant, profiles: &[Arc<ClusterView>], timeline: &mut Timeline) {
        for (cluster, member) in &mut self.members {
            let profile = profiles.iter().find(|it| it.name_any() == *cluster);
            let taints = profile.into_iter().flat_map(|it| &it.spec.taints);
            let evicting = taints.filter(|taint| taint.effect == "NoExecute");
            let taints: Vec<_> = evicting.map(|taint| taint.key.clone()).collect();
            if std::mem::replace(&mut member.taints, taints.clone()) == taints {
                continue;
            }
            let text = if taints.is_empty() {
                "no taint drives workloads out any more".to_owned()
            } else {
                format!("tainted NoExecute: {}", taints.join(", "))
            };
            timeline.add(at, cluster, Step(Stage::Taints, taints.is_empty()), text);
        }
    }

    pub(super) fn state(&self) -> RolloutState {
        let members = self
            .members
            .iter()
            .map(|(name, member)| RolloutClusterState {
                name: name.clone(),
                runs: version_of(member.pods.runs.as_deref()),
                starts: version_of(member.pods.starts.as_deref()),
                paused: member.paused,
                generation: member.generation,
            });
        RolloutState {
            wanted: version_of(self.wanted.as_deref()),
            clusters: members.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::timeline::Clock;
    use super::*;

    /// Only taints that drive workloads out are in the history of the workload.
    #[tokio::test]
    async fn only_evicting_taints_show() {
        let mut rollout = Rollout::new(&["m1".to_owned()]);
        let mut timeline = Timeline::new(Clock::new());
        let mut note = |taints: serde_json::Value| {
            let cluster = json!({ "metadata": { "name": "m1" }, "spec": { "taints": taints } });
            let profiles = vec![Arc::new(serde_json::from_value(cluster).unwrap())];
            rollout.apply(Instant::now(), &Update::Profiles(profiles), &mut timeline);
            let entries = timeline.take().into_iter();
            entries.map(|it| (it.step(), it.text)).collect::<Vec<_>>()
        };
        let harmless = json!({ "key": "a", "effect": "NoSchedule" });
        let evicting = json!({ "key": "b", "effect": "NoExecute" });
        assert_eq!(note(json!([harmless])), []);
        let tainted = "tainted NoExecute: b".to_owned();
        let both = json!([harmless, evicting]);
        assert_eq!(note(both.clone()), [(Step(Stage::Taints, false), tainted)]);
        assert_eq!(note(both), []);
        let freed = "no taint drives workloads out any more".to_owned();
        assert_eq!(note(json!([])), [(Step(Stage::Taints, true), freed)]);
    }
}

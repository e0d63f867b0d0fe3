//! `kubectl remedy why crp/NAME`, or `rp/NAME` in a namespace: the clusters of a placement, why each waits, and why others
//! were not picked.

use fleet_api::names::PARENT_PLACEMENT;
use fleet_api::{Binding, Placement, PolicySnapshot, ResourceSnapshot, StagedUpdateRun};
use karmada_api::Condition;
use karmada_runtime::scope::objects_in;
use kube::Client;
use kube::api::ListParams;
use objects::Key;
use objects::Scope;
use placement_rules::explain::{ExplainFacts, PlacementExplanation, explain};

use crate::answer::Answer;
use crate::error::Error;
use crate::manifest::Format;
use crate::{manifest, terminal};

/// The prefix of the name of a placement of each scope.
const PREFIXES: [(&str, Scope); 4] = [
    ("crp/", Scope::Cluster),
    ("clusterresourceplacement/", Scope::Cluster),
    ("rp/", Scope::Namespaced),
    ("resourceplacement/", Scope::Namespaced),
];

/// Returns the scope and the name of the placement that an argument names in place of a cluster.
pub(crate) fn named(argument: &str) -> Option<(Scope, &str)> {
    let mut names = PREFIXES.iter();
    names.find_map(|&(prefix, scope)| Some((scope, argument.strip_prefix(prefix)?)))
}

/// Returns the key of the placement of this scope and name, in this namespace if it has one.
pub(crate) fn key(scope: Scope, namespace: &str, name: &str) -> Key {
    match scope {
        Scope::Cluster => Key::cluster_scoped(name),
        Scope::Namespaced => Key::new(namespace, name),
    }
}

/// Explains a placement.
pub(crate) async fn run(
    key: &Key,
    output: Option<Format>,
    client: &Client,
) -> Result<Answer, Error> {
    let explanation = read(key, client).await?;
    terminal::print(&match output {
        None => text(&explanation),
        Some(format) => manifest::text(&explanation, format)?,
    });
    Ok(Answer::Yes)
}

async fn read(key: &Key, client: &Client) -> Result<PlacementExplanation, Error> {
    let Key { namespace, name } = key;
    let of_placement = ListParams::default().labels(&format!("{PARENT_PLACEMENT}={name}"));
    let placements = objects_in::<Placement>(client.clone(), namespace);
    let Some(placement) = placements.get_opt(name).await.map_err(failed)? else {
        let all = match Scope::of(namespace) {
            Scope::Cluster => "crp",
            Scope::Namespaced => "rp -A",
        };
        let problem = format!("there is no placement {key}: `kubectl get {all}` lists them");
        return Err(Error::Unusable(problem));
    };
    let policies = objects_in::<PolicySnapshot>(client.clone(), namespace);
    let policies = policies.list(&of_placement).await.map_err(failed)?;
    let snapshots = objects_in::<ResourceSnapshot>(client.clone(), namespace);
    let snapshots = snapshots
        .list_metadata(&of_placement)
        .await
        .map_err(failed)?;
    let bindings = objects_in::<Binding>(client.clone(), namespace);
    let bindings = bindings.list(&of_placement).await.map_err(failed)?;
    let runs = runs(client, namespace).await?;
    let snapshots: Vec<_> = snapshots.iter().map(|one| &one.metadata).collect();
    Ok(explain(&ExplainFacts {
        placement: &placement,
        policies: &policies.iter().collect::<Vec<_>>(),
        snapshots: &snapshots,
        bindings: &bindings.iter().collect::<Vec<_>>(),
        runs: &runs.iter().collect::<Vec<_>>(),
    }))
}

fn failed(error: kube::Error) -> Error {
    Error::request("read placements", error)
}

/// Returns the runs of a namespace, or those without one if it is empty.
async fn runs(client: &Client, namespace: &str) -> Result<Vec<StagedUpdateRun>, Error> {
    let runs = objects_in::<StagedUpdateRun>(client.clone(), namespace);
    match runs.list(&ListParams::default()).await {
        Ok(runs) => Ok(runs.items),
        // A hub with older definitions has none.
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Vec::new()),
        Err(error) => Err(Error::request("read staged update runs", error)),
    }
}

/// Returns the condition of a placement without the kind of that.
fn step(condition: &str) -> &str {
    let mut kinds = [Scope::Cluster, Scope::Namespaced]
        .map(Placement::kind_of)
        .into_iter();
    let step = kinds.find_map(|kind| condition.strip_prefix(kind));
    step.unwrap_or(condition)
}

/// Returns an explanation as a person reads it.
fn text(explanation: &PlacementExplanation) -> String {
    let snapshot = explanation.latest_snapshot.as_deref();
    let latest = explanation
        .clusters
        .iter()
        .filter(|one| one.is_latest)
        .count();
    let mut lines = vec![format!(
        "{} is in {} clusters; {latest} of them have or get its latest snapshot ({})",
        explanation.placement,
        explanation.clusters.len(),
        snapshot.unwrap_or("none yet"),
    )];
    lines.push("\nWhat it says".to_owned());
    lines.extend(explanation.conditions.iter().map(|one| {
        let Condition {
            type_,
            status,
            reason,
            message,
            ..
        } = one;
        format!("  {} is {status}: {reason}: {message}", step(type_))
    }));
    lines.push("\nClusters".to_owned());
    for cluster in &explanation.clusters {
        lines.push(format!("  {} {}", cluster.name, cluster.state));
        if !cluster.snapshot.is_empty() {
            let age = if cluster.is_latest {
                "the latest"
            } else {
                "an older one"
            };
            lines.push(format!("    snapshot: {}, {age}", cluster.snapshot));
        }
        lines.push(format!("    picked: {}", cluster.picked));
        let objects = cluster.failures.iter().chain(&cluster.differences);
        lines.extend(objects.map(|object| format!("    {object}")));
    }
    if !explanation.runs.is_empty() {
        lines.push("\nRuns".to_owned());
    }
    let is_namespaced = explanation.placement.contains('/');
    let request = if is_namespaced { "areq" } else { "careq" };
    for run in &explanation.runs {
        lines.push(format!("  {} {}", run.name, run.state));
        let approvals = run.approvals.iter();
        lines.extend(approvals.map(|name| format!("    waits for approval of {request}/{name}")));
    }
    if !explanation.others.is_empty() {
        lines.push("\nNot picked".to_owned());
        let others = explanation.others.iter();
        lines.extend(others.map(|other| format!("  {}: {}", other.name, other.reason)));
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use placement_rules::explain::{OtherCluster, PlacedCluster};
    use placement_rules::update::RunExplanation;

    use super::*;

    #[test]
    fn placements_are_told_from_clusters() {
        for (argument, scope) in [
            ("crp/web", Scope::Cluster),
            ("clusterresourceplacement/web", Scope::Cluster),
            ("rp/web", Scope::Namespaced),
            ("resourceplacement/web", Scope::Namespaced),
        ] {
            assert_eq!(named(argument), Some((scope, "web")));
        }
        assert_eq!(named("web"), None);
    }

    /// Only a placement of a namespace is looked for in one.
    #[test]
    fn scope_decides_about_namespaces() {
        let keys = [Scope::Cluster, Scope::Namespaced].map(|scope| key(scope, "shop", "web"));
        assert_eq!(keys.map(|key| key.to_string()), ["web", "shop/web"]);
        assert_eq!(step("ResourcePlacementApplied"), "Applied");
    }

    #[test]
    fn explanation_is_read_by_people() {
        let explanation = PlacementExplanation {
            placement: "web".to_owned(),
            conditions: vec![Condition {
                type_: "ClusterResourcePlacementApplied".to_owned(),
                status: "False".to_owned(),
                reason: "ApplyFailed".to_owned(),
                message: "1 cluster".to_owned(),
                ..Condition::default()
            }],
            latest_snapshot: Some("web-1-snapshot".to_owned()),
            clusters: vec![PlacedCluster {
                name: "m1".to_owned(),
                picked: "by name".to_owned(),
                snapshot: "web-0-snapshot".to_owned(),
                is_latest: false,
                state: "is picked, and waits for its turn".to_owned(),
                failures: vec!["ConfigMap a/b: refused".to_owned()],
                differences: vec!["ConfigMap a/c differs".to_owned()],
            }],
            others: vec![OtherCluster {
                name: "m2".to_owned(),
                reason: "tainted".to_owned(),
            }],
            runs: vec![RunExplanation {
                name: "go".to_owned(),
                state: "says UpdateRunWaiting: after-stage tasks".to_owned(),
                approvals: vec!["go-after-canary".to_owned()],
            }],
        };
        let expected = "\
web is in 1 clusters; 0 of them have or get its latest snapshot (web-1-snapshot)

What it says
  Applied is False: ApplyFailed: 1 cluster

Clusters
  m1 is picked, and waits for its turn
    snapshot: web-0-snapshot, an older one
    picked: by name
    ConfigMap a/b: refused
    ConfigMap a/c differs

Runs
  go says UpdateRunWaiting: after-stage tasks
    waits for approval of careq/go-after-canary

Not picked
  m2: tainted
";
        assert_eq!(text(&explanation), expected);
    }
}

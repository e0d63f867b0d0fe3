//! A report as a person reads it, and as a program does.

use serde_json::{Value, from_value, json};

use super::{cluster, facts, now, unbound};
use crate::manifest;
use crate::manifest::Format;
use crate::propagation::facts::Facts;
use crate::propagation::report::Report;

/// Returns a Deployment that a quota keeps out of one member, while it leaves another.
fn stuck() -> Facts {
    let mut facts = facts();
    let spec = &mut facts.binding.as_mut().unwrap().spec;
    let task = json!({ "fromCluster": "member3", "purgeMode": "Gracefully",
        "reason": "TaintUntolerated", "message": "the cluster\nis tainted",
        "creationTimestamp": "2026-11-21T23:51:01Z" });
    spec.graceful_eviction_tasks = Some(vec![from_value(task).unwrap()]);
    let status = facts.works[1].status.as_mut().unwrap();
    for condition in status
        .conditions
        .iter_mut()
        .filter(|one| one.type_ == "Applied")
    {
        condition.status = "False".to_owned();
        condition.message = "exceeded quota".to_owned();
    }
    let message = "cluster is not reachable: connection refused";
    let away = cluster("member3", "False", "ClusterNotReachable", message);
    facts.clusters.extend([away]);
    facts
}

/// The chain is shown from the template to each member, the cause first and the command last.
#[test]
fn chain_is_read_by_people() {
    let expected = "\
Deployment shop/web is not applied in member2: exceeded quota.

Template
  Deployment shop/web of apps/v1, generation 2

Policy
  PropagationPolicy shop/web

Binding
  shop/web-deployment: Scheduled is True for 10m: Success: Binding has been scheduled successfully.
  it asks for 4 replicas, each with cpu 100m, memory 64Mi
  it is leaving member3 for 10m: TaintUntolerated: the cluster is tainted

Clusters
  NAME      NEED        REPLICAS   WORK                 HEALTH    AGE      LAST WRITER                  MEMBER
  member1   scheduled   2          applied              Healthy   10m      karmada-controller-manager   ready
  member2   scheduled   2          not applied for 9m   Healthy   10m      karmada-controller-manager   ready
  member3   leaving     <none>     <none>               <none>    <none>   <none>                       not ready: ClusterNotReachable
  member2: exceeded quota
  member3: cluster is not reachable: connection refused

Next
  kubectl describe work/web-56d6c779bb -n karmada-es-member2
";
    assert_eq!(Report::of(&stuck()).text(now()), expected);
}

/// Without a policy, those that come near are shown with their obstacle.
#[test]
fn near_policies_are_shown() {
    let mut facts = unbound();
    let selector = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": "api" });
    facts.policies[0].spec.resource_selectors = vec![from_value(selector).unwrap()];
    let text = Report::of(&facts).text(now());
    let section = "\nPolicy\n  not PropagationPolicy shop/web: selects the name api\n\nBinding\n  none\n\nClusters\n  none\n";
    assert!(text.contains(section), "{text}");
    facts = unbound();
    let spec = &mut facts.policies[0].spec;
    spec.activation_preference = Some("Lazy".to_owned());
    let pause = json!({ "dispatchingOnClusters": { "clusterNames": ["member1", "member2"] } });
    spec.suspension = from_value(pause).unwrap();
    let text = Report::of(&facts).text(now());
    let section = "\nPolicy\n  PropagationPolicy shop/web, which is Lazy\n  it suspends dispatching to: member1, member2\n";
    assert!(text.contains(section), "{text}");
}

/// The report is for programs too.
#[test]
fn story_is_machine_readable() {
    let report = Report::of(&stuck());
    let text = manifest::text(&report, Format::Json).unwrap();
    let read: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(read["cause"], "ApplyFailed");
    assert_eq!(read["summary"], report.summary);
    assert_eq!(read["next"], report.next);
    assert_eq!(
        read["template"],
        json!({ "apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "web",
            "exists": true, "generation": 2 })
    );
    assert_eq!(
        read["policy"],
        json!({ "name": "PropagationPolicy shop/web", "lazy": false })
    );
    assert_eq!(read["binding"]["scheduled"]["status"], "True");
    assert_eq!(read["binding"]["evictions"][0]["fromCluster"], "member3");
    assert_eq!(
        read["clusters"][1],
        json!({
            "name": "member2", "need": "Scheduled", "replicas": 2,
            "work": {
                "name": "web-56d6c779bb", "state": "not applied",
                "since": "2026-11-21T23:51:02Z", "message": "exceeded quota", "health": "Healthy",
                "created": "2026-11-21T23:51:01Z",
                "lastWriter": { "name": "karmada-controller-manager", "time": "2026-11-21T23:51:01Z" },
            },
            "member": { "ready": "True", "reason": "ClusterReady", "message": "cluster is healthy",
                "since": "2026-11-21T23:59:00Z" },
        })
    );
    let yaml = manifest::text(&report, Format::Yaml).unwrap();
    assert_eq!(serde_saphyr::from_str::<Value>(&yaml).unwrap(), read);
}

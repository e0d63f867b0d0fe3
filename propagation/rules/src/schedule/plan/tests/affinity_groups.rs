use std::collections::BTreeSet;

use super::*;
use crate::schedule::AffinityGroups;

fn clusters(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

/// Returns the names of the clusters that a binding gets which has these, and the reason and message if it gets none.
fn decided(groups: &AffinityGroups, has: &[&str]) -> Result<Vec<String>, (String, String)> {
    let mut binding = unscheduled(&json!({}), 1);
    binding["spec"]["clusters"] = has
        .iter()
        .map(|name| json!({ "name": name, "replicas": 1 }))
        .collect();
    let pass = Pass {
        affinity_groups: Some(groups),
        estimates: None,
        ..pass()
    };
    let plan = planned(&binding, &fleet(), pass);
    apply_plan(&mut binding, &plan, false);
    let (status, reason, message) = scheduled_condition(&binding);
    if status == "True" {
        Ok(target_names(&binding))
    } else {
        Err((reason, message))
    }
}

fn together_with(others: &[&[&str]]) -> AffinityGroups {
    AffinityGroups {
        together: others.iter().map(|names| clusters(names)).collect(),
        apart: BTreeSet::new(),
    }
}

/// A workload goes only where all those are that it is to be together with. Case I91.
#[test]
fn together_shares_clusters() {
    assert_eq!(
        decided(&together_with(&[]), &[]).unwrap().len(),
        3,
        "the first chooses"
    );
    let two: [&[&str]; 2] = [&["member1", "member2"], &["member2", "member3"]];
    assert_eq!(decided(&together_with(&two), &[]).unwrap(), ["member2"]);
    let nowhere: [&[&str]; 2] = [&["member1"], &["member2"]];
    let (reason, message) = decided(&together_with(&nowhere), &[]).unwrap_err();
    assert_eq!(reason, "NoClusterFit");
    assert_eq!(
        message,
        "0/3 clusters are available: 3 ResourceBinding with the same affinity group does not target this cluster."
    );
}

fn apart_from(names: &[&str]) -> AffinityGroups {
    AffinityGroups {
        together: Vec::new(),
        apart: clusters(names),
    }
}

/// A workload goes to no cluster of those that it is to be apart from. Case I91.
#[test]
fn apart_shares_none() {
    let others = apart_from(&["member1", "member3"]);
    assert_eq!(decided(&others, &[]).unwrap(), ["member2"]);
    let everywhere = apart_from(&["member1", "member2", "member3"]);
    let (reason, message) = decided(&everywhere, &[]).unwrap_err();
    assert_eq!(reason, "NoClusterFit");
    assert_eq!(
        message,
        "0/3 clusters are available: 3 cluster already has workload with the same anti-affinity group."
    );
}

/// A running workload stays, whoever comes into its groups. Case I91.
#[test]
fn running_workload_stays() {
    let others = AffinityGroups {
        together: vec![clusters(&["member2"])],
        apart: clusters(&["member1"]),
    };
    assert_eq!(
        decided(&others, &["member1"]).unwrap(),
        ["member1", "member2"]
    );
}

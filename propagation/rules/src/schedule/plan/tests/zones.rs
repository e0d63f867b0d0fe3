use super::*;

/// Returns the placement that spreads by these fields, over one or two clusters.
fn by(fields: &[&str]) -> Value {
    let constraints = fields
        .iter()
        .map(|field| json!({ "spreadByField": field, "minGroups": 1, "maxGroups": 2 }));
    json!({ "spreadConstraints": constraints.collect::<Vec<_>>() })
}

/// Returns three clusters, of which the first has neither zone nor provider.
fn in_zones() -> Vec<ClusterView> {
    let mut clusters = fleet();
    for cluster in clusters.iter_mut().skip(1) {
        cluster.spec.zones = vec!["z".to_owned()];
        cluster.spec.provider = "p".to_owned();
    }
    clusters
}

/// As in Karmada, zones and providers are not counted: only a cluster without one drops out, and the
/// constraint by cluster, or region, decides. Case I90.
#[test]
fn zones_and_providers_only_filter() {
    for field in ["zone", "provider"] {
        let after = settled(unscheduled(&by(&[field, "cluster"]), 1), &in_zones());
        let both = ["member2", "member3"].map(|name| (name.to_owned(), 1));
        assert_eq!(targets(&after), both, "{field}");
        let (_, reason, message) =
            scheduled_condition(&settled(unscheduled(&by(&[field]), 1), &in_zones()));
        assert_eq!(reason, "SchedulerError");
        assert_eq!(
            message,
            "failed to select clusters: just support cluster and region spread constraint"
        );
    }
    let (_, reason, message) = scheduled_condition(&settled(
        unscheduled(&by(&["zone", "cluster"]), 1),
        &fleet(),
    ));
    assert_eq!(reason, "NoClusterFit");
    assert_eq!(
        message,
        "0/3 clusters are available: 3 cluster(s) did not have zones property."
    );
}

/// A label makes no groups, as in Karmada, and beside a constraint by cluster it is not looked at. Case I90.
#[test]
fn label_makes_no_groups() {
    let label = json!({ "spreadByLabel": "zone", "maxGroups": 1 });
    let alone = json!({ "spreadConstraints": [label] });
    let (_, reason, message) = scheduled_condition(&settled(unscheduled(&alone, 3), &fleet()));
    assert_eq!(reason, "SchedulerError");
    assert_eq!(
        message,
        "failed to select clusters: just support cluster and region spread constraint"
    );
    let mut beside = by(&["cluster"]);
    let constraints = beside["spreadConstraints"].as_array_mut().unwrap();
    constraints.push(label);
    let after = settled(unscheduled(&beside, 1), &fleet());
    assert_eq!(targets(&after).len(), 2);
}

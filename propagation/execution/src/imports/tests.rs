use serde_json::{from_value, json};

use super::*;

/// The objects that the watches have shown.
#[derive(Default)]
struct Seen {
    imports: Imports,
    works: Store<StoredWork>,
    clusters: Store<ClusterView>,
}

impl Seen {
    /// The Works `m1-web`, `m2-web`, `m1-db` and `m2-api` bring the slices of these clusters and Services to `m3`.
    fn new() -> Self {
        let mut seen = Self::default();
        for (source, service) in [("m1", "web"), ("m2", "web"), ("m1", "db"), ("m2", "api")] {
            seen.bring(source, service, true);
        }
        seen
    }

    fn bring(&mut self, source: &str, service: &str, ready: bool) -> Vec<String> {
        let manifest = json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": { "namespace": "shop", "labels": { "kubernetes.io/service-name": service },
                "annotations": { "endpointslice.karmada.io/provision-cluster": source } },
            "addressType": "IPv4", "ports": [{ "port": 80 }],
            "endpoints": [{ "addresses": ["10.0.0.1"], "conditions": { "ready": ready } }],
        });
        let work = json!({
            "apiVersion": "work.karmada.io/v1alpha1", "kind": "Work",
            "metadata": { "name": format!("{source}-{service}"), "namespace": "karmada-es-m3" },
            "spec": { "workload": { "manifests": [manifest] } },
        });
        let work = Decoded::Valid(from_value(work).unwrap());
        let changes = self.works.observe(Event::Apply(work)).objects;
        let woken = changes
            .iter()
            .map(|change| self.imports.observe_work("m3", change));
        names(woken.flatten())
    }

    fn cluster(&mut self, name: &str, actions: &[&str]) -> Vec<String> {
        let cluster =
            json!({ "metadata": { "name": name }, "status": { "remedyActions": actions } });
        let cluster = Decoded::Valid(from_value(cluster).unwrap());
        let changes = self.clusters.observe(Event::Apply(cluster)).objects;
        let woken = changes
            .iter()
            .map(|change| self.imports.observe_cluster(change));
        names(woken.flatten())
    }

    fn remedy(&mut self, remedy: Decoded<Remedy>) -> Vec<String> {
        names(self.imports.observe_remedies(Event::Apply(remedy)))
    }

    fn blocks(&self, service: &str) -> ImportBlocks {
        let known = Known {
            works: &self.works,
            clusters: &self.clusters,
        };
        let service = Key::new("shop", service);
        self.imports.blocks("m3", &service, known)
    }

    fn withholds(&self, service: &str, cluster: &str) -> bool {
        self.blocks(service).withheld.contains(cluster)
    }
}

fn names(works: impl IntoIterator<Item = Key>) -> Vec<String> {
    works.into_iter().map(|work| work.name).collect()
}

/// The Remedy of a person who blocks `m1`.
fn decision(version: &str) -> Remedy {
    let remedy = json!({
        "apiVersion": "remedy.karmada.io/v1alpha1", "kind": "Remedy",
        "metadata": { "name": "window", "resourceVersion": version },
        "spec": { "clusterAffinity": { "clusterNames": ["m1"] }, "actions": ["TrafficControl"] },
    });
    from_value(remedy).unwrap()
}

/// A cluster whose actions change wakes the Works of every Service that it has slices of, those of other clusters too, and
/// no others.
#[test]
fn block_wakes_works_of_services() {
    let mut seen = Seen::new();
    seen.cluster("m2", &[]);
    let woken = ["m1-db", "m1-web", "m2-web"];
    assert_eq!(seen.cluster("m1", &["TrafficControl"]), woken);
    assert!(seen.withholds("web", "m1") && !seen.withholds("web", "m2"));
    // It is the only one that has this Service.
    assert!(seen.blocks("db").readmitted.contains("m1"));
    assert_eq!(seen.cluster("m1", &["TrafficControl"]), [""; 0]);
    assert_eq!(seen.cluster("m1", &[]), woken);
    assert!(!seen.withholds("web", "m1"));
}

/// Slices that begin or cease to serve wake the other Works of their Service.
#[test]
fn slices_wake_their_service() {
    let mut seen = Seen::new();
    seen.cluster("m1", &["TrafficControl"]);
    seen.cluster("m2", &[]);
    assert_eq!(seen.bring("m2", "web", true), [""; 0]);
    assert_eq!(seen.bring("m2", "web", false), ["m1-web"]);
    assert!(!seen.withholds("web", "m1"));
    assert_eq!(seen.bring("m2", "web", true), ["m1-web"]);
    assert!(seen.withholds("web", "m1"));
}

/// A person's decision counts as long as it lasts, and wakes blocked clusters only. A Remedy that cannot be read may be
/// such a decision.
#[test]
fn decisions_wake_while_blocked() {
    let mut seen = Seen::new();
    seen.cluster("m1", &[]);
    assert_eq!(seen.remedy(Decoded::Valid(decision("1"))), [""; 0]);
    seen.cluster("m1", &["TrafficControl"]);
    assert!(seen.withholds("db", "m1"));
    let woken = ["m1-db", "m1-web", "m2-web"];
    let mut expiring = decision("2");
    let end = ("remedy.karmada-rs.io/expires-at", "2026-11-30T08:00:00Z");
    let annotations = [end].map(|(key, value)| (key.to_owned(), value.to_owned()));
    expiring.metadata.annotations = Some(annotations.into());
    assert_eq!(seen.remedy(Decoded::Valid(expiring)), [""; 0]);
    let end = end.1.parse().unwrap();
    assert_eq!(seen.imports.next_expiry(), Some(end));
    assert_eq!(names(seen.imports.expire(end)), woken);
    assert!(seen.blocks("db").readmitted.contains("m1"));
    let unreadable = Decoded::Invalid {
        metadata: from_value(json!({ "name": "unreadable" })).unwrap(),
        error: "no such field".to_owned(),
    };
    assert_eq!(seen.remedy(unreadable), woken);
    assert!(seen.withholds("db", "m1"));
}

/// The slices of blocked clusters are counted by their outcome.
#[test]
fn blocked_slices_are_counted() {
    let mut seen = Seen::new();
    seen.cluster("m1", &["TrafficControl"]);
    seen.cluster("m2", &[]);
    let known = Known {
        works: &seen.works,
        clusters: &seen.clusters,
    };
    let counted = BlockedSlices {
        withheld: 1,
        readmitted: 1,
    };
    let expected = BTreeMap::from([("m3".to_owned(), counted)]);
    assert_eq!(seen.imports.counts(known), expected);
}

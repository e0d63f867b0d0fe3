//! Serving together: a host with Services that call each other in their cluster is half broken where one of them is gone.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::networking::v1::IngressSpec;

use super::admission::Admission;
use super::desired::{Backend, ClusterEndpoints, Desired};
use super::kubernetes::all_rules;
use crate::cached::Cached;

impl Desired {
    /// Takes a host off each cluster in which one of its Services takes no requests, while all do in another.
    pub(super) fn serve_together(&mut self) {
        if self.is_unclear() {
            return;
        }
        let hosts = hosts(&self.routes).into_iter();
        let hosts: Vec<Host> = hosts
            .filter_map(|services| {
                let clusters = self.serving_all(&services);
                (!clusters.is_empty()).then_some(Host { services, clusters })
            })
            .collect();
        for backend in &mut self.backends {
            let of = hosts.iter();
            let of = of.filter(|host| host.services.contains(&backend.service));
            let of: Vec<&Host> = of.collect();
            // Hosts that share it may have no cluster in common.
            if !backend.takers().any(|cluster| serves_all(cluster, &of)) {
                continue;
            }
            for cluster in &mut backend.clusters {
                if cluster.admission.is_served() && !serves_all(cluster, &of) {
                    cluster.admission = Admission::Incomplete;
                }
            }
        }
    }

    /// Returns `true` if a Service may take requests where none are known.
    fn is_unclear(&self) -> bool {
        let mut backends = self.backends.iter();
        !self.unread_slices.is_empty()
            || backends.any(|it| it.is_location_unread || it.ports == Cached::Unread)
    }

    /// Returns the clusters in which all of `services` take requests.
    fn serving_all(&self, services: &BTreeSet<String>) -> BTreeSet<String> {
        let backends = services.iter().filter_map(|name| self.backend(name));
        let mut takers = backends.map(|backend| {
            let clusters = backend.takers().map(|cluster| cluster.cluster.clone());
            clusters.collect::<BTreeSet<String>>()
        });
        let first = takers.next().unwrap_or_default();
        takers.fold(first, |common, next| &common & &next)
    }
}

/// A host that can be served.
struct Host {
    services: BTreeSet<String>,
    /// The clusters in which all of them take requests.
    clusters: BTreeSet<String>,
}

fn serves_all(cluster: &ClusterEndpoints, hosts: &[&Host]) -> bool {
    let mut hosts = hosts.iter();
    hosts.all(|host| host.clusters.contains(&cluster.cluster))
}

/// Returns the Services of each host that has several.
fn hosts(routes: &IngressSpec) -> Vec<BTreeSet<String>> {
    let mut hosts: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for rule in all_rules(routes) {
        let services = hosts.entry(rule.host.unwrap_or_default()).or_default();
        let paths = rule.http.into_iter().flat_map(|http| http.paths);
        services.extend(paths.filter_map(|path| Some(path.backend.service?.name)));
    }
    let several = hosts.into_values().filter(|services| services.len() > 1);
    several.collect()
}

impl Backend {
    /// Returns the clusters to which requests are sent, and that take them.
    fn takers(&self) -> impl Iterator<Item = &ClusterEndpoints> {
        let served = self.clusters.iter().filter(|it| it.admission.is_served());
        served.filter(|cluster| cluster.takes_requests())
    }
}

#[cfg(test)]
mod tests {
    use objects::Key;

    use super::super::fixtures::{
        Fixture, binding, blocked, ingress, slice, template, two_services,
    };
    use super::super::{Problem, SERVE_ANNOTATION, Settings, desired};
    use super::*;

    /// Returns the desired state of an ingress with a host for each of `hosts`, which have these Services.
    fn serving(fixture: &Fixture, hosts: &[&[&str]], value: &str) -> Desired {
        let mut made = ingress("i", &[], None);
        let rules = hosts.iter().enumerate().map(|(number, services)| {
            let one = ingress("i", services, None).spec.ingress;
            let mut rule = one.rules.unwrap().remove(0);
            rule.host = Some(format!("{number}.example.com"));
            rule
        });
        made.spec.ingress.rules = Some(rules.collect());
        let annotation = (SERVE_ANNOTATION.to_owned(), value.to_owned());
        made.metadata.annotations = Some([annotation].into());
        let settings = Settings::new("example.com/ours".parse().unwrap());
        desired(&Key::new("ns", "i"), &made, &[].into(), fixture, &settings)
    }

    /// Returns the clusters that serve, each as `service cluster`.
    fn served(desired: &Desired) -> Vec<String> {
        let served = desired.backends.iter().flat_map(|backend| {
            let clusters = backend.clusters.iter();
            let served = clusters.filter(|cluster| cluster.admission.is_served());
            served.map(|cluster| format!("{} {}", backend.service, cluster.cluster))
        });
        served.collect()
    }

    const ALL: [&str; 3] = ["s m1", "s m2", "t m1"];

    /// k8gb#2326: one of the two Services of a host is gone from m2, which answers half of its paths.
    #[test]
    fn half_served_host_leaves() {
        let fixture = two_services();
        let together = serving(&fixture, &[&["s", "t"]], "together");
        assert_eq!(served(&together), ["s m1", "t m1"]);
        assert_eq!(
            together.backends[0].clusters[1].admission,
            Admission::Incomplete
        );
        assert_eq!(served(&serving(&fixture, &[&["s", "t"]], "apart")), ALL);
        let hosts: [&[&str]; 2] = [&["s"], &["t"]];
        assert_eq!(served(&serving(&fixture, &hosts, "together")), ALL);
    }

    /// Where no cluster serves all of a host, or nobody knows, each Service is served where it can be.
    #[test]
    fn last_clusters_stay() {
        let fixture = two_services().with_cluster(blocked("m1"));
        let together = serving(&fixture, &[&["s", "t"]], "together");
        assert_eq!(served(&together), ["s m2", "t m1"], "readmitted");
        let mut unread = two_services();
        unread.unread_slices = ["unread".to_owned()].into();
        assert_eq!(served(&serving(&unread, &[&["s", "t"]], "together")), ALL);
        let apart = two_services()
            .with_binding("u", binding("u", &["m2"]))
            .with_template(template("u", &[("web", 80)]))
            .with_slices(&[slice("u", "m2", "x", &["10.0.0.4"])]);
        let hosts: [&[&str]; 2] = [&["s", "t"], &["s", "u"]];
        let shared = serving(&apart, &hosts, "together");
        assert_eq!(served(&shared), ["s m1", "s m2", "t m1", "u m2"]);
    }

    /// A value that does not exist changes nothing, and is told.
    #[test]
    fn wrong_value_is_told() {
        let desired = serving(&two_services(), &[&["s", "t"]], "both");
        assert_eq!(served(&desired), ALL);
        let told: Vec<String> = desired.problems().iter().map(Problem::to_string).collect();
        assert_eq!(
            told,
            [format!(
                "annotation {SERVE_ANNOTATION} is \"both\" and must be apart or together; apart is in effect"
            )]
        );
    }
}

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::networking::v1::IngressSpec;
use objects::qualified_name::{is_label, is_subdomain};

use super::problem::DnsProblem;
use crate::ingress::kubernetes::all_rules;

/// Returns the names of an ingress, as ExternalDNS takes them, with the Services behind each.
pub(super) fn hosts(
    routes: &IngressSpec,
    problems: &mut BTreeSet<DnsProblem>,
) -> BTreeMap<String, BTreeSet<String>> {
    let mut hosts: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for rule in all_rules(routes) {
        let host = rule.host.unwrap_or_default();
        if host.is_empty() {
            // Every other host, which has no name.
            continue;
        }
        let name = host.trim_end_matches('.').to_ascii_lowercase();
        if !is_name(&name) {
            problems.insert(DnsProblem::InvalidHost { host });
            continue;
        }
        let services = hosts.entry(name).or_default();
        let paths = rule.http.into_iter().flat_map(|http| http.paths);
        services.extend(paths.filter_map(|path| Some(path.backend.service?.name)));
    }
    if hosts.is_empty() && problems.is_empty() {
        problems.insert(DnsProblem::NoHost);
    }
    hosts
}

/// Returns `true` for a name that a record can have, which may begin with `*.`.
fn is_name(name: &str) -> bool {
    let rest = name.strip_prefix("*.").unwrap_or(name);
    is_subdomain(rest) && rest.split('.').all(is_label) && rest.contains('.')
}

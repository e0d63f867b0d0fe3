use std::collections::BTreeSet;
use std::fmt;

use k8s_openapi::api::core::v1::ServicePort;
use k8s_openapi::api::networking::v1::ServiceBackendPort;

use super::desired::Desired;
use super::facts::Cached;
use super::locations::backends;

/// A reason why a route cannot work, for the user to fix.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Problem {
    /// The Service has no template.
    NoTemplate {
        /// The Service.
        service: String,
    },
    /// The template has no such port.
    NoPort {
        /// The Service.
        service: String,
        /// The port's name or number.
        port: String,
    },
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoTemplate { service } => {
                write!(f, "Service {service} does not exist in this namespace")
            }
            Self::NoPort { service, port } => write!(f, "Service {service} has no port {port}"),
        }
    }
}

impl Desired {
    /// Returns the problems of the routes.
    pub fn problems(&self) -> BTreeSet<Problem> {
        backends(&self.routes)
            .filter_map(|backend| backend.service.as_ref())
            .filter_map(|named| {
                let service = named.name.clone();
                match &self.backend(&service)?.ports {
                    Cached::Unread => None,
                    Cached::Absent => Some(Problem::NoTemplate { service }),
                    Cached::Present(ports) => {
                        let port = named.port.clone().unwrap_or_default();
                        let found = ports.iter().any(|p| is_port(&port, p));
                        (!found).then(|| Problem::NoPort {
                            service,
                            port: described(&port),
                        })
                    }
                }
            })
            .collect()
    }
}

fn is_port(named: &ServiceBackendPort, port: &ServicePort) -> bool {
    let named_name = named.name.as_deref().filter(|name| !name.is_empty());
    match named_name {
        Some(name) => port.name.as_deref() == Some(name),
        None => named.number == Some(port.port),
    }
}

fn described(port: &ServiceBackendPort) -> String {
    match (&port.name, port.number) {
        (Some(name), _) if !name.is_empty() => name.clone(),
        (_, number) => number.unwrap_or_default().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use karmada_api::{Key, MultiClusterIngressStatus};

    use super::super::fixtures::{Fixture, ingress_to_port, template};
    use super::*;

    #[test]
    fn a_route_to_a_missing_service_or_port_is_a_problem() {
        let fixture = Fixture {
            unread_templates: ["unread".to_owned()].into(),
            ..Fixture::default()
        };
        let fixture = fixture.with_template(template("s", &[("web", 80), ("", 81)]));
        let by_number = |n| ServiceBackendPort {
            number: Some(n),
            name: None,
        };
        let by_name = |name: &str| ServiceBackendPort {
            name: Some(name.to_owned()),
            number: None,
        };
        let problem = |service: &str, port: ServiceBackendPort| {
            let spec = ingress_to_port("i", service, port).spec.ingress;
            let desired = Desired::new(
                Key::new("ns", "i"),
                &spec,
                &MultiClusterIngressStatus::default(),
                &fixture,
            );
            let problems: Vec<String> = desired.problems().iter().map(Problem::to_string).collect();
            problems.join("; ")
        };
        assert_eq!(problem("s", by_number(80)), "");
        assert_eq!(problem("s", by_name("web")), "");
        assert_eq!(problem("unread", by_number(1)), "");
        assert_eq!(problem("s", by_number(82)), "Service s has no port 82");
        assert_eq!(problem("s", by_name("dns")), "Service s has no port dns");
        assert_eq!(
            problem("t", by_number(80)),
            "Service t does not exist in this namespace"
        );
    }
}

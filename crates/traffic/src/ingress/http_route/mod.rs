//! An `HTTPRoute` in the fleet's API, read as a `MultiClusterIngress`: from there on both are served alike.
//!
//! ```text
//! HTTPRoute ─ attachment ─▶ whose, at which Gateways ─ ingress_spec ─▶ routes, or the reason why not
//!     ▲                                                                            │
//!     └──────────── RouteReport: status.parents ◀── locations, block ◀─ decide_owned
//! ```
//!
//! - `attachment`: which of its parents are Gateways of our class?
//! - `listeners`: which hosts and certificates do their listeners give it?
//! - `paths`: which of its rules can be had?
//! - `refusal`: and if one cannot?
//! - `entries`: which entries of its status are ours?
//! - `status`: our entries of `status.parents`, written and read back.
//! - `class`, `gateway`: the class and its Gateways are told that they have a controller; with how many routes?
//! - `said`: how is a condition said?

mod attachment;
mod class;
mod entries;
mod gateway;
mod listeners;
mod paths;
mod refusal;
mod said;
mod status;
#[cfg(test)]
mod tests;

pub use super::route_key::{own_name, route_of, served_key};
pub use attachment::{Attachment, Parent, ParentFacts, attachment, gateways};
pub use class::class_status;
pub use entries::has_entry;
pub use gateway::{GatewayReport, gateway_report};
pub use refusal::Refusal;
pub use status::{RouteReport, as_shown};

use k8s_openapi::api::networking::v1::{HTTPIngressRuleValue, IngressRule, IngressSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use karmada_api::gateway_api::HttpRoute;
use karmada_api::{MultiClusterIngress, MultiClusterIngressSpec};
use objects::Key;

use self::listeners::Served;
use super::class::ControllerName;

/// Returns the routes of `route` at its `parents`, as an Ingress has them.
///
/// # Errors
/// Returns the first reason why it is not served. It is served as a whole or not at all: a rule that is left out would give
/// its requests to another.
pub fn ingress_spec(route: &HttpRoute, parents: &[Parent<'_>]) -> Result<IngressSpec, Refusal> {
    let mut served = Served::default();
    for parent in parents {
        served.add(route, parent)?;
    }
    let paths = paths::paths(route)?;
    let rules = served.hosts.into_iter().map(|host| IngressRule {
        host: Some(host).filter(|host| !host.is_empty()),
        http: Some(HTTPIngressRuleValue {
            paths: paths.clone(),
        }),
    });
    Ok(IngressSpec {
        rules: Some(rules.collect()),
        tls: Some(served.tls).filter(|tls| !tls.is_empty()),
        ..IngressSpec::default()
    })
}

/// Returns `route` as an ingress with `spec`. Its status is that of our entries, which are those of `controller`.
pub fn as_ingress(
    route: &HttpRoute,
    spec: IngressSpec,
    controller: &ControllerName,
) -> MultiClusterIngress {
    MultiClusterIngress {
        metadata: ObjectMeta {
            name: Some(served_key(&Key::of(route)).name),
            ..route.metadata.clone()
        },
        spec: MultiClusterIngressSpec { ingress: spec },
        status: status::shown(route, controller),
    }
}

/// Returns `route` as the ingress of which its status tells, for any host; `None` if no controller of ours, whatever its name,
/// tells where its Services run. One in a version that is refused leads nowhere.
pub fn reported_ingress(route: &HttpRoute) -> Option<MultiClusterIngress> {
    let controller = status::reporter(route)?;
    let paths = paths::paths(route).unwrap_or_default();
    let rule = IngressRule {
        host: None,
        http: Some(HTTPIngressRuleValue { paths }),
    };
    let spec = IngressSpec {
        rules: Some(vec![rule]),
        ..IngressSpec::default()
    };
    Some(as_ingress(route, spec, &controller))
}

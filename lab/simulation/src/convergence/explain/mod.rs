//! The explanations of the controllers' writes: each equals the result of [`super::model`] for some versions of the
//! objects that its process knew when it decided.
//!
//! They cover every write but those of leases, Events and exports of Services; one that no rule covers is a violation.
//! A patch or a deletion is judged on the version that it names. In addition, no process may write before it has listed
//! every kind that decides the write.

mod facts;
mod gateway;
#[cfg(test)]
mod tests;

use http::Method;
use karmada_api::names::NODE_PUBLISHER;
use serde_json::Value;

use super::kinds::{Kind, NAMESPACE, Side};
use super::model::{self, INGRESS_ANNOTATION};
use super::program::Role;
use crate::harness::access::NAMESPACES;
use crate::harness::oracle::{Check, Explain, Facts, Reads, Request, Sources, Target, check};
use crate::harness::value::text;

impl Reads for Role {
    fn sources(target: &Target) -> Sources {
        match Kind::of(target).map(Kind::side) {
            // The published nodes of members, of which these fleets have none.
            _ if target.query.contains(NODE_PUBLISHER) => Sources::None,
            None => Sources::None,
            // The controllers decide from their watches.
            Some(Side::Karmada) => Sources::Watches,
            Some(Side::Gateway) => Sources::Answers,
        }
    }

    fn is_readable(target: &Target, object: &Value) -> bool {
        Kind::of(target).is_none_or(|kind| model::is_readable(kind, object))
    }
}

impl Explain for Role {
    const IS_ELECTED: bool = true;

    fn counted(self, write: &Request) -> Option<&'static str> {
        let target = &write.target;
        let exports = ["/serviceexports", "/propagationpolicies"];
        if exports
            .iter()
            .any(|plural| target.collection.ends_with(plural))
        {
            return None;
        }
        Some(match (Kind::of(target), target.part.as_deref()) {
            _ if is_of_namespaces(target) => "gateway Namespaces",
            (Some(Kind::Cluster), Some("status")) => "cluster actions",
            (Some(Kind::Remedy), Some("status")) => "remedy statuses",
            (Some(Kind::MultiClusterIngress), Some("status")) => "ingress statuses",
            (Some(Kind::MultiClusterIngress), None) if target.name.is_some() => {
                "ingress finalizers"
            }
            (Some(Kind::GatewayService), None) => "gateway Services",
            (Some(Kind::GatewaySlice), None) => "gateway EndpointSlices",
            (Some(Kind::GatewayIngress), None) => "gateway Ingresses",
            _ => "others",
        })
    }

    /// Returns the cluster or the ingress. A namespace is created for whatever has just failed without it.
    fn subject(target: &Target, object: &Value) -> Option<String> {
        match (Kind::of(target).map(Kind::side), &target.name) {
            _ if is_of_namespaces(target) => None,
            (Some(Side::Karmada), Some(name)) => Some(name.clone()),
            _ => Some(text(object, INGRESS_ANNOTATION).to_owned()),
        }
    }

    fn explain(self, write: &Request, facts: &Facts<'_>) -> Check {
        let Request {
            method,
            target,
            body,
            ..
        } = write;
        let side = Side::from(target.api);
        let needed = Kind::ALL.into_iter().filter(|kind| match self {
            Self::Remedy => matches!(kind, Kind::Cluster | Kind::Remedy),
            // A gateway that does not answer holds up no write to Karmada.
            Self::Ingress => [Side::Karmada, side].contains(&kind.side()),
        });
        for kind in needed {
            let is_listed = facts
                .known
                .has_listed(kind.side().into(), kind.everywhere());
            check(is_listed, || {
                format!("the process has not listed {kind:?}, which decides it")
            })?;
        }
        let name = target.name.as_deref();
        match (self, Kind::of(target), name, target.part.as_deref()) {
            (Self::Remedy, Some(Kind::Cluster), Some(name), Some("status")) => {
                facts.actions(name, body)
            }
            (Self::Remedy, Some(Kind::Remedy), Some(name), Some("status")) => {
                facts.remedy_status(name, body)
            }
            (Self::Ingress, Some(Kind::MultiClusterIngress), Some(name), Some("status")) => {
                facts.status(name, body)
            }
            (Self::Ingress, Some(Kind::MultiClusterIngress), Some(name), None) => {
                facts.finalizers(name, body)
            }
            (Self::Ingress, Some(kind), None, None) if *method == Method::POST => {
                facts.placement(kind, body)
            }
            (Self::Ingress, Some(kind), Some(name), None) if *method == Method::PATCH => {
                let object = facts.patched(kind, name, body)?;
                facts.placement(kind, &object)
            }
            (Self::Ingress, Some(kind), Some(name), None) if *method == Method::DELETE => {
                facts.removal(kind, name, body)
            }
            (Self::Ingress, ..)
                if is_of_namespaces(target) && text(body, "/metadata/name") == NAMESPACE =>
            {
                Ok(())
            }
            _ => Err("no rule explains such a write".to_owned()),
        }
    }
}

fn is_of_namespaces(target: &Target) -> bool {
    target.collection == NAMESPACES && target.name.is_none()
}

//! The kinds of objects that the controllers read or write, and their paths.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::harness::oracle::ObjectPath;
use crate::harness::{Api, Target};

/// One of the two APIs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Side {
    Karmada,
    Gateway,
}

impl From<Side> for Api {
    fn from(side: Side) -> Self {
        match side {
            Side::Karmada => Self::Hub,
            Side::Gateway => Self::Member(0),
        }
    }
}

impl From<Api> for Side {
    fn from(api: Api) -> Self {
        match api {
            Api::Hub => Self::Karmada,
            Api::Member(_) => Self::Gateway,
        }
    }
}

/// A kind of object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Cluster,
    Remedy,
    MultiClusterIngress,
    IngressClass,
    Binding,
    Service,
    EndpointSlice,
    GatewayService,
    GatewaySlice,
    GatewayIngress,
}

impl Kind {
    pub(crate) const ALL: [Self; 10] = [
        Self::Cluster,
        Self::Remedy,
        Self::MultiClusterIngress,
        Self::IngressClass,
        Self::Binding,
        Self::Service,
        Self::EndpointSlice,
        Self::GatewayService,
        Self::GatewaySlice,
        Self::GatewayIngress,
    ];

    pub(crate) fn side(self) -> Side {
        match self {
            Self::GatewayService | Self::GatewaySlice | Self::GatewayIngress => Side::Gateway,
            _ => Side::Karmada,
        }
    }

    /// Returns the `apiVersion`, the plural name, and the kind.
    pub(crate) fn names(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Cluster => ("cluster.karmada.io/v1alpha1", "clusters", "Cluster"),
            Self::Remedy => ("remedy.karmada.io/v1alpha1", "remedies", "Remedy"),
            Self::MultiClusterIngress => (
                "networking.karmada.io/v1alpha1",
                "multiclusteringresses",
                "MultiClusterIngress",
            ),
            Self::IngressClass => ("networking.k8s.io/v1", "ingressclasses", "IngressClass"),
            Self::Binding => (
                "work.karmada.io/v1alpha2",
                "resourcebindings",
                "ResourceBinding",
            ),
            Self::Service | Self::GatewayService => ("v1", "services", "Service"),
            Self::EndpointSlice | Self::GatewaySlice => {
                ("discovery.k8s.io/v1", "endpointslices", "EndpointSlice")
            }
            Self::GatewayIngress => ("networking.k8s.io/v1", "ingresses", "Ingress"),
        }
    }

    /// Returns `true` if a step may make objects of this kind unreadable.
    pub(crate) fn may_be_corrupted(self) -> bool {
        matches!(
            self,
            Self::Remedy | Self::MultiClusterIngress | Self::Binding
        )
    }

    fn namespaced(self) -> bool {
        !matches!(self, Self::Cluster | Self::Remedy | Self::IngressClass)
    }

    fn root(self) -> String {
        match self.names().0 {
            "v1" => "/api/v1".to_owned(),
            group => format!("/apis/{group}"),
        }
    }

    /// Returns the path of the collection, in the users' namespace if it has one.
    pub(crate) fn collection(self) -> String {
        let (root, plural) = (self.root(), self.names().1);
        if self.namespaced() {
            format!("{root}/namespaces/{NAMESPACE}/{plural}")
        } else {
            format!("{root}/{plural}")
        }
    }

    /// Returns the path of the collection in every namespace.
    pub(crate) fn everywhere(self) -> String {
        format!("{}/{}", self.root(), self.names().1)
    }

    pub(crate) fn path(self, name: &str) -> String {
        format!("{}/{name}", self.collection())
    }

    /// Returns an object of this kind as the oracle names it.
    pub(crate) fn object(self, name: &str) -> ObjectPath {
        (self.side().into(), self.path(name))
    }

    /// Returns the kind that a request is about. Namespaces other than the users' have none.
    pub(crate) fn of(target: &Target) -> Option<Self> {
        let collection = &target.collection;
        Self::ALL.into_iter().find(|kind| {
            Api::from(kind.side()) == target.api
                && collection.ends_with(kind.names().1)
                && (*collection == kind.collection() || *collection == kind.everywhere())
        })
    }
}

/// The namespace of the users' objects.
pub(crate) const NAMESPACE: &str = "shop";

/// Objects by kind and name. All namespaced ones are in [`NAMESPACE`].
pub(crate) type Objects = BTreeMap<(Kind, String), Value>;

use k8s_openapi::api::networking::v1::{
    HTTPIngressPath, HTTPIngressRuleValue, IngressBackend, IngressLoadBalancerStatus, IngressRule,
    IngressSpec, IngressTLS,
};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use objects::lenient::{self, Any};

/// The finalizer of Karmada's own ingress controllers on a `MultiClusterIngress`.
pub const KARMADA_INGRESS_FINALIZER: &str = "karmada.io/multi-cluster-ingress-controller";

/// The routes of external traffic to Services that run in several clusters: the spec of a
/// networking.k8s.io/v1 Ingress.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[kube(
    group = "networking.karmada.io",
    version = "v1alpha1",
    kind = "MultiClusterIngress",
    plural = "multiclusteringresses",
    shortname = "mci",
    category = "karmada-io",
    namespaced,
    status = "MultiClusterIngressStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "An Ingress whose backend Services run in several member clusters.",
    printcolumn = r#"{"name":"Class", "type":"string", "jsonPath":".spec.ingressClassName"}"#,
    printcolumn = r#"{"name":"Hosts", "type":"string", "jsonPath":".spec.rules[*].host"}"#,
    printcolumn = r#"{"name":"Blocked", "type":"string", "jsonPath":".status.trafficBlockClusters"}"#,
    printcolumn = r#"{"name":"Address", "type":"string", "jsonPath":".status.loadBalancer.ingress[*]['ip','hostname']"}"#,
    printcolumn = r#"{"name":"Age", "type":"date", "jsonPath":".metadata.creationTimestamp"}"#
)]
pub struct MultiClusterIngressSpec {
    /// Rules, TLS, default backend and class, as in an Ingress.
    #[serde(flatten)]
    pub ingress: IngressSpec,
}

impl<'de> Deserialize<'de> for MultiClusterIngressSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Wire {
            #[serde(default)]
            default_backend: Option<IngressBackend>,
            #[serde(default)]
            ingress_class_name: Option<Any<String>>,
            #[serde(default)]
            rules: Option<Vec<Any<Rule>>>,
            #[serde(default)]
            tls: Option<Vec<IngressTLS>>,
        }
        let wire = Wire::deserialize(deserializer)?;
        let rules = match wire.rules {
            None => None,
            Some(rules) => {
                let rules = readable(rules);
                Some(rules.ok_or_else(|| D::Error::custom("no rule can be read"))?)
            }
        };
        // The default class must not serve an ingress whose class cannot be read: no class has an
        // empty name.
        let class = wire
            .ingress_class_name
            .map(|Any(name)| name.unwrap_or_default());
        Ok(Self {
            ingress: IngressSpec {
                default_backend: wire.default_backend,
                ingress_class_name: class,
                rules: rules.map(|rules| rules.into_iter().map(|Rule(rule)| rule).collect()),
                tls: wire.tls,
            },
        })
    }
}

/// A rule whose host can be read, and at least one of its paths if it has any: without the host it would
/// route every request, and without a path it would route to the default backend.
struct Rule(IngressRule);

impl<'de> Deserialize<'de> for Rule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Wire {
            #[serde(default)]
            host: Option<String>,
            #[serde(default)]
            http: Option<Paths>,
        }
        #[derive(Deserialize)]
        struct Paths {
            #[serde(default)]
            paths: Option<Vec<Any<HTTPIngressPath>>>,
        }
        let wire = Wire::deserialize(deserializer)?;
        let http = match wire.http {
            None => None,
            Some(Paths { paths }) => {
                let paths = readable(paths.unwrap_or_default());
                let paths = paths.ok_or_else(|| D::Error::custom("no path can be read"))?;
                Some(HTTPIngressRuleValue { paths })
            }
        };
        let host = wire.host;
        Ok(Self(IngressRule { host, http }))
    }
}

/// Returns the elements that could be read, or `None` if there are elements and none of them could.
fn readable<T>(list: Vec<Any<T>>) -> Option<Vec<T>> {
    let had_any = !list.is_empty();
    let read: Vec<T> = list
        .into_iter()
        .filter_map(|Any(element)| element)
        .collect();
    (!had_any || !read.is_empty()).then_some(read)
}

/// The locations of the backends, the blocked clusters, and the addresses of the load balancer.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MultiClusterIngressStatus {
    /// The addresses at which the load balancer serves this ingress.
    #[serde(
        default,
        deserialize_with = "lenient::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub load_balancer: Option<IngressLoadBalancerStatus>,
    /// The clusters among the service locations whose traffic a Remedy blocks, sorted and unique; absent rather than empty.
    #[serde(
        default,
        deserialize_with = "lenient::list_of_ours",
        skip_serializing_if = "Option::is_none"
    )]
    pub traffic_block_clusters: Option<Vec<String>>,
    /// The clusters of each Service that the spec names, sorted by the Services' names.
    #[serde(
        default,
        deserialize_with = "lenient::list_of_ours",
        skip_serializing_if = "Option::is_none"
    )]
    pub service_locations: Option<Vec<ServiceLocation>>,
}

/// The clusters in which a Service runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct ServiceLocation {
    /// The Service's name, in the namespace of the ingress.
    pub name: String,
    /// The clusters' names, sorted and unique.
    #[serde(
        default,
        deserialize_with = "lenient::list_of_ours",
        skip_serializing_if = "Option::is_none"
    )]
    pub clusters: Option<Vec<String>>,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;

    fn path(path: &Value) -> Value {
        let backend = json!({ "service": { "name": "web", "port": { "number": 80 } } });
        json!({ "path": path, "pathType": "Prefix", "backend": backend })
    }

    fn rule(host: &Value, paths: &[Value]) -> Value {
        json!({ "host": host, "http": { "paths": paths } })
    }

    fn read(spec: Value) -> serde_json::Result<IngressSpec> {
        from_value::<MultiClusterIngressSpec>(spec).map(|spec| spec.ingress)
    }

    /// Returns the hosts of the readable rules, and the number of paths of each.
    fn rules(spec: Value) -> Option<Vec<(Option<String>, usize)>> {
        let rules = read(spec).ok()?.rules?.into_iter();
        let shown = rules.map(|rule| (rule.host, rule.http.map_or(0, |http| http.paths.len())));
        Some(shown.collect())
    }

    /// A rule or path that cannot be read routes nothing, and loses no other.
    #[test]
    fn unreadable_rule_routes_nothing() {
        let (a, b) = (json!("a.example.com"), json!("b.example.com"));
        let good = [path(&json!("/"))];
        let kept = Some(vec![(Some("a.example.com".to_owned()), 1)]);
        for odd in [
            rule(&json!(7), &good),
            rule(&b, &[path(&json!(7))]),
            json!(7),
            json!({ "http": 7 }),
        ] {
            let spec = json!({ "rules": [odd, rule(&a, &good)] });
            assert_eq!(rules(spec), kept, "{odd}");
            let spec = json!({ "rules": [odd] });
            assert_eq!(rules(spec), None, "{odd}: nothing is left to decide from");
        }
        let spec = json!({ "rules": [rule(&a, &[path(&json!(7)), path(&json!("/"))])] });
        assert_eq!(rules(spec), kept);
    }

    /// A class that cannot be read is not taken for an absent one, which is the default.
    #[test]
    fn unreadable_class_is_no_default() {
        for (name, expected) in [
            (json!("a"), Some("a")),
            (Value::Null, None),
            (json!(7), Some("")),
        ] {
            let spec = read(json!({ "ingressClassName": name })).unwrap();
            assert_eq!(spec.ingress_class_name.as_deref(), expected, "{name}");
        }
    }

    /// A status that cannot be read is there, so that it is written anew.
    #[test]
    fn unreadable_status_is_present() {
        let status: MultiClusterIngressStatus = from_value(json!({
            "loadBalancer": 7, "trafficBlockClusters": "m1", "serviceLocations": [{}, { "name": "web", "clusters": [7] }],
        }))
        .unwrap();
        assert_eq!(status.load_balancer, None);
        assert_eq!(status.traffic_block_clusters, Some(vec![]));
        let web = ServiceLocation {
            name: "web".to_owned(),
            clusters: Some(vec![]),
        };
        assert_eq!(status.service_locations, Some(vec![web]));
    }
}

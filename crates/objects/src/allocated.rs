//! The values that the API server has allocated to a Service. Most of them mean nothing in another cluster; node ports are the
//! same in every cluster that has them free.

use serde_json::Value;

use crate::fields::remove;
use crate::managed_fields::{all_fields, element};
use crate::{Metadata, api_version, kind};

/// The fields of a Service's spec that its API server fills in, beside the node ports.
pub(crate) const OF_SPEC: [&str; 3] = ["healthCheckNodePort", "ipFamilies", "ipFamilyPolicy"];

/// The annotation in which kubectl keeps the manifest that a user has applied.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The fields of an object that its API server would have allocated if it is a Service: an element of a list need not
/// say so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocated {
    of_spec: Vec<&'static str>,
    node_ports: Vec<u16>,
}

impl Allocated {
    /// Finds the values that nobody has asked for. A server allocates after it has recorded the owners of fields, so that only a
    /// field that a user sets has one, unless it is set to the value that was allocated before: kubectl's annotation shows that.
    /// Nothing is found where nobody owns the part that it is in; `None` if there is nothing at all.
    pub fn of(object: &Value) -> Option<Self> {
        let part = object.get("spec").filter(|part| may_be_service(part))?;
        let owned = all_fields(object);
        let owned = owned.get("f:spec").filter(|owned| owned.is_object())?;
        let applied = applied(object);
        let applied = applied.as_ref().and_then(|applied| applied.get("spec"));
        let of_spec = OF_SPEC.into_iter().filter(|name| {
            let is_asked = owned.get(format!("f:{name}")).is_some()
                || applied.is_some_and(|applied| applied.get(name).is_some());
            part.get(name).is_some() && !is_asked
        });
        let ports = part.get("ports").and_then(Value::as_array);
        let owned = owned.get("f:ports").and_then(Value::as_object);
        let applied = applied.and_then(|applied| applied.get("ports")?.as_array());
        let allocated = ports.into_iter().flatten().filter(|port| {
            let owned = owned.into_iter().flatten();
            let mut of_port = owned.filter(|(key, _)| element(key).is_some_and(|key| key.is(port)));
            let is_asked = applied.into_iter().flatten().any(|applied| {
                applied.get("nodePort") == port.get("nodePort")
                    && applied.get("port") == port.get("port")
            });
            !is_asked
                && (of_port.clone()).any(|(_, fields)| fields.get("f:port").is_some())
                && !of_port.any(|(_, fields)| fields.get("f:nodePort").is_some())
        });
        let found = Self {
            of_spec: of_spec.collect(),
            node_ports: allocated.filter_map(node_port).collect(),
        };
        (!found.of_spec.is_empty() || !found.node_ports.is_empty()).then_some(found)
    }

    /// Takes these fields out of the object if it is a Service, but for the node ports.
    pub fn remove_from(&self, object: &mut Value) {
        if (api_version(object), kind(object)) == ("v1", "Service") {
            remove(object, "/spec", &self.of_spec);
        }
    }

    /// Returns the node ports that are allocated.
    pub fn node_ports(&self) -> &[u16] {
        &self.node_ports
    }
}

fn node_port(port: &Value) -> Option<u16> {
    u16::try_from(port.get("nodePort")?.as_u64()?).ok()
}

fn may_be_service(spec: &Value) -> bool {
    spec.get("ports").is_some() || OF_SPEC.iter().any(|name| spec.get(name).is_some())
}

/// Returns the manifest that a user has applied.
fn applied(object: &Value) -> Option<Value> {
    serde_json::from_str(object.annotation(LAST_APPLIED)?).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns the rest of a Service with a port that was asked for and one that was not, and the ports that were
    /// allocated.
    fn left(fields: &Value) -> (Value, Vec<u16>) {
        let mut service = json!({ "apiVersion": "v1", "kind": "Service",
            "metadata": { "name": "web", "managedFields": [
                { "manager": "kubectl", "operation": "Update", "fieldsV1": fields },
            ] },
            "spec": { "type": "NodePort", "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack",
                "ports": [
                    { "port": 80, "protocol": "TCP", "nodePort": 30080 },
                    { "port": 80, "protocol": "UDP", "nodePort": 32410 },
                ] } });
        let ports = strip(&mut service);
        (service["spec"].take(), ports)
    }

    fn strip(service: &mut Value) -> Vec<u16> {
        let Some(allocated) = Allocated::of(service) else {
            return Vec::new();
        };
        allocated.remove_from(service);
        allocated.node_ports().to_vec()
    }

    /// Cases P95 and P114: a value that nobody asked for is left to each cluster, but for the node ports, which are told.
    #[test]
    fn asked_ports_stay() {
        let fields = json!({ "f:spec": { "f:type": {}, "f:ipFamilyPolicy": {}, "f:ports": {
            ".": {},
            "k:{\"port\":80,\"protocol\":\"TCP\"}": { ".": {}, "f:port": {}, "f:nodePort": {} },
            "k:{\"port\":80,\"protocol\":\"UDP\"}": { ".": {}, "f:port": {} },
        } } });
        let ports = json!([
            { "port": 80, "protocol": "TCP", "nodePort": 30080 },
            { "port": 80, "protocol": "UDP", "nodePort": 32410 },
        ]);
        let spec = json!({ "type": "NodePort", "ipFamilyPolicy": "SingleStack", "ports": ports });
        assert_eq!(left(&fields), (spec, vec![32410]));
    }

    /// A port that nobody owns is not taken for allocated, but where others own the fields around it.
    #[test]
    fn unknown_authors_keep_all() {
        let around = json!({ "type": "NodePort", "ports": [
            { "port": 80, "protocol": "TCP", "nodePort": 30080 },
            { "port": 80, "protocol": "UDP", "nodePort": 32410 },
        ] });
        let mut all = around.clone();
        all["ipFamilies"] = json!(["IPv4"]);
        all["ipFamilyPolicy"] = json!("SingleStack");
        for (fields, expected) in [
            (json!({}), all),
            (json!({ "f:spec": { "f:ports": {} } }), around),
        ] {
            assert_eq!(left(&fields), (expected, Vec::new()), "{fields}");
        }
    }

    /// Who applies a value that was allocated before does not own it, and has asked for it all the same.
    #[test]
    fn applied_port_is_asked_for() {
        let port = json!({ "port": 80, "nodePort": 32_410 });
        let applied = json!({ "spec": { "ports": [port], "ipFamilies": ["IPv4"] } });
        let key = r#"k:{"port":80,"protocol":"TCP"}"#;
        let owned = json!({ "f:spec": { "f:ports": { key: { ".": {}, "f:port": {} } } } });
        let service = json!({ "apiVersion": "v1", "kind": "Service",
            "metadata": { "name": "web", "annotations": { LAST_APPLIED: applied.to_string() },
                "managedFields": [{ "manager": "kubectl", "fieldsV1": owned }] },
            "spec": { "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack", "ports": [port] } });
        let mut left = service.clone();
        assert_eq!(strip(&mut left), [0; 0]);
        let mut expected = service;
        expected["spec"]
            .as_object_mut()
            .unwrap()
            .remove("ipFamilyPolicy");
        assert_eq!(left, expected);
    }

    /// A Service without ports has families that were chosen for it, too.
    #[test]
    fn headless_has_no_families() {
        let owned = json!({ "f:spec": { "f:clusterIP": {} } });
        let mut service = json!({ "apiVersion": "v1", "kind": "Service",
            "metadata": { "managedFields": [{ "manager": "kubectl", "fieldsV1": owned }] },
            "spec": { "clusterIP": "None", "ipFamilies": ["IPv4", "IPv6"], "ipFamilyPolicy": "RequireDualStack" } });
        strip(&mut service);
        assert_eq!(service["spec"], json!({ "clusterIP": "None" }));
    }
}

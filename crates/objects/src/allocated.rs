//! What the API server has allocated to a Service, and means nothing in another cluster.

use serde_json::Value;

use crate::fields::remove;
use crate::managed_fields::{all_fields, element};
use crate::{api_version, kind};

/// The fields of a Service's spec that its API server fills in, beside the node ports.
const OF_SPEC: [&str; 3] = ["healthCheckNodePort", "ipFamilies", "ipFamilyPolicy"];

/// The fields of an object that its API server would have allocated if it is a Service: an element of a list need not
/// say so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allocated {
    of_spec: Vec<&'static str>,
    /// The indices of the ports whose node port is allocated.
    node_ports: Vec<u16>,
}

impl Allocated {
    /// Finds what nobody owns: a server allocates after it has recorded who wrote what, so that only what a user asks for
    /// has an owner. Nothing is found without managed fields of the ports.
    pub fn of(object: &Value) -> Self {
        let Some(ports) = object.pointer("/spec/ports").and_then(Value::as_array) else {
            return Self::default();
        };
        let owned = all_fields(object);
        let spec = &owned["f:spec"];
        let Some(owned_ports) = spec["f:ports"].as_object() else {
            return Self::default();
        };
        let is_owned = |port: &Value| {
            owned_ports.iter().any(|(key, fields)| {
                fields.get("f:nodePort").is_some()
                    && element(key).is_none_or(|element| element.is(port))
            })
        };
        let has = |part: &Value, name: &str| part.get(name).is_some();
        let allocated = ports
            .iter()
            .zip(0..)
            .filter(|(port, _)| has(port, "nodePort") && !is_owned(port));
        let of_spec = OF_SPEC
            .into_iter()
            .filter(|name| has(&object["spec"], name) && spec.get(format!("f:{name}")).is_none());
        Self {
            node_ports: allocated.map(|(_, index)| index).collect(),
            of_spec: of_spec.collect(),
        }
    }

    /// Takes these fields out of the object if it is a Service.
    pub fn remove_from(&self, object: &mut Value) {
        if (api_version(object), kind(object)) != ("v1", "Service") {
            return;
        }
        remove(object, "/spec", &self.of_spec);
        for index in &self.node_ports {
            remove(object, &format!("/spec/ports/{index}"), &["nodePort"]);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns what is left of a Service with a port that was asked for and one that was not.
    fn left(fields: &Value) -> Value {
        let mut service = json!({ "apiVersion": "v1", "kind": "Service",
            "metadata": { "name": "web", "managedFields": [
                { "manager": "kubectl", "operation": "Update", "fieldsV1": fields },
            ] },
            "spec": { "type": "NodePort", "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack",
                "ports": [
                    { "port": 80, "protocol": "TCP", "nodePort": 30080 },
                    { "port": 80, "protocol": "UDP", "nodePort": 32410 },
                ] } });
        Allocated::of(&service).remove_from(&mut service);
        service["spec"].take()
    }

    /// Case P95: what nobody asked for is left to each cluster.
    #[test]
    fn asked_ports_stay() {
        let port = |protocol: &str| format!(r#"k:{{"port":80,"protocol":"{protocol}"}}"#);
        let fields = json!({ "f:spec": { "f:type": {}, "f:ipFamilyPolicy": {}, "f:ports": {
            ".": {},
            port("TCP"): { ".": {}, "f:port": {}, "f:nodePort": {} },
            port("UDP"): { ".": {}, "f:port": {} },
        } } });
        let ports = json!([
            { "port": 80, "protocol": "TCP", "nodePort": 30080 }, { "port": 80, "protocol": "UDP" },
        ]);
        assert_eq!(
            left(&fields),
            json!({ "type": "NodePort", "ipFamilyPolicy": "SingleStack", "ports": ports })
        );
    }

    /// Where nobody owns the ports, it cannot be told who asked for what.
    #[test]
    fn unknown_authors_keep_all() {
        for fields in [json!({}), json!({ "f:spec": { "f:ports": {} } })] {
            let is_known = fields.pointer("/f:spec/f:ports").is_some();
            let ports = left(&fields)["ports"].take();
            assert_eq!(ports[0].get("nodePort").is_none(), is_known, "{fields}");
        }
        let owned_whole = json!({ "f:spec": { "f:ports": { ".": {}, "f:nodePort": {} } } });
        assert_eq!(left(&owned_whole)["ports"][0]["port"], 80);
    }
}

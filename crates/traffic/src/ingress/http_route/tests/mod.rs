mod attachment;
mod class;
mod gateway;
mod status;
mod translation;

use karmada_api::gateway_api::{Gateway, GatewayClass, HttpRoute};
use objects::Key;
use serde_json::{Value, from_value, json};

use super::*;
use crate::ingress::Cached;

const OURS: &str = "karmada-rs.io/multi-cluster";

fn ours() -> ControllerName {
    OURS.parse().unwrap()
}

/// The Gateways and classes of a fleet.
struct World {
    gateways: Vec<Gateway>,
    classes: Vec<GatewayClass>,
    /// Set while those that are not here may exist.
    are_unread: bool,
}

impl World {
    fn absent<T>(&self) -> Cached<T> {
        if self.are_unread {
            Cached::Unread
        } else {
            Cached::Absent
        }
    }
}

impl ParentFacts for World {
    fn gateway(&self, key: &Key) -> Cached<&Gateway> {
        let found = self.gateways.iter().find(|one| Key::of(*one) == *key);
        found.map_or_else(|| self.absent(), Cached::Present)
    }

    fn gateway_class(&self, name: &str) -> Cached<&GatewayClass> {
        let mut classes = self.classes.iter();
        let found = classes.find(|class| class.metadata.name.as_deref() == Some(name));
        found.map_or_else(|| self.absent(), Cached::Present)
    }
}

fn class(name: &str, controller: &str) -> GatewayClass {
    let spec = json!({ "controllerName": controller });
    from_value(json!({ "metadata": { "name": name }, "spec": spec })).unwrap()
}

/// Returns the Gateway `infra/name` of a class.
fn gateway(name: &str, class: &str, listeners: &Value) -> Gateway {
    from_value(json!({
        "metadata": { "name": name, "namespace": "infra" },
        "spec": { "gatewayClassName": class, "listeners": listeners },
    }))
    .unwrap()
}

/// Returns a listener that takes routes of all namespaces, with these fields beside.
fn listener(name: &str, fields: Value) -> Value {
    let mut listener = json!({
        "name": name, "protocol": "HTTP", "port": 80,
        "allowedRoutes": { "namespaces": { "from": "All" } },
    });
    let Value::Object(fields) = fields else {
        panic!("no fields");
    };
    listener.as_object_mut().unwrap().extend(fields);
    listener
}

/// Returns the facts with one Gateway of our class, `infra/web`, which has these listeners.
fn fleet(listeners: &Value) -> World {
    World {
        gateways: vec![
            gateway("web", "ours", listeners),
            gateway("theirs", "theirs", &json!([])),
        ],
        classes: vec![class("ours", OURS), class("theirs", "example.com/theirs")],
        are_unread: false,
    }
}

/// Returns the route `shop/r` with these fields of its spec.
fn route(parents: &Value, spec: Value) -> HttpRoute {
    let mut spec = spec;
    spec["parentRefs"] = parents.clone();
    from_value(json!({
        "metadata": { "name": "r", "namespace": "shop", "generation": 3 },
        "spec": spec,
    }))
    .unwrap()
}

fn to(gateway: &str) -> Value {
    json!({ "namespace": "infra", "name": gateway })
}

fn rule(service: &str, matches: &Value) -> Value {
    let backend = json!({ "name": service, "port": 80 });
    json!({ "matches": matches, "backendRefs": [backend] })
}

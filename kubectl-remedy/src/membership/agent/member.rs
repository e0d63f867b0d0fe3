//! The objects of a member: the agent on every node, and the Secret with which it reaches the Karmada API.

use kube::Client;
use serde_json::{Value, json};

use super::kustomize::Components;
use super::rights::ACCOUNT;
use crate::error::Error;
use crate::manifest;
use crate::namespace::NAMESPACE;
use crate::requests::read;
use crate::secret::{decoded, encoded};

/// The resources of the kustomization `manifests/member`.
const MANIFESTS: [&str; 2] = [
    include_str!("../../../../manifests/member/cluster-health-agent.yaml"),
    include_str!("../../../../manifests/member/network-policy.yaml"),
];

/// The image in them, which the kustomization replaces.
const IMAGE: &str = "cluster-health-agent";
const IMAGE_PATH: &str = "/spec/template/spec/containers/0/image";

/// The parts that tell the agent of one member from that of another, as far as they are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) image: Option<String>,
    pub(super) kubeconfig: Option<String>,
    pub(super) token: Option<String>,
    pub(super) components: Components,
}

impl Found {
    /// Finds it in the objects of a member.
    pub(super) fn in_objects<'a>(objects: impl IntoIterator<Item = &'a Value>) -> Self {
        let mut found = Self::default();
        for object in objects {
            match object["kind"].as_str() {
                Some("DaemonSet") => {
                    let image = object.pointer(IMAGE_PATH).and_then(Value::as_str);
                    found.image = image.map(ToOwned::to_owned);
                    found.components = Components::of(object);
                }
                Some("Secret") => {
                    found.kubeconfig = decoded(&object["data"]["kubeconfig"]);
                    found.token = decoded(&object["data"]["token"]);
                }
                _ => {}
            }
        }
        found
    }
}

/// Returns the agent of a member: the Secret with this kubeconfig and token, and the rest, as the components change it.
pub(super) fn objects(
    image: &str,
    kubeconfig: &str,
    token: &str,
    components: &Components,
) -> Result<Vec<Value>, Error> {
    let mut running = running()?;
    for object in &mut running {
        if let Some(image_of) = object.pointer_mut(IMAGE_PATH).filter(|of| **of == IMAGE) {
            *image_of = image.into();
        }
    }
    let mut objects = vec![secret(kubeconfig, token)];
    objects.extend(components.apply(running)?);
    Ok(objects)
}

/// Returns the objects of an agent in a member, without their contents.
pub(super) fn names() -> Result<Vec<Value>, Error> {
    objects(IMAGE, "", "", &Components::default())
}

/// Returns the parts of the agent in a member.
pub(super) async fn found(member: &Client) -> Result<Found, Error> {
    let mut found = Vec::new();
    for object in names()? {
        if ["DaemonSet", "Secret"]
            .iter()
            .any(|kind| object["kind"] == *kind)
        {
            found.extend(read(member, &object).await?);
        }
    }
    Ok(Found::in_objects(&found))
}

fn running() -> Result<Vec<Value>, Error> {
    let mut objects = Vec::new();
    for manifest in MANIFESTS {
        objects.extend(manifest::shipped(manifest)?);
    }
    for object in &mut objects {
        objects::metadata::set(object, "namespace", NAMESPACE.into());
    }
    Ok(objects)
}

fn secret(kubeconfig: &str, token: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": { "name": format!("{ACCOUNT}-karmada"), "namespace": NAMESPACE },
        "type": "Opaque",
        "data": { "kubeconfig": encoded(kubeconfig), "token": encoded(token) },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kustomization has no other resources, transforms nothing else, and its modes are octal.
    #[test]
    fn manifests_are_the_kustomization() {
        let text = include_str!("../../../../manifests/member/kustomization.yaml");
        let kustomization = manifest::shipped(text).unwrap().remove(0);
        let resources = json!(["cluster-health-agent.yaml", "network-policy.yaml"]);
        assert_eq!(kustomization["resources"], resources);
        let fields: Vec<&String> = kustomization.as_object().unwrap().keys().collect();
        let known = ["apiVersion", "images", "kind", "resources", "transformers"];
        assert!(
            fields.iter().all(|field| known.contains(&field.as_str())),
            "{fields:?}"
        );
        let images = kustomization["images"].as_array().unwrap();
        assert_eq!((images.len(), &images[0]["name"]), (1, &json!(IMAGE)));

        let objects =
            objects("registry.example/agent:1", "k", "t", &Components::default()).unwrap();
        let agents: Vec<_> = objects
            .iter()
            .filter(|o| o["kind"] == "DaemonSet")
            .collect();
        let pod = &agents[0]["spec"]["template"]["spec"];
        assert_eq!(pod["volumes"][0]["secret"]["defaultMode"], 0o440);
        assert_eq!(pod["containers"].as_array().unwrap().len(), 1);
        assert!(
            objects
                .iter()
                .all(|o| o["metadata"]["namespace"] == NAMESPACE)
        );
    }

    /// An agent that was written is found again.
    #[test]
    fn written_agent_is_found() {
        let objects =
            objects("registry.example/agent:1", "k", "t", &Components::default()).unwrap();
        let found = Found::in_objects(&objects);
        let expected = Found {
            image: Some("registry.example/agent:1".to_owned()),
            kubeconfig: Some("k".to_owned()),
            token: Some("t".to_owned()),
            components: Components::default(),
        };
        assert_eq!(found, expected);
        assert_eq!(
            Found::in_objects([&json!({ "kind": "Secret" })]),
            Found::default()
        );
    }
}

//! Requests whose answer is only the metadata of the stored object.

use std::borrow::Cow;

use http::HeaderValue;
use http::header::ACCEPT;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::{DynamicObject, Request, request};
use kube::{Client, Resource};
use objects::write::{Action, Guard, ObjectRef, Write};
use objects::yaml::as_yaml;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The form of an answer of which only the version is read: the metadata alone, if the server has that
/// form.
const METADATA: HeaderValue = HeaderValue::from_static(
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1, application/json",
);

/// An object as a write has left it, of which the answer shows only which one it is, and its version.
#[derive(Debug, Deserialize)]
pub(crate) struct Stored {
    /// Those of a `Status`, which answers a deletion, have no version.
    #[serde(default)]
    metadata: StoredMetadata,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredMetadata {
    #[serde(default)]
    uid: Option<String>,
    #[serde(default)]
    resource_version: Option<String>,
    #[serde(default)]
    generation: Option<i64>,
}

impl Stored {
    /// Returns `object` as it is stored.
    pub(crate) fn of(self, object: &ObjectRef) -> ObjectRef {
        ObjectRef {
            resource: object.resource.clone(),
            key: object.key.clone(),
            uid: self.metadata.uid,
            version: self.metadata.resource_version,
            generation: self.metadata.generation,
        }
    }
}

/// Returns the name of an object as the path of a request has it. Names of roles may have a `?`, after which the
/// path would be that of another object.
pub fn in_path(name: &str) -> Cow<'_, str> {
    utf8_percent_encode(name, RESERVED).into()
}

const RESERVED: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'/')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// The sender of a write.
#[derive(Clone, Copy, Debug)]
pub struct Sender<'a> {
    /// The name by which the API knows it.
    pub manager: &'a str,
    /// True if the API is to answer as if it had stored the object.
    pub is_dry_run: bool,
}

impl Sender<'_> {
    fn post(self) -> PostParams {
        PostParams {
            field_manager: Some(self.manager.to_owned()),
            dry_run: self.is_dry_run,
        }
    }

    fn patch(self) -> PatchParams {
        PatchParams {
            dry_run: self.is_dry_run,
            ..PatchParams::apply(self.manager)
        }
    }
}

/// Sends a write as it was decided, and returns the answer: the object as it is then, or a `Status` where that is gone.
///
/// # Errors
/// Fails as the API does.
pub async fn submit<K: DeserializeOwned>(
    client: &Client,
    write: &Write,
    sender: Sender<'_>,
) -> kube::Result<K> {
    let request = build(write, sender).map_err(kube::Error::BuildRequest)?;
    client.request(request).await
}

/// Performs a write as it was decided, as `manager`.
pub(crate) async fn perform(client: &Client, write: &Write, manager: &str) -> kube::Result<Stored> {
    let sender = Sender {
        manager,
        is_dry_run: false,
    };
    answered(client, build(write, sender)).await
}

/// Returns the requests about the objects of the same kind and namespace.
pub fn collection(object: &ObjectRef) -> Request {
    let namespace = Some(&*object.key.namespace).filter(|namespace| !namespace.is_empty());
    Request::new(DynamicObject::url_path(&object.resource, namespace))
}

/// Builds the request of a write as it was decided.
///
/// # Errors
/// Fails if the path or the body cannot be built.
pub fn build(write: &Write, sender: Sender<'_>) -> Result<http::Request<Vec<u8>>, request::Error> {
    let object = &write.object;
    let request = collection(object);
    let name = in_path(&object.key.name);
    match &write.action {
        Action::Create(body) => {
            let body = body.to_string().into_bytes();
            request.create(&sender.post(), body)
        }
        Action::Merge(_) => {
            let patch = Patch::Merge(write.guarded_body());
            patched(&request, write, sender, &patch)
        }
        Action::Json(patch) => {
            let patch = patch.clone();
            let patch = match write.guard {
                Guard::Version => patch.guarded(object.version.as_deref()),
                Guard::None | Guard::Uid => patch,
            };
            patched(&request, write, sender, &patch.into())
        }
        Action::Apply { .. } => {
            let patch = Patch::Apply(write.guarded_body());
            let built = patched(&request, write, sender, &patch);
            // To an API server it is YAML.
            built.map(|request| request.map(as_yaml))
        }
        Action::Replace(_) => {
            let body = write.guarded_body().to_string().into_bytes();
            let parameters = sender.post();
            match write.subresource {
                Some(part) => request.replace_subresource(part, &name, &parameters, body),
                None => request.replace(&name, &parameters, body),
            }
        }
        Action::Delete => {
            let preconditions = match write.guard {
                Guard::None => None,
                Guard::Version => Some(Preconditions {
                    resource_version: object.version.clone(),
                    uid: None,
                }),
                Guard::Uid => Some(Preconditions {
                    resource_version: None,
                    uid: object.uid.clone(),
                }),
            };
            let parameters = DeleteParams {
                preconditions,
                dry_run: sender.is_dry_run,
                ..DeleteParams::background()
            };
            request.delete(&name, &parameters)
        }
    }
}

fn patched(
    request: &Request,
    write: &Write,
    sender: Sender<'_>,
    patch: &Patch<Value>,
) -> Result<http::Request<Vec<u8>>, request::Error> {
    let name = in_path(&write.object.key.name);
    let parameters = PatchParams {
        force: matches!(
            write.action,
            Action::Apply {
                is_forced: true,
                ..
            }
        ),
        ..sender.patch()
    };
    match write.subresource {
        Some(part) => request.patch_subresource(part, &name, &parameters, patch),
        None => request.patch(&name, &parameters, patch),
    }
}

async fn answered(
    client: &Client,
    request: Result<http::Request<Vec<u8>>, request::Error>,
) -> kube::Result<Stored> {
    let mut request = request.map_err(kube::Error::BuildRequest)?;
    request.headers_mut().insert(ACCEPT, METADATA);
    client.request(request).await
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use k8s_openapi::api::core::v1::Node;
    use objects::Key;
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn patches_ask_for_metadata() {
        let service = tower::service_fn(async |request: http::Request<kube::client::Body>| {
            let asked = request.headers()[ACCEPT].to_str().unwrap().to_owned();
            assert!(
                asked.starts_with("application/json;as=PartialObjectMetadata;"),
                "{asked}"
            );
            let answer = r#"{ "metadata": { "resourceVersion": "7" } }"#;
            Ok::<_, Infallible>(http::Response::new(kube::client::Body::from(
                answer.as_bytes().to_vec(),
            )))
        });
        let client = Client::new(service, "default");
        let node = ObjectRef::named::<Node>(Key::cluster_scoped("n"), &());
        let write = Write::merge("node", node.clone(), json!({}));
        let stored = perform(&client, &write, "tests").await.unwrap();
        assert_eq!(stored.of(&node).version.as_deref(), Some("7"));
    }

    /// An application takes fields from others if it says so, and its guard is in the body.
    #[test]
    fn applications_say_their_force() {
        let object = ObjectRef {
            version: Some("7".to_owned()),
            ..ObjectRef::named::<Node>(Key::cluster_scoped("n"), &())
        };
        let sender = Sender {
            manager: "tests",
            is_dry_run: false,
        };
        for is_forced in [false, true] {
            let body = json!({ "spec": {} });
            let action = Action::Apply { body, is_forced };
            let write = Write::new("node", object.clone(), action).guarded(Guard::Version);
            let request = build(&write, sender).unwrap();
            assert_eq!(request.method(), http::Method::PATCH);
            let query = request.uri().query().unwrap();
            assert_eq!(query.contains("force=true"), is_forced, "{query}");
            let sent: Value = serde_json::from_slice(request.body()).unwrap();
            assert_eq!(
                sent,
                json!({ "metadata": { "resourceVersion": "7" }, "spec": {} })
            );
        }
    }

    /// A name that would end the path, or lead out of it, stays one segment; others stay as they are.
    #[test]
    fn names_stay_one_segment() {
        let ordinary = "system:node-proxier@x_Y.1";
        assert_eq!(in_path(ordinary), ordinary);
        for (name, expected) in [
            ("view?x", "view%3Fx"),
            ("view#x", "view%23x"),
            ("../view", "..%2Fview"),
            ("a b", "a%20b"),
            ("é", "%C3%A9"),
        ] {
            assert_eq!(in_path(name), expected);
        }
    }
}

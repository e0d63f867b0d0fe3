//! The API as the cases use it: plain requests and complete responses.

use anyhow::{Context, Result, bail};
use http::{HeaderMap, Method, Request, header::CONTENT_TYPE};
use http_body_util::BodyExt;
use kube::{Client, client::Body};
use serde_json::{Value, json};
use tokio::time::{Duration, timeout};

use crate::watch::Watch;

/// The time after which a server is considered to hang.
const LIMIT: Duration = Duration::from_mins(1);

/// The `Accept` header of a request for a table.
pub(crate) const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

pub(crate) const JSON: &str = "application/json";
pub(crate) const YAML: &str = "application/yaml";
pub(crate) const MERGE: &str = "application/merge-patch+json";
pub(crate) const JSON_PATCH: &str = "application/json-patch+json";
pub(crate) const STRATEGIC: &str = "application/strategic-merge-patch+json";
pub(crate) const APPLY: &str = "application/apply-patch+yaml";

/// The API under test, for one case.
#[derive(Clone)]
pub(crate) struct Server {
    client: Client,
    /// The name of the case's namespace, and the prefix of its cluster-scoped objects.
    pub(crate) name: String,
}

#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) code: u16,
    pub(crate) headers: HeaderMap,
    /// Null if the response is not JSON.
    pub(crate) body: Value,
    pub(crate) text: String,
}

impl Server {
    pub(crate) fn new(client: Client, case: &str) -> Self {
        let mut name = case.replace('_', "-");
        // The name of a namespace is a label of at most 63 characters.
        name.truncate(60);
        Self {
            client,
            name: name.trim_end_matches('-').to_owned(),
        }
    }

    /// Returns the path of the case's namespace, which it creates if necessary.
    pub(crate) async fn namespace(&self) -> Result<String> {
        let namespace = json!({ "metadata": { "name": self.name } });
        let response = self.post("/api/v1/namespaces", &namespace).await?;
        if response.code != 409 {
            response.expect(201)?;
        }
        Ok(format!("/api/v1/namespaces/{}", self.name))
    }

    /// Returns the path of a collection in the case's namespace, which it creates if necessary.
    pub(crate) async fn collection(&self, version: &str, plural: &str) -> Result<String> {
        self.namespace().await?;
        Ok(format!("/{version}/namespaces/{}/{plural}", self.name))
    }

    /// Returns the path of the case's `ConfigMap`s.
    pub(crate) async fn config_maps(&self) -> Result<String> {
        self.collection("api/v1", "configmaps").await
    }

    /// Creates a `ConfigMap` with one entry, and returns it with the path of its collection.
    pub(crate) async fn config_map(&self) -> Result<(String, Value)> {
        let path = self.config_maps().await?;
        let map = json!({ "metadata": { "name": "one" }, "data": { "a": "b" } });
        let map = self.create(&path, &map).await?;
        Ok((path, map))
    }

    /// Returns the path of the case's widgets, a custom resource.
    pub(crate) async fn widgets(&self) -> Result<String> {
        self.collection("apis/conformance.example.com/v1", "widgets")
            .await
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Vec<u8>>,
    ) -> Result<Response> {
        let mut request = Request::builder().method(method.clone()).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::from(body.into()))?;
        let about = || format!("{method} {path}");
        let exchange = async {
            let response = self.client.send(request).await?;
            let (parts, body) = response.into_parts();
            let text = body.collect().await?.to_bytes();
            anyhow::Ok((parts, String::from_utf8_lossy(&text).into_owned()))
        };
        let (parts, text) = timeout(LIMIT, exchange)
            .await
            .with_context(about)?
            .with_context(about)?;
        Ok(Response {
            code: parts.status.as_u16(),
            headers: parts.headers,
            body: serde_json::from_str(&text).unwrap_or_default(),
            text,
        })
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Response> {
        self.send(Method::GET, path, &[("Accept", JSON)], "").await
    }

    pub(crate) async fn get_as(&self, path: &str, accept: &str) -> Result<Response> {
        self.send(Method::GET, path, &[("Accept", accept)], "")
            .await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Result<Response> {
        self.send(
            Method::POST,
            path,
            &[(CONTENT_TYPE.as_str(), JSON)],
            body.to_string(),
        )
        .await
    }

    pub(crate) async fn post_as(&self, path: &str, type_: &str, body: &str) -> Result<Response> {
        self.send(Method::POST, path, &[(CONTENT_TYPE.as_str(), type_)], body)
            .await
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> Result<Response> {
        self.send(
            Method::PUT,
            path,
            &[(CONTENT_TYPE.as_str(), JSON)],
            body.to_string(),
        )
        .await
    }

    pub(crate) async fn patch(&self, path: &str, type_: &str, body: &Value) -> Result<Response> {
        self.send(
            Method::PATCH,
            path,
            &[(CONTENT_TYPE.as_str(), type_)],
            body.to_string(),
        )
        .await
    }

    pub(crate) async fn delete(&self, path: &str) -> Result<Response> {
        self.send(Method::DELETE, path, &[], "").await
    }

    pub(crate) async fn delete_with(&self, path: &str, options: &Value) -> Result<Response> {
        self.send(
            Method::DELETE,
            path,
            &[(CONTENT_TYPE.as_str(), JSON)],
            options.to_string(),
        )
        .await
    }

    /// Creates an object, and returns it as it is stored.
    pub(crate) async fn create(&self, path: &str, body: &Value) -> Result<Value> {
        self.post(path, body).await?.expect(201)
    }

    /// Starts a watch; `path` must have a query.
    pub(crate) async fn watch(&self, path: &str) -> Result<Watch> {
        self.watch_as(path, JSON).await
    }

    pub(crate) async fn watch_as(&self, path: &str, accept: &str) -> Result<Watch> {
        let request = Request::get(path)
            .header("Accept", accept)
            .body(Body::from(vec![]))?;
        let response = timeout(LIMIT, self.client.send(request)).await??;
        if !response.status().is_success() {
            let code = response.status();
            let body = response.into_body().collect().await?.to_bytes();
            bail!(
                "cannot watch {path}: {code} {}",
                String::from_utf8_lossy(&body)
            );
        }
        Ok(Watch::new(response.into_body()))
    }

    /// Polls an object until its response satisfies `is`.
    pub(crate) async fn until(
        &self,
        path: &str,
        is: impl Fn(&Response) -> bool,
    ) -> Result<Response> {
        self.send_until(Method::GET, path, "", is).await
    }

    /// Repeats a request until the response satisfies `is`, for effects that real servers show a
    /// moment later.
    pub(crate) async fn send_until(
        &self,
        method: Method,
        path: &str,
        body: &str,
        is: impl Fn(&Response) -> bool,
    ) -> Result<Response> {
        let headers = [("Accept", JSON), (CONTENT_TYPE.as_str(), JSON)];
        let waiting = async {
            loop {
                let response = self.send(method.clone(), path, &headers, body).await?;
                if is(&response) {
                    return anyhow::Ok(response);
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(LIMIT, waiting)
            .await
            .with_context(|| format!("{path} does not get there"))?
    }
}

impl Response {
    /// Returns the body of a response with this code.
    ///
    /// # Errors
    /// Returns an error if the code is another one.
    pub(crate) fn expect(self, code: u16) -> Result<Value> {
        if self.code != code {
            bail!(
                "the response is {} instead of {code}: {}",
                self.code,
                shortened(&self.text)
            );
        }
        Ok(self.body)
    }

    /// Returns the message of a `Status` with this code and reason.
    ///
    /// # Errors
    /// Returns an error for any other response.
    pub(crate) fn refused(self, code: u16, reason: &str) -> Result<String> {
        if self.code != code
            || self.body["reason"] != reason
            || self.body["code"] != code
            || self.body["kind"] != "Status"
            || self.body["status"] != "Failure"
        {
            bail!(
                "the response is {} instead of {code} {reason}: {}",
                self.code,
                shortened(&self.text)
            );
        }
        Ok(self.body["message"].as_str().unwrap_or_default().to_owned())
    }

    pub(crate) fn warnings(&self) -> Vec<&str> {
        self.headers
            .get_all("warning")
            .iter()
            .filter_map(|value| value.to_str().ok())
            .collect()
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(600).collect()
}

/// Returns the name of an object.
pub(crate) fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// Returns a text, empty if it is absent.
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Returns the version of an object or list.
pub(crate) fn version(object: &Value) -> &str {
    object["metadata"]["resourceVersion"]
        .as_str()
        .unwrap_or_default()
}

/// Returns the names in a list.
pub(crate) fn names(list: &Value) -> Vec<&str> {
    list["items"]
        .as_array()
        .into_iter()
        .flatten()
        .map(name)
        .collect()
}

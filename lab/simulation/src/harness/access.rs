//! The requests of everybody but the programs, which injected faults do not affect.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use embedded_apiserver::ApiServer;
use http::{Method, Request, StatusCode, header};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tower::ServiceExt;

use super::value::name;
use crate::clock;

/// The user agent of the steps: faults are limited to those of the programs.
pub(crate) const USER_AGENT: &str = "simulation";

/// The path of namespaces.
pub(crate) const NAMESPACES: &str = "/api/v1/namespaces";

/// Returns a server with these definitions of kinds. Every run gets forks of it, because compiling them takes longer
/// than most runs.
///
/// # Errors
/// A definition is wrong. The error is text, so that a static can hold it.
pub(crate) fn prepared(definitions: impl IntoIterator<Item = Value>) -> Result<ApiServer, String> {
    let server = ApiServer::starting_at(clock::now());
    for definition in definitions {
        let installed = server.install(&definition);
        installed.map_err(|error| error.to_string())?;
    }
    Ok(server)
}

/// Access to an API by its paths.
pub(crate) trait Access {
    /// Sends a request and reads the whole response.
    async fn exchange(&self, request: Request<Body>) -> Result<(StatusCode, Value)>;

    /// Sends a request. A patch that is a list is a JSON patch, and else a merge patch.
    async fn send(&self, method: Method, path: &str, body: &Value) -> Result<(StatusCode, Value)> {
        let kind = match (&method, body) {
            (&Method::PATCH, Value::Array(_)) => "application/json-patch+json",
            (&Method::PATCH, _) => "application/merge-patch+json",
            _ => "application/json",
        };
        let body = match body {
            Value::Null => Body::empty(),
            body => body.to_string().into_bytes().into(),
        };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::USER_AGENT, USER_AGENT)
            .header(header::CONTENT_TYPE, kind);
        self.exchange(request.body(body)?).await
    }

    /// Reads an object or a list. Returns `None` if it does not exist.
    async fn get(&self, path: &str) -> Result<Option<Value>> {
        let (status, body) = self.send(Method::GET, path, &Value::Null).await?;
        if status == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        ensure!(status.is_success(), "GET {path}: {body}");
        Ok(Some(body))
    }

    /// Reads the objects of a collection.
    async fn list(&self, path: &str) -> Result<Vec<Value>> {
        let mut body = self.get(path).await?.unwrap_or_default();
        let items = body["items"].as_array_mut();
        Ok(items.map(std::mem::take).unwrap_or_default())
    }

    /// Reads the objects of a collection by their names.
    async fn by_name(&self, path: &str) -> Result<BTreeMap<String, Value>> {
        let objects = self.list(path).await?.into_iter();
        Ok(objects
            .map(|object| (name(&object).to_owned(), object))
            .collect())
    }

    /// Creates an object, or patches that of its name.
    async fn put(&self, collection: &str, object: &Value, patch: &Value) -> Result<()> {
        if self.create(collection, object).await? {
            return Ok(());
        }
        let path = format!("{collection}/{}", name(object));
        self.patch(&path, patch).await
    }

    /// Creates an object. Returns `false` if it exists already, or its namespace does not.
    async fn create(&self, collection: &str, object: &Value) -> Result<bool> {
        let created = self.write(Method::POST, collection, object).await?;
        Ok(created.is_some())
    }

    /// Creates a namespace unless it exists.
    async fn create_namespace(&self, name: &str) -> Result<()> {
        let namespace = json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name },
        });
        self.create(NAMESPACES, &namespace).await?;
        Ok(())
    }

    /// Changes an object if it exists.
    async fn patch(&self, path: &str, patch: &Value) -> Result<()> {
        self.write(Method::PATCH, path, patch).await?;
        Ok(())
    }

    /// Deletes an object if it exists.
    async fn delete(&self, path: &str) -> Result<()> {
        self.write(Method::DELETE, path, &Value::Null).await?;
        Ok(())
    }

    /// Sends a write. Returns `None` if the object is absent, exists already or has changed meanwhile,
    /// all of which random sequences cause.
    async fn write(&self, method: Method, path: &str, body: &Value) -> Result<Option<Value>> {
        let (status, response) = self.send(method.clone(), path, body).await?;
        let is_expected = matches!(status, StatusCode::NOT_FOUND | StatusCode::CONFLICT);
        ensure!(
            is_expected || status.is_success(),
            "{method} {path} of {body}: {response}"
        );
        Ok(status.is_success().then_some(response))
    }
}

impl Access for Client {
    async fn exchange(&self, request: Request<Body>) -> Result<(StatusCode, Value)> {
        let response = Self::send(self, request).await?;
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        Ok((status, serde_json::from_slice(&body)?))
    }
}

impl Access for ApiServer {
    async fn exchange(&self, request: Request<Body>) -> Result<(StatusCode, Value)> {
        let response = self.service().oneshot(request).await?;
        let status = response.status();
        let body = response.into_body().collect().await;
        let body = body.map_err(|error| anyhow::anyhow!("{error}"))?.to_bytes();
        Ok((status, serde_json::from_slice(&body)?))
    }
}

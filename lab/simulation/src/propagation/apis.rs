//! The API of the fleet and those of its members, and the requests of everybody but our programs.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, LazyLock};

use anyhow::{Result, anyhow, ensure};
use embedded_apiserver::ApiServer;
use http::{Method, Request, StatusCode, header};
use http_body_util::BodyExt;
use parking_lot::Mutex;
use serde_json::Value;
use tower::Service;

use crate::clock;

/// A server with the kinds of a fleet. Every run gets a fork of it, because compiling the definitions takes
/// longer than most runs.
static FLEET: LazyLock<Result<ApiServer, String>> = LazyLock::new(|| {
    let server = ApiServer::starting_at(clock::now());
    for definition in karmada_api::crd::fleet().map_err(|error| error.to_string())? {
        let installed = server.install(&definition);
        installed.map_err(|error| error.to_string())?;
    }
    Ok(server)
});

/// The servers.
#[derive(Clone, Debug)]
pub(crate) struct Apis {
    pub(crate) fleet: ApiServer,
    /// The members, by the addresses at which Clusters name them. One that joins again is a new one.
    pub(crate) members: Arc<Mutex<BTreeMap<String, ApiServer>>>,
    /// Set once the API of the fleet shows Deployments with a further default.
    pub(crate) is_upgraded: Arc<AtomicBool>,
}

impl Apis {
    pub(crate) fn new() -> Result<Self> {
        let fleet = FLEET.as_ref().map_err(|error| anyhow!("{error}"))?;
        Ok(Self {
            fleet: fleet.fork(),
            members: Arc::default(),
            is_upgraded: Arc::default(),
        })
    }

    /// Returns the member at an address.
    pub(crate) fn member(&self, endpoint: &str) -> Option<ApiServer> {
        self.members.lock().get(endpoint).cloned()
    }

    /// Returns the version of the objects of each server.
    pub(crate) fn versions(&self) -> Vec<u64> {
        let servers = self.all();
        servers.iter().map(ApiServer::version).collect()
    }

    /// Returns every server.
    pub(crate) fn all(&self) -> Vec<ApiServer> {
        let members = self.members.lock();
        [&self.fleet]
            .into_iter()
            .chain(members.values())
            .cloned()
            .collect()
    }
}

/// Sends a request and reads the whole response. A patch that is a list is a JSON patch, and else a merge patch.
pub(crate) async fn send(
    server: &ApiServer,
    method: Method,
    path: &str,
    body: &Value,
) -> Result<(StatusCode, Value)> {
    let kind = match (&method, body) {
        (&Method::PATCH, Value::Array(_)) => "application/json-patch+json",
        (&Method::PATCH, _) => "application/merge-patch+json",
        _ => "application/json",
    };
    let body = match body {
        Value::Null => String::new(),
        body => body.to_string(),
    };
    let request = Request::builder()
        .method(method)
        .uri(path)
        // Faults are limited to the user agents of the programs.
        .header(header::USER_AGENT, "simulation")
        .header(header::CONTENT_TYPE, kind);
    let response = server.service().call(request.body(body)?).await?;
    let status = response.status();
    let body = response.into_body().collect().await?.to_bytes();
    Ok((status, serde_json::from_slice(&body)?))
}

/// Sends a write. Returns `false` if the object is absent, exists already or has changed meanwhile, all of
/// which random sequences cause.
pub(crate) async fn write(
    server: &ApiServer,
    method: Method,
    path: &str,
    body: &Value,
) -> Result<bool> {
    let (status, response) = send(server, method.clone(), path, body).await?;
    let is_expected = matches!(status, StatusCode::NOT_FOUND | StatusCode::CONFLICT);
    ensure!(
        is_expected || status.is_success(),
        "{method} {path} of {body}: {response}"
    );
    Ok(status.is_success())
}

/// Reads an object.
pub(crate) async fn get(server: &ApiServer, path: &str) -> Result<Option<Value>> {
    let (status, body) = send(server, Method::GET, path, &Value::Null).await?;
    if status == StatusCode::NOT_FOUND {
        return Ok(None);
    }
    ensure!(status.is_success(), "GET {path}: {body}");
    Ok(Some(body))
}

/// Reads the objects of a collection.
pub(crate) async fn list(server: &ApiServer, path: &str) -> Result<Vec<Value>> {
    let mut body = get(server, path).await?.unwrap_or_default();
    let items = body["items"].as_array_mut();
    Ok(items.map(std::mem::take).unwrap_or_default())
}

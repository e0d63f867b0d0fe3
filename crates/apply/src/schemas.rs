//! The schemas of a cluster's kinds, as far as one can be told from the next.

use std::time::Duration;

use kube::Client;
use objects::GroupVersionKind;
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use crate::error::MemberError;

/// The longest duration of a read.
const LIMIT: Duration = Duration::from_secs(10);
/// The time for which a schema is good: many objects may ask at once.
const FRESH: Duration = Duration::from_secs(30);

/// The index of a cluster's schemas.
pub(crate) struct Schemas {
    client: Client,
    index: Mutex<Option<(Instant, Value)>>,
}

impl Schemas {
    pub(crate) fn new(client: Client) -> Self {
        Self {
            client,
            index: Mutex::default(),
        }
    }

    /// Returns the hash of the schemas in the version of a kind; empty if the cluster tells none.
    pub(crate) async fn hash(&self, kind: &GroupVersionKind) -> Result<String, MemberError> {
        let mut index = self.index.lock().await;
        let read = match index.take() {
            Some((time, read)) if time.elapsed() < FRESH => (time, read),
            _ => (Instant::now(), self.read().await?),
        };
        let path = match kind.group.as_str() {
            "" => format!("api/{}", kind.version),
            group => format!("apis/{group}/{}", kind.version),
        };
        let (_, paths) = index.insert(read);
        let url = paths["paths"][path]["serverRelativeURL"].as_str();
        let hash = url
            .and_then(|url| url.split_once("hash="))
            .unwrap_or_default();
        // Enough of it to tell two apart.
        Ok(hash.1.chars().take(8).collect())
    }

    async fn read(&self) -> Result<Value, MemberError> {
        let request = "get the schemas".to_owned();
        let index = http::Request::get("/openapi/v3").body(Vec::new());
        let index = index.map_err(kube::Error::HttpError);
        let answered = match index {
            Ok(index) => timeout(LIMIT, self.client.request(index)).await,
            Err(error) => Ok(Err(error)),
        };
        match answered {
            Ok(Ok(index)) => Ok(index),
            // An older cluster has none, and another may not show it to us.
            Ok(Err(kube::Error::Api(status))) if [403, 404].contains(&status.code) => {
                Ok(Value::Null)
            }
            Ok(Err(error)) => Err(MemberError::Request { request, error }),
            Err(_) => Err(MemberError::TimedOut { request }),
        }
    }
}

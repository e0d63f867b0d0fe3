//! Watches, read event by event.

use anyhow::{Context, Result, bail};
use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::Value;
use tokio::time::{Duration, timeout};

/// The time after which an event is considered missing.
const LIMIT: Duration = Duration::from_mins(1);

/// The response to a request with `watch=true`.
pub(crate) struct Watch {
    body: Body,
    buffer: Vec<u8>,
}

impl Watch {
    pub(crate) fn new(body: Body) -> Self {
        Self {
            body,
            buffer: vec![],
        }
    }

    /// Returns the next event, or `None` at the end of the watch.
    pub(crate) async fn next(&mut self) -> Result<Option<Value>> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<_> = self.buffer.drain(..=end).collect();
                return Ok(Some(serde_json::from_slice(&line)?));
            }
            let frame = timeout(LIMIT, self.body.frame())
                .await
                .context("no event comes")?;
            match frame {
                None if self.buffer.is_empty() => return Ok(None),
                None => bail!("the watch ends within a line"),
                Some(frame) => {
                    if let Ok(data) = frame?.into_data() {
                        self.buffer.extend_from_slice(&data);
                    }
                }
            }
        }
    }

    /// Returns the object of the next event, which must have this type.
    pub(crate) async fn expect(&mut self, type_: &str) -> Result<Value> {
        let event = self
            .next()
            .await?
            .with_context(|| format!("the watch ended instead of {type_}"))?;
        if event["type"] != type_ {
            bail!("the event is {event} instead of {type_}");
        }
        Ok(event["object"].clone())
    }

    /// Returns the object of the next event that is not a bookmark, which must have this type.
    pub(crate) async fn change(&mut self, type_: &str) -> Result<Value> {
        loop {
            let event = self
                .next()
                .await?
                .with_context(|| format!("the watch ended instead of {type_}"))?;
            if event["type"] == type_ {
                return Ok(event["object"].clone());
            }
            if event["type"] != "BOOKMARK" {
                bail!("the event is {event} instead of {type_}");
            }
        }
    }
}

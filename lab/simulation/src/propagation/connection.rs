//! The connections to the API of the fleet, which may become that of a later version.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use embedded_apiserver::Body;
use http::{Request, Response};
use http_body_util::BodyExt;
use tower::Service;

use crate::harness::connection::Connection;

/// The connection of one process to the API of the fleet.
#[derive(Clone, Debug)]
pub(crate) struct ToFleet {
    pub(crate) connection: Connection,
    /// Set once the API shows Deployments with a further default.
    pub(crate) is_upgraded: Arc<AtomicBool>,
}

impl ToFleet {
    async fn exchange(
        mut self,
        request: Request<kube::client::Body>,
    ) -> io::Result<Response<Body>> {
        let is_of_deployments = request.uri().path().contains("/deployments");
        let response = self.connection.call(request).await?;
        if is_of_deployments && self.is_upgraded.load(Ordering::Relaxed) {
            return Ok(response.map(with_default));
        }
        Ok(response)
    }
}

/// Adds a default to the Deployments in a response.
fn with_default(body: Body) -> Body {
    let (before, after) = (
        r#""containers":["#,
        r#""enableServiceLinks":true,"containers":["#,
    );
    // Each object is in one frame.
    body.map_frame(move |frame| {
        frame.map_data(|data| match str::from_utf8(&data) {
            Ok(text) => text.replace(before, after).into(),
            Err(_) => data,
        })
    })
    .boxed_unsync()
}

impl Service<Request<kube::client::Body>> for ToFleet {
    type Response = Response<Body>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<kube::client::Body>) -> Self::Future {
        Box::pin(self.clone().exchange(request))
    }
}

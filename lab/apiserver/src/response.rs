//! HTTP responses, and the error that stands for a lost connection.

use std::io;

use axum::body::Body;
use http::{HeaderValue, Response, StatusCode, header};

use crate::error::ApiError;

/// Returns a JSON response with one `Warning` header per warning (code 299, RFC 7234 section
/// 5.5.7).
pub(crate) fn json(code: StatusCode, body: impl Into<Body>, warnings: &[String]) -> Response<Body> {
    let mut response = Response::new(body.into());
    *response.status_mut() = code;
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    for warning in warnings {
        let quoted = warning.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::try_from(format!("299 - \"{quoted}\"")) {
            headers.append(header::WARNING, value);
        }
    }
    response
}

pub(crate) fn plain(text: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    let type_ = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, type_);
    response
}

pub(crate) fn failure(error: &ApiError) -> Response<Body> {
    let mut response = match error.plain() {
        Some(text) => plain(text),
        None => json(error.code(), error.status().to_string(), error.warnings()),
    };
    *response.status_mut() = error.code();
    if let Some(seconds) = error.retry_after() {
        response
            .headers_mut()
            .insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

pub(crate) fn disconnected() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, "the connection was lost")
}

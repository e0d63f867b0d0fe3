//! HTTP responses, and the error that stands for a lost connection.

use std::convert::Infallible;
use std::io;

use bytes::Bytes;
use futures::{Stream, TryStreamExt};
use http::{HeaderValue, Response, StatusCode, header};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};

use crate::error::ApiError;

/// The body of a request or a response: a document, or the lines of a watch. Its only error is a lost
/// connection.
pub type Body = UnsyncBoxBody<Bytes, io::Error>;

const JSON: &str = "application/json";

/// Returns a JSON response with one `Warning` header per warning (code 299, RFC 7234 section
/// 5.5.7).
pub(crate) fn json(
    code: StatusCode,
    text: impl Into<Bytes>,
    warnings: &[String],
) -> Response<Body> {
    let mut response = document(JSON, text);
    *response.status_mut() = code;
    let headers = response.headers_mut();
    for warning in warnings {
        let quoted = warning.replace('\\', "\\\\").replace('"', "\\\"");
        // A warning that no header may contain, as it has a line break in a field's name, is not sent.
        if let Ok(value) = HeaderValue::try_from(format!("299 - \"{quoted}\"")) {
            headers.append(header::WARNING, value);
        }
    }
    response
}

/// Returns a successful response with a whole document.
pub(crate) fn document(media_type: &'static str, text: impl Into<Bytes>) -> Response<Body> {
    let body = Full::new(text.into()).map_err(|never: Infallible| match never {});
    typed(media_type, body.boxed_unsync())
}

/// Returns a successful response whose JSON lines are sent as they come.
pub(crate) fn lines(
    lines: impl Stream<Item = io::Result<Bytes>> + Send + 'static,
) -> Response<Body> {
    let body = StreamBody::new(lines.map_ok(Frame::data));
    typed(JSON, body.boxed_unsync())
}

fn typed(media_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    let media_type = HeaderValue::from_static(media_type);
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, media_type);
    response
}

pub(crate) fn plain(text: &'static str) -> Response<Body> {
    document("text/plain; charset=utf-8", text)
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

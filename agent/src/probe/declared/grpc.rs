//! A server that is to say `SERVING` by the health protocol of gRPC, `grpc.health.v1.Health/Check`.
//!
//! Its two messages have one field each, so they are written here and no library is needed. `Check` and not `Watch`, which
//! servers disagree about for names that they do not know.

use std::net::SocketAddr;
use std::path::PathBuf;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use health::failure::FailureClass;
use http::{HeaderMap, Request, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use karmada_runtime::error::BoxError;
use serde::Deserialize;
use tokio::time::timeout_at;

use super::exchange::{Endpoint, MALFORMED, driven, ended, path_of};
use super::kind::{Attempt, Kind};
use super::tls::Stream;
use super::unmet::{NO_ADDRESS, REFUSED, RESET, TIMEOUT, TLS, UNREACHABLE, Unmet};

/// The server says that it does not serve.
const NOT_SERVING: FailureClass = FailureClass::new(0, "not-serving");
/// The server does not know the service.
const UNKNOWN_SERVICE: FailureClass = FailureClass::new(1, "unknown-service");
/// The server has no health service.
const UNIMPLEMENTED: FailureClass = FailureClass::new(2, "unimplemented");
/// The server answers with another code than `OK`.
const ERROR_CODE: FailureClass = FailureClass::new(3, "error-code");

const METHOD: &str = "/grpc.health.v1.Health/Check";
const CONTENT_TYPE: &str = "application/grpc";
/// The largest response that is read, in bytes.
const LARGEST: usize = 64 * 1024;
/// The longest name of a service.
const LONGEST_SERVICE: usize = 253;

/// A `HealthCheckResponse.ServingStatus`.
const SERVING: u64 = 1;
const SERVICE_UNKNOWN: u64 = 3;

/// A health check.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Grpc {
    address: String,
    /// The service; empty for the server as a whole.
    #[serde(default)]
    service: String,
    /// The file with the authorities that certify the server; without it the connection is in plaintext.
    #[serde(default)]
    ca: Option<PathBuf>,
}

impl Kind for Grpc {
    fn check(&self) -> Result<(), String> {
        Endpoint::parse(&self.address)?;
        if self.service.len() > LONGEST_SERVICE {
            return Err(format!("service is longer than {LONGEST_SERVICE} bytes"));
        }
        path_of("ca", self.ca.as_ref())
    }

    fn classes(&self) -> &'static [FailureClass] {
        &[
            NOT_SERVING,
            UNKNOWN_SERVICE,
            UNIMPLEMENTED,
            ERROR_CODE,
            MALFORMED,
            NO_ADDRESS,
            TLS,
            REFUSED,
            RESET,
            UNREACHABLE,
            TIMEOUT,
        ]
    }

    fn warnings(&self) -> Vec<String> {
        let warning = "without a service most servers say SERVING whatever happens: name one";
        let warns = self.service.is_empty();
        warns.then(|| warning.to_owned()).into_iter().collect()
    }

    fn observe<'a>(&'a self, attempt: &'a Attempt<'a>) -> BoxFuture<'a, Result<(), Unmet>> {
        async move {
            let endpoint = Endpoint::parse(&self.address).map_err(Unmet::unobserved)?;
            let request = self.request(&endpoint)?;
            let ca = self.ca.as_deref();
            let (stream, server) = endpoint.open(ca, b"h2", attempt).await?;
            match timeout_at(attempt.deadline, exchange(stream, request)).await {
                Ok(Ok(answer)) => answer.verdict(server),
                Ok(Err(error)) => Err(ended(&*error, server)),
                Err(_) => Err(Unmet::late(server)),
            }
        }
        .boxed()
    }
}

impl Grpc {
    fn request(&self, endpoint: &Endpoint) -> Result<Request<Full<Bytes>>, Unmet> {
        let scheme = if self.ca.is_some() { "https" } else { "http" };
        let uri = format!("{scheme}://{}{METHOD}", endpoint.authority());
        Request::post(uri)
            .header(header::CONTENT_TYPE, CONTENT_TYPE)
            .header(header::TE, "trailers")
            .header(header::USER_AGENT, crate::identity::NAME)
            .body(Full::new(frame(&check_request(&self.service))))
            .map_err(|_| Unmet::unobserved("the address makes no request"))
    }
}

/// The answer of a server.
struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
    trailers: HeaderMap,
}

async fn exchange(
    stream: Box<dyn Stream>,
    request: Request<Full<Bytes>>,
) -> Result<Answer, BoxError> {
    let io = TokioIo::new(stream);
    let (mut sender, connection) = http2::handshake(TokioExecutor::new(), io).await?;
    let exchanging = async {
        let (head, body) = sender.send_request(request).await?.into_parts();
        let body = Limited::new(body, LARGEST).collect().await?;
        let trailers = body.trailers().cloned().unwrap_or_default();
        Ok::<_, BoxError>(Answer {
            status: head.status,
            headers: head.headers,
            body: body.to_bytes(),
            trailers,
        })
    };
    driven(connection, exchanging).await
}

impl Answer {
    fn verdict(&self, server: SocketAddr) -> Result<(), Unmet> {
        let is_grpc = self
            .headers
            .get(header::CONTENT_TYPE)
            .is_some_and(|kind| kind.as_bytes().starts_with(CONTENT_TYPE.as_bytes()));
        // A proxy in front of it answers in its own words, and may add a code of its own invention to them.
        let code = self
            .code()
            .filter(|_| is_grpc && self.status == StatusCode::OK);
        let class = match code {
            Some(0) => return serving(&self.body, server),
            Some(5) => UNKNOWN_SERVICE,
            Some(12) => UNIMPLEMENTED,
            Some(_) => ERROR_CODE,
            None => {
                let details = format!("status {} is no response of gRPC", self.status);
                return Err(Unmet::failed(MALFORMED, server, details));
            }
        };
        let details = format!("grpc-status {}", code.unwrap_or_default());
        Err(Unmet::failed(class, server, details))
    }

    /// Returns the code in the trailers, or that in the headers of a response without a message.
    fn code(&self) -> Option<u32> {
        let sent = [&self.trailers, &self.headers];
        let mut codes = sent.into_iter().filter_map(|map| map.get("grpc-status"));
        codes.next()?.to_str().ok()?.parse().ok()
    }
}

/// Returns the answer in the message `body`.
fn serving(body: &[u8], server: SocketAddr) -> Result<(), Unmet> {
    match status_of(body) {
        Some(SERVING) => Ok(()),
        Some(SERVICE_UNKNOWN) => Err(Unmet::failed(
            UNKNOWN_SERVICE,
            server,
            "the server does not know the service",
        )),
        Some(status) => Err(Unmet::failed(
            NOT_SERVING,
            server,
            format!("serving status {status}"),
        )),
        None => Err(Unmet::failed(MALFORMED, server, "no HealthCheckResponse")),
    }
}

/// Returns a message as gRPC frames it: whether it is compressed, its length, and itself.
fn frame(message: &[u8]) -> Bytes {
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
    [&[0_u8][..], &length.to_be_bytes()[..], message]
        .concat()
        .into()
}

/// Returns the `HealthCheckRequest` for a service, whose one field is its name.
fn check_request(service: &str) -> Vec<u8> {
    const FIELD_1_LENGTH_DELIMITED: u8 = 0x0a;
    if service.is_empty() {
        return Vec::new();
    }
    let mut message = vec![FIELD_1_LENGTH_DELIMITED];
    let mut length = service.len();
    while length >= 0x80 {
        message.push(u8::try_from(length % 0x80).unwrap_or_default() | 0x80);
        length /= 0x80;
    }
    message.push(u8::try_from(length).unwrap_or_default());
    message.extend(service.as_bytes());
    message
}

/// Returns the status in the framed `HealthCheckResponse`, or `None` if it is none. Fields that it may get later are skipped.
fn status_of(body: &[u8]) -> Option<u64> {
    let (head, mut message) = body.split_at_checked(5)?;
    let (compressed, length) = head.split_first()?;
    let length = u32::from_be_bytes(length.try_into().ok()?);
    if *compressed != 0 || usize::try_from(length).ok()? != message.len() {
        return None;
    }
    // Absent, it is the default of its type.
    let mut status = 0;
    while !message.is_empty() {
        let tag = varint(&mut message)?;
        match tag & 7 {
            0 => {
                let value = varint(&mut message)?;
                if tag >> 3 == 1 {
                    status = value;
                }
            }
            1 => message = message.get(8..)?,
            2 => {
                let length = usize::try_from(varint(&mut message)?).ok()?;
                message = message.get(length..)?;
            }
            5 => message = message.get(4..)?,
            _ => return None,
        }
    }
    Some(status)
}

/// Takes a number off the front of `bytes`.
fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for place in 0..10 {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As protoc writes them.
    #[test]
    fn request_is_that_of_protobuf() {
        assert_eq!(&*frame(&check_request("")), [0, 0, 0, 0, 0]);
        assert_eq!(
            &*frame(&check_request("shop")),
            [0, 0, 0, 0, 6, 0x0a, 4, b's', b'h', b'o', b'p']
        );
        let long = check_request(&"s".repeat(200));
        assert_eq!((&long[..3], long.len()), (&[0x0a, 0xc8, 1][..], 203));
    }

    #[test]
    fn status_is_read_leniently() {
        for (body, expected) in [
            (&[0, 0, 0, 0, 2, 8, 1][..], Some(1)),
            (&[0, 0, 0, 0, 0], Some(0)),
            // A newer field before it, and one behind it.
            (&[0, 0, 0, 0, 7, 0x12, 1, b'x', 8, 2, 0x18, 9], Some(2)),
            // Nothing, no frame, compressed, cut off, an endless number.
            (&[], None),
            (b"hello", None),
            (&[1, 0, 0, 0, 2, 8, 1], None),
            (&[0, 0, 0, 0, 2, 8], None),
            (&[0, 0, 0, 0, 1, 8], None),
            (&[0, 0, 0, 0, 1, 0x80], None),
        ] {
            assert_eq!(status_of(body), expected, "{body:?}");
        }
    }
}

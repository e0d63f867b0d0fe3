//! Requests over HTTP, each on a connection of its own: a kept one goes on through rules that are gone. Nothing is followed
//! elsewhere, and no more of a body is read than is asked for.

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::pin;

use bytes::Bytes;
use health::failure::FailureClass;
use http::uri::{Authority, Scheme};
use http::{HeaderValue, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use karmada_runtime::error::{BoxError, Chain};
use objects::qualified_name::is_subdomain;
use tokio::time::timeout_at;

use super::bounded::read_up_to;
use super::kind::Attempt;
use super::network::is_metadata_service;
use super::tls::Stream;
use super::unmet::{RESET, Unmet};
use crate::flag_values::port_of;

/// The server does not speak the protocol.
pub(super) const MALFORMED: FailureClass = FailureClass::new(99, "malformed");

/// The file with the authorities that the public trusts, where our images and most systems have it.
const PUBLIC: &str = "/etc/ssl/certs/ca-certificates.crt";
const BEARER: &str = "Bearer ";
/// The longest token, in bytes.
const LONGEST_TOKEN: usize = 16 * 1024;

/// The host and the port of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Endpoint {
    pub(super) host: String,
    pub(super) port: u16,
}

impl Endpoint {
    /// Parses `HOST:PORT`.
    ///
    /// # Errors
    /// Returns a message for the user.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let parsed = text.rsplit_once(':').and_then(|(host, port)| {
            let port = port.parse().ok()?;
            Some((host, port))
        });
        let Some((host, port)) = parsed else {
            return Err("address is no HOST:PORT, such as payments.shop.svc:8443".to_owned());
        };
        Self::of(host, port)
    }

    /// Checks a host, an IPv6 address in brackets among them.
    fn of(host: &str, port: u16) -> Result<Self, String> {
        let bare = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        if bare.is_none() && host.contains(':') {
            return Err("the host is an IPv6 address without brackets".to_owned());
        }
        let host = bare.unwrap_or(host);
        let ip = host.parse();
        if ip.is_err() && !is_subdomain(host.trim_end_matches('.')) {
            return Err("the host is neither an address nor a name in lower case".to_owned());
        }
        if ip.is_ok_and(is_metadata_service) {
            return Err(
                "the host is the metadata service of a cloud, which no probe may ask".to_owned(),
            );
        }
        if port == 0 {
            return Err("the port is 0".to_owned());
        }
        Ok(Self {
            host: host.to_owned(),
            port,
        })
    }

    /// Returns it as a URL has it.
    pub(super) fn authority(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    /// Connects, by TLS if there is a file of authorities.
    pub(super) async fn open(
        &self,
        ca: Option<&Path>,
        protocol: &[u8],
        attempt: &Attempt<'_>,
    ) -> Result<(Box<dyn Stream>, SocketAddr), Unmet> {
        let deadline = attempt.deadline;
        let connecting = attempt.node.connect(&self.host, self.port, deadline);
        let (stream, server) = connecting.await?;
        let stream: Box<dyn Stream> = match ca {
            None => Box::new(stream),
            Some(ca) => {
                let authorities = &attempt.node.authorities;
                let securing =
                    authorities.secured((stream, server), &self.host, ca, protocol, deadline);
                securing.await?
            }
        };
        Ok((stream, server))
    }
}

/// A URL, with the authorities of its server and the token for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Location<'a> {
    pub(super) url: &'a str,
    pub(super) ca: Option<&'a PathBuf>,
    pub(super) token: Option<&'a PathBuf>,
}

/// A response.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) body: Bytes,
    pub(super) server: SocketAddr,
    /// The header with the token, which the server may quote.
    authorization: Option<HeaderValue>,
}

impl Answer {
    /// Returns a text of the server without our token.
    pub(super) fn without_token(&self, text: &str) -> String {
        let header = self.authorization.as_ref().and_then(|it| it.to_str().ok());
        let token = header.and_then(|header| header.strip_prefix(BEARER));
        match token {
            Some(token) => text.replace(token, "(token)"),
            None => text.to_owned(),
        }
    }
}

impl Location<'_> {
    /// Checks the declaration.
    ///
    /// # Errors
    /// Returns a message for the user.
    pub(super) fn check(&self) -> Result<(), String> {
        let (uri, _) = self.parts()?;
        let is_https = uri.scheme() == Some(&Scheme::HTTPS);
        if !is_https && self.ca.is_some() {
            return Err("ca is given, and the url is not of https".to_owned());
        }
        if !is_https && self.token.is_some() {
            return Err("token would be sent in plaintext: use https".to_owned());
        }
        path_of("ca", self.ca)?;
        path_of("token", self.token)
    }

    fn parts(&self) -> Result<(Uri, Endpoint), String> {
        const NO_URL: &str = "url is none, such as https://registry.example.com/v2/";
        let uri: Uri = self.url.parse().map_err(|_| NO_URL)?;
        let default = match uri.scheme_str() {
            Some("http") => 80,
            Some("https") => 443,
            _ => return Err("url begins with neither http:// nor https://".to_owned()),
        };
        let authority = uri.authority().ok_or(NO_URL)?;
        if authority.as_str().contains('@') {
            return Err("url has credentials: put a token in a file and name that".to_owned());
        }
        let port = port_of(authority, default)
            .ok_or_else(|| "the port of the url is no number up to 65535".to_owned())?;
        let endpoint = Endpoint::of(authority.host(), port)?;
        Ok((uri, endpoint))
    }

    /// Requests the URL, with `query` behind it if there is one, and reads at most `largest` bytes of the response's body.
    pub(super) async fn get(
        &self,
        query: Option<&str>,
        largest: usize,
        attempt: &Attempt<'_>,
    ) -> Result<Answer, Unmet> {
        let (uri, endpoint) = self.parts().map_err(Unmet::unobserved)?;
        let authorization = self.token.map(|path| bearer(path)).transpose()?;
        let request = request(&uri, query, authorization.clone())?;
        let is_https = uri.scheme() == Some(&Scheme::HTTPS);
        let ca = self.ca.map_or_else(|| Path::new(PUBLIC), PathBuf::as_path);
        let ca = is_https.then_some(ca);
        let (stream, server) = endpoint.open(ca, b"http/1.1", attempt).await?;
        let exchanged = timeout_at(attempt.deadline, exchange(stream, request, largest)).await;
        match exchanged {
            Ok(Ok((status, body))) => Ok(Answer {
                status,
                body,
                server,
                authorization,
            }),
            Ok(Err(error)) => Err(ended(&*error, server)),
            Err(_) => Err(Unmet::late(server)),
        }
    }
}

fn request(
    uri: &Uri,
    query: Option<&str>,
    authorization: Option<HeaderValue>,
) -> Result<Request<Empty<Bytes>>, Unmet> {
    // Displayed, it begins with a slash even where the URL has none before its query.
    let path = uri.path_and_query().map(ToString::to_string);
    let mut path = path.unwrap_or_else(|| "/".to_owned());
    if let Some(query) = query {
        path = format!("{path}?{query}");
    }
    let host = uri.authority().map_or("", Authority::as_str);
    let mut request = Request::get(path)
        .header(header::HOST, host)
        .header(header::USER_AGENT, crate::identity::NAME)
        .header(header::CONNECTION, "close");
    if let Some(authorization) = authorization {
        request = request.header(header::AUTHORIZATION, authorization);
    }
    request
        .body(Empty::new())
        .map_err(|_| Unmet::unobserved("the url makes no request"))
}

/// Checks that a path is given as a path: who puts a token itself there must not read it in an error.
///
/// # Errors
/// Returns a message for the user.
pub(super) fn path_of(field: &str, path: Option<&PathBuf>) -> Result<(), String> {
    match path {
        Some(path) if !path.is_absolute() => Err(format!("{field} is no absolute path of a file")),
        _ => Ok(()),
    }
}

/// Returns the header of the token in a file, which no error quotes.
fn bearer(path: &Path) -> Result<HeaderValue, Unmet> {
    let shown = path.display();
    let token = read_up_to(path, LONGEST_TOKEN)
        .map_err(|error| Unmet::unobserved(format!("cannot read {shown}: {error}")))?;
    if token.len() > LONGEST_TOKEN {
        return Err(Unmet::unobserved(format!(
            "{shown} is too long for a token"
        )));
    }
    let token = std::str::from_utf8(&token).map(str::trim);
    let token = token.ok().filter(|token| !token.is_empty());
    let header = token.and_then(|token| HeaderValue::from_str(&format!("{BEARER}{token}")).ok());
    let mut header = header.ok_or_else(|| Unmet::unobserved(format!("{shown} has no token")))?;
    header.set_sensitive(true);
    Ok(header)
}

async fn exchange(
    stream: Box<dyn Stream>,
    request: Request<Empty<Bytes>>,
    largest: usize,
) -> Result<(StatusCode, Bytes), BoxError> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let exchanging = async {
        let response = sender.send_request(request).await?;
        let status = response.status();
        if largest == 0 {
            return Ok((status, Bytes::new()));
        }
        let body = Limited::new(response.into_body(), largest)
            .collect()
            .await?;
        Ok::<_, BoxError>((status, body.to_bytes()))
    };
    driven(connection, exchanging).await
}

/// Returns the result of `exchanging`, while its connection does its work.
pub(super) async fn driven<T>(
    connection: impl Future<Output = hyper::Result<()>>,
    exchanging: impl Future<Output = T>,
) -> T {
    let mut connection = pin!(connection);
    let mut exchanging = pin!(exchanging);
    tokio::select! {
        biased;
        exchanged = &mut exchanging => return exchanged,
        // The result of the exchange tells how it ended, too.
        _ = &mut connection => {}
    }
    exchanging.await
}

/// Returns the end of an exchange with `server` by this error.
pub(super) fn ended(error: &(dyn Error + Send + Sync + 'static), server: SocketAddr) -> Unmet {
    let mut next: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = next {
        if let Some(io) = error.downcast_ref::<io::Error>() {
            return Unmet::by_io(io, server);
        }
        next = error.source();
    }
    let by_hyper = error.downcast_ref::<hyper::Error>();
    let class = match by_hyper {
        Some(error) if error.is_parse() => MALFORMED,
        _ => RESET,
    };
    Unmet::failed(class, server, Chain(error).to_string())
}

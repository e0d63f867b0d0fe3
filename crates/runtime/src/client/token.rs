//! A bearer token in a file that is rewritten before it expires, like that of a pod's service account.
//! kube rereads such a file a minute later by the system clock; if that is set back by hours, kube
//! keeps sending an expired token. This module measures the minute by monotonic time.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt, TryFutureExt};
use http::{HeaderValue, Request, Response, header};
use kube::config::AuthInfo;
use parking_lot::Mutex;
use tokio::time::Instant;
use tower::Service;

use super::error::ClientError;
use super::selected::inline_token;

/// The longest use of a token before the file is read again (as in client-go).
const MAX_AGE: Duration = Duration::from_mins(1);

/// A token shared by its clones.
#[derive(Clone, Debug)]
pub(super) struct TokenFile {
    path: PathBuf,
    token: Arc<Mutex<Token>>,
}

#[derive(Debug)]
struct Token {
    authorization: HeaderValue,
    read: Instant,
}

impl TokenFile {
    /// Takes the token file out of `credentials`, unless they have something that takes precedence. A token beside it serves
    /// until the file can be read (as in client-go).
    ///
    /// # Errors
    /// Fails if the file cannot be read or holds no token, and there is no token beside it.
    pub(super) fn take(credentials: &mut AuthInfo) -> Result<Option<Self>, ClientError> {
        let others = credentials.auth_provider.is_some()
            || credentials.username.is_some() && credentials.password.is_some();
        let Some(path) = credentials.token_file.take_if(|_| !others) else {
            return Ok(None);
        };
        let path = PathBuf::from(path);
        let beside = inline_token(credentials);
        credentials.token = None;
        let authorization = read(&path).or_else(|error| match beside {
            Some(token) => header_of(&token).map_err(io::Error::other),
            None => Err(error),
        });
        let authorization = authorization.map_err(|source| ClientError::TokenFile {
            path: path.clone(),
            source,
        })?;
        let token = Token {
            authorization,
            read: Instant::now(),
        };
        Ok(Some(Self {
            path,
            token: Arc::new(Mutex::new(token)),
        }))
    }

    /// Adds the token to a request.
    pub(super) fn authorize<B>(&self, mut request: Request<B>) -> Request<B> {
        let mut token = self.token.lock();
        if token.read.elapsed() >= MAX_AGE {
            // While the file cannot be read or has no token, for example during its replacement, the last token may
            // still be valid; if not, the API server responds with 401.
            if let Ok(authorization) = read(&self.path) {
                token.authorization = authorization;
            }
            token.read = Instant::now();
        }
        let authorization = token.authorization.clone();
        drop(token);
        request
            .headers_mut()
            .insert(header::AUTHORIZATION, authorization);
        request
    }
}

/// A service whose requests have the token of a file, and whose responses tell [which](SentToken).
#[derive(Clone)]
pub(super) struct Authorize<S> {
    inner: S,
    token: TokenFile,
}

impl<S> Authorize<S> {
    pub(super) fn new(inner: S, token: TokenFile) -> Self {
        Self { inner, token }
    }
}

impl<S, A, B> Service<Request<A>> for Authorize<S>
where
    S: Service<Request<A>, Response = Response<B>>,
    S::Future: Send + 'static,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response<B>, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let request = self.token.authorize(request);
        let sent = request.headers().get(header::AUTHORIZATION).cloned();
        let response = self.inner.call(request);
        let response = response.map_ok(|mut response| {
            if let Some(sent) = sent {
                response.extensions_mut().insert(SentToken(sent));
            }
            response
        });
        response.boxed()
    }
}

/// The token of the request to which a response belongs, among the response's extensions: the server may quote it.
#[derive(Clone)]
pub struct SentToken(HeaderValue);

impl SentToken {
    /// Returns a text of the server without the token.
    pub fn hidden_in(&self, text: &str) -> String {
        let token = self.0.to_str().unwrap_or_default();
        let token = token.strip_prefix("Bearer ").unwrap_or(token);
        if token.is_empty() {
            return text.to_owned();
        }
        text.replace(token, "(token)")
    }
}

/// Shows no token.
impl fmt::Debug for SentToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SentToken").finish_non_exhaustive()
    }
}

/// Returns `true` if a request can carry this bearer token, as any that an API server knows.
pub(crate) fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Returns the header of a request with this token, which may stand between white space.
pub(super) fn header_of(token: &str) -> Result<HeaderValue, ClientError> {
    let token = token.trim();
    if !is_token(token) {
        return Err(ClientError::Token);
    }
    let header = HeaderValue::from_str(&format!("Bearer {token}"));
    let mut header = header.map_err(|_| ClientError::Token)?;
    header.set_sensitive(true);
    Ok(header)
}

fn read(path: &std::path::Path) -> io::Result<HeaderValue> {
    header_of(&std::fs::read_to_string(path)?).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use kube::Config;
    use kube::client::Body;

    use super::*;

    fn of(path: &std::path::Path) -> AuthInfo {
        AuthInfo {
            token_file: Some(path.to_str().unwrap().to_owned()),
            ..AuthInfo::default()
        }
    }

    fn sent(file: &TokenFile) -> String {
        let request = file.authorize(Request::new(()));
        let sent = request.headers()[header::AUTHORIZATION].to_str().unwrap();
        sent.to_owned()
    }

    /// A renewed token is sent within a minute and a lost one stays in use.
    #[tokio::test(start_paused = true)]
    async fn renewed_token_is_sent_soon() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        std::fs::write(&path, "first\n").unwrap();
        let file = TokenFile::take(&mut of(&path)).unwrap().unwrap();
        assert_eq!(sent(&file), "Bearer first");
        std::fs::write(&path, "second\n").unwrap();
        tokio::time::advance(MAX_AGE).await;
        assert_eq!(sent(&file.clone()), "Bearer second");
        std::fs::remove_file(&path).unwrap();
        tokio::time::advance(MAX_AGE).await;
        assert_eq!(sent(&file), "Bearer second");
        for broken in ["", " \n", "two words", "tok\u{e9}n", "two\nlines"] {
            std::fs::write(&path, broken).unwrap();
            tokio::time::advance(MAX_AGE).await;
            assert_eq!(sent(&file), "Bearer second", "{broken:?}");
            assert!(TokenFile::take(&mut of(&path)).is_err(), "{broken:?}");
        }
        std::fs::write(&path, "third\n").unwrap();
        tokio::time::advance(MAX_AGE).await;
        assert_eq!(sent(&file), "Bearer third");
    }

    /// A client sends the token of its credentials file.
    #[tokio::test]
    async fn client_sends_token_of_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        std::fs::write(&path, "secret").unwrap();
        let echo = |request: Request<Body>| {
            let sent = request.headers().get_all(header::AUTHORIZATION);
            let sent: Vec<_> = sent.iter().map(|sent| sent.to_str().unwrap()).collect();
            let sent = sent.join(", ").into_bytes();
            std::future::ready(Ok::<_, Infallible>(Response::new(Body::from(sent))))
        };
        let mut config = Config::new(http::Uri::from_static("http://api"));
        config.auth_info = of(&path);
        let client = super::super::with_service(tower::service_fn(echo), config, "test").unwrap();
        let sent = client.request_text(Request::new(Vec::new())).await.unwrap();
        assert_eq!(sent, "Bearer secret");
        // Who shows the words of a server hides the token in them.
        let response = client.send(Request::new(Body::empty())).await.unwrap();
        let token = response.extensions().get::<SentToken>().unwrap();
        assert_eq!(token.hidden_in(&sent), "Bearer (token)");
        assert!(!format!("{token:?}").contains("secret"));
    }

    /// A token that no request can carry is refused before a request would.
    #[tokio::test]
    async fn only_tokens_are_sent() {
        let jwt = "eyJhbGciOiJSUzI1NiJ9.e30.c2lnbmF0dXJl_-~+/=";
        for (text, expected) in [
            (jwt, true),
            ("abcdef.0123456789abcdef", true),
            ("two words", false),
            ("", false),
        ] {
            assert_eq!(is_token(text), expected, "{text}");
            let mut config = Config::new(http::Uri::from_static("http://api"));
            config.auth_info.token = Some(text.to_owned().into());
            let unused = tower::service_fn(|_: Request<Body>| {
                std::future::pending::<Result<Response<Body>, Infallible>>()
            });
            let client = super::super::with_service(unused, config, "test");
            assert_eq!(client.is_ok(), expected, "{text}");
        }
    }

    /// A file wins over a token beside it, which serves while there is no file.
    #[tokio::test(start_paused = true)]
    async fn file_wins_over_token() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let mut both = of(&path);
        both.token = Some("beside".to_owned().into());
        let mut missing = both.clone();
        let file = TokenFile::take(&mut missing).unwrap().unwrap();
        assert_eq!(sent(&file), "Bearer beside");
        // kube would send it in place of the file's.
        assert!(missing.token.is_none());
        std::fs::write(&path, "filed").unwrap();
        tokio::time::advance(MAX_AGE).await;
        assert_eq!(sent(&file), "Bearer filed");
        let file = TokenFile::take(&mut both).unwrap().unwrap();
        assert_eq!(sent(&file), "Bearer filed");
    }

    /// A file that cannot be read is named, and credentials that take precedence over it are left to kube.
    #[tokio::test]
    async fn unreadable_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let missing = TokenFile::take(&mut of(&path)).unwrap_err();
        assert!(missing.to_string().contains("token"), "{missing}");
        let mut basic = of(&path);
        basic.username = Some("a".to_owned());
        basic.password = Some("b".to_owned().into());
        assert!(TokenFile::take(&mut basic).unwrap().is_none());
        assert!(basic.token_file.is_some());
    }
}

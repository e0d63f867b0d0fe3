//! A bearer token in a file that others write anew before it expires, as a pod's service account has
//! one. kube reads such a file again when a minute has passed by the system's clock: one that is set
//! back by hours would keep a token that has long expired. So we do it ourselves, by monotonic time.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Request, header};
use kube::config::AuthInfo;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::Error;

/// How old what was read may be (client-go's rule).
const READ_EVERY: Duration = Duration::from_mins(1);

/// The token. Its clones are one.
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
    /// The token of credentials that name a file, and nothing that goes before it; they name it no
    /// longer.
    ///
    /// # Errors
    /// When the file cannot be read, or holds no token.
    pub(super) fn take(credentials: &mut AuthInfo) -> Result<Option<Self>, Error> {
        let others = credentials.token.is_some()
            || credentials.auth_provider.is_some()
            || credentials.username.is_some() && credentials.password.is_some();
        let Some(path) = credentials.token_file.take_if(|_| !others) else {
            return Ok(None);
        };
        let path = PathBuf::from(path);
        let authorization = read(&path).map_err(|source| Error::TokenFile {
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

    /// Adds the token to a request. While the file cannot be read the last one that could is used.
    pub(super) fn authorize<B>(&self, mut request: Request<B>) -> Request<B> {
        let mut token = self.token.lock();
        if token.read.elapsed() >= READ_EVERY {
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

fn read(path: &std::path::Path) -> io::Result<HeaderValue> {
    let token = std::fs::read_to_string(path)?;
    let mut authorization =
        HeaderValue::from_str(&format!("Bearer {}", token.trim())).map_err(io::Error::other)?;
    authorization.set_sensitive(true);
    Ok(authorization)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http::Response;
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

    #[tokio::test(start_paused = true)]
    async fn a_token_that_was_renewed_is_sent_within_a_minute_and_a_lost_one_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        std::fs::write(&path, "first\n").unwrap();
        let file = TokenFile::take(&mut of(&path)).unwrap().unwrap();
        assert_eq!(sent(&file), "Bearer first");
        std::fs::write(&path, "second\n").unwrap();
        tokio::time::advance(READ_EVERY).await;
        assert_eq!(sent(&file.clone()), "Bearer second");
        std::fs::remove_file(&path).unwrap();
        tokio::time::advance(READ_EVERY).await;
        assert_eq!(sent(&file), "Bearer second");
        std::fs::write(&path, "third\n").unwrap();
        tokio::time::advance(READ_EVERY).await;
        assert_eq!(sent(&file), "Bearer third");
    }

    #[tokio::test]
    async fn a_client_sends_the_token_of_its_credentials_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        std::fs::write(&path, "secret").unwrap();
        let says = |request: Request<Body>| {
            let sent = request.headers().get_all(header::AUTHORIZATION);
            let sent: Vec<_> = sent.iter().map(|sent| sent.to_str().unwrap()).collect();
            let sent = sent.join(", ").into_bytes();
            std::future::ready(Ok::<_, Infallible>(Response::new(Body::from(sent))))
        };
        let mut config = Config::new(http::Uri::from_static("http://api"));
        config.auth_info = of(&path);
        let client = super::super::over(tower::service_fn(says), config, "test").unwrap();
        let sent = client.request_text(Request::new(Vec::new())).await;
        assert_eq!(sent.unwrap(), "Bearer secret");
    }

    #[tokio::test]
    async fn credentials_that_go_before_a_file_are_left_to_kube() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let mut inline = of(&path);
        inline.token = Some("inline".to_owned().into());
        assert!(TokenFile::take(&mut inline).unwrap().is_none());
        assert!(inline.token_file.is_some());
        let missing = TokenFile::take(&mut of(&path)).unwrap_err();
        assert!(missing.to_string().contains("token"), "{missing}");
    }
}

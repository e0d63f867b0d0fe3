//! The credentials that a command of the kubeconfig prints
//! (<https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins>).
//!
//! kube runs such a command once for a certificate and again for a token, tells it that somebody is there to answer
//! whether or not anybody is, and shows its output as numbers, a token included. This one runs once for each client,
//! and again when its credentials end or the API refuses them.

mod process;

use std::io::{self, IsTerminal};
use std::pin::Pin;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderValue, Request, Response, StatusCode, header};
use jiff::Timestamp;
use kube::client::Body;
use kube::config::{AuthInfo, ExecConfig, ExecInteractiveMode};
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tower::{Layer, Service};

use super::kubeconfig::document;
use super::token::header_of;
use crate::error::{BoxError, ExecError, printable};

/// The input of the command, in this variable.
const EXEC_INFO: &str = "KUBERNETES_EXEC_INFO";
/// The longest run of a command that asks nobody.
const LIMIT: Duration = Duration::from_mins(1);

/// The output of a command.
#[derive(Clone, Default)]
struct Credentials {
    token: Option<HeaderValue>,
    /// A certificate and its key, both in PEM.
    certificate: Option<(String, String)>,
    end: Option<Timestamp>,
}

impl Credentials {
    fn has_ended(&self, now: Timestamp) -> bool {
        self.end.is_some_and(|end| end <= now)
    }
}

/// Who looks on while a command runs.
#[derive(Clone, Copy, Debug)]
pub(super) enum Onlooker {
    /// A person at a terminal, who sees at once where to log in.
    Person,
    /// Nobody: the words of the command are for its error or the log.
    Nobody,
}

impl Onlooker {
    /// Returns who looks at this process.
    fn present() -> Self {
        if io::stderr().is_terminal() {
            Self::Person
        } else {
            Self::Nobody
        }
    }
}

/// A command and its last output, shared by clones.
#[derive(Clone)]
pub(super) struct ExecPlugin {
    config: Arc<ExecConfig>,
    onlooker: Onlooker,
    /// Locked while the command runs: whoever asks people should do so once.
    printed: Arc<Mutex<Option<Credentials>>>,
    /// The end of the certificate that became that of the user, which no other request renews.
    pub(super) certificate_end: Option<Timestamp>,
}

impl ExecPlugin {
    /// Takes the command out of `user` and runs it, unless something takes precedence. A certificate that it prints becomes
    /// that of the user.
    pub(super) async fn take(user: &mut AuthInfo) -> Result<Option<Self>, ExecError> {
        Self::take_before(Onlooker::present(), user).await
    }

    /// Does so before this onlooker.
    pub(super) async fn take_before(
        onlooker: Onlooker,
        user: &mut AuthInfo,
    ) -> Result<Option<Self>, ExecError> {
        let others = user.token.is_some()
            || user.token_file.is_some()
            || user.username.is_some()
            || user.client_certificate.is_some()
            || user.client_certificate_data.is_some();
        let Some(config) = user.exec.take().filter(|_| !others) else {
            return Ok(None);
        };
        let mut plugin = Self {
            config: Arc::new(config),
            onlooker,
            printed: Arc::default(),
            certificate_end: None,
        };
        let printed = plugin.credentials().await?;
        if let Some((certificate, key)) = printed.certificate {
            plugin.certificate_end = printed.end;
            user.client_certificate_data = Some(STANDARD.encode(certificate));
            user.client_key_data = Some(STANDARD.encode(key).into());
        }
        Ok(Some(plugin))
    }

    /// Returns the last output of the command, or runs it where that has ended.
    async fn credentials(&self) -> Result<Credentials, ExecError> {
        let mut printed = Arc::clone(&self.printed).lock_owned().await;
        if let Some(printed) = &*printed
            && !printed.has_ended(Timestamp::now())
        {
            return Ok(printed.clone());
        }
        let (config, onlooker) = (Arc::clone(&self.config), self.onlooker);
        // It keeps the lock and the output of the command, also if whoever asks goes away meanwhile.
        let running = tokio::task::spawn_blocking(move || {
            run(&config, onlooker, LIMIT).map(|new| printed.insert(new).clone())
        });
        running.await.map_err(|error| ExecError::Unstarted {
            command: self.config.command.clone().unwrap_or_default(),
            hint: String::new(),
            source: io::Error::other(error),
        })?
    }

    /// Forgets the output of the command, if this token is still the last one.
    async fn refused(&self, token: &HeaderValue) {
        let mut printed = self.printed.lock().await;
        printed.take_if(|printed| printed.token.as_ref() == Some(token));
    }
}

/// Runs the command of `config`, and waits for its end: no longer than `limit`, unless it may ask somebody.
fn run(config: &ExecConfig, onlooker: Onlooker, limit: Duration) -> Result<Credentials, ExecError> {
    let name = config.command.as_ref().ok_or(ExecError::NoCommand)?;
    let has_terminal = io::stdin().is_terminal();
    let is_interactive = is_interactive(config.interactive_mode.as_ref(), has_terminal)
        .ok_or_else(|| ExecError::NoTerminal(name.clone()))?;
    let mut told = json!({
        "apiVersion": config.api_version,
        "kind": "ExecCredential",
        "spec": { "interactive": is_interactive },
    });
    if let Some(cluster) = &config.cluster {
        told["spec"]["cluster"] = json!(cluster);
    }
    let mut command = Command::new(name);
    command.args(config.args.iter().flatten());
    for variable in config.env.iter().flatten() {
        if let Some(name) = variable.get("name") {
            command.env(name, variable.get("value").map_or("", String::as_str));
        }
    }
    command.env(EXEC_INFO, told.to_string());
    command.stdin(if is_interactive {
        Stdio::inherit()
    } else {
        Stdio::null()
    });
    command.stdout(Stdio::piped());
    command.stderr(match onlooker {
        Onlooker::Person => Stdio::inherit(),
        Onlooker::Nobody => Stdio::piped(),
    });
    let end = (!is_interactive).then(|| Instant::now() + limit);
    let output = command
        .spawn()
        .and_then(|child| process::output(child, end));
    let output = output.map_err(|source| ExecError::Unstarted {
        command: name.clone(),
        hint: printable(config.install_hint.as_deref().unwrap_or_default()),
        source,
    })?;
    let output = output.ok_or_else(|| ExecError::Endless(name.clone(), limit))?;
    if !output.status.success() {
        return Err(ExecError::failed(name.clone(), &output));
    }
    let said = printable(&String::from_utf8_lossy(&output.stderr));
    if !said.is_empty() {
        tracing::info!(
            command = name,
            said,
            "The command for credentials has something to say"
        );
    }
    read(&output.stdout).map_err(|problem| ExecError::Printed(name.clone(), problem))
}

/// Returns `true` if a command of this mode may ask somebody; `None` if it must, and nobody is there.
fn is_interactive(mode: Option<&ExecInteractiveMode>, has_terminal: bool) -> Option<bool> {
    match mode {
        Some(ExecInteractiveMode::Never) => Some(false),
        Some(ExecInteractiveMode::Always) => has_terminal.then_some(true),
        Some(ExecInteractiveMode::IfAvailable) | None => Some(has_terminal),
    }
}

/// Reads the output of a command.
fn read(stdout: &[u8]) -> Result<Credentials, &'static str> {
    let printed = document(stdout).ok().flatten();
    let printed = printed.ok_or("something that is neither JSON nor YAML")?;
    let status = printed.get("status").filter(|status| status.is_object());
    let status = status.ok_or("no status")?;
    let certificate = match (
        text(status, "clientCertificateData"),
        text(status, "clientKeyData"),
    ) {
        (Some(certificate), Some(key)) => Some((certificate.to_owned(), key.to_owned())),
        (None, None) => None,
        _ => return Err("a certificate or its key, but not both"),
    };
    let token = text(status, "token").map(header_of).transpose();
    let token = token.map_err(|_| "a token that no request can have")?;
    if token.is_none() && certificate.is_none() {
        return Err("neither a token nor a certificate");
    }
    let end = text(status, "expirationTimestamp")
        .map(str::parse)
        .transpose();
    Ok(Credentials {
        token,
        certificate,
        end: end.map_err(|_| "an expirationTimestamp that is none")?,
    })
}

/// Returns the text of a field, unless it is empty.
fn text<'a>(status: &'a Value, name: &str) -> Option<&'a str> {
    let text = status.get(name)?.as_str()?;
    (!text.is_empty()).then_some(text)
}

impl<S> Layer<S> for ExecPlugin {
    type Service = WithExec<S>;

    fn layer(&self, inner: S) -> Self::Service {
        WithExec {
            inner,
            plugin: self.clone(),
        }
    }
}

/// A service whose requests have the token of a command.
#[derive(Clone)]
pub(super) struct WithExec<S> {
    inner: S,
    plugin: ExecPlugin,
}

impl<S, B> Service<Request<Body>> for WithExec<S>
where
    S: Service<Request<Body>, Response = Response<B>, Error = BoxError> + Clone + Send + 'static,
    S::Future: Send,
    B: Send,
{
    type Response = Response<B>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<B>, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let next = self.inner.clone();
        // The one that is ready.
        let mut inner = std::mem::replace(&mut self.inner, next);
        let plugin = self.plugin.clone();
        Box::pin(async move {
            let Some(token) = plugin.credentials().await?.token else {
                return inner.call(request).await;
            };
            let headers = request.headers_mut();
            headers.insert(header::AUTHORIZATION, token.clone());
            let response = inner.call(request).await?;
            if response.status() == StatusCode::UNAUTHORIZED {
                plugin.refused(&token).await;
            }
            Ok(response)
        })
    }
}

#[cfg(test)]
mod tests;

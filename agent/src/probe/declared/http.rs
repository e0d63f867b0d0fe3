//! A URL that is to answer with a good status. The status line decides: a body that stalls or never ends changes no verdict.

use std::path::PathBuf;

use futures::FutureExt;
use futures::future::BoxFuture;
use health::failure::FailureClass;
use http::StatusCode;
use serde::Deserialize;

use super::exchange::{Location, MALFORMED};
use super::kind::{Attempt, Kind};
use super::unmet::{NO_ADDRESS, REFUSED, RESET, TIMEOUT, TLS, UNREACHABLE, Unmet};

const UNEXPECTED_STATUS: FailureClass = FailureClass::new(0, "unexpected-status");
const REDIRECT: FailureClass = FailureClass::new(1, "redirect");
const CLIENT_ERROR: FailureClass = FailureClass::new(2, "client-error");
const SERVER_ERROR: FailureClass = FailureClass::new(3, "server-error");

/// A request with `GET`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Http {
    url: String,
    /// The good statuses; without any, those from 200 to 299.
    #[serde(default)]
    status: Vec<u16>,
    /// The file with the authorities that certify the server.
    #[serde(default)]
    ca: Option<PathBuf>,
    /// The file with a bearer token.
    #[serde(default)]
    token: Option<PathBuf>,
}

impl Http {
    fn location(&self) -> Location<'_> {
        Location {
            url: &self.url,
            ca: self.ca.as_ref(),
            token: self.token.as_ref(),
        }
    }

    fn is_good(&self, status: StatusCode) -> bool {
        if self.status.is_empty() {
            status.is_success()
        } else {
            self.status.contains(&status.as_u16())
        }
    }
}

impl Kind for Http {
    fn check(&self) -> Result<(), String> {
        let mut listed = self.status.iter();
        if let Some(status) = listed.find(|status| !(200..600).contains(*status)) {
            return Err(format!("status {status} is not between 200 and 599"));
        }
        self.location().check()
    }

    fn classes(&self) -> &'static [FailureClass] {
        &[
            UNEXPECTED_STATUS,
            REDIRECT,
            CLIENT_ERROR,
            SERVER_ERROR,
            MALFORMED,
            NO_ADDRESS,
            TLS,
            REFUSED,
            RESET,
            UNREACHABLE,
            TIMEOUT,
        ]
    }

    fn observe<'a>(&'a self, attempt: &'a Attempt<'a>) -> BoxFuture<'a, Result<(), Unmet>> {
        async move {
            let answer = self.location().get(None, 0, attempt).await?;
            if self.is_good(answer.status) {
                return Ok(());
            }
            let class = match answer.status {
                status if status.is_redirection() => REDIRECT,
                status if status.is_client_error() => CLIENT_ERROR,
                status if status.is_server_error() => SERVER_ERROR,
                _ => UNEXPECTED_STATUS,
            };
            let details = format!("status {}", answer.status);
            Err(Unmet::failed(class, answer.server, details))
        }
        .boxed()
    }
}

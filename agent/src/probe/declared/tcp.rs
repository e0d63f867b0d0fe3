//! A server that is to accept connections. That proves the path and the kernel, not the program: a hung one accepts as many as
//! its backlog takes.

use futures::FutureExt;
use futures::future::BoxFuture;
use health::failure::FailureClass;
use serde::Deserialize;

use super::exchange::Endpoint;
use super::kind::{Attempt, Kind};
use super::unmet::{NO_ADDRESS, REFUSED, RESET, TIMEOUT, UNREACHABLE, Unmet};

/// A connection, which is closed at once.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Tcp {
    address: String,
}

impl Kind for Tcp {
    fn check(&self) -> Result<(), String> {
        Endpoint::parse(&self.address).map(drop)
    }

    fn classes(&self) -> &'static [FailureClass] {
        &[NO_ADDRESS, REFUSED, RESET, UNREACHABLE, TIMEOUT]
    }

    fn warnings(&self) -> Vec<String> {
        let warning = "a program that hangs still accepts connections: prefer http or grpc where it speaks one of them";
        vec![warning.to_owned()]
    }

    fn observe<'a>(&'a self, attempt: &'a Attempt<'a>) -> BoxFuture<'a, Result<(), Unmet>> {
        async move {
            let Endpoint { host, port } =
                Endpoint::parse(&self.address).map_err(Unmet::unobserved)?;
            let connected = attempt.node.connect(&host, port, attempt.deadline).await;
            connected.map(drop)
        }
        .boxed()
    }
}

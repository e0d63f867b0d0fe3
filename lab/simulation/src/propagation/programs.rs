//! The programs, and the APIs that each reaches.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::Result;
use bytes::Bytes;
use clap::Parser;
use embedded_apiserver::Body;
use http::Request;
use http_body_util::{BodyExt, Full};
use karmada_runtime::members::{AccessError, Connect};
use karmada_runtime::program::{Identity, Program};
use tower::{Service, service_fn};

use super::apis::Apis;
use crate::harness::{self, Api, Connections, Explain, Reads, Role as _, programs};

/// A program under simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "each is a program")]
pub enum Role {
    Propagation,
    Scheduler,
    Execution,
}

impl Role {
    /// Every program.
    pub const ALL: [Self; 3] = [Self::Propagation, Self::Scheduler, Self::Execution];
}

impl harness::Role for Role {
    fn all() -> Vec<Self> {
        Self::ALL.to_vec()
    }

    fn identity(self) -> Identity {
        match self {
            Self::Propagation => propagation_controller::IDENTITY,
            Self::Scheduler => scheduler::IDENTITY,
            Self::Execution => execution_controller::IDENTITY,
        }
    }
}

/// Its writes have the explanations of every world only.
impl Reads for Role {}

impl Explain for Role {}

/// Assembles a process. The scheduler may return workloads to earlier groups of clusters.
pub(crate) fn assemble(
    apis: &Apis,
    connections: Connections<Role>,
    fails_back: bool,
) -> Result<Program> {
    let role = connections.process.program;
    let identity = role.identity();
    let mut program = programs::program(identity);
    let (service, is_upgraded) = (apis.fleet.service(), Arc::clone(&apis.is_upgraded));
    let fleet = service_fn(move |request: Request<Full<Bytes>>| {
        let is_of_deployments = request.uri().path().contains("/deployments");
        let response = service.clone().call(request);
        let is_upgraded = Arc::clone(&is_upgraded);
        async move {
            let response = response.await;
            if is_of_deployments && is_upgraded.load(Ordering::Relaxed) {
                return response.map(|response| response.map(with_default));
            }
            response
        }
    });
    let fleet = connections.client(Api::Hub, fleet)?;
    // The election of a leader is a property of its own.
    let flags = [identity.name, "--leader-elect=false"].into_iter();
    match role {
        Role::Propagation => {
            let args = propagation_controller::Args::try_parse_from(flags)?;
            propagation_controller::assemble(&args, fleet, &mut program);
        }
        Role::Scheduler => {
            let flags = flags
                .chain(["--evict-untolerated"])
                .chain(fails_back.then_some("--affinity-fail-back"));
            let args = scheduler::Args::try_parse_from(flags)?;
            scheduler::assemble(&args, fleet, &mut program);
        }
        Role::Execution => {
            let members = Arc::clone(&apis.members);
            let connect: Connect = Box::new(move |access, _| {
                let endpoint = access.endpoint();
                let member = members.lock().get(endpoint).cloned();
                let (nth, member) =
                    member.ok_or_else(|| AccessError::Endpoint(endpoint.to_owned()))?;
                Ok(connections.client(Api::Member(nth), member.service())?)
            });
            let args = execution_controller::Args::try_parse_from(flags)?;
            execution_controller::assemble(&args, fleet, connect, &mut program);
        }
    }
    Ok(program)
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

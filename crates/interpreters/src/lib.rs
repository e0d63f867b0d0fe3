//! Asks whom users have named to interpret kinds: scripts (`lua`), then webhooks (`webhook`).
//!
//! Which of them has the last word about an operation of a kind, `propagation_rules::customization` says.
//! Where nobody has, programs ask `propagation_rules::interpret`. Whom users have named is in [`Customizations`].

mod customizations;

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use karmada_runtime::client::Addresses;
use karmada_runtime::program::Program;
use kube::Client;
use lua::{ScriptError, Scripts, operations};
use objects::GroupVersionKind;
use parking_lot::RwLock;
use propagation_rules::customization::webhook::{Request, Response};
use propagation_rules::customization::{Changes, Customized, Interpreter, Operation};
use propagation_rules::dependencies::Dependency;
use propagation_rules::interpret::{Component, Replicas, Timed};
use serde_json::Value;
use webhook::Webhooks;

pub use self::customizations::Customizations;

/// The scripts and the webhooks of a fleet.
///
/// A question is answered by `None` if nobody is asked it for the kind of the object.
#[derive(Debug)]
pub struct Interpreters {
    customized: RwLock<Arc<Customized>>,
    scripts: Scripts,
    webhooks: Webhooks,
    clock: fn() -> Timestamp,
}

/// The error of whoever was asked, who is named in it.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Failure {
    /// A script has failed.
    #[error(transparent)]
    Script(#[from] lua::Failure),
    /// A webhook has failed.
    #[error(transparent)]
    Webhook(#[from] webhook::Failure),
}

type Answer<T> = Option<Result<T, Failure>>;

impl Interpreters {
    /// Creates interpreters that find Services before webhooks by `client`, which is connected to the API of the fleet,
    /// and names by `addresses`. Webhooks see `program` as the user agent.
    pub fn new(
        client: Client,
        addresses: Addresses,
        program: &'static str,
        clock: fn() -> Timestamp,
    ) -> Self {
        Self {
            customized: RwLock::default(),
            scripts: Scripts::default(),
            webhooks: Webhooks::new(client, addresses, program),
            clock,
        }
    }

    /// Creates the interpreters of a program, with their metrics.
    pub fn of_program(program: &mut Program, client: &Client) -> Self {
        let (addresses, name) = (program.addresses.clone(), program.identity.name);
        let interpreters = Self::new(client.clone(), addresses, name, program.clock);
        let help = "Runs of the scripts that interpret kinds, by operation and outcome";
        let runs = interpreters.scripts.runs();
        program.registry.register("script_runs", help, runs);
        let help = "Calls of the webhooks that interpret kinds, by operation and outcome";
        let calls = interpreters.webhooks.calls();
        program.registry.register("webhook_calls", help, calls);
        interpreters
    }

    /// Replaces the known customizations. Returns the kinds that are interpreted otherwise than before.
    pub fn replace(&self, customized: Customized) -> Changes {
        let changes = customized.changes(&self.customized());
        self.scripts.replace(&customized, &changes);
        self.webhooks.keep(&customized);
        *self.customized.write() = Arc::new(customized);
        changes
    }

    /// Returns who decides an operation for an object.
    pub fn interpreter(&self, object: &Value, operation: Operation) -> Option<Interpreter> {
        let kind = GroupVersionKind::of(object);
        self.customized().interpreter(&kind, operation)
    }

    /// Returns the reason for which a kind is to be left alone: it is interpreted by nobody that can be asked.
    pub fn refusal(&self, kind: &GroupVersionKind) -> Option<String> {
        let failure = self.scripts.broken_of(kind)?;
        Some(format!(
            "a script that interprets it cannot be read: {failure}"
        ))
    }

    /// Returns the problems of the scripts of a customization.
    pub fn problems(&self, customization: &str) -> Vec<String> {
        let mut problems = self.scripts.problems(customization);
        problems.extend(self.customized().conflicts(customization));
        problems
    }

    /// Asks for the replicas of a template.
    pub async fn replicas(&self, template: &Value) -> Answer<Replicas> {
        self.ask(
            &Request::new(Operation::InterpretReplica, template),
            |source, asked| operations::replicas(source, asked.object),
            Response::replicas,
        )
        .await
    }

    /// Asks for the components of a template.
    pub async fn components(&self, template: &Value) -> Answer<Option<Vec<Component>>> {
        self.ask(
            &Request::new(Operation::InterpretComponent, template),
            |source, asked| operations::components(source, asked.object),
            Response::components,
        )
        .await
    }

    /// Asks for an object with that many replicas.
    pub async fn revise(&self, object: &Value, replicas: i32) -> Answer<Timed> {
        let request = Request {
            replicas,
            ..Request::new(Operation::ReviseReplica, object)
        };
        self.ask(
            &request,
            |source, asked| operations::revise(source, asked.object, asked.replicas),
            |response| Ok(self.timed(response.patched(object)?)),
        )
        .await
    }

    /// Asks for the object that replaces `observed` where `desired` is wanted.
    pub async fn retain(&self, desired: &Value, observed: &Value) -> Answer<Timed> {
        let request = Request {
            observed: Some(observed),
            ..Request::new(Operation::Retain, desired)
        };
        self.ask(
            &request,
            |source, asked| {
                let observed = asked.observed.unwrap_or(&Value::Null);
                operations::retain(source, asked.object, observed)
            },
            |response| Ok(self.timed(response.patched(desired)?)),
        )
        .await
    }

    /// Asks for the status of a template whose copies have reported `items`.
    pub async fn aggregate(&self, template: &Value, items: Vec<Value>) -> Answer<Timed> {
        let request = Request {
            items: items.into(),
            ..Request::new(Operation::AggregateStatus, template)
        };
        self.ask(
            &request,
            |source, asked| operations::aggregate(source, asked.object, &asked.items),
            |response| Ok(self.timed(response.aggregated(template)?)),
        )
        .await
    }

    /// Asks for the part of an object's status that is reported.
    pub async fn reflect(&self, object: &Value) -> Answer<Timed> {
        self.ask(
            &Request::new(Operation::InterpretStatus, object),
            |source, asked| operations::reflect(source, asked.object),
            |response| Ok(self.timed(response.status()?)),
        )
        .await
    }

    /// Asks whether an object is well.
    pub async fn is_healthy(&self, object: &Value) -> Answer<bool> {
        self.ask(
            &Request::new(Operation::InterpretHealth, object),
            |source, asked| operations::is_healthy(source, asked.object),
            Response::is_healthy,
        )
        .await
    }

    /// Asks for the dependencies of a template: the scripts of all customizations of its kind, or a webhook.
    pub async fn dependencies(&self, template: &Value) -> Answer<BTreeSet<Dependency>> {
        let request = Request::new(Operation::InterpretDependency, template);
        Some(match self.interpreter(template, request.operation)? {
            Interpreter::Script(_) => self.united(&request).await,
            Interpreter::Webhook(webhook) => {
                let read = Response::dependencies;
                let answer = self.webhooks.ask(&webhook, &request, read).await;
                answer.map_err(Failure::from)
            }
        })
    }

    /// Returns the dependencies that the scripts of all customizations find.
    async fn united(&self, request: &Request<'_>) -> Result<BTreeSet<Dependency>, Failure> {
        let kind = GroupVersionKind::of(request.object);
        let customized = self.customized();
        let mut found = BTreeSet::new();
        for script in customized.scripts_of(&kind, request.operation) {
            let answer = self.scripts.run(script, request, |source, asked| {
                operations::dependencies(source, asked.object)
            });
            found.extend(answer.await?);
        }
        Ok(found)
    }

    /// Asks whoever decides about an object: a script by its `operation`, or a webhook, whose answer is `read`.
    async fn ask<T: Send + 'static>(
        &self,
        request: &Request<'_>,
        operation: fn(&str, &Request<'_>) -> Result<T, ScriptError>,
        read: impl FnOnce(&Response) -> Result<T, String>,
    ) -> Answer<T> {
        Some(match self.interpreter(request.object, request.operation)? {
            Interpreter::Script(script) => {
                let answer = self.scripts.run(&script, request, operation).await;
                answer.map_err(Failure::from)
            }
            Interpreter::Webhook(webhook) => {
                let answer = self.webhooks.ask(&webhook, request, read).await;
                answer.map_err(Failure::from)
            }
        })
    }

    /// Returns the answer of a webhook, which may have times in it.
    fn timed(&self, value: Value) -> Timed {
        Timed::answered(value, (self.clock)())
    }

    fn customized(&self) -> Arc<Customized> {
        Arc::clone(&self.customized.read())
    }
}

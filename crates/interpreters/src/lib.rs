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
use lua::Scripts;
use objects::GroupVersionKind;
use parking_lot::RwLock;
use propagation_rules::customization::webhook::{Request, Response, Webhook};
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

    /// Replaces what is known of the customizations. Returns the kinds that are interpreted otherwise than before.
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
        let operation = Operation::InterpretReplica;
        Some(match self.interpreter(template, operation)? {
            Interpreter::Script(script) => {
                let answer = self.scripts.replicas(&script, template).await;
                answer.map_err(Failure::from)
            }
            Interpreter::Webhook(webhook) => {
                let request = Request::new(operation, template);
                self.ask(&webhook, request, Response::replicas).await
            }
        })
    }

    /// Asks for the components of a template.
    pub async fn components(&self, template: &Value) -> Answer<Option<Vec<Component>>> {
        let operation = Operation::InterpretComponent;
        Some(match self.interpreter(template, operation)? {
            Interpreter::Script(script) => {
                let answer = self.scripts.components(&script, template).await;
                answer.map_err(Failure::from)
            }
            Interpreter::Webhook(webhook) => {
                let request = Request::new(operation, template);
                self.ask(&webhook, request, Response::components).await
            }
        })
    }

    /// Asks for an object with that many replicas.
    pub async fn revise(&self, object: &Value, replicas: i32) -> Answer<Timed> {
        let operation = Operation::ReviseReplica;
        Some(match self.interpreter(object, operation)? {
            Interpreter::Script(script) => {
                let answer = self.scripts.revise(&script, object, replicas).await;
                answer.map_err(Failure::from)
            }
            Interpreter::Webhook(webhook) => {
                let request = Request {
                    replicas,
                    ..Request::new(operation, object)
                };
                let read = |response: &Response| response.patched(object);
                self.ask_now(&webhook, request, read).await
            }
        })
    }

    /// Asks for the object that replaces `observed` where `desired` is wanted.
    pub async fn retain(&self, desired: &Value, observed: &Value) -> Answer<Timed> {
        let operation = Operation::Retain;
        Some(match self.interpreter(desired, operation)? {
            Interpreter::Script(script) => {
                let answer = self.scripts.retain(&script, desired, observed).await;
                answer.map_err(Failure::from)
            }
            Interpreter::Webhook(webhook) => {
                let request = Request {
                    observed: Some(observed),
                    ..Request::new(operation, desired)
                };
                let read = |response: &Response| response.patched(desired);
                self.ask_now(&webhook, request, read).await
            }
        })
    }

    /// Asks for the status of a template whose copies have reported `items`.
    pub async fn aggregate(&self, template: &Value, items: Vec<Value>) -> Answer<Timed> {
        let operation = Operation::AggregateStatus;
        Some(match self.interpreter(template, operation)? {
            Interpreter::Script(script) => {
                let answer = self.scripts.aggregate(&script, template, items).await;
                answer.map_err(Failure::from)
            }
            Interpreter::Webhook(webhook) => {
                let request = Request {
                    items: &items,
                    ..Request::new(operation, template)
                };
                let read = |response: &Response| response.aggregated(template);
                self.ask_now(&webhook, request, read).await
            }
        })
    }

    /// Asks for the part of an object's status that is reported.
    pub async fn reflect(&self, object: &Value) -> Answer<Timed> {
        let operation = Operation::InterpretStatus;
        Some(match self.interpreter(object, operation)? {
            Interpreter::Script(script) => {
                let answer = self.scripts.reflect(&script, object).await;
                answer.map_err(Failure::from)
            }
            Interpreter::Webhook(webhook) => {
                let request = Request::new(operation, object);
                self.ask_now(&webhook, request, Response::status).await
            }
        })
    }

    /// Asks whether an object is well.
    pub async fn is_healthy(&self, object: &Value) -> Answer<bool> {
        let operation = Operation::InterpretHealth;
        Some(match self.interpreter(object, operation)? {
            Interpreter::Script(script) => {
                let answer = self.scripts.is_healthy(&script, object).await;
                answer.map_err(Failure::from)
            }
            Interpreter::Webhook(webhook) => {
                let request = Request::new(operation, object);
                self.ask(&webhook, request, Response::is_healthy).await
            }
        })
    }

    /// Asks for what a template refers to: the scripts of all customizations of its kind, or a webhook.
    pub async fn dependencies(&self, template: &Value) -> Answer<BTreeSet<Dependency>> {
        let operation = Operation::InterpretDependency;
        Some(match self.interpreter(template, operation)? {
            Interpreter::Script(_) => self.united(template).await,
            Interpreter::Webhook(webhook) => {
                let request = Request::new(operation, template);
                self.ask(&webhook, request, Response::dependencies).await
            }
        })
    }

    /// Returns what the scripts of all customizations find that a template refers to.
    async fn united(&self, template: &Value) -> Result<BTreeSet<Dependency>, Failure> {
        let kind = GroupVersionKind::of(template);
        let customized = self.customized();
        let mut found = BTreeSet::new();
        for script in customized.scripts_of(&kind, Operation::InterpretDependency) {
            found.extend(self.scripts.dependencies(script, template).await?);
        }
        Ok(found)
    }

    async fn ask<T>(
        &self,
        webhook: &Arc<Webhook>,
        request: Request<'_>,
        read: impl FnOnce(&Response) -> Result<T, String>,
    ) -> Result<T, Failure> {
        Ok(self.webhooks.ask(webhook, &request, read).await?)
    }

    /// Asks a webhook for what may have times in it.
    async fn ask_now(
        &self,
        webhook: &Arc<Webhook>,
        request: Request<'_>,
        read: impl FnOnce(&Response) -> Result<Value, String>,
    ) -> Result<Timed, Failure> {
        let value = self.ask(webhook, request, read).await?;
        Ok(Timed::answered(value, (self.clock)()))
    }

    fn customized(&self) -> Arc<Customized> {
        Arc::clone(&self.customized.read())
    }
}

//! The question: the object of a file, and the other inputs of an operation.

use interpreters::{Failure, Interpreters};
use objects::health::Health;
use objects::metadata::Written;
use objects::replacement::replacement;
use propagation_rules::customization::Operation;
use propagation_rules::dependencies;
use propagation_rules::interpret::{self, Component, MemberStatus, Replicas, Timed};
use serde_json::{Value, json};

use crate::args::InterpretArgs;
use crate::error::Error;
use crate::manifest;

/// The operations that are asked about, with their inputs.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) object: Value,
    pub(super) operations: Vec<Operation>,
    replicas: i32,
    /// The object as it is in a member.
    observed: Value,
    /// The reports of clusters, as a binding has them.
    items: Vec<Value>,
}

impl Question {
    /// Reads the files that the flags name.
    ///
    /// # Errors
    /// Fails if one cannot be read, or if an operation was named that takes another.
    pub(super) fn read(args: &InterpretArgs) -> Result<Self, Error> {
        let object = manifest::object(&args.filename)?;
        let observed = args.observed.as_deref().map(manifest::object).transpose()?;
        let items = args.items.as_deref().map(manifest::items).transpose()?;
        let mut operations = Operation::ALL.to_vec();
        if let Some(operation) = args.operation {
            if let Some(flag) = lacking(args, operation) {
                return Err(Error::Unusable(format!("{operation} needs {flag}")));
            }
            operations = vec![operation];
        }
        operations.retain(|operation| lacking(args, *operation).is_none());
        Ok(Self {
            operations,
            object,
            replicas: args.replicas.unwrap_or_default(),
            observed: observed.unwrap_or_default(),
            items: items.unwrap_or_default(),
        })
    }

    /// Returns the answer of the one interpreter that `interpreters` know; `None` if it is not asked.
    pub(super) async fn ask(
        &self,
        interpreters: &Interpreters,
        operation: Operation,
    ) -> Option<Result<Value, String>> {
        let object = &self.object;
        let answer = match operation {
            Operation::InterpretReplica => json(interpreters.replicas(object).await?, |answer| {
                replicas(&answer)
            }),
            Operation::InterpretComponent => {
                json(interpreters.components(object).await?, components)
            }
            Operation::ReviseReplica => {
                json(interpreters.revise(object, self.replicas).await?, value)
            }
            Operation::Retain => json(interpreters.retain(object, &self.observed).await?, value),
            Operation::AggregateStatus => {
                let answer = interpreters.aggregate(object, self.items.clone()).await?;
                json(answer, value)
            }
            Operation::InterpretStatus => json(interpreters.reflect(object).await?, value),
            Operation::InterpretHealth => {
                json(interpreters.is_healthy(object).await?, |is_healthy| {
                    health(if is_healthy {
                        Health::Healthy
                    } else {
                        Health::Unhealthy
                    })
                })
            }
            Operation::InterpretDependency => {
                json(interpreters.dependencies(object).await?, |found| {
                    json!(found)
                })
            }
        };
        Some(answer)
    }

    /// Returns the answer without users: for other projects' kinds, or for Kubernetes' own.
    pub(super) fn built_in(&self, operation: Operation) -> Value {
        let object = &self.object;
        match operation {
            Operation::InterpretReplica => replicas(&interpret::replicas(object)),
            Operation::InterpretComponent => components(interpret::components(object)),
            Operation::ReviseReplica => {
                let mut revised = object.clone();
                interpret::revise(&mut revised, self.replicas);
                revised
            }
            Operation::Retain => {
                let mut body = replacement(object, &self.observed, &Written::default());
                interpret::retain(&mut body, &self.observed);
                body
            }
            Operation::AggregateStatus => self.aggregated(),
            Operation::InterpretStatus => interpret::reflect(object).unwrap_or_default(),
            Operation::InterpretHealth => health(interpret::health(object)),
            Operation::InterpretDependency => json!(dependencies::references(object)),
        }
    }

    fn aggregated(&self) -> Value {
        let generation = self.object.pointer("/metadata/generation");
        let manifest_generation = generation.and_then(Value::as_i64).unwrap_or_default();
        let members = self.items.iter().map(|item| MemberStatus {
            cluster: item
                .get("clusterName")
                .and_then(Value::as_str)
                .unwrap_or_default(),
            status: item.get("status").filter(|status| !status.is_null()),
            manifest_generation,
        });
        let members: Vec<_> = members.collect();
        let patch = interpret::template_status(&self.object, &members, true);
        let mut object = self.object.clone();
        if let Some(patch) = patch {
            json_patch::merge(&mut object, &patch);
        }
        object
            .get_mut("status")
            .map(Value::take)
            .unwrap_or_default()
    }
}

/// Returns the flag that an operation needs and that is not given.
fn lacking(args: &InterpretArgs, operation: Operation) -> Option<&'static str> {
    match operation {
        Operation::ReviseReplica => args.replicas.is_none().then_some("--replicas"),
        Operation::Retain => args.observed.is_none().then_some("--observed"),
        Operation::AggregateStatus => args.items.is_none().then_some("--items"),
        _ => None,
    }
}

fn json<T>(answer: Result<T, Failure>, write: impl FnOnce(T) -> Value) -> Result<Value, String> {
    answer.map(write).map_err(|failure| failure.to_string())
}

fn value(answer: Timed) -> Value {
    answer.value
}

fn replicas(answer: &Replicas) -> Value {
    json!({ "replicas": answer.count.unwrap_or_default(), "requirements": answer.requirements })
}

fn components(answer: Option<Vec<Component>>) -> Value {
    json!(answer.unwrap_or_default())
}

fn health(answer: Health) -> Value {
    json!(answer.to_string())
}

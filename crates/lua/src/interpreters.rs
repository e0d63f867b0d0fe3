//! The scripts of a fleet, asked by kind.

use std::collections::BTreeSet;
use std::sync::Arc;

use karmada_rules::propagation::customization::{Customized, Operation, Script};
use karmada_rules::propagation::dependencies::Dependency;
use karmada_rules::propagation::interpret::{Replicas, Timed};
use objects::GroupVersionKind;
use parking_lot::RwLock;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use serde_json::Value;

use crate::error::{Failure, ScriptError};
use crate::lanes::Lanes;
use crate::operations;
use crate::sandbox::check;

/// The scripts of all customizations, and the lanes in which they run.
///
/// A question is answered by `None` if no script is asked it for the kind of the object.
#[derive(Debug, Default)]
pub struct Interpreters {
    known: RwLock<Known>,
    lanes: Lanes,
    runs: Family<RunLabels, Counter>,
}

/// The labels of the counter of runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RunLabels {
    operation: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, Default)]
struct Known {
    customized: Arc<Customized>,
    /// The scripts that are no Lua, with their kinds.
    broken: Arc<Vec<(GroupVersionKind, Failure)>>,
}

type Answer<T> = Option<Result<T, Failure>>;

impl Interpreters {
    /// Replaces what is known of the customizations, and compiles their scripts. Returns the kinds that scripts
    /// interpret otherwise than before.
    pub fn replace(&self, customized: Customized) -> BTreeSet<GroupVersionKind> {
        let before = self.known();
        let changed = customized.changed_scripts(&before.customized);
        let broken = customized.scripts().filter_map(|(kind, script)| {
            let is_same = !changed.contains(kind);
            let error = if is_same {
                before.error_of(script)
            } else {
                check(&script.source).err()
            };
            Some((kind.clone(), Failure::new(script, error?)))
        });
        let broken = Arc::new(broken.collect());
        self.lanes.keep(|name| {
            let mut scripts = customized.scripts();
            scripts.any(|(_, script)| script.customization == name)
        });
        *self.known.write() = Known {
            customized: Arc::new(customized),
            broken,
        };
        changed
    }

    /// Returns what is known of the customizations.
    pub fn customized(&self) -> Arc<Customized> {
        self.known().customized
    }

    /// Returns the reason for which a kind is to be left alone: it is interpreted by nobody that can be asked.
    pub fn refusal(&self, kind: &GroupVersionKind) -> Option<String> {
        let known = self.known();
        if known.customized.has_webhook(kind) {
            return Some("a webhook interprets it, which karmada-rs does not ask".to_owned());
        }
        let mut broken = known.broken.iter();
        let (_, failure) = broken.find(|(of, _)| of == kind)?;
        Some(format!(
            "a script that interprets it cannot be read: {failure}"
        ))
    }

    /// Returns what is wrong with a customization.
    pub fn problems(&self, customization: &str) -> Vec<String> {
        let known = self.known();
        let broken = known.broken.iter().map(|(_, failure)| failure);
        let broken = broken.filter(|failure| failure.customization() == customization);
        let broken = broken.map(|failure| {
            let (operation, error) = (failure.operation(), &failure.error);
            format!("InterpreterOperation({operation}) Lua script error: {error}")
        });
        broken
            .chain(known.customized.conflicts(customization))
            .collect()
    }

    /// Returns the counter of runs, by operation and outcome.
    pub fn runs(&self) -> Family<RunLabels, Counter> {
        self.runs.clone()
    }

    /// Asks for the replicas of a template.
    pub async fn replicas(&self, template: &Value) -> Answer<Replicas> {
        let script = self.script(template, Operation::InterpretReplica)?;
        let template = template.clone();
        let job = move |source: &str| operations::replicas(source, &template);
        Some(self.run(&script, job).await)
    }

    /// Asks for an object with that many replicas.
    pub async fn revise(&self, object: &Value, replicas: i32) -> Answer<Timed> {
        let script = self.script(object, Operation::ReviseReplica)?;
        let object = object.clone();
        let job = move |source: &str| operations::revise(source, &object, replicas);
        Some(self.run(&script, job).await)
    }

    /// Asks for the object that replaces `observed` where `desired` is wanted.
    pub async fn retain(&self, desired: &Value, observed: &Value) -> Answer<Timed> {
        let script = self.script(desired, Operation::Retain)?;
        let (desired, observed) = (desired.clone(), observed.clone());
        let job = move |source: &str| operations::retain(source, &desired, &observed);
        Some(self.run(&script, job).await)
    }

    /// Asks for the status of a template whose copies have reported `items`.
    pub async fn aggregate(&self, template: &Value, items: Vec<Value>) -> Answer<Timed> {
        let script = self.script(template, Operation::AggregateStatus)?;
        let template = template.clone();
        let job = move |source: &str| operations::aggregate(source, &template, &items);
        Some(self.run(&script, job).await)
    }

    /// Asks for the part of an object's status that is reported.
    pub async fn reflect(&self, object: &Value) -> Answer<Timed> {
        let script = self.script(object, Operation::InterpretStatus)?;
        let object = object.clone();
        let job = move |source: &str| operations::reflect(source, &object);
        Some(self.run(&script, job).await)
    }

    /// Asks whether an object is well.
    pub async fn is_healthy(&self, object: &Value) -> Answer<bool> {
        let script = self.script(object, Operation::InterpretHealth)?;
        let object = object.clone();
        let job = move |source: &str| operations::is_healthy(source, &object);
        Some(self.run(&script, job).await)
    }

    /// Asks the scripts of all customizations of its kind for what a template refers to.
    pub async fn dependencies(&self, template: &Value) -> Answer<BTreeSet<Dependency>> {
        let kind = GroupVersionKind::of(template);
        let customized = self.customized();
        let mut found = None;
        for script in customized.scripts_of(&kind, Operation::InterpretDependency) {
            let template = template.clone();
            let job = move |source: &str| operations::dependencies(source, &template);
            match self.run(script, job).await {
                Ok(more) => found.get_or_insert_with(BTreeSet::new).extend(more),
                Err(failure) => return Some(Err(failure)),
            }
        }
        found.map(Ok)
    }

    fn known(&self) -> Known {
        self.known.read().clone()
    }

    fn script(&self, object: &Value, operation: Operation) -> Option<Arc<Script>> {
        let kind = GroupVersionKind::of(object);
        self.customized().script(&kind, operation).map(Arc::clone)
    }

    async fn run<T: Send + 'static>(
        &self,
        script: &Arc<Script>,
        job: impl FnOnce(&str) -> Result<T, ScriptError> + Send + 'static,
    ) -> Result<T, Failure> {
        if let Some(error) = self.known().error_of(script) {
            return Err(Failure::new(script, error));
        }
        let answer = self.lanes.run(script, job).await;
        let outcome = match &answer {
            Ok(_) => "answered",
            Err(ScriptError::Expired | ScriptError::Paused) => "timed_out",
            Err(_) => "failed",
        };
        let operation = script.operation.name();
        let labels = RunLabels { operation, outcome };
        self.runs.get_or_create(&labels).inc();
        answer.map_err(|error| Failure::new(script, error))
    }
}

impl Known {
    /// Returns the reason for which a script is no Lua.
    fn error_of(&self, script: &Script) -> Option<ScriptError> {
        let mut broken = self.broken.iter();
        let found = broken.find(|(_, failure)| failure.is_of(script))?;
        Some(found.1.error.clone())
    }
}

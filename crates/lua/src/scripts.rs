//! The scripts of a fleet, asked one by one.

use std::collections::BTreeSet;
use std::sync::Arc;

use objects::GroupVersionKind;
use parking_lot::RwLock;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use propagation_rules::customization::{Changes, Customized, Script};
use propagation_rules::dependencies::Dependency;
use propagation_rules::interpret::{Component, Replicas, Timed};
use serde_json::Value;

use crate::error::{Failure, ScriptError};
use crate::lanes::Lanes;
use crate::operations;
use crate::sandbox::check;

/// The scripts of all customizations, and the lanes in which they run.
#[derive(Debug, Default)]
pub struct Scripts {
    /// Those that are no Lua, with their kinds.
    broken: RwLock<Broken>,
    lanes: Lanes,
    runs: Family<RunLabels, Counter>,
}

type Broken = Arc<Vec<(GroupVersionKind, Failure)>>;

/// The labels of the counter of runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RunLabels {
    operation: &'static str,
    outcome: &'static str,
}

type Answer<T> = Result<T, Failure>;

impl Scripts {
    /// Compiles the scripts that have changed, and forgets those that are gone.
    pub fn replace(&self, customized: &Customized, changes: &Changes) {
        let before = self.broken();
        let broken = customized.scripts().filter_map(|(kind, script)| {
            let error = if changes.concern(kind) {
                check(&script.source).err()
            } else {
                error_of(&before, script)
            };
            Some((kind.clone(), Failure::new(script, error?)))
        });
        let broken = Arc::new(broken.collect());
        self.lanes.keep(|name| {
            let mut scripts = customized.scripts();
            scripts.any(|(_, script)| script.customization == name)
        });
        *self.broken.write() = broken;
    }

    /// Returns the error of a script that is no Lua and would interpret the kind.
    pub fn broken_of(&self, kind: &GroupVersionKind) -> Option<Failure> {
        let broken = self.broken();
        let mut broken = broken.iter();
        broken
            .find(|(of, _)| of == kind)
            .map(|(_, failure)| failure.clone())
    }

    /// Returns the problem of the scripts of a customization, in Karmada's words.
    pub fn problems(&self, customization: &str) -> Vec<String> {
        let broken = self.broken();
        let broken = broken.iter().map(|(_, failure)| failure);
        let broken = broken.filter(|failure| failure.customization() == customization);
        let problems = broken.map(|failure| {
            let (operation, error) = (failure.operation(), &failure.error);
            format!("InterpreterOperation({operation}) Lua script error: {error}")
        });
        problems.collect()
    }

    /// Returns the counter of runs, by operation and outcome.
    pub fn runs(&self) -> Family<RunLabels, Counter> {
        self.runs.clone()
    }

    /// Asks for the replicas of a template.
    pub async fn replicas(&self, script: &Arc<Script>, template: &Value) -> Answer<Replicas> {
        let template = template.clone();
        let job = move |source: &str| operations::replicas(source, &template);
        self.run(script, job).await
    }

    /// Asks for an object with that many replicas.
    pub async fn revise(
        &self,
        script: &Arc<Script>,
        object: &Value,
        replicas: i32,
    ) -> Answer<Timed> {
        let object = object.clone();
        let job = move |source: &str| operations::revise(source, &object, replicas);
        self.run(script, job).await
    }

    /// Asks for the object that replaces `observed` where `desired` is wanted.
    pub async fn retain(
        &self,
        script: &Arc<Script>,
        desired: &Value,
        observed: &Value,
    ) -> Answer<Timed> {
        let (desired, observed) = (desired.clone(), observed.clone());
        let job = move |source: &str| operations::retain(source, &desired, &observed);
        self.run(script, job).await
    }

    /// Asks for the status of a template whose copies have reported `items`.
    pub async fn aggregate(
        &self,
        script: &Arc<Script>,
        template: &Value,
        items: Vec<Value>,
    ) -> Answer<Timed> {
        let template = template.clone();
        let job = move |source: &str| operations::aggregate(source, &template, &items);
        self.run(script, job).await
    }

    /// Asks for the part of an object's status that is reported.
    pub async fn reflect(&self, script: &Arc<Script>, object: &Value) -> Answer<Timed> {
        let object = object.clone();
        let job = move |source: &str| operations::reflect(source, &object);
        self.run(script, job).await
    }

    /// Asks whether an object is well.
    pub async fn is_healthy(&self, script: &Arc<Script>, object: &Value) -> Answer<bool> {
        let object = object.clone();
        let job = move |source: &str| operations::is_healthy(source, &object);
        self.run(script, job).await
    }

    /// Asks for what a template refers to.
    pub async fn dependencies(
        &self,
        script: &Arc<Script>,
        template: &Value,
    ) -> Answer<BTreeSet<Dependency>> {
        let template = template.clone();
        let job = move |source: &str| operations::dependencies(source, &template);
        Ok(self.run(script, job).await?.into_iter().collect())
    }

    /// Asks for the components of a template.
    pub async fn components(
        &self,
        script: &Arc<Script>,
        template: &Value,
    ) -> Answer<Option<Vec<Component>>> {
        let template = template.clone();
        let job = move |source: &str| operations::components(source, &template);
        self.run(script, job).await
    }

    fn broken(&self) -> Broken {
        Arc::clone(&self.broken.read())
    }

    async fn run<T: Send + 'static>(
        &self,
        script: &Arc<Script>,
        job: impl FnOnce(&str) -> Result<T, ScriptError> + Send + 'static,
    ) -> Result<T, Failure> {
        if let Some(error) = error_of(&self.broken(), script) {
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

/// Returns the reason for which a script is no Lua.
fn error_of(broken: &Broken, script: &Script) -> Option<ScriptError> {
    let mut broken = broken.iter();
    let found = broken.find(|(_, failure)| failure.is_of(script))?;
    Some(found.1.error.clone())
}

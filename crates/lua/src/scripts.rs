//! The scripts of a fleet, asked one by one.

use std::sync::Arc;

use objects::GroupVersionKind;
use parking_lot::RwLock;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use propagation_rules::customization::webhook::Request;
use propagation_rules::customization::{Changes, Customized, Script};

use crate::error::{Failure, ScriptError};
use crate::lanes::Lanes;
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

    /// Runs a script by its `operation`.
    ///
    /// # Errors
    /// Fails if it is no Lua, does not end in time, or fails.
    pub async fn run<T: Send + 'static>(
        &self,
        script: &Arc<Script>,
        request: &Request<'_>,
        operation: fn(&str, &Request<'_>) -> Result<T, ScriptError>,
    ) -> Result<T, Failure> {
        if let Some(error) = error_of(&self.broken(), script) {
            return Err(Failure::new(script, error));
        }
        let (object, observed) = (request.object.clone(), request.observed.cloned());
        let (items, replicas) = (Arc::clone(&request.items), request.replicas);
        let asked = request.operation;
        let job = move |source: &str| {
            let request = Request {
                observed: observed.as_ref(),
                replicas,
                items,
                ..Request::new(asked, &object)
            };
            operation(source, &request)
        };
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

    fn broken(&self) -> Broken {
        Arc::clone(&self.broken.read())
    }
}

/// Returns the reason for which a script is no Lua.
fn error_of(broken: &Broken, script: &Script) -> Option<ScriptError> {
    let mut broken = broken.iter();
    let found = broken.find(|(_, failure)| failure.is_of(script))?;
    Some(found.1.error.clone())
}

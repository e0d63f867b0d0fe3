//! Errors of scripts.

use std::sync::Arc;

use propagation_rules::customization::{Operation, Script};

use crate::deadline::Expired;

/// Errors of a script.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    /// It is no Lua.
    #[error("{0}")]
    Syntax(String),
    /// It raised an error, or returned a value that it must not.
    #[error("{0}")]
    Run(String),
    /// It ran too long.
    #[error("{}", Expired)]
    Expired,
    /// It ran too long a short while ago, and is not tried yet again. That is no other news.
    #[error("{}", Expired)]
    Paused,
    /// Its run has died.
    #[error("the run of the script has died")]
    Died,
}

impl ScriptError {
    /// Creates the error of a script that has returned a value that it must not.
    pub(crate) fn result(message: impl Into<String>) -> Self {
        Self::Run(message.into())
    }
}

/// A result is not as it must be.
impl From<String> for ScriptError {
    fn from(message: String) -> Self {
        Self::Run(message)
    }
}

impl From<Expired> for ScriptError {
    fn from(_: Expired) -> Self {
        Self::Expired
    }
}

impl From<mlua::Error> for ScriptError {
    fn from(error: mlua::Error) -> Self {
        match error {
            mlua::Error::SyntaxError { message, .. } => Self::Syntax(message),
            mlua::Error::RuntimeError(message) => Self::Run(untraced(&message).to_owned()),
            mlua::Error::MemoryError(_) => Self::Run("not enough memory".to_owned()),
            mlua::Error::CallbackError { cause, .. } => Self::from((*cause).clone()),
            mlua::Error::ExternalError(error) if error.is::<Expired>() => Self::Expired,
            other => Self::Run(untraced(&other.to_string()).to_owned()),
        }
    }
}

/// Returns a message without the trace that follows it.
fn untraced(message: &str) -> &str {
    let end = message.find("\nstack traceback:");
    message[..end.unwrap_or(message.len())].trim_end()
}

/// The error of a customization's script.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{error} (ResourceInterpreterCustomization {})", .script.customization)]
pub struct Failure {
    script: Arc<Script>,
    /// The error.
    pub error: ScriptError,
}

impl Failure {
    pub(crate) fn new(script: &Arc<Script>, error: ScriptError) -> Self {
        Self {
            script: Arc::clone(script),
            error,
        }
    }

    /// Returns the name of the customization.
    pub fn customization(&self) -> &str {
        &self.script.customization
    }

    /// Returns `true` if it is the error of that script.
    pub(crate) fn is_of(&self, script: &Script) -> bool {
        let own = &self.script;
        (&own.customization, own.operation, &own.source)
            == (&script.customization, script.operation, &script.source)
    }

    /// Returns the operation.
    pub fn operation(&self) -> Operation {
        self.script.operation
    }
}

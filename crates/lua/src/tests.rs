//! Scripts as users write them, and as they must not.

mod gopher;
mod kube;
mod limits;
mod operations;

use crate::arguments::{number, type_name};
use crate::call::Clock;
use crate::error::ScriptError;
use crate::gopher::numbers;
use crate::sandbox::Sandbox;
use mlua::Value;

/// Runs `code`, the body of a function, and returns its results, each as its type and its text.
fn run(code: &str) -> Result<Vec<String>, ScriptError> {
    let source = format!("function Test() {code} end");
    let sandbox = Sandbox::load(&source, Clock::at(1_704_164_645))?;
    let values = sandbox.call("Test", Vec::new())?;
    Ok(values.iter().map(shown).collect())
}

fn shown(value: &Value) -> String {
    let text = match (value, number(value)) {
        (_, Some(number)) => numbers::text(number),
        (Value::String(text), _) => text.to_string_lossy(),
        (value, _) => value.to_string().unwrap(),
    };
    format!("{} {text}", type_name(value))
}

/// Runs `code` and returns the error that it must raise, without its place.
#[track_caller]
fn raised(code: &str) -> String {
    let error = run(code).expect_err(code).to_string();
    match error.split_once("<string>:1: ") {
        Some((_, message)) => message.to_owned(),
        None => error,
    }
}

//! The functions of scripts: the arguments of each, and its results (Karmada,
//! `config.karmada.io/v1alpha1`, `CustomizationRules`).

use jiff::Timestamp;
use mlua::Value;
use propagation_rules::customization::Operation;
use propagation_rules::customization::results;
use propagation_rules::dependencies::Dependency;
use propagation_rules::interpret::{Component, Replicas, Timed};
use serde_json::Value as Json;

use crate::arguments::{number, type_name};
use crate::call::Clock;
use crate::error::ScriptError;
use crate::gopher::numbers;
use crate::json::{Empty, EncodeError, decode, decode_list, encode};
use crate::sandbox::Sandbox;

/// The time, in seconds, by which a second run of a script that looks at the clock is later: a month, a day, an hour, a
/// minute and a second, so that every part of a date differs.
const LATER: i64 = ((31 + 1) * 24 + 1) * 3600 + 61;

/// Asks for the replicas of a template, and the needs of each.
pub fn replicas(source: &str, template: &Json) -> Result<Replicas, ScriptError> {
    let run = Run::start(
        source,
        Operation::InterpretReplica,
        now(),
        &[Input::Json(template)],
    )?;
    let Some(count) = number(run.result(0)) else {
        let kind = type_name(run.result(0));
        return Err(ScriptError::result(format!(
            "result type {kind} is not number"
        )));
    };
    let count = i32::try_from(numbers::truncated(count));
    let count = count.map_err(|_| ScriptError::result("the number of replicas is out of range"))?;
    let requirements = match run.result(1) {
        Value::Nil => None,
        _ => results::requirements(&run.table(1, Empty::Object, &[])?)?,
    };
    Ok(Replicas {
        count: Some(count).filter(|count| *count > 0),
        requirements,
    })
}

/// Asks for the components of a template; `None` if it has none.
pub fn components(source: &str, template: &Json) -> Result<Option<Vec<Component>>, ScriptError> {
    let operation = Operation::InterpretComponent;
    let run = Run::start(source, operation, now(), &[Input::Json(template)])?;
    match run.result(0) {
        Value::Nil => Ok(None),
        _ => Ok(Some(results::components(&run.table(
            0,
            Empty::List,
            &[],
        )?)?)),
    }
}

/// Asks for an object with that many replicas.
pub fn revise(source: &str, object: &Json, replicas: i32) -> Result<Timed, ScriptError> {
    timed(|now| {
        let inputs = [Input::Json(object), Input::Number(replicas)];
        let run = Run::start(source, Operation::ReviseReplica, now, &inputs)?;
        let revised = results::object(run.table(0, Empty::Object, &[object])?)?;
        Ok((revised, run))
    })
}

/// Asks for the object that replaces `observed` where `desired` is wanted.
pub fn retain(source: &str, desired: &Json, observed: &Json) -> Result<Timed, ScriptError> {
    timed(|now| {
        let inputs = [Input::Json(desired), Input::Json(observed)];
        let run = Run::start(source, Operation::Retain, now, &inputs)?;
        let retained = run.table(0, Empty::Object, &[desired, observed])?;
        Ok((results::object(retained)?, run))
    })
}

/// Asks for the status of a template whose copies have reported `items`, as a binding has them.
pub fn aggregate(source: &str, template: &Json, items: &[Json]) -> Result<Timed, ScriptError> {
    timed(|now| {
        let inputs = [Input::Json(template), Input::List(items)];
        let run = Run::start(source, Operation::AggregateStatus, now, &inputs)?;
        let mut object = results::object(run.table(0, Empty::Object, &[])?)?;
        let status = object.get_mut("status").map(Json::take);
        Ok((status.unwrap_or_default(), run))
    })
}

/// Asks for the part of an object's status that is reported.
pub fn reflect(source: &str, object: &Json) -> Result<Timed, ScriptError> {
    timed(|now| {
        let inputs = [Input::Json(object)];
        let run = Run::start(source, Operation::InterpretStatus, now, &inputs)?;
        Ok((run.table(0, Empty::Object, &[])?, run))
    })
}

/// Asks whether an object is well.
pub fn is_healthy(source: &str, object: &Json) -> Result<bool, ScriptError> {
    let operation = Operation::InterpretHealth;
    let run = Run::start(source, operation, now(), &[Input::Json(object)])?;
    match run.result(0) {
        Value::Boolean(is_healthy) => Ok(*is_healthy),
        other => {
            let kind = type_name(other);
            Err(ScriptError::result(format!(
                "result type {kind} is not bool"
            )))
        }
    }
}

/// Asks for the dependencies of a template.
pub fn dependencies(source: &str, template: &Json) -> Result<Vec<Dependency>, ScriptError> {
    let operation = Operation::InterpretDependency;
    let run = Run::start(source, operation, now(), &[Input::Json(template)])?;
    Ok(results::dependencies(&run.table(0, Empty::List, &[])?)?)
}

fn now() -> i64 {
    Timestamp::now().as_second()
}

/// Asks twice where the answer may depend on the time.
fn timed(ask: impl Fn(i64) -> Result<(Json, Run), ScriptError>) -> Result<Timed, ScriptError> {
    let now = now();
    let (value, run) = ask(now)?;
    let at_another_time = if run.sandbox.has_looked_at_clock() {
        Some(ask(now + LATER)?.0)
    } else {
        None
    };
    Ok(Timed {
        value,
        at_another_time,
    })
}

/// An argument of a function.
enum Input<'a> {
    Json(&'a Json),
    List(&'a [Json]),
    Number(i32),
}

/// A script after the call of its function.
struct Run {
    sandbox: Sandbox,
    results: Vec<Value>,
}

impl Run {
    fn start(
        source: &str,
        operation: Operation,
        now: i64,
        inputs: &[Input<'_>],
    ) -> Result<Self, ScriptError> {
        let sandbox = Sandbox::load(source, Clock::at(now))?;
        let mut arguments = Vec::new();
        for input in inputs {
            arguments.push(match input {
                Input::Json(json) => decode(&sandbox.lua, json)?,
                // One of none is nil in Go.
                Input::List([]) => Value::Nil,
                Input::List(list) => decode_list(&sandbox.lua, list)?,
                Input::Number(number) => Value::Integer((*number).into()),
            });
        }
        let results = sandbox.call(operation.function(), arguments)?;
        Ok(Self { sandbox, results })
    }

    /// Returns a result; nil if the script returned less.
    fn result(&self, place: usize) -> &Value {
        self.results.get(place).unwrap_or(&Value::Nil)
    }

    /// Returns a result that must be a table.
    fn table(&self, place: usize, whole: Empty, known: &[&Json]) -> Result<Json, ScriptError> {
        let value = self.result(place);
        if !value.is_table() {
            let kind = type_name(value);
            let message = format!("expect the returned requires type is table but got {kind}");
            return Err(ScriptError::result(message));
        }
        let encoded = encode(value, whole, known, self.sandbox.deadline());
        let json = encoded.map_err(|error| match error {
            EncodeError::Invalid(message) => {
                ScriptError::result(format!("json Encode obj error: {message}"))
            }
            EncodeError::Halt(error) => self.sandbox.explain(error),
        })?;
        match (json.is_array(), whole == Empty::Object) {
            (true, true) => Err(ScriptError::result(
                "can not unmarshal a list into an object",
            )),
            (false, false) => Err(ScriptError::result(
                "can not unmarshal an object into a list",
            )),
            _ => Ok(json),
        }
    }
}

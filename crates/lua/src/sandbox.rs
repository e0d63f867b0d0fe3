//! The state in which a script runs once.

use std::sync::{Arc, OnceLock};

use mlua::chunk::ChunkMode;
use mlua::{Function, HookTriggers, Lua, LuaOptions, MultiValue, StdLib, Value, VmState};

use crate::arguments::type_name;
use crate::call::{Clock, Context};
use crate::deadline::Deadline;
use crate::error::ScriptError;
use crate::natives;

/// The memory of a script, in bytes.
const MEMORY: usize = 64 << 20;

/// The number of instructions between two looks at the clock. One instruction may take some milliseconds, if it joins
/// texts of many megabytes.
const INSTRUCTIONS: u32 = 100;

/// A script that has been loaded.
pub(crate) struct Sandbox {
    pub(crate) lua: Lua,
    context: Arc<Context>,
}

/// Compiles a script and does not run it.
///
/// # Errors
/// Fails with the reason if it is no Lua.
pub fn check(source: &str) -> Result<(), ScriptError> {
    let lua = Lua::new_with(StdLib::NONE, LuaOptions::new())?;
    compile(&lua, source).map(|_| ())
}

impl Sandbox {
    /// Runs a script, which defines its function.
    pub(crate) fn load(source: &str, clock: Clock) -> Result<Self, ScriptError> {
        let libraries = StdLib::TABLE | StdLib::STRING | StdLib::MATH;
        let lua = Lua::new_with(libraries, LuaOptions::new())?;
        let context = Arc::new(Context {
            deadline: Deadline::start(),
            clock,
        });
        let natives = natives::table(&lua, &context)?;
        prelude(&lua)?.call::<()>(natives)?;
        lua.set_memory_limit(MEMORY)?;
        watch(&lua, &context, INSTRUCTIONS)?;
        let sandbox = Self { lua, context };
        let script = compile(&sandbox.lua, source)?;
        let loaded = script.call::<()>(());
        loaded.map_err(|error| sandbox.explain(error))?;
        Ok(sandbox)
    }

    /// Calls a function of the script.
    pub(crate) fn call(
        &self,
        function: &str,
        arguments: Vec<Value>,
    ) -> Result<Vec<Value>, ScriptError> {
        let found = match self.lua.globals().raw_get::<Value>(function)? {
            Value::Function(found) => found,
            Value::Nil => {
                return Err(ScriptError::result(format!(
                    "not found function {function}"
                )));
            }
            other => {
                let kind = type_name(&other);
                let message = format!("{function} is not a function: {kind}");
                return Err(ScriptError::result(message));
            }
        };
        let arguments = MultiValue::from_iter(arguments);
        let results = found.call::<MultiValue>(arguments);
        let results = results.map_err(|error| self.explain(error))?;
        Ok(results.into_iter().collect())
    }

    pub(crate) fn deadline(&self) -> Deadline {
        self.context.deadline
    }

    /// Returns `true` if the script has looked at the clock.
    pub(crate) fn has_looked_at_clock(&self) -> bool {
        self.context.clock.was_asked()
    }

    /// Returns the error of a script. Whatever it made of the error by which it was stopped, it was stopped.
    pub(crate) fn explain(&self, error: mlua::Error) -> ScriptError {
        match self.context.deadline.check() {
            Ok(()) => error.into(),
            Err(expired) => expired.into(),
        }
    }
}

/// Returns Lua's own part. It is compiled once: that takes longer than most scripts.
fn prelude(lua: &Lua) -> mlua::Result<Function> {
    static CODE: OnceLock<Vec<u8>> = OnceLock::new();
    let Some(code) = CODE.get() else {
        let chunk = lua.load(include_str!("prelude.lua"));
        let compiled = chunk.set_name("=prelude").into_function()?;
        CODE.get_or_init(|| compiled.dump(false));
        return Ok(compiled);
    };
    lua.load(code).set_mode(ChunkMode::Binary).into_function()
}

fn compile(lua: &Lua, source: &str) -> Result<Function, ScriptError> {
    // Nobody verifies bytecode: one that is made for it reads and writes any memory of the process.
    let chunk = lua.load(source).set_mode(ChunkMode::Text);
    let chunk = chunk.set_name("=<string>");
    chunk.into_function().map_err(|error| {
        let error = ScriptError::from(error);
        match (&error, line_with_goto(source)) {
            (ScriptError::Syntax(_), Some(line)) => ScriptError::Syntax(format!(
                "<string>:{line}: goto is not supported: karmada-rs runs scripts as Lua 5.1, which has none"
            )),
            _ => error,
        }
    })
}

/// Returns the first line that has a `goto` or its label, as gopher-lua knows them beyond Lua 5.1.
fn line_with_goto(source: &str) -> Option<usize> {
    source.lines().position(has_goto).map(|line| line + 1)
}

fn has_goto(line: &str) -> bool {
    let code = line.split("--").next().unwrap_or_default().trim();
    let is_label = code.len() > 4 && code.starts_with("::") && code.ends_with("::");
    let mut words = code.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    is_label || words.any(|word| word == "goto")
}

/// Stops the script at its deadline. From then on each instruction raises the error: a `pcall` of the script would go on
/// after the first.
fn watch(lua: &Lua, context: &Arc<Context>, instructions: u32) -> mlua::Result<()> {
    let triggers = HookTriggers::new().every_nth_instruction(instructions);
    let context = Arc::clone(context);
    lua.set_hook(triggers, move |lua, _| match context.deadline.check() {
        Ok(()) => Ok(VmState::Continue),
        Err(expired) => {
            if instructions > 1 {
                watch(lua, &context, 1)?;
            }
            Err(mlua::Error::external(expired))
        }
    })
}

//! The things that scripts must not do, and cannot.

use std::time::{Duration, Instant};

use super::{raised, run};
use crate::error::ScriptError;
use crate::sandbox::check;

/// Runs code that would not end in time, and returns its error.
#[track_caller]
fn stopped(code: &str) -> ScriptError {
    let started = Instant::now();
    let error = run(code).expect_err(code);
    // Generous: the machine may have other things to do.
    assert!(started.elapsed() < Duration::from_secs(20), "{code}");
    error
}

/// Case I74: a script that never ends is stopped after a second, whatever it catches.
#[test]
fn endless_scripts_are_stopped() {
    for code in [
        "while true do end",
        "while true do pcall(function() while true do end end) end",
        "while true do xpcall(function() while true do end end, function() end) end",
        "local function f() return f() end f()",
        "local t = {} for i = 1, 100 do t[i] = i end table.sort(t, function(a, b) while true do end end)",
        "repeat until false",
        "for i = 1, 1e18 do end",
    ] {
        assert_eq!(stopped(code), ScriptError::Expired, "{code}");
    }
}

/// Case I74: a pattern that goes back without end is stopped, too: no hook runs while C matches.
#[test]
fn endless_patterns_are_stopped() {
    let text = "local s = 'aaaaaaaaaaaaaaaa' for i = 1, 12 do s = s .. s end ";
    for code in [
        "return s:find('.-.-.-.-.-.-.-.-b')",
        "return s:match('(.*)(.*)(.*)(.*)(.*)b')",
        "for w in s:gmatch('.-.-.-.-.-.-b') do end",
    ] {
        let error = stopped(&format!("{text} {code}"));
        assert_eq!(error, ScriptError::Expired, "{code}");
    }
}

/// Case I74: memory is bounded, and so is the depth of calls.
#[test]
fn memory_and_depth_are_bounded() {
    let doubled = "local s = 'x' while true do s = s .. s end";
    assert_eq!(
        stopped(doubled),
        ScriptError::Run("not enough memory".to_owned())
    );
    let tables = "local t = {} while true do t[#t + 1] = {} end";
    assert!(matches!(
        stopped(tables),
        ScriptError::Run(_) | ScriptError::Expired
    ));
    let recursion = "local function f() return 1 + f() end return f()";
    assert!(
        raised(recursion).contains("stack overflow"),
        "{}",
        raised(recursion)
    );
    let nested = "local t = {} for i = 1, 100000 do t = { t } end return t";
    run(nested).unwrap();
}

/// Case I75: there are no files, no processes, no other programs.
#[test]
fn nothing_outside_is_reached() {
    for name in [
        "io",
        "debug",
        "coroutine",
        "package",
        "os.execute",
        "os.exit",
        "os.getenv",
    ] {
        let values = run(&format!("return {name}")).unwrap();
        assert_eq!(values, ["nil nil"], "{name}");
    }
    for name in [
        "collectgarbage",
        "dofile",
        "getfenv",
        "getmetatable",
        "load",
        "loadfile",
        "loadstring",
        "module",
        "newproxy",
        "rawequal",
        "rawget",
        "rawset",
        "setfenv",
        "setmetatable",
    ] {
        let expected = format!(
            "call function {name} is not supported in karmada customized resourceinterpreter."
        );
        assert_eq!(raised(&format!("{name}('x')")), expected);
    }
    for name in ["dump", "gsub", "rep"] {
        let error = raised(&format!("string.{name}('a', 'b', 'c')"));
        let expected = format!("The Lua function string.{name} is not supported by Karmada.");
        assert!(error.starts_with(&expected), "{error}");
    }
    let long = "local s = 'x' for i = 1, 20 do s = s .. s end return s:find('y'), 1";
    assert!(raised(long).ends_with("string longer than 1000000 bytes"));
}

/// Case I75: a script is text. Bytecode, which could end the process, is no script.
#[test]
fn bytecode_is_refused() {
    let error = check("\u{1b}LuaQ").unwrap_err();
    let ScriptError::Syntax(message) = error else {
        panic!("{error:?}");
    };
    assert!(message.contains("binary chunk"), "{message}");
}

/// Case I75: nothing survives a run.
#[test]
fn globals_end_with_their_run() {
    run("Kept = 1 string.kept = 1").unwrap();
    assert_eq!(run("return Kept").unwrap(), ["nil nil"]);
    assert_eq!(run("return string.kept").unwrap(), ["nil nil"]);
}

/// Case I76: `goto`, which Lua 5.1 has not, is told in one line.
#[test]
fn goto_is_told() {
    let source = "function GetReplicas(obj)\n  for i = 1, 3 do\n    goto continue\n    ::continue::\n  end\nend";
    let error = check(source).unwrap_err().to_string();
    assert_eq!(
        error,
        "<string>:3: goto is not supported: karmada-rs runs scripts as Lua 5.1, which has none"
    );
    check("local text = 'goto continue' -- goto").unwrap();
    let error = check("function f( end").unwrap_err().to_string();
    assert_eq!(error, "<string>:1: <name> or '...' expected near 'end'");
}

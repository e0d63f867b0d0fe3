//! Builds the tools with Go, once per user and content, however many processes ask for them.

use std::{
    fs::{self, File, TryLockError},
    io::{self, Write},
    process::Command,
    time::Instant,
};

use crate::last_lines;
use crate::tool::{BUILD, GoMod, Tool, ToolsError, cache, file};

/// Builds missing tools and prints progress to stderr. Two processes that build at the same time share
/// the work.
pub fn build(tools: &[Tool]) -> Result<(), ToolsError> {
    if tools.iter().all(|tool| tool.path().is_ok()) {
        return Ok(());
    }
    let folder = cache()?;
    fs::create_dir_all(&folder).map_err(file("create", &folder))?;
    let lock_path = folder.join(".lock");
    let lock = File::create(&lock_path).map_err(file("create", &lock_path))?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            progress("waiting for another process that is building tools");
            lock.lock().map_err(file("lock", &lock_path))?;
        }
        Err(TryLockError::Error(source)) => return Err(file("lock", &lock_path)(source)),
    }
    for tool in tools {
        match tool.path() {
            Err(ToolsError::NotBuilt { .. }) => build_one(*tool)?,
            found => drop(found?),
        }
    }
    Ok(())
}

fn build_one(tool: Tool) -> Result<(), ToolsError> {
    let GoMod { go, version } = tool.go_mod()?;
    let name = tool.name();
    progress(&format!(
        "building {name} {version} (about {} once)",
        tool.build_minutes()
    ));
    let started = Instant::now();
    let folder = tool.folder()?;
    fs::create_dir_all(&folder).map_err(file("create", &folder))?;
    let building = folder.join("building");
    let output = Command::new("go")
        .args(BUILD)
        .arg(&building)
        .arg(tool.tags())
        .arg(tool.link_arguments(&version))
        .arg(tool.package())
        .current_dir(tool.source())
        .env("CGO_ENABLED", "0")
        .env("GOWORK", "off")
        .output();
    let output = match output {
        Ok(output) => output,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(ToolsError::GoMissing { tool: name, go });
        }
        Err(source) => return Err(file("run go in", &tool.source())(source)),
    };
    if !output.status.success() {
        return Err(ToolsError::Build {
            tool: name,
            version,
            go,
            output: last_lines(&String::from_utf8_lossy(&output.stderr), 15),
        });
    }
    fs::rename(&building, folder.join(name)).map_err(file("move into place", &building))?;
    progress(&format!(
        "built {name} {version} in {} s",
        started.elapsed().as_secs()
    ));
    Ok(())
}

/// Prints progress straight to stderr, because libtest captures `eprintln!` of a test that passes. An
/// error means that stderr is closed.
fn progress(line: &str) {
    drop(writeln!(io::stderr(), "{line}"));
}

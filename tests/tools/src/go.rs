//! Builds the tools with Go, once per user and content, however many processes ask for them.

use std::{
    fs::{self, File, TryLockError},
    io::{self, Write},
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use crate::last_lines;
use crate::tool::{BUILD, GoMod, Overlay, Tool, ToolsError, cache, file};

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
    let version = tool.go_mod()?.version;
    let name = tool.name();
    progress(&format!(
        "building {name} {version} (about {} once)",
        tool.build_minutes()
    ));
    let started = Instant::now();
    let folder = tool.folder()?;
    fs::create_dir_all(&folder).map_err(file("create", &folder))?;
    let building = folder.join("building");
    let mut build = Command::new("go");
    build.args(BUILD).arg(&building).arg(tool.tags());
    if let Some(overlay) = tool.overlay() {
        build.arg("-overlay").arg(write_overlay(tool, overlay)?);
    }
    build.arg(tool.link_arguments(&version)).arg(tool.package());
    run(tool, &mut build)?;
    fs::rename(&building, folder.join(name)).map_err(file("move into place", &building))?;
    progress(&format!(
        "built {name} {version} in {} s",
        started.elapsed().as_secs()
    ));
    Ok(())
}

/// Runs Go in the tool's folder and returns what it prints.
fn run(tool: Tool, go: &mut Command) -> Result<String, ToolsError> {
    let output = go
        .current_dir(tool.source())
        .env("CGO_ENABLED", "0")
        .env("GOWORK", "off")
        .output();
    let failed = |output| {
        let GoMod { go, version } = tool.go_mod()?;
        Err(ToolsError::Build {
            tool: tool.name(),
            version,
            go,
            output,
        })
    };
    match output {
        Ok(output) if output.status.success() => {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        }
        Ok(output) => failed(last_lines(&String::from_utf8_lossy(&output.stderr), 15)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(ToolsError::GoMissing {
            tool: tool.name(),
            go: tool.go_mod()?.go,
        }),
        Err(source) => Err(file("run go in", &tool.source())(source)),
    }
}

/// Writes Go's description of a file that replaces another, and returns its path.
fn write_overlay(tool: Tool, overlay: Overlay) -> Result<PathBuf, ToolsError> {
    let Overlay {
        module,
        file: replaced,
        by,
    } = overlay;
    run(tool, Command::new("go").args(["mod", "download", module]))?;
    let list = ["list", "-mod=readonly", "-m", "-f", "{{.Dir}}", module];
    let folder = run(tool, Command::new("go").args(list))?;
    let replaced = Path::new(folder.trim()).join(replaced);
    let by = tool.source().join(by);
    let path = tool.folder()?.join("overlay.json");
    // Go's quotes are JSON's, and so are Rust's.
    let [replaced, by] = [replaced, by].map(|path| format!("{:?}", path.to_string_lossy()));
    let text = format!(r#"{{"Replace":{{{replaced}:{by}}}}}"#);
    fs::write(&path, text).map_err(file("write", &path))?;
    Ok(path)
}

/// Prints progress straight to stderr, because libtest captures `eprintln!` of a test that passes. An
/// error means that stderr is closed.
fn progress(line: &str) {
    drop(writeln!(io::stderr(), "{line}"));
}

//! The definitions of other projects' kinds, which are read from their Go modules and not built.

use std::{fs, io, path::Path, path::PathBuf, process::Command};

use crate::last_lines;
use crate::tool::{GoMod, ToolsError, file};

/// The folder of the `go.mod`, and the module in it.
const NAME: &str = "prometheus-operator";
const MODULE: &str = "github.com/prometheus-operator/prometheus-operator";
/// The folder of the definitions in the module.
const DEFINITIONS: &str = "example/prometheus-operator-crd";

/// Returns the folder with the definitions of the Prometheus Operator's kinds. The module is downloaded once per user.
///
/// # Errors
/// Fails without Go, and if the module is neither there nor can be downloaded.
pub fn prometheus_operator() -> Result<PathBuf, ToolsError> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(NAME);
    let path = source.join("go.mod");
    let text = fs::read_to_string(&path).map_err(file("read", &path))?;
    // The module stands behind the word `require`.
    let GoMod { go, version } = GoMod::parse(&text.replace("require ", ""), MODULE);
    let output = Command::new("go")
        .args(["mod", "download", "-json", MODULE])
        .current_dir(&source)
        .env("GOWORK", "off")
        .output();
    let output = match output {
        Ok(output) => output,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(ToolsError::GoMissing { tool: NAME, go });
        }
        Err(error) => return Err(file("run go in", &source)(error)),
    };
    let said = String::from_utf8_lossy(&output.stdout);
    let mut lines = said.lines().map(str::trim);
    let folder = lines.find_map(|line| line.strip_prefix("\"Dir\": \""));
    match folder {
        Some(folder) if output.status.success() => {
            Ok(Path::new(folder.trim_end_matches([',', '"'])).join(DEFINITIONS))
        }
        _ => Err(ToolsError::Build {
            tool: NAME,
            version,
            go,
            output: last_lines(
                &format!("{said}{}", String::from_utf8_lossy(&output.stderr)),
                15,
            ),
        }),
    }
}

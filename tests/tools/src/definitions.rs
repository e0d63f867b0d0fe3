//! The definitions of other projects' kinds, which are read from their Go modules and not built.

use std::{fs, io, path::Path, path::PathBuf, process::Command};

use crate::last_lines;
use crate::tool::{GoMod, ToolsError, file};

/// The definitions of the Prometheus Operator's kinds: the folder of the `go.mod`, the module in it, and their folder in that.
const OPERATOR: &str = "prometheus-operator";
const OPERATOR_MODULE: &str = "github.com/prometheus-operator/prometheus-operator";
const OPERATOR_DEFINITIONS: &str = "example/prometheus-operator-crd";

/// The same of the Gateway API's kinds.
const GATEWAY_API: &str = "gateway-api";
const GATEWAY_API_MODULE: &str = "sigs.k8s.io/gateway-api";
const GATEWAY_API_DEFINITIONS: &str = "config/crd/standard";

/// The same of ExternalDNS's kind.
const EXTERNAL_DNS: &str = "external-dns";
const EXTERNAL_DNS_MODULE: &str = "sigs.k8s.io/external-dns";
const EXTERNAL_DNS_DEFINITIONS: &str = "config/crd/standard";

/// Returns the folder with the definitions of the Prometheus Operator's kinds. The module is downloaded once per user.
///
/// # Errors
/// Fails without Go, and if the module is neither there nor can be downloaded.
pub fn prometheus_operator() -> Result<PathBuf, ToolsError> {
    Ok(module(OPERATOR, OPERATOR_MODULE)?.join(OPERATOR_DEFINITIONS))
}

/// Returns the folder with the definitions of the Gateway API's kinds, each in a file `gateway.networking.k8s.io_<plural>.yaml`.
/// The module is downloaded once per user.
///
/// # Errors
/// Fails without Go, and if the module is neither there nor can be downloaded.
pub fn gateway_api() -> Result<PathBuf, ToolsError> {
    Ok(module(GATEWAY_API, GATEWAY_API_MODULE)?.join(GATEWAY_API_DEFINITIONS))
}

/// Returns the folder with the definition of ExternalDNS's kind `DNSEndpoint`. The module is downloaded once per user.
///
/// # Errors
/// Fails without Go, and if the module is neither there nor can be downloaded.
pub fn external_dns() -> Result<PathBuf, ToolsError> {
    Ok(module(EXTERNAL_DNS, EXTERNAL_DNS_MODULE)?.join(EXTERNAL_DNS_DEFINITIONS))
}

/// Returns the folder of a module of Kubernetes, `k8s.io/api` for example, at the version of the kube-apiserver that the tests
/// run. The module is downloaded once per user.
///
/// # Errors
/// Fails without Go, and if the module is neither there nor can be downloaded.
pub fn kubernetes(name: &str) -> Result<PathBuf, ToolsError> {
    module("kubernetes", name)
}

/// Returns the folder of a module that is required in the `go.mod` of this folder.
fn module(folder: &'static str, name: &str) -> Result<PathBuf, ToolsError> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let path = source.join("go.mod");
    let text = fs::read_to_string(&path).map_err(file("read", &path))?;
    // The module stands behind the word `require`.
    let GoMod { go, version } = GoMod::parse(&text.replace("require ", ""), name);
    let output = Command::new("go")
        .args(["mod", "download", "-json", name])
        .current_dir(&source)
        .env("GOWORK", "off")
        .output();
    let output = match output {
        Ok(output) => output,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(ToolsError::GoMissing { tool: folder, go });
        }
        Err(error) => return Err(file("run go in", &source)(error)),
    };
    let said = String::from_utf8_lossy(&output.stdout);
    let mut lines = said.lines().map(str::trim);
    let downloaded = lines.find_map(|line| line.strip_prefix("\"Dir\": \""));
    match downloaded {
        Some(downloaded) if output.status.success() => {
            Ok(downloaded.trim_end_matches([',', '"']).into())
        }
        _ => Err(ToolsError::Build {
            tool: folder,
            version,
            go,
            output: last_lines(
                &format!("{said}{}", String::from_utf8_lossy(&output.stderr)),
                15,
            ),
        }),
    }
}

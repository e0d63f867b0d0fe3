//! The program `cluster-health-agent`; the library has all its parts.

use std::process::ExitCode;

fn main() -> ExitCode {
    cluster_health_agent::check_if_asked().unwrap_or_else(|| {
        karmada_runtime::program::run(cluster_health_agent::IDENTITY, cluster_health_agent::start)
    })
}

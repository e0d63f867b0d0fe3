//! The program `cluster-health-agent`; what it is made of is in its library.

use std::process::ExitCode;

fn main() -> ExitCode {
    karmada_runtime::program::run(cluster_health_agent::NAME, cluster_health_agent::start)
}

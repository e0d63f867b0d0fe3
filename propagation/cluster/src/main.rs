//! The program `cluster-controller`, whose parts are in its library.

use std::process::ExitCode;

fn main() -> ExitCode {
    karmada_runtime::program::run(cluster_controller::IDENTITY, cluster_controller::start)
}

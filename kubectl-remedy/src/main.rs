//! The program `kubectl-remedy`, whose parts are in its library.

use std::process::ExitCode;

fn main() -> ExitCode {
    kubectl_remedy::run()
}

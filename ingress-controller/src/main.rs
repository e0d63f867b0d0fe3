//! The program `ingress-controller`. Its parts are in its library.

use std::process::ExitCode;

fn main() -> ExitCode {
    karmada_runtime::program::run(ingress_controller::IDENTITY, ingress_controller::start)
}

//! The program `propagation-controller`, whose parts are in its library.

use std::process::ExitCode;

fn main() -> ExitCode {
    karmada_runtime::program::run(
        propagation_controller::IDENTITY,
        propagation_controller::start,
    )
}

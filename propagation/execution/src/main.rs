//! The program `execution-controller`, whose parts are in its library.

use std::process::ExitCode;

fn main() -> ExitCode {
    karmada_runtime::program::run(execution_controller::IDENTITY, execution_controller::start)
}

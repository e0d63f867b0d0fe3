//! The program `remedy-controller`, whose parts are in its library.

use std::process::ExitCode;

fn main() -> ExitCode {
    karmada_runtime::program::run(remedy_controller::IDENTITY, remedy_controller::start)
}

//! The program `placement-controller`, whose parts are in its library.

use std::process::ExitCode;

fn main() -> ExitCode {
    karmada_runtime::program::run(placement_controller::IDENTITY, placement_controller::start)
}

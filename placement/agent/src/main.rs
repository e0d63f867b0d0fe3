//! The program `placement-agent`, whose parts are in its library.

use std::process::ExitCode;

fn main() -> ExitCode {
    karmada_runtime::program::run(placement_agent::IDENTITY, placement_agent::start)
}

//! The program `scheduler`, whose parts are in its library.

use std::process::ExitCode;

fn main() -> ExitCode {
    karmada_runtime::program::run(scheduler::IDENTITY, scheduler::start)
}

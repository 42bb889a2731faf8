//! The program `treeline`; everything is in the library, so that tests can use it.

use std::process::ExitCode;

fn main() -> ExitCode {
    treeline_server::cli::main()
}

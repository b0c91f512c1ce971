//! The `roundelay` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    roundelay_cli::main()
}

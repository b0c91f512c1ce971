//! The `roundelay` command.

use std::process::ExitCode;

#[cfg(target_os = "linux")]
use roundelay_kernels::allocation::{RememberingAllocator, end_with_a_message};

#[cfg(target_os = "linux")]
#[global_allocator]
static ALLOCATOR: RememberingAllocator = RememberingAllocator;

fn main() -> ExitCode {
    #[cfg(target_os = "linux")]
    end_with_a_message();
    roundelay_cli::main()
}

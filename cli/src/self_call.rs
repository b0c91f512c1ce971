//! Whether the command may start processes of itself.

use roundelay_core::diagnostics::Code;

use crate::report::Failure;
use crate::streams;

/// Returns an error unless the command may start processes of itself.
///
/// # Errors
/// The command runs as a function of another program, which may not expect child processes.
pub(crate) fn alone() -> Result<(), Failure> {
    if streams::is_kept() {
        let title = "this command starts processes of itself, which it does not as a function of another program";
        return Err(Failure::usage(Code::BadCall, title)
            .with_help("start the command `roundelay` with the same arguments"));
    }
    Ok(())
}

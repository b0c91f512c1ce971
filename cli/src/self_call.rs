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

#[cfg(all(test, target_os = "linux"))]
mod tests {
    /// Each subcommand that starts processes of the command refuses before it prints a line of its result.
    #[test]
    fn a_function_starts_no_process() {
        for args in [
            "run RingAllReduce --callers processes",
            "bench RingAllReduce --callers processes",
            "calibrate --world",
            "launch -n 2 -- true",
            "mpirun -- true",
            "ncclrun -- true",
        ] {
            let told = crate::output(args.split(' '), "");
            let why = "which it does not as a function of another program";
            assert_eq!((told.code, told.out.as_str()), (2, ""), "{args}: {}", told.err);
            assert!(told.err.contains("E0507") && told.err.contains(why), "{args}: {}", told.err);
        }
    }
}
